"""
What a command says: results on stdout, as JSON or as tables for people; progress on stderr, a line now and then where
that is no terminal.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table

from elsewhere.run.finish import NOT_ATTACKED, describe_usable_days, judgement_facts, repairs

if TYPE_CHECKING:
    from elsewhere.evaluation.judge import Judgement
    from elsewhere.evaluation.reproduce import Reproduction

QUIET = 30.0  # seconds between two lines of progress where stderr is no terminal
BAR_WIDTH = 22  # two of them fit a terminal of 80 columns
THEMSELVES = "these fakes are days of the real traces: every figure is as good as it can be, and nobody is protected."
# column of the table of attacks -> width of a terminal that shows it
FIGURES = {"reached": 0, "95 %": 64, "strangers": 76, "guessing": 88}
COLUMNS = {"reached": "main", "strangers": "control", "guessing": "baseline"}
WIDE = 110  # columns of a terminal that shows whole questions
# input of an attack -> the option that gives it
GIVEN_BY = {
    "seed_index": "--links FILE, who was made from whom (--links same: fakes carry the ids of their seeds)",
    "holdout": "--holdout FILE, real people of whom no fake was made",
    "classes": "--model DIR, the classes of the places",
    "sampler": "the noisy sums, which only `synthesize --preset private` holds",
}


def say(result: dict[str, Any], renderables: Iterable[RenderableType], *, as_json: bool) -> None:
    """Write the result: one JSON object, or the given tables and texts."""
    if as_json:
        typer.echo(json.dumps(result, indent=2, allow_nan=False))
        return
    console = Console(highlight=False)
    for renderable in renderables:
        if isinstance(renderable, str):
            typer.echo(renderable)  # as it is: a path may hold brackets, and must not be broken into lines
        else:
            console.print(renderable)


def columns() -> int:
    """Return how many characters a line of stdout holds."""
    return Console().width


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Show a spinner on stderr while `what` is being done; silent where stderr is not a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        yield


def can_draw_blocks() -> bool:
    """Tell whether stdout can show block characters."""
    return Console().encoding.lower().startswith("utf")


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr, fed by calling what it yields as `(done, total)`; only to a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def bars(stages: Sequence[str]) -> Iterator[Callable[[str, int, int], None]]:
    """Show the progress of a job in stages, like `bar`, fed by `(stage, done, total)` as `synthesize` tells it."""
    console = Console(stderr=True)

    def described(what: str, done: int, total: int) -> str:
        return f"{stages.index(what) + 1} of {len(stages)}: {what}{f' {done}/{total}' if total else ''}"

    if not console.is_terminal:
        with _now_and_then(described) as show:
            yield show
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        now, task = "", progress.add_task("", total=None)

        def show(what: str, done: int, total: int) -> None:
            nonlocal now
            if what != now:  # times are those of a stage
                progress.reset(task)
            now = what
            progress.update(task, description=described(what, done, total), completed=done, total=total or None)

        yield show


@contextmanager
def _now_and_then(described: Callable[[str, int, int], str]) -> Iterator[Callable[..., None]]:
    """Write where the job is to stderr every `QUIET` seconds, however long a stage lasts."""
    now: list[tuple[str, int, int]] = []  # the latest
    ended = threading.Event()

    def show(what: str, done: int, total: int) -> None:
        now[:] = [(what, done, total)]

    def tell() -> None:
        while not ended.wait(QUIET):
            for latest in now:
                typer.echo(described(*latest), err=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield show
    finally:
        ended.set()
        teller.join()


def number(value: float | None, digits: int = 3) -> str:
    """Return a figure for people: so many significant digits, nothing where there is none."""
    if value is None:
        return ""
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def summary_tables(facts: dict[str, Any]) -> list[Any]:
    """Return the summary for people."""
    days = f" who live {facts['days']:,} days" if facts["days"] > facts["fakes"] else ""
    lines: list[Any] = [f"preset {facts['preset']}: {facts['fakes']} fakes{days}, of nobody in particular"]
    if "seeds" in facts:
        lines = [
            f"preset {facts['preset']}: {facts['fakes']} fakes{days} of {facts['seeds']} seeds, of {facts['users']} "
            f"users with a usable day; {facts['kappa']} {'class' if facts['kappa'] == 1 else 'classes'} of places"
        ]
    if "attempts" in facts:
        from elsewhere.reports.page import RULES

        rules = Table("rule (a candidate can break several)", "rejected", "share", box=SIMPLE_HEAD)
        for name, number in facts["rejected_by"].items():
            rules.add_row(RULES.get(name, name), f"{number:,}", f"{number / facts['attempts']:.1%}")
        rules.add_row("passed all", f"{facts['passed']:,}", f"{facts['passed'] / facts['attempts']:.1%}")
        lines.append(rules)
        if facts["k"] > 1:
            lines.append(
                f"every fake resembles {facts['k'] - 1} or more other people about as much as the one it was made from"
            )
    lines.append(" ".join(facts["certificate"]["words"]))
    life = Table("per trace", "real", "fakes", box=SIMPLE_HEAD)
    for name in ("moves", "places"):
        life.add_row(name, *(f"{facts['per_trace'][who][name]:.1f}" for who in ("real", "fakes")))
    return [*lines, life, *(note for note in facts["notes"] if note != NOT_ATTACKED)]


def closing(judgement: "Judgement") -> list[str]:
    """Return the last lines of a run: what each attack learnt, what the fakes are good for, whether to publish them."""
    advice = judgement_facts(judgement)["publish"]
    lines = judgement.in_words()
    if judgement.uses is not None:
        lines += ["", "what the fakes are good for:", *(f"  {line}" for line in judgement.uses.in_words())]
    if judgement.lives is not None:
        lines += ["", "lives over days:", *(f"  {line}" for line in judgement.lives.in_words())]
    if judgement.audit is not None:
        lines += ["", judgement.audit.in_words()]
    return [*lines, f"{advice['words']}. {advice['because']}", ""]


def plan_table(plans: Sequence[Any]) -> Table:
    """Return what each preset would promise."""
    table = Table("preset", "protects", "eps", "AUC at most", "fakes", "people needed", box=SIMPLE_HEAD)
    for each in plans:
        c = each.certificate
        promise = ("-", "-") if c.eps is None else (f"{c.eps:g}", f"{c.auc:.3f}")
        fakes = "one a seed" if c.eps is None else c.fakes_covered
        table.add_row(each.preset, c.protects, *promise, fakes, f"{each.people_needed:,}")
    return table


def reading_tables(read: dict[str, Any]) -> list[Any]:
    """Return what was read and dropped."""
    what = Table("", "kept", "dropped", box=SIMPLE_HEAD)
    what.add_row("rows", f"{read['rows'] - sum(read['dropped'].values()):,}", f"{sum(read['dropped'].values()):,}")
    what.add_row("users", f"{read['users']:,}", f"{read['users_dropped']:,}")
    what.add_row("days", f"{read['days']:,}", f"{read['days_dropped']:,}")
    slots = read["slots_observed"] + read["slots_held"] + read["slots_missing"]
    shares = ", ".join(
        f"{read[name] / slots:.1%} {word}"
        for name, word in (("slots_observed", "observed"), ("slots_held", "filled"), ("slots_missing", "missing"))
    )
    usable = f"usable: {read['users_usable']:,} people have a usable day; {describe_usable_days(read)}"
    places = f"places: {read['places']:,}"
    if read["places"] < read["places_found"]:
        places += f", joined from the {read['places_found']:,} that were found"
    lines = [what, usable, f"slots: {shares}", places]
    return [*lines, *repairs(read), *read["notes"]]


def similarity_tables(result: dict[str, Any]) -> list[Table]:
    """Return histograms and quantiles of the similarity of all pairs."""
    kinds = ("geographic", "semantic")
    block = "█" if can_draw_blocks() else "#"
    title = f"Share of the {result['pairs']:,} pairs of {result['users']:,} users, by similarity"
    histogram = Table(title=title, box=SIMPLE_HEAD)
    histogram.add_column("similarity", no_wrap=True)
    for kind in kinds:
        histogram.add_column(kind, no_wrap=True)
    tallest = max(max(result[kind]["histogram"]) for kind in kinds)
    edges = result["bin_edges"]
    for i, (low, high) in enumerate(pairwise(edges)):
        bars = [
            f"{block * round(BAR_WIDTH * share / tallest):<{BAR_WIDTH}} {share:6.1%}"
            for share in (result[kind]["histogram"][i] for kind in kinds)
        ]
        histogram.add_row(f"{low:.2f}-{high:.2f}", *bars)
    numbers = Table(title="Mean and quantiles", box=SIMPLE_HEAD)
    for column in ("", "mean", *(f"{q} %" for q in result["geographic"]["quantiles"])):
        numbers.add_column(column, justify="right" if column else "left")
    for kind in kinds:
        values = (result[kind]["mean"], *result[kind]["quantiles"].values())
        numbers.add_row(kind, *(f"{x:.3f}" for x in values))
    return [histogram, numbers]


def good_for(uses: Any) -> str:
    """Return what the fakes are good for, in one sentence."""
    by_word: dict[str, list[str]] = {}
    for use in uses.uses:
        by_word.setdefault(use.verdict, []).append((use.title[:1].lower() + use.title[1:]).replace(",", ""))
    phrases = {"good": "good for", "rough": "rough for", "not for this": "not for", "cannot say": "not known for"}
    parts = [f"{words} {', '.join(by_word[verdict])}" for verdict, words in phrases.items() if verdict in by_word]
    return f"these fakes are {'; '.join(parts)}."


def evaluation_tables(result: Any, *, as_filled: bool = False) -> list[Any]:
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


def on_copies(result: Any, *, everybody: bool) -> list[str]:
    """Return a warning of fakes that equal real days beyond chance, as A1 has it, to be shown first; or []."""
    if everybody:
        return ["all of these fakes are days of the real traces: nobody is protected."]
    copied = [f for f in result.findings if f.id == "A1" and f.learnt and f.details.get("how") == "whole day"]
    return [f"{f.words} These people are not protected." for f in copied]


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
    from elsewhere.evaluation.attacks.finding import NOT_RUN

    attacks_by_option: dict[str, list[str]] = {option: [] for option in GIVEN_BY.values()}
    for f in result.findings:
        if f.status == NOT_RUN:
            for each in [GIVEN_BY[name] for name in f.absent if name in GIVEN_BY] or [f.needs]:
                attacks_by_option.setdefault(each, []).append(f.id)
    return [f"not run without {what}: {', '.join(ids)}" for what, ids in attacks_by_option.items() if ids]


def lbs_tables(result: Any) -> list[Any]:
    """
    Return tables of the median error of tracking under each adversary, by generator and number of fakes, beside
    the ceiling.
    """
    sizes = result.settings
    opening = (
        f"{sizes['users']} users, {sizes['slots']} slots, {sizes['places']} places; error of tracking at exposed "
        f"slots, median over users (beta {sizes['beta']:g})"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("decoys", "m", "sent", *result.adversaries, "m/(m+1)"):
        table.add_column(name, no_wrap=True)
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for row in result.table():
        if row["attack"] == "tracking":
            entry = rows.setdefault((row["generator"], row["fakes"]), {"sent": row["diversity"], "top": row["ceiling"]})
            entry[row["adversary"]] = row["error"]
    for (generator, m), row in rows.items():
        errors = ("" if row.get(a) is None else f"{row[a]:.2f}" for a in result.adversaries)
        table.add_row(generator, str(m), f"{row['sent']:.1f}", *errors, f"{row['top']:.2f}")
    legend = (
        "m: fakes sent along; sent: different places per query; then what the adversary knows: how people move, the "
        "user, the classes, the pool; last, what m fakes reach that cannot be told from the truth (above it, the "
        "adversary takes a fake for more likely than the truth)"
    )
    return [opening, table, legend, *_over_days(result)]


def _over_days(result: Any) -> list[Any]:
    """Return tables of homes and main places found by watching for several days, by kind of decoys."""
    if not result.over_days:
        return []
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    days_watched = sorted({days for watch in result.over_days for days in watch.users})
    for name in ("decoys", "m", "found", *(f"{days} day{'s' * (days > 1)}" for days in days_watched), "guess"):
        table.add_column(name, no_wrap=True)
    for watch in result.over_days:
        for decoys, words in (("persona", "the same every day"), ("fresh", "fresh every day")):
            for place, by_days in watch.found[decoys].items():
                rates = ("" if (r := by_days.get(days)) is None else f"{r.value:.2f}" for days in days_watched)
                table.add_row(words, str(watch.n), place, *rates, f"{watch.guess:.2f}")
    opening = "share of homes and of main places that a service finds which sees every line of every day, by its watch"
    return [opening, table, *(watch.in_words() for watch in result.over_days)]


def reproduction_tables(result: "Reproduction") -> list[Any]:
    """Return the rows for people, then what disagrees, and why."""
    beside = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("in the paper", "what", "paper", "here", "95 %", ""):
        beside.add_column(name, no_wrap=name in ("", "95 %"))
    mark = {True: "agrees", False: "differs", None: ""}
    for row in result.rows:
        figures = (v if isinstance(v, str) else number(v) for v in (row.paper, row.ours))
        between = "" if row.interval is None else " .. ".join(number(v) for v in row.interval)
        beside.add_row(row.place, row.what, *figures, between, mark[row.agrees])
    differs = [f"differs: {row.what}: {row.why}" for row in result.rows if row.agrees is False]
    agree = sum(row.agrees is True for row in result.rows)
    others = sum(row.agrees is None for row in result.rows)
    last = f"{agree} rows agree, {len(differs)} differ, {others} are facts of the data, or the product's way"
    return [beside, *differs, last]
