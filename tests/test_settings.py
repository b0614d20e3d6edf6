"""Options: every one of every command refuses a bad value in one line, and is declared once for library and command."""

import inspect
import json
from typing import Literal, get_origin

import numpy as np
import pytest
from typer.testing import CliRunner

from elsewhere import settings
from elsewhere.cli import COMMANDS, _fields, app
from elsewhere.cli.output import TYPED, flags_of
from elsewhere.data.read import read_visits
from elsewhere.errors import InvalidParameter
from elsewhere.run.synthesize import keywords_of
from elsewhere.settings import Certified, Life, Paper, Reading, Settings, kinds, method_of, option_of

# what each command needs beside the option that is tried; files that are named are not read
NEEDS = {
    "plan": ["a.csv"],
    "synthesize": ["a.csv", "-o", "out"],
    "prepare": ["a.csv", "-o", "out"],
    "evaluate": ["--real", "a.csv", "--fakes", "a.csv"],
    "audit": ["--real", "a.csv", "--fakes", "a.csv"],
    "lbs": ["--real", "a.csv"],
    "reproduce": ["a.csv"],
    "serve": ["pool"],
}
# bad values of options that any text fits until a file is read, or a place to write or to listen is looked for
BAD_TEXTS = {
    "tz": "Nowhere/Land",
    "columns": "nonsense",
    "date_format": "%Q",
    "grid": "1,2",
    "n_fakes": "1,x",
    "attacks": "A99",
    "host": "no host",
    "out": "a.csv",
    "cert": "nowhere.pem",
    "key": "nowhere.pem",
}
ANY_TEXT = ("store", "dask")  # an address, which is tried when work begins
CHECKED_BY_SETTINGS = {"encoding", "n_fakes"}


def is_checked(name, field):
    of_number_or_choice = any(kind in (int, float) or get_origin(kind) is Literal for kind in kinds(field.annotation))
    return of_number_or_choice or name in CHECKED_BY_SETTINGS


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


@pytest.mark.parametrize(("command", "name", "field"), [*every_option()])
def test_a_bad_value_of_any_option_is_refused_in_one_line(run, command, name, field):
    bad, words = BAD_TEXTS.get(name, "nonsense"), list(NEEDS.get(command, []))
    if option_of(field).argument:
        words[:1] = [bad]
    else:
        flag = flags_of(name, field)[-1]
        if flag in words or ("-o" in words and name == "out"):
            words[words.index("-o" if name == "out" else flag) + 1] = bad
        else:
            words += [flag, bad]
    if command == "synthesize" and name not in Life.model_fields:
        words += ["--method", "paper"] if name in Paper.model_fields else []
        words += ["--eps", "4"] if name in Certified.model_fields and name != "eps" else []
    done = run(command, *words, "--json")
    error = json.loads(done.stdout)["error"]

    assert (done.exit_code, error["exit_status"]) == (2, 2)
    assert done.stderr == f"{error['code']}: {error['message']}\n"
    if is_checked(name, field):
        assert (error["code"], error["parameter"]) == ("E_PARAM", name)
        assert f"{TYPED[name]} must be" in error["message"]
        assert "`" not in error["message"]
        assert (bad in error["message"]) == (not option_of(field).secret)


@pytest.mark.parametrize(
    ("words", "near"),
    [(["synthesize", "--cels", "9"], "--cells"), (["demo", "--user", "9"], "--users"), (["synthesise"], "synthesize")],
)
def test_unknown_options_and_commands_suggest_the_nearest(run, words, near):
    done = run(*words)

    assert (done.exit_code, done.stderr.count("\n"), done.stderr[:8]) == (2, 1, "E_USAGE:")
    assert near in done.stderr


def test_every_option_has_help_and_says_what_is_right():
    for command in COMMANDS:
        for name, field in _fields(command).items():
            assert option_of(field).help.endswith("."), (command.__name__, name)
    for method in (Life, Paper, Certified):
        for name, field in method.model_fields.items():
            assert option_of(field).help.endswith("."), name


def test_an_option_is_typed_alike_everywhere_and_has_one_range():
    for command in COMMANDS:
        for name, field in _fields(command).items():
            assert option_of(field).argument or TYPED[name] in flags_of(name, field)[-1], (command.__name__, name)
    groups = [kind for kind in vars(settings).values() if isinstance(kind, type) and issubclass(kind, Settings)]
    for name in ("k", "eps", "delta", "kappa", "seed"):
        ranges = {
            repr([part for part in kind.model_fields[name].metadata if not isinstance(part, settings.Option)])
            for kind in groups
            if name in kind.model_fields
        }
        assert len(ranges) == 1, (name, ranges)


def test_long_values_are_cut():
    with pytest.raises(InvalidParameter, match="`places` must be") as refused:
        Reading(places="x" * 500)

    assert len(str(refused.value)) < 500


def test_texts_of_a_command_line_are_converted_and_texts_of_the_library_are_not():
    assert Reading.of_texts({"cells": "7", "interval": ".3"}) == Reading(cells=7, interval=0.3)
    assert Reading(cells=np.int64(7)).cells == 7
    for wrong in ({"cells": "7"}, {"cells": True}, {"cells": 7.5}, {"interval": "0.3"}, {"interval": float("nan")}):
        with pytest.raises(InvalidParameter):
            Reading(**wrong)


def test_every_way_to_read_is_a_keyword_of_the_reader():
    takes = set(inspect.signature(read_visits).parameters)
    assert set(Reading.model_fields) - takes == {"grid"}
    with pytest.raises(InvalidParameter) as refused:
        keywords_of(Reading(grid="Tokyo", locations="places.csv"))
    assert refused.value.parameter == "grid"


def test_the_papers_method_field_by_field():
    assert dict(method_of("paper")) == {
        "periods": 1,
        "c_min": 1,
        "epsilon": 0.01,
        "n_min": 5,
        "sampler": "viterbi",
        "par_c": 0.25,
        "par_m": 0.75,
        "par_l": 1.0,
        "par_v": 4.0,
        "par_s": 0.1,
        "par_i": 0,
        "par_d": 0.1,
        "k": 2,
        "against": "own",
        "min_sim": None,
        "max_tries": 50,
    }


@pytest.mark.parametrize("method", [Life, Paper, Certified])
def test_defaults_are_right_values(method):
    assert method() == method(**dict(method()))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("n_min", "3", 3),
        ("par_v", "30", 30.0),
        ("periods", "0,6,24", (0.0, 6.0, 24.0)),
        ("periods", "6", 6),
        ("min_sim", ".2", 0.2),
        ("sampler", "ffbs", "ffbs"),
    ],
)
def test_parameters_of_a_method_are_read_from_texts(name, text, value):
    assert getattr(settings.MethodOptions.of_texts({"method": "paper", name: text}).chosen(), name) == value
    assert getattr(method_of("paper", **{name: value}), name) == value


def test_eps_makes_either_method_certified():
    for method in ("life", "paper"):
        texts = {"method": method, "eps": "2", "days": "3", "delta": "1e-5"}
        assert settings.MethodOptions.of_texts(texts).chosen() == Certified(eps=2.0, delta=1e-5, days=3)
    for given, parameter in (({"delta": "1e-5"}, "delta"), ({"days": "2"}, "days"), ({"eps": "2", "k": "3"}, "k")):
        with pytest.raises(InvalidParameter) as refused:
            settings.MethodOptions.of_texts(given).chosen()
        assert (refused.value.code, refused.value.parameter) == ("E_NOT_READ", parameter)
