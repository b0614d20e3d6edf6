"""Files on one map and one clock: a file compared with itself is perfect, whatever it holds, however it is written."""

import json
from datetime import datetime, timedelta

import makefiles
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makefiles import read_together

import elsewhere as ew
from elsewhere.cli import app
from elsewhere.traces.read import First, common_slots, crop

EPOCH = datetime(1970, 1, 1)
HEAD = "uid,datetime,lat,lng\n"


@pytest.fixture
def run(capsys):
    def command(*words):
        with pytest.raises(SystemExit) as stopped:
            app([str(w) for w in words], prog_name="elsewhere")
        said = capsys.readouterr()
        assert (stopped.value.code or 0) == 0, said.err
        return said.out

    return command


def fixes(users=12, days=2, seed=3):
    """(user, UTC time, lat, lon, place) of a small town, every seventh fix missing, points scattered around places."""
    town = ew.simulate_town(users=users, days=days, locations=60, rng=np.random.default_rng(seed)).traces
    rng = np.random.default_rng(seed)
    rows = []
    for row, slot in zip(*np.nonzero(rng.random(town.r.shape) > 1 / 7), strict=True):
        place = int(town.r[row, slot])
        time = town.dates[row].astype("datetime64[s]") + np.timedelta64(1200 * int(slot) + int(rng.integers(1100)), "s")
        lat, lon = (side[place] + rng.normal() * 0.003 for side in (town.locations.lat, town.locations.lon))
        rows.append((f"u{town.user[row]:02}", time.item(), round(lat, 6), round(lon, 6), place))
    return rows


ROWS = fixes()


def table(head, line):
    return lambda rows: head + "".join(line(*row) + "\n" for row in rows)


def slots(rows, columns):
    """The same as numbered slots: the first fix of each slot."""
    seen, lines = set(), []
    for user, time, lat, lon, place in rows:
        key = (user, time.date(), (time.hour * 60 + time.minute) // 20)
        if key not in seen:
            seen.add(key)
            lines.append(",".join(map(str, [*key, *((lat, lon) if columns == "lat,lng" else (place,))])) + "\n")
    return f"uid,date,slot,{columns}\n" + "".join(lines)


def by_user(write):
    def files(rows):
        people = sorted({row[0] for row in rows})
        return {u: write([(t, lat, lon) for user, t, lat, lon, _ in rows if user == u]) for u in people}

    return files


FILES = {
    "fixes.csv": table(HEAD, lambda u, t, y, x, _: f"{u},{t:%Y-%m-%dT%H:%M:%S}Z,{y},{x}"),
    "naive.csv": table(HEAD, lambda u, t, y, x, _: f"{u},{t:%Y-%m-%d %H:%M:%S},{y},{x}"),
    "offset.csv": table(HEAD, lambda u, t, y, x, _: f"{u},{t:%Y-%m-%dT%H:%M:%S}+09:00,{y},{x}"),
    "names.csv": table("uid,datetime,venue_id\n", lambda u, t, y, x, p: f"{u},{t:%Y-%m-%dT%H:%M:%S}Z,v{p}x"),
    "names_at.csv": table(
        "uid,datetime,venue_id,lat,lng\n",
        lambda u, t, y, x, p: f"{u},{t:%Y-%m-%dT%H:%M:%S}Z,v{p}x,46.{p:03},-12.{p:03}",
    ),
    "numbers.csv": table("uid,datetime,location\n", lambda u, t, y, x, p: f"{u},{t:%Y-%m-%dT%H:%M:%S}Z,{p}"),
    "large_numbers.csv": table(
        "uid,datetime,location\n", lambda u, t, y, x, p: f"{u},{t:%Y-%m-%d %H:%M},{7919 * p + 10**6}"
    ),
    "slots.csv": lambda rows: slots(rows, "loc"),
    "slots_at.csv": lambda rows: slots(rows, "lat,lng"),
    "lines.json": table("", lambda u, t, y, x, _: json.dumps({"uid": u, "time": f"{t}Z", "lat": y, "lng": x})),
    "geolife": by_user(makefiles.plt),
    "gpx": by_user(makefiles.gpx),
}


def put(folder, name, rows):
    """The file (or folder of files) of that name, with these rows."""
    content, path = FILES[name](rows), folder / name
    if isinstance(content, str):
        path.write_text(content)
        return path
    for user, text in content.items():
        where = path / user / "Trajectory" / "1.plt" if name == "geolife" else path / f"{user}.gpx"
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(text)
    return path


def figures(found):
    """All figures of `evaluate --json` beside their best value."""
    for group in ("aggregate", "visits", "allocation", "beyond"):
        for name, figure in found[group].items():
            best = 1.0 if group == "aggregate" or "overlap" in name else figure.get("train", 0.0)
            yield name, figure["fakes"]["mean"], best
    for name, figure in found["habits"].items():
        yield name, figure["fakes"]["mean"], figure["train"]["mean"]
        yield name, figure["distance"]["fakes"], 0.0
    yield "qq", found["qq"]["correlation"], 1.0


def imperfect(found):
    """The figures of `evaluate --json` that are not at their best value."""
    return [(name, value, best) for name, value, best in figures(found) if value != pytest.approx(best, abs=1e-9)]


@pytest.mark.parametrize("name", FILES)
def test_a_file_compared_with_itself_is_perfect(run, tmp_path, name):
    path = put(tmp_path, name, ROWS)
    found = json.loads(run("evaluate", "--real", path, "--fakes", path, "--cells", "30", "--json"))

    assert imperfect(found) == []
    assert found["sizes"]["fakes"] == found["sizes"]["train"] == 24
    as_names = ("names.csv", "numbers.csv", "large_numbers.csv", "slots.csv")
    assert (found["sizes"]["places"] <= 30) is (name not in as_names)  # these cannot be merged


@pytest.mark.parametrize(
    ("real", "fakes"),
    [("fixes.csv", "geolife"), ("geolife", "fixes.csv"), ("naive.csv", "gpx"), ("fixes.csv", "lines.json")],
)
def test_the_same_content_in_another_form_is_perfect(run, tmp_path, real, fakes):
    paths = [put(tmp_path, name, ROWS) for name in (real, fakes)]
    found = json.loads(run("evaluate", "--real", paths[0], "--fakes", paths[1], "--cells", "30", "--json"))

    assert imperfect(found) == []


def test_parquet_in_another_order_and_under_other_ids_is_perfect(run, tmp_path):
    import pandas as pd

    real = put(tmp_path, "fixes.csv", ROWS)
    frame = pd.read_csv(real).sample(frac=1, random_state=1)
    frame.uid = "f" + frame.uid.str[::-1]
    frame.to_parquet(tmp_path / "fakes.parquet")
    fakes = tmp_path / "fakes.parquet"
    found = json.loads(run("evaluate", "--real", real, "--fakes", fakes, "--cells", "30", "--json"))

    assert imperfect(found) == []


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["fixes.csv", "names.csv", "names_at.csv", "slots_at.csv"]), st.randoms(), st.integers(5, 90))
def test_some_rows_in_any_order_fall_where_they_fell(tmp_path_factory, name, random, cells):
    folder = tmp_path_factory.mktemp("some")
    people = random.sample(sorted({row[0] for row in ROWS}), 5)
    rows = [row for row in ROWS if row[0] in people]
    random.shuffle(rows)
    (folder / "other").mkdir()
    paths = {"real": put(folder, name, sorted(ROWS)), "fakes": put(folder / "other", name, sorted(rows))}
    found, _ = read_together(paths, cells=cells)
    real = found["real"]
    same = real.select(np.isin(real.users.astype(str), people))

    assert np.array_equal(found["fakes"].r, same.r)
    assert np.array_equal(found["fakes"].users, same.users)


@pytest.mark.parametrize(
    ("real", "fakes"), [("+09:00", "Z"), ("Z", "+09:00"), ("+09:00", ""), ("", "+09:00"), ("+09:00", "unix")]
)
def test_clocks_written_otherwise_are_one_clock(tmp_path, real, fakes):
    def write(name, zone):
        shift = timedelta(hours=9 if zone in ("Z", "unix") else 0)
        stamp = {"unix": lambda t: str(int((t - EPOCH).total_seconds()))}.get(zone, lambda t: t.isoformat() + zone)
        lines = [f"{u},{stamp(t - shift)},v{p}\n" for u, t, _, _, p in ROWS]
        (tmp_path / name).write_text("uid,datetime,venue_id\n" + "".join(lines))
        return tmp_path / name

    found, notes = read_together({"real": write("a.csv", real), "fakes": write("b.csv", fakes)}, max_gap="1h")

    assert np.array_equal(found["real"].r, found["fakes"].r)
    _, notes = read_together({"real": write("a.csv", ""), "fakes": write("b.csv", "Z")}, max_gap="1h")
    assert any("its times are UTC, those of the real traces name no zone" in note for note in notes)


def test_fakes_of_other_slots_say_what_to_type(tmp_path):
    real = First.read(put(tmp_path, "numbers.csv", ROWS)).traces
    hours = ew.Traces(np.zeros((2, 24), dtype=int), real.locations, step_minutes=60)
    with pytest.raises(ew.errors.InvalidTraces, match="give `step` 60min"):
        common_slots(hours, real, "--fakes")
    unknown = ew.Traces(np.zeros((2, 24), dtype=int), real.locations)  # a file of 24 slots: nobody said how long
    with pytest.raises(ew.errors.InvalidTraces, match="if its slots are 60 minutes long, give `step` 60min"):
        common_slots(unknown, real, "--fakes")
    waking = ew.Traces(np.zeros((2, 51), dtype=int), real.locations, start="06:00")
    slots = common_slots(waking, real, "--fakes")
    assert slots == (slice(0, 51), slice(18, 69))
    part = crop(real, slots[1])
    assert (part.start, part.L) == ("06:00", 51)
    assert np.array_equal(part.r, real.r[(real.r[:, 18:69] >= 0).any(axis=1), 18:69])


def test_a_pool_tells_its_step_and_real_days_are_whole_as_its_fakes_are(run, tmp_path):
    rows = [row for row in ROWS if row[0] > "u02" or not 9 <= row[1].hour < 12]  # a gap that is longer than an hour
    path = put(tmp_path, "fixes.csv", rows)
    hourly = ew.read_traces(path, step="1h", cells=30, max_gap="1h")
    whole = hourly.select(np.all(hourly.r >= 0, axis=1))
    assert 10 <= len(whole) < len(hourly)
    pool = ew.Traces(
        whole.r, whole.locations, users=[f"f{i:02}" for i in range(len(whole))], dates=whole.dates, step_minutes=60
    )
    ew.Pool(pool, {}).save(tmp_path / "pool")
    words = ["--real", path, "--fakes", tmp_path / "pool", "--cells", "30", "--max-gap", "1h"]
    found = json.loads(run("evaluate", *words, "--json"))

    assert imperfect(found) == []
    assert (found["sizes"]["slots"], found["sizes"]["train"]) == (24, len(whole))
    assert "--step 60min: as the fakes or the model were made." in found["notes"]
    assert any(f"{len(hourly) - len(whole)} real days with gaps are left out" in note for note in found["notes"])


def test_the_last_line_says_what_the_fakes_are_good_for(run, tmp_path):
    path = put(tmp_path, "names.csv", ROWS)
    said = run("evaluate", "--real", path, "--fakes", path)

    assert said.splitlines()[-1].startswith("these fakes are days of the real traces")
    other = fixes(seed=4)  # another town: of its twelve days' worth of people nobody is the same
    mixed = [(f"f{u}", t, y, x, p) for u, t, y, x, p in other[: len(other) // 2]] + ROWS[: len(ROWS) // 4]
    (tmp_path / "other").mkdir()
    said = run("evaluate", "--real", path, "--fakes", put(tmp_path / "other", "names.csv", mixed))
    last = said.splitlines()[-1]
    assert last.startswith("these fakes are ")
    assert sum(last.count(verdict) for verdict in ("good for", "rough for", "not for", "not known for")) >= 1
    assert "of the fakes equal somebody's real day" in said
    assert "testing" not in said
    assert "train" not in said
