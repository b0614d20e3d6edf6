"""The aggregate model refuses what cannot be: matrices, arguments, questions and damaged arrays."""

import numpy as np
import pytest
from scipy import sparse

import elsewhere as ew


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
        (np.array([["a", "b"], ["c", "d"]]), "E_SHAPE"),
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
    assert refused(model.loglik, [[0, -1]], [0, 0]) == refused(model.loglik, [[0, 2]], [0, 0]) == "E_INDEX"


def test_the_model_cannot_be_changed_from_outside():
    model = ew.aggregate(ew.fit_profiles(trace(0, 1, 0)), ew.Locations(n=2))

    for array in (model.pi_bar, model.first(0), model.visitors):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
