"""
Fakes on the private side, with their seeds; and `publish`, the only door to the public side.

Publishing drops seeds, order, likelihoods and entropy, gives every fake a random id, and keeps a budget per seed (E59).
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from elsewhere._version import __version__
from elsewhere.errors import InvalidParameter, PublicationRefused, require_between, require_choice, require_whole
from elsewhere.learnt import Learnt
from elsewhere.pool import Pool
from elsewhere.presets import Preset
from elsewhere.privacy.deniability import Ledger
from elsewhere.traces.model import Floats, Ints, Places, Traces


@dataclass(frozen=True, eq=False)
class Fakes:
    """
    The accepted fakes of a run (private side).

    Parameters
    ----------
    r
        (F, L) places.
    seed
        (F,) row of `seeds` each fake was made from.
    loglik
        (F,) ln Pr{fake} under the aggregate model.
    verdicts
        What the privacy test measured on each.
    attempts
        (N,) tries per row of `seeds`; in the deniable mode their total alone.
    tally
        Attempts by outcome: tested, passed, and rejected by each rule.
    seeds
        The traces that were given.
    learnt
        Model and classes.
    preset
        All parameters.
    laboratory
        Whether a given `rng` made the run repeatable: such fakes are not for publishing (R2).
    notes
        What the run decided by itself and a reader should know.
    ledger
        eps and delta, in the deniable mode.
    published
        (N,) fakes published so far per row of `seeds`; the one array that changes.

    """

    r: Places
    seed: Ints
    loglik: Floats
    verdicts: Sequence[Any] = field(repr=False)
    attempts: Ints = field(repr=False)
    tally: Mapping[str, int]
    seeds: Traces
    learnt: Learnt = field(repr=False)
    preset: Preset = field(repr=False)
    laboratory: bool
    notes: tuple[str, ...] = ()
    ledger: Ledger | None = None
    published: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)

    def __len__(self) -> int:
        return len(self.r)

    def __repr__(self) -> str:
        return f"Fakes({len(self)} fakes of {len(np.unique(self.seed))} seeds, preset {self.preset.name!r})"

    @property
    def acceptance(self) -> float:
        """Share of the attempts that passed."""
        return self.tally["passed"] / max(1, self.tally["tested"])


def publish(
    fakes: Fakes,
    *,
    per_seed: int = 1,
    choose: str = "uniform",
    temp: float = 1.0,
    laboratory: bool = False,
    rng: np.random.Generator | None = None,
) -> Pool:
    """
    A pool of fakes that can leave the house: no seed, no order, no likelihood, no entropy.

    Parameters
    ----------
    fakes
        As `generate_fakes` makes them.
    per_seed
        Budget of each seed, over all publications of these fakes (E59). In the deniable mode the ledger counts every
        released fake, and all are published.
    choose
        "uniform", or "likelihood": without replacement with weights exp(loglik / L / temp) (E62).
    temp
        Temperature of that choice.
    laboratory
        Publish a laboratory run all the same; the pool is then stamped as reproducible.
    rng
        Chooses and shuffles; by default the operating system's entropy. With it the pool is a laboratory pool.

    """
    if not isinstance(fakes, Fakes):
        raise InvalidParameter(f"`fakes` must be what `generate_fakes` returns, got {type(fakes).__name__}.")
    require_whole("per_seed", per_seed, 1)
    require_choice("choose", choose, ("uniform", "likelihood"))
    require_between("temp", temp, 0, np.inf, open_low=True)
    if (fakes.laboratory or rng is not None) and not laboratory:
        raise PublicationRefused(
            "a run with a given `rng` can be repeated by whoever knows it, so it is not for publishing; generate "
            "without `rng`, or pass `laboratory=True` to keep it as a laboratory result.",
            code="E_LABORATORY",
        )
    draw = np.random.default_rng(np.random.SeedSequence()) if rng is None else rng
    if fakes.ledger is not None:
        chosen = np.arange(len(fakes))
        if fakes.published.any():
            raise PublicationRefused("these fakes are published already; the ledger counts each once.", code="E_BUDGET")
    else:
        chosen = _within_budget(fakes, per_seed, choose, temp, draw)
    np.add.at(fakes.published, fakes.seed[chosen], 1)
    chosen = draw.permutation(chosen)
    ids = [secrets.token_hex(16) if rng is None else draw.bytes(16).hex() for _ in chosen]
    seeds = fakes.seeds
    traces = Traces(
        fakes.r[chosen],
        seeds.locations,
        users=ids,
        dates=_dates(seeds, fakes.seed[chosen], draw),
        step_minutes=seeds.step_minutes,
        start=seeds.start,
        tz=seeds.tz,
    )
    return Pool(traces, _provenance(fakes, per_seed, choose, temp, fakes.laboratory or rng is not None))


def _within_budget(fakes: Fakes, per_seed: int, choose: str, temp: float, rng: np.random.Generator) -> Ints:
    left = per_seed - fakes.published
    spent = np.unique(fakes.seed[left[fakes.seed] <= 0])
    if len(spent):
        raise PublicationRefused(
            f"{len(spent)} seeds have spent their budget of `per_seed` = {per_seed} published fakes; raise `per_seed` "
            "to publish more from one seed, at a price in privacy.",
            code="E_BUDGET",
        )
    # Gumbel keys: the largest n of a seed are a draw without replacement with these weights
    weight = fakes.loglik / fakes.r.shape[1] / temp if choose == "likelihood" else np.zeros(len(fakes))
    key = weight + rng.gumbel(size=len(fakes))
    order = np.lexsort((-key, fakes.seed))
    seed = fakes.seed[order]
    rank = np.arange(len(seed)) - np.searchsorted(seed, seed)
    return np.asarray(order[rank < left[seed]])


def _dates(seeds: Traces, seed: Ints, rng: np.random.Generator) -> Any:
    # a fake gets any date of the dataset of the same kind of day, so its date says nothing of its seed's beyond that
    if seeds.dates is None:
        return None
    weekend = (seeds.dates.astype("datetime64[D]").astype(np.int64) + 3) % 7 >= 5
    dates = np.empty(len(seed), dtype="datetime64[D]")
    for kind in (False, True):
        pool, wanted = np.unique(seeds.dates[weekend == kind]), np.flatnonzero(weekend[seed] == kind)
        if len(wanted):
            dates[wanted] = rng.choice(pool, len(wanted))
    return dates


def _provenance(fakes: Fakes, per_seed: int, choose: str, temp: float, reproducible: bool) -> dict[str, Any]:
    parameters = {name: value for name, value in asdict(fakes.preset).items() if name != "name"}
    if fakes.preset.name != "deniable":
        for name in ("emission", "eta", "lam", "gamma", "eps0", "delta_target", "acceptance", "fold_intersection"):
            del parameters[name]
        del parameters["archetypes"]
    return {
        "elsewhere": __version__,
        "preset": fakes.preset.name,
        "parameters": parameters,
        "kappa": fakes.learnt.classes.kappa,
        "reproducible": reproducible,
        "choose": choose,
        "temp": temp,
        "per_seed": per_seed if fakes.ledger is None else None,
        "notes": list(fakes.notes),
        "ledger": None if fakes.ledger is None else fakes.ledger.to_dict(),
    }
