"""
The four presets, field by field, and how a caller changes one field; E-numbers are those of docs/readings.md.

- `paper`     reproduces the paper: its formulas, its tests, model and alternates from the seeds themselves;
- `product`   publishes walks paired with seeds, with every test of the paper in its strictest reading, on split users;
- `deniable`  publishes walks drawn by a noisy count of the seeds' archetypes, with a proof for the seeds;
- `private`   publishes walks learnt from noisy sums over everybody, with a proof for everybody, and has no seeds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from elsewhere.errors import InvalidParameter, require_between, require_choice, require_whole


@dataclass(frozen=True)
class Preset:
    """Every parameter of a run; the letters are the paper's, E-numbers stand in docs/readings.md."""

    name: str
    periods: int | tuple[float, ...] = 1  # E5, E24
    class_periods: int | tuple[float, ...] | None = None  # periods of the graph; None: those of the model
    order: int = 0
    mapping: str = "per-period"  # E19
    method: str = "kmeans"  # E28: how classes are found (docs/decisions/0001-classes.md)
    class_draws: int = 1  # clusterings of which the most telling is taken (docs/decisions/0009-telling.md)
    sampler: str = "viterbi"  # E46, E49
    par_c: float = 0.25  # E39
    par_m: float = 0.75  # E42
    par_l: float = 1.0  # E40
    par_v: float = 4.0  # E46
    subsample: str = "per-fake"  # E39: one sub-sample of the classes, or a fresh one "per-instant"
    merge: str = "reach"  # E42: one reach per place and boundary, or "independent" draws
    shift: float = 0.0  # minutes by which a fake's whole day may be earlier or later than its seed's (decision 24)
    balance: float = 1.0  # how closely all fakes together follow the walk model; less keeps more of the seeds
    c_min: int = 1  # E30
    m_min: int = 1  # E31
    epsilon: float = 0.01  # E34
    n_min: int = 5  # E37
    par_s: float = 0.1  # E51
    par_i: int = 0  # E50
    par_d: float = 0.1  # E51
    k: int = 2  # E52; of `deniable`: seeds behind every fake, 0 (or None): not asked for
    intersection: str = "set"  # E41
    against: str = "own"  # E15
    min_sim: float | None = None  # E56
    alternates: str = "all"  # E53: "all" other users, or "split" off
    max_tries: int = 50  # E63
    eps0: float = 0.5  # parameter of the noise of the count of archetypes
    archetypes: int | None = None  # None: as many as the model's people can be told into
    eps: float = 4.0  # of the noisy sums over everybody
    delta: float = 1e-6
    days: int = 1  # that a fake of the private preset lives: public, whatever people have

    def __post_init__(self) -> None:
        for f in fields(self):  # a number of numpy's is a number, but not for the manifest
            value = getattr(self, f.name)
            if getattr(value, "shape", None) == () and hasattr(value, "item"):
                object.__setattr__(self, f.name, value.item())
        require_choice("name", self.name, tuple(_NAMES))
        require_whole("order", self.order, 0, 1)
        require_choice("mapping", self.mapping, ("per-period", "common"))
        require_choice("method", self.method, ("roles", "kmeans"))
        require_whole("class_draws", self.class_draws, 1, 1000)
        require_choice("sampler", self.sampler, ("viterbi", "ffbs"))
        require_between("par_c", self.par_c, 0, 1, open_high=True)
        require_between("par_m", self.par_m, 0, 1, open_high=True)
        require_between("par_l", self.par_l, 0, 1)
        require_choice("subsample", self.subsample, ("per-fake", "per-instant"))
        require_choice("merge", self.merge, ("reach", "independent"))
        require_between("par_v", self.par_v, 1, math.inf, open_high=True)
        require_between("shift", self.shift, 0, 720)
        require_between("balance", self.balance, 0, 1)
        require_whole("c_min", self.c_min, 1)
        require_whole("m_min", self.m_min, 1)
        require_between("epsilon", self.epsilon, 0, math.inf, open_low=True, open_high=True)
        require_whole("n_min", self.n_min, 1)
        require_between("par_s", self.par_s, 0, 1)
        require_whole("par_i", self.par_i, 0)
        require_between("par_d", self.par_d, 0, 1)
        if self.name == "deniable" and getattr(self, "k", None) is None:
            object.__setattr__(self, "k", 0)
        require_whole("k", self.k, 0 if self.name == "deniable" else 1)
        require_choice("intersection", self.intersection, ("set", "aligned"))
        require_choice("against", self.against, ("own", "all"))
        if self.min_sim is not None:
            require_between("min_sim", self.min_sim, 0, 1)
        require_choice("alternates", self.alternates, ("all", "split"))
        require_whole("max_tries", self.max_tries, 1)
        require_between("eps0", self.eps0, 1e-3, math.inf, open_high=True)
        if self.archetypes is not None:
            require_whole("archetypes", self.archetypes, 1)
        require_between("eps", self.eps, 0, 10, open_low=True)
        require_between("delta", self.delta, 0, 0.01, open_low=True)
        require_whole("days", self.days, 1, 60)

    @classmethod
    def of_file(cls, told: Mapping[str, Any]) -> "Preset":
        """Return the preset that stands in a file, without what this version has no parameter for."""
        known = {f.name for f in fields(cls)}
        # JSON knows no tuples
        found: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in told.items() if n in known}
        return cls(**found)

    def changed(self, **parameters: Any) -> "Preset":
        """The same preset with these parameters; an unknown name is refused with the list of all."""
        return replace(self, **check_names(parameters))


_NAMES = ("paper", "product", "deniable", "private")
PROVEN = ("deniable", "private")  # presets whose whole release a theorem covers
# what only candidate sets read, which are the paper's
OF_CANDIDATES = ("sampler", "par_c", "par_m", "par_l", "par_v", "subsample", "merge")
# what only the deniable preset reads: outputs of the others do not name it (E54)
OF_THE_COUNT = ("eps0", "archetypes")
# and what it does not: no fake is tested against a seed, and all days of a person are counted
OF_THE_TESTS = (
    *("par_s", "par_i", "par_d", "intersection", "against", "min_sim", "alternates", "max_tries"),
    *("shift", "balance"),
)

# what only the private preset reads, and all that it does read
OF_THE_SUM = ("eps", "delta", "days")

NOT_READ = {
    "paper": (*OF_THE_COUNT, *OF_THE_SUM, "shift", "balance"),
    "product": (*OF_THE_COUNT, *OF_THE_SUM, *OF_CANDIDATES),
    "deniable": (*OF_THE_TESTS, *OF_CANDIDATES, *OF_THE_SUM),
    "private": tuple(f.name for f in fields(Preset) if f.name not in ("name", *OF_THE_SUM)),
}

PRESETS = {
    "paper": Preset("paper"),
    "product": Preset(
        "product",
        periods=4,
        class_periods=12,
        method="roles",
        class_draws=20,
        shift=120.0,
        c_min=5,
        m_min=5,
        k=10,
        against="all",
        alternates="split",
    ),
    "deniable": Preset(
        "deniable",
        periods=4,
        class_periods=12,
        method="roles",
        class_draws=20,
        m_min=5,
        k=0,
    ),
    "private": Preset("private"),
}


def check_names(parameters: dict[str, Any]) -> dict[str, Any]:
    """`parameters` if each is a field of `Preset`, else `InvalidParameter` with the list of all."""
    known = [f.name for f in fields(Preset) if f.name != "name"]
    for name in parameters:
        if name not in known:
            raise InvalidParameter(f"`{name}` is no parameter of a preset; these are: {', '.join(known)}.")
    return parameters


def preset_of(preset: "str | Preset", **parameters: Any) -> Preset:
    """A preset by name, or as it is, with some parameters changed."""
    if not isinstance(preset, Preset):
        require_choice("preset", preset, tuple(PRESETS))
        preset = PRESETS[preset]
    if parameters.get("par_c") == "per-instant":  # the short form of E39
        parameters |= {"par_c": 0.25, "subsample": "per-instant"}
    return preset.changed(**parameters)
