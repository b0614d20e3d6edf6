"""A1: is a fake a copy, or nearly, of its own seed or of anybody's? Aligned instants, shared places, common runs."""

from typing import Any

import numpy as np

from elsewhere.evaluation.attacks._kernels import closest, with_owner
from elsewhere.evaluation.attacks.candidates import compact
from elsewhere.evaluation.attacks.finding import Finding, percent
from elsewhere.evaluation.attacks.ground import Ground, Link, People
from elsewhere.evaluation.attacks.intervals import user_rate
from elsewhere.traces.model import Floats, Ints

MEASURES = ("aligned", "shared", "run")
KS_LEVEL = 0.01


def common_with_owner(link: Link, R: int) -> Ints:
    """(F, 3): equal instants, shared places and longest common run of each fake and its owner."""
    V, (fakes, people) = compact(R, link.fakes, link.people.r)
    out = np.empty((len(fakes), 3), dtype=np.int64)
    with_owner(fakes, link.owner, people, _places(people, V), _scratch(fakes), out)
    return out


def common_with_any(traces: Ints, skip: Ints, people: People, R: int) -> Ints:
    """(F, 3): the same, the most that each trace has in common with anybody but user `skip`."""
    V, (fakes, rows) = compact(R, traces, people.r)
    out = np.empty((len(fakes), 3), dtype=np.int64)
    closest(fakes, skip, rows, people.user, _places(rows, V), _scratch(fakes), out)
    return out


def _places(people: Ints, V: int) -> Any:
    visited = np.zeros((len(people), V), dtype=np.bool_)
    visited[np.arange(len(people))[:, None], people] = True
    return visited


def _scratch(fakes: Ints) -> Ints:
    return np.zeros(fakes.shape[1] + 1, dtype=np.int64)


def verbatim(traces: Ints, people: Ints) -> Any:
    """Which traces equal, instant by instant, somebody who moves."""
    moving = people[(people != people[:, :1]).any(axis=1)]
    known = {row.tobytes() for row in np.ascontiguousarray(moving)}
    return np.array([row.tobytes() in known for row in np.ascontiguousarray(traces)], dtype=bool)


def above(fakes: Ints, strangers: Ints) -> dict[str, float]:
    """p of "fakes are not closer to the seeds than strangers are", one-sided Kolmogorov-Smirnov, per measure."""
    from scipy.stats import ks_2samp

    return {
        name: float(ks_2samp(fakes[:, i], strangers[:, i], alternative="less").pvalue)
        for i, name in enumerate(MEASURES)
    }


def copies(ground: Ground) -> Finding:
    """A1."""
    rng, link, R = ground.rng("A1"), ground.main, ground.R
    own, pretended, free = (common_with_owner(x, R) for x in (link, ground.control, ground.null))
    shares: list[Floats] = [(c[:, 1] > 0).astype(np.float64) for c in (own, pretended, free)]
    (main, worst), (control, _), (null, _) = (user_rate(s, link.user, rng) for s in shares)
    aligned, *by_chance = (
        user_rate((c[:, 0] > 0).astype(np.float64), link.user, rng)[0] for c in (own, pretended, free)
    )
    # one fake per user, so that the two samples are of independent people
    one = _one_per_user(link.user, rng)
    near = common_with_any(link.fakes[one], link.user[one], ground.seeds, R)
    # strangers meet as many people as a fake does: all but one
    stranger = _one_per_user(ground.strangers.user, rng)
    left_out = rng.integers(ground.seeds.U, size=len(stranger))
    far = common_with_any(ground.strangers.r[stranger], left_out, ground.seeds, R)
    walks = common_with_any(ground.null.fakes[one], link.user[one], ground.seeds, R)
    p, p_walks = above(near, far), above(near, walks)
    copied, chance = verbatim(link.fakes, ground.seeds.r), verbatim(ground.strangers.r, ground.seeds.r)
    # walks of popular places come close to people without knowing any: that alone is no finding
    closer = [name for name in MEASURES if p[name] <= KS_LEVEL and p_walks[name] <= KS_LEVEL]
    # the own seed: nothing in common; what strangers, or walks that know no seed, have in common too is no pass either
    clean = bool(main.value == 0)
    shares_more = main.low > max(control.high, null.high) or aligned.low > max(rate.high for rate in by_chance)
    leaks = shares_more or copied.mean() > chance.mean()
    return Finding(
        "A1",
        main=main.value,
        interval=main,
        control=control.value,
        control_interval=control,
        baseline=0.0,
        null=null,
        bar=0.0,
        passed=False if leaks or closer else True if clean else None,
        reachable=null.value == 0,
        worst_decile=worst,
        words=f"{percent(main.value)} of the fakes share a place with their own seed (with a stranger: "
        f"{percent(control.value)}), {percent(aligned.value)} at the same instant; {int(copied.sum())} equal "
        f"somebody's trace. They are {'' if closer else 'no '}closer to people than strangers are{_list(closer)}.",
        details={
            "own_seed_zero": clean,
            "own_aligned": aligned,
            "own_points_aligned": float(own[:, 0].sum() / link.fakes.size),
            "own_longest_run": int(own[:, 2].max()),
            "verbatim": int(copied.sum()),
            "ks_p": p,
            "ks_p_against_walks": p_walks,
            "closest": {name: float(near[:, i].mean()) for i, name in enumerate(MEASURES)},
            "closest_strangers": {name: float(far[:, i].mean()) for i, name in enumerate(MEASURES)},
            "closest_maximum": {name: int(near[:, i].max()) for i, name in enumerate(MEASURES)},
        },
    )


def _list(names: list[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _one_per_user(user: Ints, rng: np.random.Generator) -> Ints:
    shuffled = rng.permutation(len(user))
    return np.asarray(shuffled[np.unique(user[shuffled], return_index=True)[1]])
