"""The figures of the paper: their bars are the numbers, their axes are labelled, the same twice."""

import numpy as np
import pytest

import elsewhere as ew
from elsewhere.reports import similarity
from elsewhere.reports.figures import png, similarity_histograms
from elsewhere.reports.similarity import pair_similarity, shares


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

    with pytest.raises(ew.NotEnoughUsers, match="at least 2 users, got 1"):
        pair_similarity(profiles[:1])
    monkeypatch.setattr(similarity, "MAX_USERS", 2)
    with pytest.raises(ew.InvalidParameter, match=r"E_TOO_LARGE: 3 users .* at most 2 users"):
        pair_similarity(profiles)
