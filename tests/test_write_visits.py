"""Visits out: the columns and the kind of record that came in, and read again the same."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import test_read_visits as files

from elsewhere.data.read import read_visits
from elsewhere.data.town import simulate_town
from elsewhere.data.visits import Form, Locations, Visits
from elsewhere.data.write import write_visits
from elsewhere.errors import InvalidParameter, InvalidTraces

TOWN = Locations(lat=[46.0, 46.1, 46.2], lon=[7.0, 7.1, 7.2], ids=["inn", "mill", "=church"], kind=["food", "", "rite"])
EVENING = np.array(["2024-07-01T20:00:00", "2024-07-01T21:00:00", "2024-12-01T08:00:00"], dtype="datetime64[s]")


def some(form=None, **other):
    columns = {"user": [0, 0, 1], "start": EVENING, "end": EVENING + 600, "place": [0, 1, 2], "locations": TOWN}
    return Visits(**(columns | {"users": ["ann", "bob"], "tz": "Europe/Zurich", "form": form} | other))


def lines(visits, path, **options):
    write_visits(visits, path, **options)
    return path.read_text().splitlines()


def test_columns_of_visits(tmp_path):
    head, first, *_, last = lines(some(), tmp_path / "v.csv")
    assert head == "user,start,end,place,lat,lon,kind"
    assert first == "ann,2024-07-01T20:00:00,2024-07-01T20:10:00,inn,46,7,food"
    assert last == "bob,2024-12-01T08:00:00,2024-12-01T08:10:00,'=church,46.2,7.2,rite"  # no formula


def test_times_have_their_offset_where_the_file_had_one_and_nowhere_else(tmp_path):
    form = Form("events", columns={"start": "t", "user": "who"}, offset=True)
    assert lines(some(form), tmp_path / "o.csv") == [
        "t,who",
        "2024-07-01T20:00:00+02:00,ann",
        "2024-07-01T21:00:00+02:00,ann",
        "2024-12-01T08:00:00+01:00,bob",
    ]
    assert lines(some(form, tz="UTC"), tmp_path / "u.csv")[1] == "2024-07-01T20:00:00Z,ann"
    assert lines(some(form, tz="UTC+05:30"), tmp_path / "h.csv")[1] == "2024-07-01T20:00:00+05:30,ann"
    write_visits(some(form), tmp_path / "o.parquet")
    typed = pd.read_parquet(tmp_path / "o.parquet").t
    assert str(typed[0]) == "2024-07-01 20:00:00+02:00"


def test_visits_over_a_change_of_the_clock_are_written_as_they_came(tmp_path):
    rows = [(u, "2024-03-30T22:00:00+01:00", "2024-03-31T09:00:00+02:00", "inn") for u in range(20)]
    frame = pd.DataFrame(rows, columns=["user", "start", "end", "place"]).assign(lat=52.5, lon=13.4)
    frame.to_csv(tmp_path / "in.csv", index=False)
    write_visits(read_visits(tmp_path / "in.csv"), tmp_path / "out.csv")
    written = pd.read_csv(tmp_path / "out.csv")
    assert set(written.start) == set(frame.start)
    assert set(written.end) == set(frame.end)


def test_of_an_hour_that_the_clock_has_twice_the_first_is_written_and_of_one_it_skips_the_end(tmp_path):
    when = np.array(["2024-03-31T02:30:00", "2024-10-27T02:30:00"], dtype="datetime64[s]")
    form = Form("events", columns={"start": "t"}, offset=True)
    visits = Visits([0, 0], when, when, [0, 0], TOWN, tz="Europe/Zurich", form=form)
    assert lines(visits, tmp_path / "t.csv") == ["t", "2024-03-31T03:00:00+02:00", "2024-10-27T02:30:00+02:00"]


def test_the_names_and_the_order_that_came_in_and_what_is_not_known_is_left_out(tmp_path):
    columns = {"lon": "x", "accuracy": "radius", "start": "when", "date": "day", "utc": "utc", "place": "venue"}
    assert lines(some(Form("events", columns=columns)), tmp_path / "c.csv")[:2] == [
        "x,when,day,utc,venue",
        "7,20:00:00,2024-07-01,2024-07-01T18:00:00Z,inn",
    ]
    assert lines(some(), tmp_path / "d.csv", like=some(Form("events", columns=columns)))[0] == "x,when,day,utc,venue"
    assert lines(some(), tmp_path / "t.tsv")[0].count("\t") == 6


def test_fixes_are_as_many_as_were_seen(tmp_path):
    form = Form("fixes", interval=120, columns={"user": "id", "start": "t", "lat": "lat", "lon": "lon"})
    rows = lines(some(form), tmp_path / "f.csv")
    assert len(rows) == 1 + 3 * 6
    assert rows[2] == "ann,2024-07-01T20:02:00,46,7"
    assert len(lines(some(Form("fixes")), tmp_path / "e.csv")) == 1 + 3 * 2


def test_trips_are_one_row_with_both_ends_or_a_line(tmp_path):
    visits = some(trip=[5, 5, -1])
    assert lines(visits, tmp_path / "t.csv") == [
        "user,start,end,start_place,start_lat,start_lon,end_place,end_lat,end_lon",
        "ann,2024-07-01T20:00:00,2024-07-01T21:10:00,inn,46,7,mill,46.1,7.1",
    ]
    form = Form("trips", columns={"user": "taxi", "start": "t", "points": "POLYLINE"}, interval=600)
    write_visits(visits, tmp_path / "p.parquet", like=form)
    line = json.loads(pd.read_parquet(tmp_path / "p.parquet").POLYLINE[0])
    assert line == [[7.0, 46.0]] * 6 + [[7.1, 46.1]] * 2  # the second begins an hour after the first
    with pytest.raises(InvalidTraces):
        write_visits(some(), tmp_path / "n.csv", like=form)


def test_overlapping_trips_of_one_person_stay_apart(tmp_path):
    when = np.array([0, 10, 20, 30])
    visits = Visits([0] * 4, when, when, [0, 1, 2, 0], TOWN, trip=[1, 2, 1, 2])
    frame = pd.DataFrame([row.split(",") for row in lines(visits, tmp_path / "t.csv")[1:]])
    assert frame[[3, 6]].to_numpy().tolist() == [["inn", "'=church"], ["mill", "inn"]]


def test_text_with_commas_and_quotes_is_read_again(tmp_path):
    odd = Locations(n=3, ids=['a, "b"', "line\nbreak", "ö"])
    write_visits(some(locations=odd), tmp_path / "q.csv")
    assert pd.read_csv(tmp_path / "q.csv").place.tolist() == list(odd.ids)


def test_the_same_visits_give_the_same_bytes_and_files_are_private(tmp_path):
    for name in ("a.csv", "a.csv.gz", "a.parquet", "a.geojson", "a.gpx"):
        write_visits(some(), tmp_path / name)
        write_visits(some(), tmp_path / f"again-{name}")
        assert (tmp_path / name).read_bytes() == (tmp_path / f"again-{name}").read_bytes()
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == (tmp_path / "a.csv").read_bytes()


def test_what_cannot_be_written_is_refused(tmp_path):
    for path in (tmp_path / "a.xlsx", tmp_path / "a", 3):
        with pytest.raises(InvalidParameter):
            write_visits(some(), path)
    with pytest.raises(InvalidParameter):
        write_visits("visits", tmp_path / "a.csv")
    with pytest.raises(InvalidParameter):
        write_visits(some(), tmp_path / "a.csv", like="events")
    with pytest.raises(InvalidTraces):
        write_visits(some(locations=Locations(n=3)), tmp_path / "a.gpx")


@pytest.mark.parametrize("name", ["a.geojson", "a.gpx"])
def test_tracks_are_read_again(tmp_path, name):
    visits = simulate_town(users=4, days=1, locations=30, rng=np.random.default_rng(1)).visits
    write_visits(visits, tmp_path / name)
    again = read_visits(tmp_path / name, places="grid", tz="UTC")
    assert again.U == 4
    assert again.start.min() == visits.start.min()
    assert again.end.max() == visits.end.max()


def test_sglt(tmp_path):
    town = simulate_town(users=4, days=1, locations=30, rng=np.random.default_rng(1))
    write_visits(town.visits, tmp_path / "a.trace")
    numbers = np.loadtxt(tmp_path / "a.trace", delimiter=",", dtype=int)
    assert numbers.shape == (4 * 72, 3)
    assert np.array_equal(numbers[:, 2].reshape(4, 72) - 1, town.traces.r)
    assert len(np.loadtxt(tmp_path / "a_locations.txt", delimiter=",")) == 30


ROUND = ["check_ins", "check_ins_without_kinds", "taxis", "gps_sessions", "diaries", "survey_trips", "bike_trips",
         "polylines", "plain_fixes", "date_and_clock", "rides", "numbered_slots", "grid_cells"]  # fmt: skip


@pytest.mark.parametrize("kind", ROUND)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_file_that_is_written_is_read_again_as_what_it_was(tmp_path, kind, ending):
    path = getattr(files, kind)(tmp_path)[0]
    visits = read_visits(path, rng=np.random.default_rng(1))
    write_visits(visits, tmp_path / f"again{ending}")
    size = (tmp_path / f"again{ending}").stat().st_size
    again = read_visits(tmp_path / f"again{ending}", locations=visits.locations)

    assert again.form.record == visits.form.record
    assert again.form.unit == visits.form.unit
    assert list(again.form.columns.values()) == [
        name for role, name in visits.form.columns.items() if role in again.form.columns
    ]
    # of fixes the middle of a coarse tile can be next to that of a fine one within it: seen again they are one stay
    fixes = visits.form.record == "fixes" or "points" in visits.form.columns
    assert len(again) == pytest.approx(len(visits), rel=0.03 if fixes else 0.0)
    assert len(np.intersect1d(again.place, visits.place)) >= (0.97 if fixes else 1) * len(np.unique(visits.place))
    assert np.array_equal(np.bincount(again.start // 3600 % 24, minlength=24) > 0, files.hours(visits.start) > 0)
    if ending == ".csv" and path.suffix in (".csv", ".txt"):
        assert 0.4 < size / path.stat().st_size < 1.6
