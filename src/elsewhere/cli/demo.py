"""Command `demo`: the whole job on a simulated town; no input, no network."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from elsewhere.cli.options import Force, Json, Out, Report, Seed
from elsewhere.cli.output import bar, closing, say, stage, tables
from elsewhere.cli.reproduce import check_out, compare
from elsewhere.errors import require_whole
from elsewhere.files import whole_folders, write_files, write_folder
from elsewhere.run.finish import earlier_results, judgement_facts, private_folder, summary, write_links, write_reports

FEWEST = 50  # people in a town whose places enough of them share


def demo(
    users: Annotated[int, typer.Option("--users", metavar="N", help="People who live in the town.")] = 2000,
    seed: Seed = 2,
    out: Out = None,
    report: Report = True,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """
    Show what it does, without any data: simulate a town, make fakes of its people, and attack the fakes.

    No input and no network. With -o: histograms.png, similarity.json, and in DIR and DIR-private what `synthesize`
    writes, report.html among it.

    Example: elsewhere demo -o out/demo
    """
    check_out(out, force)
    mine = None if out is None or users < FEWEST else private_folder(out, None, force=force)
    require_whole("--users", users, 2, 5_000)
    require_whole("--seed", seed, 0)
    import numpy as np

    from elsewhere.evaluation.judge import judge_run
    from elsewhere.paper.profiles import fit_profiles
    from elsewhere.run.generate import generate_fakes
    from elsewhere.run.publish import publish_with_rows, write_fakes, write_pool
    from elsewhere.traces.town import simulate_town

    with stage("simulating a town"):
        traces = simulate_town(users=users, locations=150, rng=np.random.default_rng(seed)).traces
    provenance: dict[str, Any] = {"command": "demo", "reproducible": True, "seed": seed}
    result, lines, pictures = compare(traces, fit_profiles(traces), provenance, out)
    if users < FEWEST:
        if out is not None:
            write_folder(out, pictures, force=force)
        note = f"no fakes: fewer than {FEWEST} people do not share enough places"
        say({**result, "fakes": None}, [*lines, note], as_json=as_json)
        return
    with bar("making fakes") as progress:
        fakes = generate_fakes(traces, rng=np.random.default_rng([seed, 1]), workers=2, progress=progress)
    figures = summary(fakes, traces)
    lines += tables(figures)
    if out is not None:
        pool, rows = publish_with_rows(fakes, laboratory=True, rng=np.random.default_rng([seed, 2]))
        pool = replace(pool, provenance={**pool.provenance, "simulated": True})
        assert mine is not None  # noqa: S101 - there is a folder for fakes
        with whole_folders((mine, out), force=force, outdated=earlier_results) as (private, new):
            write_files(new, pictures)
            files, links = write_fakes(pool, new, fakes.frame, []), write_links(traces, fakes, pool, rows, private)
            if report:
                judge = np.random.default_rng([seed, 3])
                with bar("attacking the fakes") as progress:
                    judgement = judge_run(traces, fakes, pool, rows, progress=progress, rng=judge)
                with stage("writing the reports"):
                    public_files, more = write_reports(judgement, traces, fakes, pool, new, private)
                files, links = files + public_files, links + more
                lines += closing(judgement)
                figures |= judgement_facts(judgement)
            files = write_pool(pool, new, files)
        lines.append(f"wrote {', '.join(links)} into {mine}: on real data, for you alone")
        lines.append(f"wrote {', '.join(files)} into {out}: a laboratory pool, of simulated people")
    say({**result, "fakes": figures}, lines, as_json=as_json)
