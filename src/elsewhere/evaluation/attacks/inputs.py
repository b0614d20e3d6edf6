"""
The inputs of every attack: seed people, hold-out people, fakes, the seed of each fake, and three comparisons.

- the *control* runs the same attack with a hold-out person in the place of each fake's seed;
- the *null generator* draws walks over the moves of all people together, without any seed: whatever an attack reaches
  on them is chance;
- *fresh* real people, the hold-out, stand in the place of the fakes.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.data.slots import Traces, hold_places
from elsewhere.data.visits import Floats, Ints, Locations
from elsewhere.errors import InvalidParameter, InvalidTraces, NotEnoughUsers
from elsewhere.paper.semantic_clustering import labels_of
from elsewhere.pool import put_on_map
from elsewhere.sorting import count_users

# streams of random numbers: attacks up to A21 have those of their numbers, the comparisons have their own, and attacks
# after A21 those behind all these: children of the stream of A21, so that adding an attack changes no other stream
NULL, CONTROL, FRESH, STREAMS = 0, 22, 23, 24
LATER = 40  # streams of attacks after A21


class People(NamedTuple):
    """Traces (N, L) without gaps, and the user 0 .. U-1 of each row."""

    r: Ints
    user: Ints
    U: int


class Link(NamedTuple):
    """Fakes (F, L), and the row of `people` from which each comes, or is pretended to come."""

    fakes: Ints
    owner: Ints
    people: People

    @property
    def user(self) -> Ints:
        """Return the user behind each fake."""
        return self.people.user[self.owner]


@dataclass(frozen=True, eq=False, repr=False)
class AttackInputs:
    """
    The inputs of an audit, checked; `of` makes one.

    `roles` holds the same for other people in the file, who are in the place of `seeds` there though no fake was made
    of them (`role` is their name, `maker` the seed user of each fake, `file` how many people of the whole file visit
    each place); or why they cannot be attacked.
    """

    seeds: People
    holdout: People | None
    fakes: Ints
    owner: Ints | None
    life: Ints
    dates: Mapping[str, Any]
    locations: Locations
    R: int  # number of places
    minutes: Floats
    hour: Ints  # (L,) the part of the day of each slot: clock hours, whatever the step
    step_minutes: float
    seeds_given: Any
    label: Ints | None
    sampler: Any
    generator: Any
    pool: Traces | None
    attempts: Ints | None
    listed: bool
    model: Any
    parameters: Mapping[str, Any]
    streams: tuple[np.random.Generator, ...]
    notes: tuple[str, ...]
    roles: Mapping[str, "AttackInputs | str"] = field(default_factory=dict)
    role: str = ""
    maker: Ints | None = None
    file: Ints | None = None

    def __repr__(self) -> str:
        # an executor may log its work: sizes only
        return f"AttackInputs({self.seeds.U} people, {len(self.fakes)} fakes)"

    @cached_property
    def seed_days(self) -> Traces:
        """Return the seed people as `Traces`, under labels that no hold-out person has."""
        return self.as_traces(self.seeds, "seeds")

    @cached_property
    def stranger_days(self) -> Traces:
        """Return the hold-out people as `Traces`."""
        return self.as_traces(self.strangers, "holdout")

    def as_traces(self, people: People, group: str) -> Traces:
        """Return these people with the clock of the audit and the dates of their `group`; labels are (group, user)."""
        start = f"{int(self.minutes[0]) // 60:02d}:{int(self.minutes[0]) % 60:02d}"
        return Traces(
            people.r,
            self.locations,
            users=[(group, u) for u in people.user.tolist()],
            dates=self.dates.get(group),
            step_minutes=self.step_minutes,
            start=start,
        )

    def rng(self, attack: str) -> np.random.Generator:
        """Return the stream of one attack, from its beginning: neither other attacks nor a first try change it."""
        number = int(attack[1:])
        return deepcopy(self.streams[number if number < CONTROL else number + STREAMS - CONTROL])

    @property
    def who(self) -> str:
        """Return the people under attack, in words."""
        return f"the {self.role}" if self.role else "the people behind the fakes"

    @property
    def units(self) -> Ints:
        """
        Return (F,) the number of the seed user behind each fake, or of the fake where that is not known: units
        of sampling.
        """
        if self.maker is not None:
            return self.maker
        return np.arange(len(self.fakes)) if self.owner is None else self.main.user

    def of_role(self, role: str, people: People, file: Ints) -> "AttackInputs":
        """Return these inputs with the people of another role in the file in the place of the seeds."""
        return replace(
            self,
            seeds=people,
            owner=None,
            generator=None,
            roles={},
            role=role,
            streams=tuple(stream.spawn(1)[0] for stream in self.streams),
            maker=self.units,
            file=file,
            parameters={**self.parameters, "sets": self.dataset},
        )

    @property
    def strangers(self) -> People:
        """Return the hold-out people, for attacks that run only when there are any."""
        if self.holdout is None:
            raise InvalidParameter("`holdout` must be given for this attack.", parameter="holdout")
        return self.holdout

    @cached_property
    def main(self) -> Link:
        """Link every fake with the seed it was made from."""
        if self.owner is None:
            raise InvalidParameter("`seed_index` must be given for this attack.", parameter="seed_index")
        return Link(self.fakes, self.owner, self.seeds)

    @cached_property
    def control(self) -> Link:
        """
        Link every fake with a hold-out person in the place of its maker, as many candidates where there are
        enough.
        """
        rng, people, link = deepcopy(self.streams[CONTROL]), self.strangers, self.main
        users = rng.permutation(people.U)[: self.seeds.U]
        stand_in = users[np.arange(self.seeds.U) % len(users)]
        number = np.full(people.U, -1)
        number[np.sort(users)] = np.arange(len(users))
        rows = np.flatnonzero(number[people.user] >= 0)
        group = People(people.r[rows], number[people.user[rows]], len(users))
        # every seed row gets one row of the stand-in of its user, at random
        order = np.argsort(group.user, kind="stable")
        start = np.searchsorted(group.user[order], np.arange(group.U + 1))
        user = number[stand_in[self.seeds.user]]
        row_of = order[start[user] + rng.integers(np.diff(start)[user])]
        return Link(self.fakes, row_of[link.owner], group)

    @cached_property
    def null(self) -> Link:
        """Link walks without a seed, as many as there are fakes, said to come from the same seeds."""
        return Link(self.null_walks(deepcopy(self.streams[NULL])), self.main.owner, self.seeds)

    @cached_property
    def fresh(self) -> Link:
        """Link days of hold-out people in the place of the fakes, said to come from the same seeds."""
        rng, people, link = deepcopy(self.streams[FRESH]), self.strangers, self.main
        rounds = -(-len(link.fakes) // len(people.r))
        rows = np.concatenate([rng.permutation(len(people.r)) for _ in range(rounds)])[: len(link.fakes)]
        return Link(people.r[rows], link.owner, self.seeds)

    def null_walks(self, rng: np.random.Generator) -> Ints:
        """Return as many free walks as there are fakes."""
        return free_walks(
            [self.seeds, self.strangers], len(self.fakes), R=self.R, m_min=self.parameters["m_min"], rng=rng
        )

    @cached_property
    def dataset(self) -> Ints:
        """Return the number of each fake among those of its seed: fakes with one number make one dataset."""
        if "sets" in self.parameters:
            return np.asarray(self.parameters["sets"])
        return np.zeros(len(self.fakes), dtype=np.int64) if self.owner is None else number_within(self.owner)

    @staticmethod
    def of(
        seeds: Traces | ArrayLike,
        holdout: Traces | ArrayLike | None,
        fakes: Any,
        seed_index: ArrayLike | None,
        *,
        rng: np.random.Generator,
        locations: Locations | None = None,
        model: Any = None,
        classes: Any = None,
        sampler: Any = None,
        generator: Any = None,
        pool: Any = None,
        attempts: ArrayLike | None = None,
        parameters: Mapping[str, Any],
        roles: Mapping[str, Any] | None = None,
    ) -> "AttackInputs":
        """Check all inputs, once."""
        if not isinstance(rng, np.random.Generator):
            raise InvalidParameter(f"`rng` must be a `numpy.random.Generator`, got {type(rng).__name__}.")
        if locations is not None and not isinstance(locations, Locations):
            raise InvalidParameter(f"`locations` must be a `Locations`, got {type(locations).__name__}.")
        if pool is not None and not isinstance(getattr(pool, "traces", pool), Traces):
            raise InvalidParameter(f"`pool` must be a `Pool`, got {type(pool).__name__}.", parameter="pool")
        pool_on_map = put_on_map(pool, locations, seeds, holdout)
        table = fakes if isinstance(fakes, Traces) else getattr(fakes, "r", fakes)
        if seed_index is None:
            seed_index = getattr(fakes, "seed", None)
        others = {name: people for name, people in (roles or {}).items() if not isinstance(people, str)}
        sides = {"seeds": seeds, "holdout": holdout, "fakes": table, "pool": pool_on_map}
        sides |= {f"roles[{name}]": people for name, people in others.items()}
        tables = on_one_map(sides, locations)
        where = tables["seeds"].locations
        if tables["seeds"].L < 2:
            raise InvalidTraces("an audit needs traces of at least 2 slots, got 1.", code="E_SHAPE")
        for name in ("seeds", "holdout", *(f"roles[{name}]" for name in others)):
            if name in tables and tables[name].U < 2:
                raise NotEnoughUsers(f"`{name}` must hold at least 2 users, got {tables[name].U}.")
        clock = next((t for t in sides.values() if isinstance(t, Traces)), tables["seeds"])
        gaps = sum(int(np.count_nonzero(t.r < 0)) for t in tables.values())
        notes = (f"{gaps} missing slots were filled with the last known place.",) if gaps else ()
        owner = None if seed_index is None else seed_rows(seed_index, len(tables["fakes"]), len(tables["seeds"]))
        life, streams = getattr(fakes, "life", None), rng.spawn(STREAMS)
        inputs = AttackInputs(
            seeds=people_of(tables["seeds"]),
            holdout=people_of(tables["holdout"]) if holdout is not None else None,
            fakes=hold_places(tables["fakes"].r),
            owner=owner,
            life=np.asarray(tables["fakes"].user if life is None else np.unique(life, return_inverse=True)[1]),
            dates={name: tables[name].dates for name in ("seeds", "holdout", "fakes") if name in tables},
            locations=where,
            R=len(where),
            minutes=clock.minutes(),
            hour=np.asarray(np.unique(clock.minutes() // 60, return_inverse=True)[1]),
            step_minutes=clock.step_minutes,
            seeds_given=seeds if isinstance(seeds, Traces) else tables["seeds"].r,
            label=None if classes is None else labels_of(classes, len(where)),
            sampler=sampler,
            generator=generator,
            pool=tables.get("pool"),
            attempts=None if attempts is None else _counts(attempts),
            # what `generate_fakes` returns is private: it is shuffled and loses its seeds when it is published
            listed=not hasattr(fakes, "seed"),
            model=model,
            parameters=parameters,
            streams=(*streams, *streams[CONTROL - 1].spawn(LATER)),
            notes=notes,
        )
        if not roles:
            return inputs
        people = {name: people_of(tables[f"roles[{name}]"]) for name in others}
        file = np.sum([count_users(p.user, p.r, inputs.R) for p in (inputs.seeds, *people.values())], axis=0)
        alone = "no people set aside are left to be the strangers" if holdout is None else ""
        return replace(
            inputs,
            roles={
                name: days if isinstance(days, str) else alone or inputs.of_role(name, people[name], file)
                for name, days in roles.items()
            },
        )


def free_walks(groups: list[People], n: int, *, R: int, m_min: int, rng: np.random.Generator) -> Ints:
    """
    Return `n` walks over the moves of all groups together, from their first places: the null generator.

    Every user counts alike, whatever the group and the number of rows, so that the walks favour nobody. A place with
    fewer than `m_min` users in any group is left out, and a walk that has nowhere to go starts again.
    """
    r = np.concatenate([g.r for g in groups])
    weight = np.concatenate([1 / np.bincount(g.user)[g.user] for g in groups])
    known = np.min([count_users(g.user, g.r, R) for g in groups], axis=0) >= m_min
    if not known.any():
        known[:] = True
    first = np.bincount(r[:, 0], weight, R) * known
    if first.sum() == 0:
        first = np.bincount(r.ravel(), np.repeat(weight, r.shape[1]), R) * known
    start = np.cumsum(first) / first.sum()
    step = known[r[:, :-1]] & known[r[:, 1:]]
    key, index = np.unique((r[:, :-1] * R + r[:, 1:])[step], return_inverse=True)
    mass = np.bincount(index, np.broadcast_to(weight[:, None], step.shape)[step], len(key))
    origin = key // R
    leaving = np.bincount(origin, mass, R)
    running = np.cumsum(mass) - np.concatenate([[0.0], np.cumsum(leaving)])[origin]
    # row number plus the law within the row: one sorted list for all rows
    edge = origin + running / np.maximum(leaving[origin], 1e-300)
    edge[np.flatnonzero(np.diff(origin, append=R))] = np.unique(origin) + 1
    walks = np.empty((n, r.shape[1]), dtype=np.int64)
    walks[:, 0] = np.searchsorted(start, rng.random(n), side="right").clip(max=R - 1)
    for t in range(1, r.shape[1]):
        here = walks[:, t - 1]
        u = rng.random(n)
        stuck = leaving[here] == 0
        at = np.searchsorted(edge, here + u * (1 - 1e-9), side="right").clip(max=max(len(key) - 1, 0))
        walks[:, t] = key[at] % R if len(key) else here
        walks[stuck, t] = np.searchsorted(start, u[stuck], side="right").clip(max=R - 1)
    return walks


def sample_people(people: People, n: int, rng: np.random.Generator) -> People:
    """Return `n` of these people, drawn at random and numbered anew; all of them where there are no more than n."""
    if people.U <= n:
        return people
    number = np.full(people.U, -1)
    number[np.sort(rng.permutation(people.U)[:n])] = np.arange(n)
    rows = np.flatnonzero(number[people.user] >= 0)
    return People(people.r[rows], number[people.user[rows]], n)


def join_people(a: People, b: People) -> People:
    """Return the users of `a`, then those of `b`."""
    return People(np.concatenate([a.r, b.r]), np.concatenate([a.user, b.user + a.U]), a.U + b.U)


def number_within(owner: Ints) -> Ints:
    """Return the number of each entry among those with the same value, in order: 0 for the first, 1 for the next ..."""
    order = np.argsort(owner, kind="stable")
    owners = owner[order]
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order)) - np.searchsorted(owners, owners)
    return number


def on_one_map(sides: Mapping[str, Any], locations: Locations | None = None) -> dict[str, Traces]:
    """Return `Traces` and plain arrays as `Traces` on one map, of one length; None is left out."""
    there = {name: value for name, value in sides.items() if value is not None}
    maps = [t.locations for t in there.values() if isinstance(t, Traces)] + ([locations] if locations else [])
    if any(m != maps[0] for m in maps):
        raise InvalidTraces("seeds, hold-out, fakes and `locations` must be on one map.", code="E_MISMATCH")
    where = maps[0] if maps else Locations(n=_places_in(there))
    tables: dict[str, Traces] = {}
    for name, value in there.items():
        try:
            tables[name] = value if isinstance(value, Traces) else Traces(value, where)
        except InvalidTraces as error:
            raise InvalidTraces(error.args[0].replace("`r`", f"`{name}`"), code=error.code) from None
    lengths = sorted({t.L for t in tables.values()})
    if len(lengths) > 1:
        names = ", ".join(f"`{name}`" for name in there)
        raise InvalidTraces(f"{names} must have one number of slots, got {lengths}.", code="E_SHAPE")
    return tables


def _places_in(tables: Mapping[str, Any]) -> int:
    try:
        return max(1, 1 + max(int(np.max(t)) for t in tables.values()))
    except (TypeError, ValueError):
        names = ", ".join(f"`{name}`" for name in tables)
        raise InvalidTraces(
            f"{names} must be `Traces` or tables of whole numbers of places.", code="E_NUMBER"
        ) from None


def people_of(traces: Traces) -> People:
    """Return the people of these traces, gaps filled."""
    return People(hold_places(traces.r), np.asarray(traces.user, dtype=np.int64), traces.U)


def seed_rows(seed_index: ArrayLike, F: int, S: int | None = None) -> Ints:
    """Check `seed_index` and return it: F whole numbers, rows of S seeds."""
    rows = np.asarray(seed_index)
    if rows.shape != (F,) or rows.dtype.kind not in "iu":
        raise InvalidParameter(
            f"`seed_index` must hold {F} whole numbers, one per fake, got shape {rows.shape}, dtype {rows.dtype}.",
            code="E_SHAPE",
            parameter="seed_index",
        )
    if rows.min() < 0 or (S is not None and rows.max() >= S):
        last = "" if S is None else f", in 0 .. {S - 1}"
        raise InvalidParameter(f"`seed_index` must hold rows of `seeds`{last}.", code="E_INDEX", parameter="seed_index")
    return rows.astype(np.int64)


def _counts(attempts: ArrayLike) -> Ints:
    tries = np.atleast_1d(np.asarray(attempts))
    if tries.ndim != 1 or tries.dtype.kind not in "iu" or tries.min(initial=0) < 0:
        raise InvalidParameter(
            "`attempts` must hold whole numbers, at least 0, one per seed.", code="E_SHAPE", parameter="attempts"
        )
    return tries.astype(np.int64)
