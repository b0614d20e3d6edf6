"""Options: every one of every command refuses a bad value in one line, and is declared once for library and command."""

import json
from typing import Literal, get_origin

import numpy as np
import pytest
from typer.testing import CliRunner

from elsewhere import settings
from elsewhere.cli import COMMANDS, OPTIONS, _fields, _flags, app
from elsewhere.errors import InvalidParameter
from elsewhere.settings import PRESETS, Reading, Settings, kinds, option_of, preset_of, seconds_of

# what each command needs beside the option that is tried; files that are named are not read
NEEDS = {
    "plan": ["a.csv"],
    "synthesize": ["a.csv", "-o", "out"],
    "prepare": ["a.csv", "-o", "out"],
    "fit": ["a.csv", "-o", "out"],
    "generate": ["a.csv", "-o", "out"],
    "publish": ["fakes", "-o", "out"],
    "evaluate": ["--real", "a.csv", "--fakes", "a.csv"],
    "audit": ["--real", "a.csv", "--fakes", "a.csv"],
    "lbs": ["--real", "a.csv"],
    "similarity": ["a.csv"],
    "reproduce": ["a.csv"],
    "serve": ["pool"],
}
# bad values of options that any text fits until a file is read, or a place to write or to listen is looked for
BAD_TEXTS = {
    "tz": "Nowhere/Land",
    "columns": "nonsense",
    "format": "nonsense",
    "date_format": "%Q",
    "grid": "1,2",
    "box": "1,2",
    "step": "soon",
    "max_gap": "soon",
    "start": "25:99",
    "encoding": "nonsense",
    "n_fakes": "1,x",
    "attacks": "A99",
    "parameters": "m_min",
    "host": "no host",
    "out": "a.csv",
    "private": "a.csv",
    "cert": "nowhere.pem",
    "key": "nowhere.pem",
}
ANY_TEXT = ("store", "dask")  # an address, which is tried when work begins
CHECKED_BY_SETTINGS = {"step", "max_gap", "start", "encoding", "n_fakes"}


def is_checked(name, field):
    of_number_or_choice = any(kind in (int, float) or get_origin(kind) is Literal for kind in kinds(field.annotation))
    return (of_number_or_choice and name not in ("grid", "box")) or name in CHECKED_BY_SETTINGS


def every_option():
    for command in COMMANDS:
        for name, field in _fields(command).items():
            if field.annotation is not bool and name not in ANY_TEXT:
                yield pytest.param(command.__name__, name, field, id=f"{command.__name__} {name}")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hours = [f"{user},2024-03-0{day} {hour:02}:00,46.{user},7.{hour % 3}" for user in range(3) for day in (4, 5)
             for hour in range(24)]  # fmt: skip
    (tmp_path / "a.csv").write_text("\n".join(["uid,datetime,lat,lng", *hours]) + "\n")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize(("command", "name", "field"), every_option())
def test_a_bad_value_of_any_option_is_refused_in_one_line(run, command, name, field):
    bad, words = BAD_TEXTS.get(name, "nonsense"), list(NEEDS.get(command, []))
    if option_of(field).argument:
        words[:1] = [bad]
    else:
        flag = _flags(name, field)[-1]
        if flag in words or ("-o" in words and name == "out"):
            words[words.index("-o" if name == "out" else flag) + 1] = bad
        else:
            words += [flag, bad]
    done = run(command, *words, "--json")
    error = json.loads(done.stdout)["error"]

    assert (done.exit_code, error["exit_status"]) == (2, 2)
    assert done.stderr == f"{error['code']}: {error['message']}\n"
    if is_checked(name, field):
        assert (error["code"], error["parameter"]) == ("E_PARAM", name)
        assert f"`{name}` must be" in error["message"]
        assert error["message"].endswith(f"({OPTIONS[command][name]})")
        assert (bad in error["message"]) == (not option_of(field).secret)


@pytest.mark.parametrize(
    ("words", "near"),
    [(["synthesize", "--stpe", "1h"], "--step"), (["demo", "--user", "9"], "--users"), (["synthesise"], "synthesize")],
)
def test_unknown_options_and_commands_suggest_the_nearest(run, words, near):
    done = run(*words)

    assert (done.exit_code, done.stderr.count("\n"), done.stderr[:8]) == (2, 1, "E_USAGE:")
    assert near in done.stderr


def test_an_unknown_parameter_of_a_preset_suggests_the_nearest(run):
    done = run("synthesize", "a.csv", "-o", "out", "--set", "m_minn=3")

    assert (done.exit_code, done.stderr[:8]) == (2, "E_PARAM:")
    assert "`m_min`" in done.stderr


def test_every_option_has_help_and_says_what_is_right():
    for command in COMMANDS:
        for name, field in _fields(command).items():
            assert option_of(field).help.endswith("."), (command.__name__, name)
    for preset in PRESETS.values():
        for name, field in type(preset).model_fields.items():
            assert option_of(field).help.endswith("."), name
            assert settings.allowed(field)


def test_an_option_that_several_groups_have_has_one_range():
    groups = [kind for kind in vars(settings).values() if isinstance(kind, type) and issubclass(kind, Settings)]
    for name in ("k", "eps", "delta", "days", "choose", "temp", "kappa", "seed"):
        ranges = {settings.allowed(kind.model_fields[name]) for kind in groups if name in kind.model_fields}
        assert len(ranges) == 1, (name, ranges)


def test_all_wrong_values_are_named_at_once_and_long_ones_cut():
    with pytest.raises(InvalidParameter) as refused:
        Reading(cells=0, max_bad=2.0, gaps="x" * 500)

    assert all(f"`{name}` must be" in str(refused.value) for name in ("cells", "max_bad", "gaps"))
    assert len(str(refused.value)) < 500


def test_texts_of_a_command_line_are_converted_and_texts_of_the_library_are_not():
    assert Reading.of_texts({"cells": "7", "max_bad": ".3"}) == Reading(cells=7, max_bad=0.3)
    assert Reading(cells=np.int64(7)).cells == 7
    for wrong in ({"cells": "7"}, {"cells": True}, {"cells": 7.5}, {"max_bad": "0.3"}, {"max_bad": float("nan")}):
        with pytest.raises(InvalidParameter):
            Reading(**wrong)


@pytest.mark.parametrize(
    ("word", "name", "value"),
    [
        ("m_min=3", "m_min", 3),
        ("shift=30", "shift", 30.0),
        ("relaxed=()", "relaxed", ()),
        ("relaxed=par_i", "relaxed", ("par_i",)),
        ("periods=(0,6,24)", "periods", (0.0, 6.0, 24.0)),
        ("periods=6", "periods", 6),
        ("class_periods=none", "class_periods", None),
        ("min_sim=None", "min_sim", None),
    ],
)
def test_parameters_of_a_preset_are_read_from_words(word, name, value):
    assert getattr(settings.PresetOptions(parameters=(word,)).chosen(), name) == value
    assert preset_of("product", **{name: value}).parameters()[name] == value


def test_a_parameter_that_is_given_twice_is_refused():
    with pytest.raises(InvalidParameter) as refused:
        settings.PresetOptions(k=3, parameters=("k=4",)).chosen()
    assert refused.value.parameter == "k"


@pytest.mark.parametrize(
    ("length", "seconds"), [("20min", 1200), ("1h", 3600), ("90 s", 90), ("2hours", 7200), (1.5, 90)]
)
def test_lengths_of_time(length, seconds):
    assert seconds_of(length) == seconds


@pytest.mark.parametrize("length", ["", "h", "5", "-1h", "1.5s", "1 fortnight", float("nan"), -3])
def test_what_is_no_length_of_time(length):
    with pytest.raises(ValueError, match="no length"):
        seconds_of(length)
