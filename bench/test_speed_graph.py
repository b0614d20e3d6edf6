"""The location graph grows linearly with the number of users: seconds, exponent and memory at 1k, 10k, 100k users."""

import resource
import time

import numpy as np
import pytest

import elsewhere as ew
from elsewhere.paper.profiles import Profiles


def seconds(profiles):
    start = time.perf_counter()
    assert ew.semantic_graph(profiles).w.any()
    return time.perf_counter() - start


@pytest.mark.parametrize("periods", [1, 4])
def test_cost_is_linear_in_users(periods):
    sizes = [1_000, 10_000, 100_000]
    town = ew.simulate_town(users=sizes[-1], locations=1_000, rng=np.random.default_rng(1))
    profiles = ew.fit_profiles(town.traces, periods=periods)
    seconds(profiles[:50])
    took = [min(seconds(Profiles.of(profiles[:U])) for _ in range(2)) for U in sizes]
    exponent = np.polyfit(np.log(sizes), np.log(took), 1)[0]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    shown = ", ".join(f"{U:,} users {s:.2f} s" for U, s in zip(sizes, took, strict=True))
    print(f"\nlocation graph, T = {periods}: {shown}; exponent {exponent:.2f}; peak memory {memory:.2f} GB")
    assert exponent <= 1.1
    assert took[-1] <= 60
    assert memory <= 2.0
