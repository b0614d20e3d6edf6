"""
Attempts at fakes, many at a time: semantic seed and decoding in one compiled call (GenerateFake of `fig:alg`).

Attempt i on seed s draws from a stream of its own (key of the run, s, i), so what it makes depends on neither the
other attempts nor the number of workers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.errors import InvalidParameter, InvalidTraces, NoFeasiblePath, Unfakeable, require_choice
from elsewhere.paper import _generate_kernels as _kernels
from elsewhere.paper import decode
from elsewhere.paper._streams_kernels import open_stream
from elsewhere.paper.aggregate import AggregateModel
from elsewhere.paper.semseed import Blur, ClassSets, Floats, Ints, Places, SemanticSeed, blur_seed

SAMPLERS = ("viterbi", "ffbs")
OK, NO_PATH, UNFAKEABLE = _kernels.OK, _kernels.NO_PATH, _kernels.UNFAKEABLE
# numbers, 256 MiB: above that p_bar is not held as tables but computed block by block
LARGEST_TABLE = 2**25


class Chain(NamedTuple):
    """The aggregate model as the kernels read it: `table[pair[t]]` is p_bar from slot t to t + 1."""

    first: Floats
    table: Floats
    pair: Ints


class AttemptBatch(NamedTuple):
    """
    What came of a batch of attempts.

    Parameters
    ----------
    r
        (B, L) places; -1 throughout where the attempt failed.
    loglik
        (B,) ln Pr{r} under the aggregate model; -inf where the attempt failed.
    status
        (B,) OK, NO_PATH (E33) or UNFAKEABLE (E45).

    """

    r: Places
    loglik: Floats
    status: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class _Blocks(Sequence[Floats]):
    """p_bar between neighbouring candidate sets, computed when read."""

    model: AggregateModel
    tau: Ints
    semseed: SemanticSeed

    def __len__(self) -> int:
        return len(self.tau) - 1

    def __getitem__(self, t: int) -> Floats:  # type: ignore[override]
        if not 0 <= t < len(self):
            raise IndexError(t)
        return self.model.block(self.semseed[t], self.semseed[t + 1], int(self.tau[t]), int(self.tau[t + 1]))


@dataclass(frozen=True, eq=False)
class FakeMaker:
    """
    Everything an attempt needs but the seed.

    Parameters
    ----------
    model
        <p_bar, pi_bar>.
    classes
        Semantic classes.
    tau
        (L,) period of each slot.
    blur
        Parameters of the semantic seed.
    sampler
        `"viterbi"` (the paper's, with `par_v`) or `"ffbs"` (a sample from the posterior, E49).
    key
        128 bits that start the streams of the run, see `stream_key`.

    Examples
    --------
    >>> import elsewhere as ew
    >>> traces = ew.Traces([[0, 0, 1, 0], [2, 3, 3, 2]], ew.Locations(n=4))
    >>> model = ew.aggregate(ew.fit_profiles(traces), traces.locations)
    >>> key = np.array([1, 2], dtype=np.uint64)
    >>> maker = FakeMaker(model, ClassSets.of([0, 1, 0, 1]), np.zeros(4, dtype=int), Blur(par_m=0), "ffbs", key=key)
    >>> maker.attempt(traces.r, rows=[0, 1], tries=[0, 0]).r.tolist()
    [[2, 2, 3, 2], [0, 1, 1, 0]]

    """

    model: AggregateModel
    classes: ClassSets
    tau: Ints
    blur: Blur
    sampler: str
    key: NDArray[np.uint64] = field(repr=False)  # a secret (R3)
    par_v: float = 4.0

    def __post_init__(self) -> None:
        require_choice("sampler", self.sampler, SAMPLERS)
        decode.require_par_v(self.par_v)
        # writable copies of one type: anything else would be compiled once more
        object.__setattr__(self, "key", np.array(self.key, dtype=np.uint64))
        object.__setattr__(self, "tau", np.array(self.tau, dtype=np.int64))
        if self.key.shape != (2,) or self.tau.ndim != 1 or self.tau.size == 0:
            raise InvalidParameter("`key` must hold 2 words and `tau` one period per slot.", code="E_SHAPE")
        if len(self.classes.label) != self.model.R:
            raise InvalidParameter(
                f"`classes` must label the {self.model.R} places of the model, got {len(self.classes.label)}.",
                code="E_MISMATCH",
            )

    def attempt(self, seeds: ArrayLike, *, rows: ArrayLike, tries: ArrayLike) -> AttemptBatch:
        """
        Make one attempt per row of `seeds`.

        Parameters
        ----------
        seeds
            (B, L) seed traces; a seed may stand in several rows.
        rows
            (B,) number of the seed in its dataset.
        tries
            (B,) number of the attempt on that seed. (row, try) names the stream: use a pair only once.

        """
        r = np.array(seeds, dtype=np.int32, ndmin=2)
        if r.ndim != 2 or r.shape[1] != len(self.tau):
            raise InvalidTraces(f"`seeds` must have shape (B, {len(self.tau)}), got {r.shape}.", code="E_SHAPE")
        if r.size and (r.min() < -1 or r.max() >= self.model.R):
            raise InvalidTraces(f"`seeds` must hold places in 0 .. {self.model.R - 1}, or -1.", code="E_INDEX")
        B, L = r.shape
        row, attempt = (np.array(np.broadcast_to(n, B), dtype=np.uint64) for n in (rows, tries))
        out = AttemptBatch(np.empty((B, L), np.int32), np.empty(B), np.empty(B, np.int8))
        if self.chain is None:
            for b in range(B):
                self._attempt_in_parts(r[b], open_stream(self.key, attempt[b], row[b]), out, b)
        else:
            kernel = (self.classes, self.blur.numbers(), self.chain, self._par_v, self.key)
            _kernels.attempts(r, row, attempt, *kernel, *out)
        return out

    @cached_property
    def _par_v(self) -> float:
        return float(self.par_v) if self.sampler == "viterbi" else 0.0

    @cached_property
    def _first(self) -> Floats:
        return np.array(self.model.first(int(self.tau[0])) if self.model.T > 1 else self.model.pi_bar)

    @cached_property
    def chain(self) -> Chain | None:
        """Return the model between all places; None if its tables would be too large."""
        return self._chain(np.arange(self.model.R))

    def _chain(self, places: NDArray[np.integer]) -> Chain | None:
        """Return the model between these places, renumbered; None if its tables would be too large."""
        steps = np.column_stack([self.tau[:-1], self.tau[1:]]).reshape(-1, 2)
        pairs, pair = np.unique(steps, axis=0, return_inverse=True)
        if len(pairs) * len(places) ** 2 > LARGEST_TABLE:
            return None
        table = np.empty((len(pairs), len(places), len(places)))
        for i, (tau, tau_next) in enumerate(pairs.tolist()):
            table[i] = self.model.block(places, places, tau, tau_next)
        return Chain(self._first[places], table, pair.ravel())

    def _attempt_in_parts(self, seed: Places, stream: NDArray[np.uint64], out: AttemptBatch, b: int) -> None:
        """Make the same attempt, number for number, with tables of its own candidates, or block by block."""
        out.r[b], out.loglik[b], out.status[b] = -1, -np.inf, UNFAKEABLE
        try:
            semseed = blur_seed(seed, self.classes, self.blur, stream)
            candidates = np.unique(semseed.places)
            chain = self._chain(candidates)
            if chain is None:
                out.r[b], out.loglik[b] = self._decode_by_blocks(semseed, stream)
            else:
                at, fake = np.searchsorted(candidates, semseed.places).astype(np.int32), np.empty_like(seed)
                out.loglik[b] = _kernels.decode(chain, semseed.offset, at, self._par_v, stream, fake)
                out.r[b] = candidates[fake] if out.loglik[b] > -np.inf else -1
            out.status[b] = OK if out.loglik[b] > -np.inf else NO_PATH
        except Unfakeable:
            pass
        except NoFeasiblePath:
            out.status[b] = NO_PATH
        except InvalidParameter as error:
            # two neighbouring sets of nearly all places of a huge map: more moves than the model computes at a time
            if error.code != "E_TOO_LARGE":
                raise

    def _decode_by_blocks(self, semseed: SemanticSeed, stream: NDArray[np.uint64]) -> tuple[Places, float]:
        blocks = _Blocks(self.model, self.tau, semseed)
        if self.sampler == "viterbi":
            return decode.viterbi_by_blocks(semseed, self._first, blocks, self._par_v, stream)
        r, loglik, _ = decode.sample(semseed, self._first, blocks, stream)
        return r, loglik
