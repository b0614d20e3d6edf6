"""The arithmetic of the time left, with a clock of our own; what is said of real runs is in `bench/time_left.py`."""

import io
from functools import partial

import pytest
from rich.console import Console

from elsewhere.cli import output
from elsewhere.run.time_left import KEPT, PRIOR, REST, TimeLeft, attacks, usual

EXPECTED = {"a": 30.0, "b": 40.0, "c": 20.0}


@pytest.fixture
def clock():
    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    return Clock()


def test_nothing_is_said_before_anything_is_known(clock):
    left = TimeLeft(clock)
    left.at("reading", 0, 0)
    clock.now += 500
    assert left() is None
    left.expect(EXPECTED)
    left.at("a", 0, 0)
    assert left() == 90.0  # reading tells nothing of the speed of other stages


def test_a_usual_machine_is_told_the_sum_of_what_is_left(clock):
    left = TimeLeft(clock)
    left.expect(EXPECTED)
    said = []
    for stage, done, total, seconds in [
        ("a", 0, 0, 30),
        ("b", 0, 4, 10),
        ("b", 1, 4, 10),
        ("b", 2, 4, 20),
        ("c", 0, 0, 5),
    ]:
        left.at(stage, done, total)
        said.append(left())
        clock.now += seconds
    assert said == [90, 60, 50, 40, 20]
    assert left() == 15


def test_a_machine_is_as_slow_in_what_comes_as_it_was(clock):
    left = TimeLeft(clock)
    left.expect(EXPECTED)
    left.at("a", 0, 0)
    clock.now += 90
    left.at("b", 0, 4)
    slow = (PRIOR + 90) / (PRIOR + 30)
    assert left() == pytest.approx(60 * slow)
    clock.now += 30
    left.at("b", 1, 4)
    slow = (PRIOR + 120) / (PRIOR + 40)
    assert left() == pytest.approx(50 * slow)
    clock.now += 5
    assert left() == pytest.approx(50 * slow - 5)


def test_pieces_have_their_own_weights_and_others_are_alike(clock):
    left = TimeLeft(clock)
    left.expect(EXPECTED, {"b": (1, 3)})
    left.at("b", 0, 2)
    clock.now += 10
    left.at("b", 1, 2)
    assert left() == 50
    left.at("b", 1, 4)  # of another number than was expected
    assert left() == 50


def test_a_piece_that_lasts_longer_slows_all_others(clock):
    left = TimeLeft(clock)
    left.expect(EXPECTED)
    left.at("b", 0, 0)
    said = []
    for seconds in (20, 40, 80, 160):
        clock.now = 100.0 + seconds
        said.append(left())
    # more than is expected of it is never said to be over at once
    assert said == pytest.approx(
        [
            40,
            20 + REST * 40,
            20 * (PRIOR + 80) / (PRIOR + 40) + REST * 80,
            20 * (PRIOR + 160) / (PRIOR + 40) + REST * 160,
        ]
    )


def test_what_is_kept_from_a_run_that_was_stopped_tells_no_speed(clock):
    left = TimeLeft(clock)
    left.expect(EXPECTED)
    left.at("a", 0, 0)
    clock.now += 0.9 * KEPT * 30
    left.at("b", 0, 40)
    for done in range(1, 21):
        clock.now += 0.9 * KEPT * 1
        left.at("b", done, 40)
    assert left() == 40
    clock.now += 1.5
    left.at("b", 21, 40)
    assert left() == pytest.approx(39 * (PRIOR + 1.5) / (PRIOR + 1))


def test_more_people_places_and_fakes_take_longer():
    few = usual(1000, 72, 1000, 300, per_seed=1, report=True)
    assert list(few) == ["learning", "making fakes", "judging the fakes", "attacking the fakes", "writing the reports"]
    for more in (
        usual(2000, 72, 1000, 300, per_seed=1, report=True),
        usual(1000, 72, 1000, 900, per_seed=1, report=True),
        usual(1000, 144, 1000, 300, per_seed=1, report=True),
        usual(1000, 72, 1000, 300, per_seed=9, report=True),
        usual(1000, 72, 2000, 300, per_seed=1, report=True),
    ):
        assert sum(more.values()) > sum(few.values())
        assert all(more[stage] >= few[stage] for stage in few)
    assert list(usual(1000, 72, 1000, 300, per_seed=1, report=False)) == ["learning", "making fakes"]


def test_every_attack_of_a_report_has_its_seconds():
    from elsewhere.evaluation.attacks.audit import ALL

    few, large, lives = attacks(5000, 5000, 300), attacks(5000, 5000, 20_000), attacks(140_000, 5000, 300)
    assert len(few) == len(ALL)
    assert sum(few) == usual(5000, 72, 5000, 300, per_seed=1, report=True)["attacking the fakes"]
    assert [ALL[i] for i in range(len(ALL)) if large[i] > few[i]] == ["A5", "A6"]
    assert [ALL[i] for i in range(len(ALL)) if lives[i] > few[i]] == ["A5"]


def test_the_bar_says_how_many_minutes_are_left_and_goes_on_saying_it(monkeypatch, clock):
    shown = io.StringIO()
    terminal = partial(Console, file=shown, force_terminal=True, width=120)
    monkeypatch.setattr(output, "Console", lambda **_: terminal())
    left = TimeLeft(clock)

    def said():
        shown.truncate(shown.seek(0))
        progress.refresh()
        return shown.getvalue()

    with output.bars(("reading", "a", "b", "c")) as show:
        progress = next(cell.cell_contents for cell in show.__closure__ if hasattr(cell.cell_contents, "refresh"))
        left.at("reading", 0, 0)
        show("reading", 0, 0, left)
        assert "1 of 4: reading" in said()
        assert "left" not in said()
        left.expect({"a": 400.0, "b": 7200.0})
        left.at("a", 1, 4)
        show("a", 1, 4, left)
        assert "2 of 4: a 1/4" in said()
        assert "about 2 h left" in said()
        left.expect({"a": 400.0, "b": 100.0})
        left.at("a", 1, 4)
        assert "about 7 min left" in said()
        clock.now += 70  # nothing else is told meanwhile
        assert "about 6 min left" in said()
