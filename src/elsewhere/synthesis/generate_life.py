"""
GenerateFake over a life: type, diary, mapping, ways, privacy test; what fails is tried again.

    type      the seed gives its type (at least k people alike), its span of days and its kind of record
    diary     a diary of classes, drawn from the law of the type (diaries.py)
    mapping   places for its own places, drawn jointly (mapping.py)
    ways      what is seen on the way (ways.py)
    test      the privacy test of a life (E75 ff.)
"""

from dataclasses import dataclass, field

import numpy as np

from elsewhere.data.visits import Ints, Visits
from elsewhere.synthesis import _life_kernels as kernels
from elsewhere.synthesis.diaries import TRIES, Diaries, learn_diaries
from elsewhere.synthesis.groups import Groups, Stays, find_groups, find_stays
from elsewhere.synthesis.mapping import LEAST, SWEEPS, Where, learn_mapping
from elsewhere.synthesis.ways import learn_ways

MOST_OWN = 400  # own places of a life
BLOCK = 64  # lives drawn by one call


@dataclass(frozen=True, eq=False)
class LifeModel:
    """Everything that is learnt from the seeds."""

    stays: Stays = field(repr=False)
    groups: Groups = field(repr=False)
    diaries: Diaries = field(repr=False)
    where: Where = field(repr=False)
    ways: kernels.Passages = field(repr=False)


def learn_lives(visits: Visits, *, k: int = 10, rng: np.random.Generator) -> LifeModel:
    """Learn types, the law of diaries, the mapping and the ways from these people."""
    stays = find_stays(visits)
    groups = find_groups(stays, k=k, rng=rng)
    diaries = learn_diaries(stays, groups, k=k, rng=rng)
    where = learn_mapping(stays, groups, visits.locations, rng)
    return LifeModel(stays, groups, diaries, where, learn_ways(stays, where.ground, rng))


def draw_block(model: LifeModel, seeds: Ints, numbers: Ints, attempt: int, key: Ints) -> tuple[Ints, ...]:
    """Draw one life per seed; return life, start, end, place, class and own place of every record, and what is good."""
    d, where = model.diaries, model.where
    order = np.concatenate([np.arange(where.mine_first[s], where.mine_first[s + 1]) for s in seeds])
    mine_first = np.append(0, np.cumsum(np.diff(where.mine_first)[seeds]))
    days = int((d.last_day[seeds] - d.first_day[seeds] + 1).sum())
    room = int(days * min(d.longest + 20, 250) * 2 + 64) * 3
    most_day = min(2 * d.longest + 8, 250)
    while True:
        columns = [np.zeros(room, dtype=np.int64) for _ in range(6)]
        first, good = np.zeros(len(seeds) + 1, dtype=np.int64), np.zeros(len(seeds), dtype=bool)
        n = kernels.draw_lives(
            d.law, where.ground, model.ways, d.mix, d.spread, model.groups.type_of[seeds], d.first_day[seeds],
            d.last_day[seeds], d.lo, d.hi, d.border, attempt, numbers, key, TRIES, SWEEPS, where.mine[order],
            mine_first, MOST_OWN, most_day, LEAST, *columns, first, good,
        )  # fmt: skip
        if n >= 0:
            return (*(column[:n] for column in columns), first, good)
        room *= 2


@dataclass(frozen=True, eq=False)
class LivesResult:
    """Fakes of lives."""

    visits: Visits
    seed_of_life: Ints


def generate_lives(
    visits: Visits, *, seeds: Ints | None = None, k: int = 10, rng: np.random.Generator
) -> LivesResult:
    """Generate one life per seed."""
    if seeds is None:
        seeds = np.sort(rng.permutation(visits.U)[: max(1, round(0.7 * visits.U))])
    model = learn_lives(visits.of_users(seeds), k=k, rng=rng)
    key = rng.integers(0, 2**63, 2).astype(np.uint64)
    parts = []
    for at in range(0, len(seeds), BLOCK):
        numbers = np.arange(at, min(at + BLOCK, len(seeds)))
        parts.append(draw_block(model, numbers, numbers, 0, key))
    life, start, end, place = (np.concatenate([p[j] for p in parts]) for j in range(4))
    return LivesResult(Visits(life, start, end, place, visits.locations, users=np.arange(len(seeds))), seeds)
