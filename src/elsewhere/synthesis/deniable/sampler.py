"""
The sampler of the deniable mode, with its probabilities in closed form (READINGS section 11):

    Pr{f|s} = pi_bar(f_1) prod_t p_bar(f_t, f_{t+1}) prod_t e_t(f_t|s) / Z(s).

Z(s) comes from the forward algorithm, once per seed; a fake by forward filter, backward sample; Pr{f|s'} of any other
seed s' by looking up L emissions, since the p_bar part is common to all.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from elsewhere.errors import (
    InvalidParameter,
    InvalidTraces,
    NoFeasiblePath,
    require_between,
    require_choice,
    require_whole,
)
from elsewhere.profiles.aggregate import AggregateModel
from elsewhere.semantics.classes import SemanticClasses
from elsewhere.synthesis.deniable._kernels import backward_sample, log_emissions
from elsewhere.synthesis.deniable.allotment import allotted
from elsewhere.synthesis.deniable.archetypes import Archetypes
from elsewhere.synthesis.deniable.emissions import (
    Emissions,
    allotted_emissions,
    archetype_emissions,
    window_emissions,
)
from elsewhere.traces.model import Floats, Ints, Periods, Places, Traces

EMISSIONS = ("window", "archetypes", "allotted")
BLOCK = 1024  # seeds whose emissions or filters are in memory at once


@dataclass(frozen=True, eq=False)
class PreparedSeeds:
    """Emissions of a set of seeds, and ln Z of each code."""

    emissions: Emissions
    log_z: Floats


class DeniableSampler:
    """
    Draws fakes of a seed and knows Pr{f|s} of any fake f and any seed s.

    Parameters
    ----------
    model
        The aggregate model, learnt from users that are nobody's seed.
    classes
        `SemanticClasses`, or the class of each place as a plain array; -1 where nothing is known.
    emission
        "window" (the paper's semantic seed, softened), "archetypes" (only the seed's nearest group speaks) or
        "allotted" (so too, but all groups together keep the population where it is).
    eta, lam
        Floor and temper of the emissions; `lam` = 0 carries nothing of the seed.
    theta
        Of "allotted": how soft the sharing out of the classes is.
    par_c, par_m, par_l
        Of the semantic seed, for "window".
    archetypes
        The groups, for "archetypes" and "allotted": `Archetypes`, or an array (groups, instants, classes) of shares.
    tau
        (L,) period of each instant; needed with plain arrays when the model has several periods.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> people = ew.Traces([[0, 0, 1, 1], [2, 2, 3, 3]], ew.Locations(n=4))
    >>> model = ew.aggregate(ew.fit_profiles(people), people.locations)
    >>> sampler = ew.DeniableSampler(model, [0, 1, 0, 1])
    >>> fakes = sampler.sample([0, 0, 1, 1], 3, rng=np.random.default_rng(1))
    >>> sampler.log_prob(fakes, people.r).shape
    (3, 2)

    """

    def __init__(
        self,
        model: AggregateModel,
        classes: SemanticClasses | ArrayLike,
        *,
        emission: str = "window",
        eta: float = 1e-3,
        lam: float = 1.0,
        par_c: float = 0.25,
        par_m: float = 0.75,
        par_l: float = 1.0,
        archetypes: Archetypes | ArrayLike | None = None,
        theta: float = 0.05,
        tau: ArrayLike | None = None,
    ) -> None:
        if not isinstance(model, AggregateModel):
            raise InvalidParameter(f"`model` must be an `AggregateModel`, got {type(model).__name__}.")
        self.model = model
        self.label = np.asarray((classes if isinstance(classes, SemanticClasses) else SemanticClasses(classes)).label)
        if len(self.label) != model.R:
            raise InvalidParameter(
                f"`classes` must label the {model.R} places of the model, got {len(self.label)}.", code="E_MISMATCH"
            )
        if model.R > 4096:
            raise InvalidParameter(
                f"the sampler needs the whole transition table: R must be at most 4096, got {model.R}; merge places.",
                code="E_TOO_LARGE",
            )
        self.emission = require_choice("emission", emission, EMISSIONS)
        self.eta = require_between("eta", eta, 0, 1, open_low=True, open_high=True)
        self.lam = require_between("lam", lam, 0, 1)
        self.par_c = require_between("par_c", par_c, 0, 1, open_high=True)
        self.par_m = require_between("par_m", par_m, 0, 1, open_high=True)
        self.par_l = require_between("par_l", par_l, 0, 1)
        self.theta = require_between("theta", theta, 0, math.inf, open_low=True, open_high=True)
        if emission != "window" and archetypes is None:
            raise InvalidParameter(f'`archetypes` must be given for `emission` "{emission}"; see `learn_archetypes`.')
        self.archetypes = None if archetypes is None else Archetypes.given(archetypes)
        self._allotted: tuple[bytes, Floats] | None = None
        self._tau = None if tau is None else _periods(tau)

    def log_prob(self, fakes: ArrayLike | Traces, seeds: ArrayLike | Traces) -> Floats:
        """ln Pr{f|s} for every fake and every seed, (F, S)."""
        drawn, given = self._places("fakes", fakes), self._places("seeds", seeds)
        if drawn.shape[1] != given.shape[1]:
            raise InvalidTraces(
                f"`fakes` and `seeds` must have one length, got {drawn.shape[1]} and {given.shape[1]}.", code="E_SHAPE"
            )
        tau = self.tau(given.shape[1], seeds)
        common = self.common(drawn, tau)
        out = np.empty((len(drawn), len(given)))
        for start in range(0, len(given), BLOCK):
            prepared = self.prepare(given[start : start + BLOCK], tau)
            out[:, start : start + BLOCK] = self.log_prob_given(drawn, prepared, common)[:, prepared.emissions.code]
        return out

    def common(self, fakes: Places, tau: Ints) -> Floats:
        """ln of the part of Pr{f|s} that no seed touches."""
        return self.model.loglik(fakes, tau)

    def log_prob_given(self, fakes: Places, prepared: PreparedSeeds, common: Floats) -> Floats:
        """ln Pr{f|a} of every fake under every code a of prepared seeds; `common` is ln of the p_bar part."""
        e = prepared.emissions
        out = np.empty((len(fakes), e.n_codes))
        log_emissions(fakes, e.column, e.log_e, e.place, e.log_e_own, out)
        out += common[:, None] - prepared.log_z
        return out

    def sample(self, seed: ArrayLike | Traces, n: int, *, rng: np.random.Generator) -> Places:
        """`n` independent fakes of one seed, (n, L)."""
        require_whole("n", n, 0)
        if not isinstance(rng, np.random.Generator):
            raise InvalidParameter(f"`rng` must be a numpy.random.Generator, got {type(rng).__name__}.")
        given = self._places("seed", seed if isinstance(seed, Traces) else np.atleast_2d(np.asarray(seed)))
        if len(given) != 1:
            raise InvalidTraces(f"`seed` must be one trace, got {len(given)}.", code="E_SHAPE")
        tau = self.tau(given.shape[1], seed)
        emissions = self.emissions(given, tau)
        filters, _ = self.filter(emissions, emissions.code, tau)
        return self.draw(filters[0], rng.random((n, given.shape[1])), tau)

    def prepare(self, seeds: Places, tau: Ints) -> PreparedSeeds:
        """Emissions of all seeds and ln Z of each of their codes."""
        emissions = self.emissions(seeds, tau)
        log_z = np.concatenate(list(self._log_z(emissions, tau)))
        return PreparedSeeds(emissions, log_z)

    def emissions(self, seeds: Places, tau: Ints) -> Emissions:
        """ln e_t(r|s) of these seeds."""
        if self.emission == "window":
            return window_emissions(
                seeds, self.label, eta=self.eta, lam=self.lam, par_c=self.par_c, par_m=self.par_m, par_l=self.par_l
            )
        assert self.archetypes is not None  # noqa: S101 - checked in the constructor
        if self.emission == "archetypes":
            return archetype_emissions(seeds, self.label, self.archetypes, eta=self.eta, lam=self.lam)
        return allotted_emissions(seeds, self.label, self.archetypes, self.allotment(tau), lam=self.lam)

    def allotment(self, tau: Ints) -> Floats:
        """The table of "allotted" emissions, made once: it depends on the model and the groups alone."""
        assert self.archetypes is not None  # noqa: S101 - checked in the constructor
        if self._allotted is None or self._allotted[0] != tau.tobytes():
            tables, pair = self.steps(tau)
            e = allotted(self.archetypes, self.label, self.first(tau), tables, pair, theta=self.theta, eta=self.eta)
            self._allotted = tau.tobytes(), e
        return self._allotted[1]

    def filter(self, emissions: Emissions, codes: Ints, tau: Ints) -> tuple[Floats, Floats]:
        """Forward filter of these codes: (codes, L, R) laws up to a factor per instant, and ln Z of each code."""
        tables, pair = self.steps(tau)
        L = len(tau)
        filters = np.empty((len(codes), L, self.model.R))
        log_z = np.zeros(len(codes))
        for t in range(L):
            e = np.exp(emissions.log_e[t][:, codes])[emissions.column].T
            own = np.flatnonzero(emissions.place[t, codes] >= 0)
            e[own, emissions.place[t, codes[own]]] = np.exp(emissions.log_e_own[t, codes[own]])
            before = self.first(tau) if t == 0 else filters[:, t - 1] @ tables[pair[t - 1]]
            filters[:, t] = before * e
            scale = filters[:, t].sum(axis=1)
            if not np.all(scale > 0):
                raise NoFeasiblePath("no trace of positive probability exists under this model; check `feasible`.")
            filters[:, t] /= scale[:, None]
            log_z += np.log(scale)
        return filters, log_z

    def draw(self, filters: Floats, uniform: Floats, tau: Ints) -> Places:
        """One fake per row of `uniform` (n, L), backwards from the filtered laws (L, R) of one code."""
        _, pair = self.steps(tau)
        out = np.empty(uniform.shape, dtype=np.int32)
        backward_sample(filters, self._transposed, pair, uniform, out)
        return out

    def first(self, tau: Ints) -> Floats:
        """Law of the first instant."""
        return self.model.first(int(tau[0])) if self.model.T > 1 else self.model.pi_bar

    def tau(self, L: int, seeds: ArrayLike | Traces) -> Ints:
        """The period of each of L instants."""
        if self._tau is not None:
            if len(self._tau) != L:
                raise InvalidParameter(f"`tau` must hold one period per instant, {L}, got {len(self._tau)}.")
            return self._tau
        if self.model.T == 1:
            return np.zeros(L, dtype=np.int64)
        if isinstance(seeds, Traces):
            return Periods.of(self.model.T).of_minute(seeds.minutes()).astype(np.int64)
        raise InvalidParameter(f"`tau` must give the period of each instant: the model has {self.model.T} periods.")

    def steps(self, tau: Ints) -> tuple[Floats, Ints]:
        """The different transition tables between consecutive instants, and which one each step uses."""
        moves = list(zip(tau[:-1].tolist(), tau[1:].tolist(), strict=True))
        used = sorted(set(moves))
        key = tuple(used)
        if getattr(self, "_steps_of", None) != key:
            self._tables = np.stack([self.model.table(*m) for m in used]) if used else np.zeros((1, 1, 1))
            self._transposed = np.ascontiguousarray(self._tables.transpose(0, 2, 1))
            self._steps_of = key
        return self._tables, np.array([used.index(m) for m in moves], dtype=np.int64)

    def _log_z(self, emissions: Emissions, tau: Ints) -> Iterator[Floats]:
        # in blocks, so that the filters of 100,000 seeds are never in memory together
        block = max(1, min(BLOCK, int(2e8 // (8 * len(tau) * self.model.R))))
        for start in range(0, emissions.n_codes, block):
            yield self.filter(emissions, np.arange(start, min(start + block, emissions.n_codes)), tau)[1]

    def _places(self, name: str, traces: ArrayLike | Traces) -> Places:
        try:
            r = traces.r if isinstance(traces, Traces) else np.asarray(traces)
        except ValueError:  # rows of several lengths
            r = np.empty(0)
        if r.ndim != 2 or r.dtype.kind not in "iu" or r.size == 0:
            raise InvalidTraces(f"`{name}` must be an (N, L) table of whole numbers of places.", code="E_SHAPE")
        low = -1 if name.startswith("seed") else 0
        if r.min() < low or r.max() >= self.model.R:
            raise InvalidTraces(f"`{name}` must be in {low} .. {self.model.R - 1}.", code="E_INDEX")
        return np.ascontiguousarray(r, dtype=np.int32)


def _periods(tau: ArrayLike) -> Ints:
    when = np.asarray(tau)
    if when.ndim != 1 or when.dtype.kind not in "iu":
        raise InvalidParameter("`tau` must be a vector of whole numbers, the period of each instant.")
    return when.astype(np.int64)
