"""
Tuning the deniable mode without touching a seed: how many groups, on users of the model alone.

More groups tell more of a seed, but a group of fewer than k seeds does not pass the gate. What a number of groups would
reach is estimated by learning the groups from one half of the users and sorting the other half into them.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import NotEnoughUsers, require_between, require_whole
from elsewhere.learnt import learn
from elsewhere.presets import Preset, preset_of
from elsewhere.privacy.deniability import release_probability
from elsewhere.synthesis.deniable.allotment import share_out
from elsewhere.synthesis.deniable.archetypes import learn_archetypes, scores
from elsewhere.traces.model import Traces

HALVES = 4
MOST_GROUPS = 64
LEAST_USERS = 20


@dataclass(frozen=True)
class Trial:
    """What so many groups would reach: share of attempts that pass, class agreement kept of the own seed."""

    archetypes: int
    accepted: float
    kept: float


@dataclass(frozen=True)
class Tuning:
    """The number of groups chosen, for how many seeds and which wish, and all that were tried."""

    archetypes: int
    seeds: int
    k: int
    eps0: float
    theta: float
    acceptance: float
    kappa: int
    trials: tuple[Trial, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain numbers."""
        return asdict(self)


def tune(
    traces: Traces,
    *,
    seeds: int,
    acceptance: float = 0.8,
    kappa: int | str = "auto",
    preset: str | Preset = "deniable",
    rng: np.random.Generator,
    **parameters: Any,
) -> Tuning:
    """
    The number of archetypes for a wanted acceptance, chosen on users who are no seeds.

    Parameters
    ----------
    traces
        Users to learn from; none of them may be a seed later.
    seeds
        Number of seeds planned: fixed in advance, never counted on the seeds themselves.
    acceptance
        Share of attempts that should pass the gate.
    kappa
        Number of semantic classes, or "auto".
    preset
        The preset to tune.
    rng
        Draws the halves and the starts.
    **parameters
        Any field of `Preset`: `k`, `eps0`, `theta` ...

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> town = ew.simulate_town(users=80, locations=60, rng=np.random.default_rng(1))
    >>> found = ew.tune(town.traces, seeds=200, k=40, kappa=4, m_min=2, rng=np.random.default_rng(2))
    >>> 1 <= found.archetypes <= 5
    True

    """
    settings = preset_of(preset, **parameters)
    require_between("acceptance", acceptance, 0, 1, open_low=True)
    if require_whole("seeds", seeds, 1) < settings.k:
        raise NotEnoughUsers(f"the gate needs at least {settings.k} seed users for `k` = {settings.k}, got {seeds}.")
    if traces.U < LEAST_USERS:
        raise NotEnoughUsers(f"tuning needs at least {LEAST_USERS} users to learn from, got {traces.U}.")
    learnt = learn(traces, settings, kappa=kappa, rng=rng)
    shared = learnt.translate(traces)
    # one row per user: the user is what a group holds
    r = shared.r[np.unique(shared.user, return_index=True)[1]]
    classes = np.where(r >= 0, learnt.classes.label[r], -1)
    most = min(seeds // settings.k, len(classes) // 4, MOST_GROUPS)
    numbers = sorted({1, *(int(n) for n in np.unique(np.geomspace(1, max(1, most), 10).round()))})
    trials = tuple(
        try_groups(classes, learnt.classes.kappa, n, seeds, settings, np.random.default_rng(rng.integers(2**63)))
        for n in numbers
    )
    good = [t for t in trials if t.accepted >= acceptance] or [max(trials, key=lambda t: t.accepted)]
    best = max(good, key=lambda t: t.kept)
    return Tuning(
        best.archetypes,
        seeds,
        settings.k,
        settings.eps0,
        settings.theta,
        acceptance,
        learnt.classes.kappa,
        trials,
    )


def try_groups(
    classes: NDArray[np.integer], kappa: int, n: int, seeds: int, settings: Preset, rng: np.random.Generator
) -> Trial:
    """Acceptance and agreement that `n` groups would reach with so many seeds, over several halves of the users."""
    passes = np.array([release_probability(c, k=settings.k, eps0=settings.eps0) for c in range(seeds + 1)])
    found = []
    for _ in range(HALVES):
        order = rng.permutation(len(classes))
        learnt, others = classes[order[: len(order) // 2]], classes[order[len(order) // 2 :]]
        groups = learn_archetypes(learnt, kappa, n, rng=rng)
        overall = np.einsum("a,atc->tc", groups.weights, groups.share)
        plan = share_out(groups.share, groups.weights, overall, settings.theta)
        group = groups.nearest(others)
        size = np.bincount(group, minlength=len(plan)) / len(others)
        chance = passes[np.round(size * seeds).astype(np.int64)]
        agree = scores(others, plan) / np.maximum((others >= 0).sum(axis=1), 1)[:, None]
        own = agree[np.arange(len(others)), group]
        weight = chance[group]
        kept = float(weight @ (own - agree.mean(axis=0)[group]) / max(weight.sum(), 1e-300))
        found.append((float(size @ chance), kept))
    accepted, kept = np.mean(found, axis=0)
    return Trial(n, float(accepted), float(kept))
