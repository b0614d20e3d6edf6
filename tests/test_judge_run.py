"""A run is judged by what is published of it: the same fakes, the right people, all of its days."""

from dataclasses import replace
from unittest import mock

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.cli.output import closing
from elsewhere.evaluation import judge
from elsewhere.evaluation.judge import category_agreement
from elsewhere.evaluation.uses import judge_uses
from elsewhere.run.finish import judgement_facts
from elsewhere.run.publish import publish_with_rows

pytestmark = [pytest.mark.filterwarnings("ignore:.* classes instead of"), pytest.mark.usefixtures("few_draws")]


@pytest.fixture(scope="module")
def made():
    """A run of the product; some places are rare."""
    town = ew.simulate_town(users=160, locations=60, rng=np.random.default_rng(6)).traces
    fakes = ew.generate_fakes(town, kappa=6, k=3, m_min=8, class_draws=1, rng=np.random.default_rng(1))
    pool, rows = publish_with_rows(fakes, laboratory=True, rng=np.random.default_rng(2))
    return town, fakes, pool, rows


@pytest.fixture
def judged(made, monkeypatch):
    def run(attacks, **more):
        whole = judge.audit
        quick = {"attacks": attacks}
        monkeypatch.setattr(judge, "audit", lambda *a, **given: whole(*a, **{**quick, **given}))
        return judge.judge_run(*made, rng=np.random.default_rng(3), **more)

    return run


@pytest.mark.parametrize("stage", ["publishing", "uses", "attacks"])
def test_what_cannot_be_kept_stops_the_run_and_is_no_word_on_the_fakes(made, judged, stage):
    def full(name, make):
        if name == stage:
            raise ew.errors.OutputRefused("the disk is full.")
        return make()

    with pytest.raises(ew.errors.OutputRefused, match="the disk is full"):
        judged(["A5"], stages=full)


def test_a_cluster_that_is_lost_stops_the_run_and_a_judge_who_refuses_is_a_note(made, judged, monkeypatch):
    def lost(*_given, **_named):
        raise ew.errors.ClusterUnavailable("it went away.", code="E_CLUSTER_LOST")

    def refuse(*_given, **_named):
        raise ew.errors.InvalidTraces("too few.")

    monkeypatch.setattr(judge, "evaluate_publishing", refuse)
    monkeypatch.setattr(judge, "judge_uses", refuse)
    kept = []

    def keep(name, make):
        kept.append(name)
        return make()

    found = judged(["A5"], stages=keep)
    assert (found.publishing, found.uses) == (None, None)
    assert "what the fakes keep could not be judged: too few." in found.notes
    assert "what the fakes are good for could not be judged: too few." in found.notes
    monkeypatch.setattr(judge, "audit", lost)
    with pytest.raises(ew.errors.ClusterUnavailable, match="went away"):
        judge.judge_run(*made, rng=np.random.default_rng(3), stages=keep)
    assert kept == ["publishing", "uses", "attacks"] * 2


def test_a_place_is_rare_by_all_days_of_the_seed_users(monkeypatch):
    whole = ew.simulate_town(users=60, days=4, locations=60, rng=np.random.default_rng(3)).traces
    # few people have several days, so fakes live one, and one day of each person is the seed
    town = whole.select(np.flatnonzero((whole.user < 28) | (np.arange(len(whole)) % 4 == 0)))
    fakes = ew.generate_fakes(town, kappa=4, m_min=4, k=3, c_min=2, class_draws=1, rng=np.random.default_rng(2))
    pool, rows = publish_with_rows(fakes, laboratory=True, rng=np.random.default_rng(2))
    quick = judge.audit
    monkeypatch.setattr(judge, "audit", lambda *a, **given: quick(*a, **{"attacks": ["A13"], **given}))
    found = judge.judge_run(town, fakes, pool, rows, rng=np.random.default_rng(3))
    assert found.lives is None
    first = ew.audit(
        town.select(fakes.seed_rows), None, fakes.r, None, attacks=["A13"], m_min=4, rng=np.random.default_rng(1)
    )

    assert first["A13"].main > 0  # by the one day that is the seed
    assert found.audit["A13"].main == 0  # m_min people of whom the model learnt visit every place of a fake


def test_the_uses_are_those_of_the_published_pool(made, judged, monkeypatch):
    town, fakes, _, rows = made
    found = judged(["A1"])
    again = judge_uses(town, fakes.r[rows], rng=np.random.default_rng(3).spawn(6)[4])

    assert found.to_dict()["uses"]["dwell"] == again.to_dict()["dwell"]
    assert found.results[0] is found.uses
    assert found.uses["weekdays"].words == "All real days are weekdays."
    frame = replace(fakes.frame, reading={"share_filled": 0.85})
    filled = judge.judge_run(town, replace(fakes, frame=frame), *made[2:], rng=np.random.default_rng(3))
    assert filled.uses["dwell"].beside.endswith("(real stays as filled: 85 % of the slots had no fix)")

    def refuse(*_, **__):
        raise ew.errors.InvalidParameter("no such clock.")

    monkeypatch.setattr(judge, "judge_uses", refuse)
    found = judged(["A1"])
    assert found.uses is None
    assert "could not be judged: no such clock." in " ".join(found.in_words())


def test_the_lives_are_those_of_the_published_pool(monkeypatch):
    town = ew.simulate_town(users=60, days=4, locations=60, rng=np.random.default_rng(3)).traces
    fakes = ew.generate_fakes(town, kappa=4, m_min=4, k=3, c_min=2, class_draws=1, rng=np.random.default_rng(1))
    pool, rows = publish_with_rows(fakes, laboratory=True, rng=np.random.default_rng(2))
    whole = judge.audit
    monkeypatch.setattr(judge, "audit", lambda *a, **given: whole(*a, **{**given, "attacks": ["A1"]}))
    found = judge.judge_run(town, fakes, pool, rows, rng=np.random.default_rng(3))

    assert found.lives.sizes["fakes"] == fakes.people == pool.traces.U
    # the same days, dealt out among the ids: whose they are is what a life is
    t = pool.traces
    clock = {"step_minutes": t.step_minutes, "start": t.start, "tz": t.tz}
    dealt = np.random.default_rng(4).permutation(t.users)
    patched = ew.Pool(ew.Traces(t.r, t.locations, users=dealt, dates=t.dates, **clock), pool.provenance)
    worse = judge.judge_run(town, fakes, patched, rows, rng=np.random.default_rng(3))
    assert worse.lives["night_share"].off > found.lives["night_share"].off + 0.1
    assert worse.lives["night_share"].within is False
    # every day a life of its own: no section, one sentence
    days = ew.Pool(ew.Traces(t.r, t.locations, dates=t.dates, **clock), pool.provenance)
    single = judge.judge_run(town, fakes, days, rows, rng=np.random.default_rng(3))
    assert single.lives is None
    assert single.to_dict()["lives"] is None
    assert "all fakes have one day" in " ".join(closing(single))
    assert found.to_dict()["lives"] == judgement_facts(found)["lives"]
    assert found.lives.summary() in " ".join(closing(found))
    assert found.lives in found.results


def test_everybody_in_the_file_is_attacked_where_people_are_set_aside(made, monkeypatch):
    town, role = made[0], "alternates"
    fakes = ew.generate_fakes(town, kappa=6, m_min=4, k=3, c_min=2, class_draws=1, rng=np.random.default_rng(1))
    pool, rows = publish_with_rows(fakes, laboratory=True, rng=np.random.default_rng(2))
    whole = judge.audit
    monkeypatch.setattr(judge, "audit", lambda *a, **given: whole(*a, **{"attacks": ["A3", "A13"], **given}))
    aside = ew.simulate_town(users=30, locations=60, rng=np.random.default_rng(7)).traces
    aside = ew.Traces(aside.r, town.locations, users=[f"aside {i}" for i in range(30)])
    free = np.setdiff1d(np.arange(town.U), town.user[fakes.seed_rows])
    found = judge.judge_run(town, fakes, pool, rows, holdout=aside, rng=np.random.default_rng(3))
    again = ew.audit(town.of_users(free), aside, fakes.r[rows], None, attacks=["A3"], rng=np.random.default_rng(3))

    told = found.audit["A3"].to_dict()["roles"]
    assert set(told) == {"seeds", role}
    assert told[role]["people"] == len(free)
    # one fake per seed: the same figure as of an audit of these people alone
    assert told[role]["main"] == pytest.approx(again["A3"].main, abs=0.03)
    assert set(found.audit["A13"].to_dict()["roles"]) == {"seeds", role}
    assert found.audit.unjudged == ()

    alone = judge.judge_run(town, fakes, pool, rows, rng=np.random.default_rng(3))
    assert alone.audit["A3"].details["role"] == "seeds"
    assert f"of the {role}: no verdict: they are the strangers of these attacks themselves" in " ".join(closing(alone))


def test_of_long_lives_some_days_are_attacked_and_the_notes_say_so(monkeypatch):
    town = ew.simulate_town(users=80, days=8, locations=60, rng=np.random.default_rng(3)).traces
    fakes = ew.generate_fakes(town, kappa=4, m_min=4, k=3, c_min=2, class_draws=1, rng=np.random.default_rng(1))
    pool, rows = publish_with_rows(fakes, laboratory=True, rng=np.random.default_rng(2))
    asked, whole = [], judge.audit

    def spy(seeds, control, published, owner, **given):
        wanted = [a for a in ("A2", "A13", "A18", "A20") if a in given.get("attacks", ["A2"])]
        asked.append((wanted, len(seeds), len(published), control.U))
        return whole(seeds, control, published, owner, **{**given, "attacks": wanted})

    monkeypatch.setattr(judge, "audit", spy)
    monkeypatch.setattr(judge, "MOST_DAYS", 2 * fakes.people + 3)
    found = judge.judge_run(town, fakes, pool, rows, rng=np.random.default_rng(3))

    some, every = 2 * fakes.people, len(fakes)
    assert asked[0][:3] == (["A2"], some, some)  # two days of each life, and the days they were made from
    assert asked[1][0] == ["A18", "A20"]
    assert asked[1][2] == every
    assert "attacked: 2 days of each life" in " ".join(found.notes)


def test_the_last_lines_say_what_for_and_whether_to_publish(judged):
    found = judged(["A1", "A9"])
    lines = closing(found)

    at = lines.index("what the fakes are good for:")
    assert [line.strip() for line in lines[at + 1 : at + 9]] == found.uses.in_words()
    assert lines[-3] == found.audit.in_words()
    assert lines[-2].startswith("Do not publish: this is a laboratory run. ")
    assert not any(word in " ".join(lines) for word in ("passed", "failed", "flagged"))
    told = judgement_facts(found)
    assert told["uses"] == found.uses.to_dict()
    assert told["publish"]["level"] == "no"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 3), st.sampled_from(["", "home", "shop", "inn"])), min_size=12, max_size=30))
def test_classes_are_compared_with_categories_by_adjusted_mutual_information(places):
    label, words = (list(side) for side in zip(*places, strict=True))
    both = [(a, b) for a, b in places if a >= 0 and b]
    where = ew.Locations(xy=np.arange(2.0 * len(places)).reshape(-1, 2) ** 2, categories=words)
    with mock.patch.object(judge, "SHUFFLES", 8):
        found = category_agreement(label, where, rng=np.random.default_rng(1))

    if len(both) < 10 or min(len({side[i] for side in both}) for i in (0, 1)) < 2:
        assert found is None
        return
    mine, theirs = (list(side) for side in zip(*both, strict=True))
    expected = naive.adjusted_mutual_information(mine, theirs)
    assert found["ami"] == pytest.approx(expected, abs=1e-9)
    assert (found["places"], found["classes"], found["categories"]) == (len(both), len(set(mine)), len(set(theirs)))
    assert found["chance"] <= found["chance_high"]


def test_geography_and_chance_stand_beside_the_classes():
    rng = np.random.default_rng(1)
    near = np.repeat([[0, 0], [9, 0], [0, 9]], 40, axis=0) + rng.normal(size=(120, 2))
    kinds = np.repeat(["a", "b", "c"], 40)
    where = ew.Locations(xy=near, categories=kinds, category_users=np.repeat([9, 9, 2], 40))
    mixed = category_agreement(rng.integers(0, 3, 120), where, rng=rng)
    assert mixed["geography"] > 0.9 > 0.1 > mixed["ami"]
    assert abs(mixed["chance"]) < 0.02 < mixed["chance_high"] < 0.1
    # words that fewer than m_min people gave are left out
    assert category_agreement(rng.integers(0, 3, 120), where, m_min=5, rng=rng)["categories"] == 2
    assert category_agreement([0, 1] * 60, ew.Locations(n=120, categories=kinds), rng=rng)["geography"] is None
    assert category_agreement([0, 1] * 60, ew.Locations(n=120), rng=rng) is None


def test_what_fakes_keep_of_the_meaning_is_told(made):
    town, fakes, _, _ = made
    kept = judge.meaning_kept(town, fakes)
    seen = fakes.learnt.translate(town).r[np.unique(fakes.seed)]
    whole = judge.class_agreement(
        fakes.r, seen, np.searchsorted(np.unique(fakes.seed), fakes.seed), fakes.learnt.classes.label
    )
    np.testing.assert_allclose([kept["own"], kept["others"]], [whole.own.mean(), whole.others.mean()])
    np.testing.assert_allclose(kept["gain"], kept["own"] - kept["others"])


def test_meaning_is_compared_with_the_right_people_where_rare_places_have_none_near_them():
    # without coordinates nothing stands for a place that the model's people never visit: people who are nowhere else
    # are left out when places are replaced, and everybody after them would be taken for another
    town = ew.simulate_town(users=80, locations=40, rng=np.random.default_rng(4)).traces
    r = np.vstack([np.full((3, town.L), town.R) + np.arange(3)[:, None], town.r])
    people = ew.Traces(r, ew.Locations(n=town.R + 3), step_minutes=town.step_minutes)
    fakes = ew.generate_fakes(people, kappa=3, m_min=3, k=3, c_min=1, class_draws=1, rng=np.random.default_rng(5))
    assert len(fakes.learnt.translate(people)) < len(people)
    seeds = np.unique(fakes.seed)
    place = fakes.learnt.place[r]
    whole = judge.class_agreement(fakes.r, place[seeds], np.searchsorted(seeds, fakes.seed), fakes.learnt.classes.label)
    kept = judge.meaning_kept(people, fakes)
    np.testing.assert_allclose([kept["own"], kept["others"]], [whole.own.mean(), whole.others.mean()])
