"""Fakes that live for days are linked by all their days together, and by how many there are."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import elsewhere as ew
from elsewhere.evaluation.attacks.linkage import link_by_number_of_days, link_by_whole_life, rows_by_day


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whole_lives_equal_their_slow_twin(data):
    L, R = data.draw(st.integers(1, 5)), 4
    days = [data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=5)) for _ in range(2)]
    tables = [
        np.array(data.draw(st.lists(st.integers(0, R - 1), min_size=sum(d) * L, max_size=sum(d) * L))).reshape(-1, L)
        for d in days
    ]
    lives, people = (rows_by_day(np.repeat(np.arange(len(d)), d)) for d in days)
    own = np.array([data.draw(st.integers(0, len(people) - 1)) for _ in lives])
    label = np.array([0, 1, 1, -1])
    by_hand = [[tables[i][rows].tolist() for rows in side] for i, side in enumerate((lives, people))]

    found = link_by_whole_life(tables[0], lives, tables[1], people, own, label, range(-1, 2))
    assert_allclose(found, naive.whole_life(*by_hand, own.tolist(), label.tolist(), 1))
    assert_allclose(link_by_number_of_days(lives, people, own), naive.as_many_days(*by_hand, own.tolist()))


def test_rows_are_in_the_order_of_their_dates():
    dates = np.array(["2024-01-03", "2024-01-01", "2024-01-02"], dtype="datetime64[D]")
    assert [rows.tolist() for rows in rows_by_day(np.array([0, 0, 1]), dates)] == [[1, 0], [2]]
    assert [rows.tolist() for rows in rows_by_day(np.array([1, 0, 1]))] == [[1], [0, 2]]


def audited(seeds, strangers, fakes, owner, classes):
    rng = np.random.default_rng(1)
    return ew.audit(seeds, strangers, fakes, owner, attacks=["A5"], classes=classes, rng=rng)["A5"]


def test_days_that_tell_little_one_by_one_tell_the_seed_together():
    town = ew.simulate_town(users=80, days=7, locations=60, rng=np.random.default_rng(3))
    seeds, strangers = (town.traces.of_users(range(40 * k, 40 * k + 40)) for k in range(2))
    rng = np.random.default_rng(4)
    # every slot at any place of the class that the seed is in, or, three times in four, anywhere
    label = town.truth
    of_class = [np.flatnonzero(label == c) for c in range(label.max() + 1)]
    same = np.array([[rng.choice(of_class[label[p]]) for p in row] for row in seeds.r])
    fakes = seeds.with_places(np.where(rng.random(same.shape) < 0.25, same, rng.integers(60, size=same.shape)))
    found = audited(seeds, strangers, fakes, np.arange(len(seeds)), label)

    assert found.details["whole_life"].value > 2 * found.details["with_classes"].value
    assert found.details["strongest"] == "whole_life"
    assert found.passed is False
    assert "adds up all days" in found.words
    # lives of other people: nobody is named more often than by a guess, by days or by lives
    nobody = audited(seeds, strangers, town.traces.of_users(range(40, 80)), np.arange(len(seeds)), label)
    assert nobody.passed is not False
    assert nobody.details["whole_life"].value < 0.15


def test_as_many_days_as_the_seed_has_name_it():
    whole = ew.simulate_town(users=60, days=12, locations=60, rng=np.random.default_rng(5)).traces
    kept = np.arange(len(whole)) % 12 < 2 + whole.user % 10  # people of 2 to 11 days, six of each number
    town = whole.select(np.flatnonzero(kept))
    seeds, strangers = town.of_users(range(30)), town.of_users(range(30, 60))
    fakes = seeds.with_places(np.random.default_rng(6).integers(60, size=seeds.r.shape))  # places that tell nothing
    found = audited(seeds, strangers, fakes, np.arange(len(seeds)), np.zeros(60, dtype=int))

    # three seeds have as many days as each
    assert found.details["number_of_days"].value == pytest.approx(1 / 3)
    assert found.main >= found.details["number_of_days"].value
    assert found.null.value < 0.2  # walks that know no seed have other numbers
    assert found.outcome == "learnt something"
