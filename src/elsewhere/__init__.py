"""
Turn real location traces into fake ones that live like people, elsewhere, and point at no one.

The front door: what most programs need, loaded when it is first used, so that `import elsewhere` costs next to nothing.
Types of results, errors and what experts need are in their modules, which the reference names (`make docs`).

The rooms, in the order of a run; each imports only those before it (docs/architecture.md):

    traces      reads files into slots and places, and writes them
    paper       the paper: profiles, similarities, classes of places, the privacy test, its fakes
    synthesis   fakes by walks with memory
    privacy     certificates
    run         the whole job, from a file to two folders
    evaluation  attacks on fakes, and what they are good for
    reports     figures and pages
    cli         one command per library call

`pool`, `serve` and `lbs` are the public side: they hand out published fakes and have never seen a real trace. Under all
rooms are `errors`, `files`, `checkpoint`, `scale` and `sorting`.
"""

from importlib import import_module
from typing import Any

from elsewhere import errors
from elsewhere._version import __version__

_HOME = {
    "Cluster": "scale",
    "ElsewhereError": "errors",
    "Fakes": "run.fakes",
    "Locations": "traces.model",
    "Periods": "traces.model",
    "Pool": "pool",
    "Preset": "run.presets",
    "Reading": "run.presets",
    "SemanticClasses": "paper.semantic_clustering",
    "Traces": "traces.model",
    "aggregate": "paper.aggregate",
    "audit": "evaluation.attacks.audit",
    "evaluate_lbs": "evaluation.lbs.scenario",
    "evaluate_publishing": "evaluation.publishing.scenario",
    "fit_profiles": "paper.profiles",
    "generate_fakes": "run.generate",
    "geographic_similarity": "paper.geographic_similarity",
    "learn": "run.model",
    "mallows_distance": "paper.geographic_similarity",
    "pairwise_semantic_similarity": "paper.pairwise",
    "plan": "run.plan",
    "privacy_test": "paper.privacy_test",
    "publish": "run.publish",
    "read_traces": "traces.read",
    "report": "reports.page",
    "semantic_clustering": "paper.semantic_clustering",
    "semantic_graph": "paper.graph",
    "semantic_similarity": "paper.semantic_similarity",
    "simulate_town": "traces.town",
    "synthesize": "run.synthesize",
    "write_traces": "traces.write",
}

__all__ = ["__version__", "errors", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(
            f"module 'elsewhere' has no attribute {name!r}; the reference (`make docs`) names what its modules have"
        )
    value = getattr(import_module(f"elsewhere.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
