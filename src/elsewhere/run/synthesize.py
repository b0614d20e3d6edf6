"""
The whole job: from a file of real traces to a pool of fakes, two reports and what only the owner may see.

A job that was stopped goes on when it is called again with the same key: a hash of all that decides its fakes, which is
the content of every file, every parameter, the secret of a laboratory run, the versions of this package and of those it
computes with. How many processes work, in which forms the fakes are written and whether they are judged is no part of
it: a job that was stopped may end without its judge.
"""

import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple, Unpack

import numpy as np

from elsewhere.checkpoint import Checkpoint, Stages, derived, digest, file_digest, generator, going_on, kept
from elsewhere.errors import (
    InvalidParameter,
    InvalidTraces,
    PublicationRefused,
    public,
    require_between,
    require_choice,
    require_whole,
)
from elsewhere.evaluation.judge import Judgement, judge_run
from elsewhere.files import check_folder, clean_up, whole_folders
from elsewhere.pool import Pool
from elsewhere.privacy.certificate import Certificate
from elsewhere.privacy.deniable.release import COUNT
from elsewhere.privacy.private.release import SUMS
from elsewhere.run.fakes import Fakes
from elsewhere.run.finish import (
    PRIVATE,
    REPORT,
    counts,
    earlier_results,
    opening,
    private_folder,
    summary,
    verdicts,
    warn_of_strangers,
    write_links,
    write_reports,
)
from elsewhere.run.generate import fakes_of, require_given
from elsewhere.run.model import is_data
from elsewhere.run.plan import plan, planned_private
from elsewhere.run.presets import MISSING, Kappa, Preset, PresetName, Reading, WholeJobOptions, check_names, preset_of
from elsewhere.run.publish import (
    FORMS,
    as_read,
    check_forms,
    on_output,
    publish_linked,
    seal,
    with_withheld,
    write_fakes,
)
from elsewhere.run.reading import advised, people_by_a_public_gap, read_whole
from elsewhere.run.time_left import ATTACK, JUDGE, LEARN, MAKE, PUBLISH, WRITE, TimeLeft, usual
from elsewhere.scale import versions
from elsewhere.semantics.classes import require_kappa
from elsewhere.traces.fixes import Preparation
from elsewhere.traces.maps import read_moves
from elsewhere.traces.model import Traces
from elsewhere.traces.sources import Source, load_pipe

Progress = Callable[[str, int, int, TimeLeft], None]
TO_CHOOSE = 10  # fakes for each that is published where they are chosen by likelihood: the paper has 500 for 50
SECRET, READ, WRITTEN = "secret", "reading", "written"  # what is kept of a job that was stopped
SPENT = frozenset({COUNT, SUMS})  # noise that a theorem counts on: drawn once
STAGES = (READ, LEARN, MAKE, JUDGE, ATTACK, WRITE)


@dataclass(frozen=True, eq=False)
class Result:
    """
    What `synthesize` has made and written.

    `fakes` know their seeds, and with `judgement` (None without `report`) and the folder `private` are for the owner
    alone; `pool` and the folder `out` may leave the house. `files` and `private_files` are what was written into each.
    """

    fakes: Fakes
    pool: Pool
    judgement: Judgement | None
    out: Path
    private: Path
    files: tuple[str, ...]
    private_files: tuple[str, ...]
    facts: Mapping[str, Any] = field(repr=False)

    @property
    def certificate(self) -> Certificate:
        """Return what is proven of the whole release."""
        return self.fakes.certificate

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what should be known about the fakes."""
        return tuple(self.facts["notes"])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words for JSON, as `elsewhere synthesize --json` prints them."""
        facts = {**self.facts, "files": self.files, "private_files": self.private_files}
        return dict(json.loads(json.dumps(facts, allow_nan=False)))  # lists for tuples, and the caller's own


@public
def synthesize(
    source: Any,
    out: str | Path,
    *,
    preset: PresetName | Preset = "product",
    kappa: Kappa = "auto",
    report: bool = True,
    private: str | Path | None = None,
    holdout: float = 0.0,
    force: bool = False,
    laboratory: bool = False,
    workers: int = 2,
    progress: Progress | None = None,
    rng: np.random.Generator | None = None,
    **options: Unpack[WholeJobOptions],
) -> Result:
    """
    Do the whole job: read real traces, learn, make fakes, test them, publish, evaluate, attack, report.

    The folder `out` is for publishing: the fakes in the columns of the input, the pool, a manifest, and a report of
    aggregates and fakes only. What only the owner may see goes into another folder: who was made from whom, the owner's
    report, the judgement. Both appear when they are complete, or not at all. Whatever stops the job, what is done is
    kept in a private folder OUT-unfinished: the same call goes on from there, and ends with the bytes of a job that was
    not stopped. A table that is no data frame cannot be told from another: such a job begins anew.

    Parameters
    ----------
    source
        As for `read_traces`: a path, "-" for standard input, or a table.
    out
        Folder for what may be published; refused if it holds anything, unless `force` is given.
    preset
        "paper", "product", "deniable" or "private"; every parameter of a preset can be given by keyword.
    kappa, workers
        As for `generate_fakes`.
    report
        Whether to evaluate and attack the fakes, and to write reports.
    private
        Folder for what only the owner may see; by default OUT-private.
    holdout
        Share of the people who are set aside, before anything is learnt, as control of the attacks; at most half.
    force
        Write into folders that hold something; files of the same names are replaced, and those of an earlier run go.
    laboratory
        Write a run with a given `rng` all the same; it stays stamped.
    progress
        Called as `progress(stage, done, total, left)`, with a `total` of 0 where a stage is not counted; `left()` is
        about how many seconds are still to come, at any time until the next call, None before the input is read, and
        `left.range()` between which they are in nine of ten cases.
    rng
        Makes a laboratory run: repeatable, and refused without `laboratory=True`, but for the preset of the paper.
    **options
        `per_seed`, `n`, `feasible`: as for `generate_fakes`. `missing`: "drop" leaves out days with a gap, "gibbs"
        draws what is not known from the person's own days (E4). `executor`, such as a `Cluster`: where the files of a
        folder are read, walks drawn, paired and tested, and attacks run. `choose`: "uniform", or "likelihood" for the
        likelier of ten times as many fakes (E62), the default of the paper preset. `also`: further forms, "gpx",
        "geojson", "kepler" or "sglt", or several of them. `out_as`: lines of the fakes, "slots", "visits", "events" or
        "trips"; by default visits or trips where the input has them, else slots. `reading`: a `Reading`, how the input
        is read; its fields, those of `read_traces` and `grid`, may be given by themselves too. And any parameter that
        the preset reads: `k`, `eps`, `m_min` ...

    Examples
    --------
    >>> import tempfile, numpy as np, elsewhere as ew
    >>> people = ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = ew.write_traces(people, f"{folder}/people.csv")
    ...     options = {"kappa": 6, "m_min": 2, "k": 3, "c_min": 1, "report": False}
    ...     result = ew.synthesize(f"{folder}/people.csv", f"{folder}/out", **options)
    ...     print(result.files)
    ('fakes.csv', 'fakes.parquet', 'pool.parquet', 'places.parquet', 'manifest.json')

    """
    # what is asked for: what cannot be is refused before a large input is read
    out, extras = Path(out), _Options.of(dict(options))
    settings = preset_of(preset, **extras.parameters)
    _check(settings, extras, kappa, workers, holdout, rng, laboratory)
    per_seed = extras.per_seed * (TO_CHOOSE if settings.parameters().get("choose") == "likelihood" else 1)
    of_laboratory = None if rng is None else rng.bytes(32)
    owner_folder, stages_folder = _folders(out, private, force)
    # work that others do takes no processor here
    time_left = TimeLeft(processor=process_time if extras.executor is None else None)

    def tell(stage: str, done: int, total: int) -> None:
        time_left.at(stage, done, total)
        if progress is not None:
            progress(stage, done, total, time_left)

    tell(READ, 0, 0)
    source = load_pipe(source, allow_truncated=extras.reading.allow_truncated)
    key = key_of(source, settings, extras, of_laboratory, kappa=kappa, holdout=holdout)
    with going_on(stages_folder, key, SPENT, force=force, began=time_left.at) as stages:
        force = force or (kept(stages, WRITTEN) and _in_place(stages, (owner_folder, out)))
        for folder in (out, owner_folder):
            check_folder(folder, force=force)
        secret = of_laboratory or stages(SECRET, lambda: secrets.token_bytes(32))

        # read
        reader = partial(read_whole, coins=derived(secret, "coins", 32), executor=extras.executor)
        traces, read = stages(READ, lambda: reader(source, extras.reading, settings, missing=extras.missing))
        aside = None
        if holdout > 0:
            traces, aside = _aside(traces, holdout, generator(secret, "aside"))
        sizes = len(traces), traces.L, traces.U, int(np.count_nonzero(traces.visitors() >= settings.m_min))
        time_left.expect(usual(*sizes, per_seed=per_seed, report=report, product=settings.name == "product"))

        # learn, make fakes, test them
        tell(LEARN, 0, 0)
        with advised(traces, settings, read):
            fakes = fakes_of(
                traces,
                int.from_bytes(secret[:16], "little"),  # as `generate_fakes` does in a laboratory run
                laboratory=rng is not None,
                stages=stages,
                preset=settings,
                per_seed=per_seed,
                n=extras.n,
                kappa=kappa,
                feasible=extras.moves,
                executor=extras.executor,
                workers=workers,
                progress=lambda done, total: tell(MAKE, done, total),
                seeds=read.seeds,
            )

        # publish, evaluate, attack, report
        time_left.at(PUBLISH)
        fakes, read = with_withheld(as_read(fakes, read), read, traces)
        with whole_folders((owner_folder, out), force=force, outdated=earlier_results) as drafts:
            result = _published(
                traces, fakes, read, aside, extras, drafts, secret=secret, stages=stages, report=report, tell=tell
            )
    warn_of_strangers(out, (*FORMS, REPORT), result.files)
    warn_of_strangers(owner_folder, PRIVATE, result.private_files)
    return replace(result, out=out, private=owner_folder)


def _folders(out: Path, private: str | Path | None, force: bool) -> tuple[Path, Path]:
    """Return the private folder, and that of what is done until the job has ended; refused before any work."""
    owner_folder = private_folder(out, None if private is None else Path(private), force=True)
    # beside the private folder, because it is private
    stages_folder = owner_folder.absolute().with_name(f"{out.absolute().name}-unfinished")
    if stages_folder.resolve() == owner_folder.resolve():
        raise InvalidParameter(
            f"`private` must not be {stages_folder.name}, which is where a run keeps what is done: choose another "
            "name.",
            code="E_OUTPUT",
        )
    clean_up(stages_folder)
    resumes = stages_folder.exists()  # what the folders hold may be its own
    for folder in (out, owner_folder):
        check_folder(folder, force=force or resumes)
    return owner_folder, stages_folder


def _published(
    traces: Traces,
    fakes: Fakes,
    read: Preparation,
    aside: Traces | None,
    options: "_Options",
    drafts: tuple[Path, ...],
    *,
    secret: bytes,
    stages: Stages,
    report: bool,
    tell: Callable[[str, int, int], None],
) -> Result:
    """Publish fakes; with `report` judge what leaves the house, and `tell` of it. `drafts`: owner's folder, `out`."""
    private, out = drafts
    pool, rows = publish_linked(
        fakes, per_seed=options.per_seed, laboratory=fakes.laboratory, secret=derived(secret, "pool", 32)
    )
    facts = summary(fakes, traces)
    links = write_links(traces, fakes, pool, rows, private)
    files = write_fakes(pool, out, fakes.frame, options.also, options.out_as)
    pool, notes = on_output(pool, fakes.frame, options.also, options.out_as)
    facts["notes"] += notes
    facts["read"] = counts(read)
    judgement, people = None, people_by_a_public_gap(read, traces.U)
    if report:
        tell(JUDGE, 0, 0)
        judgement = judge_run(
            traces,
            fakes,
            pool,
            rows,
            holdout=aside,
            executor=options.executor,
            progress=lambda done, total: tell(ATTACK, done, total),
            rng=generator(secret, "judge"),
            stages=stages,
        )
        proven = [each.preset for each in plan(people) if each.enough and each.certificate.eps is not None]
        judgement = replace(judgement, run={**judgement.run, "presets_with_a_theorem": proven})
        tell(WRITE, 0, 0)
        public_files, more = write_reports(judgement, traces, fakes, pool, out, private, opening(facts["read"]))
        files, links = files + public_files, links + more
        facts |= verdicts(judgement)
    if fakes.preset.name == "product":
        facts["private"] = planned_private(people).to_dict()
    files = seal(pool, out, files)
    if isinstance(stages, Checkpoint):  # what will be in the folders; anew where it goes on, maybe with other forms
        stages.keep(WRITTEN, [{path.name: file_digest(path) for path in folder.iterdir()} for folder in drafts])
    return Result(fakes, pool, judgement, out, private, tuple(files), tuple(links), facts)


class _Options(NamedTuple):
    """The further keywords of `synthesize`, checked: forms of the output, the reading, and parameters of the preset."""

    also: tuple[str, ...]
    out_as: str | None
    per_seed: int
    n: int | None
    feasible: Any  # as given
    moves: Any  # the same, read where it is a file
    missing: str
    executor: Executor | None
    reading: Reading
    parameters: dict[str, Any]

    @staticmethod
    def of(options: dict[str, Any]) -> "_Options":
        default = {"also": (), "out_as": None, "per_seed": 1, "n": None, "feasible": None, "missing": "drop"}
        values = {name: options.pop(name, value) for name, value in (default | {"executor": None}).items()}
        values["also"] = (values["also"],) if isinstance(values["also"], str) else tuple(values["also"])
        if values["also"] or values["out_as"] is not None:
            check_forms(values["also"], values["out_as"])
        require_choice("missing", values["missing"], MISSING)
        reading, names = options.pop("reading", Reading()), {field.name for field in fields(Reading)}
        if not isinstance(reading, Reading):
            raise InvalidParameter(f"`reading` must be a `Reading`, got {type(reading).__name__}.")
        reading = replace(reading, **{name: value for name, value in options.items() if name in names})
        moves = values["feasible"]
        if moves is not None and not (is_data(moves) or hasattr(moves, "shape")):
            moves = read_moves(moves, encoding=reading.encoding)
        others = {name: value for name, value in options.items() if name not in names}
        parameters = check_names(others, sorted(names | values.keys()))
        return _Options(**values, moves=moves, reading=reading, parameters=parameters)


def _check(
    settings: Preset,
    options: _Options,
    kappa: Kappa,
    workers: int,
    holdout: float,
    rng: np.random.Generator | None,
    laboratory: bool,
) -> None:
    """Refuse what cannot be, before a large input is read."""
    if settings.name == "private":
        require_given(options.feasible)
    require_whole("per_seed", options.per_seed, 1)
    require_whole("workers", workers, 1)
    if options.n is not None:
        require_whole("n", options.n, 1)
    require_kappa(kappa)
    require_between("holdout", holdout, 0, 0.5)
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a numpy.random.Generator, got {type(rng).__name__}.")
    if rng is not None and settings.name != "paper" and not laboratory:
        raise PublicationRefused(
            "`rng` makes a run that whoever knows it can repeat: it is refused for publishing; leave it out, or add "
            "`laboratory=True` for a laboratory result.",
            code="E_LABORATORY",
        )


def _aside(traces: Traces, share: float, rng: np.random.Generator) -> tuple[Traces, Traces | None]:
    """Return the people to make fakes of, and those set aside as control before anything is learnt."""
    # a coin for each person: who is set aside depends on nobody else
    aside = rng.random(traces.U) < share
    if not aside.any() or aside.all():
        return traces, None
    return traces.of_users(np.flatnonzero(~aside)), traces.of_users(np.flatnonzero(aside))


def key_of(source: Any, settings: Preset, options: _Options, entropy: bytes | None, **parameters: Any) -> str | None:
    """Return the key of a job, None where its input cannot be told from another; `entropy` is a laboratory's secret."""
    reading, moves = dict(vars(options.reading)), options.feasible
    try:
        return digest(
            {
                "versions": versions(),
                "source": _content(source),
                "reading": reading | {name: _content(reading[name]) for name in ("locations", "regions")},
                "preset": settings,
                "feasible": moves if is_data(moves) else _content(moves),
                "given": None if entropy is None else derived(entropy, "key"),
                "per_seed": options.per_seed,
                "n": options.n,
                "missing": options.missing,
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


def _in_place(stages: Stages, folders: Sequence[Path]) -> bool:
    """Return whether what the folders hold was put there by the run that was stopped, and by nobody else."""
    return all(
        path.is_file() and files.get(path.name) == file_digest(path)
        for folder, files in zip(folders, stages(WRITTEN, list[dict[str, str]]), strict=True)
        if folder.exists()
        for path in folder.iterdir()
    )
