"""From scores of candidates to a finding: ties shared; control and null generator by the same code."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from elsewhere.errors import InvalidParameter
from elsewhere.evaluation.attacks.finding import Finding, Fresh, flagged_too, percent, verdict
from elsewhere.evaluation.attacks.ground import Ground, Link, People
from elsewhere.evaluation.attacks.intervals import Rate, user_rate, wilson
from elsewhere.traces.model import Floats, Ints

MOST_PLACES = 8192  # tables of visited places x visited places are held in memory
BLOCK = 1024
DIGITS = 9  # sums of logarithms of the same factors in another order differ beyond
Scores = TypeVar("Scores", Floats, Ints)


def shared_top(score: Floats | Ints, own: Ints, n: int = 1) -> Floats:
    """
    Chance that the own candidate is among the n best of each row, ties broken at random: 1/j for one of j.

    Examples
    --------
    >>> shared_top(np.array([[3.0, 3.0, 1.0], [2.0, 5.0, 2.0]]), np.array([0, 2])).tolist()
    [0.5, 0.0]

    """
    mine = score[np.arange(len(score)), own][:, None]
    above, tied = (score > mine).sum(axis=1), (score == mine).sum(axis=1)
    return np.asarray(np.clip((n - above) / tied, 0.0, 1.0))


def by_candidate(score: Scores, people: People) -> Scores:
    """Scores of people from scores of their traces, the best of each user's rows; rounded, so that ties are ties."""
    score = np.round(score, DIGITS) if score.dtype.kind == "f" else score
    if len(people.user) == people.U:
        return score[:, np.argsort(people.user)]
    order = np.argsort(people.user, kind="stable")
    starts = np.searchsorted(people.user[order], np.arange(people.U))
    return np.maximum.reduceat(score[:, order], starts, axis=1)


def blocks(link: Link) -> list[Ints]:
    """Rows of fakes in blocks that fit into memory."""
    size = max(1, min(BLOCK, int(4e7 // max(1, len(link.people.r)))))
    return [np.arange(i, min(i + size, len(link.fakes))) for i in range(0, len(link.fakes), size)]


def compact(R: int, *tables: Ints) -> tuple[int, tuple[Ints, ...]]:
    """The tables with places renumbered 0 .. V-1 where R is too large for a table of all pairs."""
    if R <= MOST_PLACES:
        return R, tables
    seen = np.unique(np.concatenate([t.ravel() for t in tables]))
    if len(seen) > MOST_PLACES:
        raise TooManyPlaces(f"at most {MOST_PLACES} visited places; merge rare ones first.")
    return len(seen), tuple(np.searchsorted(seen, t) for t in tables)


class TooManyPlaces(InvalidParameter):
    """More visited places than an attack can hold in memory; it is listed as not run."""

    code = "E_TOO_LARGE"


def fresh_flagged(trials: Sequence[int], candidates: int, bar: float) -> float:
    """
    Chance that the bar flags fresh real people in the place of the fakes, by any of several attacks on one question.

    `trials` is the number of fakes that each attack is tried on. Whoever has nothing to do with the candidates is named
    once in `candidates` times: hits are binomial, and the bar is held against the upper end of Wilson's interval.

    Examples
    --------
    >>> round(fresh_flagged([280], 280, 0.01), 3), round(fresh_flagged([2800], 280, 0.01), 3)
    (1.0, 0.014)

    """
    from scipy.special import bdtr

    passed = 1.0
    for n in trials:
        low, most = -1, n
        while most - low > 1:  # the largest number of hits that passes
            middle = (most + low) // 2
            low, most = (middle, most) if wilson(middle, n).high <= bar else (low, middle)
        passed *= float(bdtr(low, n, 1 / candidates)) if low >= 0 else 0.0
    return 1 - passed


class Variant(NamedTuple):
    """
    Another attack on the same question: its success on each fake of a link, what it asks, and on which fakes.

    `trials` is how many of them are tried by themselves, where that is not every row: the days of a life are tried at
    once.
    """

    hits: Callable[[Link], Floats]
    question: str
    rows: Ints
    trials: int | None = None


def link_finding(
    ground: Ground,
    attack: str,
    hits: Callable[[Link], tuple[Floats, ...]],
    *,
    bar: float,
    question: str,
    also: tuple[str, ...] = (),
    beside: Mapping[str, Variant] | None = None,
) -> Finding:
    """
    The finding of an attack that names the seed of each fake.

    `hits` gives the success of every fake of a link in [0, 1], and further successes that are reported under the names
    `also`. `beside` holds other attacks on the same question: the finding is that of the strongest, figure, interval,
    words and verdict, and the details hold all of them. Strangers, walks and fresh people are given the strongest too.
    """
    rng, maker, chance = ground.rng(attack), ground.main.user, 1 / ground.seeds.U
    asked = {"plain": question, **{name: variant.question for name, variant in (beside or {}).items()}}

    def tried(link: Link) -> tuple[dict[str, tuple[Rate, float]], list[Floats]]:
        # in the control a person may stand in for several users: the fakes' makers stay the unit
        found, *more = hits(link)
        rates = {"plain": user_rate(found, maker, rng)}
        for name, (run, _, rows, _) in (beside or {}).items():
            some = Link(link.fakes[rows], link.owner[rows], link.people)
            rates[name] = user_rate(run(some), maker[rows], rng)
        return rates, more

    (rates, more), *rest = (tried(link) for link in (ground.main, ground.control, ground.null, ground.fresh))
    name = max(rates, key=lambda name: rates[name][0].value)
    main, worst = rates[name]
    control, null, real = (max((r for r, _ in found.values()), key=lambda r: r.value) for found, _ in rest)
    trials = [len(maker), *(variant.trials or len(variant.rows) for variant in (beside or {}).values())]
    fresh = Fresh(real, fresh_flagged(trials, ground.seeds.U, bar))
    passed = verdict(main, bar, null, fresh)
    others = {name: user_rate(share, maker, rng)[0] for name, share in zip(also, more, strict=True)}
    return Finding(
        attack,
        main=main.value,
        interval=main,
        control=control.value,
        control_interval=control,
        baseline=chance,
        null=null,
        fresh=fresh,
        bar=bar,
        passed=passed,
        reachable=null.high <= bar and fresh.pass_it,
        worst_decile=worst,
        words=f"{asked[name]} in {percent(main.value)} of the fakes; a stranger in the place of the seed is named in "
        f"{percent(control.value)}, a guess names {percent(chance)}.{flagged_too(passed, fresh, percent(real.value))}",
        details={**others, **{name: rate for name, (rate, _) in rates.items()}, "strongest": name},
    )
