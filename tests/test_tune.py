"""Tuning on users of the model: more seeds allow more groups, and what is promised is what other people give."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import elsewhere as ew
from elsewhere.cli import app
from elsewhere.presets import PRESETS
from elsewhere.privacy.deniability import release_probability
from elsewhere.tuning import try_groups


def lives(N, seed=1, L=12, kappa=4, ways=6, noise=0.2):
    """Class sequences of people of several ways of living."""
    rng = np.random.default_rng(7)
    way = rng.integers(kappa, size=(ways, L))
    rng = np.random.default_rng(seed)
    return np.where(rng.random((N, L)) < noise, rng.integers(kappa, size=(N, L)), way[rng.integers(ways, size=N)])


def test_one_group_tells_nothing_and_always_passes():
    trial = try_groups(lives(80), 4, 1, 200, PRESETS["deniable"], np.random.default_rng(1))
    assert trial.accepted == pytest.approx(release_probability(200, k=50, eps0=1.0))
    assert trial.kept == pytest.approx(0, abs=1e-9)


def test_groups_tell_and_too_many_do_not_pass():
    few, many = (try_groups(lives(200), 4, n, 300, PRESETS["deniable"], np.random.default_rng(1)) for n in (3, 12))
    assert few.kept > 0.1
    assert few.accepted > 0.9
    assert many.accepted < few.accepted / 2


@pytest.fixture(scope="module")
def town():
    return ew.simulate_town(users=160, locations=80, rng=np.random.default_rng(3)).traces


def test_more_seeds_allow_more_groups(town):
    options = {"kappa": 4, "k": 20, "m_min": 2, "acceptance": 0.7}
    few, many = (ew.tune(town, seeds=n, rng=np.random.default_rng(1), **options) for n in (40, 400))
    assert few.archetypes < many.archetypes
    for found in (few, many):
        chosen = next(t for t in found.trials if t.archetypes == found.archetypes)
        assert chosen.accepted >= 0.7
        assert chosen.kept == max(t.kept for t in found.trials if t.accepted >= 0.7)
    assert json.loads(json.dumps(many.to_dict()))["archetypes"] == many.archetypes


def test_refuses_what_cannot_be_tuned(town):
    with pytest.raises(ew.NotEnoughUsers, match="at least 50"):
        ew.tune(town, seeds=49, rng=np.random.default_rng(1))
    with pytest.raises(ew.NotEnoughUsers, match="at least 20"):
        ew.tune(town.of_users(np.arange(12)), seeds=100, rng=np.random.default_rng(1))
    for wrong in ({"acceptance": 0}, {"k": 1}, {"eps0": 0}, {"theta": 0}):
        with pytest.raises(ew.InvalidParameter, match=f"`{next(iter(wrong))}`"):
            ew.tune(town, seeds=100, rng=np.random.default_rng(1), **wrong)


def test_the_manifest_tells_the_number_of_groups(town):
    fakes = ew.generate_fakes(
        town, preset="deniable", kappa=4, k=16, m_min=2, delta_target=1e-3, rng=np.random.default_rng(1)
    )
    assert fakes.preset.archetypes == 4
    pool = ew.publish(fakes, laboratory=True, rng=np.random.default_rng(2))
    assert pool.provenance["parameters"]["archetypes"] == 4
    assert pool.provenance["parameters"]["emission"] == "walk"


def test_command(town, tmp_path):
    ew.write_traces(town, tmp_path / "town.csv")
    call = ["tune", str(tmp_path / "town.csv"), "--seeds", "200", "-k", "20", "--kappa", "4", "--json"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["trials"]
    digit = CliRunner().invoke(app, [*call[:-2], "²", "--json"])  # a digit to Python, and no number
    assert json.loads(digit.stdout.splitlines()[0])["error"]["code"] == "E_PARAM"
    refused = CliRunner().invoke(app, [*call[:3], "10", *call[4:]])
    assert refused.exit_code == 2
    assert json.loads(refused.stdout.splitlines()[0])["error"]["code"] == "E_TOO_FEW"
