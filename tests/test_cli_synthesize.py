"""The commands that make fakes: files in the columns of the input, one clear line for what is refused."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import elsewhere as ew
from elsewhere.cli.sources import made_by
from elsewhere.run.public_map import is_weekend
from elsewhere.run.publish import read_links
from elsewhere.run.roles import Contributors

pytestmark = [pytest.mark.filterwarnings("ignore:.* classes instead of"), pytest.mark.usefixtures("few_draws")]

SMALL = ["--kappa", "6", "--set", "m_min=2", "--set", "k=3", "--set", "c_min=1", "--set", "class_draws=1"]


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    path = tmp_path_factory.mktemp("town") / "traces.csv"
    people = ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces
    named = ew.Traces(
        people.r, people.locations, users=[f"CANARY-{u}" for u in people.user], dates=people.dates, tz=people.tz
    )
    ew.write_traces(named, path)
    return path


@pytest.mark.usefixtures("few_attacks")
def test_synthesize_writes_fakes_in_the_columns_of_the_input(run, town, tmp_path):
    out = tmp_path / "out"
    status, said, _ = run("synthesize", town, "-o", out, *SMALL, "--also", "gpx", "--also", "geojson", "--json")
    told = json.loads(said)

    assert status == 0
    assert told["fakes"] > 0
    assert told["per_trace"]["fakes"]["moves"] > 0
    assert (out / "fakes.csv").read_text().splitlines()[0] == town.read_text().splitlines()[0]
    manifest = json.loads((out / "manifest.json").read_text())
    assert set(manifest["files"]) == {p.name for p in out.iterdir()} - {"manifest.json"}
    pool = ew.Pool.load(out)
    assert len(pool) == told["fakes"]
    assert b"CANARY" not in b"".join(p.read_bytes() for p in out.iterdir())
    again = ew.read_traces(out / "fakes.csv")
    assert len(again) == len(pool)


def test_stages_give_what_the_whole_gives(run, town, tmp_path):
    model, private, pool = (tmp_path / name for name in ("model", "private", "pool"))
    fit = [*SMALL]
    assert run("fit", town, "-o", model, *fit)[0] == 0
    people = ew.read_traces(town)
    met = Contributors.read(model).met(people)
    assert 0 < met.sum() < people.U
    assert b"CANARY" not in (model / "contributors.json").read_bytes()
    assert (model / "contributors.json").stat().st_mode & 0o077 == 0
    assert run("generate", town, "--model", model, "-o", private, *SMALL)[0] == 0
    assert all(p.stat().st_mode & 0o077 == 0 for p in private.iterdir())
    status, _, err = run("generate", town, "--model", model, "-o", tmp_path / "more")
    assert (status, err[:10]) == (2, "E_MISMATCH")  # it was learnt with a smaller m_min
    assert run("publish", private, "-o", pool)[0] == 0
    assert len(ew.Pool.load(pool)) > 0
    status, _, err = run("publish", private, "-o", tmp_path / "again")
    assert (status, err[:8]) == (2, "E_BUDGET")
    assert not (tmp_path / "again").exists()
    assert run("publish", private, "-o", tmp_path / "again", "--per-seed", "2")[0] == 2


@pytest.fixture(scope="module")
def two_towns(tmp_path_factory):
    """Traces of one half of the people, of the other half, and files of the places of both."""
    folder = tmp_path_factory.mktemp("halves")
    people = ew.simulate_town(users=120, locations=80, rng=np.random.default_rng(3)).traces
    for name, who in (("some.csv", np.arange(60)), ("others.csv", np.arange(60, 120))):
        ew.write_traces(people.of_users(who), folder / name)
    lat, lon = people.locations.lat.tolist(), people.locations.lon.tolist()
    lines = [f"{i},{y},{x}" for i, (y, x) in enumerate(zip(lat, lon, strict=True))]
    (folder / "places.csv").write_text("\n".join(["id,lat,lon", *lines, ""]))
    south, west = min(lat), min(lon)
    height, width = (max(lat) - south) / 8, (max(lon) - west) / 8
    squares = []
    for i in range(8):
        for j in range(8):
            corners = [(i, j), (i, j + 1.001), (i + 1.001, j + 1.001), (i + 1.001, j), (i, j)]
            ring = [[west + width * x, south + height * y] for y, x in corners]
            shape = {"type": "Polygon", "coordinates": [ring]}
            squares.append({"type": "Feature", "properties": {}, "geometry": shape})
    (folder / "squares.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": squares}))
    return folder


def test_a_model_of_other_people_says_how_the_maps_differ_and_what_to_do(run, two_towns, tmp_path):
    assert run("fit", two_towns / "some.csv", "-o", tmp_path / "model", *SMALL)[0] == 0
    model = ["--model", tmp_path / "model", *SMALL]
    status, _, err = run("generate", two_towns / "others.csv", "-o", tmp_path / "fakes", *model)

    some, others = (ew.read_traces(two_towns / name) for name in ("some.csv", "others.csv"))
    places = [set(zip(t.locations.lat, t.locations.lon, strict=True)) for t in (some, others)]
    both = len(places[0] & places[1])
    assert (status, err[:12]) == (2, "E_MISMATCH: ")
    assert f"the model has {some.R} places, the traces have {others.R}, and {both} of them are the same" in err
    assert "`model` must be" in err
    assert err.endswith("(--model)\n")
    assert not (tmp_path / "fakes").exists()


def as_fixes(users, locations, path, metres=0.0):
    """A town of one day as fixes, one row missing, with noise."""
    town = ew.simulate_town(users=users, locations=locations, rng=np.random.default_rng(1)).traces
    noise = metres / 111_195 * np.random.default_rng(2).standard_normal((2, *town.r.shape))
    when = town.dates[:, None] + np.arange(town.L) * np.timedelta64(1200, "s")
    where = {"lat": town.locations.lat[town.r] + noise[0], "lng": town.locations.lon[town.r] + noise[1]}
    table = pd.DataFrame(
        {"uid": np.repeat(town.users, town.L), "time": when.ravel()} | {n: a.ravel() for n, a in where.items()}
    )
    table.drop(range(5, 12)).to_csv(path, index=False)
    return path


@pytest.mark.filterwarnings("ignore:`m_min` = 1", "ignore:.*the alternates are seeds themselves", "ignore:.*lasses")
@pytest.mark.parametrize(
    ("users", "locations", "metres", "options", "said"),
    [
        (40, 700, 10, ["--preset", "paper"], "--places merge: as"),
        (60, 100, 0, ["--cells", "60", "--step", "30min", "--max-gap", "3h"], "--cells 60 --step 30min"),
        (26, 150, 0, [], None),  # few people: places are joined before anything is learnt
    ],
)
def test_what_was_made_tells_how_its_input_was_read(run, tmp_path, users, locations, metres, options, said):
    """Later commands on the same input need no option: model, private folder and what is published beside it tell."""
    real, preset = as_fixes(users, locations, tmp_path / "real.csv", metres), options[: 2 * ("--preset" in options)]
    assert run("fit", real, "-o", tmp_path / "model", *options)[0] == 0
    made = run("generate", real, "-o", tmp_path / "fakes", "--model", tmp_path / "model", *preset)
    assert made[0] == 0, made[2]
    for fakes in (["--fakes", tmp_path / "fakes"], ["--fakes", tmp_path / "fakes", "--model", tmp_path / "model"]):
        status, out, err = run("audit", "--real", real, *fakes, "--attacks", "A1", "--json")
        assert status == 0, err
        assert said is None or said in out
    if said is None:
        assert json.loads((tmp_path / "model" / "reading.json").read_text())["joined_for_fakes"]


def test_places_that_reading_joined_are_not_said_to_be_as_they_were(run, tmp_path):
    real = as_fixes(60, 100, tmp_path / "real.csv", 0)
    assert run("fit", real, "-o", tmp_path / "model", "--cells", "40")[0] == 0
    told = json.loads((tmp_path / "model" / "reading.json").read_text())
    assert told["places_by"] == "shared"
    assert {name: value for name, value in told.items() if "joined" in name} == {"joined_for_fakes": False}


def test_a_folder_that_tells_nonsense_of_its_reading_is_not_believed(tmp_path):
    odd = {"step_minutes": "1; rm", "cells": -3, "places_by": 7, "gaps": "guess", "max_gap_auto": False}
    (tmp_path / "reading.json").write_text(json.dumps({**odd, "max_gap_minutes": "soon"}))
    assert made_by(tmp_path) == {"max_gap_auto": True}
    (tmp_path / "reading.json").write_text("[1]")
    assert made_by(tmp_path) == made_by(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("map_of_both", [("--locations", "places.csv"), ("--regions", "squares.geojson")])
def test_one_map_for_fit_and_generate_lets_a_model_meet_other_people(run, two_towns, tmp_path, map_of_both):
    given = [map_of_both[0], two_towns / map_of_both[1], *SMALL]
    assert run("fit", two_towns / "some.csv", "-o", tmp_path / "model", *given)[0] == 0
    words = ["generate", two_towns / "others.csv", "-o", tmp_path / "fakes", "--model", tmp_path / "model", *given]
    assert run(*words)[0] == 0
    assert len(ew.Fakes.load(tmp_path / "fakes")) > 0


def test_who_has_no_usable_day_is_counted_and_said_why(run, town, tmp_path):
    lines = town.read_text().splitlines()
    users = list(dict.fromkeys(line.split(",")[0] for line in lines[1:]))
    late, thin = set(users[:4]), set(users[7:8])

    def known(line):
        user, hour = line.split(",")[0], int(line.split(",")[1][11:13])
        return not (user in late and 13 <= hour < 17) and not (user in thin and hour >= 6)

    (tmp_path / "gaps.csv").write_text("\n".join([lines[0], *filter(known, lines[1:]), ""]))
    words = [tmp_path / "gaps.csv", *SMALL]
    # by default gaps are filled only as far as nine of ten people need
    status, said, _ = run("generate", *words, "-o", tmp_path / "one")
    _, machine, _ = run("generate", *words, "-o", tmp_path / "two", "--json")

    told = json.loads(machine)
    assert status == 0
    assert (told["read"]["users"], told["read"]["users_dropped"], told["users"]) == (59, 1, 55)
    assert told["seeds"] == len(np.unique(ew.Fakes.load(tmp_path / "two").seed_rows)) == 38
    assert told["fakes"] <= told["seeds"]
    assert (
        "55 of 60 people have a usable day, one known from end to end: gaps of more than 1h are not filled "
        "(`max_gap`); days with less than 50% of their slots known (`min_coverage`): 1" in said
    )
    assert "people with a usable day: 1h: 55, 3h: 55, 6h: 59, 12h: 59, 24h: 60" in said
    assert "fakes of 38 seeds, of 55 users with a usable day" in said
    _, machine, _ = run("generate", town, *SMALL, "-o", tmp_path / "whole", "--json")
    assert not [note for note in json.loads(machine)["read"]["notes"] if "usable" in note]


def in_words_of_its_own(text):
    return text.replace("uid,datetime,lat,lng,location", "who,when,breite,laenge,wo")


WORDS = "user=who,time=when,lat=breite,lon=laenge,place=wo"


def test_the_stages_publish_in_the_columns_of_the_input_too(run, town, tmp_path):
    source = tmp_path / "traces.csv"
    source.write_text(in_words_of_its_own(town.read_text()))
    lab = [*SMALL, "--columns", WORDS, "--seed", "7"]
    assert run("synthesize", source, "-o", tmp_path / "whole", *lab, "--i-know", "--no-report")[0] == 0
    assert run("generate", source, "-o", tmp_path / "private", *lab)[0] == 0
    status, said, _ = run("publish", tmp_path / "private", "-o", tmp_path / "pool", "--i-know", "--json")

    assert status == 0
    whole, pool = tmp_path / "whole", tmp_path / "pool"
    assert {p.name for p in pool.iterdir()} == {p.name for p in whole.iterdir()} == set(json.loads(said)["files"])
    lines = [(folder / "fakes.csv").read_text().splitlines() for folder in (whole, pool)]
    assert lines[0][0] == lines[1][0] == "who,when,breite,laenge,wo"
    one, other = (sorted(line.split(",", 1)[1] for line in some) for some in lines)
    assert one == other  # but for the ids, which are drawn anew
    assert b"CANARY" not in b"".join(p.read_bytes() for p in pool.iterdir())


def test_the_stages_publish_in_the_form_of_the_input_too(run, tmp_path):
    people = ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces
    for name, form in (("town.trace", "fakes.trace"), ("town.gpx", "fakes.gpx")):
        ew.write_traces(people, tmp_path / name)
        private, pool = tmp_path / f"private-{form}", tmp_path / f"pool-{form}"
        assert run("generate", tmp_path / name, "-o", private, *SMALL)[0] == 0
        assert run("publish", private, "-o", pool)[0] == 0
        assert form in {p.name for p in pool.iterdir()}


def test_days_of_few_people_are_not_pooled_onto_few_dates(run, town, tmp_path):
    lines = town.read_text().splitlines()
    users = list(dict.fromkeys(line.split(",")[0] for line in lines[1:]))
    day = {user: str(np.datetime64("2024-03-04") + i) for i, user in enumerate(users)}
    moved = [line.replace("2024-03-04", day[line.split(",")[0]]) for line in lines[1:]]
    (tmp_path / "apart.csv").write_text("\n".join([lines[0], *moved, ""]))
    assert run("generate", tmp_path / "apart.csv", "-o", tmp_path / "private", *SMALL)[0] == 0
    status, said, _ = run("publish", tmp_path / "private", "-o", tmp_path / "pool", "--json")
    assert status == 0
    assert "Weekday against weekend: holds" in json.loads(said)["notes"][0]
    dates = {line.split(",")[1][:10] for line in (tmp_path / "pool" / "fakes.csv").read_text().splitlines()[1:]}
    assert len(dates) > 15
    assert min(dates) >= "2024-03-05"  # m_min = 2: the first and the last day are one person's
    assert max(dates) < max(day.values())


def test_an_undated_input_says_so_where_dates_are_written(run, tmp_path):
    people = ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces
    ew.write_traces(people, tmp_path / "town.trace")
    assert run("generate", tmp_path / "town.trace", "-o", tmp_path / "private", *SMALL)[0] == 0
    words = ("publish", tmp_path / "private", "-o")
    status, said, _ = run(*words, tmp_path / "visits", "--out-as", "visits", "--json")
    assert status == 0
    assert "the input has no dates" in json.loads(said)["notes"][0]
    lines = (tmp_path / "visits" / "fakes.csv").read_text().splitlines()
    assert lines[0] == "uid,arrived,left,place"
    assert lines[1].split(",")[1] == "2001-01-01 00:00:00"


@pytest.fixture(scope="module")
def check_ins(tmp_path_factory):
    """Visits of a town in Zurich as check-ins: UTC, ids of venues, categories, one venue that is one person's alone."""
    made = ew.simulate_town(users=60, locations=60, days=2, rng=np.random.default_rng(3))
    town = made.traces
    km = town.locations.planar() - town.locations.planar().mean(axis=0)
    kinds = [f"kind {c}" for c in made.truth]
    names = [f"v{i:02x}" for i in range(town.R)]
    where = ew.Locations(47.37 + km[:, 1] / 111, 8.54 + km[:, 0] / 76, names=names, categories=kinds)
    r = town.r.copy()
    where = ew.Locations(
        [*where.lat, 47.3], [*where.lon, 8.5], names=[*names, "CANARY"], categories=[*kinds, "CANARY kind"]
    )
    r[0, :6] = town.R
    dates = np.where(np.arange(len(r)) % 2, "2024-03-09", "2024-03-04").astype("datetime64[D]") + 7 * (town.user % 4)
    people = ew.Traces(r, where, users=[f"u{u}" for u in town.user], dates=dates, tz="Europe/Zurich")
    path = tmp_path_factory.mktemp("check-ins") / "check-ins.csv"
    columns = {
        "user": "user",
        "utc": "utc",
        "place": "venueId",
        "category": "venueCategory",
        "lat": "lat",
        "lon": "lon",
    }
    ew.write_traces(people, path, columns=columns)
    return path, people


@pytest.mark.usefixtures("few_attacks")
def test_venues_categories_kinds_of_day_and_clock_come_out_as_they_came_in(run, check_ins, tmp_path):
    path, people = check_ins
    out = tmp_path / "out"
    status, said, errors = run(
        "synthesize", path, "-o", out, *SMALL, "--out-as", "events", "--also", "geojson", "--json"
    )
    assert status == 0, errors
    lines = [line.split(",") for line in (out / "fakes.csv").read_text().splitlines()]

    assert lines[0] == ["user", "utc", "venueId", "venueCategory", "lat", "lon"]
    kind = dict(zip(people.locations.names, people.locations.categories, strict=True))
    where = dict(zip(people.locations.names, zip(people.locations.lat, people.locations.lon, strict=True), strict=True))
    assert all(kind[line[2]] == line[3] for line in lines[1:])
    assert all(np.allclose([float(line[4]), float(line[5])], where[line[2]]) for line in lines[1:])
    assert all(line[1].endswith("Z") for line in lines[1:])
    assert b"CANARY" not in b"".join(p.read_bytes() for p in out.iterdir())
    pool = ew.Pool.load(out)
    assert set(pool.traces.locations.names) <= set(people.locations.names)
    assert pool.traces.tz == "Europe/Zurich"
    # arrivals alone: as many as there are changes of place
    assert len(lines) - 1 == int((np.diff(pool.traces.r, axis=1) != 0).sum())
    told = json.loads(said)
    found = told["judgement"]["categories"]
    assert found["ami"] > max(found["geography"], found["chance_high"])
    for page in (out / "report.html", tmp_path / "out-private" / "report.html"):
        assert "Classes and categories" in page.read_text()
    # every fake has the kind of day of its seed
    real = ew.read_traces(path)
    index = read_links(tmp_path / "out-private" / "links.csv", pool.traces, real)
    assert np.array_equal(is_weekend(pool.traces.dates), is_weekend(real.dates)[index])
    assert len(np.unique(pool.traces.dates)) >= 8
    trips = ew.read_traces(out / "fakes.geojson", locations=pool.traces.locations)
    assert np.array_equal(trips.r, pool.traces.r[np.lexsort((pool.traces.dates, pool.ids))])


def test_publish_writes_visits_that_are_read_back(run, check_ins, tmp_path):
    path, _ = check_ins
    assert run("generate", path, "-o", tmp_path / "private", *SMALL)[0] == 0
    assert run("publish", tmp_path / "private", "-o", tmp_path / "pool", "--out-as", "visits")[0] == 0
    assert (tmp_path / "pool" / "fakes.csv").read_text().startswith("user,arrived,left,venueId,venueCategory,lat,lon\n")
    pool = ew.Pool.load(tmp_path / "pool")
    for name in ("fakes.csv", "fakes.parquet"):
        back = ew.read_traces(tmp_path / "pool" / name)
        order = np.lexsort((pool.traces.dates, pool.ids))
        assert back.users.tolist() == pool.ids[order].tolist()
        assert np.array_equal(back.dates, pool.traces.dates[order])
        assert np.array_equal(back.r, pool.traces.r[order])
        assert (back.locations.names, back.locations.categories) == (
            pool.traces.locations.names,
            pool.traces.locations.categories,
        )
    # a file of visits comes out as visits
    assert run("generate", tmp_path / "pool" / "fakes.csv", "-o", tmp_path / "again", *SMALL)[0] == 0
    assert run("publish", tmp_path / "again", "-o", tmp_path / "second")[0] == 0
    heads = [(tmp_path / name / "fakes.csv").read_text().split()[0] for name in ("pool", "second")]
    assert heads[0] == heads[1]
    for words in (["--out-as", "stays"], ["--also", "kml"]):
        status, _, said = run("publish", tmp_path / "private", "-o", tmp_path / "no", *words)
        assert status == 2
        assert words[0] in said


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["--seed", "7"], 2, "E_LABORATORY"),
        (["--kappa", "many"], 2, "E_PARAM"),
        (["--kappa", "1"], 2, "E_PARAM"),
        (["--kappa", "9999"], 2, "E_PARAM"),
        (["--preset", "best"], 2, "E_PARAM"),
        (["--preset", "paper", "--set", "par_c=1"], 2, "E_PARAM"),
        (["--set", "par_c=0.3"], 2, "E_NOT_READ"),
        (["--set", "par_s=nan"], 2, "E_PARAM"),
        (["--set", "nonsense"], 2, "E_PARAM"),
        (["--set", "par_q=3"], 2, "E_PARAM"),
        (["--set", "kappa=5"], 2, "E_PARAM"),
        (["--set", "rng=3"], 2, "E_PARAM"),
        (["--set", "balance=7"], 2, "E_PARAM"),
        (["--per-seed", "0"], 2, "E_PARAM"),
        (["--also", "png"], 2, "E_PARAM"),
        (["--set", "k=500"], 2, "E_TOO_FEW"),
        (["--set", "m_min=5000"], 2, "E_TOO_FEW"),
        (["--preset", "private", "--eps", "0"], 2, "E_PARAM"),
        (
            ["--kappa", "6", "--set", "m_min=2", "--set", "k=3", "--set", "par_d=0", "--set", "max_tries=2"],
            3,
            "E_NOTHING_PASSED",
        ),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(run, town, tmp_path, words, status, code):
    out = tmp_path / "out"
    got, said, err = run("synthesize", town, "-o", out, *words)

    assert got == status
    assert said == ""
    lines = [line for line in err.splitlines() if not line.startswith("warning:")]
    assert len(lines) == 1
    assert lines[0].startswith(f"{code}: ")
    assert "CANARY" not in err
    assert not out.exists()


@pytest.mark.parametrize(
    "words",
    [
        *(["--gaps", "x"], ["--max-gap", "x"], ["--step", "0min"], ["--step", "7 h 3"], ["--places", "x"]),
        *(["--min-coverage", "2"], ["--cells", "0"], ["--box", "1,2,3"], ["--start", "25:00"], ["--encoding", "x"]),
        *(["--date-format", "%Q"], ["--max-bad", "3"], ["--columns", "z=y"], ["--format", "x"], ["--tz", "Mars"]),
        *(["--kappa", "1"], ["--workers", "0"], ["--per-seed", "0"], ["--also", "png"], ["--holdout", "3"]),
        *(["--seed", "-1", "--i-know"], ["--preset", "private", "--eps", "0"], ["--preset", "x"], ["--set", "k=0"]),
    ],
    ids=" ".join,
)
def test_what_no_input_can_make_right_is_refused_before_it_is_opened(run, tmp_path, words):
    status, _, err = run("synthesize", tmp_path / "no such file", "-o", tmp_path / "out", *words)
    assert status == 2
    assert err.startswith(("E_PARAM: ", "E_TZ: "))
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_holds_something_is_refused_before_any_work(run, town, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    status, _, err = run("synthesize", town, "-o", tmp_path)
    assert (status, err[:8]) == (2, "E_OUTPUT")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.txt"]


@pytest.mark.usefixtures("few_attacks")  # with all of them: test_attacks.py
def test_a_laboratory_run_can_be_repeated_byte_for_byte(run, town, tmp_path):
    for name in ("one", "two"):
        words = ["synthesize", town, "-o", tmp_path / name, *SMALL, "--seed", "7", "--i-know"]
        assert run(*words, "--workers", "1" if name == "one" else "3")[0] == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    assert json.loads((tmp_path / "one" / "manifest.json").read_text())["provenance"]["reproducible"] is True


@pytest.mark.usefixtures("few_attacks")
def test_demo_makes_fakes(run, tmp_path):
    status, said, _ = run("demo", "--users", "120", "-o", tmp_path / "out", "--json")
    assert status == 0
    assert json.loads(said)["fakes"]["fakes"] > 0
    assert len(ew.Pool.load(tmp_path / "out")) > 0


def test_help_of_every_command_is_light():
    code = (
        "import sys; from elsewhere.cli import app\n"
        "try: app(['synthesize', '--help'])\nexcept SystemExit: pass\n"
        "sys.exit(bool({'numpy', 'numba', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.usefixtures("few_attacks")
def test_sglt_in_sglt_out(run, tmp_path):
    people = ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces
    flat = ew.Traces(people.r, ew.Locations(xy=people.locations.planar()), users=people.user)
    ew.write_traces(flat, tmp_path / "input.trace")
    out = tmp_path / "out"
    status, said, err = run("synthesize", tmp_path / "input.trace", "-o", out, *SMALL, "--json")
    assert (status, err) == (0, "")
    assert set(json.loads(said)["files"]) == {p.name for p in out.iterdir()}
    assert len(ew.read_traces(out / "fakes.trace")) == json.loads(said)["fakes"]
    assert (out / "fakes.csv").read_text().startswith("uid,")


def test_a_model_remembers_exactly_whom_it_has_met(tmp_path):
    people = ew.Traces(np.arange(12).reshape(6, 2) % 4, ew.Locations(n=4), users=["a", "b", "c", "d", "e", "01"])
    for name, content in Contributors.of(people.select([1, 4, 5])).file().items():
        (tmp_path / name).write_bytes(content)
    assert Contributors.read(tmp_path).met(people).tolist() == [False, True, False, False, True, True]
    assert Contributors.read(tmp_path / "elsewhere") is None
    (tmp_path / "contributors.json").write_text("{}")
    with pytest.raises(ew.errors.InvalidModel):
        Contributors.read(tmp_path)


@pytest.mark.usefixtures("few_attacks")
@pytest.mark.parametrize("called", ["cafe {}", "90071992547409{:03}"])
def test_places_without_coordinates_come_out_under_their_own_names(run, tmp_path, called):
    town = ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces
    rare = called.format(999)
    r = town.r.copy()
    names = np.array([called.format(i) for i in range(town.R)], dtype=object)
    lines = ["uid,slot,venue"]
    for row in range(len(r)):
        # one person's own place, which nobody else goes to
        at = [rare if row == 0 and slot < 6 else names[place] for slot, place in enumerate(r[row])]
        lines += [f"u{town.user[row]},{slot},{place}" for slot, place in enumerate(at)]
    source = tmp_path / "visits.csv"
    source.write_text("\n".join(lines) + "\n")
    status, _, said = run("synthesize", source, "-o", tmp_path / "out", *SMALL, "--json")
    assert status == 0, said
    text = (tmp_path / "out" / "fakes.csv").read_text().splitlines()
    out = {line.split(",")[2] for line in text[1:]}

    assert text[0] == "uid,slot,venue"
    assert out <= set(names)
    assert len(out) > 5
    assert rare.encode() not in b"".join(p.read_bytes() for p in (tmp_path / "out").iterdir())
    pool = ew.Pool.load(tmp_path / "out")
    assert out == {pool.traces.locations.names[p] for p in np.unique(pool.traces.r)}
    # a place that no fake goes to has no name outside
    assert {n for n in pool.traces.locations.names if n} == out
    again = ew.read_traces(tmp_path / "out" / "fakes.parquet")
    assert set(again.locations.names) == out


def test_tracks_come_out_as_tracks(run, tmp_path):
    town = ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces
    km = town.locations.planar() - town.locations.planar().mean(axis=0)
    map_of = ew.Locations(46.5 + km[:, 1] / 111, 6.5 + km[:, 0] / 76)
    people = tmp_path / "people.gpx"
    ew.write_traces(ew.Traces(town.r, map_of, users=town.users, dates=town.dates, tz="UTC"), people)
    status, shown, said = run("synthesize", people, "-o", tmp_path / "out", *SMALL, "--tz", "UTC", "--no-report")
    assert status == 0, said
    # the last line says that nothing is known yet, and what to type
    last = shown.splitlines()[-1]
    links = tmp_path / "out-private" / "links.csv"
    assert last.startswith("nothing was attacked: ")
    assert last.endswith(f"elsewhere audit --real {people} --fakes {tmp_path / 'out'} --links {links}")

    fakes = ew.read_traces(tmp_path / "out" / "fakes.gpx", tz="UTC")
    assert len(fakes) == len(ew.Pool.load(tmp_path / "out"))
    assert (tmp_path / "out" / "fakes.csv").read_text().startswith("uid,datetime,lat,lng")


def test_what_each_preset_would_promise(run, tmp_path):
    town = ew.simulate_town(users=80, locations=40, rng=np.random.default_rng(3)).traces
    ew.write_traces(town, tmp_path / "people.csv")
    status, said, err = run("plan", tmp_path / "people.csv", "--eps", "2", "--json")
    assert status == 0, err
    told = json.loads(said)
    assert told["people"] == 80
    presets = told["presets"]
    assert {name: p["certificate"]["protects"] for name, p in presets.items()} == {
        "paper": "nobody",
        "product": "nobody",
        "private": "everybody",
    }
    assert presets["private"]["enough"] is False
    assert presets["private"]["people_needed"] == 1116
    status, said, _ = run("plan", tmp_path / "people.csv")
    assert status == 0
    assert "1,116" not in said  # that is the number for eps 2
    assert "80 people are too few for any eps" in said
    assert run("plan", tmp_path / "people.csv", "--eps", "0")[0] == 2


@pytest.mark.filterwarnings("always:.* is not of this run")
def test_nothing_of_an_earlier_run_stays_beside_the_fakes(run, town, tmp_path):
    words = ["synthesize", town, "-o", tmp_path / "out", *SMALL, "--no-report", "--json"]
    out = tmp_path / "out"
    assert run(*words, "--also", "sglt", "--also", "geojson", "--also", "gpx")[0] == 0
    # as if that run had written a report
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["files"]["report.html"] = hashlib.sha256(b"of the run before").hexdigest()
    (out / "report.html").write_text("of the run before")
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert {"fakes.trace", "fakes.locations"} <= set(manifest["files"])
    # what is somebody's own stays, also under a name that is ours
    (out / "mine.txt").write_text("mine")
    (out / "fakes.gpx").write_text("mine")
    status, _said, err = run(*words, "--force")

    assert status == 0
    listed = json.loads((out / "manifest.json").read_text())["files"]
    there = {p.name for p in out.iterdir()}
    # a second fake of every seed would stand there (E59)
    assert there == {*listed, "manifest.json", "mine.txt", "fakes.gpx"}
    assert listed.keys() == {"fakes.csv", "fakes.parquet", "pool.parquet", "places.parquet"}
    assert [(out / name).read_text() for name in ("mine.txt", "fakes.gpx")] == ["mine", "mine"]
    assert "fakes.gpx is not of this run" in err
    assert "mine.txt" not in err


def test_publish_with_force_leaves_nothing_of_the_pool_before(run, town, tmp_path):
    made, out = tmp_path / "made", tmp_path / "out"
    assert run("generate", town, "-o", made, *SMALL, "--per-seed", "2")[0] == 0
    assert run("publish", made, "-o", out, "--also", "geojson", "--also", "sglt")[0] == 0
    (out / "mine.txt").write_text("mine")
    status, _, err = run("publish", made, "-o", out, "--per-seed", "2", "--force")
    assert status == 0, err

    names = {"fakes.csv", "fakes.parquet", "pool.parquet", "places.parquet", "manifest.json"}
    assert {p.name for p in out.iterdir()} == {*names, "mine.txt"}
