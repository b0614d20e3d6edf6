"""The table of sizes: its arithmetic, and that what it compares can be run."""

import pytest
import scale


def cell(people, places, seconds):
    stages = {stage: {"seconds": seconds, "GB": 0.5} for stage in scale.STAGES}
    sizes = {"people": people, "places": places, "days": 1, "stages": stages}
    return sizes | {"seconds": 10 * seconds, "GB": 0.5, "fakes per second": people / seconds}


def test_growth_is_the_slope_over_people_of_one_map():
    failed = {"people": 9, "places": 4000, "failed": []}
    cells = [cell(1000, 400, 1.0), cell(4000, 400, 8.0), cell(1000, 4000, 2.0), failed]
    assert scale.exponents(cells) == pytest.approx({f"{s}, 400 places": 1.5 for s in [*scale.STAGES, "all"]})
    assert "| 4,000 x 400 | 8.0 |" in scale.table(cells[:3])


def test_what_is_compared_runs():
    beside = scale.beside_others(places=60, walks=256, seeds=64, people=200)
    kernels = scale.hot_kernels(places=60, people=200)
    told = {"cells": [cell(1000, 400, 1.0)], "exponents": {}, "beside": beside, "kernels": kernels}
    assert all(value > 0 for value in beside.values())
    assert scale.report_of(told).count(" x a loop over the same bytes") == 2


def test_stages_name_functions_of_the_job():
    watch = scale.Watch()
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (path.split(":") for functions in scale.STAGES.values() for path in functions):
            where = scale.importlib.import_module(f"elsewhere.{module}")
            patch.setattr(where, name, watch.timed("reading", getattr(where, name)))
    assert watch.timed("reading", sum)([1, 2]) == 3
    assert watch.stages["reading"]["GB"] > 0
