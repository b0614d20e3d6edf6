"""
The attack suite on any tool's fakes: every attack with its control, its baseline, its interval and its bar.

`ATTACKS` lists every attack with the inputs it needs.

A20 stands here: does the number, the order or the attempts of the fakes reveal their seed? (E63) The order is that of
the pool where there is one, else that of the fakes as given, and so is the number per seed; fakes straight from
`generate_fakes` are private and have no published order yet. The days of one fake life carry one id anyway, so a life
counts once, by its first row. Counts and attempts reveal something if they vary more between seeds than draws without
regard to the seed do, an order if a shuffle would hardly produce it. Information is in bits per fake (order) or per
seed (counts, attempts).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from elsewhere._version import __version__
from elsewhere.data.slots import Traces
from elsewhere.data.visits import Ints, Locations
from elsewhere.errors import InvalidParameter, require_whole
from elsewhere.evaluation.attacks.candidates import background, best_explained, reidentification
from elsewhere.evaluation.attacks.certificates import noise_audit
from elsewhere.evaluation.attacks.copies import copied_days, copies, copies_of_role, rare_places, rare_places_of_role
from elsewhere.evaluation.attacks.finding import (
    ABOVE,
    LEARNT,
    NOT_RUN,
    NOTHING,
    RUN,
    UNCLEAR,
    WITHIN,
    CannotRun,
    Finding,
)
from elsewhere.evaluation.attacks.inputs import AttackInputs
from elsewhere.evaluation.attacks.linkage import avoidance, class_linkage, move_timing, reconstruction
from elsewhere.evaluation.attacks.membership import density_membership, likelihood_membership
from elsewhere.evaluation.attacks.realism import filtering, real_or_fake
from elsewhere.scale import map_over

CHANCE = 0.01
PARTS = 8
SHUFFLES = 400


def entropy(counts: Ints) -> float:
    """Return the entropy of a distribution given by counts, in bits: -sum p log2 p."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum())


def mutual_information(a: Ints, b: Ints) -> float:
    """Return the mutual information of two lists of whole numbers, in bits, by their frequencies."""
    joint = np.zeros((int(a.max()) + 1, int(b.max()) + 1), dtype=np.int64)
    np.add.at(joint, (a, b), 1)
    return max(0.0, entropy(joint.sum(axis=1)) + entropy(joint.sum(axis=0)) - entropy(joint.ravel()))


def order_information(seed: Ints, rng: np.random.Generator) -> tuple[float, float, float]:
    """
    Return the bits that the position in the list reveals of the seed, beyond shuffled lists; the bits of these; and
    the p-value of "the list is shuffled".

    Two statistics are tried: the information between eighths of the list and eighths of the seeds, and the share of
    neighbours in the list that have one seed.
    """
    n = len(seed)
    _, seed = np.unique(seed, return_inverse=True)
    part = np.arange(n) * min(PARTS, n) // n

    def measure(order: Ints) -> tuple[float, float]:
        group = order * min(PARTS, n) // (int(order.max()) + 1)
        return mutual_information(part, group), float((order[1:] == order[:-1]).mean()) if n > 1 else 0.0

    blocks, twins = measure(seed)
    by_chance = np.array([measure(rng.permutation(seed)) for _ in range(SHUFFLES)])
    beyond = [(by_chance[:, i] >= value).sum() for i, value in enumerate((blocks, twins))]
    p = min(1.0, 2 * (1 + min(beyond)) / (SHUFFLES + 1)) if by_chance.std() > 0 else 1.0
    chance = float(by_chance[:, 0].mean())
    together = max(0.0, twins - float(by_chance[:, 1].mean())) * math.log2(max(2, int(seed.max()) + 1))
    return max(0.0, blocks - chance, together), chance, float(p)


def variance_information(counts: Ints, expected_variance: float) -> tuple[float, float]:
    """Return the bits that counts per seed reveal beyond chance, and the p-value of so large a variance by chance."""
    from scipy.stats import chi2

    spread = float(counts.var())
    if spread == 0:
        return 0.0, 1.0
    n = len(counts)
    p = float(chi2.sf(n * spread / max(expected_variance, 1e-12), n - 1))
    return max(0.0, 0.5 * math.log2(spread / max(expected_variance, 1e-12))), p


def side_channel(inputs: AttackInputs) -> Finding:
    """Measure what number, order and attempts of the fakes reveal of their seeds (A20)."""
    rng, owner = inputs.rng("A20"), inputs.main.owner
    published = owner[_first_rows(inputs.life)]
    per_seed = np.bincount(published, minlength=len(inputs.seeds.r))
    if inputs.pool is not None:  # in the order of the pool
        fakes, rows = (np.ascontiguousarray(r.astype(np.int64)) for r in (inputs.fakes, inputs.pool.r))
        seed_of = {row.tobytes(): int(seed) for row, seed in zip(fakes, owner, strict=True)}
        published = np.array([seed_of.get(row.tobytes(), -1) for row in rows[_first_rows(inputs.pool.user)]])
    bits, p, chance = {}, {}, 0.0
    if inputs.listed or inputs.pool is not None:
        bits["order"], chance, p["order"] = order_information(published, rng)
    if inputs.listed and inputs.pool is None:
        numbers = per_seed[per_seed > 0]
        bits["count"], p["count"] = variance_information(numbers, float(numbers.mean()))
    if inputs.attempts is not None and len(inputs.attempts) == len(per_seed):
        used = per_seed > 0
        tries, passes = inputs.attempts[used], per_seed[used]
        rate = min(1.0, passes.sum() / max(1, tries.sum()))
        # tries for a given number of fakes at one acceptance for all: negative binomial
        bits["tries"], p["tries"] = variance_information(tries, float(passes.mean() * (1 - rate) / rate**2))
    leaks = {name: bits[name] for name in bits if p[name] <= CHANCE}
    main = max(leaks.values(), default=0.0)
    worst = max(leaks, key=lambda name: leaks[name], default="")
    if leaks:
        words = (
            f"The seeds of the fakes are revealed by: {', '.join(leaks)} ({main:.2f} bits by {worst}). Shuffle the "
            "fakes, make as many of every seed, never export the tries."
        )
    elif bits:
        words = f"The seeds of the fakes are not revealed, beyond chance, by: {', '.join(bits)}."
    else:
        words = "These fakes are private and have no published order yet; give the pool to judge it."
    return Finding(
        "A20",
        main=main,
        control=0.0,
        baseline=chance,
        bar=0.0,
        passed=not leaks if bits else None,
        reachable=True,
        words=words,
        details={"bits": bits, "p": p},
    )


def _first_rows(life: Ints) -> Ints:
    """Return the first row of each life, in the order of the rows."""
    return np.sort(np.unique(life, return_index=True)[1])


def attack_decoys(attack: str, inputs: AttackInputs) -> Finding:
    """Run an attack of the location-based service, whose code is loaded when it runs."""
    from elsewhere.evaluation.lbs import findings

    finding: Finding = getattr(findings, f"attack_{attack}")(inputs)
    return finding


class Attack(NamedTuple):
    """What it tries, how it runs, which optional inputs it cannot do without."""

    title: str
    run: Callable[[AttackInputs], Finding]
    needs: tuple[str, ...]


PAIRS = ("holdout", "seed_index")
FIELDS = {"seed_index": "owner", "classes": "label"}  # of `AttackInputs`, where its name is another

ATTACKS = {
    "A1": Attack("copies of the own seed, or of anybody", copies, PAIRS),
    "A2": Attack("MAP re-identification by the moves", reidentification, PAIRS),
    "A3": Attack("membership by likelihood ratio", likelihood_membership, ("holdout",)),
    "A4": Attack("linkage by the times of moves", move_timing, PAIRS),
    "A5": Attack("linkage by which places stand in for which", class_linkage, PAIRS),
    "A6": Attack("reconstruction of the seed, slot by slot", reconstruction, PAIRS),
    "A7": Attack("what the fakes of a seed avoid", avoidance, (*PAIRS, "classes")),
    "A9": Attack("audit of the noise: releases of two neighbouring inputs", noise_audit, ("sampler",)),
    "A10": Attack("membership by densities and distances", density_membership, ("holdout",)),
    "A12": Attack("what a fake shows fits exactly one person", background, PAIRS),
    "A13": Attack("places that few people visit", rare_places, ()),
    "A15": Attack("real people against fakes", real_or_fake, ("holdout",)),
    "A16": Attack("filters for impossible or unlikely points", filtering, ("holdout",)),
    "A17": Attack("localization and tracking behind decoys", partial(attack_decoys, "A17"), PAIRS),
    "A18": Attack("intersection over many days", partial(attack_decoys, "A18"), PAIRS),
    "A19": Attack("the service holds the pool", partial(attack_decoys, "A19"), PAIRS),
    "A20": Attack("what number, order and tries tell of the seed", side_channel, ("seed_index",)),
}
ALL = tuple(ATTACKS)
# what is asked of everybody in the file, and how of people of whom no fake was made
EVERYBODY = {
    "A1": copies_of_role,
    "A2": best_explained,
    "A3": likelihood_membership,
    "A10": density_membership,
    "A12": background,
    "A13": rare_places_of_role,
}
SEEDS, NO_VERDICT = "seeds", "no verdict"
WORST = (LEARNT, WITHIN, ABOVE, UNCLEAR, NOTHING)


def run_attack(attack: str, inputs: AttackInputs) -> Finding:
    """Return the finding of one attack: that of the worst role in the file, with the figures of all roles beside it."""
    seeds = _attack_seeds(attack, inputs)
    if attack not in EVERYBODY or not inputs.roles:
        return seeds
    by_role: dict[str, Finding | str] = {SEEDS: seeds}
    for role, there in inputs.roles.items():
        try:
            by_role[role] = there if isinstance(there, str) else replace(EVERYBODY[attack](there), title=seeds.title)
        except CannotRun as error:
            by_role[role] = f"it needs {error.args[0]}"
    ran = {role: f for role, f in by_role.items() if isinstance(f, Finding) and f.status == RUN}
    worst = min(ran, key=lambda role: (WORST.index(ran[role].outcome), -_excess_over_chance(ran[role])), default=SEEDS)
    head = ran.get(worst, seeds)
    roles = {role: _role_figures(f, SEEDS if role == SEEDS else inputs.roles[role]) for role, f in by_role.items()}
    beside = f" (The worst of {len(ran)} roles: {worst}.)" if len(ran) > 1 else ""
    return replace(
        head, words=f"{head.words}{beside}", details={**seeds.details, **head.details, "role": worst, "roles": roles}
    )


def _excess_over_chance(f: Finding) -> float:
    """Return by how many half intervals the figure exceeds that of strangers, or of guessing; at least 0."""
    chance = f.control if f.control is not None else f.baseline or 0.0
    half = 0.0 if f.interval is None else (f.interval.high - f.interval.low) / 2
    return max(0.0, (f.main or 0.0) - chance) / max(half, 1e-9)


def _role_figures(outcome: Finding | str, inputs: AttackInputs | str) -> dict[str, Any]:
    """Return the figures of one role, or why there is no verdict."""
    if isinstance(outcome, str) or outcome.status != RUN:
        why = outcome if isinstance(outcome, str) else f"it needs {outcome.needs}"
        return {"outcome": NO_VERDICT, "words": f"No verdict: {why}."}
    names = ("main", "interval", "control", "baseline", "bar", "passed", "outcome", "words")
    people = {} if isinstance(inputs, str) else {"people": inputs.seeds.U}
    return {**people, **{name: outcome.to_dict()[name] for name in names}}


def _attack_seeds(attack: str, inputs: AttackInputs) -> Finding:
    """Return the finding of one attack on the seeds, or what it needs where an input is missing."""
    title, attempt, needs = ATTACKS[attack]
    absent = tuple(name for name in needs if getattr(inputs, FIELDS.get(name, name), None) is None)
    lacks = " and ".join(f"`{name}`" for name in absent)
    finding: Finding | None = None
    try:
        if not absent:
            finding = attempt(inputs)
        elif attack == "A1":  # a fake that equals a real day is a copy, whoever it was made from
            finding = copied_days(inputs)
    except CannotRun as error:
        lacks = str(error.args[0])
    if finding is None:
        return Finding(attack, title, status=NOT_RUN, needs=lacks, absent=absent, words=f"Not run: needs {lacks}.")
    return replace(finding, title=title)


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
        """Return the ids of the attacks whose bar the fakes do not pass."""
        return tuple(f.id for f in self.findings if f.passed is False)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Return a sentence for every role in the file on which there is no verdict, with the reason."""
        reasons: dict[str, list[str]] = {}
        for f in self.findings:
            for role, outcome in (f.details.get("roles") or {}).items():
                if outcome["outcome"] == NO_VERDICT and role != SEEDS:
                    reasons.setdefault(f"{role}: {outcome['words'][:1].lower()}{outcome['words'][1:]}", []).append(f.id)
        return tuple(f"of the {words[:-1]} ({', '.join(ids)})." for words, ids in reasons.items())

    def in_words(self) -> str:
        """
        Say in one sentence how many attacks learnt something, how many did not, and how many were not run.

        Examples
        --------
        >>> rows = [Finding("A2", main=0.1, baseline=0.01, bar=0.02, passed=False), Finding("A9", status="not run")]
        >>> AuditResult(tuple(rows), {}).in_words()
        'of 2 attacks, 1 learnt something (A2); 1 was not run.'

        """
        return in_one_sentence({id_with_role(f.id, f.details.get("role")): f.outcome for f in self.findings})

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers by attack: main, control, baseline, interval, bar, passed, ...; ready for JSON."""
        return {f.id: f.to_dict() for f in self.findings}

    def table(self) -> list[dict[str, Any]]:
        """Return a row per attack: id, attack, main, low, high, control, baseline, bar, passed, outcome, words ...."""
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


# A9 asks whether the noise keeps a promise: to prove a large eps below the claim is no finding about people
PROMISE = {NOTHING: "the promise held", LEARNT: "the promise is broken"}
ON_DECOYS = ("A15", "A16", "A17", "A18", "A19")  # whether fakes look real, or hide a user of a service


def id_with_role(attack: str, role: Any = None) -> str:
    """Return the id of an attack, with the role of the people attacked where these are not the seeds."""
    return attack if role in (None, SEEDS) else f"{attack} of the {role}"


def in_one_sentence(outcomes: Mapping[str, str]) -> str:
    """
    Return how many attacks learnt something, by the outcome of each (`Finding.outcome`).

    Those that ask whether fakes look real, or hide a user of a service, tell nothing of the people in the file, and
    have a sentence of their own; so has the one that tries out the noise of a theorem (A9).

    Examples
    --------
    >>> in_one_sentence({"A2": NOTHING, "A15": LEARNT})
    'of 1 attack on the people in the file, none learnt anything measurable. Of 1 on decoys, 1 learnt something (A15).'
    >>> in_one_sentence({"A2": NOTHING, "A9": NOTHING})
    'of 1 attack, none learnt anything measurable. When the noise was tried out, the promise held (A9).'

    """
    promise = PROMISE.get(outcomes.get("A9", ""))
    if promise is not None and len(outcomes) > 1:
        others = in_one_sentence({name: word for name, word in outcomes.items() if name != "A9"})
        return f"{others} When the noise was tried out, {promise} (A9)."
    decoys = {name: word for name, word in outcomes.items() if name.split()[0] in ON_DECOYS}
    if not decoys or len(decoys) == len(outcomes):
        return f"of {len(outcomes)} attack{'s' * (len(outcomes) != 1)}, {_count_outcomes(outcomes)}."
    people = {name: word for name, word in outcomes.items() if name not in decoys}
    return (
        f"of {len(people)} attack{'s' * (len(people) != 1)} on the people in the file, {_count_outcomes(people)}. Of "
        f"{len(decoys)} on decoys, {_count_outcomes(decoys)}."
    )


def _count_outcomes(outcomes: Mapping[str, str]) -> str:
    """Return how many attacks had each outcome, with the ids of those that learnt something or cannot tell."""
    ids: dict[str, list[str]] = {}
    for attack, outcome in outcomes.items():
        ids.setdefault(outcome if outcome in WORST else NOT_RUN, []).append(attack)
    more, within = ids.get(LEARNT, []), ids.get(WITHIN, [])
    winners, ran = more + within, len(outcomes) - len(ids.get(NOT_RUN, []))
    which = [", ".join(more)] * bool(more) + [f"within its bar: {', '.join(within)}"] * bool(within)
    parts = [f"{len(winners)} learnt something ({'; '.join(which)})"]
    if not winners:
        none = "none" if 2 * ran > len(outcomes) else f"only {ran} ran, and none of them"
        surely = "learnt anything measurable" if len(ids.get(NOTHING, [])) == ran else "surely learnt anything"
        parts = [f"{none} {surely}"] if ran else []
    elif NOTHING in ids:
        parts.append(f"{len(ids[NOTHING])} learnt nothing measurable")
    if ABOVE in ids:
        n, which_ids = len(ids[ABOVE]), ", ".join(ids[ABOVE])
        parts.append(
            f"{n} {'is above its' if n == 1 else 'are above their'} bar, but not clearly above chance ({which_ids})"
        )
    if UNCLEAR in ids:
        n, which_ids = len(ids[UNCLEAR]), ", ".join(ids[UNCLEAR])
        parts.append(f"for {n} there are too few people to say whether the bar is kept ({which_ids})")
    if NOT_RUN in ids:
        n = len(ids[NOT_RUN])
        parts.append(f"{n} {'was' if n == 1 else 'were'} not run")
    return "; ".join(parts)


@dataclass(frozen=True)
class Claims:
    """
    What the fakes are held to, and how often attacks that run a generator run it.

    Parameters
    ----------
    count_runs
        Releases of either of two neighbouring inputs, for A9.
    m_min
        Users that a place must have (E31).
    shadows
        Shadow runs of A10.

    """

    count_runs: int = 20_000
    m_min: int = 5
    shadows: int = 16

    def __post_init__(self) -> None:
        require_whole("count_runs", self.count_runs, 8)
        require_whole("m_min", self.m_min, 1)
        require_whole("shadows", self.shadows, 2)


class AuditOptions(TypedDict, total=False):
    """Further keywords of `audit`: the fields of `Claims`, and what comes with them."""

    count_runs: int
    m_min: int
    shadows: int
    locations: Locations | None
    roles: Mapping[str, Any] | None
    executor: Executor | None
    progress: Callable[[int, int], None] | None


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
    rng: np.random.Generator,
    **options: Unpack[AuditOptions],
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
        An object with `log_prob(fakes, seeds) -> (F, S)`, for the white box of A5; or the `sampler` of private fakes,
        for A9.
    generator
        A callable `(traces, rng) -> fakes`, for the grey box of A5 and the shadow runs of A10, which are slow.
    pool
        The published pool: its order is the one that A20 judges.
    attempts
        (N,) tries per seed, if they can be observed.
    rng
        Draws controls, walks, resamples and folds; each attack has a stream of its own.
    **options
        The fields of `Claims`. `locations`: places of plain arrays; without them speeds and distances are not judged.
        `roles`: other people in the file, name -> `Traces` or array; A1, A2, A3, A10, A12 and A13 are run against each
        role, with the hold-out as strangers, and the finding is that of the worst, named; `roles` in it holds all. A
        sentence in the place of people says why there is no verdict on them. `executor`: where the attacks run; the
        result does not depend on it. `progress`: called with (attacks done, attacks in all) after every attack.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> rng = np.random.default_rng(1)
    >>> seeds, holdout = rng.integers(40, size=(2, 60, 12))
    >>> result = ew.audit(seeds, holdout, seeds, np.arange(60), attacks=["A1", "A2", "A9"], rng=rng)
    >>> result.flagged, result.to_dict()["A2"]["main"], result.to_dict()["A9"]["needs"]
    (('A1', 'A2'), 1.0, '`sampler`')

    """
    ids = _ids(attacks)
    locations, roles = options.pop("locations", None), options.pop("roles", None)
    executor, progress = options.pop("executor", None), options.pop("progress", None)
    strange = [name for name in options if name not in AuditOptions.__annotations__]
    if strange:
        names = ", ".join(AuditOptions.__annotations__)
        raise InvalidParameter(f"`{strange[0]}` is no option of `audit`; these are: {names}.", code="E_CALL")
    claims: dict[str, Any] = dict(options)
    parameters = asdict(Claims(**claims))
    inputs = AttackInputs.of(
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
    findings = map_over(partial(run_attack, inputs=inputs), ids, executor=executor, progress=progress)
    sizes = {
        "seed_users": inputs.seeds.U,
        "holdout_users": 0 if inputs.holdout is None else inputs.holdout.U,
        "fakes": len(inputs.fakes),
        "slots": inputs.fakes.shape[1],
        "places": inputs.R,
    }
    return AuditResult(tuple(findings), sizes, (*inputs.notes, f"elsewhere {__version__}"))


def _ids(attacks: str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(attacks, str):
        attacks = ALL if attacks == "all" else [attacks]
    try:
        ids = tuple(dict.fromkeys(attacks))
    except TypeError:
        ids = ()
    unknown = [a for a in ids if a not in ALL]
    if not ids or unknown:
        wrong = ", ".join(map(repr, unknown)) or repr(attacks)
        raise InvalidParameter(
            f'`attacks` must be "all" or ids {ALL[0]} .. {ALL[-1]}, got {wrong}.', parameter="attacks"
        )
    return tuple(sorted(ids, key=ALL.index))
