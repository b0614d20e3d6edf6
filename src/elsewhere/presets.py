"""
The four presets of DESIGN section 6, field by field (READINGS section 1), and how a caller changes one field.

- `paper`     reproduces the paper: its formulas, its tests, model and alternates from the seeds themselves;
- `product`   publishes walks paired with seeds, with every test of the paper in its strictest reading, on split users;
- `deniable`  publishes with a proof: soft emissions, exact Pr{f|s}, randomised gate, ledger;
- `private`   publishes walks learnt from noisy sums over everybody, with a proof for everybody, and has no seeds.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from elsewhere.errors import InvalidParameter, require_between, require_choice, require_whole


@dataclass(frozen=True)
class Preset:
    """Every parameter of a run; the letters are the paper's, the E-numbers READINGS'."""

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
    k: int = 2  # E52
    intersection: str = "set"  # E41
    against: str = "own"  # E15
    min_sim: float | None = None  # E56
    alternates: str = "all"  # E53: "all" other users, or "split" off
    max_days: int | None = None  # E61: rows of one user that may be seeds; None: all
    max_tries: int = 50  # E63
    emission: str = "window"  # section 11, from here on
    eta: float = 1e-3
    lam: float = 1.0
    theta: float = 0.05  # how soft "allotted" emissions share classes out (docs/decisions/0005-emissions.md)
    strength: float = 3.0  # of "walk": how far a group's law concentrates (docs/decisions/0008-stock.md)
    gamma: float = 4.0
    eps0: float = 1.0
    delta_target: float = 1e-6
    acceptance: float = 0.1  # floor of the acceptance probability, fixed in advance
    fold_intersection: bool = False
    archetypes: int | None = None  # groups of model users; None: 1.5 k planned seeds to a group; see `tune`
    eps: float = 4.0  # CERTIFICATE.md section 2: of the noisy sums over everybody
    delta: float = 1e-6

    def __post_init__(self) -> None:
        for f in fields(self):  # a number of numpy's is a number, but not for the manifest
            value = getattr(self, f.name)
            if getattr(value, "shape", None) == () and hasattr(value, "item"):
                object.__setattr__(self, f.name, value.item())
        require_choice("name", self.name, tuple(_NAMES))
        for flag in ("fold_intersection",):
            if not isinstance(getattr(self, flag), bool):
                raise InvalidParameter(f"`{flag}` must be True or False, got {getattr(self, flag)!r}.")
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
        require_whole("k", self.k, 2 if self.name == "deniable" else 1)
        require_choice("intersection", self.intersection, ("set", "aligned"))
        require_choice("against", self.against, ("own", "all"))
        if self.min_sim is not None:
            require_between("min_sim", self.min_sim, 0, 1)
        require_choice("alternates", self.alternates, ("all", "split"))
        if self.max_days is not None:
            require_whole("max_days", self.max_days, 1, 1 if self.name == "deniable" else None)
        require_whole("max_tries", self.max_tries, 1)
        require_between("eta", self.eta, 0, 1, open_low=True, open_high=True)
        require_between("lam", self.lam, 0, 1)
        require_between("strength", self.strength, 0, 10)
        require_between("gamma", self.gamma, 1, math.inf, open_low=True, open_high=True)
        require_between("eps0", self.eps0, 0, math.inf, open_low=True, open_high=True)
        require_between("delta_target", self.delta_target, 0, 1, open_low=True, open_high=True)
        require_between("acceptance", self.acceptance, 0, 1, open_low=True)
        require_choice("emission", self.emission, ("window", "archetypes", "allotted", "walk"))
        require_between("theta", self.theta, 0, math.inf, open_low=True, open_high=True)
        if self.archetypes is not None:
            require_whole("archetypes", self.archetypes, 1)
        require_between("eps", self.eps, 0, 10, open_low=True)
        require_between("delta", self.delta, 0, 0.01, open_low=True)

    def changed(self, **parameters: Any) -> "Preset":
        """The same preset with these parameters; an unknown name is refused with the list of all."""
        return replace(self, **check_names(parameters))


_NAMES = ("paper", "product", "deniable", "private")
PROVEN = ("deniable", "private")  # presets whose whole release a theorem covers
# what only candidate sets read, which are the paper's
OF_CANDIDATES = ("sampler", "par_c", "par_m", "par_l", "par_v", "subsample", "merge")
# what only the deniable mode reads: outputs of the others do not name it (E54)
OF_THE_GATE = (
    "emission",
    "eta",
    "lam",
    "theta",
    "strength",
    "gamma",
    "eps0",
    "delta_target",
    "acceptance",
    "fold_intersection",
    "archetypes",
)

# what only the private preset reads, and all that it does read
OF_THE_SUM = ("eps", "delta")

NOT_READ = {
    "paper": (*OF_THE_GATE, *OF_THE_SUM, "shift", "balance"),
    "product": (*OF_THE_GATE, *OF_THE_SUM, *OF_CANDIDATES),
    "deniable": OF_THE_SUM,
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
        max_days=1,
    ),
    "deniable": Preset(
        "deniable",
        periods=4,
        class_periods=12,
        method="roles",
        class_draws=20,
        sampler="ffbs",
        m_min=5,
        k=50,
        alternates="split",
        max_days=1,
        emission="walk",  # docs/decisions/0006-walk.md
        eta=0.01,
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
