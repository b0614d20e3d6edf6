"""The attack suite on any tool's fakes: every attack with its control, its baseline, its interval and its bar."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from elsewhere._version import __version__
from elsewhere.errors import InvalidParameter, require_between, require_whole
from elsewhere.evaluation.attacks.finding import FOR_REVIEW, LEARNT, NOT_RUN, NOTHING, RUN, UNCLEAR, WITHIN, Finding
from elsewhere.evaluation.attacks.ground import Ground
from elsewhere.evaluation.attacks.suite import ALL, NO_VERDICT, SEEDS, run
from elsewhere.traces.model import Locations, Traces


@dataclass(frozen=True, eq=False)
class AuditResult:
    """
    What the attacks found, in the order of the table.

    `sizes` says on how many users, traces and fakes; `notes` what a reader should know about the inputs.
    """

    findings: tuple[Finding, ...]
    sizes: dict[str, int]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        ran = [f for f in self.findings if f.status == RUN]
        return f"AuditResult({len(ran)} attacks run, {len(self.flagged)} flagged)"

    def __getitem__(self, attack: str) -> Finding:
        return {f.id: f for f in self.findings}[attack]

    @property
    def flagged(self) -> tuple[str, ...]:
        """Ids of the attacks whose bar the fakes do not pass."""
        return tuple(f.id for f in self.findings if f.passed is False)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """A sentence for every role in the file on which there is no verdict, with the reason."""
        said: dict[str, list[str]] = {}
        for f in self.findings:
            for role, told in (f.details.get("roles") or {}).items():
                if told["outcome"] == NO_VERDICT and role != SEEDS:
                    said.setdefault(f"{role}: {told['words'][:1].lower()}{told['words'][1:]}", []).append(f.id)
        return tuple(f"of the {words[:-1]} ({', '.join(ids)})." for words, ids in said.items())

    def in_words(self) -> str:
        """
        Say in one sentence how many attacks learnt something, how many did not, and how many were not run.

        Examples
        --------
        >>> rows = [Finding("A2", main=0.1, baseline=0.01, bar=0.02, passed=False), Finding("A8", status="not run")]
        >>> AuditResult(tuple(rows), {}).in_words()
        'of 2 attacks, 1 learnt something (A2); 1 was not run.'

        """
        return in_one_sentence({named(f.id, f.details.get("role")): f.outcome for f in self.findings})

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers by attack: main, control, baseline, interval, bar, passed, ...; ready for JSON."""
        return {f.id: f.to_dict() for f in self.findings}

    def table(self) -> list[dict[str, Any]]:
        """One row per attack: id, attack, main, low, high, control, baseline, bar, passed, status, outcome, words."""
        rows = []
        for f in self.findings:
            row = f.to_dict()
            low, high = row["interval"] or (None, None)
            rows.append(
                {
                    "id": f.id,
                    "attack": f.title,
                    "main": row["main"],
                    "low": low,
                    "high": high,
                    **{name: row[name] for name in ("control", "baseline", "risk", "bar", "passed", "worst_decile")},
                    "status": f.status,
                    "outcome": f.outcome,
                    "words": f.words,
                }
            )
        return rows


ON_DECOYS = ("A15", "A16", "A17", "A18", "A19")  # whether fakes look real, or hide a user of a service


def named(attack: str, role: Any = None) -> str:
    """The id of an attack, and of whom it speaks where the worst role is not the seeds."""
    return attack if role in (None, SEEDS) else f"{attack} of the {role}"


def in_one_sentence(outcomes: Mapping[str, str]) -> str:
    """
    How many attacks learnt something, by the outcome of each (`Finding.outcome`).

    Those that ask whether fakes look real, or hide a user of a service, tell nothing of the people in the file, and
    have a sentence of their own.

    Examples
    --------
    >>> in_one_sentence({"A2": NOTHING, "A15": LEARNT})
    'of 1 attack on the people in the file, none learnt anything measurable. Of 1 on decoys, 1 learnt something (A15).'

    """
    decoys = {name: word for name, word in outcomes.items() if name.split()[0] in ON_DECOYS}
    if not decoys or len(decoys) == len(outcomes):
        return f"of {len(outcomes)} attack{'s' * (len(outcomes) != 1)}, {_counted(outcomes)}."
    people = {name: word for name, word in outcomes.items() if name not in decoys}
    return (
        f"of {len(people)} attack{'s' * (len(people) != 1)} on the people in the file, {_counted(people)}. Of "
        f"{len(decoys)} on decoys, {_counted(decoys)}."
    )


def _counted(outcomes: Mapping[str, str]) -> str:
    found: dict[str, list[str]] = {}
    for attack, outcome in outcomes.items():
        known = (LEARNT, WITHIN, NOTHING, UNCLEAR, FOR_REVIEW)
        found.setdefault(outcome if outcome in known else NOT_RUN, []).append(attack)
    more, within = found.get(LEARNT, []), found.get(WITHIN, [])
    learnt, ran = more + within, len(outcomes) - sum(len(found.get(word, [])) for word in (NOT_RUN, FOR_REVIEW))
    which = [", ".join(more)] * bool(more) + [f"within its bar: {', '.join(within)}"] * bool(within)
    parts = [f"{len(learnt)} learnt something ({'; '.join(which)})"]
    if not learnt:
        none = "none" if 2 * ran > len(outcomes) else f"only {ran} ran, and none of them"
        parts = [f"{none} learnt anything measurable"] if ran else []
    elif NOTHING in found:
        parts.append(f"{len(found[NOTHING])} learnt nothing measurable")
    if UNCLEAR in found:
        parts.append(f"{len(found[UNCLEAR])} cannot tell with so few people ({', '.join(found[UNCLEAR])})")
    if NOT_RUN in found:
        n = len(found[NOT_RUN])
        parts.append(f"{n} {'was' if n == 1 else 'were'} not run")
    if FOR_REVIEW in found:
        n = len(found[FOR_REVIEW])
        parts.append(f"{n} {'is' if n == 1 else 'are'} for people to review")
    return "; ".join(parts)


def audit(
    seeds: Traces | ArrayLike,
    holdout: Traces | ArrayLike | None,
    fakes: Any,
    seed_index: ArrayLike | None,
    *,
    attacks: str | Iterable[str] = "all",
    model: Any = None,
    classes: Any = None,
    sampler: Any = None,
    generator: Callable[..., Any] | None = None,
    pool: Any = None,
    attempts: ArrayLike | None = None,
    locations: Locations | None = None,
    k: int | None = None,
    eps0: float = 0.5,
    count_runs: int = 20_000,
    m_min: int = 5,
    shadows: int = 16,
    holdout_met: bool = False,
    roles: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
    rng: np.random.Generator,
) -> AuditResult:
    """
    Attack fakes as an adversary would, and say what each attack reached beside what chance reaches.

    Every attack runs against the people the fakes were made from (main), by the same code against hold-out people
    (control) and on walks made without any seed; intervals are 95 %, users are the unit, ties are shared. An attack
    that lacks an input is listed as not run, with what it needs.

    Parameters
    ----------
    seeds, holdout
        `Traces`, or plain (N, L) arrays of places: the people behind the fakes, and people who met no part of the
        generator. Rows of one user count as one.
    fakes
        (F, L) array of places, `Traces`, or what `generate_fakes` returns.
    seed_index
        (F,) row of `seeds` each fake was made from; None if unknown.
    attacks
        "all", or ids such as ["A2", "A5"].
    model
        The aggregate model of the generator; its rare places are counted by A13.
    classes
        Classes of the places, for A7 and beside A5.
    sampler
        An object with `log_prob(fakes, seeds) -> (F, S)`, for A8 and the white box of A5; with `codes` and `A` as
        the laws of the deniable preset have them, for A9.
    generator
        A callable `(traces, rng) -> fakes`, for the grey box of A5 and the shadow runs of A10, which are slow.
    pool
        The published pool: its order is the one that A20 judges.
    attempts
        (N,) tries per seed, if they can be observed.
    locations
        Places of plain arrays; without them speeds and distances are not judged.
    k
        Seeds that should stand behind every fake, for A8; None: it was not asked for.
    eps0
        What the count of archetypes claims, for A9.
    count_runs
        Releases of either neighbouring set of seeds, for A9.
    m_min
        Users that a place must have (E31).
    shadows
        Shadow runs of A10.
    holdout_met
        Whether the hold-out people are those whom the generator has learnt from, as in the deniable mode: fakes are
        then closer to them whoever the seeds are, which A10 does not hold against them.
    roles
        Other people in the file, name -> `Traces` or array: A1, A2, A3, A10, A12 and A13 are run against each role,
        with the hold-out as strangers, and the finding is that of the worst, named; `roles` in it holds all. A sentence
        in the place of people says why there is no verdict on them.
    progress
        Called with (attacks done, attacks in all) after every attack.
    rng
        Draws controls, walks, resamples and folds; each attack has a stream of its own.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> rng = np.random.default_rng(1)
    >>> seeds, holdout = rng.integers(40, size=(2, 60, 12))
    >>> found = ew.audit(seeds, holdout, seeds, np.arange(60), attacks=["A1", "A2", "A8"], rng=rng)
    >>> found.flagged, found.to_dict()["A2"]["main"], found.to_dict()["A8"]["needs"]
    (('A1', 'A2'), 1.0, '`sampler`')

    """
    wanted = _ids(attacks)
    if k is not None:
        require_whole("k", k, 1)
    require_between("eps0", eps0, 0, np.inf, open_low=True, open_high=True)
    parameters = {
        "k": k,
        "eps0": float(eps0),
        "count_runs": require_whole("count_runs", count_runs, 8),
        "m_min": require_whole("m_min", m_min, 1),
        "shadows": require_whole("shadows", shadows, 2),
        "holdout_met": bool(holdout_met),
    }
    ground = Ground.of(
        seeds,
        holdout,
        fakes,
        seed_index,
        rng=rng,
        locations=locations,
        model=model,
        classes=classes,
        sampler=sampler,
        generator=generator,
        pool=pool,
        attempts=attempts,
        parameters=parameters,
        roles=roles,
    )
    findings = []
    for attack in wanted:
        findings.append(run(attack, ground))
        if progress is not None:
            progress(len(findings), len(wanted))
    sizes = {
        "seed_users": ground.seeds.U,
        "holdout_users": 0 if ground.holdout is None else ground.holdout.U,
        "fakes": len(ground.fakes),
        "instants": ground.fakes.shape[1],
        "places": ground.R,
    }
    return AuditResult(tuple(findings), sizes, (*ground.notes, f"elsewhere {__version__}"))


def _ids(attacks: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(attacks, str):
        attacks = ALL if attacks == "all" else [attacks]
    try:
        wanted = tuple(dict.fromkeys(attacks))
    except TypeError:
        wanted = ()
    unknown = [a for a in wanted if a not in ALL]
    if not wanted or unknown:
        shown = ", ".join(map(repr, unknown)) or repr(attacks)
        raise InvalidParameter(f'`attacks` must be "all" or ids A1 .. A21, got {shown}.')
    return tuple(sorted(wanted, key=ALL.index))
