"""
From real location traces, make fake ones that live like people, elsewhere, and point at no one.

The front door: every public name, loaded when it is first used, so that `import elsewhere` costs next to nothing.
"""

from importlib import import_module
from typing import Any

from elsewhere._version import __version__

_HOME = {
    "AggregateModel": "profiles.aggregate",
    "AuditResult": "evaluation.attacks.audit",
    "Certificate": "privacy.certificate",
    "Cluster": "scale",
    "ClusterUnavailable": "errors",
    "ElsewhereError": "errors",
    "Fakes": "run.fakes",
    "InvalidModel": "errors",
    "InvalidParameter": "errors",
    "InvalidTraces": "errors",
    "LbsResult": "evaluation.lbs.scenario",
    "Learnt": "run.model",
    "LivesResult": "evaluation.lives",
    "LocationGraph": "semantics.graph",
    "Locations": "traces.model",
    "MissingExtra": "errors",
    "MobilityProfile": "profiles.markov",
    "NoFeasiblePath": "errors",
    "NotEnoughAlternates": "errors",
    "NotEnoughUsers": "errors",
    "NothingPassed": "errors",
    "OutputRefused": "errors",
    "Periods": "traces.model",
    "Pool": "pool",
    "Preset": "run.presets",
    "Profiles": "profiles.markov",
    "PublicationRefused": "errors",
    "PublishingResult": "evaluation.publishing.scenario",
    "Reading": "run.presets",
    "Result": "run.synthesize",
    "SemanticClasses": "semantics.classes",
    "SemanticMatch": "similarity.semantic",
    "Town": "traces.town",
    "Traces": "traces.model",
    "Unfakeable": "errors",
    "UnknownUser": "profiles.markov",
    "Uses": "evaluation.uses",
    "Verdict": "privacy.rules",
    "aggregate": "profiles.aggregate",
    "audit": "evaluation.attacks.audit",
    "evaluate_lbs": "evaluation.lbs.scenario",
    "evaluate_publishing": "evaluation.publishing.scenario",
    "fit_profiles": "profiles.markov",
    "generate_fakes": "run.generate",
    "geographic_similarity": "similarity.geographic",
    "judge_lives": "evaluation.lives",
    "judge_uses": "evaluation.uses",
    "learn": "run.model",
    "mallows_distance": "similarity.geographic",
    "pairwise_geographic_similarity": "similarity.pairwise",
    "pairwise_semantic_similarity": "similarity.pairwise",
    "plan": "run.plan",
    "privacy_test": "privacy.rules",
    "publish": "run.publish",
    "read_traces": "traces.read",
    "report": "reports.page",
    "scaled_distance": "similarity.geographic",
    "semantic_clustering": "semantics.classes",
    "semantic_graph": "semantics.graph",
    "semantic_similarity": "similarity.semantic",
    "simulate_town": "traces.town",
    "synthesize": "run.synthesize",
    "write_traces": "traces.write",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'elsewhere' has no attribute {name!r}")
    value = getattr(import_module(f"elsewhere.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
