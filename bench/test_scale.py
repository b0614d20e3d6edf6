"""The whole job at two sizes: no stage grows faster than people, and the table of stages is printed."""

import scale


def test_the_table_of_stages():
    cells = [scale.in_a_process(people, 400) for people in (500, 1000, 4000)][1:]  # the first one compiles
    assert all("failed" not in cell for cell in cells), cells
    told = {
        "cells": cells,
        "exponents": scale.exponents(cells),
        "beside": scale.beside_others(),
        "kernels": scale.hot_kernels(),
    }
    print("\n" + scale.report_of(told))
    # constant parts make small sizes look better, never worse
    assert told["exponents"]["fakes, 400 places"] < 1.2
    assert told["beside"]["walk, ms"] < told["beside"]["dense Viterbi in numpy, ms"]
    assert told["beside"]["pairing, ms a seed"] < told["beside"]["scipy assignment, ms a seed"]
