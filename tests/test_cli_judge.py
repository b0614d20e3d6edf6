"""The judging commands: any tool's files on one map, refusals in one line that leave nothing, no name of a user."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from makefiles import read_together
from rich.console import Console

import elsewhere as ew
from elsewhere.cli.output import audit_tables
from elsewhere.evaluation.attacks.audit import ATTACKS, ON_DECOYS, AuditResult
from elsewhere.evaluation.attacks.finding import Finding, Rate
from elsewhere.reports.claims import QUESTIONS
from elsewhere.run.finish import earlier_results
from elsewhere.run.publish import links_file, read_links
from elsewhere.traces.read import match_map

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* classes instead of", "ignore:`m_min` = 1", "ignore:`alternates="),
    pytest.mark.usefixtures("few_draws"),
]

SMALL = ["--kappa", "6", "--set", "m_min=2", "--set", "k=3", "--set", "c_min=1", "--set", "class_draws=1"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Real people as CSV with coordinates, fakes of the first 40 in several forms, and who was made from whom."""
    folder = tmp_path_factory.mktemp("world")
    town = ew.simulate_town(users=60, days=2, locations=60, rng=np.random.default_rng(3)).traces
    first = np.flatnonzero(np.r_[True, town.user[1:] != town.user[:-1]])
    day, rng = town.select(first), np.random.default_rng(4)
    names = [f"CANARY-{u:02}" for u in range(60)]
    real = ew.Traces(day.r, day.locations, users=names, dates=day.dates, tz=day.tz)
    made = rng.permutation(day.r[:40], axis=1)  # other orders of the seeds' own places: easy to link
    fakes = ew.Traces(made, day.locations, users=[f"fake{i:02}" for i in range(40)], dates=day.dates[:40], tz=day.tz)
    ew.write_traces(real, folder / "real.csv")
    ew.write_traces(fakes, folder / "fakes.csv")
    ew.write_traces(fakes, folder / "fakes.parquet")
    later = town.select(first + 1)
    ew.write_traces(
        ew.Traces(later.r, later.locations, users=names, dates=later.dates, tz=later.tz), folder / "second.csv"
    )
    (folder / "links.csv").write_bytes(links_file(fakes, real, np.arange(40)))
    return folder


def test_evaluate_says_the_same_of_every_form(run, world, tmp_path):
    words = ["--real", world / "real.csv", "--test", world / "second.csv", "--links", world / "links.csv", "--json"]
    found = {}
    for name in ("fakes.csv", "fakes.parquet"):
        status, said, _ = run("evaluate", *words, "--fakes", world / name, "-o", tmp_path / name)
        assert status == 0
        found[name] = json.loads(said)
    assert found["fakes.csv"] == found["fakes.parquet"]
    # fakes are the seeds' own places in another order: their visits are those of the seeds
    assert found["fakes.csv"]["sizes"]["dataset_size"] == 40
    assert sorted(p.name for p in (tmp_path / "fakes.csv").iterdir()) == ["evaluation.json", "report.html"]
    assert b"CANARY" not in b"".join(p.read_bytes() for p in (tmp_path / "fakes.csv").iterdir())


def test_evaluate_says_where_real_stays_are_as_filled(run, world, tmp_path):
    head, *rows = (world / "real.csv").read_text().splitlines()
    (tmp_path / "thin.csv").write_text("\n".join([head, *rows[::3], ""]))  # a fix an hour, in slots of 20 minutes
    for real, as_filled in ((world / "real.csv", 0), (tmp_path / "thin.csv", 1)):
        _, said, _ = run("evaluate", "--real", real, "--fakes", world / "fakes.csv")
        assert said.count("real stays as filled: 67 % of the slots had no fix") == as_filled
        assert said.count("length of a stay (minutes), real ones as filled") == as_filled


def test_evaluate_compares_lives_where_there_are_any(run, world, tmp_path):
    town = ew.simulate_town(users=60, days=4, locations=60, rng=np.random.default_rng(5)).traces
    names = np.array([f"CANARY-{u:02}" for u in range(60)])[town.user]
    whole = ew.Traces(town.r, town.locations, users=names, dates=town.dates, tz=town.tz)
    ew.write_traces(whole.of_users(range(40)), tmp_path / "real.csv")
    ew.write_traces(whole.of_users(range(40, 60)), tmp_path / "fakes.csv")
    words = ["evaluate", "--real", tmp_path / "real.csv", "--fakes", tmp_path / "fakes.csv"]
    status, said, _ = run(*words, "--json", "-o", tmp_path / "out")
    found = json.loads(said)["lives"]
    assert status == 0
    assert (found["sizes"]["people"], found["sizes"]["fakes"]) == (40, 20)
    assert found["measures"]["night_share"]["within"] is True
    assert found["in_words"].startswith("in 1")
    assert 'id="lives"' in (tmp_path / "out" / "report.html").read_text()
    _, said, _ = run(*words)
    assert "lives over days:\n" in said
    assert found["in_words"] in said

    # one day per person: one sentence, no section
    words = ["evaluate", "--real", world / "real.csv", "--fakes", world / "fakes.csv"]
    _, said, _ = run(*words, "--json", "-o", tmp_path / "days")
    told = json.loads(said)
    assert told["lives"] is None
    assert sum("lives over several days are not compared" in note for note in told["notes"]) == 1
    assert 'id="lives"' not in (tmp_path / "days" / "report.html").read_text()


def test_evaluate_of_a_dataset_against_itself(run, world):
    status, said, _ = run("evaluate", "--real", world / "real.csv", "--fakes", world / "real.csv", "--json")
    found = json.loads(said)

    assert status == 0
    assert found["aggregate"]["p_bar"]["fakes"]["mean"] == pytest.approx(1)
    assert found["visits"]["all"]["fakes"]["mean"] == pytest.approx(0, abs=1e-12)


def test_audit_links_what_can_be_linked(run, world, tmp_path):
    words = ["--real", world / "real.csv", "--fakes", world / "fakes.csv", "--links", world / "links.csv"]
    status, said, err = run("audit", *words, "--attacks", "A1, a2,A9", "--json", "-o", tmp_path / "out")
    found = json.loads(said)

    assert (status, err) == (0, "")
    assert set(found["attacks"]) == {"A1", "A2", "A9"}
    assert found["sizes"]["seed_users"] == 40
    assert found["sizes"]["holdout_users"] == 20
    assert found["attacks"]["A1"]["passed"] is False  # it must see copies of the seeds' own places
    assert found["attacks"]["A9"]["needs"] == "`sampler`"
    assert b"CANARY" not in b"".join(p.read_bytes() for p in (tmp_path / "out").iterdir())
    status, said, _ = run("audit", *words, "--attacks", "A2")
    assert status == 0
    assert "control: the 20 people" in said
    assert "CANARY" not in said


def test_audit_of_the_original_tools_format(run, tmp_path):
    rng = np.random.default_rng(5)
    where = ew.Locations(xy=rng.random((30, 2)) * 5)
    real = ew.Traces(rng.integers(30, size=(40, 12)), where, users=np.arange(1, 41))
    ew.write_traces(real, tmp_path / "input.trace")
    folder = tmp_path / "made"
    folder.mkdir()
    # the tool keeps the ids of its seeds; its output comes without a file of places
    lines = [f"{u + 1},{t + 1},{r + 1}" for u in range(20) for t, r in enumerate(rng.permutation(real.r[u]))]
    (folder / "output.txt").write_text("\n".join(lines) + "\n")
    status, said, err = run(
        "audit", "--real", tmp_path / "input.trace", "--fakes", folder / "output.txt", "--links", "same", "--json"
    )
    found = json.loads(said)

    assert (status, err) == (0, "")
    assert (found["sizes"]["seed_users"], found["sizes"]["holdout_users"]) == (20, 20)
    assert found["attacks"]["A1"]["main"] == 1.0  # all of them share places with their seeds


REAL, FAKES = ["--real", "real.csv"], ["--fakes", "fakes.csv"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["evaluate", *REAL], "E_USAGE"),
        (["evaluate", *REAL, "--fakes", "absent.csv"], "E_OPEN"),
        (["evaluate", *REAL, "--fakes", "empty.csv"], "E_EMPTY"),
        (["evaluate", *REAL, "--fakes", "names_only.csv"], "E_EMPTY"),
        (["evaluate", "--real", "empty.csv", *FAKES], "E_EMPTY"),
        (["evaluate", "--real", "numbers.csv", "--fakes", "short.csv"], "E_SHAPE"),
        (["evaluate", *REAL, "--fakes", "far.csv"], "E_MISMATCH"),
        (["evaluate", *REAL, "--fakes", "numbers.csv"], "E_MISMATCH"),
        (["evaluate", *REAL, "--fakes", "folder"], "E_OPEN"),
        (["evaluate", *REAL, *FAKES, "--datasets", "0"], "E_PARAM"),
        (["evaluate", *REAL, *FAKES, "--periods", "0"], "E_PARAM"),
        (["evaluate", *REAL, *FAKES, "--links", "absent.csv"], "E_OPEN"),
        (["evaluate", *REAL, *FAKES, "--links", "same"], "E_LINKS"),
        (["audit", *REAL, *FAKES, "--links", "half.csv"], "E_LINKS"),
        (["audit", *REAL, *FAKES, "--links", "strangers.csv"], "E_LINKS"),
        (["audit", *REAL, *FAKES, "--links", "twice.csv"], "E_LINKS"),
        (["audit", *REAL, *FAKES, "--links", "real.csv"], "E_COLUMN"),
        (["audit", *REAL, *FAKES, "--attacks", "A99"], "E_PARAM"),
        (["audit", *REAL, *FAKES, "--attacks", ","], "E_PARAM"),
        (["audit", *REAL, *FAKES, "--attacks", "A2", "--m-min", "0"], "E_PARAM"),
        (["audit", *REAL, *FAKES, "--model", "folder"], "E_MODEL"),
        (["audit", *REAL, *FAKES, "--seed", "-1"], "E_PARAM"),
        (["lbs", *REAL], "E_DAYS"),
        (["lbs", *FAKES], "E_PARAM"),
        (["lbs", *REAL, "--test", "second.csv", "--links", "links.csv"], "E_PARAM"),
        (["lbs", "--beta", "0"], "E_PARAM"),
        (["lbs", "--n-fakes", "none"], "E_PARAM"),
        (["lbs", "--preset", "private"], "E_PARAM"),
        (["reproduce", "real.csv"], "E_DAYS"),
        (["reproduce", "folder"], "E_OPEN"),
        (["reproduce", "--per-seed", "3"], "E_PARAM"),
        (["reproduce", "--kappa", "few"], "E_PARAM"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(run, world, tmp_path, monkeypatch, words, code):
    bad_files(world)
    monkeypatch.chdir(world)
    out = tmp_path / "out"
    status, said, err = run(*words, "-o", out)

    assert (status, said) == (2, "")
    lines = [line for line in err.splitlines() if not line.startswith("warning:")]
    assert len(lines) == 1, err
    assert lines[0].startswith(f"{code}: "), err
    assert "CANARY" not in err
    assert "fake0" not in err
    assert not out.exists()


def bad_files(folder):
    if (folder / "folder").exists():
        return
    header, *body = (folder / "fakes.csv").read_text().splitlines()
    (folder / "empty.csv").write_text("")
    (folder / "names_only.csv").write_text(header + "\n")
    lat = header.split(",").index("lat")
    rows = [line.split(",") for line in body]
    away = [",".join([*row[:lat], str(float(row[lat]) - 20), *row[lat + 1 :]]) for row in rows]
    (folder / "far.csv").write_text("\n".join([header, *away]) + "\n")
    for name, most, L in (("numbers.csv", 5, 72), ("larger.csv", 9, 72), ("short.csv", 5, 24)):
        cells = [f"u{u},{t},{(u + t) % most}" for u in range(6) for t in range(L)]
        (folder / name).write_text("\n".join(["uid,slot,loc", *cells]) + "\n")
    links = (folder / "links.csv").read_text().splitlines()
    (folder / "half.csv").write_text("\n".join(links[:20]) + "\n")
    (folder / "strangers.csv").write_text("\n".join([links[0], *(x.replace("CANARY", "NOBODY") for x in links[1:])]))
    other = links[2].replace(links[2].split(",")[0], links[1].split(",")[0])
    (folder / "twice.csv").write_text("\n".join([*links, other]) + "\n")
    (folder / "folder").mkdir()


def test_a_folder_that_holds_something_is_refused_before_any_work(run, world, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    for words in (["evaluate"], ["audit"]):
        args = [*words, "--real", world / "real.csv", "--fakes", world / "fakes.csv"]
        status, _, err = run(*args, "-o", tmp_path)
        assert (status, err[:8]) == (2, "E_OUTPUT")
    for words in (["lbs"], ["reproduce"]):
        assert run(*words, "-o", tmp_path)[0] == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.txt"]


@pytest.mark.usefixtures("few_attacks")
def test_synthesize_keeps_what_is_private_out_of_the_folder_to_publish(run, world, tmp_path):
    out, mine = tmp_path / "out", tmp_path / "out-private"
    status, said, _ = run("synthesize", world / "real.csv", "-o", out, *SMALL, "--json")
    told = json.loads(said)

    assert status == 0
    assert set(told["files"]) == {p.name for p in out.iterdir()}
    kept = {"links.csv", "judgement.json", "report.html"}
    assert set(told["private_files"]) == {p.name for p in mine.iterdir()} == kept
    public = b"".join(p.read_bytes() for p in out.iterdir())
    assert b"CANARY" not in public
    assert b"CANARY" in (mine / "links.csv").read_bytes()
    assert all(p.stat().st_mode & 0o077 == 0 for p in mine.iterdir())
    assert "control" in " ".join(told["judgement"]["notes"])
    assert told["uses"]["dwell"]["verdict"] in ("good", "rough", "not for this")
    assert told["publish"]["level"] in ("no", "care", "yes")
    # the links lead back to the seeds, and to nobody else
    real = ew.read_traces(world / "real.csv")
    pool = ew.Pool.load(out)
    index = read_links(mine / "links.csv", pool.traces, real)
    assert len(set(index.tolist())) == len(pool)
    assert np.all(pool.to_map(real.locations).r != real.r[index])
    # a file of the fakes is as good as the folder
    words = ["evaluate", "--real", world / "real.csv", "--links", mine / "links.csv", "--json", "--fakes"]
    (tmp_path / "mail").mkdir()
    sent = [shutil.copy(out / name, tmp_path / "mail") for name in ("fakes.csv", "fakes.parquet")]
    figures = [run(*words, path)[1] for path in (out, out / "pool.parquet", out / "fakes.csv", *sent)]
    assert json.loads(figures[0])["sizes"]["fakes"] == len(pool)
    assert len(set(figures)) == 1
    # and the audit of the folder, with those links, sees who was a seed
    status, said, _ = run(
        "audit",
        "--real",
        world / "real.csv",
        "--fakes",
        out,
        "--links",
        mine / "links.csv",
        "--attacks",
        "A1",
        "--json",
    )
    assert (status, json.loads(said)["attacks"]["A1"]["own_shared"]["value"]) == (0, 0.0)


@pytest.mark.usefixtures("few_attacks")
@pytest.mark.filterwarnings("always:.* is not of this run")
def test_no_report_and_hold_out(run, world, tmp_path):
    out = tmp_path / "out"
    assert run("synthesize", world / "real.csv", "-o", out, *SMALL, "--no-report")[0] == 0
    # without the links nobody could ever audit these fakes
    assert sorted(p.name for p in (tmp_path / "out-private").iterdir()) == ["links.csv"]
    real, pool = ew.read_traces(world / "real.csv"), ew.Pool.load(out)
    index = read_links(tmp_path / "out-private" / "links.csv", pool.traces, real)
    assert np.all(pool.to_map(real.locations).r != real.r[index])
    assert not (out / "report.html").exists()
    # a report on other fakes does not stay beside these; what is somebody's own does
    mine = tmp_path / "out-private"
    (mine / "judgement.json").write_text(json.dumps({"uses": {}, "publishing": {}, "audit": {}, "notes": []}))
    (mine / "report.html").write_text('<p><span class="edition private">')
    assert {"judgement.json", "report.html"} <= earlier_results(mine)
    (mine / "judgement.json").write_text("my own")
    assert run("synthesize", world / "real.csv", "-o", out, *SMALL, "--no-report", "--force")[0] == 0
    assert sorted(p.name for p in mine.iterdir()) == ["judgement.json", "links.csv"]
    status, _, err = run("synthesize", world / "real.csv", "-o", tmp_path / "a", "--private", tmp_path / "a" / "b")
    assert (status, err[:8]) == (2, "E_OUTPUT")
    assert not (tmp_path / "a").exists()
    status, said, _ = run("synthesize", world / "real.csv", "-o", tmp_path / "c", *SMALL, "--holdout", "0.2", "--json")
    notes = json.loads(said)["judgement"]["notes"]
    assert status == 0
    # a coin for each of the 60 people: 1 to 35 of them are set aside but for one run in 100,000
    (aside,) = (int(note.split()[1]) for note in notes if "people set aside before" in note)
    assert 1 <= aside <= 35


def test_the_private_folder_of_generate_knows_its_seeds(run, world, tmp_path):
    model, made = tmp_path / "model", tmp_path / "made"
    assert run("fit", world / "real.csv", "-o", model, *SMALL)[0] == 0
    assert run("generate", world / "real.csv", "--model", model, "-o", made, *SMALL)[0] == 0
    words = ["audit", "--real", world / "real.csv", "--fakes", made, "--model", model, "--attacks", "A1,A13", "--json"]
    status, said, _ = run(*words)
    found = json.loads(said)

    assert status == 0
    assert found["attacks"]["A1"]["own_shared"]["value"] == 0.0  # with the wrong seeds some fake would share a place
    assert found["sizes"]["seed_users"] + found["sizes"]["holdout_users"] == 60
    assert any("0 of the" in note and "contributed to the model" in note for note in found["notes"])
    # neither the classes (A5) nor fakes that were never published (E59) may stand in a report to share
    out = tmp_path / "audit"
    assert run(*words, "-o", out)[0] == 0
    page = (out / "report.html").read_text()
    assert "Places by class" not in page
    assert "days-data" not in page
    assert run("audit", "--real", world / "real.csv", "--fakes", world / "fakes.csv", "--attacks", "A13",
               "-o", tmp_path / "other")[0] == 0  # fmt: skip
    assert "days-data" in (tmp_path / "other" / "report.html").read_text()


def test_lbs_hides_users_behind_fakes(run, world, tmp_path):
    files = {}
    for role, name in (("--real", "real"), ("--test", "second"), ("--fakes", "fakes"), ("--links", "links")):
        head, *rows = (world / f"{name}.csv").read_text().splitlines(keepends=True)
        files[role] = tmp_path / f"{name}.csv"  # of the first twenty people, by the number in their names
        files[role].write_text(head + "".join(row for row in rows if int(re.search(r"\d+", row)[0]) < 20))
    words = [word for role in ("--real", "--test", "--fakes") for word in (role, files[role])]
    status, said, _ = run("lbs", *words, "--links", files["--links"], "--n-fakes", "1", "--json", "-o", tmp_path / "o")
    found = json.loads(said)

    assert status == 0
    assert set(found["generators"]) == {
        "uniform IID", "aggregate IID", "walk on aggregate", "walk on user", "elsewhere"
    }  # fmt: skip
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == ["lbs.json", "lbs.png", "report.html"]
    assert found["over_days"] == {}  # two days are no watch
    assert "CANARY" not in said
    assert not any("descent" in note for note in found["notes"])  # the links tell whose fakes are whose
    unknown = json.loads(run("lbs", *words, "--n-fakes", "1", "--json")[1])
    assert any("descent" in note for note in unknown["notes"])


def test_lbs_watches_for_many_days(run, tmp_path):
    town = ew.simulate_town(users=40, days=8, locations=60, rng=np.random.default_rng(5)).traces
    names = np.array([f"CANARY-{u:02}" for u in range(40)])[town.user]
    whole = ew.Traces(town.r, town.locations, users=names, dates=town.dates, tz=town.tz)
    ew.write_traces(whole.of_users(range(20)), tmp_path / "real.csv")
    ew.write_traces(whole.of_users(range(20, 40)), tmp_path / "lives.csv")
    words = ["lbs", "--real", tmp_path / "real.csv", "--fakes", tmp_path / "lives.csv", "--n-fakes", "4", "--seed", "1"]
    status, said, _ = run(*words, "-o", tmp_path / "out")
    written = (tmp_path / "out" / "lbs.json").read_text()
    told = json.loads(written)["over_days"]["4"]

    assert status == 0
    assert told["users"] == {"1": 20, "7": 20}
    assert told["found"]["persona"]["home"]["7"]["value"] < 0.6 < told["found"]["fresh"]["home"]["7"]["value"]
    assert told["persona_days"] == 8  # the rows of one id are one life
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Found behind 4 decoys" in page
    assert "CANARY" not in page + said + written
    assert told["in_words"] in said


def test_help_stays_light_and_has_an_example():
    code = (
        "import sys; from elsewhere.cli import app\n"
        "try: app([sys.argv[1], '--help'])\nexcept SystemExit: pass\n"
        "sys.exit(bool({'numpy', 'numba', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    for command in ("evaluate", "audit", "lbs", "reproduce"):
        done = subprocess.run([sys.executable, "-c", code, command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert f"Example: elsewhere {command}" in " ".join(done.stdout.split())


# sources on one map


def test_coordinates_go_where_the_real_ones_went(tmp_path):
    rng = np.random.default_rng(6)
    lat, lon = 46.5 + rng.random(400) * 0.02, 6.6 + rng.random(400) * 0.02
    for name, order in (("a.csv", np.arange(400)), ("b.csv", rng.permutation(400))):
        with (tmp_path / name).open("w") as file:
            writer = csv.writer(file)
            writer.writerow(["uid", "slot", "lat", "lng"])
            # the same point at the same user and slot, in another order of lines
            writer.writerows([f"u{i // 40}", i % 40, lat[i], lon[i]] for i in order)
    found, notes = read_together({"real": tmp_path / "a.csv", "fakes": tmp_path / "b.csv"}, cells=None)

    assert [note for note in notes if "no `step` given" not in note] == []
    assert np.array_equal(found["real"].r, found["fakes"].r)
    # merged cells: every point goes where the real one went, and what is written at a place comes back to that place
    merged, _ = read_together({"real": tmp_path / "a.csv", "fakes": tmp_path / "b.csv"}, cells=50)
    assert merged["real"].R <= 50
    assert np.array_equal(merged["real"].r, merged["fakes"].r)
    columns = {"user": "uid", "slot": "slot", "lat": "lat", "lon": "lng"}
    ew.write_traces(merged["real"], tmp_path / "c.csv", columns=columns)
    again, _ = read_together({"real": tmp_path / "a.csv", "fakes": tmp_path / "c.csv"}, cells=50)
    assert np.array_equal(again["real"].r, again["fakes"].r)


def test_places_without_coordinates_keep_their_numbers_or_names():
    town = ew.Traces([[0, 1, 2]], ew.Locations(n=3))
    assert match_map(ew.Traces([[2, 1, 0]], ew.Locations(n=9)), town)[0].r.tolist() == [[2, 1, 0]]
    found, notes = match_map(ew.Traces([[2, 1, 5]], ew.Locations(n=6)), town)
    assert (found.R, found.r.tolist()) == (6, [[2, 1, 5]])
    assert "3 places that no real day visits" in notes[0]
    named = ew.Traces([[0, 1, 2]], ew.Locations(n=3, names=["home", "work", "bar"]))
    other = ew.Traces([[0, 2, 1]], ew.Locations(n=3, names=["bar", "gym", "home"]))
    found, notes = match_map(other, named)
    assert (found.r.tolist(), found.locations.names) == ([[2, 0, 3]], ("home", "work", "bar", "gym"))
    assert "1 place that no real day visits" in notes[0]
    with pytest.raises(ew.errors.InvalidTraces, match="`locations`"):  # numbers that may mean anything
        match_map(ew.Traces([[0, 1, 1]], ew.Locations(n=4)), town, numbered=False)


def test_links_choose_the_day_of_the_seed(tmp_path):
    real = ew.Traces(
        [[0], [1], [1]],
        ew.Locations(n=2),
        users=["a", "a", "b"],
        dates=["2020-01-01", "2020-01-02", "2020-01-01"],
    )
    fakes = ew.Traces([[1], [0]], ew.Locations(n=2), users=["x", "y"])
    (tmp_path / "l.csv").write_bytes(links_file(fakes, real, np.array([1, 2])))
    assert read_links(tmp_path / "l.csv", fakes, real).tolist() == [1, 2]
    with pytest.raises(ew.errors.InvalidTraces, match="several days"):
        read_links({"fake": ["x", "y"], "seed": ["a", "b"]}, fakes, real)
    # a life whose days carry dates of its seed's needs no other
    life = ew.Traces([[1], [0]], ew.Locations(n=2), users=["x", "x"], dates=["2020-01-02", "2020-01-01"])
    assert read_links({"fake": ["x"], "seed": ["a"]}, life, real).tolist() == [1, 0]
    other = ew.Traces([[1], [0]], ew.Locations(n=2), users=["a", "a"], dates=["2020-01-02", "2020-01-03"])
    with pytest.raises(ew.errors.InvalidTraces, match="several days, and no date, for 1 fakes"):
        read_links("same", other, real)


@pytest.mark.parametrize("dates", [None, ["2020-01-01"] * 4 + ["2020-01-02"]])
def test_links_tell_rows_that_no_date_tells(tmp_path, dates):
    real = ew.Traces([[0, 1], [1, -1], [1, 1], [1, 0], [0, 0]], ew.Locations(n=2), users=list("aabab"), dates=dates)
    whole = real.select(np.array([0, 2, 3, 4]))  # what `synthesize` made fakes of
    fakes = ew.Traces([[0, 1]] * 4, ew.Locations(n=2), users=list("wxyz"))
    (tmp_path / "links.csv").write_bytes(links_file(fakes, whole, np.array([2, 0, 3, 1])))

    assert read_links(tmp_path / "links.csv", fakes, real).tolist() == [3, 0, 4, 2]


@pytest.mark.parametrize("width", [50, 60, 70, 80, 120])
def test_the_table_of_attacks_cuts_no_word(width):
    row = {"main": 0.0123, "interval": Rate(0.0123, 0.0011, 0.0425), "control": 0.0772, "baseline": 0.0909, "bar": 0.01}
    findings = tuple(Finding(a, about.title, **row, passed=False) for a, about in ATTACKS.items())
    sizes = dict.fromkeys(("fakes", "seed_users", "holdout_users", "places", "slots"), 9)
    sink = io.StringIO()
    for shown in audit_tables(AuditResult(findings, sizes), width):
        Console(file=sink, width=width).print(shown)
    said = sink.getvalue()

    assert "…" not in said
    asked = [QUESTIONS[a].words if width >= 110 else QUESTIONS[a].short for a in ATTACKS]
    assert [w for question in asked for w in question.split() if w not in said.split()] == []
    left_out = [name for name, text in (("95 %", "0.1 to 4.2"), ("strangers", "7.7 %")) if text not in said]
    assert ("a wider terminal" in said) is bool(left_out or width < 88)
    assert left_out == [] or width < 76
    said = " ".join(said.split())
    counts = [len(set(ATTACKS) - set(ON_DECOYS)), len(ON_DECOYS)]
    assert [int(n) for n in re.findall(r"(\d+) are above their bar, but not clearly above chance", said)] == counts


def test_the_last_sentence_of_an_audit_counts_every_attack_once():
    above, below = Rate(0.3, 0.2, 0.4), Rate(0.02, 0.0, 0.03)
    findings = (
        Finding("A2", main=0.3, interval=above, baseline=0.1, bar=0.05, passed=False),
        Finding("A5", main=0.3, interval=above, baseline=0.1, bar=0.5, passed=True),
        Finding("A4", main=0.02, interval=below, baseline=0.01, bar=0.05, passed=True),
        Finding("A6", main=0.02, interval=Rate(0.02, 0.0, 0.3), baseline=0.01, bar=0.05, passed=None),
        Finding("A3", interval=Rate(0.12, -0.04, 0.24), baseline=0.0, bar=0.02, passed=True, leaks=False),
        Finding("A9", status="not run", needs="`sampler`"),
    )
    result = AuditResult(findings, dict.fromkeys(("fakes", "seed_users", "holdout_users", "places", "slots"), 9))

    assert result.in_words() == (
        "of 6 attacks, 2 learnt something (A2; within its bar: A5); 1 learnt nothing measurable; 1 is above its bar, "
        "but not clearly above chance (A3); for 1 there are too few people to say whether the bar is kept (A6); 1 was "
        "not run."
    )
    said = [line for line in audit_tables(result, 80) if isinstance(line, str)]
    assert said[-1] == result.in_words()
    assert "not run without the noisy sums, which only `synthesize --preset private` holds: A9" in said
    assert AuditResult(findings[2:3], {}).in_words() == "of 1 attack, none learnt anything measurable."


def test_a_verdict_and_its_interval_agree(run, world):
    words = ["--real", world / "real.csv", "--fakes", world / "fakes.csv", "--links", world / "links.csv", "--json"]
    found = json.loads(run("audit", *words)[1])

    ran = {a: f for a, f in found["attacks"].items() if f["status"] == "run"}
    assert len(ran) >= 12
    for attack, f in ran.items():
        low = f["main"] if f["interval"] is None else f["interval"][0]
        chance = max(f["baseline"] or 0, (f["null_interval"] or [0, 0])[1])
        if f["interval"] is not None and attack != "A10":  # A10 may speak of its early alarms instead
            assert not f["outcome"].startswith("learnt something") or low > chance, attack
        assert f["interval"] is None or f["interval"][0] <= f["main"] <= f["interval"][1]
        unit = {
            "points": f"{100 * f['main']:+.1f} points",
            "AUC": f"{f['main']:.3f}",
            "places": f"{f['main']:.0f} places",
        }
        if attack != "A20":  # bits, said only where there are any
            assert unit.get(QUESTIONS[attack].unit, f"{100 * f['main']:.1f} %") in f["words"], attack
        assert all(float(x.replace(",", "")) <= 100 for x in re.findall(r"([0-9.,]+) %", f["words"]))
        assert f["worst_decile"] is None or f["worst_decile"] <= 1 or attack == "A13"


def test_audit_needs_nothing_but_real_and_fakes(run, world):
    status, said, err = run("audit", "--real", world / "real.csv", "--fakes", world / "fakes.csv", "--json")
    found = json.loads(said)

    assert (status, err) == (0, "")
    assert [a for a, f in found["attacks"].items() if f["status"] == "run"] == ["A13", "A15", "A16"]
    said = run("audit", "--real", world / "real.csv", "--fakes", world / "fakes.csv")[1].splitlines()
    missing = [line for line in said if line.startswith("not run without")]
    assert [line.split()[3] for line in missing] == ["--links", "--holdout", "--model", "the"]
    others = len(set(ATTACKS) - set(ON_DECOYS) - {"A13"})
    counts = f"{others} were not run. Of {len(ON_DECOYS)} on decoys, "
    assert counts in said[-2]
    assert said[-2].endswith(f"; {len(ON_DECOYS) - 2} were not run.")
    assert said[-1].startswith("Do not publish openly. ")
    # fakes that carry the ids of real people: the option is named
    same = run("audit", "--real", world / "real.csv", "--fakes", world / "second.csv", "--attacks", "A13")[1]
    assert "add --links same" in same


def test_audit_of_real_days_says_first_that_nobody_is_protected_and_last_not_to_publish(run, world, tmp_path):
    real = world / "real.csv"
    said = run("audit", "--real", real, "--fakes", real)[1].splitlines()
    assert "nobody is protected" in said[0]
    assert said[-1].startswith("Do not publish openly. ")
    assert "1 learnt something (A1" in said[-2] or "learnt something (A1, " in said[-2]

    # one day of five among the fakes is real
    lines, made = (p.read_text().splitlines(keepends=True) for p in (real, world / "fakes.csv"))
    kept = [line for line in lines[1:] if "CANARY-0" in line]
    mixed = tmp_path / "mixed.csv"
    mixed.write_text("".join(made + [line.replace("CANARY", "x") for line in kept]))
    found = json.loads(run("audit", "--real", real, "--fakes", mixed, "--attacks", "A1", "--json")[1])
    assert found["attacks"]["A1"]["verbatim"] == 9  # one of ten stays at home
    # one figure: the headline is what A1 says
    assert found["in_words"].startswith(found["attacks"]["A1"]["words"] + " These people are not protected.")
    assert found["attacks"]["A1"]["words"].startswith("18.0 % of the fakes equal somebody's real day")


def test_copies_by_chance_stand_in_the_row_of_a1_and_in_no_headline(run, world, tmp_path):
    # strangers have the same days: nobody is told by an equal one
    real, made = world / "real.csv", (world / "fakes.csv").read_text().splitlines(keepends=True)
    people = real.read_text().splitlines(keepends=True)
    copy = [line.replace("CANARY", "x") for line in people[1:] if "CANARY-0" in line]
    (tmp_path / "mixed.csv").write_text("".join(made + copy))
    (tmp_path / "strangers.csv").write_text("".join([people[0], *(line.replace("x-", "y-") for line in copy)]))
    ids = {line.split(",")[0] for line in [*made[1:], *copy]}
    who = sorted({line.split(",")[0] for line in people[1:]})
    pairs = [f"{fake},{fake.replace('x', 'CANARY') if fake.startswith('x') else who[0]}\n" for fake in sorted(ids)]
    (tmp_path / "links.csv").write_text("fake,seed\n" + "".join(pairs))
    asked = ["--links", tmp_path / "links.csv", "--holdout", tmp_path / "strangers.csv", "--attacks", "A1", "--json"]
    status, said, err = run("audit", "--real", real, "--fakes", tmp_path / "mixed.csv", *asked)
    assert status == 0, err
    found = json.loads(said)
    a1 = found["attacks"]["A1"]
    assert a1["verbatim"] > 0
    assert "equal somebody's day, slot by slot (of strangers' days: " in a1["words"]
    assert a1["how"] != "whole day"
    assert "not protected" not in found["in_words"]


def test_days_that_two_people_have_in_common_are_no_copies():
    rng = np.random.default_rng(1)
    few = rng.integers(2, size=(60, 3))  # 8 days, which everybody's fakes meet
    assert ew.audit(few, None, rng.integers(2, size=(60, 3)), None, attacks=["A1"], rng=rng)["A1"].status == "not run"
