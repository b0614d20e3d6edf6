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

`generate_fake` is the inner loop for one seed, line by line, before the test; `FakeMaker` makes many attempts by the
same functions; `generate_fakes(method="paper")` is the whole box.

Readings: the class of r is that of C, before removal (E38); C' is drawn once per fake and never emptied (E39); seed(t)
is removed last, so that merging does not bring it back (E40); a place merges by one reach per boundary (E42); what is
done where no candidate is left (E45).

HMMDecode by randomised Viterbi, the paper's: the most probable trace through candidate sets under perturbed chances,

    delta_1(r) = pi_bar(r) X,   delta_{t+1}(r') = max_r delta_t(r) p_bar(r, r') X,   X ~ Uniform[1, par_v]

with one X per candidate of the first slot and one per edge (t, r, r') (E46), in logarithms. A path of probability 0 is
`NoFeasiblePath`, never a place (E33). Or by a draw from the posterior (E49):

    alpha_1(r) = pi_bar(r),   alpha_{t+1}(r') = sum_r alpha_t(r) p_bar(r, r'),   Z = sum_r alpha_L(r)

over the candidates of each slot, and backwards r_L ~ alpha_L, r_t ~ alpha_t(r) p_bar(r, r_{t+1}).

Attempt i on seed s draws from a stream of its own (key of the run, s, i), so what it makes depends on neither the
other attempts nor the number of workers.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elsewhere.data.slots import Traces
from elsewhere.data.visits import Codes, Ints, Mask
from elsewhere.errors import InvalidParameter, NoFeasiblePath, Unfakeable
from elsewhere.paper import _generate_kernels as _kernels
from elsewhere.paper._generate_kernels import Chain, merge_classes, open_stream, remove_seed, subsample_classes
from elsewhere.paper.aggregate import LARGEST_ANSWER, AggregateModel
from elsewhere.paper.privacy_test import RULES, PrivacyTest, Verdict
from elsewhere.paper.semantic_clustering import SemanticClasses
from elsewhere.settings import Paper

Stream = NDArray[np.uint64]


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
    Paper(par_c=par_c, par_l=par_l, par_m=par_m, par_v=par_v)  # which refuses what is out of range
    C = ClassSets.of(classes)
    seed, stream = _check_seed(seed, C, model), open_stream(stream_key(rng), 0, 0)
    class_at = C.classes_of(seed)
    C_prime = subsample_classes(C.places, class_at, par_c, stream)
    semseed = C_prime[class_at]
    semseed = merge_classes(semseed, C_prime, class_at, par_m, stream)
    semseed, _ = remove_seed(semseed, C.places, C_prime, C, seed, class_at, par_l, 1, stream)
    return hmm_decode(semseed, model, par_v, stream)


def hmm_decode(semseed: Mask, model: AggregateModel, par_v: float, stream: Stream) -> Codes:
    """
    Return the most probable trace through the sets under <p_bar, pi_bar>, chances perturbed by par_v (HMMDecode).

    Exact if `par_v` = 1, where the lowest of equally good places wins.
    """
    none = np.flatnonzero(~semseed.any(axis=1))
    if len(none):
        raise Unfakeable(
            f"slot {none[0]} of {len(semseed)}: no candidate is left once the seed's own places are removed."
        )
    candidates = np.flatnonzero(semseed.any(axis=0))
    slot, places = np.nonzero(semseed[:, candidates])
    chain = chain_of(model, np.zeros(len(semseed), dtype=np.int64), candidates)
    fake = np.empty(len(semseed), dtype=np.int32)
    offset = np.searchsorted(slot, np.arange(len(semseed) + 1))
    if not _kernels.decode(chain, offset, places, float(par_v), stream, fake):
        raise NoFeasiblePath(
            f"no trace of positive probability goes through the candidate sets of these {len(semseed)} slots."
        )
    return candidates[fake].astype(np.int32)


class ClassSets(NamedTuple):
    """
    Semantic classes as the kernels read them; a place of label -1 has no class and is never a candidate (E30).

    `places[c]` marks those of class c, the last row none, `everywhere` those of all; `near[c]` lists the other classes,
    nearest first.
    """

    label: Ints
    places: Mask
    everywhere: Mask
    near: Ints

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
        >>> ClassSets.of([0, 1, -1, 0]).places.astype(int).tolist()
        [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]]

        """
        C = classes if isinstance(classes, SemanticClasses) else SemanticClasses(classes)
        everywhere = C.label >= 0 if model_places is None else (C.label >= 0) & np.asarray(model_places)
        places = (C.label == np.arange(C.kappa + 1)[:, None]) & everywhere
        size = places[:-1].sum(axis=1)
        weight = np.broadcast_to(size, (C.kappa, C.kappa)) if C.nearness is None else C.nearness
        order = np.argsort(-weight, axis=1, kind="stable")
        near = order[order != np.arange(C.kappa)[:, None]].reshape(C.kappa, max(C.kappa - 1, 0))
        return ClassSets(np.array(C.label), places, everywhere, near)

    def classes_of(self, r: Codes) -> Ints:
        """Return the class of each place; -1 if it has none, or is missing."""
        return np.where(r >= 0, self.label[r], -1)


class Pars(NamedTuple):
    """
    Parameters of GenerateFake, as `generate_fake` has them, of the types that kernels are compiled for.

    `par_v` = 0 draws from the posterior (E49). `c_min` places a class must have outside those of the seed, else it is
    widened with the nearest classes (E30); 1, the paper's, widens nothing and leaves it to the ladder of E45.
    """

    par_c: float = 0.25
    par_m: float = 0.75
    par_l: float = 1.0
    par_v: float = 4.0
    c_min: int = 1


def stream_key(rng: np.random.Generator) -> Stream:
    """Return 128 bits that start the streams of a run (R1)."""
    return rng.integers(0, 2**64, size=2, dtype=np.uint64)


def _check_seed(seed: Any, C: ClassSets, model: AggregateModel) -> Codes:
    if len(C.label) != model.R or model.T != 1:
        raise InvalidParameter(
            f"`classes` must label the {model.R} places of `model`, which must have one period, got "
            f"{len(C.label)} places and {model.T} periods.",
            code="E_MISMATCH",
        )
    return np.array(Traces.check_places([seed], model.R, "seed")[0])  # writable: kernels are compiled for one kind


def chain_of(model: AggregateModel, tau: Ints, places: NDArray[np.integer]) -> Chain:
    """Return the logarithms of the model between these places, by their position."""
    steps = np.column_stack([tau[:-1], tau[1:]]).reshape(-1, 2)
    pairs, pair = np.unique(steps, axis=0, return_inverse=True)
    if len(pairs) * len(places) ** 2 > LARGEST_ANSWER:
        raise InvalidParameter(
            f"a slot may be at any of {len(places)} places: more than the model computes at a time; merge places.",
            code="E_TOO_LARGE",
        )
    table = np.empty((len(pairs), len(places), len(places)))
    for i, (now, then) in enumerate(pairs.tolist()):
        table[i] = model.block(places, places, now, then)
    first = model.first(int(tau[0])) if model.T > 1 else model.pi_bar
    with np.errstate(divide="ignore"):
        return Chain(np.log(first[places]), np.log(table, out=table), pair.ravel())


@dataclass(frozen=True, eq=False)
class FakeMaker:
    """
    Everything an attempt needs but the seed.

    Parameters
    ----------
    model, classes
        <p_bar, pi_bar> and C.
    tau
        (L,) period of each slot.
    pars
        Parameters of the attempt.
    key
        128 bits that start the streams of the run, see `stream_key`.

    Examples
    --------
    >>> import elsewhere as ew
    >>> traces = ew.Traces([[0, 0, 1, 0], [2, 3, 3, 2]], ew.Locations(n=4))
    >>> model = ew.aggregate(ew.fit_profiles(traces), traces.locations)
    >>> key = np.array([1, 2], dtype=np.uint64)
    >>> maker = FakeMaker(model, ClassSets.of([0, 1, 0, 1]), np.zeros(4, dtype=int), Pars(par_m=0.0, par_v=0.0), key)
    >>> maker.attempt(traces.r, rows=[0, 1], tries=[0, 0]).tolist()
    [[2, 2, 3, 2], [0, 1, 1, 0]]

    """

    model: AggregateModel
    classes: ClassSets
    tau: Ints
    pars: Pars
    key: Stream = field(repr=False)  # a secret (R3)

    def attempt(self, seeds: ArrayLike, *, rows: ArrayLike, tries: ArrayLike) -> Codes:
        """
        Make one attempt per seed trace (B, L); return the fakes (B, L), -1 throughout where the attempt failed.

        `rows` (B,) are the numbers of the seeds in their dataset, `tries` those of the attempts on them; a seed may
        stand in several rows. (row, try) names the stream: use a pair only once.
        """
        r = np.array(seeds, dtype=np.int32)
        row, attempt = (np.array(np.broadcast_to(n, len(r)), dtype=np.uint64) for n in (rows, tries))
        fakes = np.full_like(r, -1)
        _kernels.attempts(r, row, attempt, self.classes, self.pars, self.chain, self.key, fakes)
        return fakes

    @cached_property
    def chain(self) -> Chain:
        """Return the model between all places."""
        return chain_of(self.model, self.tau, np.arange(self.model.R))


CHUNK = 256  # fakes per piece of work


@dataclass(frozen=True, eq=False)
class Made:
    """What came of one piece of work: accepted fakes by unit, tries per unit, verdicts and outcomes of all attempts."""

    r: Any
    unit: Ints
    verdicts: list[Verdict]
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
        r, unit, accepted = [self.seeds.r[:0]], [pending[:0]], list[Verdict]()
        for number in range(self.max_tries):
            row, fake = units[pending].T
            # attempt number a of fake j is stream j * max_tries + a of its seed: nothing else moves it
            made = self.maker.attempt(self.seeds.r[row], rows=row, tries=fake * self.max_tries + number)
            tries[pending] += 1
            tested = np.flatnonzero(made[:, 0] >= 0)
            verdicts = self.test(made[tested], row[tested])
            tally["not_made"] += len(row) - len(tested)
            for verdict in verdicts:
                for name in ("tested", *(verdict.rejected_by or ("passed",))):
                    tally[name] += 1
            passed = tested[np.array([verdict.passed for verdict in verdicts], dtype=bool)]
            r.append(made[passed])
            unit.append(pending[passed])
            accepted += [verdict for verdict in verdicts if verdict]
            pending = np.delete(pending, passed)
            if not len(pending):
                break
        return Made(np.concatenate(r), np.concatenate(unit), accepted, tries, tally)
