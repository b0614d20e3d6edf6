"""The generator on real data beside the original tool, and its speed: figures printed, targets asserted."""

import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import elsewhere as ew
from elsewhere.paper.generate_fake import FakeMaker
from elsewhere.paper.privacy_test import PrivacyTest
from elsewhere.paper.semseed import Blur, ClassSets
from elsewhere.settings import PRESETS

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
# the original tool's acceptance on its own 5,000 fakes: sim_G < .1, and with set intersection 0 (kappa -> per cent)
SGLT = {50: (78.5, 67.2), 100: (54.1, 41.6), 150: (48.8, 36.2), 200: (49.1, 29.4)}

pytestmark = pytest.mark.filterwarnings("ignore:.* classes instead of", "ignore:`alternates", "ignore:`m_min`")


def need(path):
    if not path.exists():
        pytest.skip(f"{path.relative_to(DATA.parent)} is not here")
    return path


@pytest.fixture(scope="module")
def pf():
    traces = ew.read_traces(
        need(DATA / "pf_tokyo" / "pf_tokyo_traces.csv.gz"), locations=DATA / "pf_tokyo" / "pf_tokyo_locations.csv"
    )
    return traces.select(np.arange(500)), traces.select(np.arange(500, 1000))


def day_statistics(r):
    moves = np.count_nonzero(r[:, 1:] != r[:, :-1], axis=1)
    return moves.mean(), np.mean([len(set(row)) for row in r.tolist()])


def test_paper_preset_on_pf_beside_the_original_tool(pf):
    seeds, _ = pf
    moves, places = day_statistics(seeds.r)
    print(f"\npaper preset on PF, 500 seeds x 10; real {moves:.1f} moves, {places:.1f} places")
    print("kappa  sim_G<.1 (SGLT)   +set (SGLT)  all rules  moves places  on the first place (real)")
    real_first = (seeds.r == 0).mean()
    for kappa, (sim, both) in SGLT.items():
        made = ew.generate_fakes(
            seeds, preset="paper", kappa=kappa, per_seed=10, max_tries=1, par_s=1.0, par_i=30, par_d=1.0,
            rng=np.random.default_rng(kappa),
        )  # fmt: skip
        v = made.verdicts
        close = v.sim < 0.1
        disjoint = v.shared == 0
        k = PrivacyTest.prepare(seeds, "all", par_d=0.1, k=2)(made.r, made.seed)
        alternates = k.alternates >= 1
        m, p = day_statistics(made.r)
        first = (made.r == 0).mean()
        print(
            f"{kappa:5d}  {100 * close.mean():5.1f} ({sim})  {100 * (close & disjoint).mean():8.1f} ({both})  "
            f"{100 * (close & disjoint & alternates).mean():7.1f}  {m:7.1f} {p:5.1f}   {first:.4f} ({real_first:.4f})"
        )
        assert (made.r != seeds.r[made.seed]).all()
        assert first < 0.01


def test_product_preset_on_pf_lives_like_the_people(pf):
    seeds, others = pf
    real = np.array(day_statistics(seeds.r))
    for kappa in (5, 20, "auto"):
        fakes = ew.generate_fakes(seeds, kappa=kappa, alternates=others, rng=np.random.default_rng(1))
        made = np.array(day_statistics(fakes.r))
        unique = len(np.unique(fakes.r, axis=0)) / len(fakes)
        print(
            f"\nproduct preset on PF, kappa {kappa}: {len(fakes)} fakes of {len(seeds)} seeds, acceptance "
            f"{fakes.acceptance:.1%}, moves {made[0]:.1f} (real {real[0]:.1f}), places {made[1]:.1f} (real "
            f"{real[1]:.1f}), unique {unique:.1%}"
        )
        assert (np.abs(made / real - 1) <= 0.15).all()
        assert unique >= 0.99


def test_studentlife_in_the_shape_of_the_paper():
    days = ew.read_traces(need(DATA / "studentlife" / "paperlike_30users_2days_72slots.csv.gz"), places="merge")
    first = days.select(days.dates == days.dates.min())
    start = time.perf_counter()
    fakes = ew.generate_fakes(
        first, preset="paper", kappa=20, per_seed=500, max_tries=1, rng=np.random.default_rng(1), workers=2
    )
    took = time.perf_counter() - start
    m, p = day_statistics(fakes.r)
    rm, rp = day_statistics(first.r)
    t = fakes.tally
    print(
        f"\nStudentLife, 30 seeds x 500 attempts, paper preset, kappa 20: passed {t['passed'] / t['tested']:.1%} "
        f"(similarity rejects {t['similarity'] / t['tested']:.1%}, intersection {t['intersection'] / t['tested']:.1%}, "
        f"differential {t['differential'] / t['tested']:.1%}; the paper: about 80 % pass), {took:.1f} s; "
        f"moves {m:.1f} (real {rm:.1f}), places {p:.1f} (real {rp:.1f})"
    )
    assert t["tested"] == 15_000


def test_milliseconds_per_attempted_fake():
    """R = 400, L = 72, kappa = 20, tests included, one process; the original tool needs about 25 s per fake."""
    town = ew.simulate_town(users=500, locations=400, rng=np.random.default_rng(1)).traces
    label = np.arange(400) % 20
    profiles = ew.fit_profiles(town)
    model = ew.aggregate(profiles, town.locations)
    key = np.array([1, 2], dtype=np.uint64)
    settings = PRESETS["paper"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        test = PrivacyTest.prepare(town, "all", k=2)
    print()
    for sampler in ("viterbi", "ffbs"):
        made = FakeMaker(
            model, ClassSets.of(label), np.zeros(72, dtype=int), Blur(settings.par_c, settings.par_m), sampler, key
        )
        rows = np.arange(2000) % len(town)
        out = made.attempt(town.r[rows], rows=rows, tries=0)
        test(out.r, rows)
        start = time.process_time()
        out = made.attempt(town.r[rows], rows=rows, tries=1)
        middle = time.process_time()
        test(out.r, rows)
        end = time.process_time()
        each = (end - start) / len(rows) * 1e3
        print(
            f"{sampler}: {each:.3f} ms per attempted fake with tests, {1e3 / each:,.0f} per second, tests "
            f"{(end - middle) / (end - start):.1%} of the time; 25 s / that = {25e3 / each:,.0f}"
        )
        assert each <= 1.25


def test_pf_fit_and_five_thousand_fakes_with_tests(pf):
    seeds, others = pf
    for preset, more in (("paper", {}), ("product", {"alternates": others})):
        ew.generate_fakes(seeds, preset=preset, kappa=20, rng=np.random.default_rng(1), **more)
        start = time.perf_counter()
        fakes = ew.generate_fakes(
            seeds, preset=preset, kappa=20, per_seed=10, rng=np.random.default_rng(2), workers=2, **more
        )
        took = time.perf_counter() - start
        print(f"\nPF, {preset}: fit and {len(fakes)} fakes with tests in {took:.1f} s after warm-up")
        assert took <= 10
