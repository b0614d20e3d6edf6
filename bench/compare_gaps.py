"""
Missing slots drawn by Gibbs sampling, filled forward, or left out: the figures of docs/decisions.md, gaps.

`python bench/compare_gaps.py [SWEEPS [SEEDS]]` (ten minutes; needs ../shared/data/studentlife). Complete days of
StudentLife, places merged to 400; the first 70 % of every user's days teach, the others are predicted. Of the
teaching days 30 % of the slots are deleted, one by one or in runs of two hours. Errors are means over users.

- p: total variation between rows of p(u) with and without deletion, weighted by the departures without.
- next: share of next places told right by the most likely target of p(u), a stay where the place is new; of all
  steps, of those that change the place, and the mean surprise (nats) of all steps, p mixed with 1 % of "anywhere".
"""

import sys
import time
from pathlib import Path

import numpy as np

import elsewhere as ew

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "studentlife" / "studentlife_72slots.parquet"
SHARE, RUN = 0.3, 6


def deleted(r, runs, rng):
    """30 % of the slots, never the first of a row, so that filling forward is possible."""
    gone = np.zeros(r.shape, dtype=bool)
    if not runs:
        gone = rng.random(r.shape) < SHARE
    while runs and gone.mean() < SHARE:
        row, t = rng.integers(len(r)), rng.integers(1, r.shape[1])
        gone[row, t : t + RUN] = True
    gone[:, 0] = False
    return np.where(gone, -1, r)


def forward(r):
    last = np.maximum.accumulate(np.where(r >= 0, np.arange(r.shape[1]), 0), axis=1)
    return np.take_along_axis(r, last, axis=1)


def tables(profiles, R):
    for u in profiles:
        p = np.zeros((R, R))
        p[np.ix_(u.support, u.support)] = u.p()
        leaving = np.bincount(u.support[u.origin], u.count, R)
        yield p, leaving


def judged(profiles, truth, later, R):
    error, right, moved, surprise = [], [], [], []
    for n, ((p, _), (q, leaving)) in enumerate(zip(tables(profiles, R), tables(truth, R), strict=True)):
        away = np.abs(p - q).sum(axis=1) / 2
        away[p.sum(axis=1) == 0] = 1.0
        error.append(leaving @ away / leaving.sum())
        days = later.r[later.user == n]
        here, there = days[:, :-1].ravel(), days[:, 1:].ravel()
        guess = np.where(p.sum(axis=1) > 0, p.argmax(axis=1), np.arange(R))
        hit = guess[here] == there
        right.append(hit.mean())
        moves = here != there
        if moves.any():
            moved.append(hit[moves].mean())
        surprise.append(-np.log(0.99 * p[here, there] + 0.01 / R).mean())
    return [float(np.mean(x)) for x in (error, right, moved, surprise)]


def main():
    traces = ew.read_traces(DATA, places="merge", map="whole")  # as in the figures of the page
    rows, rest = [], []
    for u in range(traces.U):
        mine = np.flatnonzero(traces.user == u)
        cut = round(0.7 * len(mine))
        rows, rest = [*rows, *mine[:cut]], [*rest, *mine[cut:]]
    first, later = traces.select(np.array(rows)), traces.select(np.array(rest))
    truth = ew.fit_profiles(first)
    print(f"{traces}; {len(first)} days teach, {len(later)} are predicted")
    print(f"{'':44}{'p':>8}{'next':>8}{'moves':>8}{'nats':>8}{'s':>7}")
    print(f"{'nothing deleted':44}" + "".join(f"{v:8.3f}" for v in judged(truth, truth, later, traces.R)))
    sweeps, seeds = (int(word) for word in [*sys.argv[1:], *["200", "3"][len(sys.argv) - 1 :]])
    for runs in (False, True):
        scores = {}
        for seed in range(seeds):
            gappy = first.with_places(deleted(first.r, runs, np.random.default_rng(seed)))
            ways = {
                "left out": lambda g=gappy: ew.fit_profiles(g, missing="skip"),
                "filled forward": lambda g=gappy: ew.fit_profiles(g.with_places(forward(g.r))),
                "Gibbs": lambda g=gappy, s=seed: ew.fit_profiles(
                    g, missing="gibbs", rng=np.random.default_rng(s), sweeps=sweeps, burn_in=sweeps // 2
                ),
            }
            for name, fit in ways.items():
                began = time.perf_counter()
                profiles = fit()
                took = time.perf_counter() - began
                scores.setdefault(name, []).append([*judged(profiles, truth, later, traces.R), took])
                if profiles.sampling is not None:
                    print(f"  {profiles.sampling}", file=sys.stderr)
        for name, found in scores.items():
            kind = "runs of two hours" if runs else "single slots"
            mean = np.mean(found, axis=0)
            line = "".join(f"{v:8.3f}" for v in mean[:-1])
            print(f"{f'30 % deleted, {kind}: {name}':44}{line}{mean[-1]:7.1f}", flush=True)


if __name__ == "__main__":
    main()
