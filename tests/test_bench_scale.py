"""The table of sizes: its arithmetic, and that a size can be measured."""

import pytest
import scale


def cell(people, days, seconds):
    stages = {stage: {"seconds": seconds, "GB": 0.5} for stage in scale.STAGES}
    size = {"people": people, "days": days, "places": 400, "visits": 10 * people * days, "fakes": people}
    return size | {"stages": stages, "seconds": 4 * seconds, "GB": 0.5}


def test_growth_is_the_slope_over_one_size_alone():
    failed = {"people": 9, "days": 1, "places": 4000, "failed": ["E_TOO_FEW"]}
    cells = [cell(1000, 7, 1.0), cell(4000, 7, 8.0), cell(1000, 14, 2.0), failed]
    by_people = {f"{stage} by people": 1.5 for stage in scale.STAGES}
    by_days = {f"{stage} by days": 1.0 for stage in scale.STAGES}

    assert scale.exponents(cells) == pytest.approx(by_people | by_days)
    assert scale.row(cells[1]) == "| 4,000 | 7 | 400 | 280,000 | 8.0 | 8.0 | 8.0 | 8.0 | 32.0 | 0.50 | 0.29 |"
    assert scale.row(failed) == "| 9 | 1 | 4,000 | E_TOO_FEW |"


def test_a_size_is_measured(tmp_path):
    found = scale.measure(*scale.COMPILING, tmp_path, True)

    assert found["fakes"] > 0
    assert all(found["stages"][stage]["seconds"] > 0 for stage in scale.STAGES)
