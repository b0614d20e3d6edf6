"""Commands `evaluate` and `audit`: what fakes keep, and what attacks learn, on our fakes or any other tool's."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from elsewhere.cli.options import AS_USUAL, EXPERT, MODEL, PRIVACY, Dask, Judging, cluster_at, judges, reads
from elsewhere.cli.output import bar, columns, number, say, stage
from elsewhere.cli.sources import Links, Made, Model, Real, Sources, read_real, with_fakes, write_results
from elsewhere.errors import InvalidParameter, require_whole
from elsewhere.files import check_folder
from elsewhere.run.presets import AS_IT_COMES, Reading

if TYPE_CHECKING:
    import numpy as np

    from elsewhere.reports.claims import Advice
    from elsewhere.traces.model import Ints, Traces

THEMSELVES = "these fakes are days of the real traces: every figure is as good as it can be, and nobody is protected."


@reads
@judges
def evaluate(
    real: Real,
    fakes: Made,
    test: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Other real traces, e.g. the second day: the drift.")
    ] = None,
    links: Links = None,
    datasets: Annotated[
        int, typer.Option("--datasets", metavar="N", help="Fake datasets to compare.", rich_help_panel=EXPERT)
    ] = 10,
    periods: Annotated[
        int, typer.Option("--periods", metavar="N", help="Equal parts of the local day.", rich_help_panel=MODEL)
    ] = 1,
    judging: Judging = AS_USUAL,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Measure how useful fakes are: what they keep of real traces, in tables and figures of the paper and others.

    Real traces make the map; fakes with coordinates are put on it, fakes with numbers of places must number the same
    places. Where people and fakes have several days each (rows of one id), their lives are compared too. With -o:
    evaluation.json and report.html, which shows aggregates and fakes only.

    Example: elsewhere evaluate --real real.csv --test second_day.csv --fakes out/fakes -o out/evaluation
    """
    out = judging.out
    if out is not None:
        check_folder(out, force=judging.force)
    require_whole("--datasets", datasets, 1)
    require_whole("--periods", periods, 1, 1440)
    rng = judging.rng()
    sources = read_real(real, reading, fakes)
    sources = with_fakes(sources, fakes, links)
    drift, sources = sources.further(test, "--test")
    from elsewhere.evaluation.lives import judge_lives, missing_days
    from elsewhere.evaluation.publishing.scenario import evaluate_publishing
    from elsewhere.evaluation.uses import MOSTLY_FILLED, judge_uses

    with stage("comparing"):
        result = evaluate_publishing(
            sources.real,
            drift,
            sources.fakes,
            seed_index=sources.seed_index,
            datasets=datasets,
            periods=periods,
            rng=rng,
        )
        filled = sources.first.made.share_filled
        uses = judge_uses(sources.real, sources.fakes, filled=filled, rng=rng)
        assert sources.fakes is not None  # noqa: S101 - just read
        why = missing_days(sources.real, sources.fakes)
        lives = None if why else judge_lives(sources.real, sources.fakes, rng=rng)
    share_copied = copies(sources)
    notes = [*sources.notes, *result.notes, *uses.notes, *([why] if lives is None else lives.notes)]
    if 0 < share_copied < 1:
        notes.append(f"{share_copied:.1%} of the fakes equal somebody's real day, slot by slot: see `elsewhere audit`.")
    verdict = in_words(uses) if share_copied < 1 else THEMSELVES
    record = {
        "command": "evaluate",
        **result.to_dict(),
        "uses": uses.to_dict(),
        "lives": None if lives is None else lives.to_dict(),
        "verdict": verdict,
        "notes": notes,
    }
    opening, *figures = tables(result, as_filled=filled > MOSTLY_FILLED)
    lines = [opening, *notes, *figures, *(uses.in_words() if share_copied < 1 else ())]
    results: list[Any] = [uses, result]
    if lives is not None:
        lines += ["lives over days:", *lives.in_words()]
        results.append(lives)
    if out is not None:
        lines += write_results(out, "evaluation.json", record, results, sources)
    lines.append(verdict)
    say(record, lines, as_json=judging.as_json)


def copies(sources: Sources) -> float:
    """
    Return the share of the fakes that equal, slot by slot, a real day; days at one place count only if all
    fakes equal one.
    """
    import numpy as np

    from elsewhere.evaluation.attacks.copies import equal_days

    assert sources.fakes is not None  # noqa: S101 - read before
    real, fakes = (np.asarray(t.r, dtype=np.int64) for t in (sources.real, sources.fakes))
    days = {row.tobytes() for row in real}
    return 1.0 if all(row.tobytes() in days for row in fakes) else float(equal_days(fakes, real).mean())


def in_words(uses: Any) -> str:
    """Return what the fakes are good for, in one sentence."""
    by_word: dict[str, list[str]] = {}
    for use in uses.uses:
        by_word.setdefault(use.verdict, []).append((use.title[:1].lower() + use.title[1:]).replace(",", ""))
    phrases = {"good": "good for", "rough": "rough for", "not for this": "not for", "cannot say": "not known for"}
    parts = [f"{words} {', '.join(by_word[verdict])}" for verdict, words in phrases.items() if verdict in by_word]
    return f"these fakes are {'; '.join(parts)}."


def tables(result: Any, *, as_filled: bool = False) -> list[Any]:
    """
    Return the figures for people: what differs, beside what other real days give; then an average day in numbers.

    `as_filled` says that real stays are what the filling of gaps made of them.
    """
    sizes, rows = result.sizes, result.table()
    many = sizes["datasets"] > 1
    opening = (
        f"{sizes['dataset_size']} fakes{' at a time, ' + str(sizes['datasets']) + ' times,' if many else ''} beside "
        f"{sizes['train']} real days of {sizes['users']} people; {sizes['slots']} slots a day, "
        f"{sizes['places']} places"
    )
    another = sizes["test"] > 0
    average_day = Table(box=SIMPLE_HEAD, pad_edge=False)
    days = Table(box=SIMPLE_HEAD, pad_edge=False)
    for table, names in (
        (average_day, ("fakes and real days", "fakes", *(["other real days"] * another), "all places alike", "best")),
        (days, ("a day, on average", "fakes", *(["other real days"] * another), "real")),
    ):
        for i, name in enumerate(names):
            table.add_column(name, no_wrap=i > 0 and table is days, justify="left" if i == 0 else "right")
    for row in rows:
        test = [number(row.get("testing"))] * another
        if row["best"] is None:
            remark = ", real ones as filled" if as_filled and row["measure"] == "dwell" else ""
            days.add_row(f"{row['words']}{remark}", number(row["fakes"]), *test, number(row.get("train")))
        else:
            spread = f" ± {number(row['std'], 1)}" if many and row["std"] else ""
            average_day.add_row(
                row["words"], f"{number(row['fakes'])}{spread}", *test, number(row.get("uniform")), number(row["best"])
            )
    return [opening, average_day, days]


# column of the table -> width of a terminal that shows it
FIGURES = {"reached": 0, "95 %": 64, "strangers": 76, "guessing": 88}
COLUMNS = {"reached": "main", "strangers": "control", "guessing": "baseline"}
WIDE = 110  # columns of a terminal that shows whole questions
# input of an attack -> the option that gives it
GIVEN_BY = {
    "seed_index": "--links FILE, who was made from whom (--links same: fakes carry the ids of their seeds)",
    "holdout": "--holdout FILE, real people of whom no fake was made",
    "classes": "--model DIR, the classes of the places",
    "sampler": "the model's probabilities, which only `synthesize --preset deniable` holds",
}
REALISM = ("A15", "A16")  # ask whether fakes look real, not who is behind them: any real people can be the control
FEWEST = 10  # people in each half


@reads
@judges
def audit(
    real: Real,
    fakes: Made,
    links: Links = None,
    holdout: Annotated[
        Path | None,
        typer.Option("--holdout", metavar="FILE", help="Real people who never met the generator: the control."),
    ] = None,
    model: Model = None,
    attacks: Annotated[str, typer.Option("--attacks", metavar="ID,...", help="all, or ids such as A2,A5.")] = "all",
    m_min: Annotated[
        int, typer.Option("--m-min", metavar="N", help="People that a place must have (A13).", rich_help_panel=PRIVACY)
    ] = 5,
    dask: Dask = None,
    judging: Judging = AS_USUAL,
    reading: Reading = AS_IT_COMES,
) -> None:
    """
    Attack fakes as an adversary would, and compare what each attack finds with what it finds without any seed.

    --links says who was made from whom. Without --holdout, the people of --real of whom no fake was made are the
    control; with it they are attacked too, and the figure is that of the worst role. With -o: audit.json and
    report.html, which shows aggregates and fakes only.

    Example: elsewhere audit --real real.csv --fakes out/fakes --links out/fakes-private/links.csv --attacks A2,A4,A5
    """
    out = judging.out
    if out is not None:
        check_folder(out, force=judging.force)
    rng = judging.rng()
    ids: Any = attacks if attacks == "all" else [a.strip().upper() for a in attacks.split(",") if a.strip()]
    from elsewhere.evaluation.attacks.audit import ALL

    if not ids or (ids != "all" and set(ids) - set(ALL)):
        raise InvalidParameter(
            f"`--attacks` must be all, or ids {ALL[0]} .. {ALL[-1]} with commas between, got {attacks!r}."
        )
    sources = read_real(real, reading, fakes, model)
    sources = with_fakes(sources, fakes, links)
    others, sources = sources.further(holdout, "--holdout")
    seeds, index, control, notes = split(sources, others)
    roles = _others(sources, seeds) if others is not None and index is not None else None
    fit = sources.learnt(model)
    from elsewhere.evaluation.attacks.audit import audit as attack

    notes += _acquainted(model, control)
    keywords: dict[str, Any] = {} if fit is None else {"model": fit.model, "classes": fit.classes}
    if sources.private is not None:
        keywords["attempts"] = sources.private.attempts
        if sources.private.preset.name == "deniable":
            keywords |= {"k": sources.private.preset.k or None, "eps0": sources.private.preset.eps0}
    with cluster_at(dask) as executor, bar("attacking") as progress:
        result = attack(
            seeds,
            control,
            sources.fakes,
            index,
            attacks=ids,
            pool=sources.fakes if sources.published else None,
            m_min=m_min,
            roles=roles,
            executor=executor,
            progress=progress,
            rng=rng,
            **keywords,
        )
    if control is None:
        result, more = with_halves(result, seeds, sources.fakes, ids, rng)
        notes += more
    findings = result.to_dict()
    publish = _advice_on(findings, sources)
    told_first = on_copies(result, everybody=copies(sources) == 1)
    verdict = " ".join([*told_first, result.in_words()])
    record = {
        "command": "audit",
        "attacks": findings,
        "flagged": list(result.flagged),
        "in_words": verdict,
        "publish": publish._asdict(),
        "sizes": result.sizes,
        "notes": [*sources.notes, *notes, *result.notes],
    }
    lines = [*audit_tables(result), f"{publish.words}. {publish.because}"]
    lines[1:1] = [note for note in record["notes"] if not note.startswith("elsewhere ")]
    if out is not None:
        lines[-2:-2] = write_results(out, "audit.json", record, [result], sources)
    say(record, [*told_first, *lines], as_json=judging.as_json)


def _advice_on(findings: dict[str, Any], sources: Sources) -> "Advice":
    """Return whether to publish the fakes, by what the attacks found."""
    from elsewhere.reports.claims import advice

    return advice(findings, {} if sources.private is None else {"preset": sources.private.preset.name})


def on_copies(result: Any, *, everybody: bool) -> list[str]:
    """Return a warning of fakes that equal real days beyond chance, as A1 has it, to be shown first; or []."""
    if everybody:
        return ["all of these fakes are days of the real traces: nobody is protected."]
    copied = [f for f in result.findings if f.id == "A1" and f.learnt and f.details.get("how") == "whole day"]
    return [f"{f.words} These people are not protected." for f in copied]


def split(sources: Sources, holdout: "Traces | None") -> "tuple[Traces, Ints | None, Traces | None, tuple[str, ...]]":
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


def _others(sources: Sources, seeds: "Traces") -> "dict[str, Traces | str]":
    """Return the people of --real of whom no fake was made, who may have met the generator in another role."""
    import numpy as np

    behind = set(seeds.labels)
    free = np.array([i for i, label in enumerate(sources.real.labels) if label not in behind], dtype=np.int64)
    if len(free) == 0:
        return {}
    few = f"they are {len(free)}, and fewer than {FEWEST} tell nothing"
    return {"other people of --real": few if len(free) < FEWEST else sources.real.of_users(free)}


def with_halves(
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


def _acquainted(model: Path | None, control: "Traces | None") -> tuple[str, ...]:
    if model is None or control is None:
        return ()
    from elsewhere.run.roles import Contributors

    contributors = Contributors.read(model)
    if contributors is None:
        return ("whether the control has met the model is not known: the model does not remember its contributors.",)
    many = int(contributors.met(control).sum())
    return (f"{many} of the {control.U} people of the control have contributed to the model.",)


def audit_tables(result: Any, width: int | None = None) -> list[Any]:
    """
    Return a line per attack, as wide as the terminal; what was learnt, in words; what was not run; a last
    sentence.
    """
    from elsewhere.evaluation.attacks.audit import SEEDS
    from elsewhere.reports.claims import UNITS, format_figure, outcome_sign, question

    width = columns() if width is None else width
    sizes = result.sizes
    opening = (
        f"{sizes['fakes']} fakes of {sizes['seed_users']} people, {sizes['holdout_users']} strangers as control, "
        f"{sizes['places']} places, {sizes['slots']} slots a day"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    # figures beside the main one are short, and no word of a question is cut; what does not fit goes
    figures = [name for name in FIGURES if width >= FIGURES[name]]
    for name in ("", "question", *figures, "the attack"):
        table.add_column(name, no_wrap=name not in ("question", "the attack"), overflow="fold")
    ran = [row for row in result.table() if row["status"] == "run"]
    for row in ran:
        about = question(row["id"], row)
        asked = about.words if width >= WIDE else about.short
        role = result[row["id"]].details.get("role")
        asked += f" (worst role: {role})" if role not in (None, SEEDS) else ""
        figure = {name: format_figure(row[key], about.unit) for name, key in COLUMNS.items()}
        if row["low"] is not None:
            figure["95 %"] = (
                f"{_bare(format_figure(row['low'], about.unit))} to {_bare(format_figure(row['high'], about.unit))}"
            )
        table.add_row(row["id"], asked, *(figure.get(name, "") for name in figures), outcome_sign(row["id"], row)[1])
    lines = [opening, table, UNITS] if ran else [opening]
    if len(figures) < len(FIGURES):
        others = ", ".join(name for name in FIGURES if name not in figures)
        lines.append(f"a wider terminal, or --json, shows {others}")
    lines += [f"{f.id} {f.outcome}: {f.words}" for f in result.findings if f.learnt]
    return [*lines, *result.unjudged, *_not_run(result), result.in_words()]


def _bare(figure: str) -> str:
    return figure.split()[0]


def _not_run(result: Any) -> list[str]:
    """Return a line per thing that is missing: which option gives it, and which attacks need it."""
    from elsewhere.evaluation.attacks.finding import NOT_RUN, REVIEW

    attacks_by_option: dict[str, list[str]] = {option: [] for option in GIVEN_BY.values()}
    for f in result.findings:
        if f.status == NOT_RUN:
            lacks = [option for name, option in GIVEN_BY.items() if f"`{name}`" in f.needs]
            for each in lacks or [f.needs]:
                attacks_by_option.setdefault(each, []).append(f.id)
    lines = [f"not run without {what}: {', '.join(ids)}" for what, ids in attacks_by_option.items() if ids]
    reviews = [f.id for f in result.findings if f.status == REVIEW]
    return lines + [f"for people to review, no program runs them: {', '.join(reviews)}"] * bool(reviews)
