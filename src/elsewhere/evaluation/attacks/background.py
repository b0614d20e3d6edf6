"""
A12: does what one learns from a fake fit exactly one seed user? Eight kinds of knowledge, two to four instants each.

location         the places, as often as known            sequence    the places in their order
time             the places at their instants             unique      the set of places
frequency        the places with their numbers of visits  probability the same as shares, +- 5 points
proportion       visits relative to the most visited known place, +- 5 points
home_work        the two most visited places
"""

import numpy as np

from elsewhere.evaluation.attacks._kernels import single_matches
from elsewhere.evaluation.attacks.candidates import compact
from elsewhere.evaluation.attacks.finding import Finding, percent
from elsewhere.evaluation.attacks.ground import Ground, People, some_people
from elsewhere.evaluation.attacks.intervals import LEVEL, Rate, difference
from elsewhere.traces.model import Floats, Ints

KINDS = ("location", "sequence", "time", "unique", "frequency", "probability", "proportion", "home_work")
KNOWN = (2, 3, 4)
TRIES = 8  # random sets of known instants per fake
TOLERANCE = 0.05
MOST_FAKES = 5000


def knowledge(n: int, L: int, h: int, rng: np.random.Generator) -> Ints:
    """(n, TRIES, h) random instants, different and rising."""
    order = rng.random((n, TRIES, L)).argpartition(min(h, L) - 1, axis=2)[:, :, :h]
    return np.sort(order, axis=2)


def visits(r: Ints, R: int) -> Ints:
    """Visits per place, (N, R)."""
    count = np.zeros((len(r), R), dtype=np.int64)
    np.add.at(count, (np.arange(len(r))[:, None], r), 1)
    return count


def home_and_work(count: Ints) -> Ints:
    """The two most visited places in one number, (N,); the lower number first among equals, -1 for no second."""
    first = count.argmax(axis=1)
    rest = count.copy()
    rest[np.arange(len(count)), first] = 0
    second = np.where(rest.max(axis=1) > 0, rest.argmax(axis=1), -1)
    return np.asarray(first * (count.shape[1] + 1) + second + 1)


def singled_out(fakes: Ints, known: Ints, people: People, R: int) -> Ints:
    """(F, 8, TRIES) the only user who fits, -1 where none or several do."""
    V, (mine, rows) = compact(R, fakes, people.r)
    order = np.argsort(people.user, kind="stable")
    rows, user = rows[order], people.user[order]
    theirs = visits(rows, V)
    visitor, place = np.nonzero(theirs)
    by_place = np.argsort(place, kind="stable")
    start = np.searchsorted(place[by_place], np.arange(V + 1))
    out = np.full((len(fakes), len(KINDS), known.shape[1]), -1)
    for begin in range(0, len(fakes), 1024):
        part = slice(begin, begin + 1024)
        count = visits(mine[part], V)
        shown = np.take_along_axis(count, mine[part], axis=1)
        found = np.empty((len(shown), len(KINDS) - 1, known.shape[1]), dtype=np.int64)
        single_matches(known[part], mine[part], shown, rows, user, theirs, start, visitor[by_place], TOLERANCE, found)
        out[part, :-1] = found
        out[part, -1] = _only(home_and_work(count), home_and_work(theirs), user)[:, None]
    return out


def _only(wanted: Ints, has: Ints, user: Ints) -> Ints:
    """The user of the only person that has each wanted number, -1 where none or several do."""
    pairs = np.unique(np.column_stack([has, user]), axis=0)
    numbers, first, times = np.unique(pairs[:, 0], return_index=True, return_counts=True)
    at = np.searchsorted(numbers, wanted).clip(max=len(numbers) - 1)
    return np.where((numbers[at] == wanted) & (times[at] == 1), pairs[first[at], 1], -1)


def background(ground: Ground) -> Finding:
    """A12."""
    rng = ground.rng("A12")
    chosen = np.sort(rng.permutation(len(ground.fakes))[:MOST_FAKES])
    fakes = ground.fakes[chosen]
    if ground.role:
        n = min(ground.seeds.U, ground.strangers.U)
        people, strangers = (some_people(group, n, rng) for group in (ground.seeds, ground.strangers))
        maker, one = np.full(len(fakes), -2), f"one of {ground.who}"
    else:
        strangers = ground.control.people
        people, maker, one = _as_many(ground.seeds, strangers), ground.units[chosen], "one seed user"
    known_numbers = [h for h in KNOWN if h <= fakes.shape[1]]
    # one interval for all kinds together
    level = 1 - (1 - LEVEL) / (len(KINDS) * len(known_numbers))
    gaps: dict[str, Rate] = {}
    shares: dict[str, list[float]] = {}
    own: dict[str, float] = {}
    for h in known_numbers:
        known = knowledge(len(fakes), fakes.shape[1], h, rng)
        found, control = (singled_out(fakes, known, group, ground.R) for group in (people, strangers))
        for i, kind in enumerate(KINDS):
            name = f"{kind}_{h}"
            mine, theirs = (_times(x[:, i], g.U) for x, g in ((found, people), (control, strangers)))
            gaps[name] = difference(mine, theirs, level=level)
            shares[name] = [float(mine.mean()), float(theirs.mean())]
            own[name] = float((found[:, i] == maker[:, None]).mean())
    # the most telling kind: the largest difference in units of its own uncertainty
    worst = max(gaps, key=lambda name: gaps[name].value / max(gaps[name].high - gaps[name].low, 1e-12))
    (main, control_share), gap = shares[worst], gaps[worst]
    return Finding(
        "A12",
        main=main,
        interval=Rate(main, max(0.0, control_share + gap.low), min(1.0, control_share + gap.high)),
        control=control_share,
        baseline=control_share,
        bar=control_share,
        passed=bool(gap.low <= 0),
        reachable=True,
        words=f"Of {len(gaps)} kinds of knowledge taken from a fake, {worst.replace('_', ' ')} fits exactly {one} "
        f"in {percent(main)}, exactly one stranger in {percent(control_share)}.",
        details={"worst": worst, "difference": gap, "share": shares, "own_seed": own},
    )


def _times(found: Ints, U: int) -> Floats:
    """How often each user was the only one to fit, as a share of all knowledge times U: the mean is the share."""
    return np.asarray(np.bincount(found[found >= 0], minlength=U) * (U / found.size))


def _as_many(people: People, others: People) -> People:
    """These people, or as many of them as there are others."""
    if people.U <= others.U:
        return people
    keep = np.flatnonzero(people.user < others.U)
    return People(people.r[keep], people.user[keep], others.U)
