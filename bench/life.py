"""
Measure the generator of lives: every row of its table, beside real people and a pooled Markov chain, in one run.

    python bench/life.py town [--seed 5] [--days 28]      told, routine, homes, place x hour, jobs, time; rivals too
    python bench/life.py membership [--seed 77] [--releases 24]
    python bench/life.py studentlife | pf | nyc
    python bench/life.py report                           the towns of docs/results.md

Design: towns with seeds below 100, people 0 mod 2 of StudentLife. Report: seeds of 100 and above, the others, PF, NYC.
"""

import argparse
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from membership import attack
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import elsewhere as ew
from elsewhere.data.visits import Locations, Visits
from elsewhere.synthesis.generate_life import generate_lives

warnings.simplefilter("ignore")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
L, STEP = 72, 1_200
NIGHT, OFFICE = slice(0, 18), slice(27, 51)


# ---- slots and visits


def to_visits(r: Any, user: Any, day: Any, locations: Any, first: int = 0) -> Visits:
    """Return filled slots (N, L) of days as visits; `first` is the second of the day of slot 0."""
    N, slots = r.shape
    flat, who = r.ravel().astype(np.int64), np.repeat(user, slots)
    t = np.repeat(day, slots) * 86_400 + first + np.tile(np.arange(slots) * STEP, N)
    new = np.r_[True, (flat[1:] != flat[:-1]) | (who[1:] != who[:-1]) | (t[1:] != t[:-1] + STEP)]
    a = np.flatnonzero(new)
    b = np.r_[a[1:], len(flat)] - 1
    keep = flat[a] >= 0
    return Visits(who[a][keep], t[a][keep], t[b][keep] + STEP, flat[a][keep], locations)


def to_slots(visits: Visits, day0: int, days: int, first: int = 0, slots: int = L) -> Any:
    """Return (U, days, slots) places, -1 where nobody was seen."""
    out = np.full((visits.U, days, slots), -1)
    for u, s, e, p in zip(visits.user, visits.start, visits.end, visits.place, strict=True):
        for d in range(int(s // 86_400), int((e - 1) // 86_400) + 1):
            if 0 <= d - day0 < days:
                a, b = ((x - d * 86_400 - first) // STEP for x in (s, e))
                out[u, d - day0, max(a, 0) : max(min(b, slots), 0)] = p
    return out


# ---- generators: each takes members' lives (n, D, L) and returns lives and who each was made from


def life(lives: Any, xy: Any, day0: int, rng: Any) -> tuple[Any, Any]:
    """Return the lives of the new generator."""
    n, D, _ = lives.shape
    day = np.tile(day0 + np.arange(D), n)
    visits = to_visits(lives.reshape(n * D, -1), np.repeat(np.arange(n), D), day, Locations(xy=xy))
    order = rng.permutation(n)
    seeds, alternates = np.sort(order[: round(0.7 * n)]), np.sort(order[round(0.7 * n) :])
    entropy = int(rng.integers(2**63))
    fakes = generate_lives(visits.of_users(seeds), alternates=visits.of_users(alternates), entropy=entropy)
    print(f"    {fakes.tally} {fakes.notes}", flush=True)
    made = to_slots(fakes.visits, day0, D)
    whole = (made >= 0).all((1, 2))
    return made[whole], seeds[fakes.seed_of_life][whole]


def markov(lives: Any, xy: Any, day0: int, rng: Any) -> tuple[Any, Any]:
    """Return lives of a pooled Markov chain over places, by hour."""
    n, D, slots = lives.shape
    R, flat = len(xy), lives.reshape(n, -1)
    out = np.empty_like(flat)
    out[:, 0] = rng.permutation(flat[:, 0])
    for t in range(1, flat.shape[1]):
        hour = (np.arange(D * slots) % slots) // 3 == (t % slots) // 3
        if t % 3 == 1 or t == 1:
            columns = np.flatnonzero(hour[1:]) + 1
            a, b = flat[:, columns - 1].ravel(), flat[:, columns].ravel()
            order = np.argsort(a, kind="stable")
            a, b = a[order], b[order]
            first = np.searchsorted(a, np.arange(R + 1))
        lo, hi = first[out[:, t - 1]], first[out[:, t - 1] + 1]
        pick = lo + (rng.random(n) * (hi - lo)).astype(int)
        out[:, t] = np.where(hi > lo, b[np.minimum(pick, len(b) - 1)], out[:, t - 1])
    return out.reshape(n, D, slots), np.arange(n)


GENERATORS = {"life": life, "markov": markov}


# ---- measures


def _mode(x: Any) -> int:
    v, c = np.unique(x, return_counts=True)
    return int(v[c.argmax()])


def anchors(r: Any, weekend: Any) -> tuple[int, int]:
    """Return home and main place of a life (D, L)."""
    home = _mode(r[:, NIGHT])
    office = r[~weekend][:, OFFICE] if (~weekend).any() else r[:, OFFICE]
    for x in (office[office != home], r[r != home]):
        if len(x):
            return home, _mode(x)
    return home, home


def describe(r: Any, weekend: Any, xy: Any) -> list[float]:
    """Describe a life (D, L) by 39 numbers."""
    D = len(r)
    home, main = anchors(r, weekend)
    workday, free = r[~weekend], r[weekend]
    sets = [set(x.tolist()) for x in r]
    jaccard = [len(a & b) / len(a | b) for a, b in pairwise(sets)] or [np.nan]
    seen: set[int] = set()
    growth = [len(seen := seen | s) for s in sets]
    moves = (r[:, 1:] != r[:, :-1]).sum(1)
    places = np.array([len(s) for s in sets])
    v, c = np.unique(r, return_counts=True)
    q = np.sort(c / c.sum())[::-1]
    on = {x: sum(x in s for s in sets) for x in v.tolist()}
    points = xy[r.ravel()]
    step = np.hypot(*(xy[r[:, :-1]] - xy[r[:, 1:]]).reshape(-1, 2).T)
    out = [
        (r[:, NIGHT] == home).mean(), ((r[:, NIGHT] == home).mean(1) > 0.5).mean(),
        (workday[:, OFFICE] == main).mean(), (workday == main).any(1).mean(),
        (free == main).any(1).mean() if len(free) else np.nan, np.mean(jaccard), np.std(jaccard),
        *(growth[k - 1] if D >= k else np.nan for k in (1, 3, 7, 14, 28)),
        moves[~weekend].mean(), moves[weekend].mean() if len(free) else np.nan, moves.std(), places.mean(),
        places.std(), (moves == 0).mean(), -(q * np.log2(q)).sum(), q[0], q[1] if len(q) > 1 else 0.0, q[2:6].sum(),
        np.mean([n == 1 for n in on.values()]), np.sqrt(((points - points.mean(0)) ** 2).sum(1).mean()),
        np.sqrt(((points - xy[home]) ** 2).sum(1)).max(),
    ]  # fmt: skip
    for part in (slice(21, 30), slice(30, 48), slice(48, 60), slice(60, 72)):
        out += [(side[:, part] == home).mean() if len(side) else np.nan for side in (workday, free)]
    out += [(r[:, 0] == r[:, -1]).mean(), (r[1:, 0] != r[:-1, -1]).mean() if D > 1 else np.nan]
    return [*out, step[step > 0].mean() if (step > 0).any() else 0.0]


NAMES = (
    "nights home", "nights mostly", "main 9-17", "main days", "main weekend", "jaccard", "jaccard sd", "places 1", "3",
    "7", "14", "28", "moves", "moves we", "moves sd", "places/day", "places sd", "still", "entropy", "top",
    "second", "3-6", "once", "gyration", "farthest", "home 7", "we", "home 10", "we10", "home 16", "we16", "home 20",
    "we20", "circle", "midnight", "step",
)  # fmt: skip


def told(a: Any, b: Any) -> float:
    """Return the AUC of a judge that tells rows of two tables apart, by cross-validation."""
    X, y, out = np.nan_to_num(np.vstack([a, b])), np.r_[np.zeros(len(a)), np.ones(len(b))], []
    for s in (0, 1):
        judge = HistGradientBoostingClassifier(
            max_depth=3, max_iter=100, learning_rate=0.08, min_samples_leaf=8, random_state=s
        )
        folds = StratifiedKFold(5, shuffle=True, random_state=s)
        out.append(roc_auc_score(y, cross_val_predict(judge, X, y, cv=folds, method="predict_proba")[:, 1]))
    return float(np.mean(out))


def routine(lives: Any, truth: Any, weekend: Any) -> Any:
    """Return (n, ...) shares of time by true class, slot and kind of day, each kind of day summing to 1."""
    cls = truth[lives]
    parts = []
    for days in (~weekend, weekend):
        if days.any():
            parts += [np.stack([(cls[:, days] == c).mean(1) for c in range(truth.max() + 1)], 2) * days.mean() / L]
    return np.concatenate([p.reshape(len(lives), -1) for p in parts], 1)


def agreement(a: Any, b: Any) -> Any:
    """Return 1 - total variation of rows."""
    return 1 - np.abs(a - b).sum(-1) / 2


def has_job(r: Any, weekend: Any) -> bool:
    """Return whether somebody spends a quarter of the weekday hours from nine to five at one place beside home."""
    home, main = anchors(r, weekend)
    return bool(main != home and (r[~weekend][:, OFFICE] == main).mean() > 0.25)


def place_hour(lives: Any, R: int) -> Any:
    """Return the distribution over places and hours."""
    table = np.zeros((R, 24))
    hour = np.broadcast_to(np.arange(L) // 3, lives.shape)
    np.add.at(table, (lives.ravel(), hour.ravel()), 1)
    return table / table.sum()


def flows(lives: Any, xy: Any) -> Any:
    """Return the distribution of moves between cells of a kilometre."""
    cell = np.floor(xy).astype(int) - np.floor(xy.min(0)).astype(int)
    number = cell[:, 0] * (cell[:, 1].max() + 1) + cell[:, 1]
    a, b = number[lives[:, :, :-1]], number[lives[:, :, 1:]]
    n = int(number.max()) + 1
    table = np.bincount((a * n + b)[a != b], minlength=n * n)
    return table / max(table.sum(), 1)


def measure_lives(name: str, fakes: Any, seed: Any, teach: Any, held: Any, truth: Any, xy: Any, weekend: Any) -> dict:
    """Return the rows of the table for one set of lives."""
    rng = np.random.default_rng(0)
    table = np.array([describe(r, weekend, xy) for r in fakes])
    real = np.array([describe(r, weekend, xy) for r in held])
    mine, theirs = routine(fakes, truth, weekend), routine(teach, truth, weekend)
    others = rng.integers(0, len(teach), len(fakes))
    lived = {anchors(r, weekend)[0] for r in np.concatenate([teach, held])}
    homes = [anchors(r, weekend)[0] for r in fakes]
    jobs = np.array([has_job(r, weekend) for r in teach])
    made = np.array([has_job(r, weekend) for r in fakes])
    without = ~jobs[seed]
    out = {
        "lives": len(fakes),
        "told": told(real, table),
        "routine own": agreement(mine, theirs[seed]).mean(),
        "routine other": agreement(mine, theirs[others]).mean(),
        "named by routine": np.mean([agreement(m, theirs).argmax() == s for m, s in zip(mine, seed, strict=True)]),
        "nobody's home": np.mean([h not in lived for h in homes]),
        "place x hour": np.abs(place_hour(fakes, len(xy)) - place_hour(held, len(xy))).sum() / 2,
        "flows 1 km": np.abs(flows(fakes, xy) - flows(held, xy)).sum() / 2,
        "jobs without": made[without].mean() if without.any() else np.nan,
        "jobs with": made[~without].mean(),
    }
    y, both = np.r_[np.zeros(len(real)), np.ones(len(table))], np.nan_to_num(np.vstack([real, table]))
    one = [abs(roc_auc_score(y, both[:, j]) - 0.5) + 0.5 for j in range(table.shape[1])]
    worst = np.argsort(one)[::-1][:6]
    out["worst"] = ", ".join(
        f"{NAMES[j]} {one[j]:.2f} ({np.nanmean(table[:, j]):.2f}/{np.nanmean(real[:, j]):.2f})" for j in worst
    )
    return out


def show(rows: dict[str, dict]) -> None:
    """Print results side by side."""
    keys = [k for k in next(iter(rows.values())) if k != "worst"]
    print(f"{'':>22}" + "".join(f"{name:>12}" for name in rows))
    for key in keys:
        print(f"{key:>22}" + "".join(f"{row.get(key, np.nan):>12.3f}" for row in rows.values()))
    for name, row in rows.items():
        print(f"  {name}: {row.get('worst', '')}")


def town(seed: int, days: int, people: int, which: list[str]) -> None:
    """Measure on a town, half of whose people teach and half are held out."""
    T = ew.simulate_town(users=people, days=days, locations=400, rng=np.random.default_rng(seed))
    r = np.asarray(T.traces.r).astype(int).reshape(people, days, L)
    day0 = int(np.datetime64(T.traces.dates[0], "D").astype(int))
    weekend = (day0 + np.arange(days) + 3) % 7 >= 5
    xy, truth = T.traces.locations.planar(), np.asarray(T.truth)
    teach, held = r[: people // 2], r[people // 2 :]
    half = np.arange(len(teach))
    rows = {"people": measure_lives("people", teach, half, teach, held, truth, xy, weekend)}
    for name in which:
        GENERATORS[name](teach[:60], xy, day0, np.random.default_rng(1))  # compiled before it is timed
        t = time.perf_counter()
        fakes, made_of = GENERATORS[name](teach, xy, day0, np.random.default_rng(0))
        spent = time.perf_counter() - t
        rows[name] = measure_lives(name, fakes, made_of, teach, held, truth, xy, weekend)
        rows[name]["ms a day"] = 1000 * spent / (len(fakes) * days)
    print(f"town {seed}, {people} people x {days} days")
    show(rows)


def membership(seed: int, releases: int, which: list[str]) -> None:
    """Attack shadow releases of a town of 400 people x 7 days x 300 places."""
    T = ew.simulate_town(users=400, days=7, locations=300, rng=np.random.default_rng(seed))
    r = np.asarray(T.traces.r).astype(int).reshape(400, 7, L)
    day0 = int(np.datetime64(T.traces.dates[0], "D").astype(int))
    xy, truth = T.traces.locations.planar(), np.asarray(T.truth)
    for name in which:

        def make(members: Any, rng: Any, name: str = name) -> tuple[Any, Any]:
            lives, seed_of = GENERATORS[name](r[members], xy, day0, rng)
            return lives, members[seed_of]

        t = time.perf_counter()
        out = attack(r, truth, xy, make, releases)
        print(f"membership town {seed}, {releases} releases, {name}: {out['fakes']:.0f} fakes, "
              f"{time.perf_counter() - t:.0f} s")  # fmt: skip
        for key in ("same people", "new people", "seeds", "others in the file"):
            if key in out:
                print(f"   {key}: {out[key][0]:.3f} / {out[key][1]:.3f}")
        print("  ", " ".join(f"{k} {v:.3f}" for k, v in out["families"].items()), flush=True)
        print("   named", out["named"], flush=True)


def describe_day(r: Any, xy: Any) -> list[float]:
    """Describe a single day (L,) by 24 numbers."""
    cut = np.flatnonzero(np.r_[True, r[1:] != r[:-1]])
    length = np.diff(np.r_[cut, len(r)])
    stops = r[cut]
    v, c = np.unique(r, return_counts=True)
    q = np.sort(c / c.sum())[::-1]
    step = np.hypot(*(xy[stops[1:]] - xy[stops[:-1]]).T) if len(stops) > 1 else np.zeros(1)
    points = xy[r]
    moves = np.r_[False, r[1:] != r[:-1]]
    back = np.mean(stops[2:] == stops[:-2]) if len(stops) > 2 else 0.0
    return [
        len(stops), len(v), len(v) / len(stops), q[0], q[1] if len(q) > 1 else 0.0, q[2:5].sum(),
        -(q * np.log(q)).sum(), length.max(), length.mean(), np.median(length), (length == 1).mean(),
        (length == 1).sum(), length[0], length[-1], r[0] == r[-1], back, step.mean(), np.median(step), step.max(),
        step.sum(), np.sqrt(((points - points.mean(0)) ** 2).sum(1).mean()), np.hypot(*(points[0] - points[-1])),
        moves[: len(r) // 2].sum(), moves[len(r) // 2 :].sum(),
    ]  # fmt: skip


DAY_NAMES = (
    "stops", "places", "distinct", "top", "second", "3-5", "entropy", "longest", "mean length", "median length",
    "of one slot", "number of these", "first", "last", "circle", "back", "step", "median step", "farthest step", "way",
    "gyration", "ends", "moves before noon", "after",
)  # fmt: skip


def describe_events(user: Any, t: Any, p: Any, xy: Any) -> Any:
    """Describe the records of each person by 21 numbers."""
    rows = []
    for u in np.unique(user):
        place, when = p[user == u], t[user == u]
        v, c = np.unique(place, return_counts=True)
        q, gap = np.sort(c / c.sum())[::-1], np.diff(when) if len(when) > 1 else np.zeros(1)
        row = [len(v) / len(place), q[0], q[1] if len(q) > 1 else 0.0, -(q * np.log(q)).sum(), (c == 1).mean(),
               (place[1:] == place[:-1]).mean() if len(place) > 1 else 0.0, np.median(gap), (gap < 3600).mean(),
               *(np.bincount((when // 3600 % 24).astype(int) // 4, minlength=6) / len(when)), len(place)]  # fmt: skip
        X, step = xy[place], np.zeros(1)
        if len(place) > 1:
            step = np.hypot(*(X[1:] - X[:-1]).T)
        near = (gap < 4 * 3600) & (step > 0)
        some = step[step > 0] if (step > 0).any() else np.zeros(1)
        row += [np.sqrt(((X - X.mean(0)) ** 2).sum(1).mean()), np.median(some), some.mean(), some.max(),
                np.median(np.hypot(*(X - xy[v[c.argmax()]]).T)),
                np.median(step[near] / np.maximum(gap[near] / 3600, 0.1)) if near.any() else 0.0]  # fmt: skip
        rows.append(row)
    return np.array(rows, float)


def split(visits: Visits, rng: Any) -> tuple[Visits, Visits, Visits]:
    """Return seeds, alternates and held-out people: 35, 15 and 50 of a hundred."""
    order = rng.permutation(visits.U)
    half = visits.U // 2
    a, b, c = (visits.of_users(np.sort(x)) for x in np.split(order, [round(0.7 * half), half]))
    return a, b, c


def studentlife(which: int) -> None:
    """Measure told on days of StudentLife, cells of 250 m, people `which` mod 2."""
    import pandas as pd

    d = pd.read_parquet(DATA / "studentlife" / "studentlife_72slots.parquet")
    d = d[d.lat.between(43.6, 43.8) & d.lon.between(-72.45, -72.1)]
    who = d.uid.str[1:].astype(int)
    d = d[who % 2 == which]
    cell = np.floor(d.lat / 0.00225).astype(int) * 100_000 + np.floor(-d.lon / 0.0031).astype(int)
    cells, place = np.unique(cell, return_inverse=True)
    xy = np.column_stack([-(cells % 100_000) * 0.25, cells // 100_000 * 0.25])
    day = pd.to_datetime(d.date).values.astype("datetime64[D]").astype(int)
    start = day * 86_400 + d.slot.values.astype(np.int64) * STEP
    user = np.unique(d.uid, return_inverse=True)[1]
    order = np.lexsort((start, user))
    v = Visits(user[order], start[order], start[order] + STEP, place[order], Locations(xy=xy))
    seeds = v.of_users(np.arange(round(0.7 * v.U)))
    fakes = generate_lives(seeds, alternates=v.of_users(np.arange(round(0.7 * v.U), v.U)), entropy=1, k=5)
    print(f"StudentLife {which}: {fakes.visits} {fakes.tally} {fakes.notes}")

    def weeks(x: Visits) -> Any:
        out = []
        slots = to_slots(x, int(x.start.min() // 86_400), int(np.ptp(x.start) // 86_400) + 1)
        for life in slots:
            full = np.flatnonzero((life >= 0).all(1))
            for a in range(0, len(full) - 6, 7):
                days = full[a : a + 7]
                weekend = (x.start.min() // 86_400 + days + 3) % 7 >= 5
                if weekend.any() and not weekend.all():
                    out.append(describe(life[days], weekend, xy))
        return np.array(out)

    real, made = weeks(v), weeks(fakes.visits)
    half = np.random.default_rng(0).permutation(len(real))
    halves = told(real[half[::2]], real[half[1::2]])
    print(
        f"   told by weeks {told(real, made):.3f} (halves of real weeks {halves:.3f}), {len(made)} weeks of {len(real)}"
    )


def pf() -> None:
    """Measure single days of PF Tokyo, from 9:00 to 18:40."""
    import pandas as pd

    d = pd.read_csv(DATA / "pf_tokyo" / "pf_tokyo_traces.csv.gz").sort_values(["uid", "slot"])
    where = pd.read_csv(DATA / "pf_tokyo" / "pf_tokyo_locations.csv")
    locations = Locations(lat=where.lat.values, lon=where.lon.values)
    xy, slots = locations.planar(), int(d.slot.max()) + 1
    r = d["loc"].values.reshape(-1, slots)
    day0 = 19_786
    visits = to_visits(r, np.arange(len(r)), np.full(len(r), day0), locations, 9 * 3600)
    seeds, alternates, held = split(visits, np.random.default_rng(0))
    t = time.perf_counter()
    fakes = generate_lives(seeds, alternates=alternates, entropy=1)
    spent = time.perf_counter() - t
    lives = [to_slots(x, day0, 1, 9 * 3600, slots)[:, 0] for x in (fakes.visits, held, seeds)]
    made, real, own = ([row for row in x if (row >= 0).all()] for x in lives)
    table = [np.array([describe_day(row, xy) for row in x], float) for x in (made, real, own)]
    share = [np.bincount(np.concatenate(x), minlength=len(xy)) / np.concatenate(x).size for x in (made, real, own)]
    top = [set(np.argsort(-x)[:10].tolist()) for x in share]
    print(f"PF: {fakes.tally} {fakes.notes} {1000 * spent / len(made):.2f} ms a day, learning included")
    for name, i in (("fakes", 0), ("people", 2)):
        tv = np.abs(share[i] - share[1]).sum() / 2
        print(f"   {name}: told {told(table[1], table[i]):.3f}, top ten {len(top[i] & top[1])}, places TV {tv:.3f}")
    y = np.r_[np.zeros(len(real)), np.ones(len(made))]
    one = np.array([roc_auc_score(y, column) for column in np.vstack([table[1], table[0]]).T])
    a, b = table[0].mean(0), table[1].mean(0)
    worst = np.argsort(-np.abs(one - 0.5))[:8]
    print("   worst (fakes/people)", ", ".join(f"{DAY_NAMES[j]} {one[j]:.2f} ({a[j]:.2f}/{b[j]:.2f})" for j in worst))


def nyc(people: int = 500) -> None:
    """Measure check-ins of Foursquare NYC."""
    import pandas as pd

    d = pd.read_csv(DATA / "foursquare_nyc" / "fsq_nyc_checkins.csv.gz")
    chosen = np.random.default_rng(0).permutation(np.unique(d.uid))[:people]
    d = d[d.uid.isin(chosen)]
    when = pd.to_datetime(d.timestamp_utc).dt.tz_convert("America/New_York").dt.tz_localize(None)
    t = when.values.astype("datetime64[s]").astype(np.int64)
    poi, place = np.unique(d.poi, return_inverse=True)
    at = d.groupby("poi")[["lat", "lon"]].first().loc[poi]
    locations = Locations(lat=at.lat.values, lon=at.lon.values)
    user = np.unique(d.uid, return_inverse=True)[1]
    order = np.lexsort((t, user))
    visits = Visits(user[order], t[order], t[order], place[order], locations)
    seeds, alternates, held = split(visits, np.random.default_rng(0))
    begin = time.perf_counter()
    fakes = generate_lives(seeds, alternates=alternates, entropy=1)
    spent = time.perf_counter() - begin
    xy = locations.planar()
    table = [describe_events(x.user, x.start, x.place, xy) for x in (fakes.visits, held, seeds)]
    print(f"NYC: {seeds} -> {fakes.visits} {fakes.tally} {fakes.notes} {spent:.1f} s")
    print(f"   told {told(table[1], table[0]):.3f} (people {told(table[1], table[2]):.3f})")
    print("   means fake/real", [f"{a:.2f}/{b:.2f}" for a, b in zip(table[0].mean(0), table[1].mean(0), strict=True)])


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["town", "membership", "studentlife", "pf", "nyc", "report"])
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--releases", type=int, default=12)
    parser.add_argument("--which", default="life,markov")
    options = parser.parse_args()
    which = options.which.split(",")
    if options.what == "town":
        town(options.seed, options.days, options.people, which)
    elif options.what == "membership":
        membership(options.seed, options.releases, which)
    elif options.what == "report":
        for seed, days in ((105, 28), (107, 7)):
            town(seed, days, options.people, ["life", "markov"])
        for seed in (177, 178):
            membership(seed, options.releases, ["life"])
    elif options.what == "studentlife":
        studentlife(options.seed % 2)
    else:
        {"pf": pf, "nyc": nyc}[options.what]()


if __name__ == "__main__":
    main()
