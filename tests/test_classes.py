"""Semantic classes: what is planted is found, whatever the numbers of places; class sizes; rare places."""

import itertools
import threading
import warnings
from pathlib import Path
from types import SimpleNamespace

import naive
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score as ami
from threadpoolctl import threadpool_limits

import elsewhere as ew
from elsewhere.paper import semantic_clustering as room
from elsewhere.paper.profiles import count
from elsewhere.paper.semantic_graph import ROLE_RANKS

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


def rng(entropy=0):
    return np.random.default_rng(entropy)


def planted(kinds, *, users=40, per_kind=12, R_more=0):
    """People who divide their day as 2^n, ..., 4, 2, 1 between one place of each kind; the kind of every place."""
    generator = rng(7)
    time = 2 ** np.arange(kinds - 1, -1, -1)
    place = generator.integers(0, per_kind, (users, kinds)) + per_kind * np.arange(kinds)
    r = np.repeat(place, time, axis=1)
    traces = ew.Traces(r, ew.Locations(n=kinds * per_kind + R_more), step_minutes=1440 / r.shape[1])
    return traces, np.repeat(np.arange(kinds), per_kind)


def graph_of(traces, T=1, **choice):
    return ew.semantic_graph(ew.fit_profiles(traces, periods=T), **choice)


@pytest.fixture(scope="module")
def town():
    return ew.simulate_town(users=300, days=2, rng=rng(1))


def agreement(classes, truth):
    known = classes.label >= 0
    return ami(truth[known], classes.label[known])


@given(strategies.traces(max_users=4, max_places=6, days=2), st.sampled_from([1, 2, 3]))
def test_roles_count_people_by_rank(traces, T):
    tau = ew.Periods.of(T).of_minute(traces.minutes())
    expected = naive.roles(traces.r.tolist(), traces.user.tolist(), tau.tolist(), traces.R, T, ROLE_RANKS)

    found = ew.semantic_graph(ew.fit_profiles(traces, periods=T)).roles

    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_ranks_beyond_the_last_count_together():
    long_list = ew.Traces([np.repeat(np.arange(20), np.arange(20, 0, -1))], ew.Locations(n=20), step_minutes=1)

    found = graph_of(long_list).roles

    assert found[10].tolist() == [0] * 10 + [1, 0]
    assert np.all(found[11:, 11] == 1)


@pytest.fixture
def few_halvings(monkeypatch):
    """How many classes there are is asked of three halvings: for tests of what does not depend on it."""
    monkeypatch.setattr(room, "HALVINGS", 3)


@pytest.mark.parametrize("method", ["roles", "kmeans"])
@pytest.mark.parametrize("kinds", [2, 3, 5])
def test_planted_classes_and_their_number_are_found(kinds, method):
    traces, truth = planted(kinds, R_more=3)

    given_kappa = ew.semantic_clustering(graph_of(traces), kappa=kinds, method=method, rng=rng())
    auto = ew.semantic_clustering(graph_of(traces), rng=rng())  # of roles: the paper's rows have the paper's number

    for classes in (given_kappa, auto):
        assert classes.kappa == kinds
        known = classes.label >= 0
        assert np.array_equal(known, graph_of(traces).visited)
        assert ami(truth[known[: len(truth)]], classes.label[known]) == pytest.approx(1)


@pytest.mark.parametrize("choice", [{"order": 1}, {"mapping": "common"}])
def test_planted_classes_are_found_by_every_graph(choice):
    traces, truth = planted(3, users=12, per_kind=5)
    graph = graph_of(traces, T=2, rng=rng(), **choice)

    classes = ew.semantic_clustering(graph, kappa=3, method="kmeans", rng=rng())

    assert agreement(classes, truth) == pytest.approx(1)


@pytest.mark.parametrize("method", ["roles", "kmeans"])
@pytest.mark.parametrize(("kappa", "c_min"), [("auto", 3), (8, 3), (20, 1)])
def test_renaming_places_and_reordering_users_changes_nothing_else(town, method, kappa, c_min, few_halvings):
    traces = town.traces
    name, rows = rng(2).permutation(traces.R), rng(3).permutation(len(traces))
    renamed = ew.Traces(name[traces.r][rows], traces.locations, users=traces.user[rows])

    before = ew.semantic_clustering(graph_of(traces, T=4), kappa=kappa, method=method, c_min=c_min, rng=rng())
    after = ew.semantic_clustering(graph_of(renamed, T=4), kappa=kappa, method=method, c_min=c_min, rng=rng())

    assert np.array_equal(after.label[name], before.label)
    np.testing.assert_allclose(after.nearness, before.nearness, rtol=1e-9)


@pytest.mark.parametrize("method", ["roles", "kmeans"])
def test_same_entropy_same_classes_however_many_threads(town, method, few_halvings):
    graph = graph_of(town.traces, T=4)
    found = []
    for threads in (1, 7):
        with threadpool_limits(threads):
            found.append(ew.semantic_clustering(graph, method=method, c_min=9, rng=rng(5)))
    late = threading.Thread(
        target=lambda: found.append(ew.semantic_clustering(graph, method=method, c_min=9, rng=rng(5)))
    )
    late.start()
    late.join()

    assert len(found) == 3
    for again in found[1:]:
        assert np.array_equal(again.label, found[0].label)


def test_roles_find_the_towns_classes_better_than_the_paper_and_geography():
    town = ew.simulate_town(users=1000, days=2, rng=rng(1))
    four, one = graph_of(town.traces, T=4), graph_of(town.traces)
    visited = np.flatnonzero(four.visited)
    geography = room._cluster(town.traces.locations.planar()[visited], 6, 0, None, 1)

    by_roles = [agreement(ew.semantic_clustering(four, kappa=6, rng=rng(i)), town.truth) for i in range(3)]
    by_paper = [
        agreement(ew.semantic_clustering(one, kappa=6, method="kmeans", rng=rng(i)), town.truth) for i in (0, 1)
    ]

    # five starts in each of three such towns: roles .86 to .90, the paper's rows .63 to .68
    assert min(by_roles) > 0.8
    assert min(by_roles) > max(by_paper) + 0.1
    assert ami(town.truth[visited], geography) < 0.2


def test_foursquare_categories_are_found_better_than_by_geography_or_time_of_day():
    folder = DATA / "foursquare_nyc"
    if not folder.is_dir():
        pytest.skip("../shared/data/foursquare_nyc is not there")
    import pandas as pd

    seen = pd.read_csv(folder / "fsq_nyc_checkins.csv.gz", usecols=["uid", "timestamp_local", "poi", "category"])
    seen = seen[seen.poi.map(seen.poi.value_counts()) >= 15]
    seen = seen[seen.uid.map(seen.uid.value_counts()) >= 30].sort_values(["uid", "timestamp_local"])
    user, place = pd.factorize(seen.uid)[0], pd.factorize(seen.poi)[0]
    U, R = user.max() + 1, place.max() + 1
    slot = seen.groupby("uid").cumcount()
    r, tau = np.full((U, slot.max() + 1), -1, dtype=np.int32), np.zeros((U, slot.max() + 1), dtype=np.int32)
    r[user, slot], tau[user, slot] = place, pd.to_datetime(seen.timestamp_local).dt.hour // 6
    category = seen.groupby(place).category.first()
    graph = ew.semantic_graph(count(r, np.arange(U), tau, U=U, R=R, T=4))

    label = ew.semantic_clustering(graph, kappa=20, rng=rng()).label

    # five starts: .158 +- .004; time of day .08, its square roots .11, geography .06
    assert (U, R) == (1028, 3328)
    assert ami(category[category.notna()], label[category.notna()]) > 0.135


@given(st.data(), st.integers(1, 5))
def test_small_classes_are_merged_smallest_first_into_the_nearest(data, c_min):
    n = data.draw(st.integers(2, 9))
    half = rng(data.draw(st.integers(0, 99))).random((n, n))  # no ties
    w = np.triu(half, 1) + np.triu(half, 1).T
    label = room._number_by_appearance(np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))))
    expected = naive.merge_small_classes(
        [np.flatnonzero(label == i).tolist() for i in range(label.max() + 1)], w.tolist(), c_min
    )

    found = room._merge_small(label, naive.edges_between(label.tolist(), w.tolist()), c_min)

    assert {frozenset(np.flatnonzero(found == i).tolist()) for i in range(found.max() + 1)} == set(
        map(frozenset, expected)
    )


def test_classes_have_c_min_members(town, few_halvings):
    graph = graph_of(town.traces, T=4)
    assert ew.semantic_clustering(graph, c_min=20, rng=rng()).sizes.min() >= 20
    for c_min in (2, 5, 20):
        with pytest.warns(UserWarning, match="`kappa` = 150"):
            asked = ew.semantic_clustering(graph, kappa=150, c_min=c_min, rng=rng())
        assert asked.sizes.min() >= c_min
        assert 2 <= asked.kappa < 150
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ew.semantic_clustering(graph, kappa=150, rng=rng()).kappa == 150


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=6))
def test_information_beyond_chance_is_by_all_orders(pairs):
    one, other = (list(label) for label in zip(*pairs, strict=True))

    expected = naive.mutual_information_beyond_chance(one, other)

    assert room.excess_information(np.array(one), np.array(other)) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=30)
@given(strategies.traces(max_users=6, min_users=2, max_places=6, days=1), st.sampled_from([1, 2]), st.integers(2, 3))
def test_score_of_a_halving_is_that_of_the_definition(traces, T, kappa):
    half = np.arange(traces.U) % 2 == 0
    tau = ew.Periods.of(T).of_minute(traces.minutes()).tolist()
    sides = []
    for users in (np.flatnonzero(half), np.flatnonzero(~half)):
        some = traces.of_users(users)
        sides.append(naive.roles(some.r.tolist(), some.user.tolist(), tau, traces.R, T, ROLE_RANKS))

    views = room._views(graph_of(traces, T=T), half)

    for view, own, other in zip(views, sides, sides[::-1], strict=True):
        seen = np.array([row for row in sorted(own) if any(row)])
        np.testing.assert_allclose(view.rows, np.sqrt(seen) / np.sqrt(seen.sum(axis=1, keepdims=True)), atol=1e-7)
        centres = room._fit_k_means(view.rows, min(kappa, len(seen)), 3, 1).cluster_centers_
        # as near to one centre as to another: either will do
        away = ((np.vstack([view.own, view.others])[:, None] - centres) ** 2).sum(axis=2)
        nearest = np.sort(away, axis=1)
        if nearest.shape[1] == 1 or np.all(nearest[:, 1] - nearest[:, 0] > 1e-6):
            expected = naive.shared_information(own, other, centres.tolist())
            assert view.information(kappa, 3) == pytest.approx(expected, abs=1e-9)


def test_score_by_hand():
    # homes 0, 1 and works 2, 3 of four people; the halves are people 0, 1 and people 2, 3
    traces = ew.Traces([[0, 0, 2], [1, 1, 3], [0, 0, 3], [1, 1, 2]], ew.Locations(n=4))
    views = room._views(graph_of(traces), np.array([True, True, False, False]))

    # both halves say {0, 1} and {2, 3}: log 2, of which a third by chance; one class says nothing
    assert [view.information(2, 0) for view in views] == pytest.approx([np.log(2) * 2 / 3] * 2)
    assert [view.information(1, 0) for view in views] == pytest.approx([0, 0])

    # halves that know no common place tell nothing of each other
    apart = ew.Traces([[0, 0, 2], [1, 1, 3]], ew.Locations(n=4))
    assert [view.information(2, 0) for view in room._views(graph_of(apart), np.array([True, False]))] == [0, 0]


class Scores:
    """Stands in for the views: k classes are told of by the k-th score."""

    def __init__(self, scores):
        self.scores, self.tried = scores, []

    def information(self, kappa, entropy):
        self.tried.append(kappa)
        return self.scores(kappa)


@pytest.mark.parametrize(
    ("scores", "most", "expected"),
    [
        (lambda k: min(k, 7) / 7, 40, 7),  # 6 / 7 is less than 90 %
        (lambda k: 0.91 if k >= 5 else 1 if k == 8 else 0.1, 40, 5),
        (lambda k: 0.9 if k == 5 else float(k == 8), 40, 5),
        (lambda k: 1 / k, 40, 4),  # two would do: the floor
        (lambda k: 1 / k, 3, 3),  # no more than the places allow
        (lambda k: 0.0, 40, 4),
        (lambda k: -1 / k, 40, 4),
    ],
)
def test_smallest_number_with_nine_tenths_of_the_largest_score(monkeypatch, scores, most, expected):
    views = Scores(scores)
    monkeypatch.setattr(room, "_views", lambda *_: [views, views])

    assert room.number_of_classes(None, [None, None], most, 0) == expected


def test_scores_that_scatter_as_much_as_they_tell_are_chance(monkeypatch):
    for spread, expected in ((0.4, 9), (0.6, 4)):
        views = [Scores(lambda k, told=told: (k == 9) * told) for told in (1 - spread, 1 + spread)]
        monkeypatch.setattr(room, "_views", lambda _, half, views=views: [views[half]] * 2)

        assert room.number_of_classes(None, [0, 1], 12, 0) == expected


def test_numbers_tried_are_few_and_end_where_the_score_has_fallen(monkeypatch):
    steps = room.numbers_to_try(2000)
    assert steps[:12] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17]
    assert all(b - a <= max(1, 0.25 * a) for a, b in itertools.pairwise(steps))
    assert len(steps) < 40
    assert [room.numbers_to_try(most)[-1] for most in (2, 3, 11, 12)] == [2, 3, 10, 12]

    views = Scores(lambda k: k if k <= 8 else 1)
    monkeypatch.setattr(room, "_views", lambda *_: [views, views])
    assert room.number_of_classes(None, [None], 2000, 0) == 8
    assert max(views.tried) == 12


def test_number_is_the_same_whatever_places_and_users_are_called(town):
    traces = town.traces
    name, number = rng(2).permutation(traces.R), rng(3).permutation(traces.U)
    rows = np.argsort(number[traces.user], kind="stable")
    renamed = ew.Traces(name[traces.r][rows], traces.locations, users=number[traces.user][rows])
    before, after = graph_of(traces, T=4), graph_of(renamed, T=4)
    halves = room.draw_halves(before, rng(4))[:2]
    moved = []
    for half in halves:
        moved.append(np.zeros_like(half))
        moved[-1][number] = half

    assert room.number_of_classes(after, moved, 30, 1) == room.number_of_classes(before, halves, 30, 1)
    for one, other in zip(room._views(before, halves[0]), room._views(after, moved[0]), strict=True):
        np.testing.assert_allclose(other.rows, one.rows, atol=1e-9)
        assert other.information(6, 1) == pytest.approx(one.information(6, 1), abs=1e-9)


def test_halves_are_halves(town):
    halves = room.draw_halves(graph_of(town.traces), rng())

    assert len(halves) == 10
    assert {int(half.sum()) for half in halves} == {150}
    assert len({half.tobytes() for half in halves}) == 10


@pytest.mark.parametrize("entropy", [21, 22])
def test_auto_finds_the_towns_classes_within_two(entropy):
    made = ew.simulate_town(users=1000, days=2, rng=rng(entropy))
    classes = ew.semantic_clustering(graph_of(made.traces, T=12), c_min=5, rng=rng())

    assert len(np.unique(made.truth)) == 6
    assert 4 <= classes.kappa <= 8
    assert agreement(classes, made.truth) > 0.75


@pytest.mark.parametrize("entropy", range(3))
def test_auto_of_people_without_habits_is_the_floor(entropy):
    noise = ew.Traces(rng(entropy).integers(0, 60, (120, 12)), ew.Locations(n=60))

    assert ew.semantic_clustering(graph_of(noise), rng=rng()).kappa == 4


def test_auto_asks_for_more_where_small_classes_are_merged(town, monkeypatch):
    graph, fit, asked = graph_of(town.traces, T=4), room._fit_k_means, []
    monkeypatch.setattr(room, "number_of_classes", lambda *_: 4)

    def uneven(rows, kappa, entropy, starts):
        asked.append(kappa)
        first = SimpleNamespace(predict=lambda rows: np.minimum(np.arange(len(rows)), 3))
        return first if kappa < 6 else fit(rows, kappa, entropy, starts)

    monkeypatch.setattr(room, "_fit_k_means", uneven)
    classes = ew.semantic_clustering(graph, c_min=5, rng=rng())

    assert asked[:3] == [4, 5, 6]
    assert classes.kappa >= 4
    assert classes.sizes.min() >= 5

    asked.clear()
    alone = [SimpleNamespace(predict=lambda rows, k=k: np.minimum(np.arange(len(rows)), k - 1)) for k in range(99)]
    monkeypatch.setattr(room, "_fit_k_means", lambda _, kappa, *more: alone[kappa])
    classes = ew.semantic_clustering(graph, c_min=5, rng=rng())  # nothing has four classes of five
    assert classes.sizes.min() >= 5


@pytest.mark.parametrize(("places", "expected"), [(9, 2), (60, 12), (99, 19), (100, 20), (300, 20)])
def test_auto_of_the_papers_rows_is_the_papers_20_where_the_places_allow_it(places, expected):
    people = ew.Traces(rng(1).integers(0, places, (60, 40)), ew.Locations(n=places))
    graph = graph_of(people)

    assert graph.visited.all()
    assert ew.semantic_clustering(graph, method="kmeans", rng=rng()).kappa == expected


def test_nearness_is_the_mean_edge_weight(town):
    graph = graph_of(town.traces)
    classes = ew.semantic_clustering(graph, kappa=5, rng=rng())

    for i in range(5):
        for j in range(5):
            weights = [graph.w[a, b] for a in classes.members(i) for b in classes.members(j) if a != b]
            assert classes.nearness[i, j] == pytest.approx(np.mean(weights))
    assert np.array_equal(classes.nearness, classes.nearness.T)


def test_places_that_cannot_be_told_apart_share_a_class():
    same = ew.Traces([[0, 1], [2, 3], [4, 5]], ew.Locations(n=6))
    for method in ("roles", "kmeans"):
        with pytest.warns(UserWarning, match="1 classes instead of `kappa` = 3"):
            classes = ew.semantic_clustering(graph_of(same), kappa=3, method="roles", rng=rng())
        assert classes.label.tolist() == [0] * 6
        assert ew.semantic_clustering(graph_of(same), method=method, rng=rng()).kappa >= 1


def test_a_graph_without_edges_still_has_classes():
    alone = graph_of(ew.Traces([[0, 0, 1, 2]], ew.Locations(n=4)))

    classes = ew.semantic_clustering(alone, kappa=2, rng=rng())

    assert classes.label.tolist() == [1, 0, 0, -1]
    assert not classes.nearness.any()


@pytest.mark.parametrize("kappa", [1, 0, -3, 7, 2.5, True, "many", None, float("nan")])
def test_refuses_kappa_out_of_range(kappa):
    graph = graph_of(ew.Traces([[0, 0, 1], [2, 2, 3], [4, 4, 5]], ew.Locations(n=9)))
    with pytest.raises(ew.errors.InvalidParameter, match="`kappa`") as caught:
        ew.semantic_clustering(graph, kappa=kappa, rng=rng())
    assert caught.value.code == "E_PARAM"


def test_refuses_what_it_cannot_cluster():
    graph = graph_of(ew.Traces([[0, 0, 1], [2, 2, 3]], ew.Locations(n=9)))
    for bad in ({"c_min": 0}, {"method": "best"}, {"rng": 5}):
        with pytest.raises(ew.errors.InvalidParameter, match=f"`{next(iter(bad))}`"):
            ew.semantic_clustering(graph, **{"rng": rng(), **bad})
    with pytest.raises(ew.errors.InvalidParameter, match="`profiles`"):
        ew.semantic_clustering(np.eye(3), rng=rng())
    with pytest.raises(ew.errors.InvalidParameter) as caught:
        ew.semantic_clustering(graph, c_min=5, rng=rng())
    assert caught.value.code == "E_TOO_FEW_PLACES"
    # what there is, what is needed, what to do
    assert "4 places are visited" in str(caught.value)
    assert "at least 5 are needed" in str(caught.value)
    assert "Give more people" in str(caught.value)
    # four places and classes of three: one class, rather than none
    assert ew.semantic_clustering(graph, c_min=3, rng=rng()).label.tolist() == [0, 0, 0, 0, -1, -1, -1, -1, -1]
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.semantic_clustering(graph_of(ew.Traces([[1, 1], [1, 1]], ew.Locations(n=2))), rng=rng())
    assert caught.value.code == "E_TOO_FEW_PLACES"


def test_classes_from_a_plain_array():
    classes = ew.SemanticClasses([7, -1, 3, 3])

    assert classes.label.tolist() == [1, -1, 0, 0]
    assert (classes.kappa, classes.sizes.tolist(), classes.nearness) == (2, [2, 1], None)
    assert classes.members(0).tolist() == [2, 3]
    assert ew.SemanticClasses(np.array([0.0, 1.0])).label.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        classes.label[0] = 0
    with pytest.raises(ew.errors.InvalidParameter):
        classes.members(2)
    for bad in ([], [[0, 1]], [-2, 0], [-1, -1], [0.5, 1], ["home"], [0, np.nan], [[0], [1, 2]], [True, False], 3):
        with pytest.raises(ew.errors.InvalidTraces, match="`label`"):
            ew.SemanticClasses(bad)
