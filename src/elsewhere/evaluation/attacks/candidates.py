"""
Attacks that rank candidates: A2 and A12, and `link_finding`, which turns success on each fake into a finding.

A2: the own moves of which user make the fake most likely? MAP re-identification as the PPMTF referee computes it.

    argmax_u  sum_t ln p(u)_{f(t)}^{f(t+1)},   moves that u never made get probability 1e-8, the first maximum counts.

A12: does what is known from a fake fit exactly one seed user? Eight kinds of knowledge, of two to four slots each.

location         the places, as often as known            sequence    the places in their order
time             the places at their slots                unique      the set of places
frequency        the places with their numbers of visits  probability the same as shares, +- 5 points
proportion       visits relative to the most visited known place, +- 5 points
home_work        the two most visited places
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from elsewhere.data.visits import Floats, Ints
from elsewhere.evaluation.attacks._attacks_kernels import move_likelihoods, single_matches
from elsewhere.evaluation.attacks.finding import (
    LEVEL,
    CannotRun,
    Finding,
    Fresh,
    Rate,
    difference,
    no_verdict_words,
    percent,
    user_rate,
    verdict,
    wilson,
)
from elsewhere.evaluation.attacks.inputs import AttackInputs, Link, People, join_people, sample_people

MOST_PLACES = 8192  # of a map: above, only places that are visited are numbered
MOST_CELLS = 2**27  # of a table of places of people x places of fakes, 1 GB
BLOCK = 1024
DIGITS = 9  # sums of logarithms of the same factors in another order differ beyond
Scores = TypeVar("Scores", Floats, Ints)


def chance_of_top(score: Floats | Ints, own: Ints, n: int = 1) -> Floats:
    """
    Return the chance that the own candidate is among the n best of each row, ties broken at random: 1/j for one of j.

    Examples
    --------
    >>> chance_of_top(np.array([[3.0, 3.0, 1.0], [2.0, 5.0, 2.0]]), np.array([0, 2])).tolist()
    [0.5, 0.0]

    """
    mine = score[np.arange(len(score)), own][:, None]
    above, tied = (score > mine).sum(axis=1), (score == mine).sum(axis=1)
    return np.asarray(np.clip((n - above) / tied, 0.0, 1.0))


def by_candidate(score: Scores, people: People) -> Scores:
    """
    Return the scores of people from scores of their traces, the best of each user's rows; rounded, so that ties
    are ties.
    """
    score = np.round(score, DIGITS) if score.dtype.kind == "f" else score
    if len(people.user) == people.U:
        return score[:, np.argsort(people.user)]
    order = np.argsort(people.user, kind="stable")
    starts = np.searchsorted(people.user[order], np.arange(people.U))
    return np.maximum.reduceat(score[:, order], starts, axis=1)


def blocks(link: Link) -> list[Ints]:
    """Return the rows of fakes in blocks that fit into memory."""
    size = max(1, min(BLOCK, int(4e7 // max(1, len(link.people.r)))))
    return [np.arange(i, min(i + size, len(link.fakes))) for i in range(0, len(link.fakes), size)]


def compact(R: int, *tables: Ints) -> tuple[int, tuple[Ints, ...]]:
    """Return the tables with places renumbered 0 .. V-1, those that occur, where R is large."""
    if R <= MOST_PLACES:
        return R, tables
    places = np.unique(np.concatenate([t.ravel() for t in tables]))
    return len(places), tuple(np.searchsorted(places, t) for t in tables)


def compact_pairs(R: int, fakes: Ints, people: Ints) -> tuple[tuple[int, int], Ints, Ints]:
    """
    Return the shape of a table of places of people x places of fakes, and both with their places as numbered in it.

    Where R is large, each side has the places that occur on it.
    """
    if R <= MOST_PLACES:
        return (R, R), fakes, people
    (n, (theirs,)), (m, (mine,)) = compact(R, people), compact(R, fakes)
    if n * m > MOST_CELLS:
        raise CannotRun(
            f"{n} places of people x {m} of fakes need {n * m * 16 / 1e9:.1f} GB, and at most "
            f"{MOST_CELLS * 16 / 1e9:.1f} are used; give fewer people, or larger places.",
            code="E_TOO_LARGE",
        )
    return (n, m), mine, theirs


def flagged_by_chance(trials: Sequence[int], candidates: int, bar: float) -> float:
    """
    Return the chance that the bar flags fresh real people in the place of the fakes, by any of several attacks on one
    question.

    `trials` is the number of fakes that each attack is tried on. Whoever has nothing to do with the candidates is named
    once in `candidates` times: hits are binomial, and the bar is held against the upper end of Wilson's interval.

    Examples
    --------
    >>> round(flagged_by_chance([280], 280, 0.01), 3), round(flagged_by_chance([2800], 280, 0.01), 3)
    (1.0, 0.014)

    """
    from scipy.special import bdtr

    pass_chance = 1.0
    for n in trials:
        low, most = -1, n
        while most - low > 1:  # the largest number of hits that passes
            middle = (most + low) // 2
            low, most = (middle, most) if wilson(middle, n).high <= bar else (low, middle)
        pass_chance *= float(bdtr(low, n, 1 / candidates)) if low >= 0 else 0.0
    return 1 - pass_chance


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
    inputs: AttackInputs,
    attack: str,
    hits: Callable[[Link], tuple[Floats, ...]],
    *,
    bar: float,
    question: str,
    also: tuple[str, ...] = (),
    beside: Mapping[str, Variant] | None = None,
) -> Finding:
    """
    Return the finding of an attack that names the seed of each fake.

    `hits` gives the success of every fake of a link in [0, 1], and further successes that are reported under the names
    `also`. `beside` holds other attacks on the same question: the finding is that of the strongest, figure, interval,
    words and verdict, and the details hold all of them. Strangers, walks and fresh people are given the strongest too,
    of those that are tried on as many fakes: that of few has a wide interval, whatever is behind it.
    """
    rng, maker, chance = inputs.rng(attack), inputs.main.user, 1 / inputs.seeds.U
    questions = {"plain": question, **{name: variant.question for name, variant in (beside or {}).items()}}

    by_link, further = [], []
    for link in (inputs.main, inputs.control, inputs.null, inputs.fresh):
        # in the control a person may stand in for several users: the fakes' makers stay the unit
        success, *more = hits(link)
        by_name = {"plain": user_rate(success, maker, rng)}
        for name, (run, _, rows, _) in (beside or {}).items():
            some = Link(link.fakes[rows], link.owner[rows], link.people)
            by_name[name] = user_rate(run(some), maker[rows], rng)
        by_link.append(by_name)
        further.append(more)
    rates, *rest = by_link
    name = max(rates, key=lambda name: rates[name][0].value)
    main, worst = rates[name]
    trials = {"plain": len(maker), **{n: variant.trials or len(variant.rows) for n, variant in (beside or {}).items()}}
    as_many = [n for n in trials if trials[n] >= trials[name]]
    control, null, real = (max((by_name[n][0] for n in as_many), key=lambda r: r.value) for by_name in rest)
    fresh = Fresh(real, flagged_by_chance(list(trials.values()), inputs.seeds.U, bar))
    passed = verdict(main, bar, null, fresh)
    others = {name: user_rate(share, maker, rng)[0] for name, share in zip(also, further[0], strict=True)}
    return Finding(
        attack,
        interval=main,
        control_interval=control,
        baseline=chance,
        null=null,
        fresh=fresh,
        bar=bar,
        passed=passed,
        reachable=null.high <= bar and fresh.usable,
        worst_decile=worst,
        words=f"{questions[name]} in {percent(main.value)} of the fakes; a stranger in the place of the seed is named "
        f"in {percent(control.value)}, a guess names {percent(chance)}."
        + no_verdict_words(passed, fresh, percent(real.value)),
        details={**others, **{name: rate for name, (rate, _) in rates.items()}, "strongest": name},
    )


UNSEEN = 1e-8
MAP_BAR = 0.0112  # the original tool's figure on PF
EXCHANGES = 1000


def moves_of_users(people: People, R: int) -> tuple[Ints, Ints, Floats]:
    """Return user, move r R + r', and p(u)_r^{r'} of every move that somebody made, by user and move."""
    key = (people.r[:, :-1] * R + people.r[:, 1:]).ravel()
    who = np.repeat(people.user, people.r.shape[1] - 1)
    pair, count = np.unique(who * (R * R) + key, return_counts=True)
    user, move = pair // (R * R), pair % (R * R)
    row, back = np.unique(pair // R, return_inverse=True)
    leaving = np.bincount(back, count, len(row))
    return user, move, count / leaving[back]


def move_counts(traces: Ints, moves: Ints, R: int) -> Any:
    """Return a sparse (traces, moves) matrix: how often each trace makes each of the given moves, which are sorted."""
    from scipy import sparse

    key = traces[:, :-1] * R + traces[:, 1:]
    at = np.searchsorted(moves, key).clip(max=max(len(moves) - 1, 0))
    known = (moves[at] == key) if len(moves) else np.zeros(key.shape, dtype=bool)
    row = np.broadcast_to(np.arange(len(traces))[:, None], key.shape)[known]
    return sparse.csr_array((np.ones(len(row)), (row, at[known])), shape=(len(traces), len(moves)))


def move_scores(fakes: Ints, people: People, R: int) -> Iterator[tuple[Ints, Floats]]:
    """Yield rows of fakes, block by block, and how likely each user's moves make each: (rows, users)."""
    user, move, p = moves_of_users(people, R)
    order = np.lexsort((user, move))
    moves, start = np.unique(move[order], return_index=True)
    start = np.append(start, len(order))
    # the plain logarithm: near-ties must fall as they do in the referee
    log_p = np.array([math.log(x) for x in p[order].tolist()])
    for rows in blocks(Link(fakes, np.zeros(0, dtype=np.int64), people)):
        key = fakes[rows, :-1] * R + fakes[rows, 1:]
        at = np.searchsorted(moves, key).clip(max=len(moves) - 1)
        score = np.empty((len(rows), people.U))
        move_likelihoods(np.where(moves[at] == key, at, -1), start, user[order], log_p, math.log(UNSEEN), score)
        yield rows, score


def link_by_moves(link: Link, R: int) -> tuple[Floats, Floats]:
    """Return the success of A2 on each fake: whether the first best user is its own, and the same with ties shared."""
    first, shared = np.empty(len(link.fakes)), np.empty(len(link.fakes))
    for rows, score in move_scores(link.fakes, link.people, R):
        own = link.user[rows]
        first[rows], shared[rows] = score.argmax(axis=1) == own, chance_of_top(score, own)
    return first, shared


def share_explained_best(fakes: Ints, people: People, R: int) -> Floats:
    """Return the (users,) share of the fakes that each user's moves explain best, ties shared."""
    share = np.zeros(people.U)
    for _, score in move_scores(fakes, people, R):
        best = np.round(score, DIGITS) == np.round(score.max(axis=1, keepdims=True), DIGITS)
        share += (best / best.sum(axis=1, keepdims=True)).sum(axis=0)
    return share / len(fakes)


def share_against_exchanges(share: Floats, n: int, rng: np.random.Generator) -> tuple[Rate, float]:
    """
    Return the share of the fakes that the first n users explain best, of 2n; and how often an exchange of users has as
    much.

    Fakes that know neither group give every exchange of members and strangers the same law, with mean one half; the
    interval is that of the exchanges.
    """
    value = float(share[:n].sum())
    by_chance = np.array([share[rng.permutation(len(share))[:n]].sum() for _ in range(EXCHANGES)])
    low, high = np.quantile(by_chance, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) - 0.5
    p = (1 + int((by_chance >= value - 1e-12).sum())) / (1 + EXCHANGES)
    return Rate(value, min(value, value - float(high)), max(value, value - float(low))), p


def best_explained(inputs: AttackInputs) -> Finding:
    """Run A2 on people of whom no fake was made: are fakes best explained by their moves, or as often by strangers'?"""
    rng, n = inputs.rng("A2"), min(inputs.seeds.U, inputs.strangers.U)
    members, strangers = (sample_people(group, n, rng) for group in (inputs.seeds, inputs.strangers))
    both = join_people(members, strangers)
    main, p = share_against_exchanges(share_explained_best(inputs.fakes, both, inputs.R), n, rng)
    free, _ = share_against_exchanges(share_explained_best(inputs.null_walks(rng), both, inputs.R), n, rng)
    return Finding(
        "A2",
        interval=main,
        control=1 - main.value,
        baseline=0.5,
        null=free,
        bar=0.5,
        passed=bool(main.low <= 0.5),
        leaks=bool(main.low > 0.5),
        reachable=bool(free.low <= 0.5),
        words=f"Of {n} people each, {inputs.who} and strangers, the moves of {inputs.who} explain "
        f"{percent(main.value)} of the fakes best (as much in {percent(p)} of random exchanges of the two).",
        details={"p": p, "people": n},
    )


def reidentification(inputs: AttackInputs) -> Finding:
    """Name the person whose own chain explains a fake best (A2)."""
    return link_finding(
        inputs,
        "A2",
        lambda link: link_by_moves(link, inputs.R),
        bar=MAP_BAR,
        question=f"Whoever knows how each of the {inputs.seeds.U} people moves names the seed",
        also=("ties_shared",),
    )


KINDS = ("location", "sequence", "time", "unique", "frequency", "probability", "proportion", "home_work")
KNOWN = (2, 3, 4)
TRIES = 8  # random sets of known slots per fake
TOLERANCE = 0.05
MOST_FAKES = 5000


def draw_slots(n: int, L: int, h: int, rng: np.random.Generator) -> Ints:
    """Return `TRIES` random sets of h slots for each of n fakes, each in the order of time, (n, TRIES, h)."""
    order = rng.random((n, TRIES, L)).argpartition(min(h, L) - 1, axis=2)[:, :, :h]
    return np.sort(order, axis=2)


def count_visits(r: Ints, R: int) -> Ints:
    """Return the visits of each trace to each place, (N, R)."""
    count = np.zeros((len(r), R), dtype=np.int64)
    np.add.at(count, (np.arange(len(r))[:, None], r), 1)
    return count


def home_and_work(count: Ints) -> Ints:
    """Return the two most visited places in one number, (N,); the lower number first among equals, -1 for no second."""
    first = count.argmax(axis=1)
    rest = count.copy()
    rest[np.arange(len(count)), first] = 0
    second = np.where(rest.max(axis=1) > 0, rest.argmax(axis=1), -1)
    return np.asarray(first * (count.shape[1] + 1) + second + 1)


def find_only_matches(fakes: Ints, known: Ints, people: People, R: int) -> Ints:
    """Return (F, 8, TRIES) the only user who fits what is known of a fake, -1 where none or several do."""
    V, (mine, rows) = compact(R, fakes, people.r)
    order = np.argsort(people.user, kind="stable")
    rows, user = rows[order], people.user[order]
    theirs = count_visits(rows, V)
    visitor, place = np.nonzero(theirs)
    by_place = np.argsort(place, kind="stable")
    start = np.searchsorted(place[by_place], np.arange(V + 1))
    out = np.full((len(fakes), len(KINDS), known.shape[1]), -1)
    for begin in range(0, len(fakes), 1024):
        part = slice(begin, begin + 1024)
        count = count_visits(mine[part], V)
        own_visits = np.take_along_axis(count, mine[part], axis=1)
        matches = np.empty((len(own_visits), len(KINDS) - 1, known.shape[1]), dtype=np.int64)
        single_matches(
            known[part], mine[part], own_visits, rows, user, theirs, start, visitor[by_place], TOLERANCE, matches
        )
        out[part, :-1] = matches
        out[part, -1] = _only_owner(home_and_work(count), home_and_work(theirs), user)[:, None]
    return out


def _only_owner(numbers: Ints, has: Ints, user: Ints) -> Ints:
    """Return the only user who has each of these numbers, -1 where none or several do."""
    pairs = np.unique(np.column_stack([has, user]), axis=0)
    values, first, times = np.unique(pairs[:, 0], return_index=True, return_counts=True)
    at = np.searchsorted(values, numbers).clip(max=len(values) - 1)
    return np.where((values[at] == numbers) & (times[at] == 1), pairs[first[at], 1], -1)


def background(inputs: AttackInputs) -> Finding:
    """Measure how often what is known of a fake fits exactly one person (A12)."""
    rng = inputs.rng("A12")
    rows = np.sort(rng.permutation(len(inputs.fakes))[:MOST_FAKES])
    fakes = inputs.fakes[rows]
    if inputs.role:
        n = min(inputs.seeds.U, inputs.strangers.U)
        people, strangers = (sample_people(group, n, rng) for group in (inputs.seeds, inputs.strangers))
        maker, one = np.full(len(fakes), -2), f"one of {inputs.who}"
    else:
        strangers = inputs.control.people
        # as many seed users as strangers at most
        keep = np.flatnonzero(inputs.seeds.user < strangers.U)
        people = People(inputs.seeds.r[keep], inputs.seeds.user[keep], min(inputs.seeds.U, strangers.U))
        maker, one = inputs.units[rows], "one seed user"
    known_numbers = [h for h in KNOWN if h <= fakes.shape[1]]
    # one interval for all kinds together
    level = 1 - (1 - LEVEL) / (len(KINDS) * len(known_numbers))
    gaps: dict[str, Rate] = {}
    shares: dict[str, list[float]] = {}
    own: dict[str, float] = {}
    for h in known_numbers:
        slots = draw_slots(len(fakes), fakes.shape[1], h, rng)
        matches, control = (find_only_matches(fakes, slots, group, inputs.R) for group in (people, strangers))
        for i, kind in enumerate(KINDS):
            name = f"{kind}_{h}"
            # how often each user is the only one to fit, as a share times U: the mean over users is the share
            mine, theirs = (
                np.asarray(np.bincount(x[:, i][x[:, i] >= 0], minlength=g.U) * (g.U / x[:, i].size))
                for x, g in ((matches, people), (control, strangers))
            )
            gaps[name] = difference(mine, theirs, level=level)
            shares[name] = [float(mine.mean()), float(theirs.mean())]
            own[name] = float((matches[:, i] == maker[:, None]).mean())
    # the most informative kind: the largest difference in units of its own uncertainty
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
