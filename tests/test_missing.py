"""`--missing gibbs` and rows with gaps: what is unknown is drawn, or learnt around, in every preset."""

import json

import numpy as np
import pandas as pd
import pytest

import elsewhere as ew

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* classes instead of", "ignore:`m_min` = 1", "ignore:`alternates="),
    pytest.mark.usefixtures("few_draws", "few_rounds"),
]
ASKED = {
    "paper": {},
    "product": {"m_min": 2, "k": 3, "c_min": 1, "class_draws": 1},
    "private": {"eps": 10.0, "n": 50, "grid": "45.5,5.5,46.5,6.5,16"},
}
GRID = np.linspace(45.6, 46.4, 4)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Fixes of 330 people at 16 places, with six hours in the middle of every day unknown."""
    folder, rng = tmp_path_factory.mktemp("fixes"), np.random.default_rng(1)
    rows = []
    for person in range(330):
        home, work = rng.integers(0, 16, 2)
        for slot in range(0, 72, 2):
            if 30 <= slot < 48 or (person % 3 == 0 and slot >= 60):
                continue
            place = work if 24 <= slot < 54 and person % 5 else home
            time = pd.Timestamp("2024-03-05") + pd.Timedelta(minutes=20 * slot + 3)
            rows.append((f"p{person}", time, GRID[place // 4], GRID[place % 4] - 40, 5.0))
    every = pd.DataFrame(rows, columns=["user", "time", "lat", "lon", "accuracy"])
    every.to_csv(folder / "many.csv", index=False)
    every[every.user.isin([f"p{i}" for i in range(80)])].to_csv(folder / "some.csv", index=False)
    return folder


@pytest.mark.parametrize("preset", list(ASKED))
def test_days_with_gaps_become_fakes(preset, files, tmp_path):
    source = files / ("many.csv" if preset == "private" else "some.csv")
    given = {"preset": preset, "report": False, "max_gap": "1h", "tz": "Europe/Paris", **ASKED[preset]}
    with pytest.raises(ew.ElsewhereError) as refused:
        ew.synthesize(source, tmp_path / "no", **given)
    assert refused.value.code == "E_GAPS"
    made = ew.synthesize(source, tmp_path / "out", missing="gibbs", **given)

    assert len(made.pool) > 0
    assert (made.pool.traces.r >= 0).all()
    assert any("were drawn by Gibbs sampling" in note for note in made.facts["read"]["notes"])
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["provenance"]["reading"]["missing"] == "gibbs"


@pytest.mark.parametrize("given", [{}, {"secret": b""}])
def test_slots_are_not_drawn_without_a_secret(given):
    from elsewhere.run.reading import usable_days

    with pytest.raises(ew.errors.InvalidParameter, match="`secret`"):
        usable_days(ew.Traces([[0, -1, 1]], ew.Locations(n=2)), missing="gibbs", **given)


def test_what_is_drawn_is_where_the_person_was(files):
    from elsewhere.run.reading import read_usable_days, reading_keywords
    from elsewhere.settings import PRESETS

    reading = ew.Reading(tz="Europe/Paris", places="grid", max_gap="0min", min_coverage=0.2)
    whole, read = read_usable_days(files / "some.csv", reading, PRESETS["product"], secret=b"2" * 32, missing="gibbs")
    known = ew.read_traces(files / "some.csv", **reading_keywords(reading, PRESETS["product"]))

    assert (known.r < 0).mean() > 0.2
    assert whole.U == known.U == read.users_usable == 80
    for before, after in zip(known.r, whole.r, strict=True):
        assert set(after) == set(before[before >= 0])
    # a gap between two stays at one place is mostly a stay there
    assert np.mean(whole.r[:, 40] == known.r[:, 28]) > 0.8


def test_an_uncertain_fix_is_drawn_by_its_weights(tmp_path):
    # three fixes at one of two neighbouring places, 100 m apart; the fourth may be at either, by an accuracy of 1 km
    rows = []
    for person in range(40):
        for slot in range(72):
            east = person % 2
            near = 1000.0 if slot == 40 else 5.0
            time = pd.Timestamp("2024-03-05") + pd.Timedelta(minutes=20 * slot + 3)
            where = (1 - east) if slot in (40, 50) else east
            rows.append((f"p{person}", time, 46.0, 6.0 + 0.0013 * where, near))
    pd.DataFrame(rows, columns=["user", "time", "lat", "lon", "accuracy"]).to_csv(tmp_path / "a.csv", index=False)
    from elsewhere.run.reading import read_usable_days
    from elsewhere.settings import PRESETS

    reading = ew.Reading(tz="Europe/Paris", places="grid", cells=2)
    whole, _ = read_usable_days(tmp_path / "a.csv", reading, PRESETS["paper"], secret=b"2" * 32, missing="gibbs")
    # what the person does says that they were not away for a slot, and that fix cannot tell; the sharp one at 50 can
    assert np.mean(whole.r[:, 40] == whole.r[:, 39]) > 0.7
    assert (whole.r[:, 50] != whole.r[:, 49]).all()


@pytest.mark.parametrize("preset", ["paper", "product"])
def test_rows_with_gaps_are_learnt_from_and_are_no_seeds(preset):
    town = ew.simulate_town(users=90, locations=50, rng=np.random.default_rng(3)).traces
    r = town.r.copy()
    r[::3, 10:30] = -1
    gaps = ew.Traces(r, town.locations, users=town.user, step_minutes=town.step_minutes)
    asked = {name: value for name, value in ASKED[preset].items() if name != "grid"}
    fakes = ew.generate_fakes(gaps, preset=preset, rng=np.random.default_rng(1), **asked)

    assert (fakes.r >= 0).all()
    assert not np.isin(fakes.seed_rows, np.arange(0, 90, 3)).any()
    assert any("30 rows with missing slots are learnt from" in note for note in fakes.notes)
    with pytest.raises(ew.errors.InvalidTraces, match="all 30 rows have missing slots") as refused:
        ew.generate_fakes(gaps.select(np.arange(0, 90, 3)), preset="product", rng=np.random.default_rng(1))
    assert refused.value.code == "E_GAPS"


def test_a_word_that_is_none_of_the_two_is_refused(tmp_path, run):
    with pytest.raises(ew.errors.InvalidParameter) as refused:
        ew.synthesize("nowhere.csv", tmp_path / "out", missing="magic")
    assert refused.value.parameter == "missing"
    status, _, err = run("synthesize", "nowhere.csv", "-o", tmp_path / "out", "--missing", "magic")
    assert status == 2
    assert "--missing" in err


def test_positions_that_jitter_are_calmed_where_no_fix_has_an_accuracy(tmp_path):
    from elsewhere.run.reading import read_usable_days
    from elsewhere.settings import PRESETS

    rng, rows = np.random.default_rng(4), []
    works = rng.normal(0, 0.02, (6, 2))
    for person in range(40):
        home, work = rng.normal(0, 0.02, 2), works[person % 6]
        for slot in range(72):
            lat, lon = (work if 24 <= slot < 51 else home) + rng.normal(0, 0.0003, 2)
            time = pd.Timestamp("2024-03-05") + pd.Timedelta(minutes=20 * slot + 3)
            rows.append((f"p{person}", time, 46 + lat, 6 + lon))
    pd.DataFrame(rows, columns=["user", "time", "lat", "lon"]).to_csv(tmp_path / "a.csv", index=False)
    drop, gibbs = (
        read_usable_days(tmp_path / "a.csv", ew.Reading(), PRESETS["product"], secret=b"2" * 32, missing=missing)
        for missing in ("drop", "gibbs")
    )

    assert any("positions jitter" in note for note in gibbs[1].notes)
    assert np.array_equal(drop[0].r, gibbs[0].r)  # nothing is missing: the same days
    assert (np.diff(gibbs[0].r) != 0).sum(axis=1).mean() <= 2


def test_people_whose_gaps_are_too_long_are_counted_by_the_refusal(tmp_path):
    # 80 people seen every ten hours, of which six are filled
    times = pd.date_range("2024-03-05 01:00", periods=6, freq="10h")
    rows = [(f"p{i}", t, 46 + (i % 4) / 50, 6 + (i % 3) / 50) for i in range(80) for t in times]
    pd.DataFrame(rows, columns=["user", "time", "lat", "lon"]).to_csv(tmp_path / "a.csv", index=False)
    # twelve more, every hour
    often = pd.date_range("2024-03-05", periods=48, freq="1h")
    more = [(f"q{i}", t, 46 + (i % 4) / 50, 6 + (i % 3) / 50) for i in range(12) for t in often]
    pd.DataFrame(more).to_csv(tmp_path / "a.csv", index=False, header=False, mode="a")
    with pytest.raises(ew.ElsewhereError) as refused:
        ew.synthesize(tmp_path / "a.csv", tmp_path / "out", k=40, max_gap="6h", report=False)

    said = " ".join([str(refused.value), *refused.value.__notes__])
    assert refused.value.code == "E_TOO_FEW"
    assert "12 of 92 people have a usable day" in said
    assert "There are 12 people with a usable day" in said
    assert "gaps of more than 6h are not filled (`max_gap`)" in said
