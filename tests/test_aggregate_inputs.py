"""The aggregate model refuses what cannot be: matrices, arguments, questions and damaged arrays."""

import numpy as np
import pytest
from scipy import sparse

import elsewhere as ew
from elsewhere.paper.aggregate import AggregateModel


def trace(*places):
    return ew.Traces([list(places)], ew.Locations(n=max(places) + 1))


@pytest.mark.parametrize(
    ("feasible", "code"),
    [
        (np.ones((2, 3)), "E_SHAPE"),
        (np.ones(2), "E_SHAPE"),
        ([[1, 1], [1]], "E_SHAPE"),
        (np.array([[1, -1], [1, 1]]), "E_PARAM"),
        (np.array([[1, np.nan], [1, 1]]), "E_PARAM"),
        (np.array([[1, 0.5], [1, 1]]), "E_PARAM"),
        (np.array([["a", "b"], ["c", "d"]]), "E_PARAM"),
        (sparse.csr_array(np.array([[1, -1], [1, 1]])), "E_PARAM"),
        (sparse.eye_array(3), "E_SHAPE"),
    ],
)
def test_a_bad_feasibility_matrix_is_refused(feasible, code):  # B51
    with pytest.raises(ew.errors.InvalidParameter) as caught:
        ew.aggregate(ew.fit_profiles(trace(0, 1)), ew.Locations(n=2), feasible=feasible)

    assert caught.value.code == code


def refused(call, *arguments, **options):
    with pytest.raises(ew.ElsewhereError) as caught:
        call(*arguments, **options)
    return caught.value.code


def test_aggregate_refuses_bad_arguments():
    u, places = ew.fit_profiles(trace(0, 1, 0)), ew.Locations(n=2)
    hour = ew.fit_profiles(trace(0, 1, 0), periods=2)

    for epsilon in (-1, np.nan, np.inf, "x", None, True):
        assert refused(ew.aggregate, u, places, epsilon=epsilon) == "E_PARAM"
    for n_min in (0, -1, 2.5, None, True):
        assert refused(ew.aggregate, u, places, n_min=n_min) == "E_PARAM"
    assert refused(ew.aggregate, u, ew.Locations(n=3)) == "E_MISMATCH"
    assert refused(ew.aggregate, [u[0], hour[0]], places) == "E_MISMATCH"
    assert refused(ew.aggregate, [], places) == "E_EMPTY"
    assert refused(ew.aggregate, [1, 2], places) == "E_PARAM"
    assert refused(ew.aggregate, 5, places) == "E_PARAM"
    assert refused(ew.aggregate, u, 2) == "E_PARAM"


def test_questions_to_the_model_are_checked():
    model = ew.aggregate(ew.fit_profiles(trace(0, 1, 0), periods=2), ew.Locations(n=2))

    assert refused(model.rows, 2) == refused(model.rows, -1) == refused(model.block, [0], [2]) == "E_INDEX"
    for r in (0.5, "0", None, True, [[0]], [0.0]):
        assert refused(model.rows, r) == "E_SHAPE"
    for tau in (-1, 2, 0.5, None):
        assert refused(model.rows, 0, tau) == refused(model.table, 0, tau) == refused(model.first, tau) == "E_PARAM"
    assert model.block([], [0, 1]).shape == (0, 2)
    assert refused(model.loglik, [0, 1], [0, 0]) == "E_SHAPE"
    assert refused(model.loglik, [[0, -1]], [0, 0]) == refused(model.loglik, [[0, 2]], [0, 0]) == "E_INDEX"
    assert refused(model.loglik, [[0, 1]]) == refused(model.loglik, [[0, 1]], [0]) == "E_PARAM"
    assert refused(model.loglik, [[0, 1]], [0, 2]) == refused(model.loglik, [[0, 1]], [0, np.nan]) == "E_PARAM"


def test_the_model_cannot_be_changed_from_outside():
    model = ew.aggregate(ew.fit_profiles(trace(0, 1, 0)), ew.Locations(n=2))

    for array in (model.pi_bar, model.first(0), model.table(), model.visitors):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def damaged():
    places = ew.Locations(xy=[[0, 0], [0, 3], [2, 1]])
    feasible = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 1]])
    u = ew.fit_profiles(ew.Traces([[0, 1, 2, 0, 1], [0, 0, 1, 1, 2]], places, step_minutes=240), periods=2)
    arrays, numbers = ew.aggregate(u, places, feasible=feasible).to_arrays()
    without = {name: array for name, array in arrays.items() if name != "mass"}
    yield from (
        ("missing", without, numbers),
        ("extra", arrays | {"who": arrays["pi"]}, numbers),
        ("number missing", arrays, {"R": 3}),
        ("R", arrays, numbers | {"R": 4}),
        ("huge T", arrays, numbers | {"T": 10**9}),
        ("T", arrays, numbers | {"T": "2"}),
        ("epsilon", arrays, numbers | {"epsilon": -1}),
        ("fewer users", arrays, numbers | {"n_users": 1}),
        ("swapped", arrays | {"mass": arrays["count"], "count": arrays["mass"]}, numbers | {"n_users": 2}),
        ("unsorted", arrays | {"key": arrays["key"][::-1]}, numbers),
        ("repeated", arrays | {"key": arrays["key"][[0, 0, *range(2, len(arrays["key"]))]]}, numbers),
        ("beyond", arrays | {"key": arrays["key"] + 10**6}, numbers),
        ("one short", arrays | {"mass": arrays["mass"][1:]}, numbers),
        ("nan", arrays | {"mass": arrays["mass"] * np.nan}, numbers),
        ("negative", arrays | {"pi": -arrays["pi"]}, numbers),
        ("doubled", arrays | {"pi": 2 * arrays["pi"]}, numbers),
        ("text", arrays | {"pi": np.array(["a", "b", "c"])}, numbers),
        ("nan place", arrays | {"xy": arrays["xy"] * np.nan}, numbers),
        ("other place", arrays | {"xy": arrays["xy"][:2]}, numbers),
        ("open start", arrays | {"feasible_start": arrays["feasible_start"][::-1]}, numbers),
        ("open target", arrays | {"feasible_target": arrays["feasible_target"] + 1}, numbers),
        ("open short", arrays | {"feasible_target": arrays["feasible_target"][:-1]}, numbers),
        ("open float", arrays | {"feasible_target": arrays["feasible_target"] * 1.0}, numbers),
        ("half open", {k: v for k, v in arrays.items() if k != "feasible_target"}, numbers),
    )


@pytest.mark.parametrize(("arrays", "numbers"), [pytest.param(a, n, id=name) for name, a, n in damaged()])
def test_arrays_that_are_no_model_are_refused(arrays, numbers):  # B52, F32
    with pytest.raises(ew.errors.InvalidModel) as caught:
        AggregateModel.from_arrays(arrays, numbers)

    assert caught.value.code == "E_MODEL"
