"""Files that strangers tried and that were once read wrong in silence, or refused with advice that did not work."""

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


@pytest.mark.parametrize("scale", [10**5, 10**6, 10**7])
def test_whole_parts_of_degrees(tmp_path, scale):
    frame = fixes()
    table = frame.assign(lat=(frame["lat"] * scale).round().astype(int), lon=(frame["lon"] * scale).round().astype(int))
    for options in ({}, {"columns": "lat=lat,lon=lon"}):
        records, preparation, *_ = read_records(save(table, tmp_path / "t.csv"), **options)
        assert np.allclose(np.sort(records.lat), np.sort(frame["lat"]), atol=1e-5)
        assert any("of a degree" in note for note in preparation.notes)


def test_metres_with_the_name_of_their_zone_are_refused(tmp_path):
    frame = fixes()
    table = frame[["person", "time"]].assign(
        easting=700_000.5 + frame["lon"], northing=5_700_000.5 + frame["lat"], zone="30U"
    )
    with pytest.raises(InvalidTraces, match="EPSG:4326"):
        read_records(save(table, tmp_path / "t.csv"))


def test_points_with_the_latitude_first_are_told_by_their_clock(tmp_path):
    frame = fixes(at=(41.88, 12.48))
    rows = [f"{u};{t:%Y-%m-%d %H:%M:%S}.739166+01;POINT({a} {b})" for u, t, a, b in frame.itertuples(index=False)]
    (tmp_path / "t.txt").write_text("\n".join(rows) + "\n")
    records, *_ = read_records(tmp_path / "t.txt")
    assert records.tz == "Europe/Rome"
    assert 41 < records.lat.mean() < 43


@pytest.mark.parametrize("names", [("stop_id", "stop_lat", "stop_lon"), ("stop_id", "centroid_lat", "centroid_lon")])
def test_a_table_of_stops_beside_the_taps(tmp_path, names):
    rows = [(u, t, f"S{p}") for u, t, p in events()]
    save(pd.DataFrame(rows, columns=["card_no", "time", "stop_id"]), tmp_path / "taps.csv")
    save(pd.DataFrame([(f"S{i}", -23.5 - i / 100, -46.6) for i in range(5)], columns=names), tmp_path / "stops.txt")
    visits = read_visits(tmp_path)
    assert visits.tz == "America/Sao_Paulo"
    assert visits.R == 5
    assert np.allclose(visits.locations.lon, -46.6)


def test_ids_that_go_with_one_position_are_places(tmp_path):
    rows = [f"{u}\t{t:%Y-%m-%dT%H:%M:%SZ}\t{51.5 + p / 100}\t{-0.12 - p / 90}\t{9000 + p}" for u, t, p in events()]
    (tmp_path / "checkins.txt").write_text("\n".join(rows) + "\n")
    assert set(read_records(tmp_path / "checkins.txt")[0].places) == {str(9000 + p) for p in range(5)}


def test_off_is_no_place(tmp_path):
    rows = [f"{u},{t},{'OFF' if p == 0 else p}" for u, t, p in events()]
    (tmp_path / "t.csv").write_text("user,time,ap\n" + "\n".join(rows) + "\n")
    records, preparation, *_ = read_records(tmp_path / "t.csv")
    assert "OFF" not in records.places
    assert preparation.dropped["rows without a place"] == sum(p == 0 for *_, p in events())


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


def test_two_columns_that_differ_in_from_and_to_are_the_ends_of_a_trip(tmp_path):
    rows = [(u, 800 + i, 830 + i, i % 4 + 1, (i + 1) % 4 + 1) for u in range(12) for i in range(20)]
    path = save(pd.DataFrame(rows, columns=["PERSONID", "STRTTIME", "ENDTIME", "WHYFROM", "WHYTO"]), tmp_path / "t.csv")
    assert read_records(path)[0].form.record == "trips"


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


def test_how_much_is_told_of_no_place_and_how_far_places_are(tmp_path):
    rows = [(u, t, f"ap{u}-{i % 7}") for i, (u, t, _) in enumerate(events(30))]
    visits = read_visits(save(pd.DataFrame(rows, columns=["user", "time", "ap"]), tmp_path / "t.csv"))
    assert sum(visits.preparation.changed.values()) + sum(visits.preparation.dropped.values()) >= 0.9 * len(rows)
    notes = read_visits(save(fixes(), tmp_path / "g.csv")).preparation.notes
    assert any(re.search(r"half of the records were within .* km", note) for note in notes)


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


def test_a_column_that_is_called_latitude_is_not_asked_for(tmp_path):
    table = fixes().assign(lat="40°41'50.12\"N", lon="73°58'0.5\"W")
    with pytest.raises(InvalidTraces, match="decimal degrees"):
        read_records(save(table, tmp_path / "t.csv"))


def test_times_of_no_known_form_ask_for_their_form(tmp_path):
    frame = fixes()
    table = frame.assign(time=frame["time"].dt.strftime("day %j of %Y at %H+%M"))
    path = save(table, tmp_path / "t.csv")
    with pytest.raises(InvalidTraces, match=r"time=time.*date_format"):
        read_records(path)


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


def test_an_archive_without_a_file_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("people.csv", "")
    with pytest.raises(InvalidTraces) as refused:
        read_visits(tmp_path / "empty.zip")
    assert refused.value.code == "E_EMPTY"
