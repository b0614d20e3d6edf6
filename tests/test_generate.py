"""`generate_fakes` and `publish`: fakes that pass their test, the same for any workers, and what is refused."""

import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import naive
import numpy as np
import pytest

import elsewhere as ew
from elsewhere.run.publish import links_file, publish_with_links

pytestmark = pytest.mark.filterwarnings("ignore:`alternates=")
COLUMNS = ("user", "start", "end", "place")


def lab(seed=1):
    return np.random.default_rng(seed)


def columns(visits):
    return [getattr(visits, name).tolist() for name in COLUMNS]


@pytest.fixture(scope="module")
def town():
    return ew.simulate_town(users=80, days=4, locations=80, rng=lab(3))


@pytest.fixture(scope="module")
def lives(town):
    return ew.generate_fakes(town.visits, per_seed=2, k=3, rng=lab())


@pytest.fixture(scope="module")
def single_days():
    return ew.simulate_town(users=60, locations=60, rng=lab(3)).traces


@pytest.fixture(scope="module")
def paper(single_days):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ew.generate_fakes(single_days, method="paper", per_seed=3, kappa=6, rng=lab())


class TestLives:
    def test_seven_of_ten_people_are_seeds_and_have_their_lives_beside_their_verdicts(self, town, lives):
        assert len(lives.seeds) == round(0.7 * town.visits.U)
        assert set(lives.seed_of_life) <= set(lives.seeds)
        assert np.bincount(lives.seed_of_life).max() <= 2
        assert len(lives) == lives.visits.U == len(lives.verdicts) == lives.tally["passed"]
        assert all(verdict.passed for verdict in lives.verdicts)
        assert lives.attempts.shape == (town.visits.U,)
        assert lives.attempts.sum() == lives.tally["tested"] >= len(lives)
        assert np.flatnonzero(lives.attempts).tolist() == lives.seeds.tolist()
        assert lives.visits.locations == town.visits.locations
        assert lives.r.size == 0

    def test_given_alternates_make_everybody_a_seed_whatever_their_map(self, town, lives):
        some, others = town.visits.of_users(np.arange(50)), town.visits.of_users(np.arange(50, 80))
        kept = np.unique(others.place)
        moved = others.replace(place=np.searchsorted(kept, others.place), locations=others.locations.select(kept))
        made = [ew.generate_fakes(some, alternates=each, k=3, rng=lab()) for each in (others, moved)]
        assert made[0].seeds.tolist() == list(range(50))
        assert columns(made[0].visits) == columns(made[1].visits)

    def test_of_slots_they_are_in_slots_too(self, town, lives):
        slots = town.traces
        made = ew.generate_fakes(slots, k=3, rng=lab())
        assert made.r.shape == (len(made.seed), slots.L)
        assert made.life.tolist() == sorted(made.life)
        assert np.array_equal(slots.user[made.seed], made.seed_of_life[made.life])
        # a row is where the life is on that day, slot by slot
        v = made.visits
        for row in range(0, len(made.r), 17):
            day = slots.dates[made.seed[row]].astype(int)
            for slot in range(slots.L):
                when = day * 86400 + (slot + 0.5) * 1200
                there = np.flatnonzero((v.user == made.life[row]) & (v.start <= when))
                assert made.r[row, slot] == v.place[there[-1]]

    def test_slots_without_dates_and_of_a_part_of_the_day(self, town):
        day = ew.Traces(town.traces.r[::4, 24:54], town.traces.locations, users=town.traces.users[::4], start="08:00")
        made = ew.generate_fakes(day, k=3, rng=lab())
        assert made.r.shape == (len(made), 30)
        assert np.array_equal(made.seed, made.seed_of_life)
        assert made.r.min() >= 0

    def test_where_nothing_passes_it_says_so(self):
        day = np.arange(40)[:, None] % 8 + 8 * np.repeat([0, 1, 0], [30, 20, 22])
        places = ew.Locations(xy=np.column_stack([np.arange(16.0), np.zeros(16)]))
        workers, others = ew.Traces(day, places).visits(), ew.Traces(0 * day, places).visits()
        with pytest.raises(ew.errors.NothingPassed) as refused:  # nobody else goes out
            ew.generate_fakes(workers, alternates=others, rng=lab())
        assert refused.value.exit_status == 3


class TestPaper:
    def test_rows_are_traces_and_lives(self, single_days, paper):
        assert paper.life.tolist() == list(range(len(paper)))
        assert np.array_equal(paper.seed_of_life, single_days.user[paper.seed])
        assert (paper.r != single_days.r[paper.seed]).all()
        assert np.array_equal(paper.visits.traces().r, paper.r)
        assert all(v.passed and v.shared == 0 for v in paper.verdicts)
        assert paper.attempts.sum() == paper.tally["tested"]
        assert paper.kappa == 6

    def test_likelihood_is_that_of_the_model(self, single_days, paper):
        tau = np.zeros(single_days.L, dtype=np.int64)
        np.testing.assert_allclose(paper.loglik, paper.learnt.model.loglik(paper.r, tau) / single_days.L)

    def test_more_fakes_per_seed_keep_the_first_ones(self, single_days, paper):
        fewer = ew.generate_fakes(single_days, method="paper", kappa=6, rng=lab())
        first = np.concatenate([[True], paper.seed[1:] != paper.seed[:-1]])
        shared = np.isin(paper.seed[first], fewer.seed)
        assert np.array_equal(paper.r[first][shared], fewer.r)

    def test_model_and_classes_may_be_given_on_the_same_map(self, single_days, paper):
        model, classes = paper.learnt
        again = ew.generate_fakes(
            single_days, method="paper", model=model, classes=classes.label, per_seed=3, rng=lab()
        )
        assert np.array_equal(again.r, paper.r)
        other = ew.simulate_town(users=20, locations=30, rng=lab()).traces
        for name, given in (("model", {"model": model}), ("classes", {"classes": classes})):
            with pytest.raises(ew.errors.InvalidParameter) as refused:
                ew.generate_fakes(other, method="paper", kappa=4, rng=lab(), **given)
            assert (refused.value.code, refused.value.parameter) == ("E_MISMATCH", name)

    def test_says_that_alternates_are_seeds_and_places_may_be_one_persons(self, single_days):
        with pytest.warns(UserWarning, match="E53"):
            fakes = ew.generate_fakes(single_days, method="paper", kappa=6, rng=lab())
        assert "(E31)" in " ".join(fakes.notes)

    def test_order_1_makes_other_classes_from_the_graph_of_the_slow_twin(self):
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

    def test_all_people_alike_have_no_fakes(self):
        same = ew.Traces(np.tile([0, 0, 1, 2, 0, 0], (8, 1)), ew.Locations(n=6), step_minutes=240)
        with pytest.raises(ew.errors.NothingPassed) as refused:
            ew.generate_fakes(same, method="paper", kappa=2, rng=lab())
        assert refused.value.exit_status == 3

    def test_traces_with_gaps_are_nobodys_seed(self, single_days, paper):
        r = single_days.r.copy()
        r[:30, 5] = -1
        gaps = ew.Traces(r, single_days.locations)
        assert ew.generate_fakes(gaps, method="paper", kappa=6, rng=lab()).seed.min() >= 30
        with pytest.raises(ew.errors.InvalidTraces) as refused:
            ew.generate_fakes(gaps.select(np.arange(30)), method="paper", kappa=6, rng=lab())
        assert refused.value.code == "E_GAPS"


class TestSameEntropySameFakes:
    @pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
    def test_on_an_executor(self, town, lives, kind):
        with kind(2) as executor:
            again = ew.generate_fakes(town.visits, per_seed=2, k=3, rng=lab(), executor=executor)
        assert columns(again.visits) == columns(lives.visits)
        assert np.array_equal(again.seed_of_life, lives.seed_of_life)

    def test_for_any_number_of_workers(self, town, lives, single_days, paper):
        for workers in (2, 5):
            again = ew.generate_fakes(town.visits, per_seed=2, k=3, rng=lab(), workers=workers)
            assert columns(again.visits) == columns(lives.visits)
        again = ew.generate_fakes(single_days, method="paper", per_seed=3, kappa=6, rng=lab(), workers=3)
        assert np.array_equal(again.r, paper.r)
        assert np.array_equal(again.loglik, paper.loglik)

    def test_other_entropy_other_fakes_and_the_systems_never_repeats(self, town, lives):
        assert columns(ew.generate_fakes(town.visits, per_seed=2, k=3, rng=lab(2)).visits) != columns(lives.visits)
        one, two = (ew.generate_fakes(town.visits, k=3) for _ in range(2))
        assert not one.laboratory
        assert columns(one.visits) != columns(two.visits)

    def test_what_an_executor_is_sent_shows_nothing_of_the_run(self, town):
        shown = []

        class Spy(ThreadPoolExecutor):
            def map(self, work, *items, **options):
                shown.append(repr(work))
                return super().map(work, *items, **options)

        with Spy(1) as executor:
            ew.generate_fakes(town.visits, k=3, rng=lab(), executor=executor)
        assert shown == ["work(generate_block)"]


@pytest.fixture
def many():
    """Days of so many people that a certificate can be given, in few slots."""
    town = ew.simulate_town(users=700, locations=25, rng=lab(4)).traces
    return ew.Traces(town.r[:, ::6], town.locations, step_minutes=120)


@pytest.mark.usefixtures("few_rounds")
class TestCertified:
    def test_fakes_of_nobody_all_published_once(self, many):
        fakes = ew.generate_fakes(many, eps=8, n=50)
        assert fakes.certificate.holds
        assert (fakes.certificate.eps, fakes.certificate.delta) == (8, 1e-6)
        assert len(fakes) == 50
        assert set(fakes.seed_of_life) == {-1}
        pool = ew.publish(fakes)
        assert (len(pool), pool.provenance["certificate"]["holds"]) == (50, True)
        with pytest.raises(ew.errors.PublicationRefused) as refused:
            ew.publish(fakes)
        assert refused.value.code == "E_BUDGET"

    def test_in_a_laboratory_nothing_is_proven_and_days_are_as_many_as_asked(self, many):
        one, two = (ew.generate_fakes(many, eps=8, n=20, days=2, rng=lab(), workers=w) for w in (1, 2))
        assert columns(one.visits) == columns(two.visits)
        assert len(one.r) == 40
        assert not ew.publish(one, laboratory=True).provenance["certificate"]["holds"]

    def test_too_few_people_are_refused(self, many):
        with pytest.raises(ew.errors.NotEnoughUsers):
            ew.generate_fakes(many.select(np.arange(50)), eps=1)


REFUSED = [
    ({"method": "best"}, "E_PARAM", "method"),
    ({"method": "best", "eps": 4.0}, "E_PARAM", "method"),
    ({"per_seed": 0}, "E_PARAM", "per_seed"),
    ({"workers": 0}, "E_PARAM", "workers"),
    ({"kappa": 1}, "E_PARAM", "kappa"),
    ({"k": 0}, "E_PARAM", "k"),
    ({"par_s": float("nan")}, "E_PARAM", "par_s"),
    ({"par_d": -1.0}, "E_PARAM", "par_d"),
    ({"max_tries": 0}, "E_PARAM", "max_tries"),
    ({"eps": 0.0}, "E_PARAM", "eps"),
    ({"eps": 4.0, "days": 0}, "E_PARAM", "days"),
    ({"method": "paper", "par_c": 1.0}, "E_PARAM", "par_c"),
    ({"method": "paper", "par_v": 0.5}, "E_PARAM", "par_v"),
    ({"method": "paper", "par_i": 0.5}, "E_PARAM", "par_i"),
    ({"method": "paper", "sampler": "magic"}, "E_PARAM", "sampler"),
    ({"par_c": 0.3}, "E_NOT_READ", "par_c"),
    ({"n": 5}, "E_NOT_READ", "n"),
    ({"delta": 1e-3}, "E_NOT_READ", "delta"),
    ({"days": 2}, "E_NOT_READ", "days"),
    ({"eps": 4.0, "k": 3}, "E_NOT_READ", "k"),
    ({"classes": [0, 1]}, "E_NOT_READ", "classes"),
    ({"alternates": "all"}, "E_PARAM", "alternates"),
    ({"rng": 7}, "E_PARAM", "rng"),
    ({"executor": 3}, "E_PARAM", "executor"),
    ({"k": 60}, "E_TOO_FEW", "k"),
]


@pytest.mark.parametrize(("given", "code", "parameter"), REFUSED, ids=lambda given: str(given)[:40])
def test_what_is_wrong_is_named(town, given, code, parameter):
    with pytest.raises(ew.ElsewhereError) as refused:
        ew.generate_fakes(town.visits, **given)
    assert (refused.value.code, refused.value.parameter) == (code, parameter)
    assert f"`{parameter}`" in str(refused.value)


@pytest.mark.parametrize(("given", "near"), [("par_sx", "par_s"), ("per_sed", "per_seed"), ("max_trys", "max_tries")])
def test_an_unknown_parameter_is_named_with_the_nearest(town, given, near):
    with pytest.raises(ew.errors.InvalidParameter, match=f"`{near}`") as refused:
        ew.generate_fakes(town.visits, **{given: 1})
    assert (refused.value.code, refused.value.parameter) == ("E_PARAM", given)


def test_data_of_another_kind_are_refused():
    with pytest.raises(ew.errors.InvalidParameter) as refused:
        ew.generate_fakes("traces.csv")
    assert refused.value.parameter == "data"


class TestPublish:
    @pytest.fixture
    def fakes(self, town):
        return ew.generate_fakes(town.visits, per_seed=3, k=3)

    def test_a_budget_per_seed_over_all_publications(self, fakes):
        seeds = np.unique(fakes.seed_of_life)
        pool, lives = publish_with_links(fakes)
        assert sorted(fakes.seed_of_life[lives]) == seeds.tolist()
        assert fakes.published.sum() == len(pool) == len(seeds)
        with pytest.raises(ew.errors.PublicationRefused) as refused:
            ew.publish(fakes)
        assert (refused.value.code, refused.value.parameter) == ("E_BUDGET", "per_seed")
        _, more = publish_with_links(fakes, per_seed=2)
        assert not set(more) & set(lives)
        assert np.bincount(fakes.seed_of_life[[*lives, *more]]).max() == 2

    def test_ids_order_and_places_tell_nothing_of_seeds(self, town, fakes):
        pool, lives = publish_with_links(fakes, per_seed=3)
        assert len(set(pool.ids)) == len(pool)
        assert all(len(each) == 32 and int(each, 16) >= 0 for each in pool.ids)
        seed = fakes.seed_of_life[lives]
        assert abs(np.corrcoef(seed, np.arange(len(seed)))[0, 1]) < 6 / np.sqrt(len(seed))
        assert lives.tolist() != sorted(lives)
        places = pool.visits.locations
        assert len(np.unique(pool.visits.place)) == len(places)  # those that fakes visit, and no others
        assert np.lexsort((places.lon, places.lat)).tolist() == list(range(len(places)))
        assert pool.visits.preparation is None
        # what the fakes do is what it was
        for number, life in enumerate(lives[:10]):
            old, new = fakes.visits.rows(life), pool.visits.rows(number)
            assert fakes.visits.start[old].tolist() == pool.visits.start[new].tolist()
            old, new = fakes.visits.place[old], pool.visits.place[new]
            assert town.visits.locations.lat[old].tolist() == places.lat[new].tolist()

    def test_nothing_private_is_in_the_files_of_a_pool(self, fakes):
        text = b"".join(ew.publish(fakes).files().values())
        for word in (b"seed_of_life", b"loglik", b"entropy", b"attempts", b"verdict"):
            assert word not in text

    def test_a_run_that_can_be_repeated_is_refused(self, lives, fakes):
        for made, given in ((lives, {}), (fakes, {"rng": lab()})):
            with pytest.raises(ew.errors.PublicationRefused) as refused:
                ew.publish(made, **given)
            assert (refused.value.code, refused.value.parameter) == ("E_LABORATORY", "laboratory")
        assert not fakes.published.any()
        assert ew.publish(fakes, rng=lab(), laboratory=True).provenance["reproducible"]
        assert not ew.publish(fakes, per_seed=2).provenance["reproducible"]

    def test_likelier_fakes_are_chosen_more_often(self, paper):
        import dataclasses

        likely = dataclasses.replace(paper, loglik=np.where(np.arange(len(paper)) % 3 == 1, 50.0, 0.0))
        _, lives = publish_with_links(likely, choose="likelihood", laboratory=True, rng=lab())
        several = np.flatnonzero(np.bincount(paper.seed_of_life) == 3)
        chosen = lives[np.isin(paper.seed_of_life[lives], several)]
        best = [
            np.flatnonzero(paper.seed_of_life == s)[likely.loglik[paper.seed_of_life == s].argmax()] for s in several
        ]
        assert sorted(chosen) == sorted(best)

    def test_what_is_wrong_is_named(self, fakes):
        for given, parameter in (
            ({"per_seed": 0}, "per_seed"),
            ({"choose": "best"}, "choose"),
            ({"choose": "likelihood"}, "choose"),  # which lives have not
        ):
            with pytest.raises(ew.errors.InvalidParameter) as refused:
                ew.publish(fakes, **given)
            assert refused.value.parameter == parameter
        with pytest.raises(ew.errors.InvalidParameter):
            ew.publish("fakes")

    def test_links_name_the_person_behind_each_life(self, town, fakes):
        people = town.visits.replace(users=[f"person, {u}" for u in range(town.visits.U)])
        pool, lives = publish_with_links(fakes)
        lines = links_file(pool, people, fakes.seed_of_life[lives]).decode().splitlines()
        assert lines[0] == "fake,seed"
        assert lines[1] == f'{pool.ids[0]},"person, {fakes.seed_of_life[lives[0]]}"'
        assert len(lines) == 1 + len(pool)

    def test_numbers_of_numpy_reach_the_manifest(self, town):
        fakes = ew.generate_fakes(town.visits, k=np.int64(3), par_d=np.float64(0.2))
        told = ew.publish(fakes).provenance["parameters"]
        assert (told["k"], type(told["k"]), told["par_d"]) == (3, int, 0.2)
