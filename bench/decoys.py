"""
Decoys over days: how often a service names where the user is among five personas, on real fixes of phones.

    python bench/decoys.py [--draws 2] [--asks 6|0] [--pool lives|people]

Students of StudentLife (fixes of phones, one in 10 to 20 minutes; those in the town) ask from their own fixes, `--asks`
times a day at hours at which people ask (0: at every fix), hidden by wallets whose personas are lives that the
generator made of the students, that of her own left out (`--pool people`: other students' visits). The service is given
more than it has: it knows which questions belong to one line, and of all other students which was the true line. It
learns from them how true lines differ from personas, by two classifiers, the better of which counts; four services, by
what they look at:

- `shape`    a line by itself: steps, recurrences, scatter, distances, hours;
- `places`   that, and how many lines of others, true or not, were where it was: all of it the service saw;
- `map`      that, and how many true lines of others were there: where people really are, as a public map tells;
- `knew`     knew this student before, from the weeks that came before: the line that is nearest to her places by hour.

A figure is the share of questions at which the line that was named is where she is (at few decimals personas are there
too); `guess` is that of a line named at random. Students with even numbers were for design; the figures are those of
the others.
"""

import argparse
import json
import sys
import time
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import elsewhere as ew
from elsewhere import lbs
from elsewhere.pool import Pool

warnings.simplefilter("ignore")
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "studentlife" / "studentlife_gps.parquet"
DECOYS, FOLDS = 5, 4
DAYS = {1: 6, 7: 3, 28: 2}  # length of what a service saw, and how many such windows of each line
# how often people ask, by hour
HOURS = np.array([2, 1, 1, 1, 1, 2, 5, 8, 9, 7, 6, 6, 8, 7, 6, 6, 7, 9, 9, 8, 7, 6, 5, 3], dtype=float)
DAY, METRES = 86_400, 111_195.0


def read_fixes():
    """The fixes in the town: table of student, local second, lat, lon."""
    f = pd.read_parquet(DATA)
    f = f[f.lat.between(43.6, 43.8) & f.lon.between(-72.45, -72.10)]
    f["second"] = pd.to_datetime(f.timestamp_local.str[:19]).astype("datetime64[s]").astype(np.int64)
    return f.drop_duplicates(["uid", "second"]).sort_values(["uid", "second"])


def make_pool(fixes, kind, rng):
    """Lives, as visits, and the student that each was made from."""
    columns = ["uid", "timestamp_local", "lat", "lon", "accuracy"]
    visits = ew.read_visits(fixes[columns], tz="America/New_York", rng=rng)
    if kind == "people":
        return visits, np.arange(visits.U)
    made = ew.generate_fakes(visits, per_seed=2, k=5, rng=rng)
    return made.visits, made.seed_of_life


def asked(second, asks, rng):
    """Which of the fixes a student asks from."""
    if not asks:
        return np.arange(len(second))
    chosen = []
    for day in np.unique(second // DAY):
        rows = np.flatnonzero(second // DAY == day)
        weight = HOURS[second[rows] % DAY // 3600]
        chosen.append(rng.choice(rows, min(asks, len(rows)), replace=False, p=weight / weight.sum()))
    return np.sort(np.concatenate(chosen))


def lines_of(student, pool, maker, u, asks, decimals, rng):
    """Second of each question, and (questions, 1 + decoys, 2) positions, the true line first."""
    rows = asked(student.second.to_numpy(), asks, rng)
    second, lat, lon = (student[name].to_numpy()[rows] for name in ("second", "lat", "lon"))
    mine = Pool(pool.of_users(np.flatnonzero(maker != u)), {})
    wallet = lbs.Wallet(mine, secret=rng.bytes(32), decimals=decimals)
    begin = datetime(1970, 1, 1)
    out = np.empty((len(rows), 1 + DECOYS, 2))
    for n, (t, y, x) in enumerate(zip(second.tolist(), lat.tolist(), lon.tolist(), strict=True)):
        out[n] = [(y, x), *wallet.positions(y, x, begin + timedelta(seconds=t), decoys=DECOYS)]
    return second, out


def windows(second, days, most):
    """Rows of windows of so many days with enough questions."""
    first, last = int(second[0] // DAY), int(second[-1] // DAY)
    starts = np.arange(first + 1, last - days + 1, days)
    starts = (
        starts[np.unique(np.linspace(0, len(starts) - 1, min(most, len(starts))).astype(int))] if len(starts) else []
    )
    for start in starts:
        rows = np.flatnonzero((second >= start * DAY) & (second < (start + days) * DAY))
        if len(rows) >= 4 * days:
            yield rows


def portrait(second, xy, decimals):
    """How one line looks: `xy` in metres as the service sees it."""
    step = np.hypot(*np.diff(xy, axis=0).T)
    gap = np.diff(second)
    day, hour = second // DAY, second % DAY // 3600
    _, point, count = np.unique(np.round(xy, 1), axis=0, return_inverse=True, return_counts=True)
    point = point.ravel()
    share = np.sort(count)[::-1] / len(xy)
    cell = np.unique(np.round(xy / 200), axis=0, return_inverse=True)[1].ravel()
    cells = np.sort(np.bincount(cell))[::-1] / len(xy)
    near = step < 150
    facts = [np.mean(step <= edge) for edge in (0.1, 9, 12, 16, 25, 40, 80, 150, 400, 1000, 3000)]
    for soon in (gap < 1500, gap >= 1500):
        facts += [np.mean(step[soon] <= edge) if soon.any() else -1 for edge in (0.1, 12, 25, 80, 400)]
    for some in (hour < 7, (hour >= 9) & (hour < 17)):
        quiet = some[1:] & some[:-1]
        facts += [np.mean(step[quiet] <= edge) if quiet.any() else -1 for edge in (0.1, 12, 25, 150)]
    facts += [np.mean(np.log1p(step)), np.std(np.log1p(step)), np.mean(np.log1p(step[near])) if near.any() else -1]
    facts += [len(count) / len(xy), *np.resize(np.append(share[:4], np.zeros(4)), 4), np.mean(count == 1)]
    facts += [len(cells) / len(xy), *np.append(cells[:4], np.zeros(4))[:4], -(share * np.log(share)).sum()]
    facts += [-(cells * np.log(cells)).sum()]
    for rank in (0, 1):  # scatter at the main places
        order = np.argsort(-np.bincount(cell))
        at = xy[cell == order[rank]] if len(order) > rank else xy[:1]
        apart = np.hypot(*(at - np.median(at, axis=0)).T)
        facts += [*np.quantile(apart, [0.25, 0.5, 0.75, 0.9, 1.0]), len(np.unique(np.round(at, 1), axis=0)) / len(at)]
        sides = np.abs(at - np.median(at, axis=0)).mean(axis=0)
        facts += [np.log((sides[0] + 1) / (sides[1] + 1))]
    back = xy[2:] - xy[:-2]
    facts += [np.mean(np.hypot(*back.T) <= 0.1), np.mean((step[1:] > 0.1) & (np.hypot(*back.T) <= 0.1))]
    turn = step[1:] * step[:-1]
    facts += [np.mean((turn > 0) & (np.hypot(*back.T) > 0.98 * (step[1:] + step[:-1])) & (step[1:] > 60))]
    middle = xy.mean(axis=0)
    facts += [np.log1p(np.sqrt(((xy - middle) ** 2).sum(axis=1).mean())), np.log1p(np.hypot(*(xy - middle).T).max())]
    night, first = cell[hour < 6], {}
    facts += [np.bincount(night).max() / len(night) if len(night) else -1]
    seen = np.array([first.setdefault(p, d) < d for p, d in zip(point, day, strict=True)])
    facts += [seen.mean(), np.std(step > 150), np.mean(np.abs(np.diff((step > 150).astype(int))))]
    moved = step > 150
    facts += [np.median(np.log(step[moved])) if moved.any() else -1, moved.sum() / (1 + np.ptp(day))]
    return np.array(facts, dtype=float)


def density(xy, tree, owner, u):
    """How many lines of other students were where this line was: mean and quantiles over its points, logarithms."""
    points = np.unique(np.round(xy, 1), axis=0)
    number = []
    for reach in (12, 60, 200):
        found = tree.query_ball_point(points, reach)
        counted = np.array([len({owner[i] for i in some if owner[i][0] != u}) for some in found])
        number += [np.log1p(counted).mean(), np.mean(counted == 0)]
    return np.array(number)


def to_metres(points, decimals):
    """Positions as the service sees them, in metres."""
    lat, lon = np.round(points[..., 0], decimals), np.round(points[..., 1], decimals)
    return np.stack([(lat - 43.7) * METRES, (lon + 72.28) * METRES * np.cos(np.radians(43.7))], axis=-1)


def named(features, owner, here, report, rng):
    """How often she is where the named line is, for the students of `report`: (groups, 1 + decoys, facts) features."""
    x = np.concatenate([features, features - features.mean(axis=1, keepdims=True)], axis=2)
    flat, y = np.concatenate([x, rankdata(features, axis=1)], axis=2), np.zeros(features.shape[:2])
    y[:, 0] = 1
    score = np.zeros((2, *y.shape))
    fold = rng.permutation(owner.max() + 1) % FOLDS
    for f in range(FOLDS):
        test = fold[owner] == f
        a, b = flat[~test].reshape(-1, flat.shape[2]), flat[test].reshape(-1, flat.shape[2])
        boosted = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.1, max_leaf_nodes=8, random_state=0)
        score[0, test] = boosted.fit(a, y[~test].ravel()).predict_proba(b)[:, 1].reshape(-1, y.shape[1])
        scale = StandardScaler().fit(a)
        line = LogisticRegression(C=0.02, max_iter=300).fit(scale.transform(a), y[~test].ravel())
        score[1, test] = line.decision_function(scale.transform(b)).reshape(-1, y.shape[1])
    mine = np.isin(owner, report)
    return max(_found(some[mine], here[mine]) for some in score)


def knew(second, line, past_second, past):
    """How well each line fits where the student was at that hour in the weeks before."""
    hour, before = second % DAY // 3600, past_second % DAY // 3600
    fit = np.zeros(line.shape[1])
    for h in np.unique(hour):
        there = past[np.minimum((before - h) % 24, (h - before) % 24) <= 1]
        if len(there):
            apart = cKDTree(there).query(line[hour == h].reshape(-1, 2))[0].reshape(-1, line.shape[1])
            fit -= np.log1p(apart / 50).sum(axis=0)
    return fit


def _found(score, here):
    best = np.round(score, 9) == np.round(score, 9).max(axis=1, keepdims=True)
    return round(float(np.mean((best * here).sum(axis=1) / best.sum(axis=1))), 3)


def _points(lines, which):
    """Where the lines of so many accounts were, as a tree, and (student, line) of each point."""
    points, owner = [], []
    for u, line in lines.items():
        for j in which:
            points.append(np.unique(np.round(line[:, j], 1), axis=0))
            owner += [(u, j)] * len(points[-1])
    return cKDTree(np.concatenate(points)), owner


def measure(fixes, pool, maker, *, draws, asks, decimals=(4, 3, 2), report=1, rng):
    """One row of figures for each number of decimals."""
    students = list(fixes.groupby("uid"))
    chosen = [u for u in range(len(students)) if u % 2 == report]
    for d in decimals:
        seen = []
        for u, (_, student) in enumerate(students):
            for _ in range(draws):
                second, line = lines_of(student, pool, maker, u, asks, d, rng)
                seen.append((u, second, to_metres(line, d)))
        whole = {u: line for u, _, line in seen}
        maps = [_points(whole, range(1 + DECOYS)), _points(whole, [0])]
        row = {"decimals": d, "asks": asks}
        for days, most in DAYS.items():
            looks, who, here, known, there = [], [], [], [], []
            for u, second, line in seen:
                for rows in windows(second, days, most):
                    t, each = second[rows], [line[rows, j] for j in range(1 + DECOYS)]
                    looks.append([[portrait(t, xy, d), *(density(xy, *m, u) for m in maps)] for xy in each])
                    who.append(u)
                    here.append([np.mean(np.abs(xy - each[0]).max(axis=1) < 1) for xy in each])
                    past = second < t[0] - DAY
                    if past.sum() > 30 and u in chosen:
                        known.append(knew(t, line[rows], second[past], line[past, 0]))
                        there.append(here[-1])
            who, here = np.array(who), np.array(here)
            row[f"guess {days}"] = round(float(here[np.isin(who, chosen)].mean()), 3)
            for n, service in enumerate(("shape", "places", "map"), 1):
                facts = np.array([[np.concatenate(facts[:n]) for facts in group] for group in looks])
                row[f"{service} {days}"] = named(facts, who, here, chosen, rng)
            row[f"knew {days}"] = _found(np.array(known), np.array(there)) if known else None
            row[f"n {days}"] = int(np.isin(who, chosen).sum())
        yield row


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--draws", type=int, default=2)
    options.add_argument("--asks", type=int, default=6)
    options.add_argument("--pool", choices=["lives", "people"], default="lives")
    options.add_argument("--report", type=int, default=1)
    told = options.parse_args()
    begun, rng = time.monotonic(), np.random.default_rng(3)
    fixes = read_fixes()
    pool, maker = make_pool(fixes, told.pool, rng)
    for row in measure(fixes, pool, maker, draws=told.draws, asks=told.asks, report=told.report, rng=rng):
        print(json.dumps(row), f"{time.monotonic() - begun:.0f} s", flush=True)
    sys.exit()
