"""Sorting and searching within compiled loops, beside numpy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from elsewhere._search_kernels import find_sorted, first_above, first_not_below, sort

NUMBERS = {
    np.int32: st.integers(-5, 5),
    np.int64: st.integers(-(2**62), 2**62),
    np.float64: st.floats(allow_nan=False, width=64),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_sorted_as_by_definition(kind):
    @given(arrays(kind, st.integers(0, 300), elements=NUMBERS[kind]))
    def sorted_in_place(values):
        expected = np.array(sorted(values.tolist()), dtype=kind)
        sort(values)
        assert np.array_equal(values, expected)

    sorted_in_place()


@given(st.lists(st.integers(-9, 9)), st.integers(-10, 10))
def test_places_of_a_value_by_definition(values, x):
    values = np.array(sorted(values), dtype=np.int64)
    assert first_not_below(values, x) == sum(v < x for v in values)
    assert first_above(values, x) == sum(v <= x for v in values)


@given(st.lists(st.integers(-9, 9), unique=True), st.integers(-10, 10), st.integers(0, 5), st.integers(0, 20))
def test_a_value_is_found_in_its_part_by_definition(values, wanted, low, size):
    values = np.array(sorted(values), dtype=np.int64)
    high = min(low + size, len(values))
    expected = next((i for i in range(low, high) if values[i] == wanted), -1)
    assert find_sorted(values, min(low, high), high, wanted) == expected
