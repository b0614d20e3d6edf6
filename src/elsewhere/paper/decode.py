"""
HMMDecode (fig:alg): a fake through candidate sets, by randomised Viterbi or by a draw from the posterior.

Randomised Viterbi: the paper's decoder, the most probable trace through candidate sets under perturbed chances.

    delta_1(r) = pi_bar(r) X,   delta_{t+1}(r') = max_r delta_t(r) p_bar(r, r') X,   X ~ Uniform[1, par_v]

with one X per candidate of the first slot and one per edge (t, r, r') (E46). delta is scaled in every step; where
floats lose their range all the same, the path is computed again in logarithms, with the same numbers. A path of
probability 0 is `NoFeasiblePath`, never a place (E33).

Posterior sampling: a trace drawn from Pr{trace | candidate sets} by forward filter, backward sample (E49).

    alpha_1(r) = pi_bar(r),   alpha_{t+1}(r') = sum_r alpha_t(r) p_bar(r, r'),   Z = sum_r alpha_L(r)

over the candidates of each slot, and backwards r_L ~ alpha_L, r_t ~ alpha_t(r) p_bar(r, r_{t+1}).

Both loops over slots exist twice. Here p_bar is read block by block: by `attempt.py` where a table of p_bar between all
candidates of a seed would be too large, and by whoever calls `viterbi` or `ffbs`. Everywhere else the kernels `viterbi`
and `ffbs` of `_paper_kernels.py` run, on tables of p_bar. The steps within both loops are the same kernels.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import InvalidParameter, NoFeasiblePath, require_between
from elsewhere.paper import _generate_kernels as _kernels
from elsewhere.paper._streams_kernels import open_stream
from elsewhere.paper.semseed import Floats, Places, SemanticSeed, stream_key


class Decoded(NamedTuple):
    """A trace through the candidate sets and ln Pr{trace} = ln pi_bar(r_1) + sum_t ln p_bar(r_t, r_{t+1})."""

    r: Places
    loglik: float


def viterbi(
    semseed: SemanticSeed,
    first: ArrayLike,
    blocks: Sequence[Floats],
    *,
    par_v: float = 4.0,
    rng: np.random.Generator,
) -> Decoded:
    """
    Draw one decoding of `semseed`; par_v = 1 is exact Viterbi, where the lowest of equally good places wins.

    Parameters
    ----------
    semseed
        Candidate sets.
    first
        (R,) law of the first slot.
    blocks
        Item t holds p_bar from the candidates of slot t to those of t + 1. Read in order, a second time if floats
        lose their range.
    par_v
        Upper end of the random factors, at least 1.
    rng
        Gives the 128 bits that start the stream of this call.

    Examples
    --------
    >>> sets = SemanticSeed.of([[0, 1], [0, 1]])
    >>> viterbi(sets, [.6, .4], [np.array([[.5, .5], [.1, .9]])], par_v=1, rng=np.random.default_rng(1)).r.tolist()
    [1, 1]

    """
    require_par_v(par_v)
    law = check_chain(semseed, first, blocks)
    return viterbi_by_blocks(semseed, law, blocks, float(par_v), open_stream(stream_key(rng), 0, 0))


def viterbi_by_blocks(
    semseed: SemanticSeed, first: Floats, blocks: Sequence[Floats], par_v: float, stream: NDArray[np.uint64]
) -> Decoded:
    """Do the same from checked parts, with an open stream: the loop of the kernel `viterbi`, without its tables."""
    L, offset = len(semseed), semseed.offset
    position = (np.arange(offset[-1]) - np.repeat(offset[:-1], np.diff(offset))).astype(np.int32)
    sets = [slice(a, b) for a, b in pairwise(offset)]
    delta, back = np.empty(offset[-1]), np.zeros(offset[-1], dtype=np.int64)
    for in_logs in (False, True):
        # a repetition draws the same numbers, see the kernel
        numbers = stream.copy()
        _kernels.viterbi_start(first, semseed[0], par_v, in_logs, numbers, delta)
        in_range, p_back = True, []
        for block, here, there in zip(blocks, sets[:-1], sets[1:], strict=True):
            rows, cols = position[here], position[there]
            p = check_block(block, len(rows), len(cols))
            in_range &= _kernels.viterbi_step(
                p, rows, cols, delta[here], par_v, in_logs, numbers, delta[there], back[there]
            )
            p_back.append(p[back[there], cols])
        if in_range:
            break
    at = np.empty(L, dtype=np.int32)
    if not _kernels.trace_back(delta[sets[-1]], back, offset, position, in_logs, at):
        raise no_path(L)
    r = semseed.places[offset[:-1] + at]
    steps = [p[j] for p, j in zip(p_back, at[1:], strict=True)]
    return Decoded(r, float(np.log(first[r[0]]) + np.log(steps).sum()))


def require_par_v(par_v: float) -> float:
    """Return `par_v` if it lies in [1, infinity)."""
    return require_between("par_v", par_v, 1, np.inf, open_high=True)


def check_chain(semseed: SemanticSeed, first: ArrayLike, blocks: Sequence[Floats]) -> Floats:
    """Return `first` as an array that covers every candidate, with one block per step."""
    law = np.array(first, dtype=np.float64, ndmin=1)
    known = law.ndim == 1 and semseed.places.min() >= 0 and semseed.places.max() < len(law)
    if not (known and law.min() >= 0 and law.max() < np.inf):
        raise InvalidParameter(
            "`first` must hold a finite number, at least 0, for every candidate place.", code="E_SHAPE"
        )
    if len(blocks) != len(semseed) - 1:
        raise InvalidParameter(
            f"`blocks` must hold {len(semseed) - 1} arrays, one per step, got {len(blocks)}.", code="E_SHAPE"
        )
    return law


def check_block(block: Floats, n: int, m: int) -> Floats:
    """Return the block as the kernels read it: they trust its shape, and that no entry is negative or NaN."""
    p = np.ascontiguousarray(block, dtype=np.float64)
    if p.shape != (n, m) or not (p.min() >= 0 and p.max() < np.inf):
        raise InvalidParameter(
            f"a block must hold finite numbers, at least 0, for {n} x {m} moves, got shape {p.shape}.", code="E_SHAPE"
        )
    return p


def no_path(L: int) -> NoFeasiblePath:
    """Return the error of a decoder that finds only paths of probability 0."""
    return NoFeasiblePath(f"no trace of positive probability goes through the candidate sets of these {L} slots.")


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
    Draw one trace from the posterior of the chain, given that it goes through the candidate sets.

    Parameters
    ----------
    semseed
        Candidate sets.
    first
        (R,) law of the first slot.
    blocks
        Item t holds p_bar from the candidates of slot t to those of t + 1. Read twice, forwards and backwards.
    rng
        Gives the 128 bits that start the stream of this call.

    Examples
    --------
    >>> sets = SemanticSeed.of([[0, 1], [1]])
    >>> sample = ffbs(sets, [.5, .5], [np.array([[.2], [.6]])], rng=np.random.default_rng(1))
    >>> sample.r.tolist(), round(float(np.exp(sample.log_posterior)), 3)
    ([1, 1], 0.75)

    """
    law = check_chain(semseed, first, blocks)
    return sample(semseed, law, blocks, open_stream(stream_key(rng), 0, 0))


def sample(semseed: SemanticSeed, first: Floats, blocks: Sequence[Floats], stream: NDArray[np.uint64]) -> Sampled:
    """Do the same from checked parts, with an open stream."""
    L, offset = len(semseed), semseed.offset
    alpha, log_z, in_logs = forward(semseed, first, blocks)
    at = np.empty(L, dtype=np.int64)
    at[-1] = _kernels.draw_last(alpha[offset[-2] :], in_logs, stream)
    if at[-1] < 0:
        raise no_path(L)
    steps = np.empty(L - 1)
    for t in range(L - 2, -1, -1):
        p = np.ascontiguousarray(blocks[t], dtype=np.float64)
        rows = np.arange(len(p), dtype=np.int32)
        at[t] = _kernels.draw_before(p, rows, at[t + 1], alpha[offset[t] : offset[t + 1]], in_logs, stream)
        steps[t] = p[at[t], at[t + 1]]
    r = semseed.places[offset[:-1] + at]
    loglik = float(np.log(first[r[0]]) + np.log(steps).sum())
    return Sampled(r, loglik, loglik - log_z)


def forward(semseed: SemanticSeed, first: Floats, blocks: Sequence[Floats]) -> tuple[Floats, float, bool]:
    """
    Return alpha of every candidate, ln Z, and whether alpha holds logarithms because floats would have lost
    their range.
    """
    alpha = np.empty(len(semseed.places))
    sets = [slice(a, b) for a, b in pairwise(semseed.offset)]
    for in_logs in (False, True):
        log_z = _kernels.forward_start(first, semseed[0], in_logs, alpha[sets[0]])
        for block, here, there in zip(blocks, sets[:-1], sets[1:], strict=True):
            p = check_block(block, here.stop - here.start, there.stop - there.start)
            rows, cols = np.arange(p.shape[0], dtype=np.int32), np.arange(p.shape[1], dtype=np.int32)
            log_z += _kernels.forward_step(p, rows, cols, alpha[here], in_logs, alpha[there])
        if not np.isnan(log_z):
            break
    if in_logs:
        last = alpha[sets[-1]]
        log_z = _kernels.from_logs(last, np.empty(len(last)))
    return alpha, float(log_z), in_logs
