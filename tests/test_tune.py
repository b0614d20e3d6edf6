"""Tuning on users of the model: more seeds allow more groups, and what is predicted is what other people give."""

import json
import shlex

import naive
import numpy as np
import pytest
from typer.testing import CliRunner

import elsewhere as ew
from elsewhere.cli import app
from elsewhere.deny import groups_of, sampler_of, walk_of
from elsewhere.evaluation.agreement import class_agreement
from elsewhere.learnt import learn
from elsewhere.presets import preset_of
from elsewhere.privacy.deniability import release_probability
from elsewhere.privacy.mechanism import Mechanism, release
from elsewhere.tuning import search
from elsewhere.tuning.rehearsal import Codes, Drawn, Rehearsal, part_in_bucket, passing, weighed

K, SEEDS = 20, 200
OPTIONS = {"kappa": 4, "k": K, "m_min": 2}


def lab(seed=1):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def town():
    return ew.simulate_town(users=160, locations=60, step_minutes=60, rng=lab(3)).traces


class TestPassing:
    @pytest.mark.parametrize(("p", "seeds", "k", "eps0"), [(0.2, 60, 10, 1.0), (0.05, 80, 6, 0.3), (0.9, 12, 12, 2.0)])
    def test_is_the_mean_over_the_seeds_to_come(self, p, seeds, k, eps0):
        expected = [naive.pass_chance(p, seeds, k, eps0), 0.0, naive.pass_chance(0.0, seeds, k, eps0)]
        assert passing(np.array([p, -1.0, 0.0]), seeds, k=k, eps0=eps0) == pytest.approx(expected, rel=1e-9)

    def test_all_in_one_bucket(self):
        assert passing(np.ones(2), 200, k=50, eps0=1.0) == pytest.approx(release_probability(200, k=50, eps0=1))

    @pytest.mark.parametrize("coded", [True, False])
    def test_few_people_do_not_frighten(self, coded):
        # groups of known parts of the people: one prediction's error is chance, not the fewness of the stand-ins
        part, people, rng = np.array([0.13, 0.11, 0.09, 0.12, 0.15, 0.1, 0.14, 0.16]), 100, lab(5)
        truth = float(part @ [naive.pass_chance(p, SEEDS, K, 1.0) for p in part])
        found, plain = [], []
        for _ in range(300):
            sizes = [rng.multinomial(people, part) for _ in range(2)]
            drawn = []
            for size in sizes:
                own = np.repeat(np.arange(8), size)  # one fake of each
                codes = Codes(np.eye(8, dtype=bool)[own], own, size) if coded else None
                drawn.append(Drawn(size[own], people, np.zeros(people), np.zeros(people), codes))
            share, weight = part_in_bucket(drawn)
            found.append(weight @ passing(share, SEEDS, k=K, eps0=1.0) / weight.sum())
            scaled = np.round(np.concatenate([d.count for d in drawn]) * SEEDS / people).astype(int)
            plain.append(np.mean([release_probability(int(c), k=K, eps0=1.0) for c in scaled]))
        assert abs(np.mean(found) - truth) < np.std(found)
        assert abs(np.mean(found) - truth) < abs(np.mean(plain) - truth)

    def test_a_bucket_is_as_large_as_its_codes(self):
        size, own = np.array([6, 3, 1]), np.array([0, 1, 2, 0])
        same = np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)
        drawn = Drawn(np.array([6, 4, 4, 10]), 10, np.zeros(4), np.zeros(4), Codes(same, own, size))
        share, weight = part_in_bucket([drawn])
        assert share[3] == pytest.approx(1)
        assert share[0] + share[1] == pytest.approx(1)
        assert 1 / 3 < share[0] < 0.6  # drawn towards an equal share, not all the way
        assert weight == pytest.approx(share[0] / 0.6 * (own == 0) + np.r_[0, weight[1:3], 0])
        nobody = Drawn(np.array([0, 0]), 10, np.zeros(2), np.zeros(2))
        assert part_in_bucket([nobody])[0].tolist() == [-1.0, -1.0]


@pytest.fixture(scope="module")
def many():
    """A town of which 150 people are learnt from and the others come in tens of sets."""
    return ew.simulate_town(users=4000, locations=60, step_minutes=60, rng=lab(3)).traces


@pytest.mark.parametrize("changed", [{"archetypes": 8}, {"emission": "window", "lam": 0.15, "eta": 0.1}])
def test_the_prediction_is_what_release_gives_among_fresh_seeds(many, changed):
    settings = preset_of("deniable", k=K, m_min=2, **changed)
    people = many.select(np.arange(150))
    learnt = ew.learn(people, settings, kappa=4, rng=lab())
    walk = walk_of(learnt, people, lab()) if settings.emission == "walk" else None
    known = {} if walk is None else {(settings.emission, 8): groups_of(learnt, settings, people, lab())}
    # the same sampler for all: twelve sets of stand-ins make six predictions ...
    sets = [many.select(np.arange(150 + 100 * i, 250 + 100 * i)) for i in range(12)]
    drawn = [Rehearsal(learnt, people, learnt.translate(others), walk, 7, known)(settings) for others in sets]
    told = [weighed(drawn[i : i + 2], settings, SEEDS) for i in range(0, 12, 2)]
    # ... and twelve sets of seeds are released through the gate
    tau = learnt.tau(people)
    groups = next(iter(known.values()), None)
    sampler = sampler_of(learnt, settings, tau, people, lab(8), archetypes=groups, walk=walk)
    accepted, kept = [], []
    for i in range(12):
        seeds = learnt.translate(many.select(np.arange(1400 + SEEDS * i, 1400 + SEEDS * (i + 1)))).r
        mechanism = Mechanism.of(sampler, seeds, tau, k=K, gamma=settings.gamma, eps0=settings.eps0)
        out = release(mechanism, 500, floor=0.01, entropy=i, laboratory=True)
        accepted.append(out.passed / out.attempts)
        kept.append(class_agreement(out.r, seeds, out.seed, learnt.classes.label).kept)
    for predicted, seen in (([t.accepted for t in told], accepted), ([t.kept for t in told], kept)):
        # both are chance: of those who stand in, of those who are seeds
        tolerance = 4 * np.sqrt(np.var(predicted) / len(predicted) + np.var(seen) / len(seen))
        assert abs(np.mean(predicted) - np.mean(seen)) < tolerance
        assert tolerance < 0.1


def test_one_group_tells_nothing_and_always_passes(town):
    rehearsal = Rehearsal.of(
        town.of_users(np.arange(80)), town.of_users(np.arange(80, 160)), preset_of("deniable", m_min=2), 4, lab()
    )
    settings = preset_of("deniable", m_min=2, archetypes=1)
    trial = weighed([rehearsal(settings)], settings, 200)
    assert trial.accepted == pytest.approx(release_probability(200, k=50, eps0=1.0))
    assert abs(trial.kept) < 4 * 0.3 / np.sqrt(1024)  # agreement is in 0 .. 1 and scatters by less than .3
    assert trial == weighed([rehearsal(settings)], settings, 200)


@pytest.mark.parametrize("emission", ["allotted", "archetypes"])
def test_more_seeds_allow_more_groups(town, emission):
    few, many = (ew.tune(town, seeds=n, acceptance=0.7, emission=emission, rng=lab(), **OPTIONS) for n in (40, 400))
    assert few.archetypes < many.archetypes
    for found in (few, many):
        assert found.met
        assert found.chosen.accepted >= 0.7
        assert found.chosen.kept == max(t.kept for t in found.trials if t.accepted >= 0.7)
    assert json.loads(json.dumps(many.to_dict()))["archetypes"] == many.archetypes


def test_windows_are_tempered_until_enough_passes(town):
    strict, lax = (
        ew.tune(town, seeds=SEEDS, acceptance=wish, emission="window", rng=lab(), **OPTIONS) for wish in (0.9, 0.4)
    )
    assert strict.archetypes is None
    assert strict.chosen.accepted >= 0.9 > lax.chosen.accepted >= 0.4
    assert strict.chosen.kept < lax.chosen.kept
    assert strict.settings == {"emission": "window", "lam": strict.lam, "eta": strict.eta, "m_min": 2, "k": K}
    again = ew.tune(town, seeds=SEEDS, acceptance=0.9, emission="window", rng=lab(), **OPTIONS)
    assert again == strict


def test_the_settings_are_for_generate_and_progress_ends(town):
    steps = []
    found = ew.tune(town, seeds=80, rng=lab(), progress=lambda *at: steps.append(at), k=16, kappa=4, m_min=2)
    total = steps[-1][1]
    assert steps[-1] == (total, total)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert found.emission == "walk"
    fakes = ew.generate_fakes(
        town, preset="deniable", kappa=found.kappa, delta_target=1e-3, rng=lab(), **found.settings
    )
    assert {name: getattr(fakes.preset, name) for name in found.settings} == found.settings
    assert found.words == (
        f"--kappa 4 --set emission=walk --set archetypes={found.archetypes} --set strength={found.strength} "
        f"--set lam={found.lam} --set m_min=2 --set k=16"
    )


def test_a_wish_that_nothing_meets_is_said(town):
    # with the intersection folded in, a fake that shares a place with its seed never passes
    found = ew.tune(town, seeds=K, acceptance=1.0, emission="archetypes", fold_intersection=True, rng=lab(), **OPTIONS)
    assert not found.met
    assert found.chosen.accepted == max(t.accepted for t in found.trials) < 1


def test_refuses_what_cannot_be_tuned(town):
    with pytest.raises(ew.NotEnoughUsers, match="at least 50"):
        ew.tune(town, seeds=49, rng=lab())
    with pytest.raises(ew.NotEnoughUsers, match="at least 20"):
        ew.tune(town.of_users(np.arange(12)), seeds=100, rng=lab())
    with pytest.raises(ew.NotEnoughUsers, match="`m_min`"):
        Rehearsal.of(town, town.of_users([0]), preset_of("deniable"), 4, lab())
    for wrong in (
        {"acceptance": 0},
        {"k": 1},
        {"eps0": 0},
        {"theta": 0},
        {"strength": 11},
        {"emission": "loud"},
        {"kappa": "many"},
        {"preset": "product"},
    ):
        with pytest.raises(ew.InvalidParameter, match=f"`{next(iter(wrong))}`") as caught:
            ew.tune(town, seeds=100, rng=lab(), **wrong)
        assert caught.value.code == "E_PARAM"


def test_the_manifest_tells_the_number_of_groups(town):
    fakes = ew.generate_fakes(town, preset="deniable", kappa=4, k=16, m_min=2, delta_target=1e-3, rng=lab())
    assert fakes.preset.archetypes == 3
    pool = ew.publish(fakes, laboratory=True, rng=lab(2))
    assert pool.provenance["parameters"]["archetypes"] == 3
    assert pool.provenance["parameters"]["emission"] == "walk"


def test_command(town, tmp_path):
    ew.write_traces(town, tmp_path / "town.csv")
    call = ["tune", str(tmp_path / "town.csv"), "--seeds", "200", "-k", "20", "--kappa", "4", "--step", "1h"]

    def answered(*words, changed=call):
        return CliRunner().invoke(app, [*changed, *words])

    done = answered("--emission", "archetypes", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["trials"]
    assert told["emission"] == "archetypes"
    assert told["settings"]["k"] == 20
    shown = answered("--emission", "archetypes", "--set", "m_min=3")
    assert "chosen" in shown.stdout
    assert "--preset deniable --kappa 4 --set emission=archetypes --set archetypes=" in shown.stdout
    assert shown.stdout.rstrip().endswith("--set m_min=3 --set k=20")

    def refused(result):
        assert result.exit_code == 2
        return json.loads(result.stdout.splitlines()[0])["error"]["code"]

    assert (
        refused(answered("--json", changed=["²" if word == "4" else word for word in call])) == "E_PARAM"
    )  # a digit to Python, and no number
    assert refused(answered("--json", changed=[*call[:3], "10", *call[4:]])) == "E_TOO_FEW"
    for wrong in (["--emission", "loud"], ["--set", "strength=11"], ["--set", "acceptance=0.5"], ["--set", "x=1"]):
        assert refused(answered(*wrong, "--json")) == "E_PARAM"


def test_what_tune_says_can_be_typed(tmp_path):
    some, others = tmp_path / "some people.csv", tmp_path / "others.csv"
    for path, rng in ((others, lab(3)), (some, lab(4))):
        people = ew.simulate_town(users=100, locations=40, step_minutes=60, rng=rng).traces
        ew.write_traces(people, path, columns={"user": "who is it", "time": "when", "lat": "y", "lon": "x"})
    reading = ["--step", "1h", "--columns", "user=who is it,time=when,lat=y,lon=x", "--min-coverage", "0.6"]
    gate = ["--seeds", "50", "-k", "20", "--eps0", "2.5", "--emission", "walk", "--kappa", "4", "--set", "m_min=2"]
    advised = CliRunner().invoke(app, ["tune", str(others), *gate, *reading], env={"COLUMNS": "60"})
    assert advised.exit_code == 0, advised.output
    (line,) = [line for line in advised.stdout.splitlines() if "use: elsewhere synthesize INPUT -o DIR " in line]
    said = shlex.split(line.split("use: elsewhere ")[1])
    names = {"INPUT": str(some), "DIR": str(tmp_path / "out")}
    words = [names.get(word, word) for word in said]

    done = CliRunner().invoke(app, [*words, "--no-report", "--json"])

    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    used = manifest["provenance"]["parameters"]
    assert (used["k"], used["eps0"], used["emission"], used["m_min"]) == (20, 2.5, "walk", 2)
    told = CliRunner().invoke(app, ["tune", str(others), *gate, *reading, "--json"])
    settings = json.loads(told.stdout)["settings"]
    assert {name: used[name] for name in settings} == settings
    assert manifest["provenance"]["kappa"] == 4
    assert (tmp_path / "out" / "fakes.csv").read_text().startswith("who is it,when,y,x")


def test_what_tune_says_serves_fit_and_generate(tmp_path):
    town = ew.simulate_town(users=160, locations=40, step_minutes=60, rng=lab(3)).traces
    town = ew.Traces(
        town.r,
        town.locations,
        users=[f"u{u}" for u in town.user],
        dates=town.dates,
        step_minutes=town.step_minutes,
        start=town.start,
        tz=town.tz,
    )
    for name, users in (("others", np.arange(80)), ("some", np.arange(80, 160))):
        ew.write_traces(town.of_users(users), tmp_path / f"{name}.csv")
    places = zip(town.locations.lat.tolist(), town.locations.lon.tolist(), strict=True)
    (tmp_path / "places.csv").write_text("\n".join(["lat,lng", *(f"{a!r},{b!r}" for a, b in places)]) + "\n")
    reading = ["--step", "1h", "--locations", str(tmp_path / "places.csv")]
    gate = ["--seeds", "80", "-k", "20", "--eps0", "2.5", "--kappa", "4", "--set", "m_min=2", "--json"]
    advised = CliRunner().invoke(app, ["tune", str(tmp_path / "others.csv"), *gate, *reading])
    assert advised.exit_code == 0, advised.output
    told = json.loads(advised.stdout)
    words = ["--preset", "deniable", *shlex.split(told["words"]), *reading]

    def made(*command):
        done = CliRunner().invoke(app, [*map(str, command), *words, "--json"])
        assert done.exit_code == 0, done.output

    made("fit", tmp_path / "others.csv", "-o", tmp_path / "model")
    made("generate", tmp_path / "some.csv", "--model", tmp_path / "model", "-o", tmp_path / "fakes")

    assert list(ew.Learnt.load(tmp_path / "model").carried.groups) == [told["archetypes"]]
    used = ew.Fakes.load(tmp_path / "fakes").preset
    assert {name: getattr(used, name) for name in told["settings"]} == told["settings"]
    assert used.emission == "walk"


def test_tune_gives_no_advice_that_the_run_would_refuse(town, tmp_path):
    ew.write_traces(town, tmp_path / "town.csv")
    words = ["tune", str(tmp_path / "town.csv"), "--seeds", "200", "-k", "10", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    said = json.loads(done.stdout)["error"]
    assert said["code"] == "E_PARAM"
    assert said["message"].startswith("-k must be at least 18 for delta <= 1e-06")


@pytest.mark.parametrize("command", ["tune", "synthesize", "fit", "generate"])
def test_a_parameter_given_twice_is_refused(tmp_path, command):
    more = ["--seeds", "60"] if command == "tune" else ["-o", str(tmp_path / "out")]
    for option, word in (
        (["-k", "20"], "k=21"),
        (["--eps0", "2.5"], "eps0=1"),
        (["--emission", "walk"], "emission=window"),
    ):
        done = CliRunner().invoke(app, [command, str(tmp_path / "no.csv"), *more, *option, "--set", word, "--json"])
        assert done.exit_code == 2
        assert json.loads(done.stdout)["error"]["code"] == "E_PARAM"
        assert f"{' '.join(option)} and --set {word}" in json.loads(done.stdout)["error"]["message"]


def test_k_is_an_option_and_a_parameter_of_both_commands(town, tmp_path):
    ew.write_traces(town, tmp_path / "town.csv")
    small = ["--kappa", "4", "--set", "m_min=2", "--step", "1h"]
    for i, way in enumerate((["-k", "4"], ["--set", "k=4"], ["-k", "4", "--set", "k=4"])):
        words = [str(tmp_path / "town.csv"), "-o", str(tmp_path / f"out{i}"), "--no-report", "--set", "c_min=1", *way]
        done = CliRunner().invoke(app, ["synthesize", *words, *small])
        assert done.exit_code == 0, done.output
        manifest = json.loads((tmp_path / f"out{i}" / "manifest.json").read_text())
        assert manifest["provenance"]["parameters"]["k"] == 4
    told = []
    for way in (["-k", "20"], ["--set", "k=20"]):
        words = [str(tmp_path / "town.csv"), "--seeds", "200", "--emission", "archetypes", "--json"]
        told.append(json.loads(CliRunner().invoke(app, ["tune", *words, *way, *small]).stdout))
    assert told[0] == told[1]
    assert told[0]["k"] == 20


@pytest.mark.parametrize("kappa", [4, "auto"])
def test_a_person_of_many_days_is_learnt_from_once(town, monkeypatch, kappa):
    seen = []
    monkeypatch.setattr(search, "learn", lambda people, *a, **named: seen.append(people) or learn(people, *a, **named))

    def stopped(people, others, *_):
        seen.append(people)
        raise InterruptedError

    monkeypatch.setattr(search.Rehearsal, "of", stopped)
    several = town.select(np.concatenate([np.arange(town.U), np.full(300, 7), np.full(300, 8)]))
    for draw in range(4):  # the two of them are in some halves
        with pytest.raises(InterruptedError):
            ew.tune(several, seeds=SEEDS, **{**OPTIONS, "kappa": kappa}, rng=lab(draw))
    assert len(seen) == (8 if kappa == "auto" else 4)
    assert all(np.bincount(people.user).max() == 1 for people in seen)


def test_the_least_stock_predicts_what_a_larger_one_does(town, monkeypatch):
    # the run's stock grows with its fakes, the rehearsal's does not (docs/deniable.md)
    settings = preset_of("deniable", archetypes=6, k=K, m_min=2)
    one, other = np.array_split(lab(2).permutation(town.U), 2)
    rehearsal = Rehearsal.of(town.of_users(np.sort(one)), town.of_users(np.sort(other)), settings, 4, lab())
    found, error = [], 0.0
    for stock in (20_000, 100_000):
        monkeypatch.setattr("elsewhere.synthesis.deniable.walk.LEAST_STOCK", stock)
        drawn = rehearsal(settings)
        found.append(weighed([drawn], settings, SEEDS))
        error += drawn.kept.var() / len(drawn.kept)
    # four standard errors of the difference: a stock of 500 walks keeps .025 less, and would fail
    assert abs(found[0].kept - found[1].kept) < 4 * np.sqrt(error) < 0.024
    assert abs(found[0].accepted - found[1].accepted) < 0.03
