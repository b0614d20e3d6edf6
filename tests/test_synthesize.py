"""`ew.synthesize`: the whole job without the command line, which only calls it."""

import importlib
import inspect
import json

import numpy as np
import pandas as pd
import pytest

import elsewhere as ew
from elsewhere.settings import Job, Reading
from elsewhere.traces.read import ReadingOptions

pytestmark = [pytest.mark.filterwarnings("ignore:.* classes instead of"), pytest.mark.usefixtures("few_draws")]

JOB = importlib.import_module("elsewhere.run.synthesize")  # the file, not the function in it
SMALL = {"kappa": 6, "m_min": 2, "k": 3, "c_min": 1, "class_draws": 1}
TYPED = ["--kappa", "6", "--set", "m_min=2", "-k", "3", "--set", "c_min=1", "--set", "class_draws=1"]
POOL = {"fakes.csv", "fakes.parquet", "pool.parquet", "places.parquet", "manifest.json"}


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    path = tmp_path_factory.mktemp("town") / "traces.csv"
    ew.write_traces(ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces, path)
    return path


def holds(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.usefixtures("few_attacks")
def test_it_writes_what_the_command_writes_and_says_what_the_command_says(run, town, tmp_path):
    typed = [*TYPED, "--holdout", ".2", "--also", "geojson", "--seed", "7", "--i-know", "--step", "30min", "--json"]
    status, said, err = run("synthesize", town, "-o", tmp_path / "typed" / "fakes", *typed)
    assert status == 0, err
    stages = []
    made = ew.synthesize(
        str(town),
        str(tmp_path / "called" / "fakes"),
        **SMALL,
        holdout=0.2,
        also="geojson",
        rng=np.random.default_rng(7),
        laboratory=True,
        step="30min",
        progress=lambda *now: stages.append(now),
    )

    one, other = holds(tmp_path / "typed"), holds(tmp_path / "called")
    assert one == other
    assert {name.split("/")[0] for name in one} == {"fakes", "fakes-private"}
    assert made.to_dict() == json.loads(said)
    assert [made.to_dict()[name] for name in ("files", "private_files")] == [[*made.files], [*made.private_files]]
    assert any("people set aside before anything was learnt" in note for note in made.judgement.notes)
    # and its parts are what was written
    assert {f"fakes/{name}" for name in made.files} | {f"fakes-private/{name}" for name in made.private_files} == set(
        one
    )
    assert made.out / "fakes.csv" in made.out.iterdir()
    assert made.private / "links.csv" in made.private.iterdir()
    assert np.array_equal(ew.Pool.load(made.out).traces.r, made.pool.traces.r)
    assert made.judgement.to_dict() == json.loads((made.private / "judgement.json").read_text())
    assert made.judgement.to_dict()["audit"] is not None
    assert made.certificate.to_dict() == json.loads((made.out / "manifest.json").read_text())["certificate"]
    assert made.notes == tuple(made.to_dict()["notes"])
    assert isinstance(made.fakes, ew.Fakes)
    assert list(dict.fromkeys(stage for stage, *_ in stages)) == list(JOB.STAGES)
    assert all(0 <= done <= total for _, done, total in stages)


def test_a_table_is_as_good_as_a_file_and_without_a_report_nobody_judges(town, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JOB, "judge_run", None)
        made = ew.synthesize(pd.read_csv(town), tmp_path / "out", **SMALL, report=False, private=tmp_path / "mine")
    assert made.judgement is None
    assert set(made.files) == POOL == {p.name for p in (tmp_path / "out").iterdir()}
    assert {p.name for p in tmp_path.iterdir()} == {"out", "mine"}
    assert made.private == tmp_path / "mine"
    assert (tmp_path / "out" / "fakes.csv").read_text().splitlines()[0] == town.read_text().splitlines()[0]
    # what was told is the caller's own
    told = made.to_dict()
    assert told["private"]["enough"] is False
    told["notes"].append("mine")
    told["read"]["users"] = -1
    assert made.to_dict()["read"]["users"] == 60
    assert "mine" not in made.to_dict()["notes"]


REFUSED = [
    ({"rng": 7}, None, "E_PARAM"),
    ({"holdout": 0.9}, ["--holdout", "0.9"], "E_PARAM"),
    ({"per_seed": 0}, ["--per-seed", "0"], "E_PARAM"),
    ({"workers": 0}, ["--workers", "0"], "E_PARAM"),
    ({"n": 0}, ["-n", "0"], "E_PARAM"),
    ({"kappa": 1}, ["--kappa", "1"], "E_PARAM"),
    ({"kappa": "many"}, ["--kappa", "many"], "E_PARAM"),
    ({"preset": "x"}, ["--preset", "x"], "E_PARAM"),
    ({"eps": 0, "preset": "private"}, ["--eps", "0", "--preset", "private"], "E_PARAM"),
    ({"eps": 4.0}, ["--eps", "4"], "E_NOT_READ"),
    ({"nonsense": 1}, ["--set", "nonsense=1"], "E_PARAM"),
    ({"also": "pdf"}, ["--also", "pdf"], "E_PARAM"),
    ({"out_as": "poems"}, ["--out-as", "poems"], "E_PARAM"),
    ({"max_gap": "soon"}, ["--max-gap", "soon"], "E_PARAM"),
    ({"columns": "user"}, ["--columns", "user"], "E_PARAM"),
    ({"grid": (1, 2)}, ["--grid", "1,2"], "E_PARAM"),
    ({"grid": (0, 0, 1, 1, 4), "box": (0, 0, 1, 1)}, ["--grid", "0,0,1,1,4", "--box", "0,0,1,1"], "E_PARAM"),
    ({"preset": "private"}, ["--preset", "private"], "E_MAP"),
]


@pytest.mark.parametrize(("given", "typed", "code"), REFUSED, ids=lambda given: str(given)[:30])
def test_it_refuses_what_the_command_refuses_and_names_its_own_parameters(run, town, tmp_path, given, typed, code):
    with pytest.raises(ew.errors.ElsewhereError) as refused:
        ew.synthesize(town, tmp_path / "out", **given)
    assert refused.value.code == code
    parameter = "grid" if code == "E_MAP" else next(iter(given))
    assert f"`{parameter}" in str(refused.value)
    if typed is not None:
        status, said, _ = run("synthesize", town, "-o", tmp_path / "out", *typed, "--json")
        error = json.loads(said)["error"]
        assert (status, error["code"], error["parameter"]) == (2, code, refused.value.parameter)
        if refused.value.parameter is not None and typed[0] != "--set":
            assert error["message"].endswith("(--grid)" if code == "E_MAP" else f"({typed[0]})")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_can_be_repeated_is_refused_without_a_word(town, tmp_path):
    with pytest.raises(ew.errors.PublicationRefused, match="laboratory=True") as refused:
        ew.synthesize(town, tmp_path / "out", **SMALL, rng=np.random.default_rng(1))
    assert refused.value.code == "E_LABORATORY"
    assert list(tmp_path.iterdir()) == []


def test_folders_that_hold_something_are_refused_before_any_work(town, tmp_path):
    for name, taken in (("one", "one"), ("two", "two-private"), ("three", "three-unfinished")):
        (tmp_path / taken).mkdir()
        (tmp_path / taken / "mine.txt").write_text("mine")
        with pytest.raises(ew.errors.OutputRefused, match="files that are not of" if name == "three" else "force=True"):
            ew.synthesize(town, tmp_path / name)
    with pytest.raises(ew.errors.InvalidParameter, match="`private` must not be inside"):
        ew.synthesize("nothing.csv", tmp_path / "four", private=tmp_path / "four" / "mine")
    assert set(holds(tmp_path)) == {f"{name}/mine.txt" for name in ("one", "two-private", "three-unfinished")}


def test_one_list_of_options_for_the_library_and_the_command():
    """A way to read that only one of the two has would be a promise that the other breaks."""
    of_read_traces = {*inspect.signature(ew.read_traces).parameters, *ReadingOptions.__annotations__}
    assert Reading.model_fields.keys() - of_read_traces == {"grid"}
    others = {*inspect.signature(ew.synthesize).parameters, "report", "grid_metres", "evidence", "people"}
    assert of_read_traces - Reading.model_fields.keys() <= others
    assert Job.model_fields.keys() & Reading.model_fields.keys() == set()


@pytest.mark.parametrize(("given", "near"), [("celsl", "cells"), ("max_gapp", "max_gap"), ("holdut", "holdout")])
def test_a_mistyped_keyword_is_told_the_nearest_of_reading_job_and_presets(tmp_path, given, near):
    with pytest.raises(ew.errors.InvalidParameter, match=f"`{near}`") as caught:
        ew.synthesize("nowhere.csv", tmp_path / "out", **{given: 3})

    assert (caught.value.code, caught.value.parameter) == ("E_PARAM", given)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("given", "typed"), [({}, []), ({"choose": "likelihood", "temp": 1e-9}, ["likelihood"])])
def test_the_likelier_of_ten_times_as_many_fakes_are_published(run, town, tmp_path, given, typed):
    laboratory = {"rng": np.random.default_rng(1), "laboratory": True, "report": False}
    made = ew.synthesize(town, tmp_path / "out", **SMALL, **given, **laboratory)
    _, per_seed = np.unique(made.fakes.person, return_counts=True)
    shown = made.fakes.loglik[made.fakes.published]
    best = np.array([made.fakes.loglik[made.fakes.person == s].max() for s in np.unique(made.fakes.person)])

    assert per_seed.max() == (10 if given else 1)
    assert len(made.pool) == len(per_seed)
    assert np.allclose(np.sort(shown), np.sort(best))
    words = ["--choose", *typed, "--set", "temp=1e-9"] if typed else []
    status, _, err = run(
        "synthesize", town, "-o", tmp_path / "typed", *TYPED, *words, "--seed", 1, "--i-know", "--no-report"
    )
    assert status == 0, err
    assert (tmp_path / "typed" / "fakes.csv").read_bytes() == (tmp_path / "out" / "fakes.csv").read_bytes()


def test_where_a_theorem_covers_all_fakes_there_is_nothing_to_choose(town, tmp_path):
    with pytest.raises(ew.errors.InvalidParameter) as refused:
        ew.synthesize(town, tmp_path / "out", preset="private", choose="likelihood")
    assert (refused.value.code, refused.value.parameter) == ("E_NOT_READ", "choose")
