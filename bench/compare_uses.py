"""
How the bounds of `evaluation/uses.py` were chosen: data of known defects, in simulated towns; then on real data.

`python bench/compare_uses.py towns` prints, for each use, the largest excess and way of data that keep it (fresh people
of the same town) and the smallest of data that have lost it (see `LOSES`); `real` prints the words for PF, StudentLife
and Foursquare, on which nothing was chosen. Rows of real people are never printed.
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import elsewhere as ew
from elsewhere.evaluation.attacks.inputs import free_walks, people_of
from elsewhere.evaluation.uses import (
    Days,
    Plan,
    Use,
    Uses,
    _at_random_places,
    _in_random_order,
    judge_uses,
)
from elsewhere.data.slots import is_weekend

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
FLOWS = ("flows_quarters", "flows_neighbourhoods", "flows_places")
ALL = ("places", "hours", "trips", "dwell", *FLOWS, "weekdays")
LOSES = {
    "fresh people": (),
    "uniform": ALL,
    "random places": ("places", "hours", "trips", *FLOWS),
    "random order": ("dwell", *FLOWS),
    "town relabelled": ("places", "hours", "trips", *FLOWS),
    "hours apart": ("dwell", *FLOWS),
    "random days": ("weekdays",),
}


def crude(real: ew.Traces, rng: np.random.Generator) -> Iterator[tuple[str, ew.Traces]]:
    """Data that have lost some uses by the way they are made."""
    r, visited = real.r, np.unique(real.r[real.r >= 0])
    days = Days(r, None if real.dates is None else is_weekend(real.dates), Plan.of(real))
    yield "uniform", real.with_places(rng.choice(visited, size=r.shape))
    yield "random places", real.with_places(_at_random_places(days, rng).r)
    yield "random order", real.with_places(_in_random_order(days, rng).r)
    new = np.arange(real.R)
    new[visited] = rng.permutation(visited)
    yield "town relabelled", real.with_places(np.where(r >= 0, new[r], -1))
    if (r >= 0).all():
        yield "hours apart", real.with_places(rng.permuted(r, axis=0))
        yield "walk", real.with_places(free_walks([people_of(real)], len(r), R=real.R, m_min=1, rng=rng))
    if days.weekend is not None and days.weekend.any():
        yield (
            "random days",
            ew.Traces(
                r, real.locations, dates=rng.permutation(real.dates), step_minutes=real.step_minutes, start=real.start
            ),
        )
    for share in (0.1, 0.2, 0.3, 0.5):
        kept = rng.random(len(r)) >= share
        yield (
            f"{share:.0%} at random places",
            real.with_places(np.where(kept[:, None], r, _at_random_places(days, rng).r)),
        )


def line(name: str, found: Uses) -> None:
    """One data set: use by use, excess, way to chance, and word."""
    print(f"{name}")
    for u in found.uses:
        if u.fakes is None:
            print(f"    {u.id:22} {u.verdict:12}  {u.words}")
            continue
        excess, way = over(u)
        print(
            f"    {u.id:22} {u.verdict:12} fakes {u.fakes:.3f} halves {u.halves:.3f} ± {u.spread:.3f} "
            f"same {u.same:.3f} chance {u.chance:.3f} excess {excess:+.3f} way {way:+.2f}"
        )


def over(u: Use) -> tuple[float, float]:
    """Excess over real people, and as a share of the way to chance."""
    real = min(u.halves, (u.same + u.chance) / 2)
    return u.fakes - real, (u.fakes - real) / (u.chance - real)


def towns() -> None:
    """Keep and lose, over towns of several sizes."""
    kept: dict[str, list[tuple[float, float, str]]] = {use: [] for use in ALL}
    lost: dict[str, list[tuple[float, float, str]]] = {use: [] for use in ALL}
    mixed: dict[str, dict[str, list[str]]] = {}
    sizes = [
        (n, places, days, s)
        for n, places, days in ((100, 100, 1), (400, 150, 1), (1000, 400, 1), (120, 150, 7))
        for s in range(5)
    ]
    for users, places, days, seed in sizes:
        both = ew.simulate_town(users=2 * users, days=days, locations=places, rng=np.random.default_rng(seed)).traces
        real, fresh = both.of_users(np.arange(users)), both.of_users(np.arange(users, 2 * users))
        rng = np.random.default_rng([seed, users])
        for name, fakes in [("fresh people", fresh), *crude(real, rng)]:
            for u in judge_uses(real, fakes, rng=rng).uses:
                if u.fakes is None or u.verdict == "cannot say":
                    continue
                excess, way = over(u)
                if name in LOSES and (u.id in LOSES[name] or not LOSES[name]):
                    (lost if LOSES[name] else kept)[u.id].append((excess, way, u.verdict))
                elif name not in LOSES:
                    mixed.setdefault(name, {}).setdefault(u.id, []).append(u.verdict)
    print("use: kept, largest excess / way, words; lost, least excess / way, words")
    for use in ALL:
        for side, rows, ends in (("kept", kept[use], max), ("lost", lost[use], min)):
            if rows:
                words = {w: sum(x[2] == w for x in rows) for w in ("good", "rough", "not for this")}
                excess, way = (ends(x[i] for x in rows) for i in (0, 1))
                print(f"{use:22} {side} {len(rows):3}: excess {excess:+.3f} way {way:+.2f} {words}")
    for name, by_use in mixed.items():
        print(name)
        for use, words in by_use.items():
            print(f"    {use:22} { {w: words.count(w) for w in ('good', 'rough', 'not for this')} }")


def pf() -> tuple[ew.Traces, dict[str, np.ndarray]]:
    """PF Tokyo: 500 seeds, and the fakes of the paper's own tool; people 500 .. 999 are fresh."""
    import pandas as pd

    folder = DATA / "pf_tokyo"
    table = pd.read_csv(folder / "pf_tokyo_traces.csv.gz", usecols=["uid", "slot", "loc"]).sort_values(["uid", "slot"])
    r = table["loc"].to_numpy().reshape(1000, 30)
    places = pd.read_csv(folder / "pf_tokyo_locations.csv")
    where = ew.Locations(lat=places["lat"].to_numpy(), lon=places["lon"].to_numpy())
    made = pd.read_parquet(folder / "sglt_reference_outputs.parquet")
    fakes: dict[str, np.ndarray] = {"fresh people": r[500:]}
    for kappa in (50, 200):
        one = made[(made["clusters"] == kappa) & np.isclose(made["par_l"], 1.0)]
        one = one.sort_values(["user", "trace_no", "time_period"], kind="stable")
        fakes[f"SGLT, {kappa} classes"] = one["poi_index"].to_numpy().astype(np.int64).reshape(5000, 30)
    return ew.Traces(r[:500], where, start="09:00"), fakes


def real() -> None:
    """The words on real data: fresh people where there are enough, and crude data."""
    rng = np.random.default_rng(1)
    people, fakes = pf()
    for name, made in [*fakes.items(), *crude(people, rng)]:
        line(f"PF, {name}", judge_uses(people, made, rng=rng))
    for name, path, given in (
        ("StudentLife", "studentlife/studentlife_72slots.parquet", {}),
        ("Foursquare", "foursquare_nyc/fsq_nyc_checkins.csv.gz", {"max_gap": 720}),
    ):
        whole = ew.read_traces(DATA / path, **given)
        whole = whole.select(np.all(whole.r >= 0, axis=1))
        order = np.random.default_rng(2).permutation(whole.U)
        half = whole.of_users(np.sort(order[: whole.U // 2]))
        other = whole.of_users(np.sort(order[whole.U // 2 :]))
        print(name, half, other)
        for what, made in [("fresh people", other), *crude(half, rng)]:
            line(f"{name}, {what}", judge_uses(half, made, rng=rng))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"towns": towns, "real": real}[sys.argv[1]]()
