"""The published referee of PF, against its slow twins."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from referee import membership_rates, reidentification_rate, tm_emd, tp_tv

from elsewhere.data.slots import Traces
from elsewhere.data.visits import Locations
from elsewhere.errors import InvalidParameter, InvalidTraces
from elsewhere.evaluation.attack_base import Lives
from elsewhere.evaluation.attack_membership import likelihood_ratio


@st.composite
def tables(draw):
    """Return a few fakes and real traces of one length, and the number of places."""
    R, L = draw(st.integers(2, 5)), draw(st.integers(2, 6))
    row = st.lists(st.integers(0, R - 1), min_size=L, max_size=L)
    return draw(st.lists(row, min_size=1, max_size=6)), draw(st.lists(row, min_size=2, max_size=4)), R


@given(tables())
def test_referee_equals_its_slow_twin(case):
    fakes, real, R = case
    axis = [r // 2 for r in range(R)]

    assert tp_tv(fakes, real) == pytest.approx(float(naive.tp_tv(fakes, real, R)))
    assert tm_emd(fakes, real, axis) == pytest.approx(float(naive.tm_emd(fakes, real, axis)))
    assert tp_tv(fakes, real, top=R) == pytest.approx(tp_tv(fakes, real))
    assert tp_tv(real, real) == tm_emd(real, real, axis) == 0


def test_referee_takes_means_over_datasets_of_one_fake_per_seed():
    fakes, holdout = [[0, 0], [1, 1]], [[0, 0], [1, 1]]

    assert tp_tv(fakes, holdout) == 0
    assert tp_tv(fakes, holdout, seed_index=[0, 0]) == 0.5


def test_places_tied_for_the_last_rank_share_it():
    # three places of one visitor each, the two most popular asked for: each counts 2/3
    assert tp_tv([[3], [3], [3]], [[0], [1], [2]], top=2) == pytest.approx(2 / 3 * 3 * (1 / 3) / 2)


def test_referee_refuses_what_it_cannot_read():
    with pytest.raises(InvalidParameter, match="`axis`"):
        tm_emd([[0, 1]], [[0, 1]], axis=[0.5, 1.0])
    with pytest.raises(InvalidTraces, match="`fakes`"):
        tp_tv([[0, 5]], Traces([[0, 1]], Locations(n=2)))
    with pytest.raises(InvalidParameter, match="`seed_index`"):
        reidentification_rate([[0, 1], [1, 0]], [[0, 1]], [2])


def test_membership_rates_run_into_the_next_trace():
    # 0 1 | 1 0: the seam 1 -> 1 is a move of seed 1 alone, and counts for the second fake of seed 0
    seeds, holdout = [[0, 1, 0], [1, 1, 1]], [[2, 2, 2], [2, 0, 2]]
    fakes = np.array([[0, 1, 0], [0, 1, 0]])
    rows = [*seeds, *holdout], fakes[:1], [[0, 0, 1, 0]]
    people, apart, joined = (Lives.of_slots(np.array(each), Locations(n=3)) for each in rows)

    # nobody moves 0 -> 0: floored on both sides
    assert_allclose(likelihood_ratio(people, joined), likelihood_ratio(people, apart))
    assert membership_rates(seeds, holdout, fakes, [0, 0]).advantage <= 1
