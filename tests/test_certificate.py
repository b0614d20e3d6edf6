"""The certificate: its words, and that a laboratory run claims nothing."""

import json

import numpy as np

import elsewhere as ew
from elsewhere.synthesis.certificate import ENTROPY, NOTHING_PROVEN, certificate_of


def test_words_name_the_odds_the_bounds_and_what_is_asserted():
    told = certificate_of(4.0, 1e-6, cells=100)

    assert told.holds
    assert (told.protects, told.eps, told.delta) == ("everybody", 4.0, 1e-6)
    assert "factor of 54.60, except with probability 1e-06" in told.words[0]
    assert "AUC of at most 0.723 and an advantage of at most 0.325" in told.words[1]
    assert told.words[3].startswith("It holds if map and clock were given")
    assert json.loads(json.dumps(told.to_dict()))["words"] == list(told.words)


def test_nobody():
    assert NOTHING_PROVEN.words == ("There is no theorem for these fakes: what attacks on them find is all there is.",)
    assert (NOTHING_PROVEN.protects, NOTHING_PROVEN.eps, NOTHING_PROVEN.holds) == ("nobody", None, False)


def test_a_laboratory_run_claims_nothing():
    sure = certificate_of(0.5, 1e-6, cells=1)
    told = sure.in_laboratory()

    assert (told.protects, told.eps, told.delta, told.auc, told.holds) == ("nobody", None, None, None, False)
    assert "nothing is claimed" in told.words[0]
    assert "1.65" in told.words[0]
    assert told.conditions == (*sure.conditions[:-1], (ENTROPY, "not met"))
    assert told.in_laboratory() == told


def test_lives_have_none_and_the_manifest_says_so(tmp_path):
    town = ew.simulate_town(users=60, days=3, locations=100, rng=np.random.default_rng(1))
    fakes = ew.generate_fakes(town.visits)
    assert fakes.certificate.protects == "nobody"
    ew.publish(fakes).save(tmp_path / "pool")
    manifest = json.loads((tmp_path / "pool" / "manifest.json").read_text())

    assert manifest["certificate"] == NOTHING_PROVEN.to_dict()
    assert ew.Pool.load(tmp_path / "pool").provenance["certificate"] == manifest["certificate"]
