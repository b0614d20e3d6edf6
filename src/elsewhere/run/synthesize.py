"""
Do the whole job: from a file of real traces to a pool of fakes, two reports and the private files of the owner.

A stopped job resumes when it is called again with the same key: a hash of all that decides its fakes, which are the
content of every input file, every parameter, the secret of a laboratory run, and the versions of this package and its
libraries. The number of workers, the output formats and whether the fakes are judged are not part of the key: a stopped
job may be resumed without its reports.
"""

import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.checkpoint import Checkpoint, Stages, derive_bytes, derive_rng, hash_file, hash_value, resume
from elsewhere.errors import (
    ElsewhereError,
    InvalidParameter,
    InvalidTraces,
    PublicationRefused,
)
from elsewhere.evaluation.judge import Judgement, judge_run
from elsewhere.files import check_folder, clean_up, whole_folders
from elsewhere.pool import Pool
from elsewhere.privacy.certificate import Certificate
from elsewhere.privacy.private.release import SUMS
from elsewhere.run.fakes import Fakes
from elsewhere.run.finish import (
    NOT_ATTACKED,
    PRIVATE,
    REPORT,
    describe_reading,
    earlier_results,
    judgement_facts,
    private_folder,
    reading_facts,
    summary,
    warn_of_other_files,
    write_links,
    write_reports,
)
from elsewhere.run.generate import make_fakes, refuse_found_moves
from elsewhere.run.model import is_data
from elsewhere.run.plan import plan, plan_private
from elsewhere.run.publish import (
    FORMS,
    describe_output,
    note_rare_places,
    publish_with_rows,
    remember_input,
    write_fakes,
    write_pool,
)
from elsewhere.run.reading import add_advice, people_with_public_gap, read_usable_days
from elsewhere.scale import versions
from elsewhere.settings import PARAMETERS, Job, Preset, PresetName, Reading, preset_of, unknown_parameter
from elsewhere.traces.fixes import Preparation
from elsewhere.traces.maps import read_moves
from elsewhere.traces.model import Traces
from elsewhere.traces.sources import Source, load_pipe

Progress = Callable[[str, int, int], None]
TO_CHOOSE = 10  # fakes made for each published one where they are chosen by likelihood: the paper makes 500 for 50
SECRET, READ, WRITTEN = "secret", "reading", "written"  # names of kept stages
SPENT = frozenset({SUMS})  # stages that draw the noise of a theorem, which must be drawn once
LEARN, MAKE, JUDGE = "learning", "making fakes", "judging the fakes"
ATTACK, WRITE = "attacking the fakes", "writing the reports"
STAGES = (READ, LEARN, MAKE, JUDGE, ATTACK, WRITE)


@dataclass(frozen=True, eq=False)
class Result:
    """
    What `synthesize` has made and written.

    `fakes`, which hold their seeds, `judgement` (None without `report`) and the folder `private` are for the owner
    alone; `pool` and the folder `out` may be published. `files` and `private_files` are the names of the files in `out`
    and in `private`.
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
        """Return the certificate: what is proven about the whole release."""
        return self.fakes.certificate

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what a reader should know about the fakes."""
        return tuple(self.facts["notes"])

    def to_dict(self) -> dict[str, Any]:
        """
        Return plain numbers and words for JSON, as `elsewhere synthesize --json` prints them.

        Of the product, which no theorem covers, `private` says what the private preset would have promised.
        """
        facts = dict(self.facts)
        if facts["preset"] == "product":
            facts["private"] = plan_private(people_with_public_gap(facts["read"], facts["users"])).to_dict()
        facts |= {"files": self.files, "private_files": self.private_files}
        return dict(json.loads(json.dumps(facts, allow_nan=False)))  # a copy, with lists instead of tuples


def synthesize(
    source: Any,
    out: str | Path,
    *,
    preset: PresetName | Preset = "product",
    reading: Reading | None = None,
    force: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    rng: np.random.Generator | None = None,
    **options: Any,
) -> Result:
    """
    Do the whole job: read real traces, learn, make fakes, test them, publish, evaluate, attack, report.

    The folder `out` is for publishing: the fakes in the columns of the input, the pool, a manifest, and a report that
    shows aggregates and fakes only. What only the owner may see goes into another folder: which fake was made from
    whom, the owner's report, the judgement. Both folders appear when they are complete, or not at all. If the job is
    stopped, its finished stages stay in a private folder OUT-unfinished: the same call resumes, and ends with the same
    bytes as a job that was not stopped. Only an input that can be hashed (a file, a folder or a data frame) resumes.

    Parameters
    ----------
    source
        As for `read_traces`: a path, "-" for standard input, or a table.
    out
        Folder for what may be published; refused if it is not empty, unless `force` is set.
    preset
        "paper", "product" or "private"; every parameter of a preset can be given by keyword.
    reading
        How the input is read; its fields, those of `read_traces` and `grid`, may also be given by themselves.
    force
        Write into folders that are not empty: files of the same names are replaced, files of an earlier run removed.
    executor
        Such as a `Cluster`: runs the reading of folders, the drawing, pairing and testing of walks, and the attacks.
    progress
        Called as `progress(stage, done, total)`; `total` is 0 where a stage is not counted.
    rng
        Makes a laboratory run, which can be repeated; refused without `laboratory=True`, except in the paper preset.
    **options
        The fields of `settings.Job`: `kappa`, `per_seed`, `n`, `feasible`, `workers` as for `generate_fakes`; `missing`
        slots, "drop" leaves out their days, "gibbs" draws them (E4); `also` and `out_as`, further formats and what a
        line of fakes.csv is; `private`, the owner's folder, by default OUT-private; `report`, whether to evaluate and
        attack the fakes; `holdout`, the share of people set aside as control group of the attacks; `laboratory`, to
        write the result of a run with a given `rng`. And any parameter of the preset: `k`, `eps`, `m_min` ...

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
    # refuse wrong parameters and folders before a large input is read
    out, (job, settings, reading) = Path(out), _sort_options(options, preset, reading, rng)
    per_seed = job.per_seed * (TO_CHOOSE if settings.parameters().get("choose") == "likelihood" else 1)
    laboratory_secret = None if rng is None else rng.bytes(32)
    owner_folder, stages_folder = _check_folders(out, job.private, force)
    tell: Progress = progress or (lambda stage, done, total: None)
    tell(READ, 0, 0)
    source = load_pipe(source, allow_truncated=reading.allow_truncated)
    key = job_key(source, job, settings, reading, laboratory_secret)
    with resume(stages_folder, key, SPENT, force=force) as stages:
        force = force or (WRITTEN in stages.finished and _holds_own_files(stages, (owner_folder, out)))
        for folder in (out, owner_folder):
            check_folder(folder, force=force)
        secret = laboratory_secret or stages(SECRET, lambda: secrets.token_bytes(32))

        # read
        reader = partial(read_usable_days, secret=derive_bytes(secret, "coins", 32), executor=executor)
        traces, read = stages(READ, lambda: reader(source, reading, settings, missing=job.missing))
        traces, control = _set_aside(traces, job.holdout, derive_rng(secret, "aside"))

        # learn, make fakes, test them
        tell(LEARN, 0, 0)
        try:
            fakes = make_fakes(
                traces,
                int.from_bytes(secret[:16], "little"),  # as `generate_fakes` does in a laboratory run
                laboratory=rng is not None,
                stages=stages,
                preset=settings,
                per_seed=per_seed,
                n=job.n,
                kappa=job.kappa,
                feasible=job.feasible,
                executor=executor,
                workers=job.workers,
                progress=lambda done, total: tell(MAKE, done, total),
            )
        except ElsewhereError as error:
            add_advice(error, traces, settings, read)
            raise

        # publish, evaluate, attack, report
        with whole_folders((owner_folder, out), force=force, outdated=earlier_results) as drafts:
            result = _publish(
                traces, fakes, read, control, job, drafts, secret=secret, stages=stages, executor=executor, tell=tell
            )
    if force:
        warn_of_other_files(out, (*FORMS, REPORT), result.files)
        warn_of_other_files(owner_folder, PRIVATE, result.private_files)
    return replace(result, out=out, private=owner_folder)


def _check_folders(out: Path, private: Path | None, force: bool) -> tuple[Path, Path]:
    """Return the private folder and the folder of kept stages; refuse those that cannot be used."""
    owner_folder = private_folder(out, private, force=True)
    # beside the private folder, because it is private
    stages_folder = owner_folder.absolute().with_name(f"{out.absolute().name}-unfinished")
    if stages_folder.resolve() == owner_folder.resolve():
        raise InvalidParameter(
            f"`private` must not be {stages_folder.name}, where a run keeps its finished stages: choose another name.",
            code="E_OUTPUT",
            parameter="private",
        )
    clean_up(stages_folder)
    resumes = stages_folder.exists()  # the files in the folders may be its own
    for folder in (out, owner_folder):
        check_folder(folder, force=force or resumes)
    return owner_folder, stages_folder


def _publish(
    traces: Traces,
    fakes: Fakes,
    read: Preparation,
    control: Traces | None,
    job: Job,
    drafts: tuple[Path, ...],
    *,
    secret: bytes,
    stages: Stages,
    executor: Executor | None,
    tell: Progress,
) -> Result:
    """Write fakes, links and pool into `drafts` (the owner's folder, `out`); judge them and report."""
    private, out = drafts
    fakes = remember_input(fakes, read)
    if not fakes.frame.known.all():
        fakes, read = note_rare_places(fakes, read, traces)
    pool, rows = publish_with_rows(
        fakes, per_seed=job.per_seed, laboratory=fakes.laboratory, secret=derive_bytes(secret, "pool", 32)
    )
    facts = summary(fakes, traces)
    links = write_links(traces, fakes, pool, rows, private)
    files = write_fakes(pool, out, fakes.frame, job.also, job.out_as)
    pool, notes = describe_output(pool, fakes.frame, job.also, job.out_as)
    facts["notes"] += notes
    facts["read"] = reading_facts(read)
    judgement = None
    if job.report:
        tell(JUDGE, 0, 0)
        judgement = judge_run(
            traces,
            fakes,
            pool,
            rows,
            holdout=control,
            executor=executor,
            progress=lambda done, total: tell(ATTACK, done, total),
            rng=derive_rng(secret, "judge"),
            stages=stages,
        )
        plans = plan(people_with_public_gap(facts["read"], traces.U))
        proven = [each.preset for each in plans if each.enough and each.certificate.eps is not None]
        judgement = replace(judgement, run={**judgement.run, "presets_with_a_theorem": proven})
        tell(WRITE, 0, 0)
        public_files, more = write_reports(
            judgement, traces, fakes, pool, out, private, describe_reading(facts["read"])
        )
        files, links = files + public_files, links + more
        facts |= judgement_facts(judgement)
    else:
        facts["notes"].append(NOT_ATTACKED)
    files = write_pool(pool, out, files)
    if isinstance(stages, Checkpoint):  # replaced when the job resumes, which may write other formats
        stages.keep(WRITTEN, [{path.name: hash_file(path) for path in folder.iterdir()} for folder in drafts])
    return Result(fakes, pool, judgement, out, private, tuple(files), tuple(links), facts)


def _sort_options(
    options: Mapping[str, Any], preset: PresetName | Preset, reading: Reading | None, rng: np.random.Generator | None
) -> tuple[Job, Preset, Reading]:
    """Return the options of `synthesize` by what they are for; refuse wrong ones before a large input is read."""
    of_job, of_reading = ({n: v for n, v in options.items() if n in kind.model_fields} for kind in (Job, Reading))
    parameters = {name: value for name, value in options.items() if name not in of_job | of_reading}
    for name in parameters.keys() - set(PARAMETERS):
        raise unknown_parameter(name, [*Job.model_fields, *Reading.model_fields, *PARAMETERS])
    settings, job = preset_of(preset, **parameters), Job(**of_job)
    if not isinstance(reading, Reading | None):
        raise InvalidParameter(f"`reading` must be a `Reading`, got {type(reading).__name__}.", parameter="reading")
    reading = (reading or Reading()).changed(**of_reading)
    if job.feasible is not None and not hasattr(job.feasible, "shape"):
        if not is_data(job.feasible):
            job = job.changed(feasible=read_moves(job.feasible, encoding=reading.encoding))
        elif settings.name == "private":
            refuse_found_moves()
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise InvalidParameter(f"`rng` must be a numpy.random.Generator, got {type(rng).__name__}.", parameter="rng")
    if rng is not None and settings.name != "paper" and not job.laboratory:
        raise PublicationRefused(
            "`rng` makes a run that anybody who knows it can repeat, so its result must not be published: leave it "
            "out, or add `laboratory=True` for a laboratory result.",
            code="E_LABORATORY",
            parameter="laboratory",
        )
    return job, settings, reading


def _set_aside(traces: Traces, share: float, rng: np.random.Generator) -> tuple[Traces, Traces | None]:
    """Return the people to make fakes of, and the control group, drawn before anything is learnt."""
    # one draw per person: who is set aside depends on nobody else
    aside = rng.random(traces.U) < share
    if not aside.any() or aside.all():
        return traces, None
    return traces.of_users(np.flatnonzero(~aside)), traces.of_users(np.flatnonzero(aside))


def job_key(source: Any, job: Job, settings: Preset, reading: Reading, secret: bytes | None) -> str | None:
    """Return the key of a job, None if its input cannot be hashed; `secret` is that of a laboratory run."""
    try:
        return hash_value(
            {
                "versions": versions(),
                "source": _hashable(source),
                "reading": dict(reading)
                | {name: _hashable(getattr(reading, name)) for name in ("locations", "regions")},
                "preset": settings.to_file(),
                "feasible": job.feasible if isinstance(job.feasible, str) else _hashable(job.feasible),
                "given": None if secret is None else derive_bytes(secret, "key"),
                **{name: getattr(job, name) for name in ("per_seed", "n", "missing", "kappa", "holdout")},
            }
        )
    except (TypeError, OSError, ValueError):
        return None


def _hashable(source: Any) -> Any:
    """Return name and hash of a file or folder (the name may be a user's); hashes of the rows of a table."""
    if isinstance(source, Source):
        return [source.user, source.raw]
    if isinstance(source, (str, os.PathLike)):
        try:
            return [Path(source).absolute().name, hash_file(Path(source))]
        except OSError as error:
            raise InvalidTraces("an input cannot be read.", code="E_OPEN") from error
    if hasattr(source, "tocsr"):  # a sparse matrix of moves
        rows = source.tocsr()
        return [list(rows.shape), rows.data, rows.indices, rows.indptr]
    table = source.to_pandas() if hasattr(source, "to_pandas") else source
    if not hasattr(table, "columns"):
        return table
    from pandas.util import hash_pandas_object

    return [[[str(name), str(kind)] for name, kind in table.dtypes.items()], hash_pandas_object(table).to_numpy()]


def _holds_own_files(stages: Stages, folders: Sequence[Path]) -> bool:
    """Return whether every file in the folders was written by the stopped run."""
    return all(
        path.is_file() and files.get(path.name) == hash_file(path)
        for folder, files in zip(folders, stages(WRITTEN, list[dict[str, str]]), strict=True)
        if folder.exists()
        for path in folder.iterdir()
    )
