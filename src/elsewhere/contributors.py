"""
Who has contributed to a model: keyed hashes of user labels, in a private file beside it, never published.

The guarantee of the deniable mode needs seeds who have not met the model, and the product's alternates must not have
either (E53); this file lets a later command check it without keeping any name.
"""

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elsewhere.errors import InvalidModel
from elsewhere.files import read_index
from elsewhere.traces.model import Traces

FILE = "contributors.json"


@dataclass(frozen=True, eq=False)
class Contributors:
    """The same in memory, beside a model that is not on disk: whoever asserts that no seed is among them is checked."""

    key: bytes = field(repr=False)
    users: frozenset[str] = field(repr=False)

    @staticmethod
    def of(traces: Traces, before: "Contributors | None" = None) -> "Contributors":
        """The users of these traces, and those of `before`."""
        key = secrets.token_bytes(32) if before is None else before.key
        named = {_hash(key, label) for label in traces.labels}
        return Contributors(key, frozenset(named) if before is None else before.users | named)

    def met(self, traces: Traces) -> int:
        """How many users here are among them by name; numbers name nobody: rows without names are numbered too."""
        return sum(_hash(self.key, label) in self.users for label in traces.labels if isinstance(label, str))


def contributors_file(traces: Traces) -> dict[str, bytes]:
    """The private file that remembers the users of these traces, name -> content."""
    key = secrets.token_bytes(32)
    users = sorted(_hash(key, label) for label in traces.labels)
    return {FILE: json.dumps({"key": key.hex(), "users": users}).encode()}


def contributed(folder: str | Path, traces: Traces) -> NDArray[np.bool_] | None:
    """Which users of these traces the model in `folder` has met, (U,); None if the model does not remember."""
    path = Path(folder) / FILE
    if not path.exists():
        return None
    try:
        told = read_index(path)
        key, users = bytes.fromhex(told["key"]), set(told["users"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidModel(f"{FILE} beside the model cannot be read.") from None
    return np.array([_hash(key, label) in users for label in traces.labels], dtype=bool)


def _hash(key: bytes, label: Any) -> str:
    return hmac.new(key, str(label).encode(), hashlib.sha256).hexdigest()
