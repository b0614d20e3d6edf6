"""What judging commands read: real traces, fakes of any tool on the same places, who was made from whom, and how."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elsewhere.cli.output import stage
from elsewhere.errors import InvalidParameter
from elsewhere.run.finish import reading_facts, repairs
from elsewhere.run.reading import completed_from, reading_keywords
from elsewhere.settings import PRESETS, Reading

if TYPE_CHECKING:
    import numpy as np

    from elsewhere.data.slots import Traces
    from elsewhere.data.visits import Ints
    from elsewhere.run.model import FittedModel
    from elsewhere.traces.fixes import Preparation
    from elsewhere.traces.read import First

FILE = "reading.json"  # beside a model
LARGEST = 2**26
UNCOVERED = "these figures are computed from real people, and no theorem covers them: think before you share them."


def reading_file(read: "Preparation") -> dict[str, bytes]:
    """Return the file that says how the input of a model was read, name -> content."""
    return {FILE: (json.dumps(read.in_public(), indent=1) + "\n").encode()}


def made_by(path: Path) -> dict[str, Any]:
    """
    Return how the input of some fakes, or of a model, was read (`Preparation.in_public`); empty where no file says.

    A published folder or one of its files has a manifest, a private one the index of its fakes, a model its own file.
    """
    manifest = manifest_of(path if path.is_dir() else path.parent)
    if manifest and (path.is_dir() or path.name in manifest["files"]):
        return _valid({**_part(manifest, "provenance", "reading"), "step_minutes": manifest.get("step_minutes")})
    if (path / "fakes.json").is_file():
        index = _index(path / "fakes.json")
        return _valid(
            {
                **_part(index, "input", "reading"),
                **{n: v for n, v in _part(index, "clock").items() if n == "step_minutes"},
            }
        )
    return _valid(_index(path / FILE))


def manifest_of(folder: Path) -> dict[str, Any]:
    """Return the manifest of the pool in a folder; empty where there is none."""
    from elsewhere.pool import KIND

    manifest = _index(folder / "manifest.json")
    return manifest if manifest.get("kind") == KIND and isinstance(manifest.get("files"), dict) else {}


def _index(path: Path) -> dict[str, Any]:
    from elsewhere.files import read_index

    try:
        return dict(read_index(path, LARGEST))
    except (OSError, ValueError, TypeError):
        return {}


def _part(index: Any, *names: str) -> dict[str, Any]:
    for name in names:
        index = index.get(name) if isinstance(index, Mapping) else None
    return dict(index) if isinstance(index, Mapping) else {}


def _valid(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts whose types are right: anybody may have edited these files."""
    from elsewhere.traces.fixes import GAPS

    def is_whole(name: str) -> bool:
        number = facts.get(name)
        return (
            isinstance(number, (int, float)) and not isinstance(number, bool) and 0 < number < 2**31 and number % 1 == 0
        )

    good = {name: int(facts[name]) for name in ("step_minutes", "cells") if is_whole(name)}
    good |= {name: facts[name] for name in ("places_by",) if isinstance(facts.get(name), str)}
    good |= {name: facts[name] for name in ("gaps",) if facts.get(name) in GAPS}
    good |= {name: facts[name] for name in ("max_gap_auto", "joined_for_fakes") if isinstance(facts.get(name), bool)}
    if good.get("max_gap_auto") is False:
        good |= (
            {"max_gap_minutes": int(facts["max_gap_minutes"])}
            if is_whole("max_gap_minutes")
            else {"max_gap_auto": True}
        )
    return good


POOL = ("pool.parquet", "places.parquet")
ENOUGH = 30  # whole real days: with so many, days with gaps are left out beside whole fakes
REALISM = ("A15", "A16")  # ask whether fakes look real, not who is behind them: any real people can be the control
FEWEST = 10  # people in each half


@dataclass(frozen=True, eq=False)
class Sources:
    """The real traces, how they were read, and everything else on their map and at their times of day."""

    first: "First"
    real: "Traces"
    fakes: "Traces | None" = None
    seed_index: "Ints | None" = None
    published: bool = False
    private: Any = None  # the `Fakes` of a private folder
    covered: bool = False  # whether a theorem covers the fakes
    whole: bool = False  # whether real days with gaps were left out, as fakes have none
    notes: tuple[str, ...] = field(default=())

    def further(self, path: Path | None, option: str) -> "tuple[Traces | None, Sources]":
        """Read another file of real traces on the same map, and return the notes with it."""
        if path is None:
            return None, self
        from elsewhere.traces.read import common_slots, crop

        with stage(f"reading {option}"):
            traces, notes = self.first.read_further(path, option)
        slots, same = common_slots(traces, self.real, option)
        if same != slice(0, self.real.L):
            raise InvalidParameter(
                f"`{option}` has no trace at some times of day that the real traces and the fakes have.",
                code="E_SHAPE",
            )
        sources, traces = self.on(traces), crop(traces, slots)
        if self.whole:
            traces, losses = _whole_days(traces)
            notes += tuple(f"{option}: {n:,} days with gaps are left out, as those of --real are." for n in losses)
        return traces, replace(sources, notes=(*self.notes, *notes))

    def on(self, traces: "Traces") -> "Sources":
        """Return these sources on the map of `traces`, which is that of the real ones or begins with it."""
        first = self.first.on(traces.locations)
        if first is self.first:
            return self
        fakes = None if self.fakes is None else self.fakes.with_map(traces.locations)
        return replace(self, first=first, real=self.real.with_map(traces.locations), fakes=fakes)

    def share_copied(self) -> float:
        """Return the share of the fakes that equal a real day; days at one place count only if all fakes equal one."""
        import numpy as np

        from elsewhere.evaluation.attacks.copies import equal_days

        real, fakes = (np.asarray(t.r, dtype=np.int64) for t in (self.real, _there(self.fakes)))
        days = {row.tobytes() for row in real}
        return 1.0 if all(row.tobytes() in days for row in fakes) else float(equal_days(fakes, real).mean())

    def learnt(self, model: Path | None) -> "FittedModel | None":
        """Read the model in a folder of `fit`, refused where its map is another one."""
        if model is None:
            return None
        from elsewhere.run.model import FittedModel

        fit = FittedModel.load(model)
        if fit.model.locations != self.real.locations:
            raise InvalidParameter(
                "the model of `--model` is of another map than the real traces; read them with the file, --cells, "
                "--step and --locations that `fit` was given.",
                code="E_MISMATCH",
            )
        return fit


def options_of(reading: Reading) -> list[str]:
    """Return the options of a reading as they are to be typed again: all that are not by default."""
    default = Reading()
    changed = [(f"--{n.replace('_', '-')}", value) for n, value in reading if value != getattr(default, n)]
    return [option if value is True else f"{option} {shlex.quote(str(value))}" for option, value in changed]


def read_real(path: Path, reading: Reading, *made: Path | None) -> Sources:
    """Read the real traces, which make the map, as the input of the fakes or the model in `made` was read, if known."""
    from elsewhere.run.reading import join_neighbours
    from elsewhere.traces.read import First

    facts = next((facts_of for each in made if each is not None and (facts_of := made_by(each))), {})
    as_made = completed_from(reading, facts)
    words = [
        word for word in options_of(as_made) if word not in (*options_of(reading), "--places shared", "--step 20min")
    ]
    notes = [f"{' '.join(words)}: as the fakes or the model were made."] if words else []
    with stage("reading --real"):
        first = First.read(path, **reading_keywords(as_made, PRESETS["product"]))
        if facts.get("joined_for_fakes") and first.traces.locations.has_coordinates:
            coarser = join_neighbours(first.traces)
            first = replace(first, traces=coarser, made=replace(first.made, places=coarser.R))
    return Sources(first, first.traces, notes=(*repairs(reading_facts(first.made)), *first.made.notes, *notes))


def with_fakes(sources: Sources, path: Path, links: str | None) -> Sources:
    """Add the fakes of a file or folder, with their seeds where these are known, and real days like theirs."""
    with stage("reading --fakes"):
        if path.is_dir() and (path / "fakes.npz").exists():
            return _private(sources, path)
        if (path / "manifest.json").is_file() or (path.name in POOL and (path.parent / "manifest.json").is_file()):
            out = _pool(sources, path if path.is_dir() else path.parent)
        else:
            out = _file(sources, path)
    out = _like_fakes(out)
    if links is None:
        return out
    from elsewhere.run.publish import read_links

    return replace(out, seed_index=read_links(links, _there(out.fakes), out.real))


def _file(sources: Sources, path: Path) -> Sources:
    """Read fakes of a file; of one that a pool lists and that shows less than whole days, as events do, the pool."""
    import numpy as np

    from elsewhere.checkpoint import hash_file

    fakes, notes = sources.first.read_further(path, "--fakes")
    files = {} if path.is_dir() else manifest_of(path.parent).get("files", {})
    if path.name in files and hash_file(path) == files[path.name]:
        pool = _pool(sources, path.parent)
        if not np.array_equal(_there(pool.fakes).r, fakes.r):
            note = f"--fakes: {path.name} does not tell the whole days; the pool beside it does, and is compared."
            return replace(pool, notes=(*pool.notes, note))
    return replace(sources.on(fakes), fakes=fakes, notes=(*sources.notes, *notes))


def _there(fakes: "Traces | None") -> "Traces":
    assert fakes is not None  # noqa: S101 - every way above reads them
    return fakes


def _like_fakes(sources: Sources) -> Sources:
    """
    Treat real days as the fakes were: the same slots of the day, and whole days where fakes are whole.

    Fakes are made of days without a gap; days with gaps beside them would look like other people.
    """
    import numpy as np

    from elsewhere.traces.read import common_slots, crop

    fakes, real, notes = _there(sources.fakes), sources.real, []
    slots, same = common_slots(fakes, real, "--fakes")
    if same != slice(0, real.L) or slots != slice(0, fakes.L):
        fakes, real = crop(fakes, slots), crop(real, same)
        notes.append(
            f"compared: the {real.L} slots of the day, from {real.start}, that both the real days and the fakes have."
        )
    whole = False
    gaps = int(np.count_nonzero((real.r < 0).any(axis=1)))
    if gaps and np.all(fakes.r >= 0):
        days, losses = _whole_days(real)
        if losses:
            notes.append(
                f"fakes are whole days: {gaps:,} real days with gaps are left out, {len(days):,} are compared."
            )
            real, whole = days, True
        else:
            notes.append(
                f"fakes are whole days; {gaps:,} of {len(real):,} real days have gaps and are compared even so, as "
                "only few have none: a longer --max-gap fills more."
            )
    return replace(sources, real=real, fakes=fakes, whole=whole, notes=(*sources.notes, *notes))


def _whole_days(traces: "Traces") -> "tuple[Traces, list[int]]":
    """Return the days without a gap, and how many others were left out; all days where too few have none."""
    import numpy as np

    whole = np.all(traces.r >= 0, axis=1)
    if whole.all() or whole.sum() < min(ENOUGH, len(whole) / 2):
        return traces, []
    return traces.select(whole), [int((~whole).sum())]


def _pool(sources: Sources, folder: Path) -> Sources:
    """Read a published pool, in the order of its ids, as a file of the same fakes is read."""
    import numpy as np

    from elsewhere.pool import Pool
    from elsewhere.traces.read import match_map

    pool = Pool.load(folder)
    traces = pool.traces.select(np.argsort(pool.traces.users.astype(str), kind="stable"))
    fakes, notes = match_map(traces, sources.real, "--fakes")
    covered = pool.provenance.get("preset") == "private"
    notes = (*sources.notes, *notes, *([UNCOVERED] if covered else []))
    return replace(sources.on(fakes), fakes=fakes, published=True, covered=covered, notes=notes)


def _private(sources: Sources, path: Path) -> Sources:
    """Read the private folder of `generate`, which knows the seeds."""
    import numpy as np

    from elsewhere.data.slots import Traces
    from elsewhere.run.fakes import Fakes

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
    fakes = Traces(
        private.r,
        real.locations,
        users=private.life,  # the days of one fake person are one life
        dates=private.days,
        step_minutes=frame.step_minutes,
        start=frame.start,
        tz=frame.tz,
    )
    covered = private.covered
    notes = (*sources.notes, *([UNCOVERED] if covered else []))
    seeds = whole[private.seed] if (private.seed >= 0).all() else None
    return replace(sources, fakes=fakes, seed_index=seeds, private=private, covered=covered, notes=notes)


def write_results(out: Path, name: str, record: dict[str, Any], results: list[Any], sources: Sources) -> list[str]:
    """
    Write the numbers as JSON and the shareable edition of the report beside them; return what to say about it.

    The report shows no classes: whoever holds them links fakes to seeds better (A5). Nor does it show fakes of a
    private folder, which leave the house by `publish` alone (E59).
    """
    from elsewhere.files import whole_folder, write_files
    from elsewhere.reports.page import report

    fakes = None if sources.private is not None else sources.fakes
    run = {"notes": [UNCOVERED]} if sources.covered else None
    with stage("writing the report"), whole_folder(out, force=True) as new:  # the command has looked whether it may
        write_files(new, {name: (json.dumps(record, indent=1, allow_nan=False) + "\n").encode()})
        report(results, new / "report.html", fakes=fakes, run=run)
    return [f"wrote {out / name}", f"wrote {out / 'report.html'}"]


def split_people(
    sources: Sources, holdout: "Traces | None"
) -> "tuple[Traces, Ints | None, Traces | None, tuple[str, ...]]":
    """
    Return the people behind the fakes, the row of each fake's seed among them, the control, and who the control
    is.
    """
    import numpy as np

    real, index = sources.real, sources.seed_index
    if index is None:
        fakes, labels = sources.fakes, {str(label) for label in real.labels}
        same = fakes is not None and all(str(label) in labels for label in fakes.labels)
        hint = "; the fakes carry ids of --real: if these are their seeds, add --links same" if same else ""
        return real, None, holdout, (f"who was made from whom is not known{hint}.",)
    private = sources.private
    is_seed = np.zeros(real.U, dtype=bool)
    is_seed[real.user[index]] = True
    if private is not None and private.seed_rows is not None:
        whole = np.flatnonzero(np.all(real.r >= 0, axis=1))
        is_seed[real.user[whole[private.seed_rows]]] = True
    rows = np.flatnonzero(is_seed[real.user])
    notes: tuple[str, ...] = ()
    if holdout is None and np.count_nonzero(~is_seed) >= 2:
        holdout = real.of_users(np.flatnonzero(~is_seed))
        notes = (
            f"control: the {holdout.U} people of --real of whom no fake is known; whether they met the generator in "
            "another role is not known here.",
        )
    elif holdout is None:
        notes = ("no control: every person of --real is a seed; give others with --holdout.",)
    return real.select(rows), np.searchsorted(rows, index), holdout, notes


def other_people(sources: Sources, seeds: "Traces") -> "dict[str, Traces | str]":
    """Return the people of --real of whom no fake was made, who may have met the generator in another role."""
    import numpy as np

    behind = set(seeds.labels)
    free = np.array([i for i, label in enumerate(sources.real.labels) if label not in behind], dtype=np.int64)
    if len(free) == 0:
        return {}
    few = f"they are {len(free)}, and fewer than {FEWEST} tell nothing"
    return {"other people of --real": few if len(free) < FEWEST else sources.real.of_users(free)}


def attack_in_halves(
    result: Any, seeds: "Traces", fakes: Any, attacks: Any, rng: "np.random.Generator"
) -> tuple[Any, tuple[str, ...]]:
    """Add the attacks that ask whether fakes look real, on two halves of the people in place of a control."""
    from dataclasses import replace

    import numpy as np

    from elsewhere.evaluation.attacks.audit import audit as attack

    ids = [a for a in REALISM if attacks == "all" or a in attacks]
    if not ids or seeds.U < 2 * FEWEST:
        return result, ()
    people = rng.permutation(seeds.U)
    halves = [seeds.of_users(np.sort(people[side::2])) for side in (0, 1)]
    by_id = {f.id: f for f in attack(halves[0], halves[1], fakes, None, attacks=ids, rng=rng).findings}
    note = (
        f"{' and '.join(ids)} ask whether fakes look like real people: one half of the people of --real is compared "
        "with the fakes, the other with that half."
    )
    return replace(result, findings=tuple(by_id.get(f.id, f) for f in result.findings)), (note,)


def met_by_model(model: Path | None, control: "Traces | None") -> tuple[str, ...]:
    """Say how many people of the control have contributed to the model."""
    if model is None or control is None:
        return ()
    from elsewhere.run.roles import Contributors

    contributors = Contributors.read(model)
    if contributors is None:
        return ("whether the control has met the model is not known: the model does not remember its contributors.",)
    many = int(contributors.met(control).sum())
    return (f"{many} of the {control.U} people of the control have contributed to the model.",)
