"""The certificate: its bounds against their definition, its words, and that a laboratory run claims nothing."""

import json
import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.synthesis.certificate import ENTROPY, Certificate, largest_advantage, largest_auc

EPS = st.floats(0, 12)
DELTA = st.floats(0, 0.5)


class TestBounds:
    @given(EPS, DELTA)
    def test_they_are_those_of_the_definition(self, eps, delta):
        # the naive curve is sampled at 4,000 points: a trapezium misses at most the corner between two of them
        ref_auc, ref_advantage = naive.largest_roc(eps, delta)

        assert largest_auc(eps, delta) == pytest.approx(ref_auc, abs=2 / 4000)
        assert largest_advantage(eps, delta) == pytest.approx(ref_advantage, abs=2 / 4000)

    @given(EPS, EPS, DELTA)
    def test_they_grow_with_eps_and_stay_probabilities(self, one, other, delta):
        low, high = sorted((one, other))

        assert 0 <= largest_advantage(low, delta) <= largest_advantage(high, delta) <= 1
        assert 0.5 <= largest_auc(low, delta) <= largest_auc(high, delta) <= 1

    def test_by_hand(self):
        # eps = ln 3: the corner of the curve is at (1/4, 3/4)
        assert largest_advantage(math.log(3)) == pytest.approx(0.5)
        assert largest_auc(math.log(3)) == pytest.approx(0.75)
        assert (largest_advantage(0.0), largest_auc(0.0)) == (0, 0.5)
        # a tenth of the people are given away, of the others nothing is told
        assert largest_advantage(0.0, 0.1) == pytest.approx(0.1)
        assert largest_auc(0.0, 0.1) == pytest.approx(1 - 0.81 / 2)
        assert (largest_advantage(1e4), largest_auc(math.inf)) == (1, 1)

    @pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 3.0])
    def test_the_noisy_count_reaches_them(self, eps):
        # two-sided geometric noise around 0 or 1: the best attack on the count has exactly the bound
        z = np.arange(-400, 401)
        law = np.exp(-eps * np.abs(z)) * np.tanh(eps / 2)
        other = np.exp(-eps * np.abs(z - 1)) * np.tanh(eps / 2)

        assert np.maximum(other - law, 0).sum() == pytest.approx(largest_advantage(eps), abs=1e-9)


class TestCertificate:
    def test_words(self):
        told = Certificate("everybody", eps=0.5, conditions=[("the map is given", "met")])

        assert "factor of 1.65" in told.words[0]
        assert "AUC of at most 0.622" in told.words[1]
        assert told.holds
        assert told.delta == 0

    def test_words_of_everybody_name_no_seeds(self):
        told = Certificate("everybody", eps=4.5, delta=1e-6, advantage=0.4, auc=0.75)

        assert not any("seed" in sentence or "no theorem" in sentence for sentence in told.words)
        assert "AUC of at most 0.750" in told.words[1]
        assert "except with probability 1e-06" in told.words[0]

    def test_nobody(self):
        told = Certificate.none()

        assert told.words == ("There is no theorem for these fakes: what attacks on them find is all there is.",)
        assert (told.protects, told.eps, told.delta, told.holds) == ("nobody", None, None, False)

    def test_a_laboratory_run_claims_nothing(self):
        sure = Certificate("everybody", eps=0.5, conditions=[("the map is given", "met"), (ENTROPY, "met")])
        told = sure.in_laboratory()

        assert (told.protects, told.eps, told.holds) == ("nobody", None, False)
        assert "nothing is claimed" in told.words[0]
        assert "1.65" in told.words[0]
        assert told.conditions == (("the map is given", "met"), (ENTROPY, "not met"))
        assert told.in_laboratory() == told

    def test_what_is_not_met_or_asserted_is_said(self):
        told = Certificate("everybody", eps=0.5, conditions=[("a", "met"), ("b", "asserted"), ("c", "not met")])

        assert not told.holds
        assert (told.words[0], told.words[-1]) == (
            "The theorem does not hold here, because this is not met: c. If it were:",
            "It holds if b.",
        )

    def test_a_large_eps_promises_nothing(self):
        assert "promises nothing" in Certificate("everybody", eps=11).words[-1]

    def test_round_trip_through_json(self):
        told = Certificate("everybody", eps=4.5, delta=1e-6, auc=0.7, conditions=[("a", "met")])

        assert Certificate.from_dict(json.loads(json.dumps(told.to_dict()))) == told
        assert told.to_dict()["words"] == list(told.words)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"protects": "most"},
            {"protects": "everybody"},
            {"protects": "nobody", "eps": 1.0},
            {"protects": "everybody", "eps": -1.0},
            {"protects": "everybody", "eps": 1.0, "auc": 0.99},
            {"protects": "everybody", "eps": 1.0, "conditions": [("a", "perhaps")]},
            {"protects": "seeds", "eps": 1.0},
        ],
    )
    def test_what_cannot_be_is_refused(self, wrong):
        with pytest.raises(ew.errors.InvalidParameter):
            Certificate(**wrong)


class TestOfFakes:
    def test_lives_have_none_and_the_manifest_says_so(self, tmp_path):
        town = ew.simulate_town(users=60, days=3, locations=100, rng=np.random.default_rng(1))
        fakes = ew.generate_fakes(town.visits)
        assert fakes.certificate.protects == "nobody"
        ew.publish(fakes).save(tmp_path / "pool")
        manifest = json.loads((tmp_path / "pool" / "manifest.json").read_text())

        assert manifest["certificate"] == Certificate.none().to_dict()
        assert ew.Pool.load(tmp_path / "pool").provenance["certificate"] == manifest["certificate"]
