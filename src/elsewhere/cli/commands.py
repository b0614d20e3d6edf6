"""
The commands: each takes its options as checked settings, calls the library, and says what came out.

Heavy imports are inside the functions; errors are left to the door (`cli/__init__.py`).
"""

import csv
import json
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markdown import Markdown

from elsewhere import settings
from elsewhere.cli import output
from elsewhere.cli.output import progress, say
from elsewhere.errors import InvalidTraces
from elsewhere.files import check_folder, whole_folders, write_folder
from elsewhere.settings import Reading

if TYPE_CHECKING:
    import numpy as np

    from elsewhere.data.visits import Visits

ELSEWHERE = 0.2  # share of the fakes' records off the map of the real people, above which no verdict is worth a thing
STUDENTLIFE = "paperlike_30users_2days_72slots.csv.gz"  # the paper's shape, in a folder of StudentLife


def rng_of(seed: int | None) -> Any:
    """Return the generator that `--seed` names; None, which asks the operating system for entropy, without it."""
    import numpy as np

    return None if seed is None else np.random.default_rng(seed)


def read(source: Path, reading: Reading) -> "Visits":
    """Read real people."""
    from elsewhere.data.read import read_visits
    from elsewhere.run.synthesize import keywords_of

    with progress("reading"):
        return read_visits(source, **keywords_of(reading))


# ---- make fakes


def demo(given: settings.Demo) -> None:
    """
    Show what it does, without any data: simulate a town, make fakes of its people, judge and attack the fakes.

    No input and no network. It writes what `synthesize` writes, into DIR (out/demo) and DIR-private.

    Example: elsewhere demo -o out/demo
    """
    import numpy as np

    from elsewhere.data.town import simulate_town
    from elsewhere.data.write import write_visits

    out = given.out or Path("out/demo")
    with progress("simulating a town"):
        town = simulate_town(users=given.users, days=given.days, locations=300, rng=np.random.default_rng(given.seed))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "town.csv"
        write_visits(town.visits, path)
        whole = settings.Synthesize(source=path, out=out, force=given.force, as_json=given.as_json)
        synthesize(whole, settings.MethodOptions(seed=given.seed), settings.Job(laboratory=True), Reading())


def plan(given: settings.Plan, reading: Reading) -> None:
    """
    Say what the privacy test and a certificate would promise the people of a file, and how many people each needs.

    Nothing of the input is used but the number of people. The plan is for you alone, and costs nobody any privacy;
    with --noisy people are counted with noise, a release of eps .1, and others may see it.

    Example: elsewhere plan traces.csv --eps 2
    """
    from elsewhere.run.plan import COUNT_EPS, FROM_PEOPLE, count_with_noise
    from elsewhere.run.plan import plan as planned

    if given.noisy:
        how, private = f"counted with noise of eps {COUNT_EPS:g}", []
        people, unit = count_with_noise(given.source, reading, given.delta), "person"
    else:
        how, private = "private: counted without noise", list(FROM_PEOPLE)
        visits = read(given.source, reading)
        people, unit = visits.U, visits.form.unit
    result = planned(people, eps=given.eps, delta=given.delta, unit=unit)
    facts = {"command": "plan", **result.to_dict(), "private_fields": private}
    say(facts, [f"{people:,} {result.units} ({how})", *result.words], as_json=given.as_json)


def synthesize(given: settings.Synthesize, method: settings.MethodOptions, job: settings.Job, reading: Reading) -> None:
    """
    Do the whole job: read a file of real traces, make fakes, test and attack them, and write fakes and reports.

    DIR is for publishing: fakes.csv and fakes.parquet in the columns of the input, the pool (pool.parquet,
    places.parquet), manifest.json and report.html, which shows aggregates and fakes only. What only you may see goes
    into DIR-private: links.csv (who was made of whom), your own report.html and judgement.json. Both folders appear
    when they are complete. If the run is stopped, the same command resumes it: what is done is kept in DIR-unfinished,
    which is private.

    Example: elsewhere synthesize traces.csv -o out/fakes
    """
    from elsewhere.run.synthesize import STAGES
    from elsewhere.run.synthesize import synthesize as whole_job
    from elsewhere.scale import Cluster

    with Cluster(given.dask) if given.dask else nullcontext() as executor, progress(*STAGES) as told:
        result = whole_job(
            given.source,
            given.out,
            method=method.chosen(),
            force=given.force,
            executor=executor,
            progress=told,
            rng=rng_of(method.seed),
            **dict(job),
            **dict(reading),
        )
    folders = {"out": str(result.out), "private": str(result.private)}
    say({"command": "synthesize", **folders, **result.to_dict()}, output.summary(result), as_json=given.as_json)


def prepare(given: settings.Input, reading: Reading) -> None:
    """
    Read a file, and show how it was understood: visits.parquet and prepare.html.

    Everything in DIR is about real people and stays with their owner.

    Example: elsewhere prepare traces.csv -o out/prepared
    """
    check_folder(given.out, force=given.force)
    from elsewhere.data.visits import Form
    from elsewhere.data.write import write_visits
    from elsewhere.reports.page import preparation_page, write

    visits = read(given.source, reading)
    with progress("writing"), whole_folders((given.out,), force=given.force) as (new,):
        write_visits(visits, new / "visits.parquet", like=Form("visits"))
        write(new / "prepare.html", preparation_page(visits))
    facts = {} if visits.preparation is None else visits.preparation.to_dict()
    lines = [*output.reading(visits), f"wrote visits.parquet and prepare.html into {given.out}: private"]
    say({"command": "prepare", **facts}, lines, as_json=given.as_json)


# ---- judge fakes


def _sides(given: settings.Evaluate, reading: Reading) -> "tuple[Visits, Visits | None, Visits, np.ndarray | None]":
    """Return seeds, strangers, fakes and the seed of each fake, all on one map."""
    import numpy as np

    from elsewhere.data.places import OFF_MAP, OTHER
    from elsewhere.data.read import read_visits
    from elsewhere.data.visits import share_map
    from elsewhere.pool import Pool
    from elsewhere.run.synthesize import keywords_of

    real = read(given.real, reading)
    keywords = keywords_of(reading) | {"locations": real.locations}
    pooled = given.fakes.is_dir() and (given.fakes / "manifest.json").is_file()
    fakes = Pool.load(given.fakes).visits if pooled else read_visits(given.fakes, **keywords)
    told, lost = fakes.preparation, 0 if fakes.preparation is None else fakes.preparation.dropped.get(OFF_MAP, 0)
    if told is not None and lost > ELSEWHERE * told.rows:
        raise InvalidTraces(
            f"{lost:,} of {told.rows:,} records of the fakes are at no place of the real people: give `locations`, the "
            "table of the places of both.",
            code="E_MISMATCH",
            parameter="fakes",
        )
    holdout = None if given.holdout is None else read_visits(given.holdout, **keywords)
    # what a map without positions calls "other" is no place: who is there shares nothing with anybody
    sides = share_map(real, fakes, *([] if holdout is None else [holdout]))
    known = np.array([str(name).split(":")[0] != OTHER for name in sides[0].locations.ids or range(sides[0].R)])
    real, fakes, *more = (side.select(known[side.place]) for side in sides)
    holdout = more[0] if more else None
    if given.links is None:
        return real, holdout, fakes, None
    number = {str(label): i for i, label in enumerate(real.users)}
    try:
        with given.links.open(newline="", encoding="utf-8") as file:
            seed_of = {row["fake"]: number[row["seed"]] for row in csv.DictReader(file)}
        seed = np.array([seed_of[str(label)] for label in fakes.users])
    except OSError:
        raise InvalidTraces("`links` cannot be read.", code="E_OPEN", parameter="links") from None
    except (KeyError, UnicodeDecodeError, csv.Error):
        raise InvalidTraces(
            "`links` must have the columns fake and seed, with every fake and people of the real file.",
            code="E_LINKS",
            parameter="links",
        ) from None
    if holdout is None:
        seeds = np.unique(seed)
        others = np.setdiff1d(np.arange(real.U), seeds)
        return real.of_users(seeds), real.of_users(others) if len(others) else None, fakes, np.searchsorted(seeds, seed)
    return real, holdout, fakes, seed


def evaluate(given: settings.Evaluate, reading: Reading) -> None:
    """
    Measure what fakes of any tool are good for, beside what other real people are.

    Fakes are compared with people of whom no fake was made: those of --holdout, or those of --real whom --links does
    not name. With -o: evaluate.json.

    Example: elsewhere evaluate --real real.csv --fakes out/fakes --links out/fakes-private/links.csv
    """
    from elsewhere.evaluation.usefulness import judge_usefulness

    rng = begin(given)
    seeds, strangers, fakes, _ = _sides(given, reading)
    notes = output.left_out(fakes)
    if strangers is None:  # nobody says of whom fakes were made: halves of the people stand for seeds and strangers
        notes.append(
            "Nobody was set aside: fakes are compared with people of whom they may be made, which flatters them; give "
            "--holdout, or --links of fakes to people."
        )
        order = rng.permutation(seeds.U)
        seeds, strangers = seeds.of_users(order[: seeds.U // 2]), seeds.of_users(order[seeds.U // 2 :])
    with progress("comparing"):
        result = judge_usefulness(seeds, strangers, fakes, rng=rng)
    record = {"command": "evaluate", **result.to_dict(), "notes": notes}
    finish(given, record, [*notes, *output.usefulness(result)])


def audit(given: settings.Audit, reading: Reading) -> None:
    """
    Attack fakes of any tool as an adversary would, and compare what each attack finds with what it finds of strangers.

    --links says who was made of whom; without it attacks find links themselves. --holdout are people who never met the
    generator. With -o: audit.json.

    Example: elsewhere audit --real real.csv --fakes fakes.csv --holdout others.csv
    """
    from elsewhere.evaluation.audit import audit as run

    rng = begin(given)
    seeds, strangers, fakes, seed_index = _sides(given, reading)
    attacks = "all" if given.attacks == "all" else given.attacks.split(",")
    with progress("attacking") as told:
        result = run(seeds, strangers, fakes, seed_index, attacks=attacks, progress=told, rng=rng)
    notes = output.left_out(fakes)
    record = {"command": "audit", "attacks": result.to_dict(), "flagged": list(result.flagged), "notes": notes}
    finish(given, record, [*notes, *output.attacks(result)])


def lbs(given: settings.Lbs, reading: Reading) -> None:
    """
    Measure how well a person hides among decoys from a service: with the paper's fakes, and with simple generators.

    The first day of each user teaches, the second asks. With -o: lbs.json and lbs.png.

    Example: elsewhere lbs --real two_days.csv -o out/lbs
    """
    rng = begin(given)
    from elsewhere.evaluation.lbs import judge_service, two_days
    from elsewhere.run.generate import generate_fakes

    if given.real is None:
        from elsewhere.data.town import simulate_town

        with progress("simulating a town"):
            days = simulate_town(users=60, days=2, locations=150, rng=rng).traces
    else:
        days = read(given.real, reading).traces()
    train, truth = two_days(days)
    with progress("making fakes"):
        fakes = generate_fakes(train, method="paper", per_seed=given.per_seed, rng=rng)
    assert fakes.learnt is not None  # noqa: S101 - of the paper's method
    with progress("attacking") as told:
        result = judge_service(
            train,
            truth,
            fakes.r,
            train.user[fakes.seed],
            classes=fakes.learnt.classes,
            n_fakes=tuple(int(word) for word in given.n_fakes.split(",")),
            beta=given.beta,
            progress=told,
            rng=rng,
        )
    record = {"command": "lbs", **result.to_dict()}

    def picture() -> dict[str, bytes]:
        from elsewhere.reports.charts import location_privacy, png

        return {"lbs.png": png(location_privacy(record))}

    finish(given, record, output.lbs_tables(result), picture)


def serve(given: settings.Serve) -> None:
    """
    Serve a pool of fakes to devices, which fetch whole lives and send them along as decoys (see `elsewhere.lbs`).

    The owner's token is printed once, at the first start; with it, devices are let in by POST /v1/devices. What is
    given to one device is given to no other. Nothing is logged. Ctrl-C stops it.

    Example: elsewhere serve out/demo
    """
    from elsewhere.serve.run import serve as run

    def started(service: dict[str, Any]) -> None:
        """Say where the service is, and the owner's token, the first time."""
        lines = ["serving {lives} lives at {url}, {free} of them given to nobody yet, {bucket} in a bucket"]
        lines += ["this is a laboratory pool: for trying things out, not for people"] if service["laboratory"] else []
        lines += ["owner's token (shown only now, keep it): {owner_token}"] if service["owner_token"] else []
        say(service, [line.format(**service) for line in lines], as_json=given.as_json)

    run(given, started)


# ---- the paper


def reproduce(given: settings.Reproduce, reading: Reading) -> None:
    """
    Repeat the paper's evaluation on other data: every table and figure, our number beside the paper's, and how far
    they differ.

    The first day of each user teaches, the second tests, as in the paper. With -o: reproduce.md, reproduce.json and the
    figures. They show where people go: keep those of real people to yourself.

    Example: elsewhere reproduce two_days.csv -o out/reproduce
    """
    rng, data = begin(given), given.data
    from elsewhere.evaluation.reproduce import reproduce as run

    if data is None:
        from elsewhere.data.town import simulate_town

        with progress("simulating a town"):
            traces = simulate_town(users=given.users, days=2, locations=400, rng=rng).traces
    else:
        source = data / STUDENTLIFE if (data / STUDENTLIFE).is_file() else data
        traces = read(source, reading.changed(places="merge") if reading.places == "auto" else reading).traces()
    with progress("reproducing") as told:
        result = run(traces, per_seed=given.per_seed, kappa=given.kappa, progress=told, rng=rng)
    record = {"command": "reproduce", **result.to_dict()}

    def pictures() -> dict[str, bytes]:
        from elsewhere.reports.charts import png
        from elsewhere.reports.paper_figures import paper_figures

        files = {f"{name}.png": png(figure) for name, figure in paper_figures(result).items()}
        shown = "".join(f"\n![{name.removesuffix('.png')}]({name})\n" for name in files)
        return {**files, "reproduce.md": (result.markdown() + shown).encode()}

    finish(given, record, [Markdown(result.markdown())], pictures)


def begin(given: settings.Judging) -> Any:
    """Refuse, before any work, an output that could not be written; return the generator of the judge."""
    if given.out is not None:
        check_folder(given.out, force=given.force)
    return rng_of(given.seed)


def finish(
    given: settings.Judging,
    record: dict[str, Any],
    renderables: list[Any],
    more: Callable[[], dict[str, bytes]] = dict,
) -> None:
    """Write what a judge has found as COMMAND.json, and `more` files; say it."""
    if given.out is not None:
        found = (json.dumps(record, indent=1, allow_nan=False) + "\n").encode()
        files = {**more(), f"{record['command']}.json": found}
        write_folder(given.out, files, force=given.force)
        renderables = [*renderables, f"wrote {', '.join(files)} into {given.out}"]
    say(record, renderables, as_json=given.as_json)


GROUPS: dict[str, tuple[Callable[..., None], ...]] = {
    "Make fakes": (demo, synthesize),
    "Before": (prepare, plan),
    "Judge fakes of any tool": (evaluate, audit),
    "Decoys among queries to a service": (lbs, serve),
    "The paper": (reproduce,),
}
