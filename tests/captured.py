"""A17 on queries that were captured: people of a simulated town ask, hidden by wallets; what an attack makes of it."""

from datetime import datetime, timedelta

import numpy as np

import elsewhere as ew
from elsewhere.evaluation.lbs.scenario import Sightings, attack, chain_of
from elsewhere.lbs import Wallet
from elsewhere.data.slots import Periods

DAY = datetime(2024, 3, 4)
BETA = 0.5


def town(people=60, box=(60.165, 60.180, 24.925, 24.955)):
    """Days of people of a simulated town, hour by hour, on a map of streets in Helsinki; half of them decoys."""
    simulated = ew.simulate_town(users=2 * people, locations=60, rng=np.random.default_rng(4)).traces
    r = simulated.r[:, ::3]
    xy = simulated.locations.planar()
    low, high = xy.min(axis=0), xy.max(axis=0)
    share = (xy - low) / (high - low)
    where = ew.Locations(
        lat=np.round(box[0] + share[:, 1] * (box[1] - box[0]), 4),
        lon=np.round(box[2] + share[:, 0] * (box[3] - box[2]), 4),
    )
    traces = ew.Traces(
        r,
        where,
        users=[f"{i:032x}" for i in range(2 * people)],
        dates=[DAY.date()] * 2 * people,
        step_minutes=60,
        tz="Europe/Helsinki",
    )
    return traces.select(np.arange(people)), ew.Pool(traces.select(np.arange(people, 2 * people)), {})


def ask_all(people, pool, ask, *, decoys, users, rng):
    """
    Let each of some users ask at about half of her hours, with a wallet of her own.

    `ask(wallet, lat, lon, when, decoys)` asks and returns what the service saw of it, (lat, lon) pairs. Returned are,
    for every user, her day, when she asked, and the pairs of every hour at which she did.
    """
    where = people.locations
    logs = []
    for u in users:
        wallet = Wallet(pool, secret=rng.bytes(32))
        exposed = rng.random(people.L) < BETA
        seen = {}
        for t in np.flatnonzero(exposed).tolist():
            place = people.r[u, t]
            when = DAY + timedelta(hours=t, minutes=int(rng.integers(60)))
            seen[t] = ask(wallet, float(where.lat[place]), float(where.lon[place]), when, decoys)
        logs.append((people.r[u].astype(np.int64), exposed, seen))
    return logs


def errors(people, pool, logs, rng):
    """The error of tracking at exposed hours, by user, of a service that knows how people move (A17)."""
    where = people.locations
    model = ew.aggregate(ew.fit_profiles(people), where)
    tau = Periods.of(1).of_minute(people.minutes())
    found = []
    for truth, exposed, seen in logs:
        start, place = [0], []
        for t in range(people.L):
            there = sorted({nearest(where, *point) for point in seen.get(t, [])})
            place += rng.permutation(there).tolist()
            start.append(len(place))
        log = Sightings(np.array(start), np.array(place, dtype=np.int64))
        chain = chain_of(model, tau, np.unique(np.concatenate([log.place, truth])))
        _, tracked = attack(log, chain, truth, rng)
        found.append(1 - tracked[exposed].mean())
    return np.array(found)


def nearest(where, lat, lon):
    """The number of the place nearest to a position."""
    return int(np.argmin((where.lat - lat) ** 2 + ((where.lon - lon) * np.cos(np.radians(lat))) ** 2))


def simulated_errors(people, pool, *, decoys, users, rng):
    """The same error where nothing is sent: decoys drawn from the same pool by `evaluate_lbs`."""
    rows = pool.to_map(people.locations).r

    def generator(user, n, rng):
        return rows[rng.choice(len(rows), n, replace=False)]

    result = ew.evaluate_lbs(
        people,
        people,
        {"pool": generator},
        n_fakes=[decoys],
        beta=BETA,
        repeats=(2, 2),
        rng=rng,
        locations=people.locations,
    )
    return result.error[list(users), 0, 0, result.adversaries.index("aggregate"), 1, 0]


def agree(one, two):
    """Whether two samples of errors, of the same users, have the same mean: within five standard errors."""
    difference = one - two
    return abs(difference.mean()) <= 5 * difference.std(ddof=1) / np.sqrt(len(difference))
