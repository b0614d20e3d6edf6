"""
A20: do number, order or tries of the fakes tell their seed? (E63)

The order judged is that of the pool where there is one, else that of the fakes as given, with the number per seed that
such a list shows; fakes straight from `generate_fakes` are private and have no published order yet.

The days of one fake life carry one id anyway: a life counts once, by its first row.

Counts and tries that scatter no more than draws without regard to the seed say nothing; an order that a shuffle would
not produce does. Information is in bits per fake (order) or per seed (counts, tries).
"""

import math

import numpy as np

from elsewhere.evaluation.attacks.finding import Finding
from elsewhere.evaluation.attacks.ground import Ground
from elsewhere.traces.model import Ints

CHANCE = 0.01
PARTS = 8
SHUFFLES = 400


def entropy(counts: Ints) -> float:
    """Bits."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum())


def information(a: Ints, b: Ints) -> float:
    """Mutual information of two whole numbers, in bits, as the sample has it."""
    joint = np.zeros((int(a.max()) + 1, int(b.max()) + 1), dtype=np.int64)
    np.add.at(joint, (a, b), 1)
    return max(0.0, entropy(joint.sum(axis=1)) + entropy(joint.sum(axis=0)) - entropy(joint.ravel()))


def order_tells(seed: Ints, rng: np.random.Generator) -> tuple[float, float, float]:
    """Bits by which the place in the list tells the seed, beyond a shuffle; the shuffle's own; p of a shuffle."""
    n = len(seed)
    _, seed = np.unique(seed, return_inverse=True)
    part = np.arange(n) * min(PARTS, n) // n

    def told(order: Ints) -> tuple[float, float]:
        group = order * min(PARTS, n) // (int(order.max()) + 1)
        return information(part, group), float((order[1:] == order[:-1]).mean()) if n > 1 else 0.0

    blocks, twins = told(seed)
    shuffled = np.array([told(rng.permutation(seed)) for _ in range(SHUFFLES)])
    # a list in order, or in which the fakes of one seed stand together
    beyond = [(shuffled[:, i] >= value).sum() for i, value in enumerate((blocks, twins))]
    p = min(1.0, 2 * (1 + min(beyond)) / (SHUFFLES + 1)) if shuffled.std() > 0 else 1.0
    chance = float(shuffled[:, 0].mean())
    together = max(0.0, twins - float(shuffled[:, 1].mean())) * math.log2(max(2, int(seed.max()) + 1))
    return max(0.0, blocks - chance, together), chance, float(p)


def scatter_tells(counts: Ints, expected_variance: float) -> tuple[float, float]:
    """Bits by which counts tell the seed beyond chance, and p of scatter this large by chance alone."""
    from scipy.stats import chi2

    spread = float(counts.var())
    if spread == 0:
        return 0.0, 1.0
    n = len(counts)
    p = float(chi2.sf(n * spread / max(expected_variance, 1e-12), n - 1))
    return max(0.0, 0.5 * math.log2(spread / max(expected_variance, 1e-12))), p


def side_channel(ground: Ground) -> Finding:
    """A20."""
    rng, owner = ground.rng("A20"), ground.main.owner
    per_seed = np.bincount(owner[_first_days(ground.life)], minlength=len(ground.seeds.r))
    bits, p, chance = {}, {}, 0.0
    if ground.listed or ground.pool is not None:
        bits["order"], chance, p["order"] = order_tells(_published(ground, owner), rng)
    if ground.listed and ground.pool is None:
        made = per_seed[per_seed > 0]
        bits["count"], p["count"] = scatter_tells(made, float(made.mean()))
    if ground.attempts is not None and len(ground.attempts) == len(per_seed):
        used = per_seed > 0
        tries, needed = ground.attempts[used], per_seed[used]
        rate = min(1.0, needed.sum() / max(1, tries.sum()))
        # tries for a given number of fakes at one acceptance for all: negative binomial
        bits["tries"], p["tries"] = scatter_tells(tries, float(needed.mean() * (1 - rate) / rate**2))
    told = {name: bits[name] for name in bits if p[name] <= CHANCE}
    main = max(told.values(), default=0.0)
    worst = max(told, key=lambda name: told[name], default="")
    if told:
        words = (
            f"What tells the seeds of the fakes: {', '.join(told)} ({main:.2f} bits by {worst}). Shuffle them, make as "
            "many of every seed, never export the tries."
        )
    elif bits:
        words = f"The seeds of the fakes are not told, beyond chance, by: {', '.join(bits)}."
    else:
        words = "These fakes are private and have no published order yet; give the pool to judge it."
    return Finding(
        "A20",
        main=main,
        control=0.0,
        baseline=chance,
        bar=0.0,
        passed=not told if bits else None,
        reachable=True,
        words=words,
        details={"bits": bits, "p": p},
    )


def _published(ground: Ground, owner: Ints) -> Ints:
    """Seeds in the order in which the fakes are published: that of the pool where there is one."""
    if ground.pool is None:
        return owner[_first_days(ground.life)]
    known = {row.tobytes(): int(seed) for row, seed in zip(np.ascontiguousarray(ground.fakes), owner, strict=True)}
    rows = np.ascontiguousarray(ground.pool.r.astype(np.int64))
    return np.array([known.get(row.tobytes(), -1) for row in rows[_first_days(ground.pool.user)]], dtype=np.int64)


def _first_days(life: Ints) -> Ints:
    """The first row of each life, in the order of the rows."""
    return np.sort(np.unique(life, return_index=True)[1])
