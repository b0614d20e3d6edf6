"""A small evaluation of every kind, made once for the tests of the report; strings in it are chosen to do harm."""

from functools import cache

import numpy as np

import elsewhere as ew
from elsewhere.data.visits import Form, Locations, Visits
from elsewhere.evaluation.attack_base import Finding, Rate
from elsewhere.evaluation.usefulness import judge_usefulness

HOSTILE = "</script><b onclick=alert(1)>&'\""
CANARY = "canary-user"


@cache
def world():
    """Real people with names, fakes of other people of the same town, and results of all kinds."""
    rng = np.random.default_rng(5)
    town = ew.simulate_town(users=90, days=15, locations=80, rng=rng).visits
    people = town.of_users(np.arange(40)).replace(users=[f"{CANARY}-{i}" for i in range(40)])
    fakes = town.of_users(np.arange(60, 90)).replace(users=[f"{i:032x}" for i in range(30)])
    usefulness = judge_usefulness(people, town.of_users(np.arange(40, 60)), fakes, rng=rng)
    run = {
        "method": "life",
        "parameters": {"k": 10, "par_s": 0.1, "seed": 424242, "users": [CANARY]},
        "certificate": None,
        "notes": [HOSTILE],
        "versions": {"numpy": "0"},
        "sizes": {"fakes": 30, "seeds": 40, "places": 80, "fake visits": len(fakes)},
        "path": "/home/canary/real.csv",
    }
    return {
        "people": people,
        "fakes": fakes,
        "seed": rng.integers(40, size=30),
        "usefulness": usefulness,
        "audit": audit(),
        "judgement": {"usefulness": usefulness.to_dict(), "audit": audit(), "run": run, "notes": ["a note"]},
    }


def finding(name, main=0.02, *, passed=True, high=None, words="Whoever knows the hours names 2.0 % of the fakes."):
    """A finding as plain numbers; chance is 0.01."""
    rate = Rate(main, 0.8 * main, 1.2 * main if high is None else high)
    chance = Rate(0.01, 0.0, 0.02)
    return Finding(
        rate, chance, chance, baseline=0.01, bar=0.05, passed=passed, words=words, id=name, title=f"attack {name}"
    ).to_dict()


def audit(**others):
    """Attacks that learn nothing, except `others`; one was not run."""
    quiet = {name: finding(name, 0.01) for name in ("A1", "A2", "A3", "A4", "A5", "A10", "A15")}
    quiet["A1"]["own_seed_zero"] = True
    return quiet | {"A12": Finding(id="A12", title="unique details", needs="`holdout`").to_dict()} | others


PUBLISHING = {
    "sizes": {"train": 40, "fakes": 30, "test": 0, "users": 40},
    "aggregate": {"p_bar": {"fakes": {"mean": 0.8125}}},
    "visits": {"all": {"fakes": {"mean": 0.4321}, "uniform": 1.5, "testing": None}},
    "allocation": {},
    "beyond": {},
}
POINT = {"aggregate": {"tracking": {"exposed": {"median": 0.5, "interval": [0.4, 0.6]}}}}
LBS = {
    "settings": {"beta": 0.1, "users": 6},
    "generators": {
        "ours": {
            str(n): {"diversity": {"median": n}, "semantic": {"median": n}, "ceiling": n / (n + 1), "error": POINT}
            for n in (1, 3)
        }
    },
}


def as_events(visits, share=0.1):
    """Check-ins: a few visits as moments."""
    some = visits.select(np.random.default_rng(1).random(len(visits)) < share)
    return some.replace(end=some.start, form=Form("events"))


def as_trips(visits):
    """Trips without persons: from where a visit ends to where the next begins, ten minutes later."""
    first = np.flatnonzero(visits.user[1:] == visits.user[:-1])[::9]
    n = len(first)
    when, where = np.repeat(visits.end[first], 2), np.column_stack([visits.place[first], visits.place[first + 1]])
    when[1::2] += 600
    number = np.repeat(np.arange(n), 2)
    return Visits(number, when, when, where.ravel(), visits.locations, trip=number, form=Form("trips", unit="trip"))


def without_coordinates(visits):
    """The same at places of which only the number is known."""
    return visits.replace(locations=Locations(n=visits.R))


def one_day(visits):
    """The first day of everybody."""
    return visits.select(visits.start < visits.start.min() + 20 * 3600)
