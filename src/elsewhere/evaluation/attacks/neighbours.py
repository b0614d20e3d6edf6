"""
A9: does the randomised gate keep the eps it claims? Two sets of seeds that differ by one user, thousands of releases.

The auditor knows everything: both sets, the sampler, the newcomer. He sorts released fakes by how much likelier the
larger set releases them; on one half of the releases he chooses the event that tells the two sets apart best, on the
other half he bounds its two probabilities (Clopper-Pearson). Whatever lower bound of eps comes out
must lie below the claim; gates without noise, or with half of it, are to be found out (tests/test_gate_audit.py).

A low bound means something only where a bad gate would show a high one. So the same releases are also weighed as a gate
without noise would have made them; where that gate is not found out either, the audit says that it cannot tell. So it
is with seeds of a single group: all attempts pass alike, retries hide the rest, and any gate releases the same fakes.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from elsewhere.errors import InvalidParameter, NotEnoughUsers, NothingPassed, require_between
from elsewhere.evaluation.attacks.finding import Finding
from elsewhere.evaluation.attacks.ground import Ground
from elsewhere.evaluation.attacks.intervals import LEVEL, Rate
from elsewhere.privacy.deniability import Ledger, buckets, deniability_ledger, release_probability
from elsewhere.privacy.mechanism import Mechanism, release
from elsewhere.synthesis.deniable.sampler import DeniableSampler
from elsewhere.traces.model import Floats, Ints, Places

FLOOR = 0.1  # of the acceptance, where none is given


class CannotAudit(InvalidParameter):
    """The gate cannot be audited on these seeds; the line of A9 says what it needs."""


class Event(NamedTuple):
    """Outcomes `low` .. `high`, likelier in the larger set (`grows`) or in the smaller one."""

    low: int
    high: int
    grows: bool

    def share(self, outcomes: Ints) -> tuple[int, int]:
        """How many of these outcomes are in the event, and how many there are."""
        return int(((outcomes >= self.low) & (outcomes <= self.high)).sum()), len(outcomes)


def _low(hits: Floats, trials: float, level: float) -> Floats:
    from scipy.stats import beta

    found = beta.ppf((1 - level) / 2, hits, trials - hits + 1)
    return np.where(hits > 0, found, 0.0)


def _high(hits: Floats, trials: float, level: float) -> Floats:
    from scipy.stats import beta

    found = beta.ppf((1 + level) / 2, hits + 1, trials - hits)
    return np.where(hits < trials, found, 1.0)


def eps_of_event(event: Event, smaller: Ints, larger: Ints, *, delta: float, level: float = LEVEL) -> Rate:
    """
    The eps that this event proves: ln((p - delta) / q), p its probability in one set and q in the other.

    The lower end holds with probability `level`, by Clopper-Pearson for p and q; it is 0 where nothing is proven.
    """
    more, fewer = (larger, smaller) if event.grows else (smaller, larger)
    (a, n), (b, m) = event.share(more), event.share(fewer)
    ends = [
        (a / n, b / m),
        (float(_low(np.array(a), n, level)), float(_high(np.array(b), m, level))),
        (float(_high(np.array(a), n, level)), float(_low(np.array(b), m, level))),
    ]
    value, low, high = (
        0.0 if p <= delta else math.inf if q == 0 else max(0.0, math.log((p - delta) / q)) for p, q in ends
    )
    return Rate(value, low, high)


def choose_event(smaller: Ints, larger: Ints, *, delta: float, level: float = LEVEL) -> Event:
    """Among single outcomes, "at most" and "at least", either way: the event with the highest lower bound of eps."""
    values = np.unique(np.concatenate([smaller, larger]))
    counts = [np.searchsorted(values, x) for x in (smaller, larger)]
    single = [np.bincount(c, minlength=len(values)).astype(np.float64) for c in counts]
    best, chosen = -1.0, Event(int(values[0]), int(values[-1]), True)
    for low, high, sums in (
        (values, values, single),
        (np.full_like(values, values[0]), values, [s.cumsum() for s in single]),
        (values, np.full_like(values, values[-1]), [s[::-1].cumsum()[::-1] for s in single]),
    ):
        for grows in (True, False):
            tried = [(s, len(x)) for s, x in zip(sums, (smaller, larger), strict=True)]
            (q_hits, m), (p_hits, n) = tried if grows else tried[::-1]
            p, q = _low(p_hits, n, level), _high(q_hits, m, level)
            bound = np.log(np.maximum(p - delta, 1e-300) / q)
            i = int(np.argmax(bound))
            if bound[i] > best:
                best, chosen = float(bound[i]), Event(int(low[i]), int(high[i]), grows)
    return chosen


def eps_lower_bound(smaller: Ints, larger: Ints, *, delta: float, level: float = LEVEL) -> tuple[Rate, Event]:
    """Lower bound of eps from the outcomes of runs on two neighbours: event chosen on one half, judged on the other."""
    require_between("level", level, 0, 1, open_low=True, open_high=True)
    require_between("delta", delta, 0, 1)
    if min(len(smaller), len(larger)) < 4:
        raise InvalidParameter("an audit needs at least 4 runs on either set, to choose and to judge.")
    a, b = len(smaller) // 2, len(larger) // 2
    event = choose_event(smaller[:a], larger[:b], delta=delta, level=level)
    return eps_of_event(event, smaller[a:], larger[b:], delta=delta, level=level), event


@dataclass(frozen=True, eq=False)
class Neighbours:
    """F(S) and F(S + one user): the mechanism on two sets of seeds, the newcomer last in the larger one."""

    smaller: Mechanism
    larger: Mechanism

    @staticmethod
    def of(
        sampler: DeniableSampler,
        seeds: Places,
        tau: Ints,
        *,
        k: int,
        gamma: float,
        eps0: float,
        rng: np.random.Generator,
        kind: type[Mechanism] = Mechanism,
    ) -> "Neighbours":
        """
        The pair of sets among these seeds that strains the gate most: the newcomer is the k-th of his group.

        Where seeds share a code, one group keeps k - 1 members beside him, the group whose fakes fall into buckets of
        its own most often; where every seed has its own code, the newcomer is one whose counts come closest to k.
        """
        whole = kind.of(sampler, seeds, tau, k=k, gamma=gamma, eps0=eps0)
        code = whole.prepared.emissions.code
        _, seed, count, _ = whole.attempts(rng)
        size = np.bincount(code)
        alone = np.bincount(code[seed], count == size[code[seed]], minlength=len(size))
        spare = len(seeds) - size + k - 1 >= k  # what is left of S must still be k users
        fit = (size >= k) & spare
        if fit.any():
            group = int(np.argmax(np.where(fit, alone + 1e-9 * size, -1.0)))
            own = np.flatnonzero(code == group)
            rows = np.concatenate([np.flatnonzero(code != group), own[: k - 1]])
            newcomer = own[k - 1]
        else:
            newcomer = int(seed[np.argmin(np.abs(count - k))])
            rows = np.delete(np.arange(len(seeds)), newcomer)
        if len(rows) < k:
            raise NotEnoughUsers(f"an audit of the gate needs at least {k + 1} seed users for `k` = {k}.")
        both = [seeds[rows], seeds[np.append(rows, newcomer)]]
        return Neighbours(*(kind.of(sampler, s, tau, k=k, gamma=gamma, eps0=eps0) for s in both))

    def outcomes(self, fakes: Places) -> Ints:
        """ln Pr{F(S + one) = f} - ln Pr{F(S) = f} of each fake in hundredths: what the auditor sorts fakes by."""
        smaller, larger = (self.log_released(m, fakes) for m in (self.smaller, self.larger))
        return np.round(100 * (larger - smaller)).astype(np.int64)

    @staticmethod
    def log_released(m: Mechanism, fakes: Places) -> Floats:
        """
        ln Pr{F(S) = f} of each fake, up to a constant of the fake: (1/n) sum over seeds of Pr{f|s} P(their bucket).

        Of the gate as claimed, whatever gate the mechanism runs: it only decides the order of the fakes.
        """
        return Neighbours.log_released_by(m, fakes, noisy_gate(m))[0]

    @staticmethod
    def log_released_by(m: Mechanism, fakes: Places, *gates: Floats) -> tuple[Floats, ...]:
        """The same for each of these gates, given by P(c) for c = 0 .. n."""
        log_prob = m.sampler.log_prob_given(fakes, m.prepared, np.zeros(len(fakes)))
        members = np.bincount(m.prepared.emissions.code, minlength=log_prob.shape[1])
        common = m.sampler.common(fakes, m.tau)
        bucket = buckets(log_prob + common[:, None], m.gamma).astype(np.int64)
        bucket -= bucket.min(axis=1, keepdims=True)
        top = log_prob.max(axis=1)
        mass = np.exp(log_prob - top[:, None]) * members
        out = np.empty((len(gates), len(fakes)))
        for i, mine in enumerate(bucket):
            count = np.bincount(mine, members).astype(np.int64)[mine]
            out[:, i] = [(mass[i] * gate[count]).sum() for gate in gates]
        with np.errstate(divide="ignore"):
            return tuple(np.log(out) + top - math.log(len(m.seeds)))

    def run(self, runs: int, *, floor: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """What the auditor notes of `runs` released fakes of either set, each retried until released."""
        return self._noted(runs, floor=floor, rng=rng)[0]

    def run_twice(
        self, runs: int, *, floor: float, rng: np.random.Generator
    ) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints] | None]:
        """
        `run`, and what the auditor would note if the gate had no noise; None where such a gate releases nothing.

        Released fakes f drawn again in proportion to Pr{F0(S) = f} / Pr{F(S) = f}, F0 the gate c >= k, are distributed
        as those of F0: F releases whatever F0 does.
        """
        (smaller, larger), weights = self._noted(runs, floor=floor, rng=rng)
        if any(w.sum() == 0 for w in weights):
            return (smaller, larger), None
        bare = (rng.choice(x, len(x), p=w / w.sum()) for x, w in zip((smaller, larger), weights, strict=True))
        return (smaller, larger), (next(bare), next(bare))

    def _noted(
        self, runs: int, *, floor: float, rng: np.random.Generator
    ) -> tuple[tuple[Ints, Ints], tuple[Floats, Floats]]:
        noted, weights = [], []
        for m in (self.smaller, self.larger):
            fakes = release(m, runs, floor=floor, entropy=int(rng.integers(2**63)), laboratory=True).r
            here, bare = self.log_released_by(m, fakes, noisy_gate(m), bare_gate(m))
            other = self.larger if m is self.smaller else self.smaller
            there = self.log_released(other, fakes)
            noted.append(np.round(100 * (there - here if m is self.smaller else here - there)).astype(np.int64))
            weights.append(np.exp(bare - here))
        return (noted[0], noted[1]), (weights[0], weights[1])

    def claim(self, *, t: int | None, floor: float) -> Ledger:
        """eps' and delta' that the ledger claims for one released fake."""
        m = self.smaller
        return deniability_ledger(
            k=m.k, gamma=m.gamma, eps0=m.eps0, t=t, acceptance=floor, seeds=len(m.seeds), released=1
        )


def noisy_gate(m: Mechanism) -> Floats:
    """P(c) of the gate as claimed, c = 0 .. n."""
    return np.array([release_probability(c, k=m.k, eps0=m.eps0) for c in range(len(m.seeds) + 1)])


def bare_gate(m: Mechanism) -> Floats:
    """P(c) of the same gate without noise: 1 from k on."""
    return (np.arange(len(m.seeds) + 1) >= m.k).astype(np.float64)


def gate_audit(ground: Ground) -> Finding:
    """A9."""
    p, sampler, rng = ground.parameters, ground.sampler, ground.rng("A9")
    # what wraps a sampler knows which places its gate saw
    translate = getattr(sampler, "translate", lambda seeds: seeds)
    sampler = getattr(sampler, "sampler", sampler)
    if not isinstance(sampler, DeniableSampler):
        raise CannotAudit("a `sampler` of this package, with its gate")
    if p["t"] >= p["k"]:
        raise CannotAudit("a randomised threshold, `t` below `k`")
    first = np.unique(ground.seeds.user, return_index=True)[1]
    seeds = np.ascontiguousarray(translate(ground.seeds.r[first]), dtype=np.int32)
    floor = p["acceptance"] or FLOOR
    tau = sampler.tau(seeds.shape[1], ground.seeds_given)
    try:
        pair = Neighbours.of(sampler, seeds, tau, k=p["k"], gamma=p["gamma"], eps0=p["eps0"], rng=rng)
        claim = pair.claim(t=p["t"], floor=floor)
        (smaller, larger), bare = pair.run_twice(p["gate_runs"], floor=floor, rng=rng)
    except NotEnoughUsers:
        raise CannotAudit(f"more than k = {p['k']} seed users") from None
    except NothingPassed:
        raise CannotAudit(f"an acceptance of at least {floor:g} on the neighbouring sets") from None
    except InvalidParameter as error:  # the ledger claims nothing of such a gate
        raise CannotAudit(str(error.args[0])) from None
    found, event = eps_lower_bound(smaller, larger, delta=claim.delta)
    without = None if bare is None else eps_lower_bound(*bare, delta=claim.delta)[0].low
    if found.low <= claim.eps and (without is None or without <= claim.eps):
        raise CannotAudit(
            "seeds among whom one user more or less shows: here a gate without noise would not be found out either, so "
            "a low figure says nothing (seeds of a single group, of groups far from `k`, or too few `gate_runs`)"
        )
    # the same set twice: what is found there is chance
    chance, _ = eps_lower_bound(smaller[0::2], smaller[1::2], delta=claim.delta)
    return Finding(
        "A9",
        main=found.low,
        interval=Rate(found.low, found.low, found.high if math.isfinite(found.high) else found.low),
        control=chance.low,
        baseline=0.0,
        bar=claim.eps,
        passed=found.low <= claim.eps,
        leaks=found.low > claim.eps,
        reachable=chance.low <= claim.eps,
        words=f"Over {p['gate_runs']} releases of either of two sets of seeds that differ by one user, an auditor who "
        f"knows all else proves eps >= {found.low:.3f} (estimate {found.value:.3f}); claimed is eps <= {claim.eps:.3f} "
        f"with delta = {claim.delta:.2g}. "
        + ("" if without is None else f"A gate without noise would be found out at eps >= {without:.3f}."),
        details={
            "estimate": found.value,
            "without_noise": without,
            "claimed_delta": claim.delta,
            "runs": p["gate_runs"],
            "seeds": len(pair.smaller.seeds),
            "event": [event.low, event.high],
            "likelier_in_larger": event.grows,
            "t": claim.t,
        },
    )
