"""Large maps from end to end: the same town by tables of all places and by what is in reach; a map of 9,000 places."""

import resource
import time

import numpy as np
import pytest

import elsewhere as ew
from elsewhere.synthesis.walk import fit, habits


def lengths(r, where):
    row, t = np.nonzero(r[:, 1:] != r[:, :-1])
    return where.distance(r[row, t], r[row, t + 1])


def few_places(monkeypatch, limit):
    """Take a map of more than so many places for a large one."""
    for module, name in ((fit, "FEW_PLACES"), (habits, "FEW_PLACES")):
        monkeypatch.setattr(module, name, limit)


def test_fakes_by_what_is_in_reach_live_like_those_by_all_places(monkeypatch):
    town = ew.simulate_town(users=400, locations=200, rng=np.random.default_rng(3)).traces
    named = {"kappa": 8, "m_min": 2, "c_min": 1, "class_draws": 1}
    whole = ew.generate_fakes(town, rng=np.random.default_rng(1), **named)
    few_places(monkeypatch, 50)
    monkeypatch.setattr(habits, "NEAR", 20)
    monkeypatch.setattr(fit, "OTHERS", 40)
    made = ew.generate_fakes(town, rng=np.random.default_rng(1), **named)

    assert made.learnt.known[np.unique(made.r)].all()
    for measure in (
        lambda f: (f.r[:, 1:] != f.r[:, :-1]).sum(axis=1).mean(),
        lambda f: np.median(lengths(f.r, town.locations)),
        lambda f: np.mean([len(set(row)) for row in f.r.tolist()]),
        lambda f: np.sort(np.bincount(f.r.ravel(), minlength=town.R))[-20:].sum() / f.r.size,
    ):
        assert measure(made) == pytest.approx(measure(whole), rel=0.15)


@pytest.mark.parametrize(
    ("users", "locations", "days", "known"),
    [(800, 1500, 1, 500), (300, 5000, 3, 500), pytest.param(3000, 5000, 1, 2048, marks=pytest.mark.soak)],
)
def test_a_map_of_more_places_than_any_table_of_pairs_is_made_for(users, locations, days, known, monkeypatch):
    if locations < habits.FEW_PLACES:
        few_places(monkeypatch, known)
    town = ew.simulate_town(users=users, locations=locations, days=days, rng=np.random.default_rng(4)).traces
    made = ew.generate_fakes(town, kappa=6, m_min=2, class_draws=1, rng=np.random.default_rng(1))

    assert made.learnt.known.sum() > known
    assert made.people > 0.9 * 0.7 * users
    real, fake = (np.quantile(lengths(r, town.locations), [0.5, 0.9]) for r in (town.r, made.r))
    assert (fake < 2 * real).all()
    assert (fake > real / 2).all()


@pytest.mark.soak
def test_a_city_of_100_000_people_and_40_000_places(tmp_path):
    # the whole job with its report: an hour of one core, and 8 GB
    people = ew.simulate_town(users=100_000, locations=40_000, rng=np.random.default_rng(1)).traces
    ew.write_traces(people, tmp_path / "people.parquet")
    del people
    start = time.process_time()
    made = ew.synthesize(tmp_path / "people.parquet", tmp_path / "out", workers=1)

    assert made.fakes.people > 0.9 * 70_000
    assert made.judgement.audit is not None
    assert time.process_time() - start < 3600
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 8e6
