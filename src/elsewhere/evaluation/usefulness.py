"""
What fakes are good for: uses of location data in the order people ask, each *good*, *rough* or *not for this*.

Each use has a distance d in [0, 1] between two crowds of one size: the share of people, places, moves or stays that do
not match. Fakes are compared with **strangers**, real people of whom no fake was made, over random draws:

- *fakes*: d(strangers, fakes);
- *people*: d(strangers, seeds), what other real people of the same data give;
- *same*: d(strangers, a mixture of strangers and seeds): nothing can be expected to be closer;
- *chance*: d(strangers, seeds with that destroyed which the use asks for).

The verdict, by one rule for all uses and all data, starts from

    real = min(people, (same + chance) / 2)

what other real people give, or half way to chance where people differ so much that others are no help. With
excess = fakes - real and gap = chance - real, a use is

- *good* if excess <= min(GOOD, gap / 4): at most 10 in 100 more than real people, a quarter of the way to chance; and
  if fakes <= 1/2: more matches than does not;
- *rough* if excess <= min(ROUGH, gap / 2): at most 25 in 100 more, and nearer to real people than to chance; and if
  fakes <= 3/4, however few people there are to compare with;
- *not for this* otherwise;
- *cannot say* where not even the real data are told from chance (chance - same is at most 1 in 100, or 2 standard
  deviations over the draws) and fakes are at most 10 in 100 worse than either; where an input is missing; or where
  there are too few strangers.

An excess of up to NOISE = 2 in 100 is nobody's loss: it is good as long as it is nearer to real people than to chance.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from elsewhere.data.visits import Floats, Ints, Visits, share_map
from elsewhere.errors import require_rng
from elsewhere.evaluation import measures
from elsewhere.evaluation.measures import Crowd, Plan, largest_gap, misplaced, places_lost, unmatched
from elsewhere.evaluation.sides import join_people, with_visits

GOOD_FOR, ROUGH_FOR, NOT_FOR, UNKNOWN = "good", "rough", "not for this", "cannot say"
GOOD, ROUGH = 0.10, 0.25  # largest excess over real people, as a share of places, people or moves
GOOD_WAY, ROUGH_WAY = 0.25, 0.5  # the same, as a share of the way from real people to chance
MOST_GOOD, MOST_ROUGH = 0.5, 0.75  # largest distance, whatever real people give
NOISE = 0.02  # excess that nobody would notice
DRAWS = 10
FEWEST_STRANGERS = 10  # the figures of fewer would be those of single people
MOST_PEOPLE = 2_000  # of each side in a draw; more are sampled
TOP = 10  # busiest places; half of the visited ones where they are fewer than 20
LIFE = ("home_share", "main_share", "routine", "places_per_day", "new_places", "entropy")


@dataclass(frozen=True)
class Use:
    """
    One use of the data, and whether the fakes are good for it.

    Parameters
    ----------
    id, title
        "flows_places" and "Flows between places".
    verdict
        "good", "rough", "not for this" or "cannot say".
    fakes, people, same, chance
        Mean distance d over the draws, in [0, 1]; None where it cannot be measured.
    words
        In a sentence what the fakes reach, and what other real people and chance do; or why nothing can be said.

    """

    id: str
    title: str
    verdict: str
    fakes: float | None = None
    people: float | None = None
    same: float | None = None
    chance: float | None = None
    words: str = ""


@dataclass(frozen=True, eq=False)
class Usefulness:
    """
    The uses in the order people ask, and the field's six divergences.

    `divergences` are the Jensen-Shannon divergences of the field between strangers and fakes, and between strangers and
    seeds.
    """

    uses: tuple[Use, ...]
    divergences: dict[str, dict[str, float | None]] = field(repr=False)

    def __getitem__(self, use: str) -> Use:
        return {u.id: u for u in self.uses}[use]

    def __repr__(self) -> str:
        return f"Usefulness({', '.join(f'{u.id}: {u.verdict}' for u in self.uses)})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words, ready for JSON."""
        uses = {u.id: {name: value for name, value in vars(u).items() if name != "id"} for u in self.uses}
        return {"uses": uses, "divergences": self.divergences}

    def in_words(self) -> list[str]:
        """Return one line per use, or one for all if nothing can be said."""
        if len({u.words for u in self.uses}) == 1:
            return [f"{UNKNOWN}: {self.uses[0].words}"]
        return [f"{u.verdict:<12}  {u.title}: {u.words}" for u in self.uses]


def judge_usefulness(seeds: Visits, strangers: Visits | None, fakes: Visits, *, rng: np.random.Generator) -> Usefulness:
    """
    Say what fakes are good for, beside what other real people are.

    Parameters
    ----------
    seeds
        The people whom fakes were made of, or who taught the generator.
    strangers
        People of the same data of whom no fake was made; with fewer than ten of them nothing can be said.
    fakes
        The fakes, from any tool, on the same map or one of the same ids.
    rng
        Draws people.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> town = ew.simulate_town(users=200, locations=60, rng=np.random.default_rng(1)).visits
    >>> a, b, c = (town.of_users(np.arange(i, 200, 3)) for i in range(3))
    >>> judge_usefulness(a, b, c, rng=np.random.default_rng(2))["stays"].verdict
    'good'

    """
    require_rng(rng)
    if strangers is None or strangers.U < FEWEST_STRANGERS:
        n = 0 if strangers is None else strangers.U
        few = f"There are only {n} people to compare with; {FEWEST_STRANGERS} are needed."
        uses = tuple(Use(m.id, m.title, UNKNOWN, words=few) for m in MEASURES)
        return Usefulness(uses, {})
    seeds, strangers, fakes = (side.of_users(with_visits(side)) for side in share_map(seeds, strangers, fakes))
    plan = Plan.of(strangers)
    sides = {"seeds": seeds, "strangers": strangers, "fakes": fakes}
    crowds = {name: Crowd(visits, plan) for name, visits in sides.items()}
    lacking = {m.id: m.lacks(crowds["strangers"], crowds["fakes"]) for m in MEASURES}
    distances: dict[str, list[list[float]]] = {m.id: [] for m in MEASURES if not lacking[m.id]}
    for draw in rng.spawn(DRAWS):
        half, other, sample, mixed = _draw(seeds, strangers, fakes, plan, draw)
        for m in MEASURES:
            if m.id in distances:
                against = (sample, other, mixed, m.destroy(other, draw))
                distances[m.id].append([m.distance(half, crowd) for crowd in against])
    uses = tuple(
        _judge(m, crowds, np.array(distances[m.id])) if m.id in distances else Use(m.id, m.title, UNKNOWN, words=why)
        for m in MEASURES
        for why in (lacking[m.id],)
    )
    return Usefulness(
        uses,
        {name: measures.field_divergences(crowds["strangers"], crowds[name]) for name in ("fakes", "seeds")},
    )


def verdict(fakes: float, people: float, same: float, chance: float, spread: float = 0.0) -> str:
    """
    Return the word for a use, by the rule of this file; `spread` is the standard deviation of chance - same.

    Examples
    --------
    >>> [verdict(d, 0.1, 0.05, 0.6) for d in (0.1, 0.2, 0.21, 0.35, 0.36)]
    ['good', 'good', 'rough', 'rough', 'not for this']
    >>> verdict(0.1, 0.6, 0.60, 0.61), verdict(0.55, 0.55, 0.4, 0.9)
    ('cannot say', 'rough')

    """
    slack = 1e-9  # a bound is reached by counts, and counts have no last bit
    if not chance - same > max(NOISE / 2, 2 * spread) + slack:
        return NOT_FOR if fakes > max(people, chance) + GOOD + slack else UNKNOWN
    real, good, rough = bounds(people, same, chance)
    excess, good = fakes - real, max(good, min(NOISE, rough))
    if excess <= good + slack and fakes <= MOST_GOOD + slack:
        return GOOD_FOR
    return ROUGH_FOR if excess <= rough + slack and fakes <= MOST_ROUGH + slack else NOT_FOR


def bounds(people: float, same: float, chance: float) -> tuple[float, float, float]:
    """Return what other real people give, and the largest excess over it that is good, and rough."""
    real = min(people, (same + chance) / 2)
    return real, min(GOOD, GOOD_WAY * (chance - real)), min(ROUGH, ROUGH_WAY * (chance - real))


def _draw(seeds: Visits, strangers: Visits, fakes: Visits, plan: Plan, rng: np.random.Generator) -> list[Crowd]:
    """Draw strangers, seeds, fakes, and half strangers and half seeds: as many people of each."""
    n = min(seeds.U, strangers.U, fakes.U, MOST_PEOPLE)

    def some(people: Visits, n: int) -> Visits:
        return people.of_users(rng.choice(people.U, n, replace=False))

    half = some(strangers, n)
    other, sample = some(seeds, n), some(fakes, n)
    mixed = join_people(some(half, n // 2), some(seeds, n - n // 2))
    return [Crowd(people, plan) for people in (half, other, sample, mixed)]


# -- what chance gives: that destroyed which a use asks for


def _at_random_places(crowd: Crowd, rng: np.random.Generator) -> Crowd:
    """Exchange the places of each person for random ones of those that are visited; times and moves as they were."""
    v = crowd.visits
    places = np.flatnonzero(np.bincount(v.place, minlength=v.R))
    position = np.zeros(v.R, dtype=np.int64)
    position[places] = rng.permutation(len(places))
    shift = rng.integers(len(places), size=v.U)
    order = rng.permutation(places)
    return replace(crowd, visits=v.replace(place=order[(position[v.place] + shift[v.user]) % len(places)]))


def _times_shared_out(crowd: Crowd, rng: np.random.Generator) -> Crowd:
    """Share out the time of all stays at random among them."""
    lengths = crowd.stay_lengths
    out = replace(crowd)
    out.__dict__["stay_lengths"] = rng.exponential(lengths.mean() if len(lengths) else 1.0, len(lengths))
    return out


def _to_random_destinations(crowd: Crowd, rng: np.random.Generator) -> Crowd:
    """Exchange the destinations of all moves: how many leave and reach each place as it was."""
    out, (origin, target, at) = replace(crowd), crowd.moves
    out.__dict__["moves"] = origin, rng.permutation(target), at
    return out


def _among_all_people(crowd: Crowd, rng: np.random.Generator) -> Crowd:
    """Deal out all visits anew among the people: the crowd as it was, and nobody's life."""
    return replace(crowd, visits=crowd.visits.replace(user=rng.permutation(crowd.visits.user)))


@dataclass(frozen=True)
class Measure:
    """One use: its distance, how to destroy what it asks for, what it needs, and words for the share that is wrong."""

    id: str
    title: str
    distance: Callable[[Crowd, Crowd], float]
    destroy: Callable[[Crowd, np.random.Generator], Crowd]
    needs: tuple[str, ...]
    words: str

    def lacks(self, real: Crowd, fakes: Crowd) -> str:
        """Return which input the use lacks, in a sentence; "" if it has all."""
        have_places = np.count_nonzero(np.bincount(real.visits.place)) >= 4
        tests = {
            "places": (have_places, "The people visit fewer than 4 places."),
            "map": (real.plan.locations.has_coordinates, "The places have no coordinates."),
            "moves": (len(real.moves[0]) > 0, "None of the people moves."),
            "stays": (real.timed, "The records do not say how long people stay."),
            "days": (real.days > 2 * real.visits.U, "The people were seen on too few days."),
            "kinds": ("kinds" in real.plan.zones, "The places have no categories."),
        }
        return next((why for need, (there, why) in tests.items() if need in self.needs and not there), "")


def _top(crowd: Crowd) -> int:
    return min(TOP, int(np.count_nonzero(crowd.visits_by_place())) // 2)


def _flow_distance(level: str) -> Callable[[Crowd, Crowd], float]:
    def distance(a: Crowd, b: Crowd) -> float:
        zone: Ints = a.plan.zones[level]
        return unmatched(a.flows(zone), b.flows(zone), 1 / a.days, 1 / b.days)

    return distance


def _life_distance(a: Crowd, b: Crowd) -> float:
    return float(np.mean([largest_gap(a.people[name], b.people[name]) for name in LIFE]))


def _hours_distance(level: str) -> Callable[[Crowd, Crowd], float]:
    return lambda a, b: misplaced(a.presence(a.plan.zones[level]), b.presence(b.plan.zones[level]))


LEVELS = {"quarters": ("map", "moves"), "neighbourhoods": ("map", "moves"), "single places": ("moves",)}
MEASURES = (
    Measure("hours", "How many are where, and when",
            _hours_distance("blocks"), _at_random_places, ("places",),
            "of 100 people are in another part of the map than real people at that hour"),
    Measure("places", "Busiest places",
            lambda a, b: places_lost(a.visits_by_place(), b.visits_by_place(), _top(a)), _at_random_places,
            ("places",), "of 100 busiest places are missing"),
    *(
        Measure(f"flows_{words.split()[-1]}", f"Flows between {words}", _flow_distance(words.split()[-1]),
                _to_random_destinations, needs, f"of 100 moves between {words} have no counterpart")
        for words, needs in LEVELS.items()
    ),
    Measure("trips", "Lengths of trips", lambda a, b: largest_gap(a.trip_lengths, b.trip_lengths), _at_random_places,
            ("map", "moves"), "of 100 trips are too long or too short"),
    Measure("stays", "Lengths of stays", lambda a, b: largest_gap(a.stay_lengths, b.stay_lengths), _times_shared_out,
            ("stays",), "of 100 stays are too long or too short"),
    Measure("lives", "How people live: home, routine, new places", _life_distance, _among_all_people,
            ("days",), "of 100 people live otherwise"),
    Measure("kinds", "Categories by hour", _hours_distance("kinds"), _at_random_places,
            ("kinds",), "of 100 people are at another category of place than real people at that hour"),
)  # fmt: skip


def _judge(m: Measure, crowds: dict[str, Crowd], values: Floats) -> Use:
    """Return the verdict on the means over the draws, and its words."""
    fakes, people, same, chance = (float(v) for v in values.mean(axis=0))
    word = verdict(fakes, people, same, chance, float((values[:, 3] - values[:, 2]).std(ddof=1)))
    words = f"{100 * fakes:.0f} {m.words}; among real people {100 * people:.0f}, by chance {100 * chance:.0f}."
    if word == UNKNOWN:
        words = f"Not even the real data are told from chance: {words}"
    return Use(m.id, m.title, word, fakes, people, same, chance, words)
