"""The stairs: presets, roles, fakes that pass their tests, and what is refused."""

import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import naive
import numpy as np
import pytest

import elsewhere as ew
from elsewhere.run.attempts import LifeModel, WalkModel, learn_days
from elsewhere.run.model import FittedModel
from elsewhere.run.roles import model_days, split_users
from elsewhere.settings import PRESETS, Preset, preset_of

# explicit `kappa` with `c_min` 5 on a small town mostly leaves fewer classes, and says so
pytestmark = [pytest.mark.filterwarnings("ignore:.* classes instead of"), pytest.mark.usefixtures("few_draws")]

LABORATORY = {"kappa": 8, "m_min": 2, "k": 3, "class_draws": 1}


@pytest.fixture(scope="module")
def town():
    return ew.simulate_town(users=80, locations=120, rng=np.random.default_rng(3)).traces


def lab(seed=1):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def product(town):
    return ew.generate_fakes(town, per_seed=3, rng=lab(), **LABORATORY)


@pytest.fixture(scope="module")
def paper(town):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ew.generate_fakes(town, preset="paper", per_seed=3, kappa=8, rng=lab())


class TestPresets:
    def test_paper_field_by_field(self):
        assert PRESETS["paper"].parameters() == {
            "periods": 1,
            "class_periods": None,
            "method": "kmeans",
            "class_draws": 1,
            "c_min": 1,
            "m_min": 1,
            "epsilon": 0.01,
            "n_min": 5,
            "sampler": "viterbi",
            "par_c": 0.25,
            "par_m": 0.75,
            "par_l": 1.0,
            "par_v": 4.0,
            "subsample": "per-fake",
            "merge": "reach",
            "par_s": 0.1,
            "par_i": 0,
            "par_d": 0.1,
            "k": 2,
            "intersection": "set",
            "against": "own",
            "min_sim": None,
            "alternates": "all",
            "max_tries": 50,
            "choose": "likelihood",
            "temp": 1.0,
        }
        assert PRESETS["paper"].reading == {"places": "merge"}

    def test_product_field_by_field(self):
        product = PRESETS["product"].parameters()
        expected = {
            "periods": 4,
            "class_periods": 12,
            "method": "roles",
            "class_draws": 20,
            "balance": 1.0,
            "shift": 120.0,
            "c_min": 5,
            "m_min": 5,
            "epsilon": 0.01,
            "par_s": 0.1,
            "par_i": 0,
            "par_d": 0.1,
            "k": 10,
            "against": "all",
            "alternates": "split",
            "choose": "uniform",
        }
        assert {name: product[name] for name in expected} == expected

    @pytest.mark.parametrize(
        "wrong",
        [
            {"par_c": 1.0},
            {"par_c": -0.1},
            {"par_m": 1.0},
            {"par_v": 0.5},
            {"par_l": 1.5},
            {"par_s": float("nan")},
            {"par_i": -1},
            {"par_i": 0.5},
            {"par_d": -1},
            {"k": 0},
            {"eps": 0.0},
            {"eps": float("nan")},
            {"days": 0},
            {"max_tries": 0},
            {"sampler": "magic"},
            {"c_min": 0},
            {"m_min": 0},
            {"shift": -1},
            {"shift": 1000},
            {"balance": 1.5},
            {"periods": 0},
            {"choose": "best"},
            {"temp": 0.0},
        ],
    )
    def test_a_parameter_out_of_range_is_named(self, town, wrong):
        name = next(iter(wrong))
        preset = next(p.name for p in PRESETS.values() if name in p.parameters())
        with pytest.raises(ew.errors.InvalidParameter) as refused:
            ew.generate_fakes(town, preset=preset, rng=lab(), **wrong)
        assert (refused.value.code, refused.value.parameter) == ("E_PARAM", name)

    @pytest.mark.filterwarnings("ignore:`m_min` = 1", "ignore:.*alternates are seeds")
    def test_classes_of_a_graph_of_order_1_may_be_given(self):
        people = ew.simulate_town(users=12, locations=12, rng=lab(3)).traces
        graph = ew.semantic_graph(ew.fit_profiles(people), order=1, rng=lab())
        classes = ew.semantic_clustering(graph, kappa=3, method="kmeans", rng=lab())
        fakes = ew.generate_fakes(people, preset="paper", classes=classes, par_s=1.0, par_i=72, rng=lab())
        assert fakes.learnt.classes is classes

    def test_order_1_makes_other_classes_from_the_graph_of_the_slow_twin(self, few_draws, monkeypatch):
        monkeypatch.setattr("elsewhere.paper.semantic_clustering.STARTS", few_draws["paper.semantic_clustering.STARTS"])
        # everybody stays at one place for a while and goes to and fro between two others: some stay longer, some less
        days = [
            [place + 3 * i for place in ([0] * stay + [1, 2] * 6)[:12]] for i, stay in enumerate((4, 4, 4, 7, 7, 7))
        ]
        profiles = ew.fit_profiles(ew.Traces(days, ew.Locations(n=18)))
        graphs = {n: ew.semantic_graph(profiles, order=n, rng=lab()) for n in (0, 1)}
        kinds = {
            n: ew.semantic_clustering(graphs[n], kappa=3, method="kmeans", rng=lab()).label.reshape(6, 3)
            for n in (0, 1)
        }

        np.testing.assert_allclose(graphs[1].w, naive.first_order_graph(days, 18), atol=1e-9)
        # how people move tells where they stay, how they share out their time does not
        assert all(len(set(column)) == 1 for column in kinds[1].T.tolist())
        assert len(set(kinds[1][0])) == 3
        assert len(set(kinds[0][:, 0])) == 2

    @pytest.mark.parametrize(("given", "near"), [("par_sx", "par_s"), ("per_sed", "per_seed"), ("m_minimum", "m_min")])
    def test_an_unknown_parameter_is_named_with_the_nearest(self, town, given, near):
        with pytest.raises(ew.errors.InvalidParameter, match=f"perhaps `{near}`") as refused:
            ew.generate_fakes(town, rng=lab(), **{given: 1})
        assert (refused.value.code, refused.value.parameter) == ("E_PARAM", given)

    def test_an_unknown_preset_is_refused(self, town):
        with pytest.raises(ew.errors.InvalidParameter) as refused:
            ew.generate_fakes(town, preset="best", rng=lab())
        assert refused.value.parameter == "preset"

    @pytest.mark.parametrize("name", list(PRESETS))
    def test_what_a_preset_does_not_read_it_does_not_have(self, town, name):
        everything = {n: v for preset in PRESETS.values() for n, v in preset.parameters().items()}
        for parameter in everything.keys() - PRESETS[name].parameters().keys():
            with pytest.raises(ew.errors.InvalidParameter) as refused:
                ew.generate_fakes(town, preset=name, rng=lab(), **{parameter: everything[parameter]})
            assert (refused.value.code, refused.value.parameter) == ("E_NOT_READ", parameter)
            asked_of_all = parameter in ("m_min", "c_min", "k")  # 1, 1 and 0 where nothing is asked
            assert hasattr(PRESETS[name], parameter) == asked_of_all

    @pytest.mark.parametrize("name", list(PRESETS))
    def test_a_preset_comes_back_from_its_parameters_and_its_file(self, name):
        assert preset_of(name, **PRESETS[name].parameters()) == PRESETS[name] == Preset.of_file(PRESETS[name].to_file())


class TestProduct:
    def test_no_fake_shares_a_place_with_its_seed(self, town, product):
        for fake, seed in zip(product.r, town.r[product.seed], strict=True):
            assert not set(fake.tolist()) & set(seed.tolist())

    @pytest.mark.parametrize("named", [False, True], ids=["with coordinates", "names alone"])
    def test_fakes_visit_only_places_that_enough_users_share(self, town, named):
        places = ew.Locations(n=town.R, names=[f"n{i}" for i in range(town.R)]) if named else town.locations
        people = ew.Traces(town.r, places, users=town.user, step_minutes=town.step_minutes)
        m_min = 5
        fakes = ew.generate_fakes(people, rng=lab(), **{**LABORATORY, "m_min": m_min})
        # those who visit the place themselves: not those whose rare place it stands for
        visitors = np.array([len(np.unique(town.user[np.any(town.r == r, axis=1)])) for r in range(town.R)])
        assert np.any((visitors > 0) & (visitors < m_min))
        assert visitors[np.unique(fakes.r)].min() >= m_min

    def test_seeds_and_alternates_are_different_users(self, town):
        roles = split_users(town, PRESETS["product"], None, lab())
        seeds, others, model = (set(t.labels) for t in (roles.seeds, roles.alternates, roles.model))
        assert not seeds & others
        assert model == seeds
        assert len(others) == round(0.3 * town.U)
        assert "alternates" in roles.notes[0]

    def test_the_model_has_not_met_the_alternates(self, town, product):
        assert product.learnt.model.n_users == town.U - round(0.3 * town.U)

    def test_every_verdict_passed(self, product):
        assert len(product.verdicts) == len(product)
        assert all(v.passed and v.shared == 0 and v.aligned == 0 for v in product.verdicts)
        assert product.tally["passed"] == len(product)

    def test_likelihood_is_that_of_the_model(self, town, product):
        tau = product.learnt.tau(town)
        np.testing.assert_allclose(product.loglik, product.learnt.model.loglik(product.r, tau), rtol=1e-9)

    def test_attempts_are_counted_per_seed(self, town, product):
        assert product.attempts.shape == (len(town),)
        assert product.attempts.sum() == product.tally["tested"]
        assert (product.attempts[product.seed] >= 1).all()


class TestPaper:
    def test_warns_that_alternates_are_seeds_and_places_may_be_one_users(self, town):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            ew.generate_fakes(town, preset="paper", kappa=8, rng=lab())
        words = " ".join(str(w.message) for w in said)
        assert "(E53)" in words
        assert "(E31)" in words

    def test_says_whether_it_has_as_many_classes_as_the_paper(self, town, paper, product):
        def classes(fakes):
            return [note for note in fakes.notes if "semantic classes" in note]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            auto = ew.generate_fakes(town, preset="paper", rng=lab())
            fewer = ew.generate_fakes(town, preset="paper", c_min=10, rng=lab())

        places = len(np.unique(town.r))
        assert (auto.kappa, places >= 100) == (20, True)
        assert classes(auto) == ["20 semantic classes, as many as in the paper; `kappa` sets another number (E29)."]
        assert fewer.kappa <= places // 10
        assert classes(fewer) == [
            f"{fewer.kappa} semantic classes, not the 20 of the paper: {places} visited places allow no more (E29)."
        ]
        # a number that was asked for, and classes by roles, are no news
        assert classes(paper) == classes(product) == []

    def test_never_at_the_seeds_place(self, town, paper):
        assert (paper.r != town.r[paper.seed]).all()

    def test_claims_no_deniability(self, paper):
        pool = ew.publish(paper, per_seed=3, laboratory=True, rng=lab())
        assert "deniab" not in str(pool.files()["manifest.json"]).lower()


class TestSameEntropySameBytes:
    def test_whatever_the_workers(self, town, product):
        for kind in (ThreadPoolExecutor, ProcessPoolExecutor):
            with kind(2) as pool:
                again = ew.generate_fakes(town, per_seed=3, rng=lab(), executor=pool, **LABORATORY)
            assert np.array_equal(again.r, product.r)
            assert np.array_equal(again.seed, product.seed)
            assert np.array_equal(again.loglik, product.loglik)

    def test_and_other_entropy_other_fakes(self, town, product):
        other = ew.generate_fakes(town, per_seed=3, rng=lab(2), **LABORATORY)
        assert other.r.shape != product.r.shape or not np.array_equal(other.r, product.r)

    def test_the_operating_system_never_repeats_itself(self, town):
        one, two = (ew.generate_fakes(town, **LABORATORY) for _ in range(2))
        assert not one.laboratory
        assert one.r.shape != two.r.shape or not np.array_equal(one.r, two.r)

    def test_more_fakes_per_seed_keep_the_first_ones(self, town, product):
        fewer = ew.generate_fakes(town, per_seed=1, rng=lab(), **LABORATORY)
        first = np.concatenate([[True], product.seed[1:] != product.seed[:-1]])
        shared = np.isin(product.seed[first], fewer.seed)
        assert np.array_equal(product.r[first][shared], fewer.r)


class TestGivenModelAndClasses:
    def test_are_used(self, town):
        learnt = ew.learn(town, preset_of("product", m_min=2, c_min=5, periods=4), kappa=6, rng=lab())
        fakes = ew.generate_fakes(town, classes=learnt.classes, model=learnt.model, rng=lab(), k=3, m_min=2)
        assert fakes.learnt.model is learnt.model
        label = learnt.classes.label
        plain = ew.generate_fakes(town, classes=label, model=learnt.model, rng=lab(), k=3, m_min=2)
        assert plain.learnt.classes.kappa == fakes.learnt.classes.kappa

    def test_of_another_map_are_refused(self, town):
        other = ew.simulate_town(users=30, locations=60, rng=lab()).traces
        learnt = ew.learn(other, preset_of("product", m_min=1), kappa=4, rng=lab())
        with pytest.raises(ew.errors.InvalidParameter) as caught:
            ew.generate_fakes(town, classes=learnt.classes, model=learnt.model, rng=lab())
        assert caught.value.code == "E_MISMATCH"

    def test_of_few_visitors_bring_no_place_that_too_few_share(self, town):
        learnt = ew.learn(town, preset_of("product", m_min=1, periods=4), kappa=6, rng=lab())
        fakes = ew.generate_fakes(town, classes=learnt.classes, model=learnt.model, rng=lab(), k=3, m_min=8)
        assert learnt.model.visitors[np.unique(fakes.r)].min() >= 8

    @pytest.mark.parametrize("preset", ["paper", "product"])
    @pytest.mark.parametrize("before", [1, 3])
    @pytest.mark.filterwarnings("ignore:`alternates=")
    def test_no_fake_is_where_too_few_of_the_models_people_are(self, preset, before, tmp_path):
        # in the model rare places were joined to others: that makes these no place that more people share
        everybody = ew.simulate_town(users=160, locations=150, rng=lab(8)).traces
        people, others = everybody.of_users(np.arange(80)), everybody.of_users(np.arange(80, 160))
        learnt = ew.learn(people, preset_of(preset, m_min=before, periods=4), kappa=6, rng=lab())
        rare = people.visitors() < 8
        assert rare[np.unique(others.r)].any()
        run = {"preset": preset, "m_min": 8, "periods": 4, "k": 3}
        learnt.save(tmp_path / "model")
        for model in (learnt, FittedModel.load(tmp_path / "model")):
            with pytest.raises(ew.errors.InvalidParameter, match=f"learnt with `m_min` = {before}") as refused:
                ew.generate_fakes(others, model=model, rng=lab(), **run)
            assert refused.value.code == "E_MISMATCH"
        for classes in ({}, {"classes": learnt.classes}):
            fakes = ew.generate_fakes(others, model=learnt.model, rng=lab(), **classes, **run)
            assert not rare[np.unique(fakes.r)].any()

    def test_a_model_of_one_period_serves_any_preset_and_others_must_agree(self, town):
        one, two = (ew.learn(town, preset_of("product", m_min=2, periods=T), kappa=6, rng=lab()) for T in (1, 2))
        assert len(ew.generate_fakes(town, classes=one.classes, model=one.model, rng=lab(), k=3, m_min=2))
        with pytest.raises(ew.errors.InvalidParameter, match="`periods`") as caught:
            ew.generate_fakes(town, classes=two.classes, model=two.model, rng=lab(), k=3, m_min=2)
        assert caught.value.code == "E_MISMATCH"

    def test_what_learn_returns_is_a_model(self, town):
        learnt = ew.learn(town, preset_of("product", m_min=3, periods=4), kappa=6, rng=lab())
        fakes = ew.generate_fakes(town, model=learnt, rng=lab(), k=3, m_min=3)
        assert (fakes.learnt.place == learnt.place).all()

    def test_the_product_may_meet_again_whom_it_has_learnt_from(self, town):
        named = ew.Traces(town.r, town.locations, users=[f"person {u}" for u in town.user])
        learnt = ew.learn(named, preset_of("product", m_min=3, periods=4), kappa=6, rng=lab())
        assert len(ew.generate_fakes(named, model=learnt, rng=lab(), k=3, m_min=3)) > 0


class TestOddShapes:
    def test_places_without_coordinates(self, town):
        bare = ew.Traces(town.r, ew.Locations(n=town.R), users=town.user)
        fakes = ew.generate_fakes(bare, rng=lab(), **{**LABORATORY, "m_min": 4})
        assert len(fakes)

    @pytest.mark.parametrize("L", [1, 2])
    def test_very_short_traces(self, L):
        r = lab(6).integers(0, 30, (200, L))
        people = ew.Traces(r, ew.Locations(xy=lab(7).random((30, 2)) * 5), step_minutes=60, start="09:00")
        fakes = ew.generate_fakes(people, kappa=3, rng=lab(), k=3, par_d=1, against="own")
        assert (fakes.r != r[fakes.seed]).all()

    def test_many_periods_and_hour_bounds(self, town):
        for periods in (24, (0, 7, 9.5, 17, 24)):
            assert len(ew.generate_fakes(town, rng=lab(), periods=periods, **LABORATORY))


class TestRefusals:
    def test_one_user_short(self, town):
        with pytest.raises(ew.errors.NotEnoughAlternates, match="at least 14 users"):
            ew.generate_fakes(town.select(np.arange(13)), rng=lab())
        with pytest.raises(ew.errors.NotEnoughAlternates, match="at least 2 users"):
            ew.generate_fakes(town.select([0]), preset="paper", rng=lab())

    def test_given_alternates_must_be_enough_and_nobodys_seed(self, town):
        seeds, rest = town.select(np.arange(50)), town.select(np.arange(50, 80))
        assert len(ew.generate_fakes(seeds, alternates=rest, rng=lab(), **LABORATORY))
        with pytest.raises(ew.errors.NotEnoughAlternates, match="2"):
            ew.generate_fakes(seeds, alternates=rest.select([0]), rng=lab(), **LABORATORY)
        with pytest.raises(ew.ElsewhereError) as caught:
            ew.generate_fakes(town, alternates=rest, rng=lab(), **LABORATORY)
        assert caught.value.code == "E_OVERLAP"

    def test_everybody_the_same(self):
        same = ew.Traces(np.tile([0] * 6 + [1] * 6, (20, 1)), ew.Locations(n=4), step_minutes=120)
        with pytest.raises(ew.ElsewhereError) as caught:
            ew.generate_fakes(same, kappa=2, rng=lab(), k=3, c_min=1, max_tries=5)
        assert caught.value.exit_status in (2, 3)

    def test_one_place(self):
        still = ew.Traces(np.zeros((30, 6), dtype=int), ew.Locations(n=3), step_minutes=240)
        with pytest.raises(ew.errors.InvalidTraces) as caught:
            ew.generate_fakes(still, rng=lab())
        assert caught.value.code == "E_TOO_FEW_PLACES"

    def test_gaps(self, town):
        r = town.r.copy()
        r[:, 3] = -1
        with pytest.raises(ew.errors.InvalidTraces) as caught:
            ew.generate_fakes(town.with_places(r), rng=lab())
        assert caught.value.code == "E_GAPS"

    def test_kappa_beyond_the_places(self, town):
        for kappa in (1, 10_000):
            with pytest.raises(ew.errors.InvalidParameter, match="`kappa`"):
                ew.generate_fakes(town, kappa=kappa, rng=lab(), m_min=2, k=3)

    def test_nothing_passed_says_which_rule(self, town):
        with pytest.raises(ew.errors.NothingPassed, match=r"rejected by: .*differential") as caught:
            ew.generate_fakes(town, rng=lab(), par_d=0, max_tries=2, **LABORATORY)
        assert caught.value.exit_status == 3

    def test_not_traces(self):
        with pytest.raises(ew.errors.InvalidParameter, match="`traces`"):
            ew.generate_fakes(np.zeros((3, 4), dtype=int), rng=lab())
        with pytest.raises(ew.errors.InvalidParameter, match="`rng`"):
            ew.generate_fakes(ew.Traces([[0, 1]], ew.Locations(n=2)), rng=7)


class TestDaysOfTheModel:
    def test_a_user_of_many_days_counts_once(self):
        # 300 days of one of 160 people: whom the model is learnt from are people, not days (E61)
        town = ew.simulate_town(users=160, locations=60, rng=lab(6)).traces
        rows = np.concatenate([np.arange(160), np.full(299, 7)])
        settings = PRESETS["product"].changed(k=16)
        for draw in range(4):
            people = split_users(town.select(rows), settings, None, lab(draw)).model
            assert np.bincount(people.user).max() == 1
        week = ew.simulate_town(users=160, days=3, locations=60, rng=lab(6)).traces
        assert np.bincount(split_users(week, settings, None, lab()).model.user).min() == 3
        others = ew.simulate_town(users=20, locations=60, rng=lab(7)).traces
        for roles in (
            split_users(town.select(rows), settings, others, lab()),
            split_users(town.select(rows), settings.changed(alternates="all"), None, lab()),
        ):
            assert np.bincount(roles.model.user).max() == 1
            # and no note says that days serve the model which do not
            assert any("299 further days of the seed users are no seeds" in note for note in roles.notes)
            assert "the model is learnt from at most 1 day of each user, the median." in roles.notes
        # the paper is reproduced as it is
        for kept in (others, None):
            roles = split_users(town.select(rows), PRESETS["paper"], kept, lab())
            assert len(roles.model) == len(rows)

    def test_the_median_of_days_is_rounded_up_and_a_day_is_any_of_them(self):
        town = ew.simulate_town(users=40, days=3, locations=60, rng=lab(6)).traces
        days = [town.user == u for u in range(40)]
        # half of the people have one day, the others two, one of them three: the median is 1.5
        rows = np.concatenate([np.flatnonzero(mine)[: 1 if u % 2 else 2 + (u == 0)] for u, mine in enumerate(days)])
        drawn = [model_days(town.select(rows), np.arange(40), preset_of("product"), lab(draw))[0] for draw in range(12)]
        assert all(np.bincount(people.user).tolist() == [2, 1] * 20 for people in drawn)
        # a mean would be drawn up by one person of many days
        assert (
            np.bincount(
                model_days(town.select([*rows, *[0] * 500]), np.arange(40), preset_of("product"), lab())[0].user
            ).max()
            == 2
        )
        assert len({people.r[:2].tobytes() for people in drawn}) == 3  # the pairs of three days

    def test_numbers_of_numpy_reach_the_manifest(self, tmp_path):
        town = ew.simulate_town(users=160, locations=60, rng=lab(6)).traces
        given = {"k": np.int64(2), "par_d": np.float64(0.75), "m_min": np.int32(3)}
        fakes = ew.generate_fakes(town, kappa=6, rng=lab(), **given)
        fakes.save(tmp_path / "private")
        ew.publish(fakes, laboratory=True).save(tmp_path / "public")
        told = ew.Pool.load(tmp_path / "public").provenance["parameters"]
        assert (told["k"], told["par_d"]) == (2, 0.75)


def test_work_sent_to_an_executor_shows_nothing_of_the_run(town):
    class Spy(ThreadPoolExecutor):
        shown = ""

        def map(self, work, *items, **options):
            Spy.shown += repr(work)
            return super().map(work, *items, **options)

    with Spy(1) as pool:
        ew.generate_fakes(town, rng=lab(), executor=pool, **LABORATORY)
        ew.semantic_graph(ew.fit_profiles(town.select(np.arange(2))), order=1, rng=lab(), executor=pool)
    assert Spy.shown == "work(Pairs)work(Matching)"


class TestLawOfDays:
    """Which law draws single days: the one that is told least from people's."""

    def test_days_with_a_night_are_lives(self):
        town = ew.simulate_town(users=300, locations=80, rng=lab(4)).traces
        learnt = ew.learn(town, "product", kappa=4, rng=lab(5))
        law, goal = learn_days(town, learnt, lab(6))
        assert isinstance(law, LifeModel)
        days = law.draw(400, lab(7))
        assert days.shape == (400, town.L)
        # people come home: a walk, one step at a time, does not know where that was
        home = [
            np.mean(r[:, 0] == r[:, -1]) for r in (town.r, days, WalkModel.of(town, learnt, lab(6)).draw(400, lab(7)))
        ]
        assert abs(home[1] - home[0]) < 0.1 < abs(home[2] - home[0])
        np.testing.assert_allclose(goal(days, learnt.classes.label).sum(), 1)

    def test_restless_days_without_a_home_are_walks(self):
        rng, grid = lab(8), ew.Locations(xy=np.stack(np.divmod(np.arange(64), 8), axis=1).astype(float))
        at, r = rng.integers(0, 8, (300, 2)), np.empty((300, 30), dtype=np.int64)
        for t in range(30):
            at = np.clip(at + rng.integers(-1, 2, (300, 2)) * (rng.random((300, 1)) < 0.6), 0, 7)
            r[:, t] = at[:, 0] * 8 + at[:, 1]
        people = ew.Traces(r, grid, start="09:00", step_minutes=20)
        law, _ = learn_days(people, ew.learn(people, "product", kappa=3, rng=lab(9)), lab(10))
        assert isinstance(law, WalkModel)


@pytest.mark.parametrize("days", [1, 3])
def test_a_dozen_doors_give_fakes_no_nearer_to_their_seeds_than_strangers_are(days):
    # everybody comes through door 0, where their nights count too, works at a door of their own and lunches at door 1
    rng, people = lab(13), 120
    r = np.zeros((people, days, 24), dtype=np.int64)
    desk = rng.integers(2, 12, people)
    for who in range(people):
        for day in range(days):
            first, last = rng.integers(7, 10), rng.integers(15, 19)
            r[who, day, first:last] = desk[who]
            r[who, day, 12] = 1
            if rng.random() < 0.4:
                r[who, day, rng.integers(13, 15)] = rng.integers(2, 12)
    dates = np.tile(np.datetime64("2024-03-11") + np.arange(days), people)
    log = ew.Traces(
        r.reshape(-1, 24), ew.Locations(n=12), users=np.repeat(np.arange(people), days), dates=dates, step_minutes=60
    )
    fakes = ew.generate_fakes(log, rng=lab(14))
    assert fakes.people >= 0.9 * len(np.unique(log.user[fakes.seed_rows]))
    assert any("as on a map of a dozen places" in note for note in fakes.notes)
    seeds = np.unique(log.user[fakes.seed_rows])
    others = r[np.setdiff1d(np.arange(people), seeds)].reshape(-1, 24 * days).tolist()
    for life in range(fakes.people):
        mine = np.flatnonzero(fakes.life == life) if days > 1 else [life]
        (who,) = set(log.user[fakes.seed[mine]].tolist())
        (most,) = naive.least_similar([r[who].ravel().tolist()], others, 0.05)
        assert fakes.verdicts[mine[0]].sim <= max(0.1, most) + 1e-12
        assert max(0.1, most) > 0.3  # far above the threshold, by which there would be none


def test_taxis_that_cross_everybodys_way_have_fakes():
    rng, grid = lab(11), ew.Locations(xy=np.stack(np.divmod(np.arange(100), 10), axis=1).astype(float))
    at, r = rng.integers(0, 10, (120, 2)), np.empty((120, 72), dtype=np.int64)
    for t in range(72):
        at = np.clip(at + rng.integers(-2, 3, (120, 2)), 0, 9)
        r[:, t] = at[:, 0] * 10 + at[:, 1]
    cabs = ew.Traces(r, grid)
    fakes = ew.generate_fakes(cabs, kappa=3, rng=lab(12))
    assert fakes.people >= 0.9 * len(fakes.seed_rows)
    assert any("as with a taxi" in note for note in fakes.notes)
    others = cabs.r[np.setdiff1d(np.arange(120), fakes.seed_rows)].tolist()
    for fake, seed in zip(fakes.r.tolist(), cabs.r[fakes.seed].tolist(), strict=True):
        (most,) = naive.least_shared([seed], others, 0.05)
        assert len(set(fake) & set(seed)) <= most
