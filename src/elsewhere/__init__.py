"""
From real location traces, make fake ones that live like people, elsewhere, and point at no one.

The front door: every public name, loaded when it is first used, so that `import elsewhere` costs next to nothing.
"""

from importlib import import_module
from typing import Any

from elsewhere._version import __version__

_HOME = {
    "ElsewhereError": "errors",
    "InvalidModel": "errors",
    "InvalidParameter": "errors",
    "InvalidTraces": "errors",
    "Locations": "traces.model",
    "MissingExtra": "errors",
    "MobilityProfile": "profiles.markov",
    "NoFeasiblePath": "errors",
    "NotEnoughAlternates": "errors",
    "NotEnoughUsers": "errors",
    "NothingPassed": "errors",
    "OutputRefused": "errors",
    "Periods": "traces.model",
    "Profiles": "profiles.markov",
    "PublicationRefused": "errors",
    "Traces": "traces.model",
    "Unfakeable": "errors",
    "fit_profiles": "profiles.markov",
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
