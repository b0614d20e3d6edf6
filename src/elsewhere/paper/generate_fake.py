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

from collections.abc import Iterable
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
from elsewhere.paper.aggregate import LARGEST_ANSWER, AggregateModel
from elsewhere.paper.privacy_test import RULES, PrivacyTest, Verdicts
from elsewhere.paper.semantic_clustering import SemanticClasses

SAMPLERS = ("viterbi", "ffbs")
OK, NO_PATH, UNFAKEABLE = _kernels.OK, _kernels.NO_PATH, _kernels.UNFAKEABLE
# numbers, 256 MiB: above that p_bar is computed for the candidates of one attempt alone, of which it may take 1 GiB
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
    Blur(par_c, par_m, par_l).checked()
    require_par_v(par_v)
    C = ClassSets.of(classes)
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
    fake, loglik = decode(semseed, model, np.zeros(len(semseed), dtype=np.int64), float(par_v), stream)
    if loglik == -np.inf:
        raise NoFeasiblePath(
            f"no trace of positive probability goes through the candidate sets of these {len(semseed)} slots."
        )
    return fake


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
    def of(classes: ArrayLike | SemanticClasses, *, model_places: ArrayLike | None = None) -> "ClassSets":
        """
        Make the sets from semantic classes, or from a label per place.

        Parameters
        ----------
        classes
            `SemanticClasses`, whose nearness decides which class is nearest; without it larger classes are nearer, of
            equal ones that of the lowest number. Or the class of each place (R,), -1 where it is unknown.
        model_places
            (R,) mask of the places that may be candidates; by default all that have a class.

        Examples
        --------
        >>> ClassSets.of([0, 1, -1, 0]).member.tolist()
        [0, 3, 1]

        """
        C = classes if isinstance(classes, SemanticClasses) else SemanticClasses(classes)
        labels, kappa = C.label.astype(np.int32), C.kappa
        known = labels >= 0
        if model_places is not None:
            mask = np.asarray(model_places)
            if mask.dtype != np.bool_ or mask.shape != labels.shape:
                raise InvalidParameter(f"`model_places` must be a mask of {len(labels)} truth values.", code="E_SHAPE")
            known = known & mask
        everywhere = np.flatnonzero(known).astype(np.int32)
        member = everywhere[np.argsort(labels[everywhere], kind="stable")]
        size = np.bincount(labels[everywhere], minlength=kappa)
        weight = np.broadcast_to(size, (kappa, kappa)) if C.nearness is None else C.nearness
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


class Blur(NamedTuple):
    """
    Parameters of the semantic seed.

    Parameters
    ----------
    par_c
        Probability that a place is removed from its class, in [0, 1) (E39).
    par_m
        A place joins a slot of the neighbouring run d slots away with probability par_m^d, in [0, 1) (E42).
    par_l
        Probability that seed(t) is removed from the set of slot t, in [0, 1] (E40).
    c_min
        Codes a class must have outside those of the seed, else it is widened with the nearest classes (E30). 1, the
        paper's, widens nothing and leaves it to the ladder of E45.
    per_instant
        A fresh C' at every slot instead of one for the fake (E39).
    independent
        A draw at each slot instead of one reach for each place and boundary (E42).

    """

    par_c: float = 0.25
    par_m: float = 0.75
    par_l: float = 1.0
    c_min: int = 1
    per_instant: bool = False
    independent: bool = False

    def checked(self) -> "Blur":
        """Return the same numbers, of the types that kernels are compiled for; what is no parameter is refused."""
        return Blur(
            require_between("par_c", self.par_c, 0, 1, open_high=True),
            require_between("par_m", self.par_m, 0, 1, open_high=True),
            require_between("par_l", self.par_l, 0, 1),
            require_whole("c_min", self.c_min, 1),
            self.per_instant,
            self.independent,
        )


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
    def of(sets: "Iterable[Any]") -> "SemanticSeed":
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
    offset, places, step = _kernels.semantic_seed(seed, classes, blur.checked(), stream)
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


class Chain(NamedTuple):
    """The aggregate model as the kernels read it: `table[pair[t]]` is p_bar from slot t to t + 1."""

    first: Floats
    table: Floats
    pair: Ints


def chain_of(model: AggregateModel, tau: Ints, places: NDArray[np.integer], largest: int) -> Chain | None:
    """Return the model between these places, by their position; None if it needs more than `largest` numbers."""
    steps = np.column_stack([tau[:-1], tau[1:]]).reshape(-1, 2)
    pairs, pair = np.unique(steps, axis=0, return_inverse=True)
    if len(pairs) * len(places) ** 2 > largest:
        return None
    table = np.empty((len(pairs), len(places), len(places)))
    for i, (now, then) in enumerate(pairs.tolist()):
        table[i] = model.block(places, places, now, then)
    first = model.first(int(tau[0])) if model.T > 1 else model.pi_bar
    return Chain(np.array(first[places]), table, pair.ravel())


def decode(
    semseed: SemanticSeed, model: AggregateModel, tau: Ints, par_v: float, stream: Stream
) -> tuple[Codes, float]:
    """
    Return one trace through the sets and its ln Pr, -inf where no path leads through: by the model of its candidates.

    Randomised Viterbi, exact if `par_v` = 1, where the lowest of equally good places wins; a draw from the posterior if
    it is 0.
    """
    candidates, at = np.unique(semseed.places, return_inverse=True)
    chain = chain_of(model, tau, candidates, LARGEST_ANSWER)
    if chain is None:
        raise InvalidParameter(
            f"a slot may be at any of {len(candidates)} places: more than the model computes at a time; merge places.",
            code="E_TOO_LARGE",
        )
    fake = np.empty(len(semseed), dtype=np.int32)
    loglik = _kernels.decode(chain, semseed.offset, at.astype(np.int32), par_v, stream, fake)
    return candidates[fake] if loglik > -np.inf else np.full_like(fake, -1), float(loglik)


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
        object.__setattr__(self, "blur", self.blur.checked())
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
                stream = open_stream(self.key, attempt[b], row[b])
                out.r[b], out.loglik[b], out.status[b] = self._attempt_alone(r[b], stream)
        else:
            kernel = (self.classes, self.blur, self.chain, self._par_v, self.key)
            _kernels.attempts(r, row, attempt, *kernel, *out)
        return out

    @cached_property
    def _par_v(self) -> float:
        return float(self.par_v) if self.sampler == "viterbi" else 0.0

    @cached_property
    def chain(self) -> Chain | None:
        """Return the model between all places; None if its tables would be too large."""
        return chain_of(self.model, self.tau, np.arange(self.model.R), LARGEST_TABLE)

    def _attempt_alone(self, seed: Codes, stream: Stream) -> tuple[Any, float, int]:
        """Make the same attempt, number for number, by the model of its own candidates."""
        try:
            fake, loglik = decode(
                blur_seed(seed, self.classes, self.blur, stream), self.model, self.tau, self._par_v, stream
            )
        except Unfakeable:
            return -1, -np.inf, UNFAKEABLE
        except InvalidParameter as error:  # nearly all places of a huge map
            if error.code != "E_TOO_LARGE":
                raise
            return -1, -np.inf, UNFAKEABLE
        return fake, loglik, OK if loglik > -np.inf else NO_PATH


CHUNK = 256  # fakes per piece of work


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
        tally = dict.fromkeys(("tested", "passed", "not_made", *RULES), 0)
        kept: list[tuple[Any, Ints, Verdicts]] = []
        for number in range(self.max_tries):
            row, fake = units[pending].T
            # attempt number a of fake j is stream j * max_tries + a of its seed: nothing else moves it
            made = self.maker.attempt(self.seeds.r[row], rows=row, tries=fake * self.max_tries + number)
            tries[pending] += 1
            tested = np.flatnonzero(made.status == OK)
            verdicts = self.test(made.r[tested], row[tested])
            for name, count in [*verdicts.counts().items(), ("not_made", len(row) - len(tested))]:
                tally[name] += count
            passed = tested[verdicts.passed]
            kept.append((made.r[passed], pending[passed], verdicts.select(verdicts.passed)))
            pending = np.delete(pending, passed)
            if not len(pending):
                break
        r, unit, verdict = zip(*kept, strict=True)
        return Made(np.concatenate(r), np.concatenate(unit), Verdicts.joined(verdict), tries, tally)
