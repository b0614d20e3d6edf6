"""
The suite on the original tool's fakes of PF Tokyo: measured figures and published rows must come out again.

PF: Nightley Inc.; Shibasaki & Sekimoto Laboratory, University of Tokyo; Micro Geo Data Forum; People Flow project;
CSIS, University of Tokyo. Fakes and published rows: SGLT by Bindschaedler and Shokri, as run by the authors of PPMTF.
"""

import csv
import re
import time
from pathlib import Path

import numpy as np
import pytest
from referee import TOP, membership_rates, reidentification_rate, tm_emd, tp_tv

from elsewhere.data.slots import Traces
from elsewhere.data.visits import Locations
from elsewhere.evaluation.attack_base import Link, Lives, chance_of_top, user_rate
from elsewhere.evaluation.attack_copies import overlap_with_own
from elsewhere.evaluation.attack_linkage import by_move_times, by_pairs, by_time_shares, reconstruct_seeds
from elsewhere.evaluation.audit import ALL, audit

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "pf_tokyo"
FILES = (
    "pf_tokyo_traces.csv.gz",
    "pf_tokyo_locations.csv",
    "sglt_reference_outputs.parquet",
    "sglt_utilpriv_results.csv",
)
OWNER = np.repeat(np.arange(500), 10)
KAPPAS = (50, 100, 150, 200)


@pytest.fixture(scope="module")
def pf():
    missing = [name for name in FILES if not (DATA / name).exists()]
    if missing:
        pytest.skip(f"needs {missing[0]} of PF Tokyo in ../shared/data/pf_tokyo")
    import pandas as pd

    table = pd.read_csv(DATA / "pf_tokyo_traces.csv.gz", usecols=["uid", "slot", "loc"]).sort_values(["uid", "slot"])
    r = table["loc"].to_numpy().reshape(1000, 30)
    places = pd.read_csv(DATA / "pf_tokyo_locations.csv")
    where = Locations(lat=places["lat"].to_numpy(), lon=places["lon"].to_numpy())
    made = pd.read_parquet(DATA / "sglt_reference_outputs.parquet")
    made = made.sort_values(["clusters", "par_l", "user", "trace_no", "time_period"], kind="stable")
    settings = made[["clusters", "par_l"]].drop_duplicates().to_numpy()
    fakes = made["poi_index"].to_numpy().astype(np.int64).reshape(len(settings), 5000, 30)
    return {
        "seeds": Traces(r[:500], where, start="09:00"),
        "holdout": Traces(r[500:], where, start="09:00"),
        "fakes": {(int(k), round(float(p), 2)): f for (k, p), f in zip(settings, fakes, strict=True)},
        "y": places["y_id"].to_numpy(),
        "x": places["x_id"].to_numpy(),
    }


@pytest.fixture(scope="module")
def link(pf):
    where = pf["seeds"].locations
    people = Lives.of_slots(pf["seeds"].r, where)
    return lambda kappa: Link(Lives.of_slots(pf["fakes"][kappa, 1.0], where), people, OWNER)


def near(hits, figure, user=OWNER):
    """Whether a measured figure, in per cent as printed, lies in the interval of ours."""
    rate, _ = user_rate(hits, user, np.random.default_rng(1))
    return rate.low - 0.0005 <= figure / 100 <= rate.high + 0.0005


FLAGGED = ("A1", "A2", "A4", "A5", "A6", "A10", "A13", "A15")


@pytest.fixture(scope="module")
def audited(pf):
    real = pf["seeds"], pf["holdout"]
    return audit(*real, pf["fakes"][50, 1.0], OWNER, attacks=FLAGGED, m_min=5, rng=np.random.default_rng(1)).to_dict()


@pytest.mark.soak
def test_the_whole_audit_takes_less_than_five_minutes(pf):
    steps, start = [], time.monotonic()
    real, rng = (pf["seeds"], pf["holdout"]), np.random.default_rng(1)
    audit(*real, pf["fakes"][50, 1.0], OWNER, rng=rng, progress=lambda i, n: steps.append(i))

    assert steps == list(range(1, len(ALL) + 1))
    assert time.monotonic() - start < 300


def test_figures_of_the_original_tool(audited):
    found = audited

    def holds(entry, figure):
        low, high = entry["interval"]
        return low <= figure <= high

    assert found["A2"]["main"] == pytest.approx(0.0112, abs=1.5e-4)  # ties shared; the referee takes the first
    assert holds(found["A4"], 0.046)
    assert found["A4"]["main"] == pytest.approx(0.0455, abs=5e-5)
    assert found["A4"]["top10"]["interval"][0] <= 0.196 <= found["A4"]["top10"]["interval"][1]
    assert holds(found["A5"], 0.969)
    assert found["A5"]["top10"]["value"] > 0.999
    assert found["A5"]["time_shares"]["value"] == pytest.approx(0.017, abs=5e-4)
    assert found["A5"]["strongest"] == "pairs"  # the original tool's classes are not known
    assert found["A4"]["strongest"] == "aligned"
    assert found["A15"]["main"] > 0.9
    assert found["A15"]["single"]["moves_per_day"] == pytest.approx(0.815, abs=5e-4)
    assert found["A15"]["single"]["places"] == pytest.approx(0.825, abs=5e-4)
    assert found["A15"]["mean_fake"]["moves_per_day"] == pytest.approx(4.6, abs=0.05)
    assert found["A15"]["mean_fake"]["places"] == pytest.approx(5.3, abs=0.05)
    assert found["A1"]["own_points_aligned"] == 0
    assert found["A1"]["own_shared"]["value"] == pytest.approx(0.33, abs=0.005)
    assert found["A6"]["baseline"] == pytest.approx(0.02, abs=5e-4)


def test_the_original_tool_is_flagged(audited):
    assert [a for a in FLAGGED if audited[a]["passed"] is not False] == []


@pytest.mark.parametrize(
    ("kappa", "sim_s", "timing", "timing10", "aware", "aware10"),
    [
        (50, 1.7, 4.6, 19.6, 96.9, 100),
        (100, 3.2, 12.7, 34.0, 98.7, 100),
        (150, 5.7, 24.9, 46.1, 99.1, 100),
        (200, 7.6, 22.9, 40.8, 91.3, 94.7),
    ],
)
def test_linkage_of_the_original_tool(link, kappa, sim_s, timing, timing10, aware, aware10):
    case = link(kappa)
    times, shares, pairs = by_move_times(case), by_time_shares(case), by_pairs(case)

    assert 100 * chance_of_top(times, OWNER).mean() == pytest.approx(timing, abs=0.06)
    assert 100 * chance_of_top(times, OWNER, 10).mean() == pytest.approx(timing10, abs=0.06)
    assert 100 * chance_of_top(shares, OWNER).mean() == pytest.approx(sim_s, abs=0.06)
    assert near(chance_of_top(pairs, OWNER), aware)
    assert near(chance_of_top(pairs, OWNER, 10), aware10)


@pytest.mark.parametrize(
    ("kappa", "n", "exact", "top5"),
    [(50, 1, 18.3, 58.7), (50, 3, 34.6, 73.7), (50, 10, 49.7, 81.0), (100, 1, 40.3, 77.0), (100, 10, 59.8, 86.6)],
)
def test_reconstruction_from_the_original_tool(link, kappa, n, exact, top5):
    found = reconstruct_seeds(link(kappa), n)

    assert 100 * found.exact.mean() == pytest.approx(exact, abs=0.06)
    assert 100 * found.top5.mean() == pytest.approx(top5, abs=0.06)
    assert 100 * found.prior.mean() == pytest.approx(2.0, abs=0.06)


@pytest.mark.parametrize(("kappa", "share"), [(50, 33), (100, 58), (150, 64), (200, 71)])
def test_shared_places_of_the_original_tool(link, kappa, share):
    common = overlap_with_own(link(kappa))

    assert 100 * (common[:, 1] > 0).mean() == pytest.approx(share, abs=0.6)
    assert common[:, 0].sum() == 0


def published():
    rows = []
    if (DATA / FILES[3]).exists():
        with (DATA / FILES[3]).open() as file:
            for row in list(csv.reader(file))[1:]:
                kappa, par_l = re.search(r"_c(\d+)_0\.25_0\.75_([\d.]+)_4_", row[1]).groups()
                rows.append((int(kappa), float(par_l), [float(row[i]) for i in (2, 3, 4, 6, 10, 18, 19)]))
    return rows


def test_published_re_identification_of_all_forty_settings(pf):
    rows = published()
    found = [reidentification_rate(pf["seeds"], pf["fakes"][kappa, par_l], OWNER) for kappa, par_l, _ in rows]

    assert len(rows) == 40
    assert found == [row[2][0] for row in rows]


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("par_l", [0.0, 1.0])
def test_published_utility_and_membership(pf, kappa, par_l):
    (row,) = [figures for k, p, figures in published() if (k, p) == (kappa, par_l)]
    fakes, real = pf["fakes"][kappa, par_l], pf["holdout"]
    member = membership_rates(pf["seeds"], real, fakes, OWNER)

    assert member.accuracy == pytest.approx(row[1], abs=1e-9)
    assert member.advantage == pytest.approx(row[2], abs=1e-9)
    assert tp_tv(fakes, real, seed_index=OWNER) == pytest.approx(row[3], abs=1e-9)
    # places tied for rank 50 are shared here; the referee's choice among them depends on its sort (.1869 or .1882)
    assert tp_tv(fakes, real, seed_index=OWNER, top=TOP) == pytest.approx(row[4], abs=2e-3)
    assert tm_emd(fakes, real, pf["y"], seed_index=OWNER) == pytest.approx(row[5], abs=1e-9)
    assert tm_emd(fakes, real, pf["x"], seed_index=OWNER) == pytest.approx(row[6], abs=1e-9)


def test_published_figures_of_the_training_set(pf):
    assert tp_tv(pf["seeds"], pf["holdout"]) == pytest.approx(0.3855333333, abs=1e-9)
    assert tm_emd(pf["seeds"], pf["holdout"], pf["y"]) == pytest.approx(0.589243225, abs=1e-8)
    assert tm_emd(pf["seeds"], pf["holdout"], pf["x"]) == pytest.approx(0.626699240, abs=1e-8)
