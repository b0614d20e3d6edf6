"""The figures: their bars are the numbers, their axes are labelled, the same twice, and readable in light and dark."""

import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
from reports_made import HOSTILE, world

import elsewhere as ew
from elsewhere.evaluation.publishing import pairs as pairs_module
from elsewhere.evaluation.publishing.pairs import pair_similarity
from elsewhere.evaluation.publishing.scenario import shares
from elsewhere.reports import charts, maps


def test_shares_put_a_value_on_an_edge_to_the_right_whatever_its_last_bit():
    for quarter in (0.25, np.nextafter(0.25, 0), 0.1 + 0.15):
        assert shares(np.array([quarter])).argmax() == 5
    assert shares(np.array([1.0, 1 + 1e-12])).tolist() == [0.0] * 19 + [1.0]
    assert shares(np.array([0.0, -1e-12, 0.04])).tolist() == [1.0] + [0.0] * 19


def test_histograms_are_the_shares_in_per_cent():
    rng = np.random.default_rng(5)
    values = rng.random(300), rng.random(200) ** 0.2
    figure = charts.similarity_histograms(*values)

    for axes, x in zip(figure.axes, values, strict=True):
        by_hand = [100 * np.mean([(low <= v < low + 0.05) for v in x]) for low in np.arange(20) / 20]
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(by_hand)
        assert axes.get_lines()[0].get_xdata()[0] == pytest.approx(x.mean())


def test_the_same_figure_is_the_same_file_and_names_nobody():
    figures = [charts.similarity_histograms([0, 0.1, 0.1], [0.5, 0.9, 1]) for _ in range(4)]
    picture = charts.svg(figures[0], "label")

    assert charts.png(figures[1]) == charts.png(figures[2])
    assert picture == charts.svg(figures[3], "label")
    assert not re.search(r"\b20\d\d-|matplotlib|http", picture)  # no hour, no library, no address


def test_pictures_have_no_colour_of_their_own_and_no_id_twice():
    one = charts.similarity_histograms([0, 0.1], [0.5, 0.9])
    pictures = charts.svg(one, "first") + charts.svg(one, "second")
    ids = re.findall(r' id="([^"]+)"', pictures)

    assert not re.search(r"#[0-9a-f]{6}", pictures)
    assert set(re.findall(r"var\(--([\w-]+)\)", pictures)) <= set(charts.INKS)
    assert len(ids) == len(set(ids))
    assert "<b onclick" not in charts.svg(charts.bars([HOSTILE], [1.0], ["fake"], x=HOSTILE), HOSTILE)


def test_a_strip_has_a_bar_per_stay_in_the_colour_of_its_rank():
    rows = np.array([[3, 3, 3, 5, 5, 3], [3, 7, -1, -1, 3, 3]])
    axes = charts.life_strip(rows, ["1", "2"], np.arange(7.0), per_row=False).axes[0]
    bars = [[path.get_extents().bounds[::2] for path in row.get_paths()] for row in axes.collections]
    inks = [[charts.INKS[ink] for ink in row] for row in (("k0", "k1", "k0"), ("k0", "k2", "k0"))]

    assert bars == [[(0.0, 3.0), (3.0, 2.0), (5.0, 1.0)], [(0.0, 1.0), (1.0, 1.0), (4.0, 2.0)]]
    assert [[to_hex(c) for c in row.get_facecolor()] for row in axes.collections] == inks
    own = charts.life_strip(rows, ["1", "2"], np.arange(7.0), per_row=True).axes[0].collections[1]
    assert to_hex(own.get_facecolor()[1]) == charts.INKS["k1"]


@pytest.mark.parametrize("periods", [1, 2])
def test_pairs_are_those_of_the_definition(periods):
    rng = np.random.default_rng(9)
    traces = ew.Traces(rng.integers(0, 5, (6, 8)), ew.Locations(n=5), step_minutes=180)
    profiles = ew.fit_profiles(traces, periods=periods)
    pairs = pair_similarity(profiles)
    ordered = [(u, v) for u in range(6) for v in range(6) if (u < v if periods == 1 else u != v)]

    expected = [ew.geographic_similarity(profiles[u], profiles[v]) for u, v in ordered]
    assert pairs.geographic.tolist() == pytest.approx(expected)
    assert pairs.to_dict()["pairs"] == len(ordered)
    assert np.all(pairs.semantic >= pairs.geographic - 1e-12)


def test_one_user_has_no_pair_and_too_many_have_too_many(monkeypatch):
    profiles = ew.fit_profiles(ew.Traces([[0, 1], [1, 0], [0, 0]], ew.Locations(n=2)))

    with pytest.raises(ew.errors.NotEnoughUsers):
        pair_similarity(profiles[:1])
    monkeypatch.setattr(pairs_module, "MAX_USERS", 2)
    with pytest.raises(ew.errors.InvalidParameter, match="E_TOO_LARGE"):
        pair_similarity(profiles)


def test_bars_and_points_of_the_paper_are_the_numbers():
    w = world()
    p, lbs = w["publishing"].to_dict(), w["lbs"]
    visits = p["visits"]["all"]
    heights = [visits["testing"], visits["fakes"]["mean"], visits["uniform"], visits["single"]]
    drawn = charts.similarity_qq(p).axes[0].lines[1]
    curve = charts.location_privacy(lbs.to_dict()).axes[0].containers[1][0]

    assert [bar.get_height() for bar in charts.visiting_divergence(p).axes[0].patches] == pytest.approx(heights)
    assert drawn.get_xdata() == pytest.approx(p["qq"]["real"])
    assert drawn.get_ydata() == pytest.approx(p["qq"]["fake"])
    assert curve.get_ydata() == pytest.approx([lbs.figure("ours", n)["median"] for n in lbs.n_fakes])
    for draw in (charts.visiting_divergence, charts.time_allocation, charts.fake_seed_similarity):
        assert all(axes.get_ylabel() for axes in draw(p).axes)
    alone = ew.evaluate_publishing(w["real"].r, None, w["fakes"].r).to_dict()
    with pytest.raises(ew.errors.InvalidParameter, match="give `seed_index`"):
        charts.differential_similarity(alone)


def test_maps_show_every_visited_place_and_class():
    w = world()
    visits = np.bincount(w["fakes"].r.ravel(), minlength=w["fakes"].R)
    where = w["fakes"].locations

    discs = maps.visits_map(where, visits).axes[0].collections
    assert sum(len(c.get_offsets()) for c in discs) == np.sum(visits > 0)
    assert max(c.get_sizes()[0] for c in discs) == pytest.approx(260)
    drawn = maps.classes_map(where, w["classes"]).axes[0].collections
    assert [len(c.get_offsets()) for c in drawn] == w["classes"].sizes.tolist()
