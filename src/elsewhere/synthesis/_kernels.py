"""
Compiled loops of the synthesis: whole attempts in one call, of the parts beside it.

`streams` are the random numbers, `candidates` the semantic seed, `paths` both decoders. numba keeps machine code per
file and looks at that file's date alone: after a change in a part, remove the `__pycache__` of those who call it.
"""

import numpy as np

from elsewhere._jit import njit
from elsewhere.synthesis.candidates._kernels import (
    semantic_seed,
)
from elsewhere.synthesis.paths._kernels import (
    backward,
    decode,
    ffbs,
    follow,
    forward,
    forward_start,
    forward_step,
    from_logs,
    pick,
    pick_before,
    pick_end,
    viterbi,
    viterbi_start,
    viterbi_step,
)
from elsewhere.synthesis.streams._kernels import (
    open_stream,
    uniform,
)

__all__ = [
    "NO_PATH",
    "OK",
    "UNFAKEABLE",
    "attempts",
    "backward",
    "decode",
    "ffbs",
    "follow",
    "forward",
    "forward_start",
    "forward_step",
    "from_logs",
    "open_stream",
    "pick",
    "pick_before",
    "pick_end",
    "semantic_seed",
    "uniform",
    "viterbi",
    "viterbi_start",
    "viterbi_step",
]

OK, NO_PATH, UNFAKEABLE = 0, 1, 2


@njit
def attempts(seeds, rows, tries, classes, blur, chain, par_v, key, fakes, loglik, status):
    """One attempt per row: semantic seed, then decoding; fills `fakes`, `loglik` and `status`."""
    for b in range(len(seeds)):
        stream = open_stream(key, tries[b], rows[b])
        offset, places, _ = semantic_seed(seeds[b], classes, blur, stream)
        for t in range(fakes.shape[1]):
            fakes[b, t] = -1
        loglik[b], status[b] = -np.inf, UNFAKEABLE
        if len(places) > 0:
            loglik[b] = decode(chain, offset, places, par_v, stream, fakes[b])
            status[b] = OK if loglik[b] > -np.inf else NO_PATH
