"""
Everything there is to say about a run: what its published fakes are good for, and what attacks learn of them.

What is judged is the pool that leaves the house. Fakes are compared with strangers: people of whom no fake was made.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from elsewhere._version import __version__
from elsewhere.data.visits import Ints, Visits
from elsewhere.errors import ClusterUnavailable, ElsewhereError
from elsewhere.evaluation.audit import AuditResult, audit
from elsewhere.evaluation.usefulness import Usefulness, judge_usefulness
from elsewhere.pool import Pool

# visitors that a place of fakes must have: the map's threshold of eight is drawn with noise, which publishes a place of
# one person in fewer than 1 of 1,000 cases, and one of four, where nobody's presence decides, in 13
ALONE = 2


@dataclass(frozen=True, eq=False)
class Judgement:
    """The results of all judges, where there are any, and what a report says about the run."""

    usefulness: Usefulness | None
    audit: AuditResult | None
    run: dict[str, Any] = field(repr=False)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON; None where something could not be judged."""
        return {
            "usefulness": None if self.usefulness is None else self.usefulness.to_dict(),
            "audit": None if self.audit is None else self.audit.to_dict(),
            "run": self.run,
            "notes": list(self.notes),
        }


def judge_run(
    people: Visits,
    seeds: Ints,
    pool: Pool,
    seed_of_life: Ints,
    *,
    holdout: Visits | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    rng: np.random.Generator,
) -> Judgement:
    """
    Evaluate and attack the published fakes of a run.

    Parameters
    ----------
    people
        The real people that `generate_fakes` was given.
    seeds
        Those of them who could be a seed; everybody, where fakes are made of nobody in particular.
    pool, seed_of_life
        What is published, and the person behind each life, -1 for nobody in particular.
    holdout
        People who were set aside before anything was learnt; by default those who are nobody's seed.
    executor, progress, rng
        Where attacks run, how far they are, and the draws of the judge.

    """
    of_uses, of_attacks = rng.spawn(2)
    nobody = bool(np.all(seed_of_life < 0))
    taught = np.arange(people.U) if nobody else seeds
    others = np.setdiff1d(np.arange(people.U), taught)
    strangers = holdout if holdout is not None else people.of_users(others) if len(others) else None
    # who is neither a seed nor set aside is in the file all the same
    roles = {"other people in the file": people.of_users(others)} if holdout is not None and len(others) > 1 else {}
    notes = []
    if strangers is None:
        notes.append("everybody is behind the fakes: set people aside (`holdout`) to have strangers to compare with.")
    makers = people.of_users(taught)
    usefulness, findings = None, None
    try:
        usefulness = judge_usefulness(makers, strangers, pool.visits, rng=of_uses)
    except ElsewhereError as error:
        notes.append(f"what the fakes are good for could not be judged: {error.args[0]}")
    try:
        findings = audit(
            makers,
            strangers,
            pool.visits,
            None if nobody else np.searchsorted(taught, seed_of_life),
            m_min=ALONE,
            roles=roles,
            executor=executor,
            progress=progress,
            rng=of_attacks,
        )
    except ClusterUnavailable:  # which is no word on the fakes: the run stops, and goes on when it is there again
        raise
    except ElsewhereError as error:
        notes.append(f"no attack could be run: {error.args[0]}")
    sizes = {"people": people.U, "visits": len(people), "places": people.R, "seeds": makers.U}
    sizes |= {"strangers": 0 if strangers is None else strangers.U, "fakes": len(pool), "fake visits": len(pool.visits)}
    versions = {"elsewhere": __version__, "numpy": np.__version__}
    return Judgement(usefulness, findings, {**pool.provenance, "versions": versions, "sizes": sizes}, tuple(notes))
