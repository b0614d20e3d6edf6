"""
What all attacks share: the case they are run on, the comparisons they are held against, and the finding.

An attack says what it knows and how it scores, and nothing else:

- a **linkage** score `(link) -> (fakes, people)` says how well each person fits each fake; `name_people` runs it;
- a **membership** score, a number per person, says who was in the file; `tell_members` judges it.

The base runs each against the people in the file (*main*), against strangers in their place (*control*), with fakes
that know nobody (*null*: links shuffled, or walks over everybody's moves), and with *fresh* real people in the place of
the fakes. Several scores may ask one question: the strongest counts, for people and for chance alike. Ties are shared,
people are the unit of sampling, intervals are 95 %, and a bar is held against the upper end. Above it is a finding what
is clearly above chance; what is not gives no verdict.

Nobody need trust the links: where strangers are given, every linkage score also asks whether fakes lie nearer to people
in the file than to as many strangers. Fakes that know neither group do so one time in two, whichever way members and
strangers are exchanged.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import DAY, Floats, Ints, Locations, Mask, Visits
from elsewhere.evaluation.sides import number_within

LEVEL, NORMAL = 0.95, NormalDist()
RESAMPLES, EXCHANGES = 1000, 2000
RARELY = 0.002  # chance of a finding where nothing is: 5 % for the some 25 questions of a whole audit together
FEW = 5  # visitors of a place are few below
ODD = 0.25  # share of fakes unlike people that may point at one person (.13 of a tool's that never met the people)
DIGITS = 9  # sums of the same numbers in another order differ beyond
NOT_RUN, LEARNT, NOTHING, UNCLEAR = "not run", "learnt something", "learnt nothing measurable", "cannot tell"
WITHIN, ABOVE = "learnt something, within its bar", "above its bar, not clearly above chance"
WORST_FIRST = (LEARNT, WITHIN, ABOVE, UNCLEAR, NOTHING, NOT_RUN)


# -- figures and their intervals ---------------------------------------------------------------------------------------


class Rate(NamedTuple):
    """An estimate and its interval."""

    value: float
    low: float
    high: float


def wilson(hits: float, trials: float) -> Rate:
    """
    Return the share of hits with Wilson's interval; hits may be fractions where ties are shared.

    Examples
    --------
    >>> [round(x, 4) for x in wilson(1, 500)], [round(x, 4) for x in wilson(10, 5000)]
    ([0.002, 0.0004, 0.0112], [0.002, 0.0011, 0.0037])

    """
    if trials <= 0:
        return Rate(math.nan, 0.0, 1.0)
    z, p = NORMAL.inv_cdf(0.5 + LEVEL / 2), hits / trials
    middle, scale = p + z * z / (2 * trials), 1 + z * z / trials
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    return Rate(p, min(p, max(0.0, (middle - half) / scale)), max(p, min(1.0, (middle + half) / scale)))


def user_rate(hits: NDArray[Any], user: Ints, rng: np.random.Generator) -> tuple[Rate, float]:
    """
    Return the share of hits over all trials with its interval, and the mean share of the worst decile of users.

    With one trial per user the interval is Wilson's; with several, users are resampled, and it is never narrower than
    Wilson's on the trials, so that 0 hits do not look like certainty.
    """
    _, number = np.unique(user, return_inverse=True)
    trials, total = np.bincount(number), np.bincount(number, hits)
    worst = float(np.sort(total / trials)[::-1][: math.ceil(len(trials) / 10)].mean())
    plain_rate = wilson(float(total.sum()), float(trials.sum()))
    if trials.max() == 1:
        return plain_rate, worst
    draws = rng.multinomial(len(trials), np.full(len(trials), 1 / len(trials)), size=RESAMPLES).astype(np.float64)
    low, high = np.quantile((draws @ total) / (draws @ trials), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Rate(plain_rate.value, min(plain_rate.low, float(low)), max(plain_rate.high, float(high))), worst


def by_user(values: Floats, user: Ints) -> Floats:
    """Return the mean value of each user that occurs."""
    _, number = np.unique(user, return_inverse=True)
    return np.asarray(np.bincount(number, values) / np.bincount(number))


def difference(a: Floats, b: Floats) -> Rate:
    """Return the mean of `a` minus that of `b`, one value per user of either group, by the normal law."""
    value, half = float(a.mean() - b.mean()), NORMAL.inv_cdf(0.5 + LEVEL / 2) * _standard_error(a, b)
    return Rate(value, value - half, value + half)


def auc(positive: Floats, negative: Floats, group: Ints | None = None, *, level: float = LEVEL) -> Rate:
    """
    Return the chance that a `positive` scores above a `negative`, ties shared, with DeLong's interval.

    Values of `negative` that share a `group` (the fakes of one seed) count as one unit. A unit of slack, 1/(2 n) of
    either side, keeps a perfect separation from looking like certainty.
    """
    above, below = share_below(positive, negative), 1 - share_below(negative, positive)
    each = below if group is None else by_user(below, group)
    half = NORMAL.inv_cdf(0.5 + level / 2) * max(_standard_error(above, each), 0.5 / min(len(above), len(each)))
    value = float(above.mean())
    return Rate(value, max(0.0, value - half), min(1.0, value + half))


def two_sided(rate: Rate) -> Rate:
    """Return an AUC turned so that it is at least one half: an attacker may know which side scores higher."""
    return rate if rate.value >= 0.5 else Rate(1 - rate.value, 1 - rate.high, 1 - rate.low)


def share_below(values: Floats, others: Floats) -> Floats:
    """Return the share of `others` below each value, ties counting half."""
    rising = np.sort(others)
    left, right = np.searchsorted(rising, values, "left"), np.searchsorted(rising, values, "right")
    return np.asarray((left + right) / (2 * len(others)), dtype=np.float64)


def find_in(keys: Ints, wanted: Ints) -> Ints:
    """Return where among rising keys each wanted one is, -1 where it is not."""
    if len(keys) == 0:
        return np.full(np.shape(wanted), -1, dtype=np.int64)
    at = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)


def most_frequent(cell: Ints, place: Ints, shape: tuple[int, int], R: int) -> Ints:
    """Return a table of this shape with the place that occurs most in each of its cells, -1 where there is none."""
    key, times = np.unique(cell * R + place, return_counts=True)
    order = np.lexsort((times, key // R))
    out = np.full(shape, -1, dtype=np.int64)
    out.ravel()[key[order] // R] = key[order] % R  # the last of a cell is the most frequent
    return out


def _standard_error(*groups: Floats) -> float:
    return math.sqrt(sum((float(x.var(ddof=1)) if len(x) > 1 else 0.25) / len(x) for x in groups))


def chance_of_top(score: NDArray[Any], own: Ints, n: int = 1) -> Floats:
    """
    Return the chance that the own candidate is among the n best of each row, ties broken at random: 1/j for one of j.

    Examples
    --------
    >>> chance_of_top(np.array([[3.0, 3.0, 1.0], [2.0, 5.0, 2.0]]), np.array([0, 2])).tolist()
    [0.5, 0.0]

    """
    score = np.round(score, DIGITS)
    mine = score[np.arange(len(score)), own][:, None]
    above, tied = (score > mine).sum(axis=1), (score == mine).sum(axis=1)
    return np.asarray(np.clip((n - above) / tied, 0.0, 1.0))


# -- the finding -------------------------------------------------------------------------------------------------------


class Needs(Exception):
    """What an attack needs and does not have; it is listed as not run."""


@dataclass(frozen=True)
class Finding:
    """
    One attack, run or not.

    Parameters
    ----------
    main, control
        The figure against the people in the file and, by the same code, against strangers, with 95 % intervals.
    null, fresh
        What fakes that know nobody reach, and fresh real people in the place of the fakes.
    baseline
        What guessing reaches.
    bar
        Largest acceptable figure.
    passed
        True, False, or None where the sample is too small to tell, or the attack did not run.
    worst_decile
        The main figure over the worst tenth of the people.
    words
        The finding in a sentence.
    needs
        What is missing for the attack to run.
    details
        Further figures, by name.
    id, title
        Its number, such as A5, and what it tries; `audit` knows them.

    """

    main: Rate | None = None
    control: Rate | None = None
    null: Rate | None = None
    fresh: Rate | None = None
    baseline: float | None = None
    bar: float | None = None
    passed: bool | None = None
    worst_decile: float | None = None
    words: str = ""
    needs: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    title: str = ""

    @property
    def learnt(self) -> bool | None:
        """Return whether anything was learnt, None where that is open."""
        return {LEARNT: True, WITHIN: True, NOTHING: False}.get(self.outcome)

    @property
    def outcome(self) -> str:
        """Return in words what the attack learnt, or why that is open."""
        if self.main is None:
            return NOT_RUN
        if self.passed is False:
            return LEARNT
        chance = [rate.high for rate in (self.null, self.fresh) if rate is not None]
        chance += [] if self.baseline is None else [self.baseline]
        if self.main.low > max(chance, default=math.inf):  # above all that is reached with nothing to learn
            return WITHIN if self.passed else LEARNT
        if self.bar is not None and self.bar != self.baseline and self.main.value > self.bar:
            return ABOVE
        return NOTHING if self.passed else UNCLEAR

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, the details beside the rest."""
        fields: dict[str, Any] = {"title": self.title, "status": NOT_RUN if self.main is None else "run"}
        for name in ("main", "control", "null", "fresh"):
            rate: Rate | None = getattr(self, name)
            fields[name] = None if rate is None else rate.value
            fields["interval" if name == "main" else f"{name}_interval"] = None if rate is None else rate[1:]
        fields["risk"] = None
        if self.main is not None and self.control is not None and self.control.value < 1:
            fields["risk"] = (self.main.value - self.control.value) / (1 - self.control.value)
        rest = ("baseline", "bar", "passed", "learnt", "outcome", "worst_decile", "words", "needs")
        return dict(plain({**fields, **{name: getattr(self, name) for name in rest}, **self.details}))


def plain(value: Any) -> Any:
    """Return the same value in the types of JSON; what is not a finite number is None."""
    if isinstance(value, Rate):
        return {"value": plain(value.value), "interval": plain([value.low, value.high])}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def verdict(main: Rate, bar: float, *chance: Rate | None) -> bool | None:
    """
    Return True below the bar, False clearly above all that is reached with nothing to learn, None between.

    `chance` is what fakes that know nobody reach, or fresh people; without any nothing is clearly above.
    """
    if main.high <= bar:
        return True
    return False if main.low > max((rate.high for rate in chance if rate is not None), default=math.inf) else None


def percent(value: Any, digits: int = 1) -> str:
    """
    Return a share in per cent; "–" where there is none.

    Examples
    --------
    >>> percent(0.1234), percent(0.0001), percent(0), percent(None)
    ('12.3 %', '<0.1 %', '0.0 %', '–')

    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return "–"
    small = 0 < value < 10.0 ** -(digits + 2) / 2  # a small share is not none
    return f"<{10.0**-digits:.{digits}f} %" if small else f"{100 * value + 0.0:,.{digits}f} %"


# -- the case ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Clock:
    """
    The slots in which lives are compared, of `minutes` each.

    `second` (T,) is when each begins, since the first Monday; `period` is after how many seconds it begins again (a
    week, where fakes are of other dates than people), 0 for never.
    """

    minutes: float
    origin: int
    period: int
    second: Ints

    @cached_property
    def hour(self) -> Ints:
        """Return (T,) the hour of the week of each slot."""
        return np.asarray(self.second // 3600 % 168)

    @cached_property
    def day(self) -> Ints:
        """Return (T,) the number of the day of each slot."""
        return np.asarray(self.second // DAY)

    @cached_property
    def follows(self) -> Mask:
        """Return (T - 1,) whether each slot but the first begins where the one before it ends."""
        return np.asarray(np.diff(self.second) == round(60 * self.minutes))

    def thin(self, most: int) -> Ints:
        """Return at most so many slots, evenly."""
        return np.arange(0, len(self.second), -(-len(self.second) // most))


@dataclass(frozen=True, eq=False, repr=False)
class Lives:
    """People or fakes: (N, T) places by slot, -1 where nobody was seen; and their visits, where they have any."""

    r: Ints
    locations: Locations
    clock: Clock
    visits: Visits | None = None

    @staticmethod
    def of_slots(r: NDArray[np.integer], locations: Locations, minutes: float = 20) -> "Lives":
        """Return a life per row of a table of places, all of one day."""
        second = np.round(np.arange(r.shape[1]) * 60 * minutes).astype(np.int64)
        return Lives(np.asarray(r, dtype=np.int64), locations, Clock(minutes, 0, 0, second))

    def __len__(self) -> int:
        return len(self.r)

    @property
    def R(self) -> int:
        """Return the number of places."""
        return len(self.locations)

    def of(self, rows: Ints) -> "Lives":
        """Return some of these lives."""
        return replace(self, r=self.r[rows], visits=None if self.visits is None else self.visits.of_users(rows))

    def join(self, others: "Lives") -> "Lives":
        """Return these lives and then others, in slots alone."""
        return replace(self, r=np.concatenate([self.r, others.r]), visits=None)

    @cached_property
    def time(self) -> Any:
        """Return a sparse (N, R) table: the slots that each life spends at each place."""
        from scipy import sparse

        row, slot = np.nonzero(self.r >= 0)
        return sparse.csr_array((np.ones(len(row)), (row, self.r[row, slot])), shape=(len(self), self.R))

    @cached_property
    def visited(self) -> Any:
        """Return a sparse (N, R) table of ones: the places of each life."""
        table = self.time.copy()
        table.data[:] = 1.0
        return table

    @cached_property
    def ranked(self) -> tuple[Ints, Ints, Floats, Ints]:
        """Return life, place, slots and rank of the own places of all lives: those of a life in turn, longest first."""
        table = self.time
        row = np.repeat(np.arange(len(self)), np.diff(table.indptr))
        order = np.lexsort((table.indices, -table.data, row))
        return row, table.indices[order].astype(np.int64), table.data[order], np.arange(len(row)) - table.indptr[row]

    def main_places(self, n: int) -> Ints:
        """Return (N, n) the places of most time, -1 where a life has fewer."""
        row, place, _, rank = self.ranked
        out = np.full((len(self), n), -1, dtype=np.int64)
        out[row[rank < n], rank[rank < n]] = place[rank < n]
        return out

    @cached_property
    def steps(self) -> tuple[Ints, Ints]:
        """Return the life and the step r R + r' of every two slots that follow each other, in the order of time."""
        known = (self.r[:, :-1] >= 0) & (self.r[:, 1:] >= 0) & self.clock.follows
        row, slot = np.nonzero(known)
        return row, self.r[row, slot] * self.R + self.r[row, slot + 1]

    @cached_property
    def moves(self) -> Mask:
        """Return (N, T - 1) whether each life is elsewhere in the next slot."""
        both = (self.r[:, :-1] >= 0) & (self.r[:, 1:] >= 0) & self.clock.follows
        return np.asarray(both & (self.r[:, 1:] != self.r[:, :-1]))


class Link(NamedTuple):
    """Fakes, people, and the person each fake was made from, or is said to; None where nobody says."""

    fakes: Lives
    people: Lives
    owner: Ints | None = None

    @property
    def made_from(self) -> Ints:
        """Return who each fake was made from, for attacks that cannot do without."""
        if self.owner is None:
            raise Needs("`seed_index` (the links: the person each fake was made from)")
        return self.owner


Score = Callable[[Link], NDArray[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """
    What an audit is of, checked: the people in the file, strangers, fakes, who each fake was made from.

    `label` are the classes of the places; `file` counts the people of the whole data at each place, strangers too.
    `options` are those of `audit`, `attack` is the number of the one that looks at it.
    """

    seeds: Lives
    strangers: Lives | None
    fakes: Lives
    owner: Ints | None
    label: Ints | None
    file: Ints
    options: Mapping[str, Any]
    entropy: int
    role: str = ""
    attack: str = "A0"

    @property
    def who(self) -> str:
        """Return the people under attack, in words."""
        return f"the {self.role}" if self.role else "the people in the file"

    @property
    def others(self) -> Lives:
        """Return the strangers, for attacks that cannot do without."""
        if self.strangers is None:
            raise Needs("`holdout`, people of whom no fake was made")
        return self.strangers

    @property
    def link(self) -> Link:
        """Return fakes, people and who was made from whom."""
        return Link(self.fakes, self.seeds, self.owner)

    @property
    def m_min(self) -> int:
        """Return the visitors that a place has at least where it is not rare: what a release promises, or `FEW`."""
        return int(self.options["m_min"] or FEW)

    @property
    def units(self) -> Ints:
        """Return (F,) what fakes are counted by: the person behind each, or the fake where that is not known."""
        return np.arange(len(self.fakes)) if self.owner is None else self.owner

    def rng(self) -> np.random.Generator:
        """Return the stream of this attack, which no other attack changes."""
        return np.random.default_rng([self.entropy, int(self.attack[1:])])

    def walks(self, rng: np.random.Generator) -> Lives:
        """Return as many walks as there are fakes over everybody's steps: they know nobody."""
        everybody = self.seeds if self.strangers is None else self.seeds.join(self.strangers)
        return replace(everybody, r=free_walks(everybody, self.fakes.r >= 0, rng), visits=None)


def free_walks(people: Lives, seen: Mask, rng: np.random.Generator) -> Ints:
    """
    Return walks over the steps of all people together, seen at the slots `seen` (n, T): the null generator.

    Every person counts alike, member or stranger: walks that knew the fewer of them better would tell who is who.
    Where a walk has nowhere to go it begins anew at anybody's place.
    """
    R, step = people.R, np.sort(people.steps[1])  # by origin
    start = np.searchsorted(step, np.arange(R + 1) * R)
    first = people.r[np.arange(len(people)), (people.r >= 0).argmax(axis=1)]
    first = np.sort(first[first >= 0])
    walks = np.empty(seen.shape, dtype=np.int64)
    for t in range(seen.shape[1]):
        u = rng.random(len(seen))
        walks[:, t] = first[(u * len(first)).astype(np.int64)]
        here = walks[:, max(t - 1, 0)]
        ways = start[here + 1] - start[here]
        on = np.flatnonzero(ways if t > 0 else [])
        walks[on, t] = step[start[here[on]] + (u[on] * ways[on]).astype(np.int64)] % R
    return np.where(seen, walks, -1)


# -- linkage: who is behind a fake? ------------------------------------------------------------------------------------


class Nearer(NamedTuple):
    """Share of the fakes nearest to somebody in the file rather than to a stranger, its chance, the score that said."""

    share: Rate
    p: float
    by: str


def nearer_to_members(tables: Mapping[str, NDArray[Any]], U: int, rng: np.random.Generator) -> Nearer:
    """
    Return the share of the fakes whose best candidate is in the file, by the score that tells most.

    Columns of the tables are U people in the file and then strangers; as many of either are drawn. `p` is how often
    random exchanges of members and strangers have a score that tells as much.
    """
    strangers = next(iter(tables.values())).shape[1] - U
    n = min(U, strangers)
    some = np.concatenate([np.sort(rng.permutation(U)[:n]), U + rng.permutation(strangers)[:n]])
    share = np.array([_best_share(np.round(table[:, some], DIGITS)) for table in tables.values()])
    inside = rng.permuted(np.tile(np.arange(2 * n) < n, (EXCHANGES, 1)), axis=1)
    by_chance = share @ inside.T.astype(np.float64)
    value, spread = share[:, :n].sum(axis=1), np.maximum(by_chance.std(axis=1), 1e-9)
    beyond, chance = (value - 0.5) / spread, ((by_chance - 0.5) / spread[:, None]).max(axis=0)
    best = int(np.argmax(beyond))
    value = np.round(value, DIGITS)
    p = (1 + int((chance >= beyond[best] - 1e-9).sum())) / (1 + EXCHANGES)
    low, high = np.quantile(by_chance[best], [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) - 0.5
    rate = Rate(float(value[best]), max(0.0, float(value[best] - high)), min(1.0, float(value[best] - low)))
    return Nearer(rate, p, list(tables)[best])


def _best_share(score: NDArray[Any]) -> Floats:
    """Return the share of the rows of which each column is the best, ties shared."""
    best = score == score.max(axis=1, keepdims=True)
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))


def name_people(
    case: Case,
    scores: Mapping[str, Score],
    *,
    bar: float,
    knows: str,
    learns: Mapping[str, Score] | None = None,
) -> Finding:
    """
    Return the finding of an attack that names the person behind each fake, by the strongest of several scores.

    `knows` says what the attacker knows, after "whoever knows". Scores in `learns` learn from the links of other
    people, and run only where links are known.
    """
    rng, U, strangers = case.rng(), len(case.seeds), case.strangers
    both = case.seeds if strangers is None else case.seeds.join(strangers)
    tables = {name: np.asarray(score(Link(case.fakes, both))) for name, score in scores.items()}
    nearer = None if strangers is None else nearer_to_members(tables, U, rng)
    if case.owner is None:
        return _point_at_one(case, scores, tables, knows) if nearer is None else _without_links(case, nearer, knows)
    named = _named(case, tables, scores, learns or {}, rng)
    name = max(named, key=lambda each: named[each]["main"][0].value)
    main, worst = named[name]["main"]
    chance: dict[str, Any] = {
        who: max((found[who][0] for found in named.values()), key=lambda r: r.value)
        for who in named[name].keys() - {"main", "top10"}
    }
    passed = verdict(main, bar, chance["null"], chance.get("fresh"))
    details: dict[str, Any] = {each: found["main"][0] for each, found in named.items()}
    details |= {"strongest": name, "top10": user_rate(named[name]["top10"], case.units, rng)[0]}
    details |= {} if nearer is None else {"links_found": nearer._asdict()}
    if nearer is not None and nearer.p <= RARELY and passed is not False:
        return replace(_without_links(case, nearer, knows), details=details)
    words = f"Whoever knows {knows} names the person behind {percent(main.value)} of the fakes "
    chance |= {"worst_decile": worst, "words": f"{words}(a guess: {percent(1 / U)}).", "details": details}
    return Finding(main, **chance, baseline=1 / U, bar=bar, passed=passed)


def _named(
    case: Case,
    tables: Mapping[str, NDArray[Any]],
    scores: Mapping[str, Score],
    learns: Mapping[str, Score],
    rng: np.random.Generator,
) -> dict[str, dict[str, Any]]:
    """Return by score the share named of main, control, null and fresh, each with its worst decile."""
    U, owner, units = len(case.seeds), case.link.made_from, case.units
    strangers, stand_in, fresh = case.strangers, owner, case.fakes
    if strangers is not None:
        stand_in = rng.permutation(len(strangers))[owner % len(strangers)]
        rounds = -(-len(case.fakes) // len(strangers))
        order = np.concatenate([rng.permutation(len(strangers)) for _ in range(rounds)])[: len(case.fakes)]
        fresh = replace(strangers, r=strangers.r[order], visits=None)
    shuffled = rng.permutation(U)[owner]
    out: dict[str, dict[str, Any]] = {}
    for name, score in (*scores.items(), *learns.items()):
        learnt = name in learns
        table = score(Link(case.fakes, case.seeds, owner)) if learnt else tables[name][:, :U]
        found: dict[str, Any] = {"main": user_rate(chance_of_top(table, owner), units, rng)}
        found["null"] = user_rate(chance_of_top(table, shuffled), units, rng)
        if strangers is not None:
            side = score(Link(case.fakes, strangers, stand_in)) if learnt else tables[name][:, U:]
            found["control"] = user_rate(chance_of_top(side, stand_in), units, rng)
            found["fresh"] = user_rate(chance_of_top(score(Link(fresh, case.seeds, owner)), owner), units, rng)
        found["top10"] = chance_of_top(table, owner, 10)
        out[name] = found
    return out


def _without_links(case: Case, nearer: Nearer, knows: str) -> Finding:
    """Return the finding where nobody says who was made from whom: are fakes nearer to the people in the file?"""
    rate, shows = nearer.share, nearer.p <= RARELY
    rate = rate if shows else rate._replace(low=min(rate.low, 0.5))  # the best of several scores: p decides
    words = f"Whoever knows {knows}, but not who was made from whom, finds {percent(rate.value)} of the fakes nearer "
    words += f"to one of {case.who} than to any of as many strangers; by chance it is 50 %."
    control, details = Rate(1 - rate.value, 1 - rate.high, 1 - rate.low), {"links_found": nearer._asdict()}
    return Finding(rate, control, baseline=0.5, bar=0.5, passed=not shows, words=words, details=details)


def _point_at_one(case: Case, scores: Mapping[str, Score], tables: Mapping[str, NDArray[Any]], knows: str) -> Finding:
    """
    Return whether fakes point at one person more clearly than people do at another person: all that can be asked
    without links and strangers.

    How clearly is the gap between the best and the second best candidate, in standard deviations of all candidates
    (eccentricity, Narayanan and Shmatikov 2008); chance is that of exchanges of fakes and people. Fakes that are
    unlike people point at somebody by their oddness, so only a large share is a finding.
    """
    found = {}
    for name, score in scores.items():
        others = np.array(score(Link(case.seeds, case.seeds)), dtype=np.float64)
        np.fill_diagonal(others, -np.inf)
        found[name] = np.concatenate([clearly_one(table) for table in (tables[name], others)])
    best, _, early = _strongest_auc(found, len(case.fakes), case.rng())
    chance = Rate(0.01, 0.0, max(early.high, ODD))
    words = f"Whoever knows {knows}, but not who was made from whom, finds that {percent(early.value)} of the fakes "
    words += f"point at one person as clearly as 1 in 100 people does at another; up to {percent(chance.high)} may."
    main = Rate(early.value, *wilson(early.value * len(case.fakes), len(case.fakes))[1:])
    passed = True if early.value <= early.high else False if main.low > chance.high else None
    details = {"strongest": best[0]}
    return Finding(main, chance, chance, None, 0.01, chance.high, passed, words=words, details=details)


def clearly_one(score: NDArray[Any]) -> Floats:
    """
    Return how clearly each row points at one candidate, beyond whom all rows point at; 0 beyond a candidate's due.

    By how many standard deviations of its row the best is ahead of the second. Whom everybody is near tells nothing,
    and nobody is behind more rows than there are for each candidate.
    """
    beyond = np.ma.masked_invalid(score)
    beyond = beyond - beyond.mean(axis=0)
    level, spread = beyond.filled(-np.inf), beyond.std(axis=1).filled(0.0)
    second, first = np.sort(level, axis=1)[:, -2:].T
    clear = np.where(np.isfinite(second) & (spread > 1e-12), (first - second) / np.maximum(spread, 1e-12), 0.0)
    order = np.argsort(-clear, kind="stable")
    among = np.empty(len(score), dtype=np.int64)
    among[order] = number_within(level.argmax(axis=1)[order])
    return np.where(among < -(-len(score) // score.shape[1]), clear, 0.0)


# -- membership: who was in the file? ----------------------------------------------------------------------------------


def tell_members(
    case: Case, found: Mapping[str, Floats], *, knows: str, null: Mapping[str, Floats] | None = None
) -> Finding:
    """
    Return the finding of an attack that tells people in the file from strangers, by the strongest of its scores.

    `found` are scores of everybody, members first; `null` the same from fakes that know nobody. The figure is an AUC,
    either way round; chance is that of the strongest score under random exchanges of members and strangers, so that
    neither the number of scores nor that of people flatters. At 1 % false alarms the share recognised is held against
    the same exchanges.
    """
    rng, people, U = case.rng(), case.seeds.join(case.others), len(case.seeds)
    (name, rate), by_chance, early = _strongest_auc(found, U, rng)
    free = None if null is None else _strongest_auc(null, U, rng)[0][1]
    p = (1 + int((by_chance >= rate.value - 1e-12).sum())) / (1 + EXCHANGES)
    often = float(np.quantile(by_chance, (1 + LEVEL) / 2))
    details = {
        "auc": {each: auc(values[:U], values[U:]) for each, values in found.items()},
        "strongest": name,
        "p": p,
        "tpr_at_1_percent": early.value,
        "tpr_by_chance": early.high,
        "detectable": often,
    }
    if p > RARELY and early.value > early.high:  # not people in general, but some of them
        main, free = Rate(early.value, *wilson(early.value * U, U)[1:]), None
        baseline, bar, passed = 0.01, early.high, False
        words = f"Whoever knows {knows} recognises {percent(early.value)} of {case.who}, with one false alarm among "
        words += f"100 strangers; by chance it is at most {percent(early.high)}."
    else:
        half = often - 0.5
        main = Rate(rate.value, max(0.0, rate.value - half), min(1.0, rate.value + half))
        baseline, bar, passed = 0.5 if p <= RARELY else max(0.5, often), often, p > RARELY
        words = f"Whoever knows {knows}, and is shown one of {case.who} and one stranger, picks the right one in "
        words += f"{percent(rate.value)} of the cases; by chance it is 50 %, and up to {percent(often)} among so few."
    worst = _worst_tenth(found[name], people, U)
    return Finding(main, free, None, None, baseline, bar, passed, worst, words, details=details)


def _strongest_auc(found: Mapping[str, Floats], U: int, rng: np.random.Generator) -> tuple[Any, Floats, Rate]:
    """
    Return the score farthest from one half with its AUC, the largest of each exchange of people, and the share
    recognised at 1 % false alarms with what nearly all exchanges stay below (`high`).
    """
    from scipy.stats import rankdata

    rank = np.array([rankdata(values) for values in found.values()])
    N, n = rank.shape[1], rank.shape[1] - U

    def side(inside: Mask) -> Floats:
        return np.asarray((rank @ inside.T - U * (U + 1) / 2) / (U * n))  # (scores, exchanges)

    inside = rng.permuted(np.tile(np.arange(N) < U, (EXCHANGES, 1)), axis=1)
    inside[0] = np.arange(N) < U
    told = side(inside.astype(np.float64))
    far = np.abs(told - 0.5)
    best = int(np.argmax(far[:, 0]))
    name = list(found)[best]
    rate = two_sided(auc(found[name][:U], found[name][U:]))
    alarms = np.array([max(_recognised(score, each) for score in rank) for each in inside])
    early = Rate(float(alarms[0]), 0.0, float(np.quantile(alarms[1:], 1 - RARELY)))
    return (name, rate), 0.5 + far[:, 1:].max(axis=0), early


def _recognised(score: Floats, inside: Mask) -> float:
    """Return the share of the people inside who score above what one stranger in a hundred exceeds."""
    strangers = score[~inside]
    at = len(strangers) - 1 - int(0.01 * len(strangers))
    return float((score[inside] > np.partition(strangers, at)[at]).mean())


def _worst_tenth(score: Floats, people: Lives, U: int) -> float:
    """Return the AUC of the tenth of the people whose places are visited by fewest, on either side."""
    visitors = np.asarray(people.visited.sum(axis=0)).ravel()
    common = (people.visited @ np.log(np.maximum(visitors, 1))) / np.maximum(people.visited.sum(axis=1), 1)
    few, others = np.argsort(common[:U])[: -(-U // 10)], U + np.argsort(common[U:])[: -(-(len(people) - U) // 10)]
    return two_sided(auc(score[few], score[others])).value
