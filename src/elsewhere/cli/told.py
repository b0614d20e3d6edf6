"""How the input of a folder was read, as the folder tells: later commands on the same input need no option."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elsewhere.traces.fixes import Preparation

FILE = "reading.json"  # beside a model
LARGEST = 2**26


def reading_file(read: "Preparation") -> dict[str, bytes]:
    """The file that says how the input of a model was read, name -> content."""
    return {FILE: (json.dumps(read.in_public(), indent=1) + "\n").encode()}


def made_by(path: Path) -> dict[str, Any]:
    """
    How the input was read that fakes or a model were made of, see `Preparation.in_public`; empty where nothing tells.

    A published folder or one of its files has a manifest, a private one the index of its fakes, a model its own file.
    """
    manifest = manifest_of(path if path.is_dir() else path.parent)
    if manifest and (path.is_dir() or path.name in manifest["files"]):
        return _valid({**_part(manifest, "provenance", "reading"), "step_minutes": manifest.get("step_minutes")})
    if (path / "fakes.json").is_file():
        told = _index(path / "fakes.json")
        return _valid(
            {
                **_part(told, "input", "reading"),
                **{n: v for n, v in _part(told, "clock").items() if n == "step_minutes"},
            }
        )
    return _valid(_index(path / FILE))


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of the pool in a folder; empty where there is none."""
    from elsewhere.pool import KIND

    manifest = _index(folder / "manifest.json")
    return manifest if manifest.get("kind") == KIND and isinstance(manifest.get("files"), dict) else {}


def _index(path: Path) -> dict[str, Any]:
    from elsewhere.files import read_index

    try:
        return dict(read_index(path, LARGEST))
    except (OSError, ValueError, TypeError):
        return {}


def _part(told: Any, *names: str) -> dict[str, Any]:
    for name in names:
        told = told.get(name) if isinstance(told, Mapping) else None
    return dict(told) if isinstance(told, Mapping) else {}


def _valid(told: dict[str, Any]) -> dict[str, Any]:
    """What can be believed of it: somebody may have written in these files."""
    from elsewhere.traces.gaps import GAPS

    def is_whole(name: str) -> bool:
        number = told.get(name)
        return (
            isinstance(number, (int, float)) and not isinstance(number, bool) and 0 < number < 2**31 and number % 1 == 0
        )

    good = {name: int(told[name]) for name in ("step_minutes", "cells") if is_whole(name)}
    good |= {name: told[name] for name in ("places_by",) if isinstance(told.get(name), str)}
    good |= {name: told[name] for name in ("gaps",) if told.get(name) in GAPS}
    good |= {name: told[name] for name in ("max_gap_auto", "places_joined") if isinstance(told.get(name), bool)}
    if good.get("max_gap_auto") is False:
        good |= (
            {"max_gap_minutes": int(told["max_gap_minutes"])} if is_whole("max_gap_minutes") else {"max_gap_auto": True}
        )
    return good
