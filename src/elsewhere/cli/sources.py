"""What the judging commands read: real traces, fakes of any tool on the same places, and who was made from whom."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elsewhere.cli.options import Reading
from elsewhere.cli.output import counts, repairs, stage
from elsewhere.errors import InvalidParameter

if TYPE_CHECKING:
    from elsewhere.learnt import Learnt
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.model import Ints, Traces
    from elsewhere.traces.together import Reader

Real = Annotated[
    Path, typer.Option("--real", metavar="FILE", help="Real traces: CSV, Parquet or SGLT.", show_default=False)
]
Made = Annotated[
    Path,
    typer.Option(
        "--fakes",
        metavar="FILE|DIR",
        help="Fakes of any tool, in the same forms; or a folder of `synthesize`, `publish` or `generate`.",
        show_default=False,
    ),
]
Links = Annotated[
    str | None,
    typer.Option(
        "--links",
        metavar="FILE|same",
        help="Private CSV fake,seed[,date]: who was made from whom; `same`: fakes carry their seeds' ids.",
    ),
]
FROM_SEEDS = "these figures come from the seeds and are not covered by eps and delta: think before you share them."
Model = Annotated[Path | None, typer.Option("--model", metavar="DIR", help="What `fit` learnt: model and classes.")]


@dataclass(frozen=True, eq=False)
class Sources:
    """The real traces, how they were read, and everything else on their map."""

    reader: "Reader"
    real: "Traces"
    made: "Preparation"
    fakes: "Traces | None" = None
    seed_index: "Ints | None" = None
    published: bool = False
    private: Any = None  # the `Fakes` of a private folder
    deniable: bool = False  # whether the fakes carry a ledger
    notes: tuple[str, ...] = field(default=())

    def further(self, path: Path | None, option: str) -> "tuple[Traces | None, Sources]":
        """Another file of real traces on the same map, and the notes with it."""
        if path is None:
            return None, self
        with stage(f"reading {option}"):
            traces, notes = self.reader.further(path, self.real, self.made, option)
        return traces, replace(self, notes=(*self.notes, *notes))

    def learnt(self, model: Path | None) -> "Learnt | None":
        """The model in a folder of `fit`, refused where its map is another one."""
        if model is None:
            return None
        from elsewhere.learnt import Learnt

        found = Learnt.load(model)
        if found.model.locations != self.real.locations:
            raise InvalidParameter(
                "the model of `--model` is of another map than the real traces; read them with the file, --cells, "
                "--step and --locations that `fit` was given.",
                code="E_MISMATCH",
            )
        return found


def read_real(path: Path, reading: Reading) -> Sources:
    """The real traces, which make the map."""
    from elsewhere.traces.together import Reader

    reader = Reader.of(reading.keywords())
    with stage("reading --real"):
        real, made = reader.first(path)
    return Sources(reader, real, made, notes=(*repairs(counts(made)), *made.notes))


def with_fakes(sources: Sources, path: Path, links: str | None) -> Sources:
    """The same with fakes of a file or folder, and with their seeds where these are known."""
    with stage("reading --fakes"):
        found = _folder(sources, path) if path.is_dir() else _file(sources, path)
    if links is None:
        return found
    from elsewhere.links import read_links

    assert found.fakes is not None  # noqa: S101 - both ways above read them
    return replace(found, seed_index=read_links(links, found.fakes, found.real))


def _file(sources: Sources, path: Path) -> Sources:
    fakes, notes = sources.reader.further(path, sources.real, sources.made, "--fakes")
    return replace(sources, fakes=fakes, notes=(*sources.notes, *notes))


def _folder(sources: Sources, path: Path) -> Sources:
    """A published pool, or the private folder of `generate`, which knows the seeds."""
    from elsewhere.traces.together import onto

    if not (path / "fakes.npz").exists():
        from elsewhere.pool import Pool

        pool = Pool.load(path)
        fakes, notes = onto(pool.traces, sources.real, "--fakes")
        deniable = pool.provenance.get("ledger") is not None
        notes = (*sources.notes, *notes, *([FROM_SEEDS] if deniable else []))
        return replace(sources, fakes=fakes, published=True, deniable=deniable, notes=notes)
    import numpy as np

    from elsewhere.fakes import Fakes
    from elsewhere.traces.model import Traces

    private, real = Fakes.load(path), sources.real
    frame = private.frame
    if frame.locations != real.locations:
        raise InvalidParameter(
            "the fakes of `--fakes` were made on another map than that of `--real`; give the file, --cells, --step "
            "and --locations that `generate` was given.",
            code="E_MISMATCH",
        )
    whole = np.flatnonzero(np.all(real.r >= 0, axis=1))  # the rows that `generate` took for its seeds
    if private.seed.max() >= len(whole):
        raise InvalidParameter("`--real` has fewer traces than the fakes of `--fakes` have seeds.", code="E_MISMATCH")
    fakes = Traces(private.r, real.locations, step_minutes=frame.step_minutes, start=frame.start, tz=frame.tz)
    deniable = private.ledger is not None
    notes = (*sources.notes, *([FROM_SEEDS] if deniable else []))
    seeds = whole[private.seed]
    return replace(sources, fakes=fakes, seed_index=seeds, private=private, deniable=deniable, notes=notes)


def write_results(out: Path, name: str, told: dict[str, Any], results: list[Any], sources: Sources) -> list[str]:
    """
    The numbers as JSON, and the shareable edition of the report beside them; what to say about it.

    The report shows no classes: whoever holds them links fakes to seeds better (A5). Nor does it show fakes of a
    private folder, which leave the house by `publish` alone (E59).
    """
    from elsewhere.files import whole_folder, write_files
    from elsewhere.reports.page import report

    shown = None if sources.private is not None else sources.fakes
    run = {"notes": [FROM_SEEDS]} if sources.deniable else None
    with stage("writing the report"), whole_folder(out, force=True) as new:  # the command has looked whether it may
        write_files(new, {name: (json.dumps(told, indent=1, allow_nan=False) + "\n").encode()})
        report(results, new / "report.html", fakes=shown, run=run)
    return [f"wrote {out / name}", f"wrote {out / 'report.html'}"]
