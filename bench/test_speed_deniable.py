"""Fakes of the deniable preset, per second and core on PF once all is learnt, and as seeds and fakes grow."""

import time
import warnings

import numpy as np
import pytest
from deniable import DATA, Bench

from elsewhere.privacy.deniable.count import laboratory, mixture, noisy_count

TARGET = 20_000


@pytest.fixture(scope="module")
def pf():
    if not DATA.is_dir():
        pytest.skip("needs PF Tokyo in ../shared/data/pf_tokyo")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bench = Bench()
        bench.told(None)
        return bench


@pytest.mark.parametrize("fakes", [2_000, 20_000, 200_000])
def test_fakes_per_second_on_pf(pf, fakes):
    pf.release(0.5, 100)
    seconds = min(pf.release(0.5, fakes)[2] for _ in range(3))
    print(
        f"\nPF, 500 seeds, {pf.laws.A} archetypes, {fakes:,} fakes: {fakes / seconds:,.0f} per second and core (target "
        f"{TARGET:,}), count and noise included; archetypes, pool of {pf.laws.copies.sum():,} walks and laws learnt in "
        f"{pf.seconds:.1f} s"
    )
    assert fakes / seconds > TARGET


def test_a_count_costs_nothing_as_the_seeds_grow():
    below, found = laboratory(np.random.default_rng(1)), {}
    for seeds in (500, 50_000, 5_000_000):
        codes = np.random.default_rng(2).integers(64, size=seeds)
        start = time.process_time()
        mixture(noisy_count(codes, 64, eps0=0.5, below=below), eps0=0.5)
        found[seeds] = time.process_time() - start
    print(
        "\nnoisy count of 64 archetypes, by seeds: " + ", ".join(f"{n:,}: {1e3 * s:.1f} ms" for n, s in found.items())
    )
    assert found[5_000_000] < 1
