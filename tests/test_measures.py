"""Measures of people and crowds on visits, against their definitions; and the verdicts on what fakes are good for."""

from collections import Counter

import naive_measures as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elsewhere.data.town import simulate_town
from elsewhere.data.visits import Locations, Visits
from elsewhere.errors import InvalidParameter
from elsewhere.evaluation import usefulness
from elsewhere.evaluation.measures import (
    Crowd,
    Plan,
    field_divergences,
    jensen_shannon,
    largest_gap,
    misplaced,
    unmatched,
)
from elsewhere.evaluation.usefulness import judge_usefulness

HOUR = 3600


def some_visits(seed, people=6, places=5, records=12, *, instants=False):
    rng = np.random.default_rng(seed)
    n = people * records
    user = np.repeat(np.arange(people), records)
    start = rng.integers(0, 12 * 24 * HOUR, n)
    start = np.concatenate([np.sort(each) for each in start.reshape(people, records)])
    length = np.zeros(n, dtype=int) if instants else rng.integers(0, 5 * HOUR, n)
    end = start + length
    # nobody is at two places at once
    following = np.append(start[1:], 1 << 40)
    last = np.append(user[1:] != user[:-1], True)
    end = np.where(last, end, np.minimum(end, following))
    where = Locations(xy=rng.uniform(0, 10, (places, 2)))
    return Visits(user, start, end, rng.integers(0, places, n), where)


def rows_of(visits, user):
    rows = visits.rows(user)
    columns = (visits.user, visits.start, visits.end, visits.place)
    return list(zip(*(column[rows].tolist() for column in columns), strict=True))


@pytest.mark.parametrize("instants", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_numbers_of_each_person_are_as_defined(seed, instants):
    visits = some_visits(seed, instants=instants)
    crowd = Crowd(visits, Plan.of(visits))
    for user in range(visits.U):
        slow = naive.person(rows_of(visits, user), not instants, lambda a, b: float(visits.locations.distance(a, b)))
        for name, value in slow.items():
            np.testing.assert_allclose(crowd.people[name][user], value, rtol=1e-12, err_msg=f"{name} of {user}")


def test_of_one_day_nobody_knows_which_places_are_new():
    visits = Visits(
        [0, 0, 1, 1], [0, HOUR, 0, 30 * HOUR], [HOUR, 2 * HOUR, HOUR, 31 * HOUR], [0, 1, 0, 1], Locations(n=2)
    )
    new = Crowd(visits, Plan.of(visits)).people["new_places"]

    assert np.isnan(new[0])
    assert new[1] == 1.0


def test_radius_of_gyration_by_hand():
    # half of the time 3 km west of the middle, half 3 km east
    visits = Visits([0, 0], [0, HOUR], [HOUR, 2 * HOUR], [0, 1], Locations(xy=[[-3.0, 0.0], [3.0, 0.0]]))
    assert Crowd(visits, Plan.of(visits)).people["radius"][0] == pytest.approx(3.0)


@pytest.mark.parametrize("instants", [False, True])
def test_presence_moves_and_stays_are_as_defined(instants):
    visits = some_visits(4, instants=instants)
    crowd, zone = Crowd(visits, Plan.of(visits)), np.array([0, 1, 1, 2, 0])
    rows = [row for user in range(visits.U) for row in rows_of(visits, user)]
    slow = naive.presence(rows, zone, not instants)
    fast = crowd.presence(zone)
    for weekend in (False, True):
        for hour in range(24):
            for z in range(3):
                assert fast[24 * weekend + hour, z] == slow[weekend, hour, z]
    assert list(zip(*(x.tolist() for x in crowd.moves[:2]), strict=True)) == naive.moves(rows)
    lengths = [(end - start) / 60 for _, start, end, _ in naive.stays(rows) if end > start]
    np.testing.assert_allclose(np.sort(crowd.stay_lengths), np.sort(lengths))


def test_only_visits_of_one_trip_are_a_move():
    where = Locations(n=3)
    visits = Visits([0] * 4, [0, 10, 20, 30], [0, 10, 20, 30], [0, 1, 2, 0], where, trip=[0, 0, 1, 1])
    origin, target, _ = Crowd(visits, Plan.of(visits)).moves
    assert list(zip(origin.tolist(), target.tolist(), strict=True)) == [(0, 1), (2, 0)]


@given(st.lists(st.integers(0, 9), min_size=3, max_size=3), st.lists(st.integers(0, 9), min_size=3, max_size=3))
@settings(max_examples=50, deadline=None)
def test_divergence_is_as_defined_symmetric_and_bounded(p, q):
    if sum(p) == 0 or sum(q) == 0:
        return
    value = jensen_shannon(p, q)
    assert value == pytest.approx(naive.jensen_shannon(p, q), abs=1e-12)
    assert value == pytest.approx(jensen_shannon(q, p), abs=1e-12)
    assert -1e-12 <= value <= 1 + 1e-12


def test_distances_are_0_to_oneself_and_1_to_what_shares_nothing():
    a = np.array([[4.0, 0.0], [2.0, 0.0]])
    assert misplaced(a, a) == 0
    assert misplaced(a, a[:, ::-1]) == 1
    # an hour counts by how many people there are
    assert misplaced(a, np.array([[4.0, 0.0], [0.0, 2.0]])) == pytest.approx(2 / 6)
    assert largest_gap(np.arange(3.0), np.arange(3.0)) == 0
    assert largest_gap(np.arange(3.0), np.arange(3.0) + 9) == 1
    assert unmatched(np.array([1, 2]), np.array([1, 2])) == 0
    assert unmatched(np.array([1, 2]), np.array([3])) == 1


@pytest.mark.parametrize(("seed", "places"), [(5, 5), (6, 40)])
def test_the_divergences_of_the_field_are_as_defined(seed, places):
    real, other = some_visits(seed, people=20, places=places), some_visits(seed + 10, people=15, places=places)
    other = other.replace(locations=real.locations)
    crowds = [Crowd(visits, Plan.of(real)) for visits in (real, other)]
    people = [[rows_of(visits, user) for user in range(visits.U)] for visits in (real, other)]

    assert field_divergences(*crowds) == pytest.approx(naive.field(*people, real.locations.planar().tolist()))
    assert set(field_divergences(crowds[0], crowds[0]).values()) == {0.0}


def life(seed, people, home_from):
    """People who sleep at a place of their own and work at one of three, for a week."""
    rng = np.random.default_rng(seed)
    day = np.arange(7) * 24 * HOUR
    start = np.stack([day, day + 9 * HOUR, day + 17 * HOUR], axis=1).ravel()
    end = np.stack([day + 9 * HOUR, day + 17 * HOUR, day + 24 * HOUR], axis=1).ravel()
    user = np.repeat(np.arange(people), 21)
    home, work = home_from + rng.integers(0, 8, people), rng.integers(0, 3, people)
    place = np.stack([home, work, home], axis=1)
    place = np.repeat(place[:, None], 7, axis=1).reshape(-1)
    angle = np.linspace(0, 6, 20)
    where = Locations(xy=np.column_stack([np.cos(angle), np.sin(angle)]) * np.arange(1, 21)[:, None])
    return Visits(user, np.tile(start, people), np.tile(end, people), place, where)


def test_other_people_are_good_for_everything_and_random_places_for_nothing_that_asks_where():
    seeds, strangers, more = (life(seed, 120, 4) for seed in (1, 2, 3))
    good = judge_usefulness(seeds, strangers, more, rng=np.random.default_rng(1))
    assert {use.verdict for use in good.uses} <= {"good", "cannot say"}
    assert good["hours"].verdict == good["stays"].verdict == "good"
    elsewhere = more.replace(place=np.random.default_rng(4).integers(0, 20, len(more)))
    bad = judge_usefulness(seeds, strangers, elsewhere, rng=np.random.default_rng(1))
    assert bad["hours"].verdict == bad["places"].verdict == bad["trips"].verdict == "not for this"
    assert good.divergences["fakes"]["distance"] < bad.divergences["fakes"]["distance"]


def test_fakes_are_compared_with_strangers_beside_seeds_a_mixture_and_chance():
    seeds, strangers, alike = life(1, 120, 4), life(2, 120, 12), life(3, 120, 12)
    hours = judge_usefulness(seeds, strangers, alike, rng=np.random.default_rng(1))["hours"]

    # the seeds sleep elsewhere than strangers do, and so does half of a mixture
    assert hours.people > 0.5
    assert hours.same == pytest.approx(hours.people / 2, abs=0.05)
    assert hours.fakes < 0.25
    swapped = judge_usefulness(alike, strangers, seeds, rng=np.random.default_rng(1))["hours"]
    assert swapped.fakes > 0.5 > 0.25 > swapped.people


def test_what_is_not_told_from_chance_gives_no_verdict():
    assert usefulness.verdict(0.1, 0.2, 0.05, 0.15) == "good"
    assert usefulness.verdict(0.1, 0.2, 0.05, 0.15, spread=0.06) == "cannot say"


def test_where_people_differ_so_much_that_others_are_no_help_half_way_to_chance_counts():
    assert usefulness.verdict(0.6, 0.6, 0.1, 0.7) == "not for this"
    assert usefulness.verdict(0.5, 0.6, 0.1, 0.7) == "rough"


def test_with_too_few_strangers_nothing_is_said():
    seeds, strangers = life(1, 40, 4), life(2, 9, 4)
    for left in (strangers, None):
        result = judge_usefulness(seeds, left, seeds, rng=np.random.default_rng(1))
        assert {use.verdict for use in result.uses} == {"cannot say"}


def test_what_an_input_lacks_is_said_use_by_use():
    plain = [v.replace(locations=Locations(n=20)) for v in (life(seed, 60, 4) for seed in (1, 2, 3))]
    result = judge_usefulness(*plain, rng=np.random.default_rng(1))
    assert result["trips"].verdict == result["kinds"].verdict == "cannot say"
    assert result["hours"].fakes is not None
    assert result["trips"].fakes is None
    calls = [v.replace(end=v.start) for v in plain]
    assert judge_usefulness(*calls, rng=np.random.default_rng(1))["stays"].fakes is None


def test_fakes_on_a_map_of_the_same_ids_are_compared_place_by_place():
    ids = [f"cell {i}" for i in range(20)]
    seeds, strangers, fakes = (life(seed, 60, 4) for seed in (1, 2, 3))
    order = np.random.default_rng(5).permutation(20)
    named = [v.replace(locations=Locations(**v.locations.coordinates, ids=ids)) for v in (seeds, strangers)]
    back = np.argsort(order)
    other = fakes.replace(place=back[fakes.place], locations=named[0].locations.select(order))
    one = judge_usefulness(*named, fakes.replace(locations=named[0].locations), rng=np.random.default_rng(1))
    two = judge_usefulness(*named, other, rng=np.random.default_rng(1))
    assert one.to_dict() == two.to_dict()


def test_rng_is_asked_for():
    with pytest.raises(InvalidParameter) as refused:
        judge_usefulness(life(1, 20, 4), None, life(1, 20, 4), rng=3)
    assert refused.value.code == "E_PARAM"


def test_home_is_where_the_nights_are():
    town = simulate_town(users=12, days=4, locations=40, rng=np.random.default_rng(8)).visits
    crowd = Crowd(town, Plan(town.locations))
    night = [Counter() for _ in range(town.U)]
    minutes = [
        (int(u), int(p), m % 1440 // 60)
        for u, p, start, end in zip(town.user, town.place, town.start, town.end, strict=True)
        for m in range(int(start) // 60, int(end) // 60)
    ]
    for u, p, hour in minutes:
        night[u][p] += hour < 6
    home = [max(sorted(places), key=places.__getitem__) for places in night]

    assert crowd.home.tolist() == home
