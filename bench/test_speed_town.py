"""The simulated town: user-days per second, linear growth, and the compiled kernel against plain Python."""

import sys
import time
from pathlib import Path

import numpy as np

import elsewhere as ew
from elsewhere.traces import _traces_kernels as kernels
from elsewhere.traces import town as module

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import naive


def seconds(users, days=1, **options):
    # of the processor: one thread, and the ratio must not depend on who else is busy
    start = time.process_time()
    town = ew.simulate_town(users=users, days=days, rng=np.random.default_rng(1), **options)
    assert len(town.traces) == users * days
    return time.process_time() - start


def test_user_days_per_second():
    seconds(10)
    once, twice = (min(seconds(users) for _ in range(3)) for users in (100_000, 200_000))
    week = seconds(15_000, 7)
    fine = seconds(100_000, locations=100_000)
    print(
        f"\ntown: 100,000 user-days in {once:.2f} s ({1e5 / once:,.0f} per s), 2x/1x {twice / once:.2f};"
        f" 15,000 users x 7 days {week:.2f} s; 100,000 users on 100,000 places {fine:.2f} s"
    )
    assert once < 60
    assert twice / once < 2.6


def test_kernel_against_plain_python():
    rng, n = np.random.default_rng(1), 200
    ground, diaries = module._lay_out(400, rng), module._diaries()
    people = module._settle(ground, rng.random((n, module.DRAWS_PER_PERSON)))
    u = rng.random((n, 2, module.DRAWS_PER_DAY))
    out = np.empty((n, 72), dtype=np.int32)
    kernels.live(ground.streets, diaries, people, u, 20.0, out)
    start = time.perf_counter()
    for _ in range(20):
        kernels.live(ground.streets, diaries, people, u, 20.0, out)
    compiled = (time.perf_counter() - start) / 20

    rows = list(zip(*(column.tolist() for column in diaries[2:]), strict=True))
    kinds = [rows[a:b] for a, b in zip(diaries.first[:-1], diaries.first[1:], strict=True)]
    streets = (ground.streets.xy.tolist(), ground.streets.road.tolist(), ground.streets.cell)
    start = time.perf_counter()
    for i in range(n):
        person = (people.keep[i].tolist(), people.late[i], people.outgoing[i], people.pace[i])
        diary = (diaries.cdf[people.habit[i]].tolist(), kinds)
        assert out[i].tolist() == naive.town_life(streets, diary, person, u[i].tolist(), step=20, slots=72)
    plain = time.perf_counter() - start
    print(
        f"\ntown kernel: {1e6 * compiled / n:.1f} us per user-day, {plain / compiled:,.0f} x faster than plain Python"
    )
    assert plain / compiled > 10
