"""The arithmetic of the time left, with a clock of our own; what is said of real runs is in `bench/time_left.py`."""

import io
import math
from functools import partial

import pytest
from rich.console import Console

from elsewhere.cli import output
from elsewhere.run.time_left import (
    KEPT,
    MACHINE,
    NINE_OF_TEN,
    OTHERS,
    REST,
    SHORT,
    UNEQUAL,
    TimeLeft,
    attacks,
    expected_seconds,
)

EXPECTED = {"a": 30.0, "b": 40.0, "c": 20.0}


@pytest.fixture
def clock():
    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    return Clock()


def told(*measured):
    """Mean and variance of the logarithm of the slowness by normal (mean, variance) of what was measured."""
    weights = [1 / variance for _, variance in measured]
    return sum(w * mean for w, (mean, _) in zip(weights, measured, strict=True)) / sum(weights), 1 / sum(weights)


MACHINES = (0.0, MACHINE**2)


def test_nothing_is_said_before_anything_is_known(clock):
    left = TimeLeft(clock)
    left.at("reading", 0, 0)
    clock.now += 500
    assert left() is None
    assert left.range() is None
    assert left.in_words() == ""
    left.expect(EXPECTED)
    assert left() == 90.0  # reading tells nothing of the speed of other stages
    left.at("what nobody expects")
    assert left() == 90.0
    left.at("b")
    left.at("c")
    assert left() == 20.0


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


def test_finished_stages_tell_the_machine_and_finished_pieces_their_own_stage(clock):
    left = TimeLeft(clock)
    left.expect(EXPECTED)
    left.at("a", 0, 0)
    clock.now += 90
    left.at("b", 0, 4)
    machine, unsure = told(MACHINES, (math.log(3), OTHERS**2 + SHORT / 30))
    assert left() == pytest.approx(60 * math.exp(machine))
    clock.now += 60  # of 10: this stage is slower still
    left.at("b", 1, 4)
    own, _ = told((machine, unsure + OTHERS**2), (math.log(6), SHORT / 10))
    others, _ = told(MACHINES, (math.log(3), OTHERS**2 + SHORT / 30), (math.log(6), OTHERS**2 + SHORT / 10))
    assert left() == pytest.approx(30 * math.exp(own) + 20 * math.exp(others))
    assert machine < others < own < math.log(6)
    clock.now += 5
    assert left() == pytest.approx(30 * math.exp(own) + 20 * math.exp(others) - 5)


def test_reading_tells_how_busy_the_machine_is(clock):
    working = 7.0
    left, nobody = TimeLeft(clock, lambda: working), TimeLeft(clock)
    clock.now, working = clock.now + 20, working + 5.0  # a quarter of a processor
    for one in (left, nobody):
        one.expect(EXPECTED)
    assert left() == pytest.approx(4 * 90)
    assert nobody() == 90  # of a cluster, say
    clock.now += 30
    left.at("b")
    machine, _ = told((math.log(4), MACHINE**2), (0.0, OTHERS**2 + SHORT / 30))
    assert left() == pytest.approx(60 * math.exp(machine))

    threads = TimeLeft(clock, lambda: working)
    clock.now, working = clock.now + 20, working + 40.0  # of two at once
    threads.expect(EXPECTED)
    assert threads() == 90
    soon = TimeLeft(clock, lambda: working)
    clock.now += 0.5  # as where the reading is kept from before
    soon.expect(EXPECTED)
    assert soon() == 90


def test_one_stage_that_is_far_off_is_no_slow_machine(clock):
    left = TimeLeft(clock)
    left.expect({"a": 30.0, "b": 30.0, "c": 30.0, "d": 30.0})
    for stage, seconds in (("a", 30), ("b", 150), ("c", 30), ("d", 0)):
        left.at(stage)
        clock.now += seconds
    assert left() < 30 * (30 + 150 + 30) / 90
    assert 30 < left() < 30 * 5 ** (1 / 3)


def test_the_range_is_that_of_what_is_not_known(clock):
    left = TimeLeft(clock)
    left.expect({"a": 30.0, "b": 40.0})
    left.at("a")
    # the first stage is off by the machine and by itself; the second too, as if the machine were another
    off = math.sqrt(30**2 * (MACHINE**2 + OTHERS**2) + 40**2 * MACHINE**2 + (40 * OTHERS) ** 2) / 70
    assert left.range() == pytest.approx((70 * math.exp(-NINE_OF_TEN * off), 70 * math.exp(NINE_OF_TEN * off)))
    before = left.range()
    clock.now += 30
    left.at("b", 0, 4)
    clock.now += 10
    left.at("b", 1, 4)
    low, high = left.range()
    assert low < 30 < high
    assert high / low < before[1] / before[0]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        ({"a": 40.0}, "1 to 3 min left"),
        ({"a": 10.0}, "about 1 min left"),
        ({"a": 600.0}, "3 to 36 min left"),
        ({"a": 6e4}, "5 to 58 h left"),
    ],
)
def test_where_little_is_known_both_ends_are_told(clock, seconds, words):
    left = TimeLeft(clock)
    left.expect(seconds)
    left.at("a")
    assert left.in_words() == words


def test_one_number_is_told_where_it_is_within_half_as_much_again(clock):
    left = TimeLeft(clock)
    left.expect({"a": 1200.0})
    for done in range(6):
        left.at("a", done, 10)
        clock.now += 240  # of 120
    assert left.range()[1] < 1.5 * left()
    assert left.in_words() == "about 18 min left"  # four pieces of 4 min, and what is left of a fifth


def test_pieces_have_their_own_weights_and_others_are_alike(clock):
    left = TimeLeft(clock)
    left.expect({**EXPECTED, "b": (10, 30)})
    left.at("b", 0, 2)
    clock.now += 10
    left.at("b", 1, 2)
    assert left() == 50
    left.at("b", 1, 4)  # of another number than was expected
    assert left() == 50
    left.expect({**EXPECTED, "b": (10, 20, 10)})
    left.at("b", 2, 2)  # and what follows them
    assert left() == 30


def test_unequal_pieces_tell_less_than_those_that_are_alike(clock):
    said = []
    for seconds, noise in ((40.0, SHORT), ((20.0, 20.0), UNEQUAL)):
        left = TimeLeft(clock)
        left.expect({"b": seconds})
        left.at("b", 0, 2)
        clock.now += 80
        left.at("b", 1, 2)
        own, _ = told((0.0, MACHINE**2 + OTHERS**2), (math.log(4), noise / 20))
        said.append(left())
        assert said[-1] == pytest.approx(20 * math.exp(own))
    assert said[1] < said[0]


def test_a_piece_that_lasts_longer_slows_all_others(clock):
    left = TimeLeft(clock)
    left.expect(EXPECTED)
    left.at("b", 0, 0)
    said = []
    for seconds in (20, 40, 80, 160):
        clock.now = 100.0 + seconds
        said.append(left())
    others = [told(MACHINES, (math.log(s / 40), OTHERS**2 + SHORT / 40))[0] for s in (80, 160)]
    # more than is expected of it is never said to be over at once
    assert said[:2] == pytest.approx([40, 20 + REST * 40])
    assert said[2:] == pytest.approx(
        [20 * math.exp(slow) + REST * s for slow, s in zip(others, (80, 160), strict=True)]
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
    own, _ = told((0.0, MACHINE**2 + OTHERS**2), (math.log(1.5), SHORT / 1))
    others, _ = told(MACHINES, (math.log(1.5), OTHERS**2 + SHORT / 1))
    assert left() == pytest.approx(19 * math.exp(own) + 20 * math.exp(others))


def expected(*sizes, **options):
    """Return the seconds of each stage, those of its pieces added up."""
    left = TimeLeft()
    left.expect(expected_seconds(*sizes, **options))
    return left.expected


def test_more_people_places_and_fakes_take_longer():
    few = expected(1000, 72, 1000, 300, per_seed=1, report=True)
    order = ["model", "walk", "making fakes", "writing the fakes", "publishing", "uses", "attacking the fakes"]
    assert list(few) == [*order, "writing the reports"]
    for more in (
        expected(1000, 72, 1000, 900, per_seed=1, report=True),
        expected(1000, 144, 1000, 300, per_seed=1, report=True),
        expected(1000, 72, 1000, 300, per_seed=9, report=True),
        expected(2000, 72, 2000, 300, per_seed=1, report=True),
    ):
        assert sum(more.values()) > sum(few.values())
        assert all(more[stage] >= few[stage] for stage in few)
    lives = expected(2000, 72, 1000, 300, per_seed=1, report=True)
    assert sum(lives.values()) > sum(few.values())
    assert list(lives) == [*order[:6], "lives", *order[6:], "writing the reports"]
    assert list(expected(1000, 72, 1000, 300, per_seed=1, report=False)) == order[:4]
    in_one_part = expected(1000, 72, 1000, 300, per_seed=1, report=True, product=False)
    assert list(in_one_part) == ["learning", *order[2:], "writing the reports"]
    assert sum(in_one_part.values()) == pytest.approx(sum(few.values()))


def test_every_attack_of_a_report_has_its_seconds():
    from elsewhere.evaluation import judge
    from elsewhere.evaluation import lives as over_days
    from elsewhere.evaluation.attacks.audit import ALL
    from elsewhere.run import time_left

    few, large, lives = attacks(5000, 72, 5000, 300), attacks(5000, 72, 5000, 20_000), attacks(140_000, 72, 5000, 300)
    assert len(few) == len(ALL)
    assert [ALL[i] for i in range(len(ALL)) if attacks(5000, 30, 5000, 300)[i] < few[i]] == ["A17", "A19"]
    assert len(lives) == len(ALL) + 1  # and once more over all days
    assert attacks(2800, 72, 400, 300)[ALL.index("A18")] > attacks(2400, 72, 400, 300)[ALL.index("A18")] + 3
    assert expected_seconds(5000, 72, 5000, 300, per_seed=1, report=True)["attacking the fakes"] == few
    assert [ALL[i] for i in range(len(ALL)) if large[i] > few[i]] == ["A5", "A6"]
    assert sum(few) < sum(lives) < 3 * sum(few)
    assert (time_left.ATTACKED, time_left.DAYS_ATTACKED) == (judge.MOST_PEOPLE, judge.MOST_DAYS)
    assert time_left.COMPARED == over_days.MOST_PEOPLE


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
        left.expect({"a": 400.0, "b": 100.0})
        left.at("a", 1, 4)
        show("a", 1, 4, left)
        assert "2 of 4: a 1/4" in said()
        assert left.in_words() in said()
        before = left.in_words()
        clock.now += 70  # nothing else is told meanwhile
        assert left.in_words() != before
        assert left.in_words() in said()
