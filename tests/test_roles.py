"""Everybody in the file is attacked: the figure is that of the worst role, named, and no role is passed over."""

import json

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import elsewhere as ew
from elsewhere.evaluation.attacks.audit import EVERYBODY
from elsewhere.evaluation.attacks.candidates import share_against_exchanges, share_explained_best
from elsewhere.evaluation.attacks.inputs import People

ATTACKS = ["A1", "A2", "A3", "A10", "A12", "A13"]


@pytest.fixture(scope="module")
def town():
    """Seeds, model people, strangers, and others who met nothing: 100 each."""
    whole = ew.simulate_town(users=400, locations=80, rng=np.random.default_rng(1)).traces
    return [whole.of_users(range(100 * k, 100 * k + 100)) for k in range(4)]


def audited(town, fakes, attacks=ATTACKS, holdout=True, **more):
    seeds, model, strangers, _ = town
    roles = {"model people": model, **more}
    given = (seeds, strangers if holdout else None, fakes, np.arange(100))
    return ew.audit(*given, attacks=attacks, roles=roles, m_min=3, rng=np.random.default_rng(2))


def test_a_leak_of_people_who_are_no_seeds_is_found_and_named(town):
    found = audited(town, town[1].r)  # the model people's own days, said to come of the seeds

    for attack in ("A1", "A2", "A3", "A10", "A12"):
        told = found[attack].details
        assert told["role"] == "model people", attack
        assert found[attack].passed is False, attack
        assert "The worst of 2 roles: model people." in found[attack].words
        assert told["roles"]["seeds"]["outcome"] != "learnt something" or attack == "A1", attack
        assert told["roles"]["model people"]["outcome"] == "learnt something", attack
        assert told["roles"]["model people"]["people"] == 100
        # the figure of the table is that of the role
        assert found[attack].main == pytest.approx(told["roles"]["model people"]["main"])
    assert found["A2"].main > 0.9
    assert found["A1"].details["own_seed_zero"] is False  # what claims rest on stays that of the seeds
    assert "A10 of the model people" in found.in_words()
    told = json.loads(json.dumps(found.to_dict()))
    assert told["A3"]["roles"]["seeds"]["main"] < told["A3"]["roles"]["model people"]["main"]


def test_a_leak_of_the_seeds_is_theirs(town):
    found = audited(town, town[0].r, ["A2", "A3", "A10", "A12"])

    assert [found[a].details["role"] for a in ("A2", "A3", "A10", "A12")] == ["seeds"] * 4
    assert found["A3"].passed is False
    assert found["A3"].details["roles"]["model people"]["passed"] is True
    assert " of the model people" not in found.in_words()


def test_people_who_met_nothing_leak_nobody(town):
    found = audited(town, town[3].r)

    for attack in set(ATTACKS) - {"A13"}:  # days as they are do go to rare places
        assert {told["outcome"] for told in found[attack].details["roles"].values()}.isdisjoint({"learnt something"})
    assert set(found["A1"].details["roles"]) == {"seeds", "model people"}
    # where nobody is worse off than strangers the seeds are the figure, and what claims rest on is theirs whoever is
    assert found["A1"].details["role"] == "seeds"
    assert found["A1"].details["own_seed_zero"] is False


def test_a_role_without_strangers_gets_no_verdict_and_the_reason(town):
    found = audited(town, town[3].r, ["A3", "A13"], alternates="they are the strangers themselves")
    told = found["A3"].to_dict()["roles"]
    assert told["alternates"] == {"outcome": "no verdict", "words": "No verdict: they are the strangers themselves."}
    assert told["model people"]["outcome"] != "no verdict"
    assert found.unjudged == ("of the alternates: no verdict: they are the strangers themselves (A3, A13).",)

    found = audited(town, town[3].r, ["A13"], holdout=False)
    assert found["A13"].details["roles"]["model people"]["outcome"] == "no verdict"
    assert "no people set aside are left" in found.unjudged[0]
    alone = ew.audit(town[0], town[2], town[3].r, np.arange(100), attacks=["A13"], rng=np.random.default_rng(1))
    assert "roles" not in alone["A13"].details
    assert alone.unjudged == ()
    with pytest.raises(ew.errors.NotEnoughUsers, match="model people"):
        ew.audit(*town[:1], town[2], town[3].r, None, roles={"model people": town[1].of_users([0])},
                 rng=np.random.default_rng(1))  # fmt: skip


def test_rare_places_of_a_role_by_hand():
    # place 7 is that of one alternate alone, place 8 of one alternate and two seeds, place 9 of strangers only
    seeds = ew.Traces([[0, 8], [0, 8], [0, 1]], ew.Locations(n=10))
    alternates, strangers = [[0, 7], [0, 8]], [[0, 9], [1, 1]]
    fakes = [[7, 8], [8, 8], [9, 0]]

    def rare(m_min):
        roles = {"alternates": alternates}
        found = ew.audit(seeds, strangers, fakes, None, attacks=["A13"], m_min=m_min, roles=roles,
                         rng=np.random.default_rng(1))  # fmt: skip
        return found["A13"].details["roles"]["alternates"]

    assert [rare(m)["main"] for m in (1, 2, 3, 4)] == [0, 1, 1, 2]
    assert rare(2)["passed"] is False
    assert rare(1)["passed"] is True
    assert "; 1 fakes visit one of them" in rare(2)["words"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whom_fakes_are_best_explained_by_equals_its_slow_twin(data):
    U, R, L, F = (data.draw(st.integers(low, most)) for low, most in ((2, 4), (2, 4), (2, 5), (1, 5)))
    cell = st.integers(0, R - 1)
    rows = np.array(data.draw(st.lists(cell, min_size=(U + F) * L, max_size=(U + F) * L))).reshape(-1, L)
    people = People(rows[:U], np.arange(U), U)
    slow = naive.best_explained(rows[U:].tolist(), [[row] for row in rows[:U].tolist()])

    assert_allclose(share_explained_best(rows[U:], people, R), slow, atol=1e-12)
    assert share_explained_best(rows[U:], people, R).sum() == pytest.approx(1)


def test_exchanges_have_the_law_of_shares_without_knowledge():
    rng = np.random.default_rng(1)
    share = rng.dirichlet(np.full(60, 0.2))  # some people explain many fakes, whoever they are
    flagged = 0
    for _ in range(200):
        rate, p = share_against_exchanges(share[rng.permutation(60)], 30, rng)
        assert (rate.low > 0.5) == (p < 0.025) or abs(p - 0.025) < 0.02
        flagged += rate.low > 0.5
    # 2.5 % of 200 is 5; 5.2 standard deviations of 2.2 (alpha 1e-7)
    assert flagged <= 5 + 5.2 * 2.2
    told, p = share_against_exchanges(np.repeat([2 / 60, 0.0], 30), 30, rng)
    assert told.value == 1
    assert told.low > 0.5
    assert p < 0.01


def test_every_attack_on_everybody_is_one_of_the_suite(town):
    assert set(EVERYBODY) == set(ATTACKS)


def test_the_page_names_the_worst_role_and_shows_all(town, tmp_path):
    found = audited(town, town[1].r, ["A2", "A3", "A4"], alternates="they are the strangers themselves")
    ew.report(found, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()

    assert "<h3>Everybody in the file</h3>" in page
    assert page.count("worst role: model people") == 2  # A4 asks about seeds alone
    assert "Alternates: No verdict: they are the strangers themselves." in page
    assert "A3 of the model people" in page  # in the first sentence on the attacks
    plain = ew.audit(town[0], town[2], town[1].r, np.arange(100), attacks=["A3"], rng=np.random.default_rng(1))
    ew.report(plain, tmp_path / "b.html")
    assert "Everybody in the file" not in (tmp_path / "b.html").read_text()
