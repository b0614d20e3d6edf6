"""
The mechanism F(S) of the deniable mode, attempt by attempt until enough fakes are released (READINGS section 11).

Attempts come in batches of fixed size, each with a random stream of its own, so that the outcome of a laboratory run
does not depend on the number of workers. Only released fakes leave this file; the number of attempts stays on the
private side (the event "nothing released" is not covered by the theorem).
"""

import math
import secrets
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from elsewhere.errors import NotEnoughUsers, NothingPassed, require_between, require_whole
from elsewhere.privacy.deniability import buckets, discrete_laplace
from elsewhere.scale import map_over
from elsewhere.synthesis.deniable.sampler import DeniableSampler, PreparedSeeds
from elsewhere.traces.model import Floats, Ints, Places

CACHED_FILTERS = 5e7  # numbers, 400 MB: below this the forward filters of all codes are kept
FILTERS_AT_ONCE = 2.5e7  # numbers, 200 MB: those of a batch where they are not kept
BATCH_CELLS = 1e7  # attempts x codes per batch
Attempts = tuple[Places, Ints, Ints, Floats]  # fakes, their seeds, the counts c, ln Pr{f|s}
LEAST_EXPECTED = 100  # releases expected at the floor in the fewest attempts made


@dataclass(frozen=True, eq=False)
class Released:
    """Fakes that passed the gate (private: with their seeds), how many attempts were made and passed."""

    r: Places
    seed: Ints
    count: Ints  # members of S in the bucket of the seed, the seed included
    log_prob: Floats  # ln Pr{f|s} of the fake under its own seed
    attempts: int
    passed: int


@dataclass(frozen=True, eq=False)
class Mechanism:
    """
    F(S) for a sampler, a set of seeds and the parameters of the gate.

    With `intersection`, Pr{f|s} is 0 for every s that shares a place with f, for the seed and all others alike. With
    `keep`, an attempt at f goes on with probability keep(f), a function of the fake alone, and else fails unseen: every
    seed's chance of f shrinks by the same factor, so the buckets and the theorem stay as they are.
    """

    sampler: DeniableSampler = field(repr=False)
    seeds: Places = field(repr=False)
    tau: Ints = field(repr=False)
    k: int
    gamma: float
    eps0: float
    intersection: bool
    prepared: PreparedSeeds = field(repr=False)
    filters: Floats | None = field(repr=False)
    visits: NDArray[np.bool_] | None = field(repr=False)
    keep: Callable[[Places], Floats] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        sampler: DeniableSampler,
        seeds: Places,
        tau: Ints,
        *,
        k: int,
        gamma: float,
        eps0: float,
        intersection: bool = False,
        keep: Callable[[Places], Floats] | None = None,
    ) -> Self:
        """Check the parameters and do once what every attempt needs."""
        require_whole("k", k, 2)
        require_between("gamma", gamma, 1, math.inf, open_low=True, open_high=True)
        require_between("eps0", eps0, 0, math.inf, open_low=True, open_high=True)
        if len(seeds) < k:
            raise NotEnoughUsers(f"the gate needs at least {k} seed users for `k` = {k}, got {len(seeds)}.")
        with threadpool_limits(1):  # sums in one order on every machine (R5)
            prepared = sampler.prepare(seeds, tau)
            codes, L = prepared.emissions.n_codes, len(tau)
            filters = None
            if codes * L * sampler.model.R <= CACHED_FILTERS:
                filters = sampler.filter(prepared.emissions, np.arange(codes), tau)[0]
        visits = None
        if intersection:
            visits = np.zeros((len(seeds), sampler.model.R), dtype=bool)
            rows, slots = np.nonzero(seeds >= 0)
            visits[rows, seeds[rows, slots]] = True
        return cls(sampler, seeds, tau, k, gamma, eps0, intersection, prepared, filters, visits, keep)

    @property
    def batch(self) -> int:
        """Attempts per batch; a function of the sizes alone."""
        width = len(self.seeds) if self.intersection else self.prepared.emissions.n_codes
        return int(np.clip(BATCH_CELLS // width, 16, 512))

    def attempts(self, rng: np.random.Generator) -> Attempts:
        """One batch of attempts before the gate: fakes, their seeds, the counts c (0: in no bucket), ln Pr{f|s}."""
        code = self.prepared.emissions.code
        seed = rng.integers(len(self.seeds), size=self.batch)
        fakes = self._draw(code[seed], rng.random((self.batch, len(self.tau))))
        common = self.sampler.common(fakes, self.tau)
        log_prob = self.sampler.log_prob_given(fakes, self.prepared, common)
        members = np.bincount(code, minlength=log_prob.shape[1])
        own = code[seed]
        if self.visits is not None:
            log_prob, members, own = log_prob[:, code], np.ones(len(code), dtype=np.int64), seed
            for i, fake in enumerate(fakes):
                log_prob[i, self.visits[:, np.unique(fake)].any(axis=1)] = -np.inf
        mine = log_prob[np.arange(self.batch), own]
        bucket = buckets(log_prob, self.gamma)
        count = (bucket == bucket[np.arange(self.batch), own][:, None]) @ members
        count = np.where(np.isneginf(mine), 0, count)
        if self.keep is not None:
            count = np.where(rng.random(self.batch) < self.keep(fakes), count, 0)
        return fakes, seed, count, mine

    def _draw(self, codes: Ints, uniform: Floats) -> Places:
        fakes = np.empty(uniform.shape, dtype=np.int32)
        drawn = np.unique(codes)
        # laws of many codes come at once: one by one, every step would read the whole transition table again
        block = max(1, int(FILTERS_AT_ONCE // (uniform.shape[1] * self.sampler.model.R)))
        for start in range(0, len(drawn), block):
            some = drawn[start : start + block]
            for code, law in zip(some, self._laws(some), strict=True):
                mine = np.flatnonzero(codes == code)
                fakes[mine] = self.sampler.draw(law, uniform[mine], self.tau)
        return fakes

    def _laws(self, codes: Ints) -> list[Floats]:
        if self.filters is not None:
            return [self.filters[code] for code in codes]  # views: a copy of them costs as much as the draw
        return list(self.sampler.filter(self.prepared.emissions, codes, self.tau)[0])

    def passes(self, count: Ints, below: Callable[[int], int]) -> NDArray[np.bool_]:
        """The gate: c >= k + noise, one draw of noise per attempt; a fake in no bucket never passes."""
        return np.array([c > 0 and c >= self.k + discrete_laplace(self.eps0, below) for c in count], dtype=bool)


def _below(rng: np.random.Generator, n: int) -> int:
    """A draw from 0 .. n-1 of a laboratory run; n may have more than 64 bits."""
    return int(rng.integers(n)) if n < 2**63 else int.from_bytes(rng.bytes(n.bit_length() // 8 + 9)) % n


@dataclass(frozen=True)
class _Batch:
    """Attempts number b * batch .. (b + 1) * batch - 1, with a stream of their own."""

    mechanism: Mechanism
    entropy: int = field(repr=False)
    laboratory: bool

    def __call__(self, b: int) -> Attempts:
        rng = np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(b,)))
        fakes, seed, count, log_prob = self.mechanism.attempts(rng)
        # in production the noise comes from the operating system (R4); a laboratory run must be repeatable (R5)
        below = partial(_below, rng) if self.laboratory else secrets.randbelow
        passed = self.mechanism.passes(count, below)
        return fakes[passed], seed[passed], count[passed], log_prob[passed]


def release(
    mechanism: Mechanism,
    n: int,
    *,
    floor: float,
    entropy: int,
    laboratory: bool,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Released:
    """
    Retry until `n` fakes are released; `NothingPassed` if the acceptance stays below `floor`, fixed in advance.

    `entropy` is the secret of the run; with `laboratory` the noise of the gate is drawn from it too.
    """
    require_whole("n", n, 1)
    require_between("acceptance", floor, 0, 1, open_low=True)
    work = _Batch(mechanism, entropy, laboratory)
    # enough for the floor with six standard deviations to spare
    limit = math.ceil((n + 6 * math.sqrt(n) + 36) / floor / mechanism.batch)
    # and never so few that luck could hide an acceptance below it
    least = math.ceil(LEAST_EXPECTED / floor / mechanism.batch)
    parts: list[Attempts] = []
    released = done = 0
    with threadpool_limits(1):  # sums in one order on every machine (R5)
        while (released < n or done < least) and done < max(limit, least):
            rate = max(released / (done * mechanism.batch) if done else 0.5, floor)
            more = max(1, least - done, math.ceil((n - released) / rate / mechanism.batch))
            more = min(max(limit, least) - done, more)
            fresh = map_over(work, range(done, done + more), executor=executor)
            parts += fresh
            done += more
            released += sum(len(p[0]) for p in fresh)
            if progress is not None:
                progress(min(released, n), n)
    if released < n or released < floor * done * mechanism.batch:
        raise NothingPassed(
            f"the gate accepted fewer than `acceptance` = {floor:g} of the attempts; lower `lam`, raise `gamma`, lower "
            f"`k`, or give more than {len(mechanism.seeds)} seed users.",
            code="E_ACCEPTANCE",
        )
    r, seed, count, log_prob = (np.concatenate([p[i] for p in parts])[:n] for i in range(4))
    return Released(r, seed, count, log_prob, done * mechanism.batch, released)
