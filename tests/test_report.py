"""The figures of the paper: their bars are the numbers, their axes are labelled, the same twice."""

import numpy as np
import pytest
from reports_made import world

import elsewhere as ew
from elsewhere.evaluation.publishing.scenario import shares
from elsewhere.reports import figures
from elsewhere.reports.figures import pair_similarity, png, similarity_histograms


def test_shares_put_a_value_on_an_edge_to_the_right_whatever_its_last_bit():
    for quarter in (0.25, np.nextafter(0.25, 0), 0.1 + 0.15):
        assert shares(np.array([quarter])).argmax() == 5
    assert shares(np.array([1.0, 1 + 1e-12])).tolist() == [0.0] * 19 + [1.0]
    assert shares(np.array([0.0, -1e-12, 0.04])).tolist() == [1.0] + [0.0] * 19


def test_bars_are_the_shares_in_per_cent():
    rng = np.random.default_rng(5)
    values = rng.random(300), rng.random(200) ** 0.2
    figure = similarity_histograms(*values)

    for axes, x in zip(figure.axes, values, strict=True):
        by_hand = [100 * np.mean([(low <= v < low + 0.05) for v in x]) for low in np.arange(20) / 20]
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(by_hand)
        assert axes.get_lines()[0].get_xdata()[0] == pytest.approx(x.mean())
    assert "similarity" in figure.axes[1].get_xlabel()
    assert "(%)" in figure.axes[0].get_ylabel()


def test_the_same_figure_is_the_same_file():
    first, second = (png(similarity_histograms([0, 0.1, 0.1], [0.5, 0.9, 1])) for _ in range(2))

    assert first == second
    assert first.startswith(b"\x89PNG")


@pytest.mark.parametrize("periods", [1, 2])
def test_pairs_are_those_of_the_definition(periods):
    rng = np.random.default_rng(9)
    profiles = ew.fit_profiles(
        ew.Traces(rng.integers(0, 5, (6, 8)), ew.Locations(n=5), step_minutes=180), periods=periods
    )
    pairs = pair_similarity(profiles)
    ordered = [(u, v) for u in range(6) for v in range(6) if (u < v if periods == 1 else u != v)]

    expected = [ew.geographic_similarity(profiles[u], profiles[v]) for u, v in ordered]
    assert pairs.geographic.tolist() == pytest.approx(expected)
    assert pairs.to_dict()["pairs"] == len(ordered)
    assert np.all(pairs.semantic >= pairs.geographic - 1e-12)


def test_one_user_has_no_pair_and_too_many_have_too_many(monkeypatch):
    profiles = ew.fit_profiles(ew.Traces([[0, 1], [1, 0], [0, 0]], ew.Locations(n=2)))

    with pytest.raises(ew.errors.NotEnoughUsers, match="at least 2 users, got 1"):
        pair_similarity(profiles[:1])
    monkeypatch.setattr(figures, "MAX_USERS", 2)
    with pytest.raises(ew.errors.InvalidParameter, match=r"E_TOO_LARGE: 3 users .* at most 2 users"):
        pair_similarity(profiles)


class TestFiguresOfResults:
    def test_every_figure_of_the_paper_has_labelled_axes(self):
        w = world()
        of_publishing = ("visiting_divergence", "time_allocation", "fake_seed_similarity", "differential_similarity")
        drawn = [getattr(figures, name)(w["publishing"]) for name in (*of_publishing, "similarity_qq")]

        for figure in (*drawn, figures.location_privacy(w["lbs"])):
            assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes)

    def test_bars_and_points_are_the_numbers(self):
        w = world()
        p, lbs = w["publishing"].to_dict(), w["lbs"]
        axes = figures.visiting_divergence(w["publishing"]).axes[0]
        heights = [p["visits"]["all"]["testing"], p["visits"]["all"]["fakes"]["mean"]]
        heights += [p["visits"]["all"][side] for side in ("uniform", "single")]
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(heights)

        drawn = figures.similarity_qq(p).axes[0].lines[1]
        assert drawn.get_xdata() == pytest.approx(p["qq"]["real"])
        assert drawn.get_ydata() == pytest.approx(p["qq"]["fake"])

        curve = figures.location_privacy(lbs).axes[0].containers[1][0]
        assert curve.get_ydata() == pytest.approx([lbs.figure("ours", n)["median"] for n in lbs.n_fakes])

    def test_maps_show_every_visited_place_and_class(self):
        w = world()
        visits = np.bincount(w["fakes"].r.ravel(), minlength=w["fakes"].R)
        where = w["fakes"].locations

        assert len(figures.visited_places(where, visits).axes[0].collections[0].get_offsets()) == np.sum(visits > 0)
        drawn = figures.places_by_class(where, w["classes"]).axes[0].collections
        assert [len(c.get_offsets()) for c in drawn] == w["classes"].sizes.tolist()

    def test_what_cannot_be_drawn_is_refused(self):
        w = world()
        alone = ew.evaluate_publishing(w["real"].r, None, w["fakes"].r)

        with pytest.raises(ew.errors.InvalidParameter, match="give `seed_index`"):
            figures.differential_similarity(alone)
        with pytest.raises(ew.errors.InvalidParameter, match="one result of the kind 'lbs', got 0"):
            figures.location_privacy(alone)
