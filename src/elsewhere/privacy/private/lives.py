"""
Lives over days from noisy sums: a home and a main place that stay, and days that are drawn around them.

Homes follow the map of the first part of the day. The main place follows what the map of the middle of the day has
beside those who are at home, and how far it is from home. How much likelier than the walk says a person goes home, to
the main place or to a place of an earlier day, and leaves the first two, is fitted to the noisy sums with the walk.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elsewhere.data.visits import Floats, Ints
from elsewhere.privacy.private._lives_kernels import (
    AT_HOME,
    AT_MAIN,
    DAYS,
    FAR,
    HABITS,
    LAW,
    LEAVE_HOME,
    MANY,
    MOVES,
    OFF,
    OWN,
    PARTS,
    SEVERAL,
    WHOLE,
    WITH_MAIN,
    live,
)
from elsewhere.privacy.private.vectors import MOST_HABITS, Design
from elsewhere.synthesis.walk._walk_kernels import COLUMNS, LENGTHS, MOVING, Tables

BY_KIND = (AT_HOME, AT_MAIN, WITH_MAIN, MOVES)
FEWEST_WEEKENDS = 0.02  # of the days: with fewer all days are weekdays
FLOOR = 0.1  # of the map of the day, in that of main places
RAKES = 30
# the public guess of the law: e^3 towards home and main place, e^2 to own places
GUESS = np.repeat([3.0, 0.0, 2.0, 0.0], [LEAVE_HOME, OWN - LEAVE_HOME, OFF - OWN, LAW - OFF])
PIECE = 2000  # lives drawn at a time


class Drawn(NamedTuple):
    """Days (n D, L) of lives, D each, with their kinds, and the slopes of ln Pr{day} where asked for."""

    r: Ints
    start: Ints
    weekend: NDArray[np.bool_]
    home: Ints
    main: Ints
    score: Floats


@dataclass(frozen=True, eq=False)
class Anchors:
    """Where homes and main places are, and what the noisy sums say of habits."""

    design: Design = field(repr=False)
    home: Floats = field(repr=False)
    main: Floats = field(repr=False)
    far: Floats = field(repr=False)  # (LENGTHS,) factors of the distance
    without: float  # share of people without a main place
    weekends: bool
    goal: Floats = field(repr=False)  # (HABITS,) means over lives of `design.days` days, as in a bounded vector
    variance: Floats = field(repr=False)

    @staticmethod
    def of(design: Design, sums: Floats, noise: float, parts: Floats) -> "Anchors":
        """Read them off the `sums` of habits, whose numbers have this `noise`, and the maps of parts of the day."""
        x, sd = MOST_HABITS * sums, MOST_HABITS * noise
        weekends = bool(x[DAYS + 1] > max(FEWEST_WEEKENDS * x[:2].sum(), 4 * sd))
        kinds = np.array([5 / 7, 2 / 7]) if weekends else np.array([1.0, 0.0])
        goal, variance = np.zeros(HABITS), np.full(HABITS, np.inf)
        for k in range(1 + weekends):
            total = max(x[DAYS + k], 2 * sd) if weekends else x[:2].sum()
            for first in BY_KIND:
                width = PARTS if first in (AT_HOME, AT_MAIN) else 1
                mine = slice(first + k * width, first + (k + 1) * width)
                counts = x[mine] if weekends else x[mine] + x[first + width : first + 2 * width]
                goal[mine] = np.clip(counts / total, 0, 1) * kinds[k]
                variance[mine] = (sd / total * kinds[k]) ** 2
        for has in (SEVERAL, WHOLE):
            if x[has] > 4 * sd:
                goal[has + 1], variance[has + 1] = np.clip(x[has + 1] / x[has], 0, 1), (sd / x[has]) ** 2
        share = np.maximum(x[FAR:], sd / 4)
        share /= share.sum()
        at_home = goal[AT_HOME + 1 : AT_HOME + 3].mean() / kinds[0]
        middle = parts[1:3].mean(axis=0)
        rest = np.maximum(middle - at_home * parts[0], FLOOR * middle)
        main = rest / rest.sum()
        far = _raked(parts[0], main, design.lengths, share[:-1] / share[:-1].sum())
        return Anchors(design, parts[0], main, far, float(share[-1]), weekends, goal, variance)

    @property
    def several(self) -> bool:
        """Tell whether the sums tell what one day and the next have in common."""
        return bool(np.isfinite(self.variance[SEVERAL + 1]))

    def draw(self, tables: Tables, law: Floats, n: int, rng: np.random.Generator, *, scored: bool = False) -> Drawn:
        """Draw `n` lives, that begin on any day of the week."""
        design, R = self.design, self.design.R
        D, L = design.days, design.L
        home = rng.choice(R, n, p=self.home / self.home.sum())
        weight = self.main * self.far[design.lengths]
        np.fill_diagonal(weight, 0.0)
        edges = np.cumsum(weight, axis=1)
        at = rng.random(n)
        main = np.array([np.searchsorted(edges[h], u * edges[h, -1], "right") for h, u in zip(home, at, strict=True)])
        main = np.where(rng.random(n) < self.without, -1, np.minimum(main, R - 1))
        day = rng.integers(7, size=(n, 1)) + np.arange(D)
        weekend = (day % 7 >= 5) & self.weekends
        r = np.empty((n, D, L), dtype=np.int64)
        score = np.zeros((n if scored else 0, D, MOVING + COLUMNS + LAW))
        for a in range(0, n, PIECE):
            b = min(a + PIECE, n)
            u = rng.random((b - a, D, 2 * L - 1))
            live(tables, law, home[a:b], main[a:b], weekend[a:b], design.period, u, r[a:b], score[a:b])
        flat = score.reshape(-1, score.shape[2])
        return Drawn(r.reshape(-1, L), np.arange(n + 1) * D, weekend.ravel(), home, main, flat)


def _raked(home: Floats, main: Floats, lengths: NDArray[np.int8], share: Floats) -> Floats:
    """Return factors of the distance under which so many people have their main place in each bin."""
    far, R = np.ones(LENGTHS), len(home)
    bins = np.stack([((lengths == b) & ~np.eye(R, dtype=bool)) @ main for b in range(LENGTHS)], axis=1)  # (R, LENGTHS)
    for _ in range(RAKES):
        law = bins * far
        law /= np.maximum(law.sum(axis=1, keepdims=True), 1e-12)
        margin = home @ law
        far *= np.clip(share / np.maximum(margin, 1e-9), 0.1, 10)
        far = np.clip(far / far.max(), 1e-6, 1)
    return far


def of_days(lives: Drawn, design: Design) -> Floats:
    """Return (days, WHOLE) what each day adds to the habits of a life that are means over days, around its anchors."""
    D, n = design.days, len(lives.home)
    home, main = np.repeat(lives.home, D)[:, None], np.repeat(lives.main, D)[:, None]
    out, k = np.zeros((n * D, SEVERAL)), lives.weekend.astype(np.int64)
    row, edges = np.arange(n * D), np.searchsorted(design.period, np.arange(PARTS))
    long = np.bincount(design.period, minlength=PARTS)
    for first, place in ((AT_HOME, home), (AT_MAIN, main)):
        there = np.add.reduceat((lives.r == place).astype(np.float64), edges, axis=1) / long
        for p in range(PARTS):
            out[row, first + k * PARTS + p] = there[:, p]
    out[row, WITH_MAIN + k] = (lives.r == main).any(axis=1)
    out[row, MOVES + k] = np.minimum((lives.r[:, 1:] != lives.r[:, :-1]).sum(axis=1), MANY) / MANY
    return out
