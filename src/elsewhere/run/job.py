"""
What makes a job of `synthesize` the same as one that was stopped, and what of it is in its place already.

The key of a job is a hash of all that decides its fakes: the content of every file, every parameter, the secret of a
laboratory run, the versions of this package and of those it computes with. How many processes work, in which forms the
fakes are written and whether they are judged is no part of it: a job that was stopped may end without its judge.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elsewhere.checkpoint import Checkpoint, Stages, derived, digest, file_digest, kept
from elsewhere.errors import InvalidTraces
from elsewhere.privacy.deniable.release import COUNT
from elsewhere.privacy.private.release import SUMS
from elsewhere.run.model import is_data
from elsewhere.run.presets import Preset, Reading
from elsewhere.scale import versions
from elsewhere.traces.sources import Source

SECRET, READ, WRITTEN = "secret", "reading", "written"  # stages
SPENT = frozenset({COUNT, SUMS})


def key_of(
    source: Any, reading: Reading, settings: Preset, entropy: bytes | None, feasible: Any = None, **parameters: Any
) -> str | None:
    """Return the key of a job, None where its input cannot be told from another; `entropy` is a laboratory's secret."""
    fields = dict(vars(reading))
    try:
        return digest(
            {
                "versions": versions(),
                "source": _content(source),
                "reading": fields | {name: _content(fields[name]) for name in ("locations", "regions")},
                "preset": settings,
                "feasible": feasible if is_data(feasible) else _content(feasible),
                "given": None if entropy is None else derived(entropy, "key"),
                **parameters,
            }
        )
    except (TypeError, OSError, ValueError):
        return None


def _content(source: Any) -> Any:
    """Return what stands for an input: hash and name, which may be a user's, of a file or folder; else itself."""
    if isinstance(source, Source):
        return [source.user, source.raw]
    if isinstance(source, (str, os.PathLike)):
        try:
            return [Path(source).absolute().name, file_digest(Path(source))]
        except OSError as error:
            raise InvalidTraces("an input cannot be read.", code="E_OPEN") from error
    return source.to_pandas() if hasattr(source, "to_pandas") else source


def in_place(stages: Stages, folders: Sequence[Path]) -> bool:
    """Return whether what the folders hold was put there by the run that was stopped, and by nobody else."""
    if not kept(stages, WRITTEN):
        return False
    lists = stages(WRITTEN, list[dict[str, str]])
    return all(_holds_only(folder, files) for folder, files in zip(folders, lists, strict=True) if folder.exists())


def about_to_write(stages: Stages, folders: Sequence[Path]) -> None:
    """Remember what will be in the folders, by its sha256, before it is there."""
    if isinstance(stages, Checkpoint):  # anew where it goes on: it may be told to write other forms
        stages.keep(WRITTEN, [{path.name: file_digest(path) for path in folder.iterdir()} for folder in folders])


def _holds_only(folder: Path, files: dict[str, str]) -> bool:
    return all(path.is_file() and files.get(path.name) == file_digest(path) for path in folder.iterdir())
