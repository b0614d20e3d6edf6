"""
The commands: each takes its options as checked settings, calls the library, and says what came out.

Heavy imports are inside the functions; errors are left to the door (`cli/__init__.py`).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elsewhere import settings
from elsewhere._version import __version__
from elsewhere.cli import output
from elsewhere.cli.output import bar, bars, say, stage
from elsewhere.cli.sources import (
    Sources,
    attack_in_halves,
    made_by,
    met_by_model,
    options_of,
    other_people,
    read_real,
    reading_file,
    split_people,
    with_fakes,
    write_results,
)
from elsewhere.errors import ElsewhereError, InvalidParameter, counted
from elsewhere.files import check_folder, whole_folder, whole_folders, write_files, write_folder
from elsewhere.run.finish import (
    LINKS,
    REPORT,
    describe_reading,
    describe_usable_days,
    earlier_results,
    judgement_facts,
    keep_links,
    private_folder,
    reading_facts,
    summary,
    warn_of_other_files,
    write_links,
    write_reports,
)
from elsewhere.run.reading import (
    add_advice,
    longer_gap,
    people_with_public_gap,
    read_usable_days,
    reading_keywords,
    usable_days,
)
from elsewhere.settings import PRESETS, PUBLIC_GAP, Reading

if TYPE_CHECKING:
    from elsewhere.data.slots import Traces
    from elsewhere.evaluation.reproduce import Reproduction
    from elsewhere.paper.profiles import Profiles
    from elsewhere.run.fakes import Fakes
    from elsewhere.scale import Cluster
    from elsewhere.serve.run import Started
    from elsewhere.traces.fixes import Preparation

FEWEST = 50  # people in a town whose places enough of them share
STUDENTLIFE = "paperlike_30users_2days_72slots.csv.gz"  # the paper's shape, in a folder of StudentLife


@contextmanager
def cluster_at(address: str | None) -> "Iterator[Cluster | None]":
    """Yield the cluster that `--dask` names, for the duration of a command."""
    if address is None:
        yield None
        return
    from elsewhere.scale import Cluster

    with Cluster(address) as cluster:
        yield cluster


def rng_of(seed: int | None) -> Any:
    """Return the generator that `--seed` names; None, which asks the operating system for entropy, without it."""
    import numpy as np

    return None if seed is None else np.random.default_rng(seed)


def read(source: Path, reading: Reading, preset: str, executor: Any = None) -> "tuple[Traces, Preparation]":
    """Read real traces as this preset does."""
    from elsewhere.traces.read import read_traces

    reports: list[Preparation] = []
    keywords = reading_keywords(reading, PRESETS[preset])  # type: ignore[index]
    with stage("reading"):
        traces = read_traces(source, executor=executor, report=reports.append, **keywords)
    return traces, reports[0]


# ---- make fakes


def demo(given: settings.Demo) -> None:
    """
    Show what it does, without any data: simulate a town, make fakes of its people, and attack the fakes.

    No input and no network. With -o: histograms.png, similarity.json, and in DIR and DIR-private what `synthesize`
    writes, report.html among it.

    Example: elsewhere demo -o out/demo
    """
    out, seed, force = given.out, given.seed, given.force
    _check_out(out, force)
    mine = None if out is None or given.users < FEWEST else private_folder(out, None, force=force)
    import numpy as np

    from elsewhere.data.town import simulate_town
    from elsewhere.evaluation.judge import judge_run
    from elsewhere.paper.profiles import fit_profiles
    from elsewhere.run.generate import generate_fakes
    from elsewhere.run.publish import publish_with_rows, write_fakes, write_pool

    with stage("simulating a town"):
        traces = simulate_town(users=given.users, locations=150, rng=np.random.default_rng(seed)).traces
    provenance: dict[str, Any] = {"command": "demo", "reproducible": True, "seed": seed}
    result, lines, pictures = _compare(traces, fit_profiles(traces), provenance, out)
    if given.users < FEWEST:
        if out is not None:
            write_folder(out, pictures, force=force)
        note = f"no fakes: fewer than {FEWEST} people do not share enough places"
        say({**result, "fakes": None}, [*lines, note], as_json=given.as_json)
        return
    with bar("making fakes") as progress:
        fakes = generate_fakes(traces, rng=np.random.default_rng([seed, 1]), workers=2, progress=progress)
    figures = summary(fakes, traces)
    lines += output.summary_tables(figures)
    if out is not None:
        pool, rows = publish_with_rows(fakes, laboratory=True, rng=np.random.default_rng([seed, 2]))
        pool = replace(pool, provenance={**pool.provenance, "simulated": True})
        assert mine is not None  # noqa: S101 - there is a folder for fakes
        with whole_folders((mine, out), force=force, outdated=earlier_results) as (private, new):
            write_files(new, pictures)
            files, links = write_fakes(pool, new, fakes.frame, []), write_links(traces, fakes, pool, rows, private)
            if given.report:
                judge = np.random.default_rng([seed, 3])
                with bar("attacking the fakes") as progress:
                    judgement = judge_run(traces, fakes, pool, rows, progress=progress, rng=judge)
                with stage("writing the reports"):
                    public_files, more = write_reports(judgement, traces, fakes, pool, new, private)
                files, links = files + public_files, links + more
                lines += output.closing(judgement)
                figures |= judgement_facts(judgement)
            files = write_pool(pool, new, files)
        lines.append(f"wrote {', '.join(links)} into {mine}: on real data, for you alone")
        lines.append(f"wrote {', '.join(files)} into {out}: a laboratory pool, of simulated people")
    say({**result, "fakes": figures}, lines, as_json=given.as_json)


def plan(given: settings.Plan, reading: Reading) -> None:
    """
    Say which presets your file has enough people for, what each would promise them, and how useful its fakes would be.

    Nothing of the input is used but the number of people with a usable day, one known from end to end: planning costs
    nobody any privacy.

    Example: elsewhere plan traces.csv --eps 2
    """
    from elsewhere.run.plan import plan as planned

    traces, report = read(given.source, reading, "product")
    people = usable_days(traces).U
    # the private preset fills gaps by a public rule: it may find other people with a usable day
    figures = reading_facts(report)
    proven = people_with_public_gap(figures, people)
    usable = dict.fromkeys(map(str, PRESETS), people) | {"private": proven}
    plans = [
        next(each for each in planned(n, eps=given.eps, delta=given.delta) if each.preset == name)
        for name, n in usable.items()
    ]
    record = {
        "command": "plan",
        "people": people,
        "people_by_a_public_gap": proven,
        "presets": {each.preset: each.to_dict() for each in plans},
        "read": figures,
    }
    there = f"{counted(people, 'person', 'people')} with a usable day"
    if proven != people:
        there += (
            f"; {proven:,} for private: how long people's gaps are is theirs, so gaps of up to {PUBLIC_GAP} are filled "
            "unless --max-gap gives another length"
        )
    lines = []
    for each in plans:
        words = each.useful
        if not each.enough:
            if each.preset != "private":
                there_are = usable[each.preset]
                words = f"refuses: it needs {each.people_needed:,} people; with a usable day there are {there_are:,}."
            elif report.max_gap_auto and (gap := longer_gap(report, each.people_needed)) is not None:
                words += f" With --max-gap {gap} there would be enough; it is yours to choose, not for these people."
        lines.append(f"{each.preset}: {words}")
    words = " ".join(["elsewhere synthesize INPUT -o DIR", *options_of(reading)])
    if enough := [each.preset for each in plans if each.enough]:
        lines.append(f"to make them: {words} --preset {'|'.join(enough)}")
    if plans[-1].enough and not (reading.grid or reading.locations or reading.regions):
        lines.append("private takes no map found in these people: add --grid S,W,N,E,N, --locations or --regions")
    usable_line = describe_usable_days(figures)
    say(
        record,
        [*describe_reading(figures), there, usable_line, output.plan_table(plans), *lines],
        as_json=given.as_json,
    )


def synthesize(given: settings.Input, preset: settings.PresetOptions, job: settings.Job, reading: Reading) -> None:
    """
    Do the whole job: read a file of real traces, make fakes, test and attack them, and write fakes and reports.

    DIR is for publishing: fakes.csv and fakes.parquet in the columns of the input, the pool (pool.parquet,
    places.parquet), manifest.json and report.html, which shows aggregates and fakes only. What only you may see goes
    into DIR-private: links.csv (who was made from whom), your own report.html and judgement.json. Both folders appear
    when they are complete. If the run is stopped, the same command resumes it: what is done is kept in DIR-unfinished,
    which is private.

    Example: elsewhere synthesize traces.csv -o out/fakes
    """
    from elsewhere.run.synthesize import STAGES
    from elsewhere.run.synthesize import synthesize as whole_job

    source, out = given.source, given.out
    with cluster_at(given.dask) as executor, bars(STAGES) as progress:
        result = whole_job(
            source,
            out,
            preset=preset.chosen(),
            reading=reading,
            force=given.force,
            executor=executor,
            progress=progress,
            rng=rng_of(preset.seed),
            **dict(job),
        )
    facts = result.to_dict()
    lines = [*describe_reading(facts["read"]), *output.summary_tables(facts)]
    lines += [] if result.judgement is None else output.closing(result.judgement)
    if result.private_files:
        lines.append(f"wrote {', '.join(result.private_files)} into {result.private}: for you alone")
    lines.append(f"wrote {len(result.files)} files into {out}")
    if "private" in facts:
        lines.append(f"no theorem covers these fakes; elsewhere plan {source} says what presets with one would promise")
    if result.judgement is not None:
        lines.append(f"{facts['publish']['words']}.")
    else:
        links = f" --links {result.private / LINKS}" if LINKS in result.private_files else ""
        lines.append(
            "nothing was attacked: whether these fakes reveal anything about anybody is not known. To attack them: "
            f"elsewhere audit --real {source} --fakes {out}{links}"
        )
    say(facts, lines, as_json=given.as_json)


# ---- the same, step by step


def prepare(given: settings.Input, reading: Reading) -> None:
    """
    Read a file of positions, cut days into slots and the map into places, and show how it was understood: prepare.html.

    Everything in DIR is about real people and stays with their owner. DIR is an INPUT for all other commands.
    """
    check_folder(given.out, force=given.force)
    from elsewhere.reports.page import preparation_page, write
    from elsewhere.traces.write import save_traces

    with cluster_at(given.dask) as executor:
        traces, report = read(given.source, reading, "product", executor)
    with stage("writing"), whole_folder(given.out, force=given.force) as new:
        files = [*save_traces(traces, report, new), "prepare.html"]
        write(new / "prepare.html", preparation_page(traces, report))
    figures = reading_facts(report)
    lines = [
        *output.reading_tables(figures),
        f"wrote {len(files)} files into {given.out}: private, open prepare.html",
    ]
    say({"command": "prepare", "version": __version__, **figures, "files": files}, lines, as_json=given.as_json)


def fit(given: settings.Input, preset: settings.PresetOptions, fitting: settings.Fitting, reading: Reading) -> None:
    """Learn from real traces how people live, without making a fake: model.npz and model.json, for `generate`."""
    check_folder(given.out, force=given.force)
    chosen = preset.chosen()
    if chosen.name == "private":
        raise InvalidParameter(
            'preset "private" learns and draws in one step: `elsewhere synthesize --preset private`.',
            parameter="preset",
        )
    import numpy as np

    from elsewhere.run.model import learn
    from elsewhere.run.roles import Contributors, split_users

    with cluster_at(given.dask) as executor:
        traces, report = _usable(given, preset, fitting, reading, executor)
        rng = rng_of(preset.seed) or np.random.default_rng(np.random.SeedSequence())
        people = split_users(traces, chosen, None, rng).model  # alternates must not have met the model
        with stage("learning"):
            trained = learn(people, chosen, kappa=fitting.kappa, feasible=fitting.feasible, rng=rng)
    files = {**Contributors.of(people).file(), **reading_file(report), **trained.files()}
    write_folder(given.out, files, force=given.force)
    result: dict[str, Any] = {
        "users": traces.U,
        "places": traces.R,
        "places_in_classes": int((trained.classes.label >= 0).sum()),
        "kappa": trained.classes.kappa,
        "preset": chosen.name,
    }
    line = ", ".join(f"{name} {value}" for name, value in result.items())
    figures = reading_facts(report)
    lines = [*describe_reading(figures), line, f"wrote {given.out}"]
    say({**result, "read": figures}, lines, as_json=given.as_json)


def generate(
    given: settings.Generate, preset: settings.PresetOptions, making: settings.Making, reading: Reading
) -> None:
    """Make fakes and keep them, with who was made from whom, in a private folder; `publish` is the next step."""
    check_folder(given.out, force=given.force)
    from elsewhere.run.publish import note_rare_places, remember_input

    with cluster_at(given.dask) as executor:
        facts, fewest = (None, None) if given.model is None else (made_by(given.model), 1)
        traces, report = _usable(given, preset, making, reading, executor, facts, fewest)
        fakes = remember_input(_make(traces, preset, making, executor, given.model), report)
    fakes, report = note_rare_places(fakes, report, traces)
    with whole_folder(given.out, force=given.force) as new:
        fakes.save(new)
        keep_links(traces, fakes, new)
    figures = summary(fakes, traces) | {"read": reading_facts(report)}
    wrote = f"wrote {given.out}: private, it knows the seeds; `publish` is the door"
    lines = [*describe_reading(figures["read"]), *output.summary_tables(figures), wrote]
    say(figures, lines, as_json=given.as_json)


def _usable(
    given: settings.Input,
    preset: settings.PresetOptions,
    fitting: settings.Fitting,
    reading: Reading,
    executor: Any,
    facts: dict[str, Any] | None = None,
    fewest: int | None = None,
) -> "tuple[Traces, Preparation]":
    """Read the days that can be seeds, as the input of a model was read whose `facts` are given."""
    rng = rng_of(preset.seed)
    secret = None if rng is None else rng.bytes(32)
    with stage("reading"):
        return read_usable_days(
            given.source, reading, preset.chosen(), fewest, facts, secret, executor, fitting.missing
        )


def _make(
    traces: "Traces", preset: settings.PresetOptions, making: settings.Making, executor: Any, model: Path | None
) -> "Fakes":
    """Generate fakes of these traces; with a model, the product takes as seeds whom the model has met."""
    import numpy as np

    from elsewhere.run.generate import generate_fakes
    from elsewhere.run.model import FittedModel
    from elsewhere.run.roles import Contributors

    chosen, people, keywords = preset.chosen(), traces, dict(making)
    del keywords["missing"]
    if model is not None:
        keywords["model"] = FittedModel.load(model)
        contributors = Contributors.read(model)
        met = None if contributors is None else contributors.met(traces)
        if chosen.name == "product" and met is not None and met.any() and not met.all():
            keywords["alternates"] = traces.of_users(np.flatnonzero(~met))
            people = traces.of_users(np.flatnonzero(met))
    try:
        with bar("making fakes") as progress:
            fakes = generate_fakes(
                people, preset=chosen, rng=rng_of(preset.seed), executor=executor, progress=progress, **keywords
            )
    except ElsewhereError as error:
        add_advice(error, traces, chosen)
        raise
    if people is traces:
        return fakes
    # seeds are counted as rows of the whole file
    rows = np.flatnonzero(np.isin(traces.users.astype(str), np.array([str(label) for label in people.labels])))
    attempts = fakes.attempts
    if len(attempts) == len(people):
        attempts = np.zeros(len(traces), dtype=np.int64)
        attempts[rows] = fakes.attempts
    among = None if fakes.seed_rows is None else rows[fakes.seed_rows]
    return replace(fakes, seed=rows[fakes.seed], seed_rows=among, attempts=attempts, seeds=traces)


def publish(given: settings.Publish) -> None:
    """
    Take fakes that `generate` made, and write those to be published, without anything that tells their seeds.

    They are written in the columns of the file that `generate` read, as `synthesize` does; who was made from whom goes
    into DIR-private, as links.csv.
    """
    out, force = given.out, given.force
    check_folder(out, force=force)
    mine = private_folder(out, given.private, force=force)
    from elsewhere.run.fakes import Fakes
    from elsewhere.run.publish import (
        FORMS,
        describe_output,
        publish_with_rows,
        published_links,
        write_fakes,
        write_pool,
    )

    fakes, links = Fakes.load(given.fakes), given.fakes / LINKS
    pool, rows = publish_with_rows(
        fakes, per_seed=given.per_seed, choose=given.choose, temp=given.temp, laboratory=given.laboratory
    )
    private_files = {}
    if links.exists():
        private_files = {LINKS: published_links(links.read_bytes(), rows, pool.traces, len(fakes))}
    with whole_folders((mine, out) if private_files else (out,), force=force, outdated=earlier_results) as folders:
        new = folders[-1]
        if private_files:
            write_files(folders[0], private_files)
        pool, notes = describe_output(pool, fakes.frame, given.also, given.out_as)
        files = write_pool(pool, new, write_fakes(pool, new, fakes.frame, given.also, given.out_as))
        # the budget is spent before anything leaves: a second run after a crash can only publish less
        fakes.save(given.fakes, force=True)
    warn_of_other_files(out, (*FORMS, REPORT), files)
    if not private_files:
        notes = [*notes, "no links.csv: the folder of these fakes does not say who was made from whom."]
    facts = {
        "fakes": pool.traces.U,
        "days": len(pool),
        "notes": notes,
        "files": files,
        "private_files": list(private_files),
    }
    wrote = [f"wrote {name} into {mine}: for you alone" for name in private_files]
    say(facts, [*notes, *wrote, f"published {pool.traces.U} fakes into {out}"], as_json=given.as_json)


# ---- judge fakes


def evaluate(given: settings.Evaluate, reading: Reading) -> None:
    """
    Measure how useful fakes are: what they keep of real traces, in tables and figures of the paper and others.

    Real traces make the map; fakes with coordinates are put on it, fakes with numbers of places must number the same
    places. Where people and fakes have several days each (rows of one id), their lives are compared too. With -o:
    evaluation.json and report.html, which shows aggregates and fakes only.

    Example: elsewhere evaluate --real real.csv --test second_day.csv --fakes out/fakes -o out/evaluation
    """
    if given.out is not None:
        check_folder(given.out, force=given.force)
    rng = rng_of(given.seed)
    sources = with_fakes(read_real(given.real, reading, given.fakes), given.fakes, given.links)
    drift, sources = sources.further(given.test, "--test")
    assert sources.fakes is not None  # noqa: S101 - just read
    from elsewhere.evaluation.lives import judge_lives, missing_days
    from elsewhere.evaluation.publishing.scenario import evaluate_publishing
    from elsewhere.evaluation.uses import MOSTLY_FILLED, judge_uses

    with stage("comparing"):
        result = evaluate_publishing(
            sources.real,
            drift,
            sources.fakes,
            seed_index=sources.seed_index,
            datasets=given.datasets,
            periods=given.periods,
            rng=rng,
        )
        filled = sources.first.made.share_filled
        uses = judge_uses(sources.real, sources.fakes, filled=filled, rng=rng)
        why = missing_days(sources.real, sources.fakes)
        lives = None if why else judge_lives(sources.real, sources.fakes, rng=rng)
    share_copied = sources.share_copied()
    notes = [*sources.notes, *result.notes, *uses.notes, *([why] if lives is None else lives.notes)]
    if 0 < share_copied < 1:
        notes.append(f"{share_copied:.1%} of the fakes equal somebody's real day, slot by slot: see `elsewhere audit`.")
    verdict = output.good_for(uses) if share_copied < 1 else output.THEMSELVES
    record = {
        "command": "evaluate",
        **result.to_dict(),
        "uses": uses.to_dict(),
        "lives": None if lives is None else lives.to_dict(),
        "verdict": verdict,
        "notes": notes,
    }
    opening, *figures = output.evaluation_tables(result, as_filled=filled > MOSTLY_FILLED)
    lines = [opening, *notes, *figures, *(uses.in_words() if share_copied < 1 else ())]
    results: list[Any] = [uses, result]
    if lives is not None:
        lines += ["lives over days:", *lives.in_words()]
        results.append(lives)
    if given.out is not None:
        lines += write_results(given.out, "evaluation.json", record, results, sources)
    say(record, [*lines, verdict], as_json=given.as_json)


def audit(given: settings.Audit, reading: Reading) -> None:
    """
    Attack fakes as an adversary would, and compare what each attack finds with what it finds without any seed.

    --links says who was made from whom. Without --holdout, the people of --real of whom no fake was made are the
    control; with it they are attacked too, and the figure is that of the worst role. With -o: audit.json and
    report.html, which shows aggregates and fakes only.

    Example: elsewhere audit --real real.csv --fakes out/fakes --links out/fakes-private/links.csv --attacks A2,A4,A5
    """
    if given.out is not None:
        check_folder(given.out, force=given.force)
    rng = rng_of(given.seed)
    from elsewhere.evaluation.attacks.audit import ALL
    from elsewhere.evaluation.attacks.audit import audit as attack
    from elsewhere.reports.claims import advice

    ids: Any = [word.strip().upper() for word in given.attacks.split(",") if word.strip()]
    if given.attacks == "all":
        ids = "all"
    elif not ids or set(ids) - set(ALL):
        raise InvalidParameter(
            f"`attacks` must be all, or ids {ALL[0]} .. {ALL[-1]} with commas between, got {given.attacks!r}.",
            parameter="attacks",
        )
    sources = with_fakes(read_real(given.real, reading, given.fakes, given.model), given.fakes, given.links)
    others, sources = sources.further(given.holdout, "--holdout")
    seeds, index, control, notes = split_people(sources, others)
    roles = other_people(sources, seeds) if others is not None and index is not None else None
    fitted = sources.learnt(given.model)
    notes += met_by_model(given.model, control)
    keywords: dict[str, Any] = {} if fitted is None else {"model": fitted.model, "classes": fitted.classes}
    if sources.private is not None:
        keywords["attempts"] = sources.private.attempts
    with cluster_at(given.dask) as executor, bar("attacking") as progress:
        result = attack(
            seeds,
            control,
            sources.fakes,
            index,
            attacks=ids,
            pool=sources.fakes if sources.published else None,
            m_min=given.m_min,
            roles=roles,
            executor=executor,
            progress=progress,
            rng=rng,
            **keywords,
        )
    if control is None:
        result, more = attack_in_halves(result, seeds, sources.fakes, ids, rng)
        notes += more
    findings = result.to_dict()
    publishing = advice(findings, {} if sources.private is None else {"preset": sources.private.preset.name})
    first = output.on_copies(result, everybody=sources.share_copied() == 1)
    record = {
        "command": "audit",
        "attacks": findings,
        "flagged": list(result.flagged),
        "in_words": " ".join([*first, result.in_words()]),
        "publish": publishing._asdict(),
        "sizes": result.sizes,
        "notes": [*sources.notes, *notes, *result.notes],
    }
    lines = [*output.audit_tables(result), f"{publishing.words}. {publishing.because}"]
    lines[1:1] = [note for note in record["notes"] if not note.startswith("elsewhere ")]
    if given.out is not None:
        lines[-2:-2] = write_results(given.out, "audit.json", record, [result], sources)
    say(record, [*first, *lines], as_json=given.as_json)


# ---- decoys


def lbs(given: settings.Lbs, reading: Reading) -> None:
    """
    Measure how well a person hides among decoys from a service: with fakes, and with four simple generators.

    A user's decoys never descend from that user's own trace. Where users have 7 days or more, a service that watches
    for as long looks for home and main place behind decoys that are the same every day, and behind fresh ones. With
    -o: lbs.json, lbs.png and report.html.

    Example: elsewhere lbs --real two_days.csv -o out/lbs
    """
    out = given.out
    _check_out(out, given.force)
    for name in ("test", "fakes", "links", "model"):
        if given.real is None and getattr(given, name) is not None:
            raise InvalidParameter(f"`{name}` needs `real`.", parameter=name)
    if given.links is not None and given.fakes is None:
        raise InvalidParameter("`links` needs `fakes`.", parameter="links")
    rng = rng_of(given.seed)
    from elsewhere.evaluation.lbs.generators import judge_service, two_days

    sources, days = None, None
    if given.real is None:
        from elsewhere.data.town import simulate_town

        with stage("simulating a town"):
            days = simulate_town(users=60, days=28, locations=150, rng=rng).traces
        train, truth = two_days(days)
    else:
        second, sources = read_real(given.real, reading, given.fakes, given.model).further(given.test, "--test")
        days = sources.real if second is None else None
        train, truth = two_days(sources.real) if second is None else (sources.real, second)
    decoys, owners, classes, notes = _decoys(given, sources, train, rng)
    with bar("attacking") as progress:
        result = judge_service(
            train,
            truth,
            decoys,
            owners,
            classes=classes,
            n_fakes=tuple(int(word) for word in given.n_fakes.split(",")),
            beta=given.beta,
            choose=given.choose,
            days=days,
            progress=progress,
            rng=rng,
        )
    record = {"command": "lbs", **result.to_dict(), "notes": [*notes, *result.notes]}
    lines = [*output.lbs_tables(result), *record["notes"]]
    if out is not None:
        from elsewhere.reports.charts import location_privacy, png
        from elsewhere.reports.page import report

        files = {"lbs.png": png(location_privacy(record)), "lbs.json": _json(record)}
        with whole_folder(out, force=given.force) as new:
            write_files(new, files)
            report(result, new / "report.html", title="Decoys for a location-based service")
        lines += [f"wrote {out / name}" for name in ("report.html", *files)]
    say(record, lines, as_json=given.as_json)


def _decoys(
    given: settings.Lbs, sources: Sources | None, train: "Traces", rng: Any
) -> tuple[Any, Any, Any, tuple[str, ...]]:
    """Return the fakes, the number of the user behind each, the classes of the places, and notes."""
    import numpy as np

    if sources is None or given.fakes is None:
        from elsewhere.run.generate import generate_fakes

        fitted = None if sources is None else sources.learnt(given.model)
        with bar("making fakes") as progress:
            fakes = generate_fakes(
                usable_days(train),
                preset=given.preset,
                per_seed=given.per_seed,
                model=fitted,
                rng=rng,
                progress=progress,
            )
        assert fakes.learnt is not None  # noqa: S101 - fresh fakes know it
        return fakes, None, fakes.learnt.classes, fakes.notes
    sources = with_fakes(sources, given.fakes, given.links)
    fitted, owners = sources.learnt(given.model), None
    if sources.seed_index is not None:
        number = {label: i for i, label in enumerate(train.labels)}
        owners = np.array([number.get(label, -1) for label in sources.real.users[sources.seed_index]])
    return sources.fakes, owners, None if fitted is None else fitted.classes, sources.notes


def serve(given: settings.Serve) -> None:
    """
    Serve a pool of fakes to devices, which fetch whole lives and send them along as decoys (see `elsewhere.lbs`).

    The owner's token is printed once, at the first start; with it, devices are let in by POST /v1/devices. What is
    given to one device is given to no other. Nothing is logged. Ctrl-C stops it.

    Example: elsewhere serve out/demo
    """
    from elsewhere.serve.run import serve as run

    begun = False

    def started(service: "Started") -> None:
        """Say where the service is, and the owner's token, the first time."""
        nonlocal begun
        begun = True
        lines = [
            f"serving {service.lives} lives at {service.url}, {service.free} of them given to nobody yet, "
            f"{service.bucket} in a bucket" + (", shared" if service.shared else ""),
        ]
        if service.laboratory:
            lines.append("this is a laboratory pool: for trying things out, not for people")
        if service.owner_token is not None:
            lines.append(f"owner's token (shown only now, keep it): {service.owner_token}")
        say(asdict(service), lines, as_json=given.as_json)

    keywords = {name: value for name, value in given if name not in ("pool", "as_json")}
    try:
        run(given.pool, started=started, **keywords)
    except KeyboardInterrupt:
        if not begun:  # afterwards it is how a service ends
            raise


# ---- the paper's own comparisons


def similarity(given: settings.Similarity, reading: Reading) -> None:
    """
    Compare all users of a dataset, pair by pair: where they are, and how they live.

    With -o: histograms.png and similarity.json.
    """
    _check_out(given.out, given.force)
    from elsewhere.paper.profiles import fit_profiles

    rng = rng_of(given.seed)
    traces, report = read(given.source, reading, "paper")
    if given.users is not None:
        if given.users > traces.U:
            raise InvalidParameter(f"`users` must be at most {traces.U}, got {given.users}.", parameter="users")
        traces = traces.of_users(rng.choice(traces.U, given.users, replace=False))
    profiles = fit_profiles(traces, periods=given.periods, missing=given.missing, rng=rng)
    provenance = {"command": "similarity", "read": reading_facts(report)}
    result, lines, pictures = _compare(traces, profiles, provenance, given.out)
    if given.out is not None:
        write_folder(given.out, pictures, force=given.force)
    say(result, lines, as_json=given.as_json)


def _check_out(out: Path | None, force: bool) -> None:
    """Refuse, before any work, an output that could not be written."""
    if out is not None:
        check_folder(out, force=force)


def _compare(
    traces: "Traces", profiles: "Profiles", provenance: dict[str, Any], out: Path | None
) -> tuple[dict[str, Any], list[Any], dict[str, bytes]]:
    """Compute the similarity of all pairs: the result, tables for people, and files to write into `out`, if given."""
    from elsewhere.evaluation.publishing.pairs import pair_similarity
    from elsewhere.reports.charts import png, similarity_histograms

    with stage("comparing all pairs"):
        pairs = pair_similarity(profiles)
    size = {"rows": len(traces), "slots": traces.L, "places": traces.R}
    result = {**provenance, "version": __version__, **size, **pairs.to_dict()}
    files = {}
    if out is not None:
        files["histograms.png"] = png(similarity_histograms(pairs.geographic, pairs.semantic))
        files["similarity.json"] = json.dumps(result, indent=2, allow_nan=False).encode()
    lines = describe_reading(result["read"]) if "read" in result else []
    wrote = [f"wrote {out / name}" for name in files if out is not None]
    return result, [*lines, *output.similarity_tables(result), *wrote], files


def reproduce(given: settings.Reproduce, reading: Reading) -> None:
    """
    Repeat the paper's evaluation on other data: every table and figure, our number beside the paper's, and why they
    differ.

    The first day of each user teaches, the second tests, as in the paper. With -o: reproduce.md, reproduce.json and the
    figures. They show where people go: keep those of real people to yourself.

    Example: elsewhere reproduce two_days.csv -o out/reproduce
    """
    _check_out(given.out, given.force)
    rng, data = rng_of(given.seed), given.data
    from elsewhere.evaluation.reproduce import reproduce as run

    if data is None:
        from elsewhere.data.town import simulate_town

        with stage("simulating a town"):
            traces = simulate_town(users=given.users, days=2, locations=400, rng=rng).traces
    else:
        traces, _ = read(data / STUDENTLIFE if (data / STUDENTLIFE).is_file() else data, reading, "paper")
    with bar("reproducing") as progress:
        result = run(traces, per_seed=given.per_seed, kappa=given.kappa, progress=progress, rng=rng)
    record = {"command": "reproduce", **result.to_dict()}
    lines = output.reproduction_tables(result)
    if given.out is not None:
        files = _reproduction_files(result, record)
        write_folder(given.out, files, force=given.force)
        lines.append(f"wrote {', '.join(files)} into {given.out}")
    say(record, lines, as_json=given.as_json)


def _reproduction_files(result: "Reproduction", record: dict[str, Any]) -> dict[str, bytes]:
    from elsewhere.reports.paper_figures import paper_figures, png

    files = {f"{name}.png": png(figure) for name, figure in paper_figures(result).items()}
    pictures = "".join(f"\n![{name.removesuffix('.png')}]({name})\n" for name in files)
    return {**files, "reproduce.md": (result.markdown() + pictures).encode(), "reproduce.json": _json(record)}


def _json(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, indent=1, allow_nan=False) + "\n").encode()


GROUPS = {
    "Make fakes": (demo, plan, synthesize),
    "The same, step by step": (prepare, fit, generate, publish),
    "Look at fakes and judge them": (evaluate, audit),
    "Fakes as decoys among queries to a service": (lbs, serve),
    "The paper's own comparisons": (similarity, reproduce),
}
