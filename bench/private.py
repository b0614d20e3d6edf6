"""
Certified fakes beside an AdaTrace-like tool and two Markov chains at equal (eps, delta).

    python bench/private.py prototypes           learn the prototypes of classes on simulated towns, and print them

`bench/certificate.py` measures the generators on people of one day, and writes its table. Constants of the certified
method were chosen on towns of other seeds (docs/decisions.md). Baselines get the same accounting (Gaussian, user
level), but float noise: they are measured, not published. Slots of certified fakes in which nobody is seen take the
last place, as those of people do.
"""

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
from referee import hold_places, tp_tv

import elsewhere as ew
from elsewhere.data.slots import clock_minutes
from elsewhere.synthesis import _certified_kernels as kernels
from elsewhere.synthesis.certificate import SIGMA, from_generator, gaussian_mu, noise_of, noisy_sum
from elsewhere.synthesis.certified import Design, Sums, days_of, fit_law, observed, sums_of

sys.path.insert(0, str(Path(__file__).parent))

DELTA, DATASET, FAKES = 1e-6, 500, 2000
Rng = np.random.Generator


def ours(people: ew.Traces, eps: float, n: int, rng: Rng) -> Any:
    """Certified fakes of a day, below the number of people that a run asks for too; eps 0: the same without noise."""
    design, seen = Design.of(people.locations), observed(people.visits())
    mu = noise_of(eps, DELTA, design.cells) if eps else 1.0
    y = sums_of(seen, design, mu)
    y = noisy_sum(y, mu, from_generator(rng)) if eps else y / SIGMA
    fitted = fit_law(Sums.of(design, y, 1 / mu if eps else 1e-9), rng)
    key = rng.integers(0, 2**63, 2).astype(np.uint64)
    r, _ = fitted.draw(np.zeros(1, dtype=np.int64), key, np.arange(n))
    first = round(clock_minutes(people.start) / 20)
    r = r[:, 0, first : first + people.L]
    return hold_places(r[(r >= 0).any(axis=1)])


def prototypes() -> Any:
    """Centres of k-means over usages of three towns, seen all day, and from 9 to 19 h; the night place first."""
    from sklearn.cluster import KMeans

    tables = []
    for seed, days, users in ((3, 1, 3000), (4, 7, 400), (5, 14, 200)):
        town = ew.simulate_town(users=users, days=days, locations=400, rng=np.random.default_rng(seed)).traces
        whole = days_of(observed(town.visits()))
        for window, again in ((slice(0, 72), 2), (slice(27, 57), 1)):
            r = np.full_like(whole.r, -1)
            r[:, window] = whole.r[:, window]
            found = np.vstack([usages(r[a:b], whole.off[a:b]) for a, b in itertools.pairwise(whole.first)])
            some = np.random.default_rng(seed).permutation(len(found))[:8000]
            tables += [found[some]] * again
    centres = KMeans(kernels.CLASSES - 1, n_init=5, random_state=1).fit(np.vstack(tables)).cluster_centers_
    night = centres[:, [0, 1, 7]].sum(axis=1) + centres[:, -3]
    return centres[np.lexsort((-centres[:, -3], night < night.max()))]


def usages(r: Any, off: Any) -> Any:
    """How a person uses each place that is not only passed through: the numbers that classes are told by."""
    m, F = 1 + r.size, 2 * kernels.DAYPARTS
    number, place, table, total = np.full(2048, -1), np.empty(m, np.int64), np.empty((m, F)), np.empty(m)
    runs, between, days = np.empty((3, m), dtype=np.int64)
    n = kernels.find_usages(r, off, number, place, table, total, runs, between, days)
    some = between[:n] < runs[:n]
    share, stay = 1.5 * total[:n] / total[:n].sum(), 0.4 * np.log1p(total[:n] / runs[:n] / kernels.PER_HOUR)
    parts = np.sqrt(table[:n] / total[:n, None])
    return np.column_stack([parts, share, stay, 0.8 * days[:n] / len(r)])[some]


def bounded(keys: Any, who: Any, n: int, size: int, most: float) -> Any:
    """Sum over people of their counts by key, each person's cut to an L2 norm of `most`."""
    both, count = np.unique(who.astype(np.int64) * size + keys, return_counts=True)
    owner, key = both // size, both % size
    norm = np.sqrt(np.bincount(owner, count.astype(float) ** 2, minlength=n))
    return np.bincount(key, count * np.minimum(1, most / np.maximum(norm, 1e-9))[owner], minlength=size)


def shares(y: Any, floor: float = 0.0) -> Any:
    """The shares >= 0 nearest to noisy counts."""
    total = max(float(y.sum()), 1.0)
    u = np.sort(y)[::-1]
    c = (np.cumsum(u) - total) / np.arange(1, len(y) + 1)
    x = np.maximum(y - c[np.flatnonzero(u - c > 0)[-1]], 0)
    return (1 - floor) * x / x.sum() + floor / len(y)


def drawn(rows: Any, rng: Rng) -> Any:
    """One column of each row, by weight."""
    total = np.cumsum(rows, axis=1)
    return np.minimum((total < rng.random(len(rows))[:, None] * total[:, -1:]).sum(axis=1), rows.shape[1] - 1)


def moves_of(r: Any) -> tuple[Any, Any]:
    """Row and step of every move."""
    return np.nonzero(r[:, 1:] != r[:, :-1])


def chain(people: ew.Traces, eps: float, n: int, rng: Rng) -> Any:
    """A first-order chain by part of day: noisy counts above a threshold; rows without one stay where they are."""
    r, R, P = people.r.astype(np.int64), people.R, 3
    N, L = r.shape
    sigma = 1 / gaussian_mu(eps, DELTA) if eps else 0.0
    part = np.minimum(np.arange(L - 1) * P // (L - 1), P - 1)
    most = 0.5 * (L - 1)
    keys, who = (part * R * R + r[:, :-1] * R + r[:, 1:]).ravel(), np.repeat(np.arange(N), L - 1)
    sd = sigma * most / np.sqrt(0.8)
    count = bounded(keys, who, N, P * R * R, most) + sd * rng.standard_normal(P * R * R)
    count = np.where(count > 4.5 * sd, count, 0).reshape(P, R, R)
    first = shares(np.bincount(r[:, 0], minlength=R) + sigma / np.sqrt(0.2) * rng.standard_normal(R))
    out = np.empty((n, L), dtype=np.int64)
    out[:, 0] = rng.choice(R, n, p=first)
    for t in range(1, L):
        rows = count[part[t - 1]][out[:, t - 1]]
        empty = rows.sum(axis=1) == 0
        rows[empty] = count.sum(axis=0)[out[empty, t - 1]]
        empty = rows.sum(axis=1) == 0
        out[:, t] = np.where(empty, out[:, t - 1], drawn(rows, rng))
    return out


def kinder_chain(people: ew.Traces, eps: float, n: int, rng: Rng) -> Any:
    """A chain that moves at a noisy pace; each move pair once per person; unknown moves lead where people arrive."""
    r, R, P, pairs = people.r.astype(np.int64), people.R, 3, 10
    N, L = r.shape
    sigma = 1 / gaussian_mu(eps, DELTA) if eps else 0.0
    part = np.minimum(np.arange(L - 1) * P // (L - 1), P - 1)
    i, t = moves_of(r)
    key = np.unique(i * R * R + r[i, t] * R + r[i, t + 1])
    sd = sigma * np.sqrt(pairs) / np.sqrt(0.4)
    pair = bounded(key % (R * R), key // (R * R), N, R * R, np.sqrt(pairs)) + sd * rng.standard_normal(R * R)
    pair = np.where(pair > 3.5 * sd, pair, 0).reshape(R, R)
    arrive = bounded(r[i, t + 1], i, N, R, np.sqrt(pairs)) + sigma * np.sqrt(pairs / 0.25) * rng.standard_normal(R)
    arrive = shares(arrive) * max(float(arrive.sum()), 1.0)
    most = 0.5 * (L - 1)
    pace = bounded(part[t], i, N, P, most) + sigma * most / np.sqrt(0.1) * rng.standard_normal(P)
    pace = np.clip(pace / N / np.bincount(part), 0.001, 0.95)
    first = shares(np.bincount(r[:, 0], minlength=R) + sigma / np.sqrt(0.25) * rng.standard_normal(R))
    rest = np.maximum(arrive - pair.sum(axis=1), 0.05 * arrive + 1e-9)
    law = pair + rest[:, None] * arrive / arrive.sum()
    np.fill_diagonal(law, 0)
    law += 1e-12
    out = np.empty((n, L), dtype=np.int64)
    out[:, 0] = rng.choice(R, n, p=first)
    for step in range(1, L):
        to = drawn(law[out[:, step - 1]], rng)
        out[:, step] = np.where(rng.random(n) < pace[part[step - 1]], to, out[:, step - 1])
    return out


def adatrace(people: ew.Traces, eps: float, n: int, rng: Rng) -> Any:
    """
    AdaTrace-like: blocks of places, as many as people and eps allow; starts, density, chain of blocks, moves per day.

    Blocks are halved along the public coordinates; within a block places are drawn by density.
    """
    r, R, xy = people.r.astype(np.int64), people.R, people.locations.planar()
    N, L = r.shape
    sigma = 1 / gaussian_mu(eps, DELTA) if eps else 0.0
    levels = int(np.clip(np.floor(np.log2(max(np.sqrt(N / max(sigma, 0.3)), 4))), 2, 6))
    block = np.zeros(R, dtype=np.int64)
    for level in range(levels):
        halved = block * 2
        for b in np.unique(block):
            mine = np.flatnonzero(block == b)
            order = mine[np.argsort(xy[mine, level % 2], kind="stable")]
            halved[order[len(order) // 2 :]] += 1
        block = halved
    G = 2**levels
    first = shares(np.bincount(block[r[:, 0]], minlength=G) + sigma / np.sqrt(0.2) * rng.standard_normal(G))
    density = bounded(r.ravel(), np.repeat(np.arange(N), L), N, R, 0.5 * L) / L
    density = shares(density + sigma * 0.5 / np.sqrt(0.35) * rng.standard_normal(R), floor=0.02)
    i, t = moves_of(r)
    most = 6.0
    law = bounded(block[r[i, t]] * G + block[r[i, t + 1]], i, N, G * G, most)
    law = np.maximum(law + sigma * most / np.sqrt(0.3) * rng.standard_normal(G * G), 0).reshape(G, G) + 1e-6
    length = np.bincount((r[:, 1:] != r[:, :-1]).sum(axis=1), minlength=L)
    length = shares(length + sigma / np.sqrt(0.15) * rng.standard_normal(L))
    within = [np.flatnonzero(block == b) for b in range(G)]

    def place(blocks: Any) -> Any:
        out = np.empty(len(blocks), dtype=np.int64)
        for g in np.unique(blocks):
            mine, p = blocks == g, density[within[g]]
            out[mine] = rng.choice(within[g], int(mine.sum()), p=p / p.sum())
        return out

    out = np.empty((n, L), dtype=np.int64)
    out[:, 0] = place(rng.choice(G, n, p=first))
    when = np.argsort(rng.random((n, L - 1)), axis=1) < rng.choice(L, n, p=length)[:, None]
    for step in range(1, L):
        to = place(drawn(law[block[out[:, step - 1]]], rng))
        out[:, step] = np.where(when[:, step - 1], to, out[:, step - 1])
    return out


GENERATORS = {"certified": ours, "AdaTrace-like": adatrace, "chain, kinder": kinder_chain, "chain": chain}


def top_moves(fakes: Any, real: ew.Traces, top: int = 50) -> float:
    """Share of the `top` most frequent moves of real people that are among those of the fakes."""
    best = []
    for r in (np.asarray(fakes), real.r):
        i, t = moves_of(r)
        best.append(np.argsort(-np.bincount(r[i, t].astype(np.int64) * real.R + r[i, t + 1]), kind="stable")[:top])
    return len(np.intersect1d(*best)) / top


def figures(fakes: Any, people: ew.Traces, aside: ew.Traces, *, members: bool) -> dict[str, float]:
    """What is measured of fakes: where they are, top moves, told from real people, and `members` of the file found."""
    datasets = np.array_split(np.arange(len(fakes)), max(1, len(fakes) // DATASET))
    some = people.of_users(np.arange(min(people.U, 1000)))
    attacks = ["A15", "A10"] if members else ["A15"]
    told = ew.audit(some, aside, fakes[:FAKES], None, attacks=attacks, rng=np.random.default_rng(1))
    found = {
        "TP-TV": float(np.mean([tp_tv(fakes[mine], aside.r) for mine in datasets])),
        "top moves": top_moves(fakes, aside),
    }
    return found | {attack: told.to_dict()[attack]["main"] for attack in attacks}


def splits(kind: str, people: int) -> list[tuple[ew.Traces, ew.Traces]]:
    """People learnt from and people held out; those of PF are three random splits."""
    if kind == "pf":
        from results import Tokyo

        everybody, pairs = Tokyo().people, []
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(1000)
            pairs.append((everybody.of_users(np.sort(order[:667])), everybody.of_users(np.sort(order[667:]))))
        return pairs
    town = ew.simulate_town(users=people + 1000, locations=400, rng=np.random.default_rng(17)).traces
    return [(town.of_users(np.arange(people)), town.of_users(np.arange(people, people + 1000)))]


if __name__ == "__main__":
    if sys.argv[1:] != ["prototypes"]:
        sys.exit(__doc__)
    print(np.array2string(prototypes(), precision=2, suppress_small=True, separator=", ", max_line_width=200))
