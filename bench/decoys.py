"""
Decoys over 28 days: how often a service names the user's line, and what helps.

    python bench/decoys.py [people]

People of a simulated town ask six times a day, at hours at which people ask, hidden by wallets (`elsewhere.lbs`) whose
personas come from the pool of the same town's fakes, those of her own left out. The service is given more than it has:
it knows which questions belong to one line. Four services:

- `saw`       has learnt how lines look from all users' lines, true and fake: the line most like the others is named;
- `people`    has watched real people: the line most like them is named;
- `habits`    knew this user before, from half of her days: the line most likely under her hours and places on the rest;
              beside it the same where every query is rounded (`decimals` of the wallet) to two decimals or to one;
- `home`      names the place that recurs most by night; behind personas, and behind decoys drawn afresh every day.
"""

import json
import sys
import time
from datetime import datetime, timedelta

import numpy as np

import elsewhere as ew
from elsewhere.evaluation.lbs.days import likeness, portrait, recurring
from elsewhere.evaluation.lives import anchors
from elsewhere.lbs import Wallet
from elsewhere.pool import Pool
from elsewhere.run.publish import publish_with_rows

DAYS, ASKS = 28, 6
# how often people ask, by hour
HOURS = np.array([2, 1, 1, 1, 1, 2, 5, 8, 9, 7, 6, 6, 8, 7, 6, 6, 7, 9, 9, 8, 7, 6, 5, 3], dtype=float)


def make(people, rng):
    """A town, its published pool, and the number of the person behind each life of the pool."""
    town = ew.simulate_town(users=people, days=DAYS, locations=150, rng=rng).traces
    fakes = ew.generate_fakes(town, rng=rng, workers=1)
    pool, rows = publish_with_rows(fakes, laboratory=True, rng=rng)
    maker = town.user[fakes.seed[rows]]
    return town, pool, np.array([maker[life[0]] for life in pool.lives()])


def filled(asked, places):
    """A line as the service imagines it: between two questions where it was at the nearest one."""
    L = len(asked)
    at = np.flatnonzero(asked)
    return places[at[np.argmin(np.abs(np.arange(L)[:, None] - at), axis=1)]]


def nearest(where, points):
    lat, lon = np.array(points).T
    apart = (where.lat[:, None] - lat) ** 2 + ((where.lon[:, None] - lon) * np.cos(np.radians(lat))) ** 2
    return np.argmin(apart, axis=0)


def line_of(wallet, where, asked, days, decoys, step):
    """(days, decoys, L) places of the personas at the hours at which was asked, filled."""
    D, L = asked.shape
    out = np.zeros((D, decoys, L), dtype=np.int64)
    for d in range(D):
        row = np.zeros((decoys, L), dtype=np.int64)
        for t in np.flatnonzero(asked[d]).tolist():
            when = days[d] + timedelta(minutes=step * t)
            row[:, t] = nearest(where, wallet.positions(when, decoys=decoys))
        out[d] = [filled(asked[d], line) for line in row]
    return out


def measure(town, pool, maker, decoys, rng, users=60):
    """Success of each service at naming the true line (or, behind fresh decoys, the home), beside a guess."""
    where, L, step = town.locations, town.L, town.step_minutes
    minutes = town.minutes()
    weight = HOURS[(minutes // 60).astype(int)]
    start = datetime.fromisoformat(str(town.dates.min()))
    days = [start + timedelta(days=d) for d in range(DAYS)]
    weekend = np.array([day.weekday() >= 5 for day in days])
    chosen = rng.permutation(town.U)[:users].tolist()
    every = {}
    for u in chosen:
        rows = np.flatnonzero(town.user == u)
        rows = rows[np.argsort(town.dates[rows])]
        asked = np.zeros((DAYS, L), dtype=bool)
        for d in range(DAYS):
            asked[d, rng.choice(L, ASKS, replace=False, p=weight / weight.sum())] = True
        true = np.array([filled(asked[d], town.r[rows[d]]) for d in range(DAYS)])
        mine = Pool(
            pool.traces.select(np.concatenate([r for r, m in zip(pool.lives(), maker, strict=True) if m != u])), {}
        )
        personas = line_of(Wallet(mine, secret=rng.bytes(32)), where, asked, days, decoys, step)
        fresh = np.concatenate(
            [
                line_of(Wallet(mine, secret=rng.bytes(32)), where, asked[d : d + 1], days[d : d + 1], decoys, step)
                for d in range(DAYS)
            ]
        )
        every[u] = (rows, true, personas, fresh)
    lines = {u: [true, *personas.transpose(1, 0, 2)] for u, (_, true, personas, _) in every.items()}
    look = {u: np.array([portrait(line, weekend, minutes)[2] for line in some]) for u, some in lines.items()}
    rounded = {
        f"habits, {decimals} decimals": np.unique(
            np.round(np.c_[where.lat, where.lon], decimals), axis=0, return_inverse=True
        )[1].ravel()
        for decimals in (2, 1)
    }
    hits = {name: [] for name in ("saw", "people", "habits", *rounded, "home", "home, fresh")}
    for u, (rows, true, personas, fresh) in every.items():
        others = [v for v in every if v != u]
        hits["saw"].append(_first(likeness(look[u], np.concatenate([look[v] for v in others]))))
        hits["people"].append(_first(likeness(look[u], np.array([look[v][0] for v in others]))))
        hits["habits"].append(_first(_known(town.r[rows], lines[u], minutes, town.R)))
        for name, cell in rounded.items():
            hits[name].append(_first(_known(cell[town.r[rows]], cell[np.array(lines[u])], minutes, len(cell))))
        home, _ = anchors(town.r[rows].astype(np.int64), weekend, minutes)
        for name, decoy in (("home", personas), ("home, fresh", fresh)):
            sent = np.concatenate([true[:, None], decoy], axis=1)
            hits[name].append(float(recurring(sent, weekend, minutes, town.R)[0][home]))
    return {"decoys": decoys, "guess": 1 / (decoys + 1), **{n: round(float(np.mean(h)), 3) for n, h in hits.items()}}


def _known(days, lines, minutes, R):
    """ln likelihood of every second day of each line under the hours and places of the user's other days."""
    hour = (minutes // 60).astype(int)
    counts = np.full((24, R), 1e-3)
    for day in days[::2]:
        np.add.at(counts, (hour, day), 1)
    law = np.log(counts / counts.sum(axis=1, keepdims=True))
    return np.array([sum(law[hour, day].sum() for day in line[1::2]) for line in lines])


def _first(score):
    best = np.round(score, 9) == np.round(score, 9).max()
    return float(best[0] / best.sum())


if __name__ == "__main__":
    begun = time.monotonic()
    rng = np.random.default_rng(3)
    town, pool, maker = make(int(sys.argv[1]) if len(sys.argv) > 1 else 150, rng)
    for decoys in (1, 5):
        print(json.dumps(measure(town, pool, maker, decoys, rng)), f"{time.monotonic() - begun:.0f} s", flush=True)
