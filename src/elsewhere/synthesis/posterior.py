"""
Posterior sampling: a trace drawn from Pr{trace | candidate sets} by forward filter, backward sample (E49).

    alpha_1(r) = pi_bar(r),   alpha_{t+1}(r') = sum_r alpha_t(r) p_bar(r, r'),   Z = sum_r alpha_L(r)

over the candidates of each instant, and backwards r_L ~ alpha_L, r_t ~ alpha_t(r) p_bar(r, r_{t+1}).
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.synthesis import _kernels
from elsewhere.synthesis.semseed import Floats, Places, SemanticSeed, stream_key
from elsewhere.synthesis.viterbi import checked_block, checked_chain, no_path


class Sampled(NamedTuple):
    """
    A trace r drawn from the posterior.

    `loglik` = ln pi_bar(r_1) + sum_t ln p_bar(r_t, r_{t+1}); `log_posterior` = loglik - ln Z, the probability with
    which this very trace is drawn from these sets.
    """

    r: Places
    loglik: float
    log_posterior: float


def ffbs(
    semseed: SemanticSeed,
    first: ArrayLike,
    blocks: Sequence[Floats],
    *,
    rng: np.random.Generator,
) -> Sampled:
    """
    One trace from the posterior of the chain, given that it goes through the candidate sets.

    Parameters
    ----------
    semseed
        Candidate sets.
    first
        (R,) law of the first instant.
    blocks
        Item t holds p_bar from the candidates of instant t to those of t + 1. Read twice, forwards and backwards.
    rng
        Gives the 128 bits that start the stream of this call.

    Examples
    --------
    >>> sets = SemanticSeed.of([[0, 1], [1]])
    >>> sample = ffbs(sets, [.5, .5], [np.array([[.2], [.6]])], rng=np.random.default_rng(1))
    >>> sample.r.tolist(), round(float(np.exp(sample.log_posterior)), 3)
    ([1, 1], 0.75)

    """
    law = checked_chain(semseed, first, blocks)
    return sample(semseed, law, blocks, _kernels.open_stream(stream_key(rng), 0, 0))


def sample(semseed: SemanticSeed, first: Floats, blocks: Sequence[Floats], stream: NDArray[np.uint64]) -> Sampled:
    """The same from checked parts, with an open stream."""
    L, offset = len(semseed), semseed.offset
    alpha, log_z, in_logs = forward(semseed, first, blocks)
    at = np.empty(L, dtype=np.int64)
    at[-1] = _kernels.pick_end(alpha[offset[-2] :], in_logs, stream)
    if at[-1] < 0:
        raise no_path(L)
    steps = np.empty(L - 1)
    for t in range(L - 2, -1, -1):
        p = np.ascontiguousarray(blocks[t], dtype=np.float64)
        rows = np.arange(len(p), dtype=np.int32)
        at[t] = _kernels.pick_before(p, rows, at[t + 1], alpha[offset[t] : offset[t + 1]], in_logs, stream)
        steps[t] = p[at[t], at[t + 1]]
    r = semseed.places[offset[:-1] + at]
    loglik = float(np.log(first[r[0]]) + np.log(steps).sum())
    return Sampled(r, loglik, loglik - log_z)


def forward(semseed: SemanticSeed, first: Floats, blocks: Sequence[Floats]) -> tuple[Floats, float, bool]:
    """Alpha of every candidate, ln Z, and whether alpha holds logarithms because floats would have lost their range."""
    alpha = np.empty(len(semseed.places))
    sets = [slice(a, b) for a, b in pairwise(semseed.offset)]
    for in_logs in (False, True):
        log_z = _kernels.forward_start(first, semseed[0], in_logs, alpha[sets[0]])
        for block, here, there in zip(blocks, sets[:-1], sets[1:], strict=True):
            p = checked_block(block, here.stop - here.start, there.stop - there.start)
            rows, cols = np.arange(p.shape[0], dtype=np.int32), np.arange(p.shape[1], dtype=np.int32)
            log_z += _kernels.forward_step(p, rows, cols, alpha[here], in_logs, alpha[there])
        if not np.isnan(log_z):
            break
    if in_logs:
        last = alpha[sets[-1]]
        log_z = _kernels.from_logs(last, np.empty(len(last)))
    return alpha, float(log_z), in_logs
