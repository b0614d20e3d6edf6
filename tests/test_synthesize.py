"""`ew.synthesize`: the whole job, from a file to two folders that are whole or not there."""

import importlib
import json
import stat

import numpy as np
import pandas as pd
import pytest

import elsewhere as ew
from elsewhere.cli import output

pytestmark = pytest.mark.filterwarnings("ignore:`alternates=")
JOB = importlib.import_module("elsewhere.run.synthesize")  # the file, not the function in it
POOL = ("fakes.csv", "fakes.parquet", "pool.parquet", "places.parquet", "manifest.json")
LAB = {"laboratory": True, "report": False}
BOX = "45.85,-12.15,46.15,-11.85,64"  # a map about the simulated town


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    visits = ew.simulate_town(users=60, days=3, locations=60, rng=np.random.default_rng(3)).visits
    path = tmp_path_factory.mktemp("town") / "people.csv"
    ew.write_visits(visits.replace(users=[f"CANARY-{u}" for u in range(visits.U)]), path)
    return path


def lab(seed=7):
    return np.random.default_rng(seed)


def holds(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def judged(town, tmp_path_factory):
    """A run with everything: two days are enough for its judges."""
    stages = []
    folder = tmp_path_factory.mktemp("judged")
    made = ew.synthesize(
        str(town),
        str(folder / "out"),
        also=["geojson"],
        holdout=0.2,
        rng=lab(),
        laboratory=True,
        progress=lambda *now: stages.append(now),
    )
    return made, stages


def test_two_folders_hold_what_the_result_says(judged):
    made, stages = judged
    assert sorted(p.name for p in made.out.parent.iterdir()) == ["out", "out-private"]
    assert {p.name for p in made.out.iterdir()} == set(made.files) == {*POOL, "fakes.geojson", "report.html"}
    assert {p.name for p in made.private.iterdir()} == set(made.private_files)
    assert set(made.private_files) == {"links.csv", "report.html", "judgement.json"}
    for folder in (made.out, made.private):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()} == {0o600}
    assert len({p.stat().st_mtime_ns for p in made.out.iterdir()}) == 1  # how long fakes took is not told
    assert list(dict.fromkeys(stage for stage, *_ in stages)) == list(JOB.STAGES)
    assert all(0 <= done <= total for _, done, total in stages if total)
    lines = output.summary(made)
    assert len(lines) <= 10
    assert lines[-1].endswith(str(made.private / "report.html"))
    assert "CANARY" not in "".join(lines)


def test_nobody_real_is_in_what_is_published(judged):
    made, _ = judged
    assert b"CANARY" not in b"".join(p.read_bytes() for p in made.out.iterdir())
    links = pd.read_csv(made.private / "links.csv")
    assert links["fake"].tolist() == list(made.pool.ids)
    assert links["seed"].str.startswith("CANARY-").all()
    assert links["seed"].is_unique
    manifest = json.loads((made.out / "manifest.json").read_text())
    assert set(manifest["files"]) == set(made.files) - {"manifest.json"}
    assert manifest["provenance"]["reproducible"] is True


def test_its_parts_are_what_was_written(judged):
    made, _ = judged
    there = ew.Pool.load(made.out).visits
    assert set(there.users) == set(made.pool.ids)
    assert len(there) == len(made.pool.visits)
    assert made.judgement.to_dict() == json.loads((made.private / "judgement.json").read_text())
    assert made.judgement.usefulness is not None
    assert made.judgement.audit is not None
    sizes = made.judgement.run["sizes"]
    # those set aside are strangers, and met neither the laws nor the test
    assert sizes["people"] + sizes["strangers"] == 60
    assert sizes["people"] == made.to_dict()["people"] < 60
    assert made.fakes.certificate.to_dict() == json.loads((made.out / "manifest.json").read_text())["certificate"]
    told = made.to_dict()
    told["notes"].append("mine")  # a copy, the caller's own
    assert "mine" not in made.to_dict()["notes"]


def test_fakes_come_in_the_columns_of_the_input(town, judged):
    made, _ = judged
    assert (made.out / "fakes.csv").read_text().splitlines()[0] == town.read_text().splitlines()[0]


def test_a_table_is_as_good_as_a_file_and_without_a_report_nobody_judges(town, tmp_path, monkeypatch):
    monkeypatch.setattr(JOB, "judge_run", None)
    made = ew.synthesize(pd.read_csv(town), tmp_path / "out", report=False)
    assert made.judgement is None
    assert made.files == POOL
    assert {p.name for p in tmp_path.iterdir()} == {"out", "out-private"}
    assert made.private_files == ("links.csv",)
    assert not json.loads((tmp_path / "out" / "manifest.json").read_text())["provenance"]["reproducible"]


def test_the_command_writes_the_same_bytes_for_any_number_of_workers(run, town, tmp_path):
    for name, workers in (("typed", 1), ("typed3", 3)):
        words = ["--seed", "7", "--i-know", "--no-report", "-k", "4", "--workers", workers]
        status, _, err = run("synthesize", town, "-o", tmp_path / name / "out", *words)
        assert status == 0, err
    ew.synthesize(town, tmp_path / "called" / "out", rng=lab(), k=4, **LAB)
    assert holds(tmp_path / "typed") == holds(tmp_path / "typed3") == holds(tmp_path / "called")


def test_the_papers_method_on_visits(town, tmp_path):
    made = ew.synthesize(town, tmp_path / "out", method="paper", kappa=6, rng=lab(), **LAB)
    assert made.fakes.method == "paper"
    assert np.bincount(made.fakes.seed_of_life[made.fakes.published]).max() == 1
    assert made.to_dict()["certificate"]["protects"] == "nobody"


@pytest.mark.usefixtures("few_rounds")
def test_certified_fakes_have_no_links_and_no_report_to_share(tmp_path, monkeypatch):
    monkeypatch.setattr("elsewhere.synthesis.certified.people_needed", lambda *_: 1)
    visits = ew.simulate_town(users=120, locations=40, rng=np.random.default_rng(3)).visits
    ew.write_visits(visits, tmp_path / "people.csv")
    made = ew.synthesize(tmp_path / "people.csv", tmp_path / "out", eps=8.0, delta=1e-3, grid=BOX, n=30, report=False)
    told = made.to_dict()
    assert (told["method"], told["fakes"], told["certificate"]["eps"]) == ("certified", 30, 8.0)
    assert "seeds" not in told
    assert made.fakes.certificate.holds
    assert made.private_files == ()
    assert json.loads((made.out / "manifest.json").read_text())["provenance"]["reading"] == {}


REFUSED = [
    ({"holdout": 0.9}, ["--holdout", "0.9"], "E_PARAM"),
    ({"per_seed": 0}, ["--per-seed", "0"], "E_PARAM"),
    ({"workers": 0}, ["--workers", "0"], "E_PARAM"),
    ({"n": 0}, ["-n", "0"], "E_PARAM"),
    ({"kappa": "many"}, ["--kappa", "many"], "E_PARAM"),
    ({"method": "x"}, ["--method", "x"], "E_PARAM"),
    ({"eps": 0}, ["--eps", "0"], "E_PARAM"),
    ({"delta": 1e-3}, ["--delta", "1e-3"], "E_NOT_READ"),
    ({"days": 3}, ["--days", "3"], "E_NOT_READ"),
    ({"par_c": 0.3}, ["--par-c", ".3"], "E_NOT_READ"),
    ({"nonsense": 1}, None, "E_PARAM"),
    ({"also": "pdf"}, ["--also", "pdf"], "E_PARAM"),
    ({"grid": "1,2"}, ["--grid", "1,2"], "E_PARAM"),
    ({"k": 60}, ["-k", "60"], "E_TOO_FEW"),
    ({"eps": 4.0}, ["--eps", "4"], "E_MAP"),
    ({"rng": 7}, None, "E_PARAM"),
    ({"rng": np.random.default_rng(1)}, ["--seed", "1"], "E_LABORATORY"),
]


@pytest.mark.parametrize(("given", "typed", "code"), REFUSED, ids=lambda given: str(given)[:30])
def test_it_refuses_what_the_command_refuses_and_leaves_nothing(run, town, tmp_path, given, typed, code):
    with pytest.raises(ew.ElsewhereError) as refused:
        ew.synthesize(town, tmp_path / "out", **given)
    parameter = {"E_MAP": "grid", "E_LABORATORY": "laboratory"}.get(code, next(iter(given)))
    assert (refused.value.code, refused.value.parameter) == (code, parameter)
    if typed is not None:
        status, said, _ = run("synthesize", town, "-o", tmp_path / "out", *typed, "--json")
        error = json.loads(said)["error"]
        assert (status, error["code"], error["parameter"]) == (2, code, parameter)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("given", "near"), [("celsl", "cells"), ("par_ss", "par_s"), ("holdut", "holdout")])
def test_a_mistyped_keyword_is_told_the_nearest(tmp_path, given, near):
    with pytest.raises(ew.errors.InvalidParameter, match=f"`{near}`") as refused:
        ew.synthesize("nowhere.csv", tmp_path / "out", **{given: 3})
    assert (refused.value.code, refused.value.parameter) == ("E_PARAM", given)


def test_folders_that_hold_something_are_refused_before_any_work(town, tmp_path):
    for name, taken in (("one", "one"), ("two", "two-private"), ("three", "three-unfinished")):
        (tmp_path / taken).mkdir()
        (tmp_path / taken / "mine.txt").write_text("mine")
        with pytest.raises(ew.errors.OutputRefused):
            ew.synthesize(town, tmp_path / name)
    assert set(holds(tmp_path)) == {f"{name}/mine.txt" for name in ("one", "two-private", "three-unfinished")}


def test_with_force_nothing_of_an_earlier_run_stays_beside_the_fakes(town, tmp_path):
    out = tmp_path / "out"
    ew.synthesize(town, out, also=["geojson", "gpx"], rng=lab(), **LAB)
    ew.synthesize(town, tmp_path / "other", rng=lab(8), **LAB)
    before = holds(out)
    with pytest.warns(UserWarning, match="is now in"):
        ew.synthesize(town, out, force=True, rng=lab(8), **LAB)
    assert holds(out) == holds(tmp_path / "other")  # a second fake of every seed would stand there (E59)
    (aside,) = tmp_path.glob("out.replaced-*")
    assert holds(aside) == before


@pytest.mark.parametrize("stage", ["publish_with_links", "links_file", "write_visits", "write_pool"])
def test_a_fault_leaves_no_folder_and_the_old_one_as_it_was(town, tmp_path, monkeypatch, stage):
    def fail(*_given, **_named):
        raise RuntimeError("a fault")

    monkeypatch.setattr(JOB, stage, fail)
    old = tmp_path / "old"
    old.mkdir()
    (old / "fakes.csv").write_text("old")
    for out, force in ((tmp_path / "new", False), (old, True)):
        with pytest.raises(RuntimeError):
            ew.synthesize(town, out, force=force, rng=lab(), **LAB)
    assert {name for name in holds(tmp_path) if "unfinished" not in name} == {"old/fakes.csv"}
