"""
Do the whole job: from a file of real traces to a pool of fakes, two reports and the private files of the owner.

OUT holds what may leave the house, and nothing else: whoever zips it publishes fakes and aggregates. What only the
owner may see (links, real people on a map, the results in full) goes into another folder, OUT-private.

A stopped job resumes when it is called again with the same key: a hash of all that decides its fakes, which are the
content of every input file, every parameter, the secret of a laboratory run, and the versions of this package and its
libraries. The number of workers, the output formats and whether the fakes are judged are not part of the key.
"""

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from elsewhere.checkpoint import derive_bytes, derive_rng, hash_file, hash_value, resume
from elsewhere.data.places import grid_of
from elsewhere.data.read import read_visits
from elsewhere.data.visits import Visits
from elsewhere.data.write import lost_roles, write_visits
from elsewhere.errors import InvalidParameter, InvalidTraces, PublicationRefused, require_rng
from elsewhere.evaluation.judge import Judgement, judge_run
from elsewhere.files import check_folder, whole_folders, write_files
from elsewhere.pool import Pool
from elsewhere.run.certified import in_private, read_rows, require_map
from elsewhere.run.generate import Run, make_fakes
from elsewhere.run.publish import Fakes, links_file, publish_with_links
from elsewhere.scale import versions
from elsewhere.settings import (
    DELTA,
    Certified,
    Job,
    Method,
    MethodName,
    Paper,
    Reading,
    method_of,
)
from elsewhere.synthesis.certified import SUMS, Observed

Progress = Callable[[str, int, int], None]
READ, MAKE, JUDGE, WRITE = STAGES = ("reading", "making fakes", "judging", "writing")
SPENT = frozenset({SUMS})  # stages that draw the noise of a theorem, which must be drawn once
# fields of --json that are options, or say of the published files what these say themselves; all others are private
MADE = {"method", "fakes", "fake_visits", "certificate", "files"}
REPORT, LINKS, JUDGEMENT = "report.html", "links.csv", "judgement.json"
FORMS = {"gpx": "fakes.gpx", "geojson": "fakes.geojson", "sglt": "fakes.trace"}


@dataclass(frozen=True, eq=False)
class Result:
    """
    What `synthesize` has made and written.

    `fakes`, which know their seeds, `judgement` (None without `report`) and the folder `private` are for the owner
    alone; `pool` and the folder `out` may be published. `files` and `private_files` are the names of the files in `out`
    and in `private`. `facts` are counts, for --json.
    """

    fakes: Fakes
    pool: Pool
    judgement: Judgement | None
    out: Path
    private: Path
    files: tuple[str, ...]
    private_files: tuple[str, ...]
    facts: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words for JSON, as `elsewhere synthesize --json` prints them."""
        facts = {**self.facts, "files": self.files, "private_files": self.private_files}
        facts["private_fields"] = [name for name in facts if name not in MADE]
        return dict(json.loads(json.dumps(facts, allow_nan=False)))  # a copy, with lists instead of tuples


def synthesize(
    source: Any,
    out: str | Path,
    *,
    method: MethodName | Method = "life",
    eps: float | None = None,
    delta: float = DELTA,
    force: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    rng: np.random.Generator | None = None,
    **options: Any,
) -> Result:
    """
    Do the whole job: read real traces, make fakes, test them, publish, evaluate, attack, report.

    The folder `out` is for publishing: the fakes in the columns of the input, the pool, a manifest, and a report that
    shows aggregates and fakes only. What only the owner may see goes into another folder: which fake was made of whom,
    the owner's report, the judgement. Both folders appear when they are complete, or not at all. If the job is stopped,
    its finished stages stay in a private folder OUT-unfinished: the same call resumes, and ends with the same bytes as
    a job that was not stopped. Only an input that can be hashed (a file or a folder) resumes.

    Parameters
    ----------
    source
        As for `read_visits`: a path, "-" for standard input, or a table.
    out
        Folder for what may be published; refused if it is not empty, unless `force` is set.
    method, eps, delta
        As for `generate_fakes`.
    force
        Replace folders that are not empty: what they hold is kept beside them, and a warning says where.
    executor
        Where fakes are made, such as a `Cluster`.
    progress
        Called as `progress(stage, done, total)`; `total` is 0 where a stage is not counted.
    rng
        Makes a laboratory run, which can be repeated; refused without `laboratory=True`, except for the paper's method.
    **options
        `per_seed`, `n`, `kappa`, `workers`: as for `generate_fakes`. `also`: further formats, "gpx", "geojson" or
        "sglt". `laboratory`: write the result of a run with a given `rng`. `report`: whether to judge the fakes and to
        write reports. `holdout`: share of the people set aside before anything is learnt. How the input is read: the
        keywords of `read_visits`, and `grid`. And any parameter of the method.

    Examples
    --------
    >>> import tempfile, numpy as np, elsewhere as ew
    >>> people = ew.simulate_town(users=60, days=3, locations=60, rng=np.random.default_rng(3)).visits
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ew.write_visits(people, f"{folder}/people.csv")
    ...     result = ew.synthesize(f"{folder}/people.csv", f"{folder}/out", report=False)
    ...     print(result.files)
    ('fakes.csv', 'fakes.parquet', 'pool.parquet', 'places.parquet', 'manifest.json')

    """
    # refuse wrong parameters before a large input is read
    job, settings, reading = _sort_options({**options, "eps": eps, "delta": delta}, method, rng)
    out = Path(out)
    keywords_of(reading)
    owner_folder = beside(out, "private")
    laboratory_secret = None if rng is None else rng.bytes(32)
    tell = progress or (lambda stage, done, total: None)
    tell(READ, 0, 0)
    key = job_key(source, job, settings, reading, laboratory_secret)
    with resume(beside(out, "unfinished"), key, SPENT) as stages:
        force = force or bool(stages.finished)  # it was allowed when the run began
        for folder in (out, owner_folder):
            check_folder(folder, force=force)
        secret = laboratory_secret or stages("secret", lambda: secrets.token_bytes(32))
        run = Run(settings, job, secret, rng is not None, stages, executor, tell)
        fakes, taught, control = _make(source, run, reading)
        with whole_folders((owner_folder, out), force=force) as drafts:
            result = _publish(taught, fakes, control, drafts, run)
    return replace(result, out=out, private=owner_folder)


def _make(source: Any, run: Run, reading: Reading) -> tuple[Fakes, Visits, Visits | None]:
    """Read people, set some aside, and make fakes of the others; return all three."""
    tell: Any = run.progress
    job: Any = run.making

    def read() -> Visits | Observed:
        if isinstance(run.settings, Certified):
            return read_rows(source, reading)
        rng, told = derive_rng(run.secret, "map"), lambda step, n: tell(READ, int(n), 0)
        return read_visits(source, rng=rng, progress=told, **keywords_of(reading))

    people = run.stages("reading", read)
    aside = derive_rng(run.secret, "aside").random(people.U) < job.holdout  # which depends on nobody else
    control = people.of_users(aside) if aside.any() else None
    taught = people.of_users(~aside) if aside.any() else people
    tell(MAKE, 0, 0)
    fakes = make_fakes(replace(run, progress=partial(tell, MAKE)), taught)
    # of certified fakes, rows become visits after the release: none is refused before the noise has decided
    sides = [each.visits() if isinstance(each, Observed) else each for each in (taught, control)]
    return fakes, sides[0], sides[1]  # type: ignore[return-value]  # somebody was taught


def _publish(people: Visits, fakes: Fakes, control: Visits | None, drafts: tuple[Path, ...], run: Run) -> Result:
    """Write fakes, links and pool into `drafts` (the owner's folder, `out`); judge them and report."""
    private, out = drafts
    job: Any = run.making
    tell: Any = run.progress
    preparation = {} if people.preparation is None else people.preparation.to_dict()
    if preparation:  # also what these places or records have nothing of, such as the kind of a call
        lost = lost_roles(people)
        names = [name for role, name in people.form.columns.items() if role in lost]
        preparation["left_out"] = (*preparation["left_out"], *(n for n in names if n not in preparation["left_out"]))
    public: dict[str, Any] = {name: preparation[name] for name in ("format", "cells", "tz") if name in preparation}
    pool, lives = publish_with_links(
        fakes,
        per_seed=job.per_seed,
        laboratory=fakes.laboratory,
        secret=derive_bytes(run.secret, "pool", 32),
        reading={} if fakes.covered else public,
    )
    seed_of_life = fakes.seed_of_life[lives]
    private_files = [] if fakes.covered else [LINKS]
    if not fakes.covered:
        write_files(private, {LINKS: links_file(pool, people, seed_of_life)})
    names = ["fakes.csv", "fakes.parquet", *(FORMS[form] for form in job.also)]
    for name in names:
        write_visits(pool.visits, out / name)
    facts = summary(people, fakes, pool) | {"read": {n: v for n, v in preparation.items() if n != "name"}}
    judgement = None
    if job.report:
        tell(JUDGE, 0, 0)
        # of certified fakes, what a judge or a report fails at must not decide whether they are published
        with in_private() if fakes.covered else nullcontext():
            judgement = judge_run(
                people,
                fakes.seeds,
                pool,
                seed_of_life,
                holdout=control,
                executor=run.executor,
                progress=partial(tell, JUDGE),
                rng=derive_rng(run.secret, "judge"),
            )
            tell(WRITE, 0, 0)
            found = (json.dumps(judgement.to_dict(), indent=1, allow_nan=False) + "\n").encode()
            write_files(private, {JUDGEMENT: found})
            private_files.append(JUDGEMENT)
            facts["judgement"] = judgement.to_dict()
            reported, reported_private = write_reports(judgement, people, pool, seed_of_life, out, private)
            names, private_files = names + reported, private_files + reported_private
    if judgement is None:
        facts["notes"].append(
            "nothing was attacked: what these fakes reveal is not known until `elsewhere audit` runs."
        )
    names = write_pool(pool, out, names)
    return Result(fakes, pool, judgement, out, private, tuple(names), tuple(private_files), facts)


def summary(people: Visits, fakes: Fakes, pool: Pool) -> dict[str, Any]:
    """Return counts of a run: people, fakes, attempts by outcome; totals only (E63)."""
    figures: dict[str, Any] = {
        "method": fakes.method,
        "people": people.U,
        "visits": len(people),
        "places": people.R,
        "fakes": len(pool),
        "fake_visits": len(pool.visits),
        "notes": list(fakes.notes),
        "certificate": fakes.certificate.to_dict(),
    }
    if not fakes.covered:
        figures |= {
            "seeds": len(fakes.seeds),
            "seeds_without_a_fake": len(np.setdiff1d(fakes.seeds, fakes.seed_of_life)),
            "attempts": fakes.tally.get("tested", 0),
            "rejected_by": {n: c for n, c in fakes.tally.items() if n not in ("tested", "passed") and c},
        }
    return figures


def write_reports(
    judgement: Judgement, people: Visits, pool: Pool, seed_of_life: Any, out: Path, private: Path
) -> tuple[list[str], list[str]]:
    """
    Write the owner's report, and one that may be shared; return the names of both.

    Where a theorem covers the fakes there is no shareable report: it would be computed from real people, and the
    theorem does not cover it.
    """
    from elsewhere.reports.page import report

    report(judgement, private / REPORT, edition="owner", people=people, fakes=pool.visits, seed_of_life=seed_of_life)
    if np.all(seed_of_life < 0):
        return [], [REPORT]
    report(judgement, out / REPORT, edition="shareable", fakes=pool.visits)
    return [REPORT], [REPORT]


def write_pool(pool: Pool, out: Path, names: Sequence[str]) -> list[str]:
    """Write the pool with a manifest that lists the files `names` beside it, last; return the names of all files."""
    write_files(out, pool.files({name: hash_file(out / name) for name in names}))
    everything = [*names, "pool.parquet", "places.parquet", "manifest.json"]
    now = time.time_ns()
    for name in everything:
        os.utime(out / name, ns=(now, now))  # one time for all: how long the fakes took is not told (E63)
    return everything


def beside(out: Path, word: str) -> Path:
    """Return the private folder of this name that belongs to an output, OUT-word."""
    return out.resolve().parent / f"{out.resolve().name}-{word}"


def _sort_options(
    options: Mapping[str, Any], method: MethodName | Method, rng: np.random.Generator | None
) -> tuple[Job, Method, Reading]:
    """Return the options of `synthesize` by what they are for; refuse wrong ones before a large input is read."""
    of_job, of_reading = ({n: v for n, v in options.items() if n in kind.model_fields} for kind in (Job, Reading))
    parameters = {name: value for name, value in options.items() if name not in of_job | of_reading}
    settings, job, reading = method_of(method, **parameters), Job(**of_job), Reading(**of_reading)
    if isinstance(settings, Certified):
        require_map(reading)
    if rng is not None:
        require_rng(rng)
        if not isinstance(settings, Paper) and not job.laboratory:
            raise PublicationRefused(
                "`rng` makes a run that anybody who knows it can repeat, so its result must not be published: leave it "
                "out, or add `laboratory=True` for a laboratory result.",
                code="E_LABORATORY",
                parameter="laboratory",
            )
    return job, settings, reading


def keywords_of(reading: Reading) -> dict[str, Any]:
    """Return the keywords of `read_visits`: a `grid` becomes the map that it names."""
    keywords = {name: value for name, value in reading if name != "grid"}
    if reading.grid is None:
        return keywords
    if reading.locations is not None:
        raise InvalidParameter("`grid` is a map of its own: leave out `locations`.", parameter="grid")
    return keywords | {"locations": grid_of(reading.grid)}


def job_key(source: Any, job: Job, settings: Method, reading: Reading, secret: bytes | None) -> str | None:
    """Return the key of a job, None if its input cannot be hashed; `secret` is that of a laboratory run."""
    try:
        return hash_value(
            {
                "versions": versions(),
                "source": _hashable(source),
                "reading": dict(reading) | {"locations": _hashable(reading.locations)},
                "method": [settings.name, dict(settings)],
                "given": None if secret is None else derive_bytes(secret, "key"),
                **{name: getattr(job, name) for name in ("per_seed", "n", "kappa", "holdout")},
            }
        )
    except (TypeError, OSError, ValueError):
        return None


def _hashable(source: Any) -> Any:
    """Return name and hash of a file or folder (the name may be a user's); anything else as it is."""
    if not isinstance(source, (str, os.PathLike)):
        return source
    if str(source) == "-":
        raise TypeError("standard input is read once")
    try:
        return [Path(source).absolute().name, hash_file(Path(source))]
    except OSError as error:
        raise InvalidTraces("an input cannot be read.", code="E_OPEN") from error
