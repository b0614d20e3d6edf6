"""What the audit does not try is held here: attacks on tables, averages of the model, guessed random numbers."""

import hashlib
import json

import numpy as np
import pieces
import pytest

import elsewhere as ew
from elsewhere.cli import app
from elsewhere.evaluation.attack_base import wilson

pytestmark = [pytest.mark.filterwarnings("ignore:.* classes instead of"), pytest.mark.usefixtures("few_draws")]

PRODUCT = {"kappa": 6, "m_min": 3, "c_min": 2, "class_draws": 1, "k": 5}


@pytest.fixture(scope="module")
def published(few_draws):
    return half_published(800, 1, few_draws)


def half_published(half, number, usual):
    """
    A town of which half is published through fakes, the other half is the control; tables of hourly places.

    A risk is that of the product with its `usual` numbers of draws.
    """
    town = ew.simulate_town(users=2 * half, locations=150, rng=np.random.default_rng(number)).traces
    seeds, control = town.of_users(np.arange(half)), town.of_users(np.arange(half, 2 * half))
    few = pieces.change(usual)
    fakes = ew.generate_fakes(seeds, rng=np.random.default_rng(number + 1), workers=2)
    pieces.change(few)
    return {
        "seeds": hourly(seeds.r[np.unique(fakes.seed)]),
        "control": hourly(control.r),
        "fakes": hourly(fakes.r),
    }


def hourly(r):
    """A trace as a row of a table: its place in the middle of each of eight parts of the day."""
    return r[:, 4::9]


# after Anonymeter: main on the people behind the fakes, control on others, risk = (main - control) / (1 - control)


def risk(main, control):
    """The two ends of the risk: main and control attack as far apart, and as close, as they may plausibly be."""
    (hits, n), (other, m) = main, control
    high, low = wilson(hits, n).high, wilson(other, m).low
    least, most = wilson(hits, n).low, wilson(other, m).high
    return (high - low) / (1 - low), (least - most) / (1 - most)


def find_only_matches(fakes, people, columns, rng, guesses=300):
    """How many predicates read off a fake (values of three columns, unique among the fakes) fit exactly one person."""
    hits = tried = 0
    for f in rng.permutation(len(fakes))[:guesses]:
        chosen = rng.choice(fakes.shape[1], columns, replace=False)
        if (fakes[:, chosen] == fakes[f, chosen]).all(axis=1).sum() == 1:
            tried += 1
            hits += (people[:, chosen] == fakes[f, chosen]).all(axis=1).sum() == 1
    return hits, tried


def linked(fakes, people):
    """How many people's halves of the row have one and the same nearest fake, by number of equal columns."""
    half = fakes.shape[1] // 2
    near = [(people[:, None, s] == fakes[None, :, s]).sum(axis=2) for s in (slice(0, half), slice(half, None))]
    best = [(d == d.max(axis=1, keepdims=True)) & (d.max(axis=1, keepdims=True) > 0) for d in near]
    return int(((best[0] & best[1]).sum(axis=1) == 1).sum()), len(people)


def inferred(fakes, people, secret):
    """How many people's `secret` column is that of the fake nearest in all other columns."""
    others = [c for c in range(fakes.shape[1]) if c != secret]
    near = (people[:, None, others] == fakes[None, :, others]).sum(axis=2).argmax(axis=1)
    return int((fakes[near, secret] == people[:, secret]).sum()), len(people)


def a11(fakes, seeds, control):
    """(upper end, lower end) of the three risks."""
    return {name: risk(*pair) for name, pair in guesses(fakes, seeds, control).items()}


def guesses(fakes, seeds, control):
    """(hits, tries) of the three attacks on the people behind the fakes, and on the control."""
    found = {
        "singling out": [
            find_only_matches(fakes, p, 3, np.random.default_rng(3), 2000) for p in (seeds, control[: len(seeds)])
        ],
        "linkability": [linked(fakes, p) for p in (seeds, control)],
        "inference": [np.sum([inferred(fakes, p, s) for s in range(8)], axis=0) for p in (seeds, control)],
    }
    return {name: [tuple(map(int, side)) for side in pair] for name, pair in found.items()}


def test_a11_risk_on_tables(published):
    # points move by .03 from town to town (.00 to .08): here the bar must not be certainly missed, the soak asks more
    found = a11(published["fakes"], published["seeds"], published["control"])

    assert {name: low for name, (_, low) in found.items() if low > 0.05} == {}


@pytest.mark.soak
def test_a11_upper_end_of_the_risk(few_draws):
    # 560 seeds leave the interval wider than the bar (.03 to .09 in the town above): the guesses in three towns of
    # 8000 people are counted together, 8400 seeds
    towns = [guesses(**half_published(4000, number, few_draws)) for number in (1, 11, 21)]
    found = {name: risk(*np.sum([town[name] for town in towns], axis=0).tolist()) for name in towns[0]}
    print({name: tuple(round(float(x), 4) for x in pair) for name, pair in found.items()})

    assert {name: high for name, (high, _) in found.items() if high > 0.05} == {}


def test_a11_sees_a_planted_leak(published):
    # a generator that publishes its seeds
    found = a11(published["seeds"].copy(), published["seeds"], published["control"])

    assert all(low > 0.2 for _, low in found.values()), found


# nothing public holds p_bar or pi_bar


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("released")
    town = ew.simulate_town(users=60, locations=60, rng=np.random.default_rng(3)).traces
    ew.write_traces(town, folder / "traces.csv")
    words = ["synthesize", folder / "traces.csv", "-o", folder / "out", "--kappa", "6", "--set", "m_min=2"]
    with pytest.raises(SystemExit) as stopped:
        app([str(w) for w in [*words, "--set", "k=3", "--set", "c_min=1"]], prog_name="elsewhere")
    assert not stopped.value.code
    return folder


def test_a14_the_folder_to_publish_holds_fakes_places_and_parameters_only(released):
    import pyarrow.parquet as pq

    out = released / "out"
    names = {"fakes.csv", "fakes.parquet", "pool.parquet", "places.parquet", "manifest.json", "report.html"}
    assert {p.name for p in out.iterdir()} == names
    assert (
        {"loc", "lat", "lon"}
        <= set(pq.read_table(out / "places.parquet").column_names)
        <= {"loc", "lat", "lon", "name"}
    )
    assert set(pq.read_table(out / "pool.parquet").column_names) == {"id", "slot", "loc"}
    manifest = (out / "manifest.json").read_text()
    for word in ("p_bar", "pi_bar", "visitors", "visits", "label", "seed_index", "loglik", "attempts"):
        assert word not in manifest


def test_a14_no_public_text_lists_how_often_real_people_visit_places(released):
    real = ew.read_traces(released / "traces.csv")
    shares = np.bincount(real.r.ravel(), minlength=real.R) / real.r.size
    counts = np.bincount(real.r.ravel(), minlength=real.R)
    telling = [r for r in np.argsort(-counts)[:10] if counts[r] > 99]
    public = "".join((released / "out" / name).read_text() for name in ("report.html", "manifest.json"))

    # as a list of shares or of counts: of ten places at most a few such numbers are there by chance
    written = sum(f"{shares[r]:.4f}" in public or f"{shares[r]:.6g}" in public for r in telling)
    assert len(telling) >= 5
    assert written <= 2


# who guesses a seed of the generator, or the clock, regenerates nothing


def lively(r):
    """Rows with several moves: two days at one place may be equal by chance."""
    return {row.tobytes() for row in r if np.count_nonzero(row[1:] != row[:-1]) > 3}


def regenerated(town, pool, rng):
    """Share of the published days that come out again with this generator."""
    mine = lively(pool.to_map(town.locations).r)
    return len(mine & lively(ew.generate_fakes(town, rng=rng, **PRODUCT).r)) / len(mine)


def test_a21_guessing_succeeds_on_a_laboratory_run_and_on_no_other(monkeypatch):
    town = ew.simulate_town(users=80, locations=60, rng=np.random.default_rng(1)).traces
    known = ew.publish(
        ew.generate_fakes(town, rng=np.random.default_rng(5), **PRODUCT), laboratory=True, rng=np.random.default_rng(6)
    )
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.0)
    monkeypatch.setattr("time.time_ns", lambda: 1_700_000_000_000_000_000)
    secret = ew.publish(ew.generate_fakes(town, **PRODUCT))
    guesses = [0, 1, 5, 42, 1_700_000_000]

    # the control of the attack: with the right number everything comes back
    assert regenerated(town, known, np.random.default_rng(5)) == 1.0
    assert [regenerated(town, secret, np.random.default_rng(g)) for g in guesses] == [0.0] * len(guesses)


def test_a21_two_runs_at_one_instant_have_nothing_in_common(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1.0)
    town = ew.simulate_town(users=80, locations=60, rng=np.random.default_rng(1)).traces
    one, two = (ew.publish(ew.generate_fakes(town, **PRODUCT)) for _ in range(2))

    assert not set(one.ids) & set(two.ids)
    assert not lively(one.traces.r) & lively(two.traces.r)


def test_a21_the_manifest_tells_no_entropy(released):
    manifest = json.loads((released / "out" / "manifest.json").read_text())
    text = json.dumps(manifest)
    long_numbers = [w for w in text.replace('"', " ").replace(",", " ").split() if w.isdigit() and len(w) > 12]
    hashes = set(manifest["files"].values())

    assert manifest["provenance"]["reproducible"] is False
    assert long_numbers == []
    for word in ("seed", "entropy", "rng", "state"):
        assert word not in manifest["provenance"]
    assert all(
        hashlib.sha256((released / "out" / name).read_bytes()).hexdigest() in hashes for name in manifest["files"]
    )
