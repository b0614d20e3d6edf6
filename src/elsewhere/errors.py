"""
Every error the package raises on purpose.

    ElsewhereError                  carries `code` (E_...), `parameter` and `exit_status` (2 refused, 3 nothing passed)
    |- InvalidTraces                traces, profiles or places that cannot be what they claim to be
    |- InvalidParameter             a parameter outside its range; the message names it, the range and the value
    |  `- UnknownUser               a user number that no profile has
    |- InvalidModel                 a model or pool file that is damaged, foreign or too new
    |- NotEnoughUsers               fewer users than the privacy parameters need; the message names the minimum
    |  `- NotEnoughAlternates       the same, for the alternates of the differential similarity test (E52, E60)
    |- NoFeasiblePath               no trace of positive probability goes through the candidate sets (E33)
    |- Unfakeable                   a slot of a seed for which the ladder of E45 finds no candidate
    |- NothingPassed                every attempt was rejected by the privacy tests (exit 3)
    |- PublicationRefused           a laboratory run, or a seed whose budget is spent (E59, R2)
    |- OutputRefused                an output that exists, or cannot be written
    |- ClusterUnavailable           a Dask scheduler or its workers that cannot be used, or went away
    `- MissingExtra                 an optional library is not installed; the message says how to install it

An error has its whole message; the command line adds the option of its `parameter`, and nobody reads a message to learn
more. A message shows the value of a *parameter*; of a trace it names file, line and code, never content
(docs/reliability.md). The entropy of a run appears in no message.
"""

from numbers import Integral, Real
from typing import Any


class ElsewhereError(Exception):
    """
    Base of all errors of the package.

    Parameters
    ----------
    message
        One line: what is wrong, the range, and what to do.
    code
        Stable name of the fault, `E_...`; scripts and tests look at it.
    parameter
        Name of the parameter to change, if there is one.

    """

    code = "E_ELSEWHERE"
    exit_status = 2
    parameter: str | None = None

    def __init__(self, message: str, *, code: str | None = None, parameter: str | None = None) -> None:
        super().__init__(message)
        # as attributes of the error, by which they survive the way back from a worker process
        if code is not None:
            self.code = code
        if parameter is not None:
            self.parameter = parameter

    def __str__(self) -> str:
        return f"{self.code}: {self.args[0]}"


class InvalidTraces(ElsewhereError, ValueError):
    """Traces, profiles or places that cannot be what they claim to be."""

    code = "E_TRACES"


class InvalidParameter(ElsewhereError, ValueError):
    """A parameter outside its range."""

    code = "E_PARAM"


class UnknownUser(InvalidParameter, IndexError):
    """A user number that no profile has."""

    code = "E_USER"


class InvalidModel(ElsewhereError, ValueError):
    """A model or pool file that is damaged, foreign or too new."""

    code = "E_MODEL"


class NotEnoughUsers(ElsewhereError, ValueError):
    """Fewer users than the privacy parameters need."""

    code = "E_TOO_FEW"


class NotEnoughAlternates(NotEnoughUsers):
    """Fewer alternate users than the differential similarity test needs (E52, E60)."""


class NoFeasiblePath(ElsewhereError):
    """No trace of positive probability goes through the candidate sets (E33)."""

    code = "E_PATH"


class Unfakeable(ElsewhereError):
    """A slot of a seed for which the ladder of E45 finds no candidate."""

    code = "E_UNFAKEABLE"


class NothingPassed(ElsewhereError):
    """Every attempt was rejected by the privacy tests."""

    code = "E_NOTHING_PASSED"
    exit_status = 3


class PublicationRefused(ElsewhereError):
    """A laboratory run, or a seed whose budget is spent (E59, R2)."""

    code = "E_PUBLISH"


class OutputRefused(ElsewhereError):
    """An output that exists already, or cannot be written."""

    code = "E_OUTPUT"


class ClusterUnavailable(ElsewhereError):
    """A Dask scheduler, its workers or the processes of another executor that cannot be used, or went away."""

    code = "E_CLUSTER"


class MissingExtra(ElsewhereError, ImportError):
    """An optional library is not installed."""

    code = "E_EXTRA"


def counted(n: int, one: str, several: str | None = None) -> str:
    """
    Return a number with its noun.

    Examples
    --------
    >>> counted(1, "column"), counted(1200, "person", "people")
    ('1 column', '1,200 people')

    """
    return f"{n:,} {one if n == 1 else several or f'{one}s'}"


def require_between(
    name: str, value: float, low: float, high: float, *, open_low: bool = False, open_high: bool = False
) -> float:
    """
    Return `value` if it lies in the interval, else `InvalidParameter` naming parameter, range and value.

    NaN lies in no interval; what is no number (a text that reads like one, an array) neither.
    """
    anything: object = value
    number = float(anything) if isinstance(anything, Real) else float("nan")
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if isinstance(anything, bool) or not (above and below):
        left, right = "(" if open_low else "[", ")" if open_high else "]"
        raise InvalidParameter(f"`{name}` must be in {left}{low:g}, {high:g}{right}, got {value!r}.", parameter=name)
    return number


def require_whole(name: str, value: int, low: int, high: int | None = None) -> int:
    """Return `value` as int if it is a whole number in [low, high], else `InvalidParameter`."""
    anything: object = value
    whole = not isinstance(anything, bool) and isinstance(anything, Integral)
    if not whole or value < low or (high is not None and value > high):
        upper = "" if high is None else f" and at most {high}"
        raise InvalidParameter(
            f"`{name}` must be a whole number, at least {low}{upper}, got {value!r}.", parameter=name
        )
    return int(value)


def require_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, else `InvalidParameter` listing them."""
    if value not in choices:
        listing = ", ".join(f'"{c}"' for c in choices)
        raise InvalidParameter(f"`{name}` must be one of {listing}, got {value!r}.", parameter=name)
    return value


def require_rng(rng: Any) -> None:
    """Refuse anything but a numpy Generator."""
    import numpy as np

    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a `numpy.random.Generator`, got {type(rng).__name__}.", parameter="rng")
