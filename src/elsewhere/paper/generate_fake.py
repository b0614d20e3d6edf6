"""
GenerateFake(R, S, kappa, pars)                                                           (fig:alg)
    Compute   aggregate mobility model <p_bar, pi_bar> by averaging <p(u), pi(u)> over all u in S      aggregate
    Set       C <- SemanticClustering(R, S, kappa)                                           semantic_clustering
    Forall    seed in S:                                                                          generate_fakes
        Set       C' <- C                                                                          generate_fake
        Update    C' by removing each location in any partition with probability par_c
        Set       semantic seed semseed <- seed
        Update    semseed by replacing all locations r with the locations of their cluster, C'_i where r in C_i
        Update    semseed by removing the location r = seed(t) at any time t with probability par_l
        Update    semseed by merging locations with time distance dt with probability par_m^dt
        Set       fake <- HMMDecode(semseed, <p_bar, pi_bar>)
        If        PrivacyTest(fake, seed, par_s, par_i, par_d):                             run/attempts.py
                      Set F <- F + fake
    Return    F

`generate_fake` is the inner loop for one seed, line by line, before the test; `FakeMaker` makes the same attempts many
at a time in compiled loops, number for number; `generate_fakes(method="paper")` is the whole box.

Readings: the class of r is that of C, before removal (E38); C' is drawn once per fake and never emptied (E39); seed(t)
is removed last, so that merging does not bring it back (E40); a place merges by one reach per boundary (E42); what is
done where no candidate is left (E45).

HMMDecode by randomised Viterbi, the paper's: the most probable trace through candidate sets under perturbed chances,

    delta_1(r) = pi_bar(r) X,   delta_{t+1}(r') = max_r delta_t(r) p_bar(r, r') X,   X ~ Uniform[1, par_v]

with one X per candidate of the first slot and one per edge (t, r, r') (E46). delta is scaled in every step; where
floats lose their range all the same, the path is computed again in logarithms, with the same numbers. A path of
probability 0 is `NoFeasiblePath`, never a place (E33). Or by a draw from the posterior (E49):

    alpha_1(r) = pi_bar(r),   alpha_{t+1}(r') = sum_r alpha_t(r) p_bar(r, r'),   Z = sum_r alpha_L(r)

over the candidates of each slot, and backwards r_L ~ alpha_L, r_t ~ alpha_t(r) p_bar(r, r_{t+1}).

Attempt i on seed s draws from a stream of its own (key of the run, s, i), so what it makes depends on neither the
other attempts nor the number of workers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.slots import Traces
from elsewhere.data.visits import Codes, Floats, Ints
from elsewhere.errors import (
    InvalidParameter,
    InvalidTraces,
    NoFeasiblePath,
    Unfakeable,
    require_between,
    require_choice,
    require_whole,
)
from elsewhere.paper import _generate_kernels as _kernels
from elsewhere.paper._generate_kernels import open_stream, uniform
from elsewhere.paper._profile_kernels import from_logs
from elsewhere.paper.aggregate import AggregateModel
from elsewhere.paper.privacy_test import RULES, PrivacyTest, Verdicts

SAMPLERS = ("viterbi", "ffbs")
SUBSAMPLE = ("per-fake", "per-instant")
MERGE = ("reach", "independent")
OK, NO_PATH, UNFAKEABLE = _kernels.OK, _kernels.NO_PATH, _kernels.UNFAKEABLE
# numbers, 256 MiB: above that p_bar is not held as tables but computed block by block
LARGEST_TABLE = 2**25

Stream = NDArray[np.uint64]
Sets = list[set[int]]  # the candidate set of each slot


def generate_fake(
    seed: ArrayLike,
    classes: Any,
    model: AggregateModel,
    *,
    par_c: float = 0.25,
    par_l: float = 1.0,
    par_m: float = 0.75,
    par_v: float = 4.0,
    rng: np.random.Generator,
) -> Codes:
    """
    Return one fake (L,) of one seed (L,): the inner loop of GenerateFake, before the privacy test.

    Parameters
    ----------
    seed
        (L,) places; -1 where missing.
    classes
        Semantic classes C: `SemanticClasses`, or the class of each place (R,), -1 where it is unknown.
    model
        <p_bar, pi_bar> of one period, as `aggregate` makes it.
    par_c
        Probability that a place is removed from its class, in [0, 1).
    par_l
        Probability that seed(t) is removed from the candidates of slot t, in [0, 1].
    par_m
        A place joins a slot of the neighbouring run d slots away with probability par_m^d, in [0, 1).
    par_v
        Upper end of the random factors of Viterbi, at least 1, which is exact Viterbi.
    rng
        Gives the 128 bits that start the stream of this fake.

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> traces = ew.Traces([[0, 0, 1, 0], [2, 3, 3, 2]], ew.Locations(n=4))
    >>> model = ew.aggregate(ew.fit_profiles(traces), traces.locations)
    >>> ew.generate_fake([0, 0, 1, 0], [0, 1, 0, 1], model, par_m=0, rng=np.random.default_rng(1)).tolist()
    [2, 2, 3, 2]

    """
    Blur(par_c, par_m, par_l)  # refuses what is no parameter
    require_par_v(par_v)
    C = ClassSets.of(getattr(classes, "label", classes), nearness=getattr(classes, "nearness", None))
    seed, stream = _check_seed(seed, C, model), open_stream(stream_key(rng), 0, 0)
    C_prime = subsample_classes(C, seed, par_c, stream)
    semseed: Sets = [set(C_prime[C.class_of(r)]) for r in seed]
    semseed = merge_classes(semseed, C_prime, [C.class_of(r) for r in seed], par_m, stream)
    semseed = remove_seed(semseed, C, seed, par_l, stream)
    return hmm_decode(SemanticSeed.of(semseed), model, par_v, stream)


def subsample_classes(C: "ClassSets", seed: Codes, par_c: float, stream: Stream) -> dict[int, list[int]]:
    """Return C', each place of the classes of the seed removed with probability par_c; one survivor stays (E39)."""
    C_prime: dict[int, list[int]] = {-1: []}
    for c in dict.fromkeys(C.class_of(r) for r in seed):
        if c >= 0:
            places = C.members(c).tolist()
            kept = [r for r in places if uniform(stream) >= par_c]
            C_prime[c] = kept or [places[int(uniform(stream) * len(places))]]
    return C_prime


def merge_classes(
    semseed: Sets, C_prime: dict[int, list[int]], class_at: list[int], par_m: float, stream: Stream
) -> Sets:
    """
    Return the sets with places merged around each change of class: dt slots into the neighbouring run with par_m^dt.

    One reach for each place and boundary, at most to the end of the run, in both directions (E42).
    """
    merged = [set(places) for places in semseed]
    run = [list(slots) for _, slots in groupby(range(len(class_at)), key=class_at.__getitem__)]
    for before, after in pairwise(run):
        for source, slots in ((before, after), (after, before[::-1])):
            for r in C_prime[class_at[source[0]]]:
                for t in slots[: _reach(par_m, len(slots), stream)]:
                    merged[t].add(r)
    return merged


def _reach(par_m: float, longest: int, stream: Stream) -> int:
    """Draw G with P(G >= d) = par_m^d, at most `longest`."""
    u, power, reach = uniform(stream), par_m, 0
    while reach < longest and u < power:
        reach, power = reach + 1, power * par_m
    return reach


def remove_seed(semseed: Sets, C: "ClassSets", seed: Codes, par_l: float, stream: Stream) -> Sets:
    """Return the sets without seed(t), each with probability par_l; where none is left, the ladder of E45."""
    out = []
    for t, (places, r) in enumerate(zip(semseed, seed.tolist(), strict=True)):
        gone = {r} if uniform(stream) < par_l else set()
        c = C.class_of(r)
        nearest = [C.members(near) for near in C.near[c].tolist()] if c >= 0 else []
        ladder: Iterable[Any] = (places, C.members(c), *nearest, C.everywhere)
        left = next((rest for step in ladder if (rest := {int(x) for x in step} - gone)), None)
        if left is None:
            raise unfakeable(t, len(seed), C)
        out.append(left)
    return out


def hmm_decode(semseed: "SemanticSeed", model: AggregateModel, par_v: float, stream: Stream) -> Codes:
    """Return the most probable trace through the sets under <p_bar, pi_bar>, chances perturbed by par_v (HMMDecode)."""
    tau = np.zeros(len(semseed), dtype=np.int64)
    return viterbi(semseed, np.array(model.pi_bar), Blocks(model, tau, semseed), float(par_v), stream)[0]


class ClassSets(NamedTuple):
    """
    Semantic classes as the kernels read them; a place of label -1 has no class and is never a candidate (E30).

    The members of class c are `member[start[c] : start[c + 1]]`, those of all classes `everywhere`; `near[c]` lists the
    other classes, nearest first.
    """

    label: Codes
    start: Ints
    member: Codes
    everywhere: Codes
    near: Codes

    @staticmethod
    def of(
        label: ArrayLike, *, nearness: ArrayLike | None = None, model_places: ArrayLike | None = None
    ) -> "ClassSets":
        """
        Make the sets from a label per place.

        Parameters
        ----------
        label
            (R,) class of each place, -1 where it is unknown.
        nearness
            (kappa, kappa) mean edge weight between classes; without it larger classes are nearer. Equal ones: lowest
            number first.
        model_places
            (R,) mask of the places that may be candidates; by default all that have a class.

        Examples
        --------
        >>> ClassSets.of([0, 1, -1, 0]).member.tolist()
        [0, 3, 1]

        """
        labels = _check_labels(label)
        kappa = max(int(labels.max()) + 1, 0)
        known = labels >= 0
        if model_places is not None:
            mask = np.asarray(model_places)
            if mask.dtype != np.bool_ or mask.shape != labels.shape:
                raise InvalidParameter(f"`model_places` must be a mask of {len(labels)} truth values.", code="E_SHAPE")
            known = known & mask
        everywhere = np.flatnonzero(known).astype(np.int32)
        member = everywhere[np.argsort(labels[everywhere], kind="stable")]
        size = np.bincount(labels[everywhere], minlength=kappa)
        if nearness is None:
            weight = np.broadcast_to(size.astype(np.float64), (kappa, kappa))
        else:
            weight = np.asarray(nearness, dtype=np.float64)
            if weight.shape != (kappa, kappa) or np.any(np.isnan(weight)):
                raise InvalidParameter(
                    f"`nearness` must be numbers of shape ({kappa}, {kappa}), one row per class.", code="E_SHAPE"
                )
        order = np.argsort(-weight, axis=1, kind="stable")
        near = order[order != np.arange(kappa)[:, None]].reshape(kappa, max(kappa - 1, 0))
        return ClassSets(
            labels, np.concatenate([[0], np.cumsum(size)]).astype(np.int64), member, everywhere, near.astype(np.int32)
        )

    @property
    def kappa(self) -> int:
        """Return the number of classes."""
        return len(self.start) - 1

    def class_of(self, r: int) -> int:
        """Return the class of place r; -1 if it has none, or r is missing."""
        return int(self.label[r]) if r >= 0 else -1

    def members(self, c: int) -> Codes:
        """Return the places of class c, sorted; none of class -1."""
        return self.member[self.start[c] : self.start[c + 1]] if c >= 0 else self.member[:0]


def _check_labels(label: Any) -> Codes:
    labels = np.asarray(label)
    if labels.ndim != 1 or labels.size == 0 or not np.issubdtype(labels.dtype, np.integer):
        raise InvalidTraces("`label` must be a vector of whole numbers, one class per place.", code="E_SHAPE")
    if labels.min() < -1 or labels.max() >= len(labels):
        raise InvalidTraces(f"`label` must be in -1 .. {len(labels) - 1}.", code="E_INDEX")
    return np.array(labels, dtype=np.int32)


@dataclass(frozen=True)
class Blur:
    """
    Parameters of the semantic seed.

    Parameters
    ----------
    par_c
        Probability that a place is removed from its class, in [0, 1); `"per-instant"` is .25 with a fresh draw at
        every slot (E39).
    par_m
        A place joins a slot of the neighbouring run d slots away with probability par_m^d, in [0, 1) (E42).
    par_l
        Probability that seed(t) is removed from the set of slot t, in [0, 1] (E40).
    c_min
        Codes a class must have outside those of the seed, else it is widened with the nearest classes (E30). 1, the
        paper's, widens nothing and leaves it to the ladder of E45.
    subsample
        One C' `"per-fake"`, or a fresh one `"per-instant"` (E39).
    merge
        `"reach"`: one reach per place and boundary; `"independent"`: a draw at each slot (E42).

    """

    par_c: float | str = 0.25
    par_m: float = 0.75
    par_l: float = 1.0
    c_min: int = 1
    subsample: str = "per-fake"
    merge: str = "reach"

    def __post_init__(self) -> None:
        require_choice("subsample", self.subsample, SUBSAMPLE)
        require_choice("merge", self.merge, MERGE)
        par_c = self.par_c
        if isinstance(par_c, str):
            require_choice("par_c", par_c, SUBSAMPLE[1:])
            object.__setattr__(self, "subsample", par_c)
            par_c = 0.25
        object.__setattr__(self, "par_c", require_between("par_c", par_c, 0, 1, open_high=True))
        require_between("par_m", self.par_m, 0, 1, open_high=True)
        require_between("par_l", self.par_l, 0, 1)
        require_whole("c_min", self.c_min, 1)

    def numbers(self) -> "BlurNumbers":
        """Return the numbers as the kernels read them."""
        return BlurNumbers(
            float(self.par_c),
            self.subsample == "per-instant",
            float(self.par_m),
            self.merge == "independent",
            float(self.par_l),
            int(self.c_min),
        )


class BlurNumbers(NamedTuple):
    """A `Blur` without words."""

    par_c: float
    per_instant: bool
    par_m: float
    independent: bool
    par_l: float
    c_min: int


@dataclass(frozen=True, eq=False)
class SemanticSeed:
    """
    Candidate sets: those of slot t are `places[offset[t] : offset[t + 1]]`, sorted.

    `step[t]` is the step of the ladder of E45 that the set needed: 0 none; 1 only merged neighbours are left; 2 the
    whole class before sub-sampling; 3 the nearest class; 4 all places of the model.
    """

    offset: Ints
    places: Codes
    step: NDArray[np.int8]

    def __post_init__(self) -> None:
        if len(self.offset) < 2 or np.any(np.diff(self.offset) <= 0):
            raise Unfakeable("a slot has an empty candidate set.")

    @staticmethod
    def of(sets: "Sequence[Any]") -> "SemanticSeed":
        """
        Make a semantic seed from one list of places per slot.

        Examples
        --------
        >>> SemanticSeed.of([[2, 1], [0]])[0].tolist()
        [1, 2]

        """
        unique = [np.unique(np.array([*places], dtype=np.int32)) for places in sets]
        offset = np.cumsum([0, *map(len, unique)], dtype=np.int64)
        return SemanticSeed(offset, np.concatenate([*unique, np.zeros(0, np.int32)]), np.zeros(len(unique), np.int8))

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __getitem__(self, t: int) -> Codes:
        if not 0 <= t < len(self):
            raise IndexError(f"slot must be in 0 .. {len(self) - 1}, got {t}.")
        return self.places[self.offset[t] : self.offset[t + 1]]


def stream_key(rng: np.random.Generator) -> Stream:
    """Return 128 bits that start the streams of a run (R1)."""
    return rng.integers(0, 2**64, size=2, dtype=np.uint64)


def blur_seed(seed: Codes, classes: ClassSets, blur: Blur, stream: Stream) -> SemanticSeed:
    """
    Draw the semantic seed of one trace (L,), with a fresh sub-sample of the classes.

    A slot at a place without a class (-1), or missing, has no class to draw from: its set is what its neighbours
    merge into it, else all places of the model (steps 1 and 4 of E45).
    """
    offset, places, step = _kernels.semantic_seed(seed, classes, blur.numbers(), stream)
    if len(places) == 0:
        raise unfakeable(int(np.argmin(step)), len(seed), classes)
    return SemanticSeed(offset, places, step)


def unfakeable(t: int, L: int, classes: ClassSets) -> Unfakeable:
    """Return the error of a slot for which no candidate is left."""
    return Unfakeable(
        f"slot {t} of {L}: no candidate is left once the seed's own places are removed "
        f"({len(classes.everywhere)} places with a class)."
    )


def require_par_v(par_v: float) -> float:
    """Return `par_v` if it lies in [1, infinity)."""
    return require_between("par_v", par_v, 1, np.inf, open_high=True)


def _check_seed(seed: Any, C: ClassSets, model: AggregateModel) -> Codes:
    places = np.asarray(seed)
    if len(C.label) != model.R or model.T != 1:
        raise InvalidParameter(
            f"`classes` must label the {model.R} places of `model`, which must have one period, got "
            f"{len(C.label)} places and {model.T} periods.",
            code="E_MISMATCH",
        )
    if places.ndim != 1 or places.size == 0 or not np.issubdtype(places.dtype, np.integer):
        raise InvalidTraces("`seed` must be a vector of whole numbers, one place per slot.", code="E_SHAPE")
    if places.min() < -1 or places.max() >= model.R:
        raise InvalidTraces(f"`seed` must hold places in 0 .. {model.R - 1}, or -1 where missing.", code="E_INDEX")
    return np.array(places, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Blocks(Sequence[Floats]):
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


def viterbi(
    semseed: SemanticSeed, first: Floats, blocks: Sequence[Floats], par_v: float, stream: Stream
) -> tuple[Codes, float]:
    """
    Return one decoding and its ln Pr: the loop of the kernel `viterbi`, with p_bar read block by block.

    Item t of `blocks` holds p_bar from the candidates of slot t to those of t + 1; they are read a second time if
    floats lose their range. par_v = 1 is exact Viterbi, where the lowest of equally good places wins.
    """
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
            p = np.ascontiguousarray(block)
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
    return r, float(np.log(first[r[0]]) + np.log(steps).sum())


def no_path(L: int) -> NoFeasiblePath:
    """Return the error of a decoder that finds only paths of probability 0."""
    return NoFeasiblePath(f"no trace of positive probability goes through the candidate sets of these {L} slots.")


def ffbs(semseed: SemanticSeed, first: Floats, blocks: Sequence[Floats], stream: Stream) -> tuple[Codes, float, float]:
    """
    Draw one trace from the posterior, with p_bar read block by block: r, its ln Pr, and its ln Pr given the sets.

    The last is the probability with which this very trace is drawn from these sets.
    """
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
    return r, loglik, loglik - log_z


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
            p = np.ascontiguousarray(block)
            rows, cols = np.arange(p.shape[0], dtype=np.int32), np.arange(p.shape[1], dtype=np.int32)
            log_z += _kernels.forward_step(p, rows, cols, alpha[here], in_logs, alpha[there])
        if not np.isnan(log_z):
            break
    if in_logs:
        last = alpha[sets[-1]]
        log_z = from_logs(last, np.empty(len(last)))
    return alpha, float(log_z), in_logs


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

    r: Codes
    loglik: Floats
    status: NDArray[np.int8]


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
    key: Stream = field(repr=False)  # a secret (R3)
    par_v: float = 4.0

    def __post_init__(self) -> None:
        require_choice("sampler", self.sampler, SAMPLERS)
        require_par_v(self.par_v)
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

    def _attempt_in_parts(self, seed: Codes, stream: Stream, out: AttemptBatch, b: int) -> None:
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

    def _decode_by_blocks(self, semseed: SemanticSeed, stream: Stream) -> tuple[Codes, float]:
        blocks = Blocks(self.model, self.tau, semseed)
        if self.sampler == "viterbi":
            return viterbi(semseed, self._first, blocks, self._par_v, stream)
        return ffbs(semseed, self._first, blocks, stream)[:2]


CHUNK = 256  # fakes per piece of work
WIDEST = 32  # tries of one fake at a time
NOT_MADE, FAILED, PASSED = range(3)  # what comes of an attempt


@dataclass(frozen=True, eq=False)
class Made:
    """What came of one piece of work: accepted fakes by unit, tries per unit, verdicts and outcomes of all attempts."""

    r: Any
    unit: Ints
    verdicts: Verdicts
    tries: Ints
    tally: dict[str, int]


@dataclass(frozen=True, eq=False)
class Attempts:
    """Attempts at each (seed, fake) of a piece, until one passes the test or `max_tries` have failed (E63)."""

    maker: FakeMaker = field(repr=False)
    test: PrivacyTest = field(repr=False)
    seeds: Traces = field(repr=False)
    max_tries: int
    size: ClassVar[int] = CHUNK

    def __call__(self, units: Ints) -> Made:
        """Generate the fakes of the units, rows (seed, number of the fake)."""
        pending = np.arange(len(units))
        tries = np.zeros(len(units), dtype=np.int64)
        parts: list[tuple[Any, Ints, Verdicts, Verdicts]] = []
        not_made = 0
        while len(pending) and tries[pending[0]] < self.max_tries:
            # several tries of each at a time where few are pending; those after the first that passes never were
            number_of_tries = tries[pending[0]]
            width = int(min(max(1, CHUNK // len(pending)), WIDEST, self.max_tries - number_of_tries))
            row, fake = np.repeat(units[pending], width, axis=0).T
            # attempt number a of fake j is stream j * max_tries + a of its seed: nothing else moves it
            number = fake * self.max_tries + number_of_tries + np.tile(np.arange(width), len(pending))
            outcome, traces, verdicts = self._try_once(row, number)
            passed = (outcome == PASSED).reshape(len(pending), width)
            tries_used = np.where(passed.any(axis=1), passed.argmax(axis=1) + 1, width)
            tries[pending] += tries_used
            in_count = (np.arange(width) < tries_used[:, None]).ravel()
            not_made += int(np.count_nonzero(in_count & (outcome == NOT_MADE)))
            tested = outcome >= FAILED
            failures = verdicts.select((in_count & (outcome == FAILED))[tested])
            first = in_count & (outcome == PASSED)
            passes = verdicts.select(first[tested])
            parts.append((traces[first], pending[passed.any(axis=1)], passes, failures))
            pending = pending[~passed.any(axis=1)]
        return Made(
            np.concatenate([k[0] for k in parts]),
            np.concatenate([k[1] for k in parts]),
            Verdicts.joined([k[2] for k in parts]),
            tries,
            _count_outcomes([v for k in parts for v in k[2:]], not_made),
        )

    def _try_once(self, row: Ints, number: Ints) -> tuple[Ints, Any, Verdicts]:
        """Make one attempt each; return what came of it, the trace, and the verdicts on those that were tested."""
        attempt = self.maker.attempt(self.seeds.r[row], rows=row, tries=number)
        outcome = np.where(attempt.status == OK, FAILED, NOT_MADE)
        testable = np.flatnonzero(outcome == FAILED)
        verdicts = self.test(attempt.r[testable], row[testable])
        outcome[testable[verdicts.passed]] = PASSED
        return outcome, attempt.r, verdicts


def _count_outcomes(verdicts: list[Verdicts], not_made: int) -> dict[str, int]:
    """Return how many attempts were tested, passed, were failed by each rule, and how many gave no trace."""
    tally = dict.fromkeys(("tested", "passed", "not_made", *RULES), 0) | {"not_made": not_made}
    for some in verdicts:
        for name, count in some.counts().items():
            tally[name] += count
    return tally
