"""
The library's words in those of the command line: `max_gap` is --max-gap here, `m_min` is --set m_min, `rng` is --seed.

Messages and notes come from the library, which names its parameters; whoever typed a command knows only options. What
the running command has no option for keeps its own name.
"""

import re
from collections.abc import Iterable
from contextvars import ContextVar

# parameters of the library whose option is called otherwise, or that are part of another input
OTHERWISE = {"rng": "--seed", "laboratory=True": "--i-know", "seed_index": "--links", "classes": "--model"}
# words that mean a trace, labels or a table where they stand in messages, and not the option of that name
OTHERS = {"seed", "seeds", "users", "fakes", "real", "report", "out", "set"}
QUOTED = re.compile(r"""`(?P<name>[A-Za-z]\w*)(?:=(?P<value>"[^"`]*"|\w+))?`""")

_options: ContextVar[frozenset[str]] = ContextVar("options", default=frozenset())


def speak_of(options: Iterable[str]) -> None:
    """From now on, messages are for somebody who typed a command with these options."""
    _options.set(frozenset(options))


def spoken(text: str) -> str:
    """The text with parameters of the library called by the options of the running command."""
    return QUOTED.sub(lambda found: _option(found["name"], found["value"]) or found[0], text)


def _option(name: str, value: str | None) -> str | None:
    options = _options.get()
    plain = "" if value is None else value.strip('"')
    other = OTHERWISE.get(name if value is None else f"{name}={value}")
    # what is repeatable by `rng` may have been made by another command
    if other is not None and (other in options or other == "--seed"):
        return other
    for option in (f"--{name.replace('_', '-')}", f"-{name}"):
        if option in options and name not in OTHERS:
            return option if plain in ("", "True") else f"{option} {plain}"
    if name == "out_as":  # what is prepared here is written by another command
        return f"--out-as {plain} (of synthesize)"
    if "--set" in options and name in _parameters():
        return f"--set {name}={plain}" if plain else f"--set {name}"
    return None


def _parameters() -> set[str]:
    from dataclasses import fields

    from elsewhere.presets import Preset

    return {field.name for field in fields(Preset)} - {"name"}
