"""
The speed of the paper's algorithm in one run, each figure beside what it is compared with.

`python bench/paper_speed.py` (two minutes on a free machine). Order 0 against scipy's assignment on the dense matrix;
order 1 on StudentLife, if it lies in ../shared/data; the graph of 100,000 people against that of 10,000; fakes against
the original tool; the privacy test. Times are of this thread, so that a busy machine decides less.
"""

import time
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

import elsewhere as ew
from elsewhere.paper.generate_fake import ClassSets, FakeMaker, Pars
from elsewhere.paper.privacy_test import PrivacyTest

STUDENTLIFE = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "studentlife"
R, L, U = 400, 72, 400
ORIGINAL_TOOL_S = 25.0  # a fake at L = 72, R = 400


def seconds(work, runs=3):
    """Least seconds of this thread of some runs."""
    spent = []
    for _ in range(runs):
        begin = time.thread_time()
        work()
        spent.append(time.thread_time() - begin)
    return min(spent)


def crowd(rng):
    """Users who share their day unevenly among 5 to 30 of the places, one stay after the other."""
    rows = []
    for _ in range(U):
        places = rng.choice(R, rng.integers(5, 31), replace=False)
        rows.append(np.sort(rng.choice(places, L, p=rng.dirichlet(np.full(len(places), 0.5)))))
    return ew.Traces(rows, ew.Locations(n=R))


def studentlife():
    """30 users, two days of 72 slots, on a grid of 100 m."""
    import pandas as pd

    fixes = pd.read_csv(STUDENTLIFE / "paperlike_30users_2days_72slots.csv.gz").sort_values(["uid", "date", "slot"])
    north = np.floor(fixes["lat"] * 1113.2).astype(int)
    east = np.floor(fixes["lon"] * 1113.2 * np.cos(np.radians(fixes["lat"].mean()))).astype(int)
    cells, r = np.unique(np.column_stack([north, east]), axis=0, return_inverse=True)
    traces = ew.Traces(r.reshape(-1, L), ew.Locations(n=len(cells)), users=fixes["uid"].to_numpy()[::L])
    return ew.fit_profiles(traces)


def order_0():
    rng = np.random.default_rng(1)
    profiles = ew.fit_profiles(crowd(rng))
    ew.pairwise_semantic_similarity(profiles)  # compiles
    ours = seconds(lambda: ew.pairwise_semantic_similarity(profiles), 5) / U**2
    pairs = rng.integers(0, U, (6, 2))
    dense = np.zeros((U, R))
    for i in np.unique(pairs):
        dense[i, profiles[i].support] = profiles[i].pi_r

    def by_scipy(i, j):
        overlap = np.minimum(dense[i][:, None], dense[j])
        return overlap[linear_sum_assignment(overlap, maximize=True)].sum()

    theirs = seconds(lambda: [by_scipy(i, j) for i, j in pairs], 2) / len(pairs)
    print(f"order 0, R = {R}: {ours * 1e9:.0f} ns a pair, {theirs / ours:,.0f} x scipy's assignment (at least 17,000)")


def order_1():
    if not STUDENTLIFE.exists():
        print("order 1: StudentLife is not beside the project")
        return
    some = studentlife()[:12]
    ew.pairwise_semantic_similarity(some[:3], order=1)  # compiles
    each = seconds(lambda: ew.pairwise_semantic_similarity(some, order=1), 2) / (12 * 11)
    print(f"order 1, StudentLife: {each * 1e3:.2f} ms a pair (at most 2)")


def graph():
    town = ew.simulate_town(users=100_000, locations=1_000, rng=np.random.default_rng(1))
    few, many = (ew.fit_profiles(town.traces.select(np.arange(n))) for n in (10_000, 100_000))
    took = [seconds(lambda p=p: ew.semantic_graph(p).w, 1) for p in (few, many)]
    print(f"graph: 100,000 people in {took[1]:.1f} s (at most 6), {took[1] / took[0]:.1f} x that of 10,000")


def fakes():
    traces = ew.simulate_town(users=1000, locations=R, rng=np.random.default_rng(1)).traces
    model = ew.aggregate(ew.fit_profiles(traces), traces.locations)
    label = np.empty(R, dtype=np.int64)
    label[np.argsort(-model.pi_bar, kind="stable")] = np.arange(R) // 20
    label[model.pi_bar == 0] = -1
    maker = FakeMaker(model, ClassSets.of(label), np.zeros(L, int), Pars(), np.arange(2, dtype=np.uint64))
    rows = np.arange(200)
    maker.attempt(traces.r[:1], rows=[0], tries=[0])  # compiles
    each = seconds(lambda: maker.attempt(traces.r[rows], rows=rows, tries=0)) / len(rows)
    one = seconds(lambda: [ew.generate_fake(r, label, model, rng=np.random.default_rng(1)) for r in traces.r[:5]]) / 5
    made = maker.attempt(traces.r[rows], rows=rows, tries=0)
    assert np.all(made >= 0)
    print(
        f"fakes, L = {L}, R = {R}: {each * 1e3:.2f} ms (at most .7), {ORIGINAL_TOOL_S / each:,.0f} x the original "
        f"tool; generate_fake, line by line, {one * 1e3:.0f} ms"
    )
    test = PrivacyTest.prepare(traces, "all", k=2)
    test(made, rows)  # compiles
    print(f"privacy test: {seconds(lambda: test(made, rows)) / len(rows) * 1e6:.1f} us a fake (at most 50)")


if __name__ == "__main__":
    for measure in (order_0, fakes, order_1, graph):
        measure()
