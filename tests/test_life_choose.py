"""One of several lives: portraits against their definition, and the chances that a life is taken."""

from dataclasses import replace

import naive_life
import numpy as np
import pytest

from elsewhere.data.visits import DAY, Locations, Visits
from elsewhere.synthesis.choose import learn_choice, portray
from elsewhere.synthesis.generate_life import CHOICES, choose_lives, draw_lives, learn_lives

KEY = np.array([3, 4], dtype=np.uint64)


def check_ins(people=60, seed=0):
    rng = np.random.default_rng(seed)
    n = people * 40
    user, day = np.repeat(np.arange(people), 40), rng.integers(0, 30, n)
    start = day * DAY + rng.choice([9, 13, 19, 20, 21], n) * 3_600 + rng.integers(0, 60, n) * 60
    place = np.where(rng.random(n) < 0.4, user % 12, 12 + rng.integers(0, 28, n))
    order = np.lexsort((start, user))
    xy = np.random.default_rng(9).uniform(0, 9, (40, 2))
    return Visits(user[order], start[order], start[order], place[order], Locations(xy=xy))


@pytest.fixture(scope="module")
def model():
    return learn_lives(check_ins(), k=5, rng=np.random.default_rng(1))


def test_portraits_are_those_of_the_definition():
    visits = check_ins(5)
    columns = [getattr(visits, name).astype(np.int64) for name in ("user", "start", "end", "place")]
    xy = visits.locations.planar()
    found = portray(*columns, 6, xy)  # the last has no records
    for person in range(5):
        mine = visits.user == person
        records = list(zip(*(c[mine].tolist() for c in columns[1:]), strict=True))
        assert found[person] == pytest.approx(naive_life.portrait(records, xy))
    assert np.isfinite(found).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_calls_that_overlap_have_no_gaps_below_zero():
    visits = check_ins()
    long = visits.replace(end=visits.start + 2 * DAY)
    columns = [getattr(long, name).astype(np.int64) for name in ("user", "start", "end", "place")]
    assert np.isfinite(portray(*columns, long.U, long.locations.planar())).all()
    learn_lives(long, k=5, rng=np.random.default_rng(1))


def test_odds_tell_people_from_lives_and_nothing_where_they_are_alike():
    rng = np.random.default_rng(0)
    people, lives = rng.normal(0, 1, (2_000, 3)), rng.normal(0, [1, 2, 1], (2_000, 3))
    odds = learn_choice(people, lives).odds(np.array([[0.0, 0, 0], [0, 2, 0], [0, -2, 0], [2, 0, 0]]))
    # ln of N(0, 1) / N(0, 2)
    assert odds[[0, 1, 2]] == pytest.approx(np.log(2) - 3 / 8 * np.array([0, 4, 4]), abs=0.25)
    assert odds[3] == pytest.approx(odds[0], abs=0.25)


def test_lives_are_taken_by_their_odds(model):
    n = 400
    seeds, points, numbers = np.arange(n) % 60, np.full(n, -1.0), np.arange(n)
    sizes = []
    for j in range(CHOICES):
        *_, first, good = draw_lives(model, seeds, points, numbers, np.full(n, j), KEY)
        assert good.all()
        sizes.append(np.diff(first))
    sizes = np.array(sizes)
    *drawn, first, good = choose_lives(model, seeds, points, numbers, 0, KEY)
    assert good.all()
    assert (sizes == np.diff(first)).any(0).all()
    assert np.array_equal(drawn[0], np.repeat(numbers, np.diff(first)))

    class More:  # a life twice as often for each record more
        def odds(self, portraits):
            return np.log(2) * np.exp(portraits[:, 0])

    *_, first, _ = choose_lives(replace(model, choice=More()), seeds, points, numbers, 0, KEY)
    weight = 2.0 ** (sizes - sizes.max(0))
    share = weight / weight.sum(0)
    expected, spread = (share * sizes).sum(0), (share * sizes**2).sum(0) - (share * sizes).sum(0) ** 2
    assert abs((np.diff(first) - expected).sum()) <= 5 * np.sqrt(spread.sum())
