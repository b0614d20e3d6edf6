"""
Everything there is to say about a run: what its published fakes are good for and keep, and what attacks learn of them.

What is judged is the pool that leaves the house. The control of the attacks are people who are nobody's seed; the notes
say in which other role they met the generator.

Class agreement of a fake f and a person s is the share of slots t, both classes known, at which f(t) and s(t) are
places of one class. The agreement gain is that with the own seed minus the mean of that with all other seeds: whoever
lives like everybody agrees with everybody.

Category agreement compares the classes of places with the categories that the input gives them.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere._version import __version__
from elsewhere.checkpoint import Stages, at_once
from elsewhere.data.slots import Traces
from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.errors import ClusterUnavailable, ElsewhereError, InvalidParameter
from elsewhere.evaluation.attacks.audit import ALL, AuditResult, audit
from elsewhere.evaluation.attacks.finding import LEARNT, NOT_RUN, WITHIN
from elsewhere.evaluation.lives import LivesResult, judge_lives, missing_days
from elsewhere.evaluation.publishing.scenario import PublishingResult, evaluate_publishing
from elsewhere.evaluation.uses import Uses, judge_uses
from elsewhere.pool import Pool
from elsewhere.run.fakes import Fakes
from elsewhere.run.roles import draw_days

Result = TypeVar("Result")
BLOCK = 256
FEWEST_PLACES = 10  # with a class and a category; fewer tell nothing
FEWEST_SEEDS = 10  # whose days fakes are compared with
COMPARED = 1000  # fakes whose agreement with their seeds is looked at
SHUFFLES = 200


class Agreement(NamedTuple):
    """Of each fake, (F,): agreement with its own seed, mean agreement with the other seeds."""

    own: Floats
    others: Floats

    @property
    def gain(self) -> float:
        """Return the agreement gain: the mean over fakes of own minus others."""
        return float((self.own - self.others).mean())


def class_agreement(fakes: ArrayLike, seeds: ArrayLike, seed_index: ArrayLike, label: NDArray[np.integer]) -> Agreement:
    """
    Return the agreement of every fake with its own seed and with the others.

    Parameters
    ----------
    fakes, seeds
        (F, L) and (S, L) places, -1 where missing.
    seed_index
        (F,) row of `seeds` each fake was made from.
    label
        Class of each place, -1 where unknown.

    Examples
    --------
    >>> import numpy as np
    >>> class_agreement([[0, 1]], [[0, 0], [2, 1], [2, 2]], [0], np.array([0, 0, 1]))
    Agreement(own=array([1.]), others=array([0.25]))

    """
    f, s, own = np.asarray(fakes), np.asarray(seeds), np.asarray(seed_index)
    if f.ndim != 2 or s.ndim != 2 or f.shape[1] != s.shape[1] or own.shape != (len(f),) or len(s) < 2:
        raise InvalidParameter(
            "`fakes` and `seeds` must be tables of one length, at least 2 seeds, one `seed_index` per fake.",
            code="E_SHAPE",
            parameter="fakes",
        )
    theirs, persons = (np.where(x >= 0, label[x], -1) for x in (f, s))
    mine, rest = np.empty(len(f)), np.empty(len(f))
    for start in range(0, len(f), BLOCK):
        rows = slice(start, start + BLOCK)
        same, both = np.zeros((2, len(theirs[rows]), len(s)))
        for t in range(f.shape[1]):
            a, b = theirs[rows, t][:, None], persons[:, t]
            known = (a >= 0) & (b >= 0)
            same += known & (a == b)
            both += known
        agree = same / np.maximum(both, 1)
        mine[rows] = agree[np.arange(len(agree)), own[rows]]
        rest[rows] = (agree.sum(axis=1) - mine[rows]) / (len(s) - 1)
    return Agreement(mine, rest)


def meaning_kept(traces: Traces, fakes: Fakes) -> dict[str, Any] | None:
    """
    Return the mean `class_agreement` of fakes with their own seeds and with those of other fakes; None of too few.

    Of many fakes, COMPARED at even distances are looked at.
    """
    if fakes.learnt is None or fakes.learnt.classes.kappa < 2:
        return None
    some = np.unique(np.linspace(0, len(fakes.r) - 1, min(len(fakes.r), COMPARED)).astype(np.int64))
    some = some[fakes.seed[some] >= 0]
    rows, own = np.unique(fakes.seed[some], return_inverse=True)
    if len(rows) < FEWEST_SEEDS:
        return None
    # not `translate`, which leaves out rows without a shared place: `seed` counts rows of all traces
    seeds = np.where(traces.r[rows] >= 0, fakes.learnt.place[traces.r[rows]], -1)
    agreement = class_agreement(fakes.r[some], seeds, own, fakes.learnt.classes.label)
    return {
        "own": float(agreement.own.mean()),
        "others": float(agreement.others.mean()),
        "gain": agreement.gain,
    }


def category_agreement(
    label: ArrayLike, locations: Locations, *, m_min: int = 1, rng: np.random.Generator
) -> dict[str, Any] | None:
    """
    Compare the classes of places with their categories; None where too few places have both.

    The measure is adjusted mutual information (arithmetic mean of both entropies): 1 if classes and categories split
    the places in the same way, 0 on average by chance. Beside it stand as many k-means clusters of the positions as
    there are classes (`geography`, None without positions) and the same classes shuffled among the places: `chance` is
    their mean, `chance_high` what 95 % of the shuffles stay below. The classes never saw a category.

    Parameters
    ----------
    label
        Class of each place, -1 where unknown.
    locations
        The places, with `categories`; a word that fewer than `m_min` people gave is left out.
    m_min
        See `locations`.
    rng
        Draws shuffles and starts of k-means.

    Examples
    --------
    >>> import numpy as np
    >>> there = Locations(xy=np.arange(24.0).reshape(12, 2), categories=["shop", "home"] * 6)
    >>> result = category_agreement([0, 1] * 6, there, rng=np.random.default_rng(1))
    >>> result["places"], result["classes"], round(result["ami"], 9)
    (12, 2, 1.0)

    """
    classes = np.asarray(label)
    if locations.categories is None or classes.shape != (len(locations),):
        return None
    enough = np.ones(len(locations), dtype=bool)
    if locations.category_users is not None:
        enough = locations.category_users >= m_min
    words = np.array(locations.categories)
    both = np.flatnonzero((classes >= 0) & (words != "") & enough)
    _, word = np.unique(words[both], return_inverse=True)
    _, mine = np.unique(classes[both], return_inverse=True)
    if len(both) < FEWEST_PLACES or word.max() == 0 or mine.max() == 0:
        return None
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_mutual_info_score

    by_chance = [float(adjusted_mutual_info_score(word, rng.permutation(mine))) for _ in range(SHUFFLES)]
    near = None
    if locations.has_coordinates:
        where = locations.select(both).planar()
        k = min(int(mine.max()) + 1, len(np.unique(where, axis=0)))
        near = KMeans(k, n_init=10, random_state=int(rng.integers(2**31))).fit_predict(where)
    return {
        "places": len(both),
        "categories": int(word.max()) + 1,
        "classes": int(mine.max()) + 1,
        "ami": float(adjusted_mutual_info_score(word, mine)),
        "geography": None if near is None else float(adjusted_mutual_info_score(word, near)),
        "chance": float(np.mean(by_chance)),
        "chance_high": float(np.quantile(by_chance, 0.95)),
    }


MOST_PEOPLE = 2_000  # of each side in an audit; more are sampled, and the notes say so
MOST_DAYS = 4_000  # of each side; fewer days of each person then, and the notes say so
FEWEST_PEOPLE = 10  # of each side; with fewer no rate of an attack means anything


@dataclass(frozen=True, eq=False)
class Judgement:
    """The results of all judges, where there are any, and what a report says about the run."""

    uses: Uses | None
    publishing: PublishingResult | None
    audit: AuditResult | None
    run: dict[str, Any] = field(repr=False)
    notes: tuple[str, ...] = ()
    lives: LivesResult | None = None

    @property
    def results(self) -> list[Any]:
        """Return the results there are, for `report`."""
        return [r for r in (self.uses, self.lives, self.publishing, self.audit) if r is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON; None where something could not be judged."""
        return {
            "uses": None if self.uses is None else self.uses.to_dict(),
            "lives": None if self.lives is None else self.lives.to_dict(),
            "publishing": None if self.publishing is None else self.publishing.to_dict(),
            "audit": None if self.audit is None else self.audit.to_dict(),
            "categories": self.run.get("categories"),
            "notes": list(self.notes),
        }

    def in_words(self) -> list[str]:
        """Return a few lines for the terminal: who the control was, what each attack that learnt something found."""
        lines = list(self.notes)
        if self.audit is not None:
            lines += self.audit.unjudged
            absent = [f.id for f in self.audit.findings if f.status == NOT_RUN]
            if absent:
                lines.append(f"not run for want of an input: {', '.join(absent)}")
            lines += [f"{f.id} {f.outcome}: {f.words}" for f in self.audit.findings if f.outcome in (LEARNT, WITHIN)]
        return lines


def judge_run(
    traces: Traces,
    fakes: Fakes,
    pool: Pool,
    rows: Ints,
    *,
    holdout: Traces | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    rng: np.random.Generator,
    stages: Stages = at_once,
) -> Judgement:
    """
    Evaluate and attack the published fakes of a run.

    Parameters
    ----------
    traces
        The real traces that `generate_fakes` was given.
    fakes, pool, rows
        What it made, what of it is published, and the number in `fakes` of each published fake (`publish_with_rows`).
    holdout
        People who were set aside before anything was learnt; by default those who are nobody's seed.
    executor
        Where attacks run; the result does not depend on it.
    progress
        Called as `progress(attacks done, attacks)`.
    rng
        Draws of the judge.
    stages
        Keeps what each judge has found.

    """
    of_publishing, of_people, of_attacks, of_categories, of_uses, of_lives = rng.spawn(6)
    seed_rows = np.unique(fakes.seed) if fakes.seed_rows is None else fakes.seed_rows
    owner: Ints | None = np.searchsorted(seed_rows, fakes.seed[rows])
    if not np.any(fakes.seed >= 0):  # made of nobody in particular: everybody in the file is attacked
        seed_rows, owner = np.arange(len(traces)), None
    seeds, free = traces.select(seed_rows), np.setdiff1d(np.arange(traces.U), traces.user[seed_rows])
    control, who, others = _strangers(traces, free, fakes, holdout)
    release = Traces(
        fakes.r[rows],
        traces.locations,
        users=pool.traces.users,  # the days of one life share an id
        dates=pool.traces.dates,
        step_minutes=traces.step_minutes,
        start=traces.start,
        tz=traces.tz,
    )
    publishing, no_publishing = stages(
        "publishing",
        lambda: _judge_or_note(
            "what the fakes keep",
            lambda: evaluate_publishing(seeds, control, release.r, seed_index=owner, periods=1, rng=of_publishing),
        ),
    )
    filled = fakes.frame.reading.get("share_filled", 0.0)
    uses, no_uses = stages(
        "uses",
        lambda: _judge_or_note(
            "what the fakes are good for", lambda: judge_uses(traces, release, filled=filled, rng=of_uses)
        ),
    )
    why_no_lives = missing_days(traces, release)
    lives = None if why_no_lives else stages("lives", lambda: judge_lives(traces, release, rng=of_lives))
    sides = _Sides(seeds, control, others, release, owner)
    findings, on_attacks = stages(
        "attacks",
        lambda: _attack(
            sides,
            traces.of_users(np.unique(traces.user[seed_rows])),
            fakes,
            {"executor": executor, "progress": progress},
            of_people,
            of_attacks,
        ),
    )
    facts = _facts(traces, fakes, pool, seeds, control)
    if fakes.learnt is not None:
        facts["agreement"] = meaning_kept(traces, fakes)
        facts["categories"] = category_agreement(
            fakes.learnt.classes.label, traces.locations, m_min=fakes.preset.m_min, rng=of_categories
        )
    notes = (who, *no_publishing, *no_uses, *([why_no_lives] * bool(why_no_lives)), *on_attacks)
    return Judgement(uses, publishing, findings, facts, notes, lives)


def _judge_or_note(what: str, judge: Callable[[], Result]) -> tuple[Result | None, tuple[str, ...]]:
    """Return what a judge finds; None, and a note, where it refuses. A stage that cannot be kept is no such refusal."""
    try:
        return judge(), ()
    except ElsewhereError as error:
        return None, (f"{what} could not be judged: {error.args[0]}",)


def _strangers(
    traces: Traces, free: Ints, fakes: Fakes, holdout: Traces | None
) -> tuple[Traces | None, str, dict[str, Traces | str]]:
    """
    Return the control, who they are in words, and the `free` (nobody's seed) by role, or why they cannot be attacked.

    The control are the people set aside, by default the `free` themselves.
    """
    role, met = "others", "people who are nobody's seed"
    if fakes.preset.name == "product":
        role, met = "alternates", "the alternates of the differential test, who have not met the model"
    if holdout is not None:
        who = f"control: {holdout.U} people set aside before anything was learnt."
        few = f"they are {len(free)}, and fewer than {FEWEST_PEOPLE} tell nothing"
        others: dict[str, Traces | str] = {role: few if len(free) < FEWEST_PEOPLE else traces.of_users(free)}
        return holdout, who, others if len(free) else {}
    if len(free) == 0:
        who = "no control: every person is behind the fakes (`holdout` sets people aside); what needs one is not run."
        return None, who, {}
    themselves = "they are the strangers of these attacks themselves (`holdout` sets others aside)"
    return traces.of_users(free), f"control: {len(free)} people, {met}.", {role: themselves}


@dataclass(frozen=True, eq=False)
class _Sides:
    """
    Who is attacked, beside whom, by which fakes.

    `owner` is the row of `seeds` behind each row of `published`, None where nobody is.
    """

    seeds: Traces
    control: Traces | None
    others: dict[str, Traces | str]
    published: Traces
    owner: Ints | None

    def of_some_people(self, draw: np.random.Generator) -> "_Sides":
        """Return the same with at most MOST_PEOPLE on each side."""
        sides = self
        if self.seeds.U > MOST_PEOPLE:
            people = np.sort(draw.choice(self.seeds.U, MOST_PEOPLE, replace=False))
            mine = np.flatnonzero(np.isin(self.seeds.user, people))
            if self.owner is not None:
                stay = np.flatnonzero(np.isin(self.owner, mine))
                owner = np.searchsorted(mine, self.owner[stay])
                sides = replace(self, published=self.published.select(stay), owner=owner)
            sides = replace(sides, seeds=self.seeds.select(mine))

        def some(people: Any) -> Any:
            if not isinstance(people, Traces) or people.U <= MOST_PEOPLE:
                return people
            return people.of_users(np.sort(draw.choice(people.U, MOST_PEOPLE, replace=False)))

        control = some(self.control)
        return replace(sides, control=control, others={role: some(who) for role, who in self.others.items()})

    def of_some_days(self, each: int, draw: np.random.Generator) -> "_Sides":
        """Return the same with at most `each` days of each life."""
        assert self.owner is not None  # noqa: S101 - fakes made of nobody have no days that they were made from
        stay = draw_days(self.published, np.arange(len(self.published)), each, draw)
        # the candidates are the days that these fakes were made from
        mine, owner = np.unique(self.owner[stay], return_inverse=True)

        def some(people: Any) -> Any:
            if not isinstance(people, Traces):
                return people
            return people.select(draw_days(people, np.arange(len(people)), each, draw))

        return _Sides(
            self.seeds.select(mine),
            some(self.control),
            {role: some(who) for role, who in self.others.items()},
            self.published.select(stay),
            owner,
        )


def _attack(
    sides: _Sides,
    days: Traces,
    fakes: Fakes,
    options: dict[str, Any],
    draw: np.random.Generator,
    rng: np.random.Generator,
) -> tuple[AuditResult | None, tuple[str, ...]]:
    """
    Return what attacks learn, of so many people and days as they can be run on; `days` are all those of the
    seeds.
    """
    notes: tuple[str, ...] = ()
    if sides.seeds.U < FEWEST_PEOPLE:
        return None, (f"no attack was run: {sides.seeds.U} people are seeds, fewer than {FEWEST_PEOPLE} tell nothing.",)
    if sides.control is not None and sides.control.U < FEWEST_PEOPLE:
        notes = (f"the control has only {sides.control.U} people: attacks that need one are not run.",)
        sides = replace(sides, control=None)
    if sides.seeds.U > MOST_PEOPLE:
        notes += (f"attacked: the fakes of {MOST_PEOPLE} people drawn at random.",)
    people = (sides.seeds, sides.control, *sides.others.values())
    if any(isinstance(side, Traces) and side.U > MOST_PEOPLE for side in people):
        sides = sides.of_some_people(draw)
    whole = sides
    if sides.owner is not None and len(sides.published) > max(MOST_DAYS, sides.published.U):
        each = max(1, MOST_DAYS // sides.published.U)
        sides = sides.of_some_days(each, draw)
        notes += (f"attacked: {each} days of each life, drawn at random; over all days: A13, A18, A20.",)
    keywords = _audit_options(fakes, options, anybody=sides.owner is None)
    progress = keywords.pop("progress")
    seeds, control, release, owner = sides.seeds, sides.control, sides.published, sides.owner
    try:
        findings = audit(
            seeds, control, release, owner, pool=release, roles=sides.others, progress=progress, rng=rng, **keywords
        )
        if len(release) < len(whole.published) and control is not None:
            over_days = audit(
                whole.seeds,
                whole.control,
                whole.published,
                whole.owner,
                pool=whole.published,
                attacks=["A18", "A20"],
                rng=rng,
                **keywords,
            )
            findings = _replace_findings(findings, over_days)
        if len(seeds) < len(days) and owner is not None:
            # who visits a place is counted over all days of all seed users, as before anything was learnt (E31)
            a13 = audit(days, control, whole.published, None, attacks=["A13"], roles=whole.others, rng=rng, **keywords)
            findings = _replace_findings(findings, a13)
    except ClusterUnavailable:  # which is no word on the fakes: the run stops, and goes on when it is there again
        raise
    except ElsewhereError as error:
        return None, (*notes, f"no attack could be run: {error.args[0]}")
    return findings, notes


def _audit_options(fakes: Fakes, options: dict[str, Any], *, anybody: bool) -> dict[str, Any]:
    """Return the options of `audit` for fakes of this preset; `anybody` where they are made of nobody in particular."""
    settings, fit = fakes.preset, fakes.learnt
    keywords = {**options, "m_min": settings.m_min}
    if anybody:
        # places come from a public map, and noise visits some that nobody does: it tells nothing of who is there
        keywords["attacks"] = [attack for attack in ALL if attack != "A13"]
    if fit is not None:
        keywords |= {"model": fit.model, "classes": fit.classes}
    if settings.name == "private":
        keywords["sampler"] = fakes.sampler
    return keywords


def _replace_findings(other: AuditResult, exact: AuditResult) -> AuditResult:
    """Return the audit with the findings of another in place of its own."""
    better = {f.id: f for f in exact.findings}
    return replace(other, findings=tuple(better.get(f.id, f) for f in other.findings))


def _facts(traces: Traces, fakes: Fakes, pool: Pool, seeds: Traces, control: Traces | None) -> dict[str, Any]:
    """Return what a report says of the run: totals and parameters; no attempts where a theorem covers it."""
    parameters = {n: list(v) if isinstance(v, tuple) else v for n, v in pool.provenance["parameters"].items()}
    facts: dict[str, Any] = {
        "preset": fakes.preset.name,
        "parameters": {"kappa": fakes.kappa, **parameters},
        "reproducible": bool(pool.provenance.get("reproducible")),
        "simulated": bool(pool.provenance.get("simulated")),
        "versions": {"elsewhere": __version__, "numpy": np.__version__},
        "sizes": {
            "users": traces.U,
            "traces": len(traces),
            "seeds": seeds.U,
            "control": 0 if control is None else control.U,
            "published fakes": pool.traces.U,
            "published days": len(pool),
            "places": traces.R,
            "slots": traces.L,
        },
        "notes": list(pool.provenance["notes"]),
        "lives": fakes.day is not None,
    }
    facts["certificate"] = pool.provenance["certificate"]
    if not fakes.covered:
        facts["tally"] = {name: count for name, count in fakes.tally.items() if count}
    return facts
