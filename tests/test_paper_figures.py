"""The paper's figures of other data: what they show is what was measured."""

import numpy as np
import pytest

import elsewhere as ew
from elsewhere.evaluation.lbs import OURS
from elsewhere.evaluation.reproduce import reproduce
from elsewhere.paper.generate_fake import ClassSets
from elsewhere.reports import charts
from elsewhere.reports import paper_figures as drawing

pytestmark = pytest.mark.filterwarnings("ignore:.* classes instead of", "ignore:`alternates=")


@pytest.fixture(scope="module")
def result():
    town = ew.simulate_town(users=16, days=2, locations=80, rng=np.random.default_rng(1)).traces
    return reproduce(town, per_seed=20, kappa=6, repeats=(1, 1), rng=np.random.default_rng(2))


def words(figure):
    return " ".join(text.get_text() for axes in figure.axes for text in [*axes.texts, axes.title, axes.xaxis.label])


def test_every_figure_shows_the_numbers(result):
    figures = drawing.paper_figures(result)

    assert [*figures] == ["procedure", "dataset", "similarity", "differential", "own-seed", "qq", "location-privacy"]
    bars = [patch.get_height() for patch in figures["similarity"].axes[1].patches]
    np.testing.assert_allclose(bars, np.histogram(np.round(result.semantic, 9), drawing.BINS)[0] / 120)
    x, y = figures["qq"].axes[0].lines[1].get_data()
    assert x[49] == np.median(result.publishing.samples["real_real"])
    assert y[49] == np.median(result.publishing.samples["fake_fake"])
    left, right = figures["location-privacy"].axes
    ours = result.service.generators.index(OURS)
    for axes, cost in ((left, 0), (right, 1)):
        line = axes.containers[ours].lines[0]
        np.testing.assert_allclose(line.get_xdata(), np.nanmedian(result.service.overhead[:, ours, :, cost], axis=0))
        expected = [result.service.figure(OURS, m)["median"] for m in result.service.n_fakes]
        np.testing.assert_allclose(line.get_ydata(), expected)
    assert f"{result.fakes.learnt.classes.kappa} semantic classes" in words(figures["dataset"])
    assert all(charts.png(figure).startswith(b"\x89PNG") for figure in figures.values())


def test_the_procedure_shows_what_is_removed_merged_and_drawn():
    C = ClassSets.of([0, 0, 0, 1, 1, 1, 1])
    trace, fake = np.array([0, 3]), np.array([1, 5])
    merged = [{0, 1, 2, 4}, {3, 4, 5, 6}]
    semseed = [{1, 2, 4}, {4, 5, 6}]

    assert drawing._column(0, trace, C, merged, semseed, fake) == [
        (1, "fake"), (0, "removed"), (2, "own"), (4, "merged")
    ]  # fmt: skip
    figure = drawing._draw_procedure(trace, C, merged, semseed, fake)
    cells = {at: cell.get_text().get_text() for at, cell in figure.axes[0].tables[0].get_celld().items()}
    assert [cells[i, 0] for i in range(1, 6)] == ["a", "[b]", "\N{MULTIPLICATION SIGN}a", "c", "+d"]
    assert "removed" in words(figure)
