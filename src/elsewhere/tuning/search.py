"""
Tuning the deniable mode without touching a seed: the settings that keep most of a seed for a wanted acceptance.

More groups, or a stronger pull, tell more of a seed, but a bucket of fewer than k seeds does not pass the gate. Each
candidate is rehearsed on the model's users (`rehearsal`); acceptance falls with the number of groups and with lam, so
the search goes up or down from where the default stands and stops where the wish is no longer met.
"""

import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from elsewhere.deny import SEEDS_TO_A_GROUP
from elsewhere.errors import InvalidParameter, NotEnoughUsers, require_between, require_whole
from elsewhere.learnt import learn
from elsewhere.presets import PRESETS, Preset, preset_of
from elsewhere.split import evenly
from elsewhere.synthesis.deniable.carried import MOST_GROUPS, USERS_TO_A_GROUP
from elsewhere.traces.model import Traces
from elsewhere.tuning.rehearsal import MOST_LEARNT, MOST_STAND_INS, Rehearsal, Trial, weighed

LEAST_USERS = 20
ENOUGH, MOST_TIMES = 750, 4  # people over all rehearsals; rehearsals at most
PARTS = (0.25, 0.5, 0.65, 0.8, 0.9, 1.0)  # of the most groups that seeds and people allow
LESS = 0.7  # times strength or lam: a weaker pull
LAMS = (1.0, 0.7, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.02, 0.0)
ETAS = (1e-3, 1e-2, 1e-1)
TUNED = {
    "walk": ("archetypes", "strength", "lam"),
    "allotted": ("archetypes", "eta", "lam"),
    "archetypes": ("archetypes", "eta", "lam"),
    "window": ("lam", "eta"),
}
STEPS = {"walk": 8, "allotted": 10, "archetypes": 10, "window": 14}  # trials that a search takes, about

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Tuning:
    """
    The settings chosen, for how many seeds and which wish, and all that were tried.

    `settings` are the parameters to give to `generate_fakes`, `words` the same for the command line; `met` is whether
    they are predicted to meet the wish. `archetypes` is None where the emission has no groups.
    """

    archetypes: int | None
    seeds: int
    k: int
    eps0: float
    theta: float
    acceptance: float
    kappa: int
    trials: tuple[Trial, ...]
    emission: str
    lam: float
    eta: float
    strength: float
    met: bool
    settings: dict[str, Any]
    words: str

    @property
    def chosen(self) -> Trial:
        """What the settings chosen are predicted to reach."""
        mine = self.archetypes, self.lam, self.eta, self.strength
        return next(t for t in self.trials if (t.archetypes, t.lam, t.eta, t.strength) == mine)

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
    progress: Progress | None = None,
    **parameters: Any,
) -> Tuning:
    """
    Settings of the deniable mode for a wanted acceptance, chosen on users who are no seeds.

    Of each candidate, fakes are drawn of some of the users by a sampler learnt from the others. The settings of the
    preset are where the search starts, and `strength` and `lam` are never raised: fakes that keep more of their seed
    live less like people.

    Parameters
    ----------
    traces
        Users to learn from; none of them may be a seed later.
    seeds
        Number of seeds planned: fixed in advance, never counted on the seeds themselves.
    acceptance
        Share of attempts that should pass the gate.
    kappa
        Number of semantic classes, or "auto": as many as halves of the users agree on.
    preset
        The preset to tune.
    rng
        Draws who stands in for the seeds, the groups and the fakes.
    progress
        Called as `progress(done, total)`; the total is an estimate.
    **parameters
        Any field of `Preset`: `emission`, `k`, `eps0`, `theta` ...

    Examples
    --------
    >>> import numpy as np, elsewhere as ew
    >>> town = ew.simulate_town(users=80, locations=60, rng=np.random.default_rng(1))
    >>> found = ew.tune(
    ...     town.traces, seeds=200, k=40, kappa=4, m_min=2, emission="archetypes", rng=np.random.default_rng(2)
    ... )
    >>> 1 <= found.archetypes <= 5
    True

    """
    settings = preset_of(preset, **parameters)
    if settings.name != "deniable":
        raise InvalidParameter(f'`preset` must be "deniable", got "{settings.name}": only its gate can be tuned.')
    require_between("acceptance", acceptance, 0, 1, open_low=True)
    if require_whole("seeds", seeds, 1) < settings.k:
        raise NotEnoughUsers(f"the gate needs at least {settings.k} seed users for `k` = {settings.k}, got {seeds}.")
    if traces.U < LEAST_USERS:
        raise NotEnoughUsers(f"tuning needs at least {LEAST_USERS} users to learn from, got {traces.U}.")
    if kappa == "auto":
        people, _ = evenly(traces, np.arange(traces.U), rng)
        # the number is that of the first clustering, however many there are to choose from
        kappa = learn(people, settings.changed(class_draws=1), kappa=kappa, rng=rng, carry=False).classes.kappa
    if isinstance(kappa, str):
        raise InvalidParameter(f'`kappa` must be a whole number or "auto", got {kappa!r}.')
    search = _Search(traces, settings, seeds, acceptance, kappa, rng, progress)
    if settings.emission == "window":
        search.by_windows()
    else:
        search.by_groups()
    search.tell(done=True)
    return _found(search)


class _Search:
    """The rehearsals of one search, and what was tried so far."""

    def __init__(
        self,
        traces: Traces,
        settings: Preset,
        seeds: int,
        wish: float,
        kappa: int,
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> None:
        self.settings, self.seeds, self.wish, self.kappa, self.users = settings, seeds, wish, kappa, traces.U
        self.tried: dict[tuple[Any, ...], tuple[Preset, Trial]] = {}
        self.progress, self.done = progress, 0
        times = int(np.clip(round(ENOUGH / traces.U), 1, MOST_TIMES))
        self.total = times * (1 + STEPS[settings.emission])
        self.rehearsals: list[Rehearsal] = []
        for i in range(times):
            if i % 2 == 0:
                one, other = np.array_split(rng.permutation(traces.U), 2)
            else:  # both halves have their turn
                one, other = other, one
            people, _ = evenly(traces, np.sort(one[:MOST_LEARNT]), rng)
            others = traces.of_users(np.sort(other[:MOST_STAND_INS]))
            self.rehearsals.append(Rehearsal.of(people, others, settings, kappa, rng))
            self.tell()

    def tell(self, done: bool = False) -> None:
        """Report progress: one step more, or the end."""
        self.done = self.total if done else min(self.done + 1, self.total - 1)
        if self.progress is not None:
            self.progress(self.done, self.total)

    def trial(self, **changed: Any) -> Trial:
        """What the rehearsals say of these settings."""
        settings = replace(self.settings, **changed)
        key = settings.archetypes, settings.lam, settings.eta, settings.strength
        if key not in self.tried:
            drawn = []
            for rehearsal in self.rehearsals:
                drawn.append(rehearsal(settings))
                self.tell()
            self.tried[key] = settings, weighed(drawn, settings, self.seeds)
        return self.tried[key][1]

    def passes(self, trial: Trial) -> bool:
        """Whether the wish is met."""
        return trial.accepted >= self.wish

    def best(self) -> tuple[Preset, Trial]:
        """Of those that meet the wish the settings that keep most; if none does, those that pass most often."""
        tried = list(self.tried.values())
        good = [found for found in tried if self.passes(found[1])]
        return max(good, key=lambda found: found[1].kept) if good else max(tried, key=lambda found: found[1].accepted)

    def by_groups(self) -> None:
        """The number of groups, up or down from the default; then the pull, where that lets more groups pass."""
        most = max(1, min(self.seeds // self.settings.k, self.users // USERS_TO_A_GROUP, MOST_GROUPS))
        numbers = sorted({1, *(max(1, round(part * most)) for part in PARTS)})
        start = self.settings.archetypes or self.seeds / (SEEDS_TO_A_GROUP * self.settings.k)
        at = int(np.argmin([abs(n - start) for n in numbers]))
        while self.passes(self.trial(archetypes=numbers[at])) and at + 1 < len(numbers):
            at += 1
        while at > 0 and not self.passes(self.trial(archetypes=numbers[at])):
            at -= 1
        self.trial(archetypes=numbers[at])
        # fewer groups may keep more: they are learnt from more people each
        while at > 0 and self.trial(archetypes=numbers[at - 1]).kept > self.trial(archetypes=numbers[at]).kept:
            at -= 1
        if self.settings.emission != "walk":
            for eta in ETAS:
                self.trial(archetypes=numbers[at], eta=eta)
        too_many = [n for n in numbers if n > numbers[at]][:1]
        for n in too_many:
            for name in ("strength", "lam") if self.settings.emission == "walk" else ("lam",):
                self.trial(archetypes=n, **{name: round(LESS * getattr(self.settings, name), 6)})

    def by_windows(self) -> None:
        """For each eta the largest lam that passes, by bisection: acceptance falls as lam grows."""
        lams = [x for x in LAMS if x <= self.settings.lam]
        if self.settings.lam not in lams:
            lams = [self.settings.lam, *lams]
        for eta in sorted({*ETAS, self.settings.eta}):
            low, high = 0, len(lams) - 1  # the answer is in lams[low:]; lam = 0 carries nothing and passes
            while low < high:
                at = (low + high) // 2
                low, high = (low, at) if self.passes(self.trial(lam=lams[at], eta=eta)) else (at + 1, high)
            self.trial(lam=lams[low], eta=eta)


def _found(search: _Search) -> Tuning:
    best, chosen = search.best()
    usual = PRESETS["deniable"]
    tuned = ("emission", *TUNED[best.emission])
    given = [n for n, value in asdict(best).items() if n not in (*tuned, "name") and value != getattr(usual, n)]
    settings = {name: getattr(best, name) for name in (*tuned, *given)}
    words = [f"--kappa {search.kappa}", *(f"--set {shlex.quote(f'{n}={v}')}" for n, v in settings.items())]
    return Tuning(
        archetypes=chosen.archetypes,
        seeds=search.seeds,
        k=best.k,
        eps0=best.eps0,
        theta=best.theta,
        acceptance=search.wish,
        kappa=search.kappa,
        trials=tuple(trial for _, trial in search.tried.values()),
        emission=best.emission,
        lam=best.lam,
        eta=best.eta,
        strength=best.strength,
        met=search.passes(chosen),
        settings=settings,
        words=" ".join(words),
    )
