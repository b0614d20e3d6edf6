"""
`Fakes`, what a run has made, for the owner alone; and `publish`, the only door to the public side.

Publishing drops seeds, order, likelihoods and entropy, gives every life a random id, numbers the places anew, and keeps
a budget per seed (E59). Links say which life was made of whom: the private table `fake, seed` that an audit needs and
nobody else may see.
"""

import csv
import io
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere._version import __version__
from elsewhere.checkpoint import derive_bytes, derive_rng
from elsewhere.data.visits import Codes, Floats, Ints, Visits
from elsewhere.errors import InvalidParameter, PublicationRefused, require_choice, require_whole
from elsewhere.pool import Pool
from elsewhere.synthesis.certificate import NOTHING_PROVEN, Certificate


class Learnt(NamedTuple):
    """What the paper's method learns: the aggregate model, and the classes of places."""

    model: Any
    classes: Any


@dataclass(frozen=True, eq=False)
class Fakes:
    """
    The accepted fakes of a run (private side).

    Parameters
    ----------
    visits
        What the fakes do; user = number of the life.
    seed_of_life
        (lives,) person of the data that each life was made of; -1 where it was made of nobody in particular.
    method, parameters
        How they were made.
    seeds
        Persons of the data who could be a seed; whoever is not among them is a stranger to the fakes.
    verdicts
        What the privacy test measured on each life.
    attempts
        (people,) tries per person of the data.
    tally
        Attempts by outcome: tested, passed, and rejected by each rule.
    certificate
        What is proven of the whole release, and of whom.
    laboratory
        Whether a given `rng` made the run repeatable: such fakes are not for publishing (R2).
    notes
        What the run decided by itself and a reader should know.
    loglik
        (lives,) ln Pr{fake} per slot under the aggregate model (paper); None where there is none.
    r, seed, life
        The fakes in slots, row by row, the row of the data behind each, and its life; empty where data were `Visits`.
    learnt, mechanism
        Model and classes of the paper's method; the noisy sums of certified fakes, for their audit. Not published.
    published
        (lives,) which are published already; the one array that changes.

    """

    visits: Visits
    seed_of_life: Ints = field(repr=False)
    method: str
    parameters: Mapping[str, Any] = field(repr=False)
    seeds: Ints = field(repr=False)
    verdicts: Sequence[Any] = field(default=(), repr=False)
    attempts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    tally: Mapping[str, int] = field(default_factory=dict)
    certificate: Certificate = field(default=NOTHING_PROVEN, repr=False)
    laboratory: bool = False
    notes: tuple[str, ...] = ()
    loglik: Floats | None = field(default=None, repr=False)
    r: Codes = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32), repr=False)
    seed: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    life: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)
    learnt: Learnt | None = field(default=None, repr=False)
    mechanism: Any = field(default=None, repr=False)
    published: NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "published", np.zeros(self.visits.U, dtype=bool))

    def __len__(self) -> int:
        return self.visits.U

    def __repr__(self) -> str:
        return f"Fakes({len(self)} lives, {len(self.visits)} visits, method {self.method!r})"

    @property
    def covered(self) -> bool:
        """Tell whether a theorem covers the whole release: all lives are then published, once."""
        return bool(np.all(self.seed_of_life < 0))

    @property
    def kappa(self) -> int:
        """Return the number of semantic classes of the paper's method; 0 where there are none."""
        return 0 if self.learnt is None else int(self.learnt.classes.kappa)


def publish(
    fakes: Fakes,
    *,
    per_seed: int = 1,
    choose: Literal["uniform", "likelihood"] = "uniform",
    laboratory: bool = False,
    rng: np.random.Generator | None = None,
) -> Pool:
    """
    Return a pool of fakes that may leave the house: no seed, no order, no likelihood, no entropy.

    Parameters
    ----------
    fakes
        As `generate_fakes` makes them.
    per_seed
        Budget of each seed, over all publications of these fakes (E59). Where a theorem covers the whole release, all
        lives are published.
    choose
        "uniform", or "likelihood": without replacement with weights exp(loglik) (E62); a likelihood of 0 counts as the
        smallest of the others.
    laboratory
        Publish a laboratory run all the same; the pool is then stamped as reproducible.
    rng
        Chooses and shuffles; by default the operating system's entropy. With it the pool is a laboratory pool.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> town = ew.simulate_town(users=60, days=7, locations=100, rng=np.random.default_rng(1))
    >>> pool = ew.publish(ew.generate_fakes(town.visits))
    >>> len(pool)
    42

    """
    return publish_with_links(fakes, per_seed=per_seed, choose=choose, laboratory=laboratory, rng=rng)[0]


def publish_with_links(
    fakes: Fakes,
    *,
    per_seed: int = 1,
    choose: str = "uniform",
    laboratory: bool = False,
    rng: np.random.Generator | None = None,
    secret: bytes | None = None,
    reading: Mapping[str, Any] | None = None,
) -> tuple[Pool, Ints]:
    """
    Return the pool of `publish`, and for each of its lives the number it has in `fakes`: private, for the audit.

    `secret` are 32 bytes that decide all draws, so that a run which was stopped publishes the same pool; by default
    they are the operating system's, or those of `rng`. `reading` is what the manifest says of how the data were read.
    """
    if not isinstance(fakes, Fakes):
        raise InvalidParameter(
            f"`fakes` must be what `generate_fakes` returns, got {type(fakes).__name__}.", parameter="fakes"
        )
    require_whole("per_seed", per_seed, 1)
    require_choice("choose", choose, ("uniform", "likelihood"))
    reproducible = fakes.laboratory or rng is not None
    if reproducible and not laboratory:
        raise PublicationRefused(
            "a run with a given `rng` can be repeated by whoever knows it, so it is not for publishing; generate "
            "without `rng`, or pass `laboratory=True` to keep it as a laboratory result.",
            code="E_LABORATORY",
            parameter="laboratory",
        )
    secret = secret or (secrets.token_bytes(32) if rng is None else rng.bytes(32))
    draw = derive_rng(secret, "choice")
    if fakes.covered:
        if fakes.published.any():
            raise PublicationRefused("these fakes are published already.", code="E_BUDGET")
        lives = np.arange(len(fakes))
    else:
        lives = _choose_within_budget(fakes, per_seed, choose, draw)
    fakes.published[lives] = True
    lives = draw.permutation(lives)
    # ids are public: from them nobody finds the other draws, or the order of the seeds
    ids = derive_bytes(secret, "ids", 16 * len(lives))
    chosen = fakes.visits.of_users(lives)
    places, place = np.unique(chosen.place, return_inverse=True)
    order = _public_order(chosen.locations.select(places))
    number = np.empty(len(places), dtype=np.int64)
    number[order] = np.arange(len(places))
    visits = chosen.replace(
        place=number[place],
        locations=chosen.locations.select(places[order]),
        users=[ids[16 * i : 16 * i + 16].hex() for i in range(len(lives))],
        preparation=None,
    )
    certificate = fakes.certificate.in_laboratory() if reproducible else fakes.certificate
    provenance = {
        "elsewhere": __version__,
        "method": fakes.method,
        "parameters": dict(fakes.parameters),
        "reading": dict(reading or {}),
        "reproducible": reproducible,
        "per_seed": None if fakes.covered else per_seed,
        "notes": list(fakes.notes),
        "certificate": certificate.to_dict(),
    }
    return Pool(visits, provenance), lives


def _public_order(places: Any) -> Ints:
    """Return the places in the order of their ids, else of their positions, which tells nothing private."""
    if places.ids is not None:
        return np.array(sorted(range(len(places)), key=places.ids.__getitem__), dtype=np.int64)
    if places.coordinates:
        sides = places.xy.T if places.xy is not None else (places.lat, places.lon)
        return np.asarray(np.lexsort(tuple(reversed(list(sides)))), dtype=np.int64)
    return np.arange(len(places))


def _choose_within_budget(fakes: Fakes, per_seed: int, choose: str, rng: np.random.Generator) -> Ints:
    """Return the lives to publish, so many of each seed as its budget has left."""
    seed, given_out = fakes.seed_of_life, fakes.published
    fresh = np.flatnonzero(~given_out)
    budget = per_seed - np.bincount(seed[given_out], minlength=int(seed.max()) + 1)
    over = np.unique(seed[budget[seed] <= 0])
    if len(over) or len(fresh) == 0:
        raise PublicationRefused(
            f"{len(over)} seeds have spent their budget of `per_seed` = {per_seed} published fakes, and {len(fresh)} "
            "fakes are unpublished; raise `per_seed` to publish more from one seed, at a price in privacy.",
            code="E_BUDGET",
            parameter="per_seed",
        )
    weight = np.zeros(len(fresh))
    if choose == "likelihood":
        if fakes.loglik is None:
            raise InvalidParameter(
                '`choose="likelihood"` is for fakes of the paper\'s method, which have one.', parameter="choose"
            )
        weight = finite(fakes.loglik)[fresh]
    return fresh[draw_of_each(seed[fresh], weight, budget[seed[fresh]], rng)]


def draw_of_each(seed: Ints, weight: Floats, n: Ints | int, rng: np.random.Generator) -> Ints:
    """
    Draw `n` fakes of each seed, fewer where there are fewer, without replacement, by weights exp(weight) (E62).

    Examples
    --------
    >>> draw_of_each(np.array([0, 0, 1]), np.array([-5.0, -900.0, 0.0]), 1, np.random.default_rng(1)).tolist()
    [0, 2]

    """
    # Gumbel keys: the largest n of a seed are a draw without replacement with these weights
    order = np.lexsort((-(weight + rng.gumbel(size=len(seed))), seed))
    rank = np.arange(len(order)) - np.searchsorted(seed[order], seed[order])
    return np.sort(order[rank < np.broadcast_to(n, len(seed))[order]])


def finite(loglik: Floats) -> Floats:
    """
    Return likelihoods to choose by: what the model holds impossible counts as the least likely of the others.

    Examples
    --------
    >>> finite(np.array([-3.0, -np.inf, -7.0])).tolist(), finite(np.array([-np.inf])).tolist()
    ([-3.0, -7.0, -7.0], [0.0])

    """
    known = np.isfinite(loglik)
    return np.where(known, loglik, loglik[known].min(initial=0.0))


def links_file(pool: Pool, people: Visits, seed_of_life: Ints) -> bytes:
    """Return the private table as CSV: the id of each published life, and the label of the person it was made of."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(["fake", "seed"])
    writer.writerows([fake, people.users[seed]] for fake, seed in zip(pool.ids, seed_of_life.tolist(), strict=True))
    return sink.getvalue().encode()
