"""Files that strangers tried and that were once read wrong in silence, or refused with advice that did not work."""

import json
import re
import zipfile

import numpy as np
import pandas as pd
import pytest

from elsewhere.data.formats import list_files
from elsewhere.data.places import make_visits
from elsewhere.data.read import read_records, read_visits
from elsewhere.data.visits import Locations
from elsewhere.data.write import write_visits
from elsewhere.errors import InvalidTraces

LONDON = (51.5, -0.12)


def fixes(people=12, days=2, every=30, at=LONDON):
    """Everybody at home at night and at one of three offices by day: user, local time, lat, lon."""
    rng = np.random.default_rng(1)
    rows = []
    for u in range(people):
        home = np.array(at) + rng.normal(0, 0.02, 2)
        office = np.array(at) + 0.03 * (u % 3 - 1)
        for t in pd.date_range("2022-11-07", periods=days * 1440 // every, freq=f"{every}min"):
            lat, lon = np.round(office if 9 <= t.hour < 17 else home, 6)
            rows.append((f"P{u:02}", t, lat, lon))
    return pd.DataFrame(rows, columns=["person", "time", "lat", "lon"])


def save(frame, path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False, **options)
    return path


def events(people=10, each=20, places=5):
    """(user, time, place) of people who are at one place in many others' company."""
    rng = np.random.default_rng(2)
    return [
        (u, pd.Timestamp("2019-08-05") + pd.Timedelta(minutes=int(37 * i + u)), int(rng.integers(places)))
        for u in range(people)
        for i in range(each)
    ]


# --- who --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["{0}/Takeout/Timeline/Records.csv", "{0}/2022-11-0{1}.csv", "{0}_2022110{1}.csv", "2022-11-0{1}/{0}.csv"]
)
def test_folders_and_files_tell_who_dates_do_not(tmp_path, name):
    frame = fixes(4)
    for (who, day), part in frame.groupby(["person", frame["time"].dt.day]):
        path = tmp_path / name.format(who, day)
        more = pd.read_csv(path) if path.exists() else None
        save(pd.concat([more, part[["time", "lat", "lon"]]]), path)
    records, *_ = read_records(tmp_path)
    assert sorted(records.users) == ["P00", "P01", "P02", "P03"]
    assert len(records) == len(frame)


def test_days_of_one_person_are_one_person(tmp_path):
    for day in (1, 2, 3):
        save(fixes(1)[["time", "lat", "lon"]], tmp_path / "walks" / f"2022-11-0{day}.csv")
    assert {piece.user for piece in list_files(tmp_path / "walks")} == {"walks"}


@pytest.mark.parametrize("who", ["card_no", "CARD_ID", "Kunden-Nr", "participant_code", "device_hash", "userIndex"])
def test_a_word_for_people_and_a_word_for_numbers_name_a_person(tmp_path, who):
    frame = fixes().rename(columns={"person": who})
    assert len(read_records(save(frame, tmp_path / "t.csv"))[0].users) == 12


def test_a_count_is_nobody(tmp_path):
    rows = "".join(
        f"{s},2022-05-16 {h:02}:00:00,{7 * h % 5 + s % 9},51.{s},-0.{s}\n" for s in range(10, 20) for h in range(24)
    )
    path = tmp_path / "counters.csv"
    path.write_text("station,datetime,count,lat,lon\n" + rows)
    with pytest.raises(InvalidTraces, match="counts people"):
        read_records(path)
    path.write_text(path.read_text().replace("count", "level"))
    with pytest.raises(InvalidTraces, match="no column for user") as error:
        read_records(path)
    assert "user=level" not in str(error.value)


def test_a_matrix_of_flows_is_no_table_of_trips(tmp_path):
    rows = [(a, b, h, (a * b + h) % 40) for a in range(12) for b in range(12) for h in range(24)]
    path = save(pd.DataFrame(rows, columns=["origin", "destination", "hour", "trips"]), tmp_path / "flows.csv")
    with pytest.raises(InvalidTraces, match="counts people or trips"):
        read_records(path)


def test_who_is_called_a_person_is_no_vehicle(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        (u, t, 48.85 + rng.normal(0, 0.05), 2.35 + rng.normal(0, 0.05))
        for u in range(10)
        for t in pd.date_range("2022-05-02 08:00", periods=120, freq="5min")
    ]
    frame = pd.DataFrame(rows, columns=["employee_id", "time", "lat", "lon"])
    visits = read_visits(save(frame, tmp_path / "couriers.csv"))
    assert (visits.U, visits.form.unit) == (10, "person")
    taxis = read_visits(save(frame.rename(columns={"employee_id": "taxi"}), tmp_path / "taxis.csv"))
    assert taxis.form.unit == "vehicle-day"


def test_whom_files_tell_may_be_vehicles(tmp_path):
    rng = np.random.default_rng(0)
    for cab in range(10):
        times = pd.date_range("2008-02-02 06:00", periods=1000, freq="1min")
        way = np.array([39.9, 116.4]) + np.cumsum(rng.normal(0, 0.004, (1000, 2)), axis=0)
        lines = [f"{cab},{t},{lon:.5f},{lat:.5f}" for t, (lat, lon) in zip(times, way, strict=True)]
        (tmp_path / f"{cab}.txt").write_text("\n".join(lines) + "\n")
    visits = read_visits(tmp_path)
    assert visits.form.unit == "vehicle-day"
    write_visits(visits, tmp_path / "out" / "again.csv")
    assert read_visits(tmp_path / "out" / "again.csv", locations=visits.locations).form.unit == "vehicle-day"


def test_several_people_read_as_one_are_refused(tmp_path):
    frame = fixes()
    frame["time"] = frame["time"].dt.date
    with pytest.raises(InvalidTraces, match="at the same time"):
        read_visits(save(frame.rename(columns={"time": "date"}), tmp_path / "days.csv"))


def test_as_many_users_as_records_are_worth_a_word(tmp_path):
    frame = fixes()
    frame["person"] = [f"x{i}" for i in range(len(frame))]
    assert any("hardly anybody has two records" in n for n in read_records(save(frame, tmp_path / "t.csv"))[1].notes)


# --- when -------------------------------------------------------------------------------------------------------------


def test_dates_and_clocks_without_marks(tmp_path):
    rows = [(u, t.strftime("%Y%m%d"), t.strftime("%H%M%S"), f"S{p}") for u, t, p in events()]
    path = save(pd.DataFrame(rows, columns=["CARD_ID", "TXN_DATE", "TXN_TIME", "STOP_ID"]), tmp_path / "taps.csv")
    for options in ({}, {"date_format": "%Y%m%d"}):
        records, *_ = read_records(path, **options)
        assert sorted(records.start.tolist()) == sorted(int(t.timestamp()) for _, t, _ in events())


def test_a_date_and_an_hour(tmp_path):
    frame = fixes(every=60)
    frame = frame[frame["time"].dt.hour < 23]
    table = frame.assign(date=frame["time"].dt.date, hour=frame["time"].dt.hour).drop(columns="time")
    records, *_ = read_records(save(table, tmp_path / "t.csv"))
    assert set((records.start // 3600 % 24).tolist()) == set(range(23))


def test_a_format_of_dates_is_for_dates_alone(tmp_path):
    rows = [(u, "05/05/2015", f"{8 + i}:10", f"{8 + i}:40", f"z{i}", f"z{i + 1}") for u in range(9) for i in range(4)]
    names = ["person_no", "trip_date", "departure_time", "arrival_time", "origin_zone", "destination_zone"]
    records, *_ = read_records(save(pd.DataFrame(rows, columns=names), tmp_path / "t.csv"), date_format="%d/%m/%Y")
    assert len(records) == 2 * len(rows)
    assert records.form.record == "trips"
    assert set((records.start // 60 % 60).tolist()) == {10, 40}


@pytest.mark.parametrize("form", ["%d-%b-%Y %H.%M.%S", "%d/%m/%Y %Hh%M", "%Y-%m-%d %H:%M:%S GMT"])
def test_ways_to_write_a_clock(tmp_path, form):
    frame = fixes(days=15)
    expected = frame["time"].dt.hour.value_counts()
    frame["event_time"] = frame.pop("time").dt.strftime(form)
    hours = pd.Series(read_records(save(frame, tmp_path / "t.csv"))[0].start // 3600 % 24).value_counts()
    assert hours.sort_index().tolist() == expected.sort_index().tolist()


def test_a_quote_may_stand_behind_a_blank(tmp_path):
    rows = [f'"{u}", "{t}", "{a}", "{b}"' for u, t, a, b in fixes().itertuples(index=False)]
    (tmp_path / "t.csv").write_text("\n".join(['"person", "recorded at", "latitude", "longitude"', *rows]) + "\n")
    assert len(read_records(tmp_path / "t.csv")[0].users) == 12


def test_gmt_in_the_name_is_utc(tmp_path):
    frame = fixes(at=(35.68, 139.76)).rename(columns={"time": "GMT Time"})
    assert read_records(save(frame, tmp_path / "t.csv"))[0].start.min() == pd.Timestamp("2022-11-07 09:00").timestamp()


def test_offsets_that_change_from_row_to_row_are_instants(tmp_path):
    frame = fixes()
    hours = np.resize([0, 1, -5], len(frame)).tolist()
    clocks = zip(frame["time"], hours, strict=True)
    local = [f"{t + pd.Timedelta(hours=h):%Y-%m-%dT%H:%M:%S}{h:+03}:00" for t, h in clocks]
    records, preparation, *_ = read_records(save(frame.assign(time=local), tmp_path / "t.csv"))
    expected = frame["time"].astype("datetime64[s]").astype("int64").tolist()
    assert sorted(records.start.tolist()) == sorted(expected)
    assert any("another offset" in note for note in preparation.notes)


# --- where ------------------------------------------------------------------------------------------------------------


def odd_tables():
    """Return name -> (table, code): what is not read, and must be refused rather than read wrong."""
    frame = fixes(at=(41.88, 12.48))
    north, east = frame["lat"], frame["lon"]
    only = frame[["person", "time"]]
    minute = frame["time"].dt.hour * 60 + frame["time"].dt.minute
    return {
        "millionths of degrees": (
            only.assign(lat=(north * 1e6).astype(int), lon=(east * 1e6).astype(int)),
            "E_SWAPPED",
        ),
        "metres": (only.assign(easting=700_000.5 + east, northing=5_700_000.5 + north, zone="30U"), "E_SWAPPED"),
        "radians": (only.assign(lat=np.radians(north), lon=np.radians(east)), "E_SWAPPED"),
        "degrees and minutes": (only.assign(lat=north.map("{:.0f}°1'2\"N".format), lon="12°3'4\"E"), "E_COLUMNS"),
        "days of a workbook": (frame.assign(time=45_054 + minute), "E_COLUMNS"),
        "no form of times": (frame.assign(time=frame["time"].dt.strftime("day %j of %Y at %H+%M")), "E_COLUMNS"),
    }


@pytest.mark.parametrize("name", odd_tables())
def test_what_is_not_known_is_refused_with_what_to_do(tmp_path, name):
    table, code = odd_tables()[name]
    with pytest.raises(InvalidTraces) as error:
        read_records(save(table, tmp_path / "t.csv"))
    assert error.value.code == code
    assert re.search("columns|date_format|EPSG:4326", str(error.value))
    assert not re.search("P0|41[.]|2022-", str(error.value))


@pytest.mark.parametrize("names", [("stop_id", "stop_lat", "stop_lon"), ("stop_id", "centroid_lat", "centroid_lon")])
def test_a_table_of_stops_beside_the_taps(tmp_path, names):
    rows = [(u, t, f"S{p}") for u, t, p in events()]
    save(pd.DataFrame(rows, columns=["card_no", "time", "stop_id"]), tmp_path / "taps.csv")
    save(pd.DataFrame([(f"S{i}", -23.5 - i / 100, -46.6) for i in range(5)], columns=names), tmp_path / "stops.txt")
    visits = read_visits(tmp_path)
    assert visits.tz == "America/Sao_Paulo"
    assert visits.R == 5
    assert np.allclose(visits.locations.lon, -46.6)


def test_venues_of_foursquare_keep_their_categories(tmp_path):
    rows = [f"{u}\tv{p}\t{t:%a %b %d %H:%M:%S} +0000 {t:%Y}\t540" for u, t, p in events(30)]
    (tmp_path / "checkins.txt").write_text("\n".join(rows) + "\n")
    venues = [f"v{p}\t{35.6 + p / 99:.6f}\t139.{700 + p}\t{('Bar', 'Office')[p % 2]}\tJP" for p in range(5)]
    (tmp_path / "venues.txt").write_text("\n".join(venues) + "\n")
    visits = read_visits(tmp_path / "checkins.txt", locations=tmp_path / "venues.txt")
    assert set(visits.locations.kind) == {"Bar", "Office"}
    assert visits.R == 5


def test_what_is_done_in_a_district_is_not_its_kind(tmp_path):
    does = ("Home", "Work", "Shopping")
    rows = [(u, t, does[(u + i) % 3], f"D{p}") for i, (u, t, p) in enumerate(events(60, 40, 2))]
    path = save(pd.DataFrame(rows, columns=["person_id", "time", "activity", "district"]), tmp_path / "diary.csv")
    visits = read_visits(path, rng=np.random.default_rng(0))
    frame = visits.to_frame()
    said = {(str(u), t): (does[(u + i) % 3], f"D{p}") for i, (u, t, p) in enumerate(events(60, 40, 2))}
    assert all(said[row.user, row.start] == (row.kind, row.place.split(":")[0]) for row in frame.itertuples())
    write_visits(visits, tmp_path / "out.csv")
    back = pd.read_csv(tmp_path / "out.csv")
    assert set(back["district"]) == {"D0", "D1"}
    assert set(back["activity"]) == set(does)
    again = read_visits(tmp_path / "out.csv", locations=visits.locations)
    assert np.array_equal(again.place, visits.place)


def save_workbook(rows, path):
    """Write the least that is a workbook: a sheet of texts and numbers."""
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    office, package = (
        "http://schemas.openxmlformats.org/officeDocument/2006",
        "http://schemas.openxmlformats.org/package/2006",
    )
    sheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"

    def cell(value):
        return f"<c><v>{value}</v></c>" if isinstance(value, float) else f'<c t="inlineStr"><is><t>{value}</t></is></c>'

    def linked(kind, target):
        link = f'<Relationship Id="r1" Type="{office}/relationships/{kind}" Target="{target}"/>'
        return f'{head}<Relationships xmlns="{package}/relationships">{link}</Relationships>'

    body = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "[Content_Types].xml",
            f'{head}<Types xmlns="{package}/content-types"><Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/></Types>',
        )
        book.writestr("_rels/.rels", linked("officeDocument", "xl/workbook.xml"))
        book.writestr("xl/_rels/workbook.xml.rels", linked("worksheet", "worksheets/sheet1.xml"))
        names = '<sheets><sheet name="s" sheetId="1" r:id="r1"/></sheets>'
        book.writestr(
            "xl/workbook.xml", f'{head}<workbook xmlns="{sheet}" xmlns:r="{office}/relationships">{names}</workbook>'
        )
        book.writestr(
            "xl/worksheets/sheet1.xml", f'{head}<worksheet xmlns="{sheet}"><sheetData>{body}</sheetData></worksheet>'
        )
    return path


def test_a_workbook_may_begin_with_a_title(tmp_path):
    pytest.importorskip("python_calamine")
    rows = [["A survey"], ["Participant", "Arrived", "Left", "Latitude", "Longitude"]]
    rows += [[u, str(t), str(t + pd.Timedelta(minutes=20)), a, b] for u, t, a, b in fixes().itertuples(index=False)]
    records, *_ = read_records(save_workbook(rows, tmp_path / "t.xlsx"))
    assert records.form.record == "visits"
    assert len(records.users) == 12


def test_rows_that_lack_two_things_are_counted_once(tmp_path):
    frame = fixes().astype(object)
    frame.loc[:4, ["time", "lat", "lon"]] = None
    records, preparation, *_ = read_records(save(frame, tmp_path / "t.csv"))
    assert len(records) + sum(preparation.dropped.values()) == len(frame)


def test_how_much_is_told_of_no_place(tmp_path):
    rows = [(u, t, f"ap{u}-{i % 7}") for i, (u, t, _) in enumerate(events(30))]
    visits = read_visits(save(pd.DataFrame(rows, columns=["user", "time", "ap"]), tmp_path / "t.csv"))
    assert sum(visits.preparation.changed.values()) + sum(visits.preparation.dropped.values()) >= 0.9 * len(rows)


def test_fixes_that_are_dropped_are_counted_as_fixes(tmp_path):
    records, preparation, *_ = read_records(save(fixes(), tmp_path / "t.csv"))
    from elsewhere.data.stays import clean, find_stays

    stays = find_stays(clean(records, preparation)[0])
    assert stays.fixes.sum() == len(records) > len(stays)
    far = Locations([0.0], [0.0], ids=["q3"])
    with pytest.raises(InvalidTraces, match="no record is left"):
        make_visits(stays, preparation, locations=far)


# --- written and read again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "gpx", "geojson"])
def test_people_whom_files_tell_are_written(tmp_path, ending):
    for who, part in fixes(10).groupby("person"):
        save(part[["time", "lat", "lon"]], tmp_path / "in" / f"{who}.csv")
    visits = read_visits(tmp_path / "in")
    write_visits(visits, tmp_path / f"out.{ending}")
    again = read_visits(tmp_path / f"out.{ending}", locations=visits.locations)
    assert set(again.users) == set(visits.users)
    assert again.start.min() == visits.start.min()


def test_instants_of_several_zones_are_written_right(tmp_path):
    rows = []
    for city, (lat, lon) in enumerate([(40.73, -73.98), (35.68, 139.76), (52.5, 13.4)]):
        rows += [
            (20 * city + u, t.strftime("%Y-%m-%dT%H:%M:%SZ"), lat + p / 100, lon, f"{city}-{p}") for u, t, p in events()
        ]
    path = save(pd.DataFrame(rows, columns=["user", "time", "lat", "lon", "venue_id"]), tmp_path / "t.csv")
    visits = read_visits(path)
    write_visits(visits, tmp_path / "out.csv")
    back = pd.read_csv(tmp_path / "out.csv")
    there = {(str(u), pd.Timestamp(t)) for u, t, *_ in rows}
    assert {(str(u), pd.Timestamp(t)) for u, t in zip(back["user"], back["time"], strict=True)} <= there
    assert np.array_equal(read_visits(tmp_path / "out.csv", locations=visits.locations).start, visits.start)


def test_a_venue_may_be_called_as_a_tile_is(tmp_path):
    rows = [(u, t, 51.5, -0.12, f"Q{p}".lower() if p else "q03131313113") for u, t, p in events(20)]
    path = save(pd.DataFrame(rows, columns=["user", "time", "lat", "lon", "venue_id"]), tmp_path / "t.csv")
    assert read_visits(path).U == 20
    other = [(u, t, "other" if p else f"x{i}") for i, (u, t, p) in enumerate(events(20))]
    assert read_visits(save(pd.DataFrame(other, columns=["user", "time", "place"]), tmp_path / "o.csv")).U == 20


def test_the_end_of_a_timeline_is_read_again(tmp_path):
    rows = [
        (u, f"{t:%Y-%m-%dT%H:%M:%SZ}", f"{t + pd.Timedelta(minutes=20):%Y-%m-%dT%H:%M:%SZ}", 51.5, -0.1)
        for u, t, _ in events()
    ]
    path = save(pd.DataFrame(rows, columns=["user", "utc", "end_utc", "lat", "lon"]), tmp_path / "t.csv")
    assert read_records(path)[0].form.record == "visits"


# --- advice -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"columns": "date=year+month+day"}])
def test_a_date_in_three_columns(tmp_path, options):
    frame = fixes(every=60)
    when = frame.pop("time").dt
    table = frame.assign(year=when.year, month=when.month, day=when.day, hour=when.hour)
    records, *_ = read_records(save(table, tmp_path / "t.csv"), **options)
    assert sorted(records.start.tolist()) == sorted(
        fixes(every=60)["time"].astype("datetime64[s]").astype("int64").tolist()
    )


def test_hours_and_minutes_in_two_columns(tmp_path):
    frame = fixes()
    when = frame.pop("time").dt
    table = frame.assign(date=when.date, hour=when.hour, minute=when.minute)
    records, *_ = read_records(save(table, tmp_path / "t.csv"))
    assert sorted(records.start.tolist()) == sorted(fixes()["time"].astype("datetime64[s]").astype("int64").tolist())


@pytest.mark.parametrize(("name", "unit"), [("minutes", 60), ("seconds_after_midnight", 1), ("time", 60), ("time", 1)])
def test_minutes_and_seconds_after_midnight(tmp_path, name, unit):
    frame = fixes()
    seconds = frame["time"].astype("datetime64[s]").astype("int64")
    for day in ({"date": frame["time"].dt.date}, {"day": seconds // 86_400 - seconds.min() // 86_400}):
        table = frame.drop(columns="time").assign(**day, **{name: seconds % 86_400 // unit})
        records, *_ = read_records(save(table, tmp_path / "t.csv"))
        assert sorted(records.start % 86_400) == sorted(seconds % 86_400)
        assert len(np.unique(records.start // 86_400)) == 2
        visits = read_visits(tmp_path / "t.csv")
        write_visits(visits, tmp_path / "out.csv")
        again = read_visits(tmp_path / "out.csv", locations=visits.locations)
        assert np.array_equal(again.start % 86_400, visits.start % 86_400)


def test_a_departure_alone_is_the_time(tmp_path):
    rows = [(u, t, f"S{p}") for u, t, p in events()]
    records, *_ = read_records(
        save(pd.DataFrame(rows, columns=["card_no", "departure", "stop_id"]), tmp_path / "t.csv")
    )
    assert sorted(records.start.tolist()) == sorted(int(t.timestamp()) for _, t, _ in events())


def test_hours_of_a_stay_are_its_length(tmp_path):
    rows = [(u, t, 1.5, f"v{p}") for u, t, p in events()]
    path = save(pd.DataFrame(rows, columns=["uid", "arrival", "stay_hours", "venue"]), tmp_path / "t.csv")
    assert set((np.diff([read_records(path)[0].start, read_records(path)[0].end], axis=0)).ravel()) == {5400}


def test_trips_between_points_are_written_and_read_again(tmp_path):
    rows = [
        (u, t, t + pd.Timedelta(minutes=9), f"{48 + p / 50},16.4", f"{48 + (p + 1) / 50},16.4")
        for u, t, p in events(20)
    ]
    path = save(
        pd.DataFrame(rows, columns=["customer_id", "start", "end", "pickup_point", "dropoff_point"]), tmp_path / "t.csv"
    )
    visits = read_visits(path)
    write_visits(visits, tmp_path / "out.csv")
    again = read_visits(tmp_path / "out.csv", locations=visits.locations)
    assert again.form.record == visits.form.record == "trips"
    assert np.array_equal(again.place, visits.place)


def test_a_person_of_a_household_is_told_by_both(tmp_path):
    rows = [(h, p, t, f"S{p}") for h in range(8) for p in (1, 2) for _, t, p in events(1)]
    table = pd.DataFrame(rows, columns=["HH_ID", "PER_ID", "time", "zone"])
    for options in ({}, {"columns": "user=HH_ID+PER_ID"}):
        records, *_ = read_records(save(table, tmp_path / "t.csv"), **options)
        assert len(records.users) == len(table[["HH_ID", "PER_ID"]].drop_duplicates())


@pytest.mark.parametrize(("at", "within"), [(5, 2), (-2, 2), (9, None), (300, None)])
def test_lines_lost_to_a_quote_that_is_not_closed_are_counted_or_refused(tmp_path, at, within):
    frame = fixes()
    lines = save(frame.assign(note="well"), tmp_path / "t.csv").read_text().splitlines()
    lines[7] = lines[7].replace("well", '"over\ntwo, or ""three"" lines"')
    lines[at] = lines[at].replace("well", '"well')
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    if within is None:
        with pytest.raises(InvalidTraces, match="quote"):
            read_records(tmp_path / "t.csv")
        return
    records, preparation, *_ = read_records(tmp_path / "t.csv")
    assert 0 < len(frame) - len(records) <= within
    assert preparation.changed == {"lines that are read as parts of a value in quotes": within}


@pytest.mark.parametrize("left", [0, 1])
def test_as_many_rows_lost_to_quotes_as_are_read_are_refused(tmp_path, left):
    lines = save(fixes(), tmp_path / "t.csv").read_text().splitlines()[: 2 * left + 21]
    lines[1 + left :] = ['"' + line for line in lines[1 + left :]]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(InvalidTraces, match="quote") as error:
        read_records(tmp_path / "t.csv")
    assert error.value.code == "E_CSV"
    assert "P0" not in str(error.value)


def test_an_archive_with_a_damaged_name_or_a_password_is_refused(tmp_path):
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gerät.csv", "user,time,lat,lon\n1,2024-01-01T00:00:00,51.5,-0.1\n")
    whole = path.read_bytes()
    at = whole.index("gerät".encode())
    for damaged in (
        whole[:at] + b"\xf7" + whole[at + 1 :],  # a name that is no text
        whole[:6]
        + bytes([whole[6] | 1])
        + whole[7:].replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(InvalidTraces):
            read_records(path)


def test_rides_of_taxis_without_names_are_read_again(tmp_path):
    rng = np.random.default_rng(4)
    (tmp_path / "cabs").mkdir()
    for cab in range(8):
        times = 1_211_000_000 + 60 * np.arange(600)
        way = np.array([37.76, -122.43]) + np.cumsum(rng.normal(0, 0.002, (600, 2)), axis=0)
        lines = [f"{a:.5f} {b:.5f} {i // 25 % 2} {t}" for i, ((a, b), t) in enumerate(zip(way, times, strict=True))]
        (tmp_path / "cabs" / f"new_{cab}.txt").write_text("\n".join(lines) + "\n")
    visits = read_visits(tmp_path / "cabs", places="grid")  # nothing between two rides is dropped
    write_visits(visits, tmp_path / "out.csv")
    again = read_visits(tmp_path / "out.csv", locations=visits.locations)
    assert len(np.unique(again.trip)) == len(np.unique(visits.trip)) > 8
    assert again.U == visits.U


def test_an_id_in_the_place_of_a_name_is_not_shown(tmp_path):
    (tmp_path / "t.csv").write_text(",CANARYann7f3a\n" + "".join(f"{i},{i % 7}\n" for i in range(50)))
    with pytest.raises(InvalidTraces) as error:
        read_records(tmp_path / "t.csv")
    assert "CANARY" not in str(error.value)


def test_a_workbook_is_refused_with_what_to_do(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
    with pytest.raises(InvalidTraces, match="save it as CSV") as refused:
        read_records(tmp_path / "t.xlsx")
    assert refused.value.code == "E_FORMAT"


def test_an_archive_without_a_file_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("people.csv", "")
    with pytest.raises(InvalidTraces) as refused:
        read_visits(tmp_path / "empty.zip")
    assert refused.value.code == "E_EMPTY"


# --- Google's Timeline, old and new -----------------------------------------------------------------------------------


def moment(minutes):
    return f"2024-03-04T{8 + minutes // 60:02}:{minutes % 60:02}:00Z"


TIMELINES = {
    "records": {"locations": [
        {"timestampMs": str(1709539200000 + 60000 * i), "latitudeE7": 515000000 + i, "longitudeE7": 2**32 - 1200000}
        for i in range(30)]},
    "semantic history": {"timelineObjects": [
        {"placeVisit": {"location": {"latitudeE7": 515000000, "longitudeE7": -1200000},
                        "otherCandidateLocations": [{"latitudeE7": 1, "longitudeE7": 1}],
                        "duration": {"startTimestamp": moment(0), "endTimestamp": moment(10)}}},
        {"activitySegment": {"startLocation": {"latitudeE7": 515000000, "longitudeE7": -1200000},
                             "endLocation": {"latitudeE7": 516000000, "longitudeE7": -1100000},
                             "duration": {"startTimestampMs": "1709540000000", "endTimestampMs": "1709541000000"},
                             "simplifiedRawPath": {"points": [{"latE7": 515500000, "lngE7": -1150000,
                                                               "timestamp": moment(20)}]},
                             "waypointPath": {"waypoints": [{"latE7": 1, "lngE7": 1}]}}}]},
    "phone": [
        {"startTime": moment(0), "endTime": moment(10), "visit": {"topCandidate": {"placeLocation": "geo:51.5,-0.12"}}},
        {"startTime": moment(10), "endTime": moment(30),
         "activity": {"start": "geo:51.5,-0.12", "end": "geo:51.6,-0.11", "topCandidate": {"type": "walking"}}},
        {"startTime": moment(10), "endTime": moment(130),
         "timelinePath": [{"point": "geo:51.55,-0.115", "durationMinutesOffsetFromStartTime": "15"}]}],
    "signals": {"semanticSegments": [], "rawSignals": [
        {"position": {"LatLng": "51.5°, -0.12°", "timestamp": moment(5)}}, {"wifiScan": {"deliveryTime": moment(5)}}]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "spans"),
    [
        ("records", [(60 * i, 60 * i) for i in range(30)]),
        ("semantic history", [(0, 600), (800, 800), (1200, 1200), (1800, 1800)]),
        ("phone", [(0, 600), (600, 600), (1500, 1500), (1800, 1800)]),
        ("signals", [(300, 300)]),
    ],
)
def test_timelines_of_google(tmp_path, name, spans):
    (tmp_path / "t.json").write_text(json.dumps(TIMELINES[name], ensure_ascii=False))
    records, *_ = read_records(tmp_path / "t.json", tz="UTC")
    zero = int(pd.Timestamp("2024-03-04T08:00").timestamp())
    assert sorted(zip((records.start - zero).tolist(), (records.end - zero).tolist(), strict=True)) == spans
    assert 51.4 < records.lat.min() <= records.lat.max() < 51.7
    assert -0.13 < records.lon.min() <= records.lon.max() < -0.1


def german_survey(people=12):
    """A survey of trips with German names and decimal commas; the purpose is one of three words."""
    rng, rows = np.random.default_rng(5), []
    for u in range(people):
        for i in range(4):
            at = [
                f"{base + step:.5f}".replace(".", ",")
                for base, step in zip(LONDON * 2, rng.normal(0, 0.05, 4), strict=True)
            ]
            rows.append((f"H{u:02}", f"1{i}.09.2022", f"{7 + i}:{10 + u}", *at[:2], *at[2:], f"{8 + i}:{10 + u}",
                         ["Arbeit", "Einkauf", "Freizeit"][i % 3]))  # fmt: skip
    names = [
        "Haushalt",
        "Datum",
        "Startzeit",
        "Start_Breite",
        "Start_Länge",
        "Ziel_Breite",
        "Ziel_Länge",
        "Ankunftszeit",
    ]
    return pd.DataFrame(rows, columns=[*names, "Zweck"])


@pytest.mark.parametrize("purpose", ["Zweck", "purpose", "location"])
def test_few_words_beside_coordinates_are_no_places(tmp_path, purpose):
    path = save(german_survey().rename(columns={"Zweck": purpose}), tmp_path / "t.tsv", sep="\t")
    with pytest.raises(InvalidTraces) as error:
        read_records(path)
    assert (error.value.code, error.value.parameter) == ("E_COLUMNS", "columns")
    typed = re.search(r"give `columns` '?(\S*start=Startzeit)", str(error.value))[1]
    assert {"lat=Start_Breite", "lon=Start_Länge", "start=Startzeit"} <= set(typed.split(","))
    typed = "user=Haushalt,lat=Start_Breite,lon=Start_Länge,start=Startzeit,date=Datum"
    ends = ",end=Ankunftszeit,end_lat=Ziel_Breite,end_lon=Ziel_Länge"
    records, *_ = read_records(path, columns=typed + ends)
    assert records.form.record == "trips"
    assert len(records) == 2 * 4 * 12
    assert np.all(records.start % 86_400 >= 7 * 3600)


@pytest.mark.parametrize("stamped", [False, True])
def test_times_that_are_all_at_midnight_are_not_read_in_silence(tmp_path, stamped):
    frame = fixes()
    dates = frame.time.dt.strftime("%Y-%m-%d 00:00:00" if stamped else "%Y-%m-%d")
    table = frame.assign(time=dates, beginn=frame.time.dt.strftime("%H:%M"), ende=frame.time.dt.strftime("%H:%M"))
    with pytest.raises(InvalidTraces) as error:
        read_records(save(table, tmp_path / "t.csv"))
    assert error.value.code == "E_COLUMNS"
    assert "start=beginn" in str(error.value)
    preparation = read_records(save(table.drop(columns=["beginn", "ende"]), tmp_path / "t.csv"))[1]
    assert any("0:00" in note for note in preparation.notes)


def test_a_clock_that_is_not_known_is_asked_for(tmp_path):
    table = pd.DataFrame(
        [(u, t.date(), f"{t:%H.%M}", p) for u, t, p in events()], columns=["person", "day", "Start time", "zone"]
    )
    path = save(table, tmp_path / "t.csv")
    with pytest.raises(InvalidTraces, match=r"'start=Start time'; and `date_format`"):
        read_records(path)
    records, *_ = read_records(path, columns="start=Start time", date_format="%H.%M")
    assert sorted(records.start.tolist()) == sorted(int(t.timestamp()) for _, t, _ in events())


def test_points_in_lists_and_in_structures_are_positions(tmp_path):
    frame = fixes()
    rows = [{"id": u, "ts": f"{t}", "loc": [b, a]} for u, t, a, b in frame.itertuples(index=False)]
    (tmp_path / "t.json").write_text(json.dumps({"data": rows}))
    inside = [{"lat": a, "lon": b} for a, b in zip(frame["lat"], frame["lon"], strict=True)]
    frame.drop(columns=["lat", "lon"]).assign(location=inside).to_parquet(tmp_path / "t.parquet")
    for name in ("t.json", "t.parquet"):
        records, *_ = read_records(tmp_path / name)
        assert (records.form.record, len(records.users)) == ("fixes", 12)
        assert np.allclose(sorted(records.lat), sorted(frame["lat"]))


def test_columns_that_fakes_do_not_carry_are_named_once(tmp_path):
    table = fixes().assign(weight=1.5, event_type="CANARY")
    prepared = read_records(save(table, tmp_path / "t.csv"))[1]
    assert prepared.left_out == ("weight", "event_type")
    trips = german_survey().drop(columns=["Startzeit", "Ankunftszeit"])
    names = ["person", "date", "start_lat", "start_lon", "end_lat", "end_lon", "purpose"]
    trips = trips.set_axis(names, axis=1).assign(start_time="07:10", end_time="08:10")
    assert read_records(save(trips, tmp_path / "t.tsv", sep="\t"))[1].left_out == ("purpose",)


def test_a_column_called_utc_is_written_in_utc(tmp_path):
    frame = fixes(at=(46.9, 7.4))
    table = frame.assign(utc_time=frame.time.dt.strftime("%Y-%m-%dT%H:%M:%SZ"), offset_minutes=60).drop(columns="time")
    visits = read_visits(save(table, tmp_path / "t.csv"), rng=np.random.default_rng(1))
    write_visits(visits, tmp_path / "again.csv")
    written = pd.read_csv(tmp_path / "again.csv", dtype=str)
    assert list(written.columns) == [name for name in table.columns if name in written.columns]
    assert set(written.utc_time.str[-1]) == {"Z"}
    assert pd.to_datetime(written.utc_time).min() == pd.to_datetime(table.utc_time).min()
    assert set(written.offset_minutes) == {"60"}


def test_a_table_without_names_is_written_without_names(tmp_path):
    path = tmp_path / "t.csv"
    fixes().to_csv(path, index=False, header=False)
    visits = read_visits(path, rng=np.random.default_rng(1))
    write_visits(visits, tmp_path / "again.csv")
    first = (tmp_path / "again.csv").read_text().splitlines()[0]
    assert "#" not in first
    assert first.startswith("P00,2022-11-07T00:00:00,")
    assert len(read_visits(tmp_path / "again.csv").users) == visits.U


@pytest.mark.parametrize("ending", ["parquet", "frame"])
def test_row_numbers_of_pandas_are_no_column(tmp_path, ending):
    import pyarrow as pa
    import pyarrow.parquet

    frame = pd.DataFrame(events(), columns=["person", "time", "spot"])
    odd = pa.Table.from_pandas(frame.assign(__index_level_0__=np.arange(len(frame)) % 5), preserve_index=False)
    odd, path = odd.drop_columns("spot"), tmp_path / f"t.{ending}"
    if ending != "frame":
        pyarrow.parquet.write_table(odd, str(path))
    with pytest.raises(InvalidTraces) as error:
        read_records(odd if ending == "frame" else path)
    assert error.value.code == "E_COLUMNS"
    assert "__index" not in str(error.value)


# --- files of a second round ------------------------------------------------------------------------------------------


def test_points_with_the_latitude_first_are_told_by_the_offsets(tmp_path):
    frame = fixes(at=(41.88, 12.48))
    points = [f"POINT({a} {b})" for a, b in zip(frame["lat"], frame["lon"], strict=True)]
    times = frame["time"].dt.strftime("%Y-%m-%d %H:%M:%S.739166+01")
    table = pd.DataFrame({"taxi": frame["person"], "time": times, "point": points})
    records, preparation, *_ = read_records(save(table, tmp_path / "t.txt", sep=";", header=False), unit="person")
    assert np.allclose([np.median(records.lat), np.median(records.lon)], [41.88, 12.48], atol=0.1)
    assert records.tz == "Europe/Rome"
    assert any("latitude first" in note for note in preparation.notes)


@pytest.mark.parametrize("ends", [("start_min", "end_min"), ("from_minute", "to_minute")])
def test_minutes_at_both_ends_are_read_and_written(tmp_path, ends):
    rows = [(u, 1 + i // 4, 360 * (i % 4), 360 * (i % 4 + 1), f"a{(u + i) % 3}") for u in range(12) for i in range(8)]
    table = pd.DataFrame(rows, columns=["person", "daynum", *ends, "activity"])
    visits = read_visits(save(table, tmp_path / "t.csv"), rng=np.random.default_rng(0))
    assert set(visits.end - visits.start) == {360 * 60}
    assert set(np.unique(visits.start // 86_400 - visits.start.min() // 86_400)) == {0, 1}
    write_visits(visits, tmp_path / "out.csv")
    again = pd.read_csv(tmp_path / "out.csv")
    assert list(again.columns) == list(table.columns)
    assert set(again[ends[0]]) == {0, 360, 720, 1080}
    assert set(again[ends[1]]) == {0, 360, 720, 1080}  # 0 is midnight


def test_calls_and_towers_without_names_are_two_tables(tmp_path):
    rows = [(u, t, p + 1) for u, t, p in events()]
    save(pd.DataFrame(rows), tmp_path / "calls.tsv", sep="\t", header=False)
    towers = pd.DataFrame([(p + 1, -4.012 - p / 999, 5.312 + p / 999) for p in range(5)])
    save(towers, tmp_path / "antennas.tsv", sep="\t", header=False)
    visits = read_visits(tmp_path)
    assert (visits.U, visits.R, visits.tz) == (10, 5, "Africa/Abidjan")
    assert np.allclose(np.sort(visits.locations.lat), 5.312 + np.arange(5) / 999)


def test_the_type_of_a_call_is_not_that_of_its_tower(tmp_path):
    rows = [
        (u, t, f"T{p}", ("call", "sms", "data")[i % 3], "bank" if p < 2 else "café")
        for i, (u, t, p) in enumerate(events())
    ]
    calls = pd.DataFrame(rows, columns=["user", "time", "tower", "type", "owner"])
    visits = read_visits(save(calls.drop(columns="owner"), tmp_path / "calls.csv"))
    assert (visits.R, visits.locations.kind) == (5, None)
    venues = calls.drop(columns="type").rename(columns={"owner": "type"})  # which is of the place
    assert set(read_visits(save(venues, tmp_path / "venues.csv")).locations.kind) == {"bank", "café"}


def test_venues_without_names_keep_their_ids(tmp_path):
    rows = [(u, f"{t:%Y-%m-%dT%H:%M:%SZ}", 30.27 + p / 999, -97.741 - p / 999, 22_847 + p) for u, t, p in events(40)]
    visits = read_visits(save(pd.DataFrame(rows), tmp_path / "t.txt", sep="\t", header=False))
    assert set(visits.locations.ids) == {str(22_847 + p) for p in range(5)}
    assert list(visits.form.columns) == ["user", "start", "lat", "lon", "place"]


def test_of_columns_that_tell_the_same_people_the_first_is_taken(tmp_path):
    rows = [(i, f"{u}@N0", f"nick {u}", t, 2.3 + p / 99, 48.8 + p / 999, 16) for i, (u, t, p) in enumerate(events())]
    records, *_ = read_records(save(pd.DataFrame(rows), tmp_path / "photos.tsv", sep="\t", header=False))
    assert set(records.users) == {f"{u}@N0" for u in range(10)}


def test_an_id_that_files_tell_too_stays_a_column(tmp_path):
    for who, part in fixes(8).groupby("person"):
        save(part, tmp_path / "in" / f"{who}.txt", header=False)
    records, *_ = read_records(tmp_path / "in")
    assert records.form.columns["user"] == "#1"
    assert len(records.users) == 8


@pytest.mark.parametrize("of", ["session", "connection", "trip"])
def test_whatever_begins_and_ends_has_two_times(tmp_path, of):
    rows = [(u, f"AP{p}", t, t + pd.Timedelta(minutes=9)) for u, t, p in events()]
    table = pd.DataFrame(rows, columns=["mac", "ap_name", f"{of}_start", f"{of}_end"])
    records, *_ = read_records(save(table, tmp_path / "t.csv"))
    assert set(records.end - records.start) == {540}


def test_numbers_and_constants_with_names_are_no_places(tmp_path):
    rows = [(u, t, 60 * p, "Ride") for u, t, p in events()]
    table = pd.DataFrame(rows, columns=["athlete_id", "start_date", "elapsed_time", "type"])
    with pytest.raises(InvalidTraces, match="no column for place") as error:
        read_records(save(table, tmp_path / "t.csv"))
    assert "place=NAME" in str(error.value)
    assert "user=athlete_id" in str(error.value)


def test_two_clocks_are_proposed_for_both_ends(tmp_path):
    rows = [(u, f"{t:%H:%M:%S}", f"{t + pd.Timedelta(minutes=9):%H:%M:%S}", p) for u, t, p in events(each=1)]
    path = save(pd.DataFrame(rows, columns=["TUCASEID", "TUSTARTTIM", "TUSTOPTIME", "TEWHERE"]), tmp_path / "t.csv")
    with pytest.raises(InvalidTraces, match="time=TUSTARTTIM,end=TUSTOPTIME,place=NAME"):
        read_records(path)
    told = "user=TUCASEID,time=TUSTARTTIM,end=TUSTOPTIME,place=TEWHERE"
    assert read_records(path, columns=told)[0].form.record == "visits"


@pytest.mark.parametrize("kind", ["fixes", "venues", "points of trips"])
def test_a_file_with_and_without_one_person_gives_equal_coordinates(tmp_path, kind):
    rng = np.random.default_rng(6)
    if kind == "fixes":
        table = fixes(40)
    else:
        spot = 51.5 + rng.normal(0, 0.02, (30, 2)) - [0, 51.62]
        some = events(40, places=30)
        rows = [(u, t, *spot[p], f"v{p}", *spot[(p + u) % 30]) for u, t, p in some]
        table = pd.DataFrame(rows, columns=["person", "time", "lat", "lon", "venue", "end_lat", "end_lon"])
        off = rng.random(len(table)) < 0.03  # some phones place a venue elsewhere
        table.loc[off, ["lat", "lon"]] += 0.004
        table = table.drop(columns=["end_lat", "end_lon"] if kind == "venues" else "venue")
    path = save(table, tmp_path / "t.csv")
    whole = read_visits(path).locations
    where = {i: (a, b) for i, a, b in zip(whole.ids, whole.lat, whole.lon, strict=True)}
    common = 0
    for person in table["person"].unique()[::8]:
        less = read_visits(save(table[table["person"] != person], tmp_path / "t.csv")).locations
        both = [(where[i], (a, b)) for i, a, b in zip(less.ids, less.lat, less.lon, strict=True) if i in where]
        assert all(here == there for here, there in both)
        common += len(both)
    assert common > 20


def test_both_ends_of_a_visit_in_utc_are_written_in_utc(tmp_path):
    rows = [(u, f"{t}Z", f"{t + pd.Timedelta(minutes=20)}Z", 51.5 + p / 99, -0.1) for u, t, p in events(40)]
    table = pd.DataFrame(rows, columns=["user", "utc", "end_utc", "lat", "lon"])
    visits = read_visits(save(table, tmp_path / "t.csv"))
    write_visits(visits, tmp_path / "out.csv")
    back = pd.read_csv(tmp_path / "out.csv")
    assert set(back["utc"].str[-1]) == set(back["end_utc"].str[-1]) == {"Z"}
    assert set(pd.to_datetime(back["end_utc"]) - pd.to_datetime(back["utc"])) == {pd.Timedelta(minutes=20)}


def test_zones_beside_trips_may_be_polygons(tmp_path):
    rows = [(u, t, t + pd.Timedelta(minutes=20), f"Z{p}", f"Z{(p + 1) % 5}") for u, t, p in events(20)]
    names = ["person_id", "departure", "arrival", "origin_zone", "destination_zone"]
    save(pd.DataFrame(rows, columns=names), tmp_path / "in" / "trips.csv")
    ring = np.array([[0, 0], [0.1, 0], [0.1, 0.1], [0, 0.1], [0, 0]])
    shapes = [{"type": "Polygon", "coordinates": [(ring + [8.4, 47 + p / 10]).tolist()]} for p in range(5)]
    features = [{"type": "Feature", "properties": {"zone": f"Z{p}"}, "geometry": s} for p, s in enumerate(shapes)]
    features.append({"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [[1, 2]]}})
    (tmp_path / "in" / "zones.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    visits = read_visits(tmp_path / "in")
    assert (visits.form.record, visits.R, visits.tz) == ("trips", 5, "Europe/Zurich")
    assert np.all((visits.locations.lat > 47) & (visits.locations.lat < 47.5))


def test_a_flag_is_no_user_where_another_column_is(tmp_path):
    table = fixes().rename(columns={"person": "taxi_id"}).assign(passenger=0)
    table.loc[::3, "passenger"] = 1
    records, *_ = read_records(save(table, tmp_path / "t.csv"))
    assert len({label.split("/")[0] for label in records.users}) == 12


def test_stops_of_boarding_and_alighting_are_the_ends_of_a_trip(tmp_path):
    rows = [(u, t.date(), f"{t:%H:%M:%S}", p, (p + 1) % 5) for u, t, p in events()]
    names = ["CARD_ID", "RIDE_START_DATE", "RIDE_START_TIME", "BOARDING_STOP_STN", "ALIGHTING_STOP_STN"]
    assert read_records(save(pd.DataFrame(rows, columns=names), tmp_path / "t.csv"))[0].form.record == "trips"


def test_a_text_of_another_encoding_is_said_where_columns_are_not_known(tmp_path):
    rows = [(f"SPB-{u}", t, t + pd.Timedelta(minutes=9), p, 5 - p) for u, t, p in events()]
    path = tmp_path / "t.csv"
    save(
        pd.DataFrame(rows, columns=["자전거번호", "대여일시", "반납일시", "대여소", "반납대여소"]),
        path,
        encoding="cp949",
    )
    with pytest.raises(InvalidTraces, match="give `encoding`"):
        read_records(path)
    with pytest.raises(InvalidTraces, match="time=대여일시,end=반납일시,place=NAME"):
        read_records(path, encoding="cp949")


def test_a_day_that_the_caller_names_is_read(tmp_path):
    rows = [(u, 1 + i // 5, f"{7 + i % 5}.{10 + u:02}", p) for i, (u, _, p) in enumerate(events(each=10))]
    path = save(pd.DataFrame(rows, columns=["ID", "TAG", "ABZEIT", "ZWECK"]), tmp_path / "t.csv")
    told = {"columns": "user=ID,day=TAG,start=ABZEIT,place=ZWECK", "date_format": "%H.%M"}
    assert len(np.unique(read_records(path, **told)[0].start // 86_400)) == 20


def test_lines_of_points_are_fixes_of_a_trip_and_written_as_lines(tmp_path):
    rows = []
    for u in range(12):
        for k in range(4):
            line = [[-8.61 + 0.0011 * i, 41.15 + 0.0007 * i + 0.0001 * k] for i in range(20)]
            rows.append((1_372_636_800 + 7200 * k + u, f"P{u}", json.dumps(line)))
    table = pd.DataFrame(rows, columns=["timestamp", "person_id", "polyline"])
    visits = read_visits(save(table, tmp_path / "t.csv"), places="grid")
    assert visits.form.record == "fixes"  # a generator makes ways of them, no pairs of ends
    write_visits(visits, tmp_path / "out.csv")
    lines = pd.read_csv(tmp_path / "out.csv")["polyline"].map(json.loads)
    assert len(lines) == len(table)
    assert lines.map(len).between(18, 22).all()


def test_hours_and_minutes_at_both_ends(tmp_path):
    rows = [(u, t.date(), t.hour, t.minute, e.hour, e.minute, f"Z{p}") for u, t, p in events()
            for e in [t + pd.Timedelta(minutes=9)]]  # fmt: skip
    names = ["person", "date", "start_hour", "start_minute", "end_hour", "end_minute", "zone"]
    records, *_ = read_records(save(pd.DataFrame(rows, columns=names), tmp_path / "t.csv"))
    assert sorted(records.start.tolist()) == sorted(int(t.timestamp()) for _, t, _ in events())
    assert set(records.end - records.start) == {540}


def test_a_first_line_with_a_point_holds_no_names(tmp_path):
    rows = [f"CANARY{i % 3};2024-03-10 0{i % 9}:00:00;POINT(13.4{i:03} 52.51)" for i in range(1, 60)]
    (tmp_path / "t.txt").write_text("\n".join(["CANARY01;POINT(13.4 52.51)", *rows]) + "\n")
    records, preparation, *_ = read_records(tmp_path / "t.txt")
    assert len(records) == 59
    assert "CANARY" not in repr(preparation)


DAMAGED = ["CANARYwith;;;", ";CANARYwith;;", "CANARYwith;CANARY;;", "CANARYwith;;52.5;"]


@pytest.mark.parametrize("first", DAMAGED)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_damaged_row_of_words_holds_no_names(tmp_path, first, at):
    lines = [f"CANARY{i % 3};2024-03-10 0{i % 9}:00:00;52.5{i:03};13.4{i:03}" for i in range(1, 40)]
    lines = [line.rpartition(";")[0] for line in lines[:at]] + [first] + lines
    text = "\n".join(lines) + "\n"
    for damaged in (text, re.sub("(?m);[^;]*$", "", text)):  # without longitudes a message lists the columns
        (tmp_path / "t.csv").write_text(damaged)
        try:
            told = read_records(tmp_path / "t.csv")[1]
            said = " ".join((*told.notes, *told.left_out))
        except InvalidTraces as error:
            said = str(error)
        assert "CANARY" not in said


@pytest.mark.parametrize("name", ["cardCANARYbob91", "CANARYbo", "weightCANARYb"])
def test_a_name_with_a_piece_of_a_value_is_not_shown(tmp_path, name):
    rows = [(f"CANARYbob91c{i % 3}", *row[1:]) for i, row in enumerate(events())]
    columns = ["person", "time", "place", name, "weight_kg"]
    frame = pd.DataFrame([(*row, 70 + i % 3, i % 7) for i, row in enumerate(rows)], columns=columns)
    assert read_records(save(frame, tmp_path / "t.csv"))[1].left_out == ("#4", "weight_kg")


@pytest.mark.parametrize("names", ["who;when;lat;lon;", ";when;lat;lon;", "who;when;lat;lon"])
@pytest.mark.parametrize("title", ["", "A survey of the town;;;;\n", "A survey\n\nof;the town;;;\n;;;;\n"])
def test_names_stand_below_titles(tmp_path, title, names):
    rows = [f"P{u};{t};51.5{u};-0.1{p};" for u, t, p in events()]
    (tmp_path / "t.csv").write_text("\n".join([title + names, *rows]) + "\n")
    records, preparation, *_ = read_records(tmp_path / "t.csv")
    assert (len(records.users), preparation.dropped) == (10, {})
    assert set(records.form.columns.values()) >= {"when", "lat", "lon"}


def test_blanks_within_times_do_not_divide_damaged_rows(tmp_path):
    rows = [f"CANARY{u},{t},{t + pd.Timedelta(minutes=9)},52.51{u},13.4{u}" for u, t, _ in events(9, 1)]
    rows[2::3] = [row.replace(",52", ";52") for row in rows[2::3]]
    (tmp_path / "t.csv").write_text("\n".join(["person,start_time,end_time,lat,lon", *rows, rows[0]]) + "\n")
    records, preparation, *_ = read_records(tmp_path / "t.csv")
    assert (len(records), preparation.dropped) == (7, {"rows with too many or too few fields": 3})


def test_weekdays_are_nobody_where_a_number_tells_more_apart(tmp_path):
    rows = [(9_000 + u, f"{t:%A}", t, t + pd.Timedelta(hours=1), f"Z{p}")
            for u, t, p in events(30, 12) for t in [t + pd.Timedelta(days=u % 7)]]  # fmt: skip
    path = save(pd.DataFrame(rows, columns=["resp_id", "weekday", "start", "end", "zone"]), tmp_path / "t.csv")
    with pytest.raises(InvalidTraces, match="columns` user=NAME") as error:
        read_records(path)
    assert "weekday (words)" in str(error.value)
    assert len(read_records(path, columns="user=resp_id")[0].users) == 30


def test_without_names_what_tells_positions_apart_is_the_venue_and_nobody(tmp_path):
    rows = [
        (f"B20{p}", 2_000_000_001 + u, f"{t:%a %b %d %H:%M:%S +0100 %Y}", -0.1 - p / 999, 51.5 + p / 999, "ab"[p % 2])
        for u, t, p in events(20, 20, 30)
    ]
    records, *_ = read_records(save(pd.DataFrame(rows), tmp_path / "t.csv", header=False))
    assert (len(records.users), len(records.places)) == (20, 30)


def test_lists_of_objects_within_objects_are_left_out(tmp_path):
    rows = [{"createdAt": int(t.timestamp()), "user": {"id": u},
             "venue": {"id": f"v{p}", "categories": [{"name": "Bar"}], "location": {"lat": 51.5, "lng": -0.1 - p / 99}}}
            for u, t, p in events()]  # fmt: skip
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    records, preparation, *_ = read_records(tmp_path / "t.jsonl")
    assert (len(records.users), len(records.places)) == (10, 5)
    assert preparation.left_out == ("venue.categories",)


def test_names_in_capitals_without_marks(tmp_path):
    rows = [(int(t.timestamp() * 1000), 60_000, f"N{p}", 51.5 + p / 99, -0.1, 51.5, -0.1 - p / 99)
            for _, t, p in events()]  # fmt: skip
    names = ["STARTTIMEMS", "DURATIONMS", "STARTSTATIONNAME", "STARTSTATIONLATITUDE", "STARTSTATIONLONGITUDE",
             "ENDSTATIONLATITUDE", "ENDSTATIONLONGITUDE"]  # fmt: skip
    records, *_ = read_records(save(pd.DataFrame(rows, columns=names), tmp_path / "t.csv"))
    assert records.form.record == "trips"
    assert set(np.diff(records.start[np.argsort(records.trip, kind="stable")].reshape(-1, 2))[:, 0]) == {60}


def test_a_line_of_points_is_no_number_of_a_trip(tmp_path):
    lines = [[[-0.1 + i / 999, 51.5 + p / 99] for i in range(9)] for _, _, p in events()]
    table = pd.DataFrame([(u, t) for u, t, _ in events()], columns=["driver", "start_time"]).assign(traj=lines)
    table.to_parquet(tmp_path / "t.parquet")
    records, *_ = read_records(tmp_path / "t.parquet", unit="person")
    assert (len(records.users), len(records)) == (10, 9 * len(table))


@pytest.mark.parametrize("form", ["%H:%M:%S", "%Hh%M"])
def test_a_clock_at_the_beginning_on_numbered_days(tmp_path, form):
    rows = [(u, 1 + i // 99, f"{t:{form}}", 15, f"Z{p}") for i, (u, t, p) in enumerate(events())]
    table = pd.DataFrame(rows, columns=["person", "diary_day", "episode_start", "duration_minutes", "location"])
    records, *_ = read_records(save(table, tmp_path / "t.csv"))
    assert sorted(records.start % 86_400) == sorted(int(t.timestamp()) % 86_400 for _, t, _ in events())
    assert set(records.end - records.start) == {900}


@pytest.mark.parametrize("zone", ["+03:00", "+01:00"])
def test_exchanged_positions_on_land_are_told_by_the_offsets_of_times(tmp_path, zone):
    frame = fixes(at=(41.88, 12.48)).rename(columns={"lat": "lon", "lon": "lat"})  # Rome, or in Ethiopia
    frame["time"] = frame["time"].dt.strftime(f"%Y-%m-%dT%H:%M:%S{zone}")
    path = save(frame, tmp_path / "t.csv")
    if zone == "+01:00":
        with pytest.raises(InvalidTraces, match="lat=lon,lon=lat, or give `columns` lat=lat,lon=lon if they are"):
            read_records(path)
        assert read_records(path, columns="lat=lon,lon=lat")[0].tz == "Europe/Rome"
    else:
        assert read_records(path)[0].tz == "Africa/Addis_Ababa"


# --- files of a third round -------------------------------------------------------------------------------------------


def test_a_number_of_a_case_that_looks_like_a_time_is_none(tmp_path):
    rows = [(20_230_101_000_000 + u, f"{t:%H:%M:%S}", f"{t + pd.Timedelta(minutes=9):%H:%M:%S}", p % 3)
            for u, t, p in events(each=1)]  # fmt: skip
    path = save(pd.DataFrame(rows, columns=["tucaseid", "tustarttim", "tustoptime", "tewhere"]), tmp_path / "t.csv")
    with pytest.raises(InvalidTraces, match="user=NAME,time=tustarttim,end=tustoptime,place=NAME"):
        read_records(path)


@pytest.mark.parametrize("ends", [("o_tract20", "d_tract20"), ("von", "nach")])
def test_who_departs_later_than_arrives_is_on_no_trip(tmp_path, ends):
    rows = [(u, t, t + pd.Timedelta(minutes=9), f"Z{p}", f"Z{p + 1}") for u, t, p in events()]
    names = ["person_id", "depart_time_timestamp", "arrival_time_timestamp", *ends]
    path, told = save(pd.DataFrame(rows, columns=names), tmp_path / "t.csv"), {}
    if ends[0] == "von":
        with pytest.raises(InvalidTraces, match="place=NAME"):
            read_records(path)
        told = {"columns": "place=von,end_place=nach"}
    records, preparation, *_ = read_records(path, **told)
    assert (records.form.record, len(records), preparation.dropped) == ("trips", 2 * len(rows), {})


def test_a_row_of_units_below_the_names_costs_itself_alone(tmp_path):
    rows = [("id", "yyyy-mm-dd", "min", "zone")]
    rows += [(f"P{u}", f"{t:%Y-%m-%d}", t.hour * 60 + t.minute, f"Z{p}") for u, t, p in events(each=39)]
    table = pd.DataFrame(rows, columns=["traveller", "day", "start_min", "zone"])
    records, preparation, *_ = read_records(save(table, tmp_path / "t.csv"))
    assert (len(records.users), preparation.dropped) == (10, {"rows without a time": 1})
    assert sorted(records.start.tolist()) == sorted(int(t.timestamp()) for _, t, _ in events(each=39))


def test_a_date_that_only_the_whole_file_tells(tmp_path):
    frame = fixes(people=99, days=6, every=20)
    frame["time"] = frame["time"].dt.strftime("%d/%m/%Y %H:%M")  # 7 to 12 November
    lines = save(frame, tmp_path / "t.csv").read_text().splitlines()
    (tmp_path / "t.csv").write_text("\n".join([*lines[:-1], "P98,13/11/2022 04:00,51.5,-0.1", "a,b", lines[-1]]) + "\n")
    records, preparation, *_ = read_records(tmp_path / "t.csv")
    assert np.ptp(records.start) < 7 * 86_400
    assert preparation.dropped == {"rows with too many or too few fields": 1}


@pytest.mark.parametrize("written", ["POINT ({} {})", "LINESTRING ({} {}, {} {})"])
def test_points_that_look_exchanged_may_be_right(tmp_path, written):
    frame = fixes(at=(52.5, 13.4))
    sides = zip(frame["lat"], frame["lon"], strict=True)
    table = frame[["person", "time"]].assign(where=[written.format(*pair, *pair) for pair in sides])
    path, role = save(table, tmp_path / "t.csv"), "points" if "LINE" in written else "point"
    with pytest.raises(InvalidTraces, match=f"look swapped, .*exchange them, or give `columns` {role}=where if"):
        read_records(path)
    assert np.median(read_records(path, columns=f"{role}=where")[0].lat) < 14


@pytest.mark.parametrize("ending", ["parquet", "csv", "frame"])
def test_two_columns_of_one_name_are_refused(tmp_path, ending):
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table, path = pa.Table.from_pandas(fixes()).rename_columns(["person", "time", "lat", "time"]), tmp_path / "t"
    if ending == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif ending == "csv":
        pyarrow.csv.write_csv(table, path)
    with pytest.raises(InvalidTraces, match="columns #2 and #4 have one name"):
        read_records(table if ending == "frame" else path)


@pytest.mark.parametrize("unknown", ["0743", "9999"])
def test_departures_and_arrivals_in_four_digits_are_no_zones(tmp_path, unknown):
    rows = [(h, p, 1 + way, f"{1 + h % 12:02}/03/2019", f"{6 + h % 4 + 9 * way:02}{7 * h % 50:02}",
             f"{6 + h % 4 + 9 * way:02}{7 * h % 50 + 9:02}", 101 + (h, 3 * h)[way] % 37, 101 + (3 * h, h)[way] % 37)
            for h in range(1, 60) for p in (1, 2) for way in (0, 1)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["HHID", "PERSON", "TRIPNO", "TDATE", "DEP", "ARR", "OZONE", "DZONE"])
    table.loc[[0, 4, 8, 12], "DEP"] = unknown  # of four people
    visits = read_visits(save(table, tmp_path / "survey.csv"), date_format="%d/%m/%Y")
    told = visits.preparation
    assert (visits.U, told.left_out) == (118, ())
    assert set(np.unique(visits.start % 86_400 // 3600)) == {6, 7, 8, 9, 15, 16, 17, 18}
    assert told.dropped == ({"rows without a time": 4} if unknown == "9999" else {})


def test_numbers_of_zones_that_could_be_clocks_are_zones(tmp_path):
    rows = [(h, f"2019-03-{1 + h % 12:02} {6 + h % 9:02}:30", 101 + h % 37, 101 + 3 * h % 37) for h in range(60)]
    table = pd.DataFrame(rows, columns=["person", "datetime", "dep", "arr"])
    assert read_records(save(table, tmp_path / "zones.csv"))[0].places
