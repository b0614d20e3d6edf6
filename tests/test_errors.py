"""Errors: one tree, one code each, one line, and never a look at the data."""

import inspect
import pickle
import re

import numpy as np
import pytest

import elsewhere as ew
from elsewhere import errors
from elsewhere.errors import InvalidParameter, InvalidTraces

TREE = {n: k for n, k in vars(errors).items() if inspect.isclass(k) and issubclass(k, Exception)}
HERE = ew.Locations(n=3)
DAY = ew.Traces([[0, 0, 1, 2]], HERE, step_minutes=360)

# what is refused -> kind, code, and the words (name, range, value) that the message must hold
REFUSALS = {
    "one dimension": (lambda: ew.Traces([0, 1], HERE), InvalidTraces, "E_SHAPE", "`r` two dimensions 1"),
    "ragged rows": (lambda: ew.Traces([[0, 1], [0]], HERE), InvalidTraces, "E_SHAPE", "`r` one length"),
    "no rows": (lambda: ew.Traces(np.empty((0, 4)), HERE), InvalidTraces, "E_EMPTY", "`r` empty"),
    "empty trace": (lambda: ew.Traces([[0, 1], [-1, -1]], HERE), InvalidTraces, "E_EMPTY", "row 1 `r`"),
    "index too high": (lambda: ew.Traces([[0, 3]], HERE), InvalidTraces, "E_INDEX", "`r` 0 .. 2 row 0"),
    "index too low": (lambda: ew.Traces([[0, -2]], HERE), InvalidTraces, "E_INDEX", "`r` 0 .. 2 row 0"),
    "NaN": (lambda: ew.Traces([[0, np.nan]], HERE), InvalidTraces, "E_NUMBER", "`r` NaN"),
    "half a place": (lambda: ew.Traces([[0, 0.5]], HERE), InvalidTraces, "E_NUMBER", "`r` whole numbers"),
    "text": (lambda: ew.Traces([["a", "b"]], HERE), InvalidTraces, "E_NUMBER", "`r` whole numbers"),
    "too few names": (lambda: ew.Traces([[0], [1]], HERE, users=["a"]), InvalidTraces, "E_SHAPE", "`users` 2 1"),
    "nameless": (lambda: ew.Traces([[0]], HERE, users=[None]), InvalidTraces, "E_USER", "`users` missing"),
    "a date": (lambda: ew.Traces([[0]], HERE, dates=["soon"]), InvalidTraces, "E_DATE", "`dates` YYYY-MM-DD"),
    "a clock": (lambda: ew.Traces([[0]], HERE, start="25:00"), InvalidParameter, "E_PARAM", "`start` 23:59 25:00"),
    "a step": (lambda: ew.Traces([[0]], HERE, step_minutes=0), InvalidParameter, "E_PARAM", "`step_minutes` (0, 0"),
    "no places": (lambda: ew.Traces([[0]], 3), InvalidParameter, "E_PARAM", "`locations` `Locations` int"),
    "NaN latitude": (lambda: ew.Locations([np.nan], [0]), InvalidTraces, "E_NUMBER", "`lat` finite"),
    "off the globe": (lambda: ew.Locations([91], [0]), InvalidTraces, "E_OUTSIDE", "`lat` [-90, 90]"),
    "half a point": (lambda: ew.Locations(lat=[1]), InvalidParameter, "E_PARAM", "`lat` `lon` `xy` `n` lat"),
    "unknown user": (lambda: ew.fit_profiles(DAY)[7], InvalidParameter, "E_USER", "user 0 .. 0 7"),
    "half a day": (lambda: ew.Periods.of([0, 6, 12]), InvalidParameter, "E_PERIODS", "`periods` 24 12"),
    "no period": (lambda: ew.fit_profiles(DAY, periods=0), InvalidParameter, "E_PARAM", "`periods` 1 1440 0"),
    "gaps": (lambda: ew.fit_profiles(ew.Traces([[0, -1]], HERE)), InvalidTraces, "E_GAPS", "1 of 2 missing"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSALS)
def test_bad_input_is_refused_with_code_name_range_and_value(what):
    attempt, kind, code, words = REFUSALS[what]
    before = DAY.r.copy()

    with pytest.raises(kind) as caught:
        attempt()

    assert code == caught.value.code
    assert [word for word in words.split() if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(before, DAY.r)


def test_messages_never_show_trace_content_or_names():
    canary = "CANARY-7f3a"
    for attempt in (
        lambda: ew.Traces([[0, 71077345]], HERE, users=[canary]),
        lambda: ew.Traces([[0, 71077345.5]], HERE, users=[canary]),
        lambda: ew.Traces([[canary, canary]], HERE),
        lambda: ew.Traces([[0], [1]], HERE, users=[canary]),
        lambda: ew.Traces([[0]], HERE, dates=[canary]),
        lambda: ew.fit_profiles(ew.Traces([[0, -1]], HERE, users=[canary])),
    ):
        with pytest.raises(ew.ElsewhereError) as caught:
            attempt()
        assert canary not in str(caught.value)
        assert "71077345" not in str(caught.value)


def test_tree_is_drawn_as_it_is():
    drawn = set(re.findall(r"[|`]- (\w+)", errors.__doc__)) | {"ElsewhereError"}

    assert drawn == set(TREE)
    assert all(issubclass(kind, ew.ElsewhereError) for kind in TREE.values())


@pytest.mark.parametrize("kind", TREE.values(), ids=TREE)
def test_every_error_has_a_code_a_status_and_survives_a_worker(kind):
    error = pickle.loads(pickle.dumps(kind("what is wrong.", code="E_SPECIAL", parameter="k")))  # noqa: S301

    assert (kind, "E_SPECIAL", "E_SPECIAL: what is wrong.") == (type(error), error.code, str(error))
    assert error.parameter == "k"
    assert re.fullmatch(r"E_[A-Z_]+", kind.code)
    assert kind.exit_status == (3 if kind.__name__ == "NothingPassed" else 2)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), "x", None, True])
def test_require_between_refuses(value):
    with pytest.raises(InvalidParameter, match=re.escape(f"`par_s` must be in [0, 1], got {value!r}.")) as refused:
        errors.require_between("par_s", value, 0, 1)
    assert (refused.value.code, refused.value.parameter) == ("E_PARAM", "par_s")


def test_right_values_are_kept_and_bounds_are_right_or_not():
    assert errors.require_whole("k", np.int32(2), 2) == 2
    assert (errors.require_between("x", 0, 0, 1), errors.require_between("x", 1, 0, 1)) == (0.0, 1.0)
    with pytest.raises(InvalidParameter, match=re.escape("(0, 1], got 0")):
        errors.require_between("x", 0, 0, 1, open_low=True)
    with pytest.raises(InvalidParameter, match=re.escape("[0, 1), got 1")):
        errors.require_between("x", 1, 0, 1, open_high=True)


@pytest.mark.parametrize("value", [1, 11, 2.5, "3", None, True])
def test_require_whole_refuses(value):
    with pytest.raises(InvalidParameter, match=f"`k` must be .* at least 2 and at most 10, got {value!r}") as refused:
        errors.require_whole("k", value, 2, 10)
    assert refused.value.parameter == "k"


def test_require_choice_lists_the_choices():
    with pytest.raises(InvalidParameter, match='`mapping` must be one of "a", "b", got \'c\'') as refused:
        errors.require_choice("mapping", "c", ("a", "b"))
    assert refused.value.parameter == "mapping"
