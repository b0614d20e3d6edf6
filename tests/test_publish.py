"""Publishing: what leaves the house carries no seed, no order, no likelihood, no entropy."""

import hashlib
import json
from dataclasses import replace
from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import elsewhere as ew
from elsewhere.files import write_files
from elsewhere.run.fakes import finite_loglik
from elsewhere.run.model import FittedModel
from elsewhere.run.public_map import PublicMap, calendar, is_weekend
from elsewhere.run.publish import _provenance, describe_output, note_rare_places, publish_with_rows, remember_input
from elsewhere.settings import PRESETS, preset_of
from elsewhere.traces.fixes import Preparation

pytestmark = [pytest.mark.filterwarnings("ignore:.* classes instead of"), pytest.mark.usefixtures("few_draws")]


@pytest.fixture(scope="module")
def town():
    return ew.simulate_town(users=60, days=1, locations=100, rng=np.random.default_rng(3)).traces


def made(town, rng=None, **changes):
    return ew.generate_fakes(town, kappa=6, k=3, rng=rng, **{"per_seed": 3, "m_min": 2, **changes})


@pytest.fixture(scope="module")
def once(town):
    return made(town)


@pytest.fixture
def fakes(once):
    """Fakes of which nothing is published yet: `publish` marks what it takes."""
    return replace(once, published=np.zeros(len(once), dtype=bool))


class TestPublish:
    def test_withheld_places_are_counted_for_whom_it_may_be(self, fakes, town):
        known = fakes.frame.known.copy()
        visited = np.unique(town.r)
        known[visited] = np.arange(len(visited)) >= 12
        kinds = ["Home" if not known[i] else "Shop" for i in range(town.R)]
        where = fakes.frame.locations.relabel(categories=kinds)
        frame, read = replace(fakes.frame, known=known, locations=where, m_min=5), Preparation()
        made, told = note_rare_places(replace(fakes, frame=frame, notes=()), read, town)
        assert made.notes[0].startswith(
            f"12 of {len(visited)} places, mostly 'Home', are in no fake: fewer than 5 people go there"
        )
        assert told == read
        # where a theorem covers the fakes, or where few places are counted: the owner's notes alone
        few = known.copy()
        few[visited[2:]] = True
        for odd in ({"preset": PRESETS["private"]}, {"frame": replace(frame, known=few)}):
            made, told = note_rare_places(replace(fakes, **{"frame": frame, "notes": (), **odd}), read, town)
            assert not made.notes
            assert "are in no fake" in told.notes[0]
        # a category is named only where enough people are behind it
        made, told = note_rare_places(replace(fakes, frame=frame, notes=()), read, town.of_users([0]))
        assert not any("Home" in note for note in (*made.notes, *told.notes))

    def test_categories_of_the_input_are_not_covered_by_a_theorem_and_not_published(self, fakes):
        R = len(fakes.frame.locations)
        for people, shown in ((np.full(R, 9), False), (None, True)):  # found in the rows, given with the map
            where = fakes.frame.locations.relabel(categories=["Home"] * R, category_users=people)
            pool = ew.publish(
                replace(
                    fakes,
                    frame=replace(fakes.frame, locations=where),
                    preset=PRESETS["private"],
                    published=np.zeros(len(fakes), dtype=bool),
                )
            )
            assert (pool.traces.locations.categories is not None) == shown
            assert any("categories" in note for note in pool.provenance["notes"]) == (not shown)

    def test_what_the_output_lacks_is_in_the_manifest_too(self, fakes):
        pool = ew.publish(replace(fakes, frame=replace(fakes.frame, dates=None)))
        told, notes = describe_output(pool, fakes.frame, ["gpx"])
        assert any("2001-01-01" in note for note in told.provenance["notes"])
        assert notes == [note for note in told.provenance["notes"] if "2001-01-01" in note]

    def test_one_fake_per_seed(self, fakes):
        pool = ew.publish(fakes)
        assert len(pool) == len(np.unique(fakes.seed))
        published = {tuple(f) for f in pool.to_map(fakes.frame.locations).r.tolist()}
        assert published <= {tuple(f) for f in fakes.r.tolist()}

    def test_the_map_shows_the_places_of_the_fakes_and_no_other(self, fakes):
        pool = ew.publish(fakes)
        shown, real = pool.traces.locations, fakes.frame.locations
        visited = np.unique(pool.to_map(real).r)
        assert np.all(fakes.learnt.known[visited])
        assert sorted(zip(shown.lat, shown.lon, strict=True)) == sorted(
            zip(real.lat[visited], real.lon[visited], strict=True)
        )

    def test_numbers_of_places_follow_what_is_published_alone(self, fakes):
        shown = ew.publish(fakes).traces.locations
        position = list(zip(shown.lat, shown.lon, strict=True))
        assert position == sorted(position)
        # the private numbering turned round gives the same pool
        there = fakes.frame.locations
        turned = ew.Locations(there.lat[::-1], there.lon[::-1])
        for where, r in ((there, fakes.r), (turned, len(there) - 1 - fakes.r)):
            found, numbers = replace(fakes.frame, locations=where).published(r)
            assert found == fakes.frame.published(fakes.r)[0]
            assert np.array_equal(numbers, fakes.frame.published(fakes.r)[1])

    def test_names_go_out_as_they_came_in_and_rare_categories_do_not(self):
        where = ew.Locations(
            [1, 2, 3, 4, 5],
            [5, 4, 3, 2, 1],
            names=["10", "9", "", "x", ""],
            categories=["shop", "home", "shop", "inn", "inn"],
            category_users=[5, 4, 5, 9, 9],
        )
        frame = PublicMap(where, np.ones(5, dtype=bool), None, 20, "00:00", "UTC", m_min=5)
        found, r = frame.published(np.array([[4, 2, 0, 1]]))
        assert found.names == ("10", "9", "area 1", "area 2")
        assert found.categories == ("shop", "", "shop", "inn")
        assert [found.names[i] for i in r[0]] == ["area 2", "area 1", "10", "9"]
        assert found.lat.tolist() == [1, 2, 3, 5]
        whole, _ = frame.published(np.array([[1, 0]]))
        assert whole.names == ("9", "10")  # whole numbers are in the order of numbers

    @pytest.mark.parametrize(
        "words", [{"columns": {"user": 3}}, {"columns": {"place": "a"}}, {"times": "noon"}, {"form": 1}, {"reading": 1}]
    )
    def test_a_map_that_cannot_be_written_is_not_made(self, words):
        with pytest.raises(ValueError, match=r"must be|no columns"):
            PublicMap(ew.Locations(n=9), np.ones(9, dtype=bool), None, 20, "00:00", "UTC", **words)

    def test_places_without_names_and_positions_keep_their_numbers(self):
        frame = PublicMap(ew.Locations(n=9), np.ones(9, dtype=bool), None, 20, "00:00", "UTC")
        found, r = frame.published(np.array([[7, 2]]))
        assert (found.names, r.tolist()) == (("2", "7"), [[1, 0]])
        assert ew.Pool(ew.Traces(r, found), {}).to_map(ew.Locations(n=9)).r.tolist() == [[7, 2]]

    def test_a_pool_on_another_map_is_refused(self, fakes):
        with pytest.raises(ew.errors.InvalidTraces) as caught:
            ew.publish(fakes).to_map(ew.Locations([46.0], [6.0]))
        assert caught.value.code == "E_MISMATCH"

    def test_private_fakes_survive_a_file(self, fakes, tmp_path):
        fakes.save(tmp_path / "private")
        back = ew.Fakes.load(tmp_path / "private")
        assert np.array_equal(back.r, fakes.r)
        assert np.array_equal(back.seed, fakes.seed)
        assert back.preset == fakes.preset
        assert len(ew.publish(back)) == len(np.unique(fakes.seed))
        with pytest.raises(ew.errors.InvalidModel):
            ew.Fakes.load(tmp_path)

    @pytest.mark.parametrize(
        "columns", [{"user": "uid", "time": 3}, {"lat": "y"}, {"user": "a", "lat": "a"}, {"user": "a", "name": "b"}, []]
    )
    def test_private_fakes_with_columns_of_no_table_are_refused(self, fakes, tmp_path, columns):
        fakes.save(tmp_path)
        told = json.loads((tmp_path / "fakes.json").read_text())
        (tmp_path / "fakes.json").write_text(json.dumps({**told, "input": {"columns": columns, "format": "csv"}}))
        with pytest.raises(ew.errors.InvalidModel, match="E_FAKES"):
            ew.Fakes.load(tmp_path)

    def test_private_fakes_in_an_archive_of_a_later_format_are_refused(self, fakes, tmp_path):
        fakes.save(tmp_path)
        data = bytearray((tmp_path / "fakes.npz").read_bytes())
        data[data.rindex(b"PK\x01\x02") + 6] = 255  # the version that it takes to unpack a file
        (tmp_path / "fakes.npz").write_bytes(data)
        told = json.loads((tmp_path / "fakes.json").read_text())
        told["files"]["fakes.npz"] = hashlib.sha256(data).hexdigest()
        (tmp_path / "fakes.json").write_text(json.dumps(told))
        with pytest.raises(ew.errors.InvalidModel, match="E_FAKES"):
            ew.Fakes.load(tmp_path)

    def test_the_manifest_says_how_the_input_was_read(self, fakes, tmp_path):
        told = Preparation(
            max_gap_minutes=720,
            max_gap_auto=True,
            people_by_gap={"1h": 1, "3h": 5, "12h": 137},
            map="auto",
            map_km=63.7,
        )
        read = remember_input(fakes, told)
        read.save(tmp_path)
        pool = ew.publish(ew.Fakes.load(tmp_path))
        reading = pool.provenance["reading"]
        assert reading["people_by_gap"] == {"1h": "<5", "3h": 5, "12h": 137}  # no count of few
        assert (reading["max_gap_minutes"], reading["map"], reading["map_km"]) == (720, "auto", 60)
        # where a theorem covers the fakes nothing that counts the seeds
        counted = {"people_by_gap", "share_filled"}
        assert counted <= set(reading)
        private = replace(read, preset=PRESETS["private"])
        assert not counted & set(_provenance(private, None, (), private.preset, 1, reproducible=False)["reading"])
        index = json.loads((tmp_path / "fakes.json").read_text())
        (tmp_path / "fakes.json").write_text(json.dumps({**index, "input": {"reading": 3}}))
        with pytest.raises(ew.errors.InvalidModel, match="E_FAKES"):
            ew.Fakes.load(tmp_path)

    def test_ids_are_random_and_differ(self, fakes):
        ids = ew.publish(fakes).ids.tolist()
        assert len(set(ids)) == len(ids)
        assert all(len(i) == 32 and int(i, 16) >= 0 for i in ids)

    def test_the_second_publication_needs_a_larger_budget(self, fakes):
        ew.publish(fakes)
        with pytest.raises(ew.errors.PublicationRefused) as caught:
            ew.publish(fakes)
        assert caught.value.code == "E_BUDGET"
        once = int(fakes.published.sum())
        more = ew.publish(fakes, per_seed=2)
        # no fake goes out twice: every new one is one that had not been published
        assert fakes.published.sum() == once + len(more)
        assert np.bincount(fakes.seed[fakes.published]).max() == 2

    def test_a_laboratory_run_is_refused(self, town):
        run = made(town, rng=np.random.default_rng(1))
        with pytest.raises(ew.errors.PublicationRefused) as caught:
            ew.publish(run)
        assert caught.value.code == "E_LABORATORY"
        assert ew.publish(run, laboratory=True).provenance["reproducible"] is True

    def test_order_says_nothing_of_the_seeds(self, town):
        run = made(town, rng=np.random.default_rng(1), per_seed=1)
        row = {tuple(f): s for f, s in zip(run.r.tolist(), run.seed.tolist(), strict=True)}
        correlation = []
        for i in range(200):
            run.published[:] = False
            pool = ew.publish(run, laboratory=True, rng=np.random.default_rng(i))
            seeds = [row[tuple(f)] for f in pool.to_map(town.locations).r.tolist()]
            correlation.append(stats.spearmanr(seeds, np.arange(len(seeds))).statistic)
        # the mean of 200 rank correlations of n items has standard deviation 1 / sqrt(200 (n - 1))
        bound = stats.norm.isf(5e-7) / np.sqrt(200 * (len(run) - 1))
        assert abs(np.mean(correlation)) < bound

    def test_choice_by_likelihood(self, town):
        run = made(town, rng=np.random.default_rng(1), per_seed=4)
        # a day that the model holds impossible counts as the least likely of the others
        loglik = finite_loglik(run.loglik)
        best = [loglik[run.seed == s].max() for s in np.unique(run.seed)]
        cold = ew.publish(run, choose="likelihood", temp=1e-6, laboratory=True, rng=np.random.default_rng(2))
        tau = run.learnt.tau(town)
        drawn = np.maximum(run.learnt.model.loglik(cold.to_map(town.locations).r, tau), loglik.min())
        np.testing.assert_allclose(np.sort(drawn), np.sort(best))

    def test_fakes_are_chosen_as_the_preset_says_unless_somebody_says_otherwise(self, town):
        run = made(town, rng=np.random.default_rng(1), per_seed=4, choose="likelihood", temp=1e-6)
        loglik = finite_loglik(run.loglik)
        best = np.sort([loglik[run.seed == s].max() for s in np.unique(run.seed)])
        for said, chosen in (({}, True), ({"choose": "uniform"}, False)):
            run.published[:] = False
            pool, rows = publish_with_rows(run, laboratory=True, rng=np.random.default_rng(2), **said)
            assert np.allclose(np.sort(loglik[rows]), best) == chosen
            assert pool.provenance["parameters"]["choose"] == ("likelihood" if chosen else "uniform")

    def test_what_the_model_holds_impossible_is_still_published_and_least_of_all(self):
        days = ew.simulate_town(users=60, locations=100, rng=np.random.default_rng(3)).traces
        run = made(days, rng=np.random.default_rng(1), per_seed=3)
        assert run.day is None  # a fake is a row
        _, first, number = np.unique(run.seed, return_index=True, return_counts=True)
        first = first[number == 3]
        assert len(first) > 20
        run.loglik[:] = -10.0 * run.r.shape[1]
        run.loglik[first + 1] = -20.0 * run.r.shape[1]
        run.loglik[first] = -np.inf
        chosen = np.zeros(3)
        for i in range(40):
            run.published[:] = False
            given = {"choose": "likelihood", "temp": 10, "laboratory": True}
            _, rows = publish_with_rows(run, rng=np.random.default_rng(i), **given)
            chosen += [np.isin(rows, first + kind).sum() for kind in range(3)]
        # weights 1/e, 1/e and 1; more than 800 draws, a share of .58 scatters by less than .018
        share = chosen / chosen.sum()
        assert share == pytest.approx(np.array([1, 1, np.e]) / (2 + np.e), abs=0.08)

    def test_infinite_temperature_is_uniform(self, town):
        run = made(town, rng=np.random.default_rng(1), per_seed=3)
        seeds, size = np.unique(run.seed, return_counts=True)
        one = np.flatnonzero(run.seed == seeds[size == 3][0])
        where = {tuple(f): i for i, f in enumerate(run.r[one].tolist())}
        chosen = []
        for i in range(600):
            run.published[:] = False
            pool = ew.publish(run, choose="likelihood", temp=np.inf, laboratory=True, rng=np.random.default_rng(i))
            chosen += [where[tuple(f)] for f in pool.to_map(town.locations).r.tolist() if tuple(f) in where]
        assert stats.chisquare(np.bincount(chosen, minlength=3)).pvalue > 1e-6

    def test_a_date_that_one_user_has_is_never_shown(self, town):
        dates = np.where(town.user == 17, np.datetime64("2024-01-06"), np.datetime64("2024-01-01"))
        alone = ew.Traces(town.r, town.locations, users=town.user, dates=dates, step_minutes=town.step_minutes)
        for _ in range(5):
            pool = ew.publish(made(alone))
            assert set(pool.traces.dates.astype(str).tolist()) == {"2024-01-01"}

    def test_the_calendar_is_a_span_that_no_single_person_ends(self):
        # first and last day of four people: 1-2, 4-9, 6-6, 11-20 (of March 2024, the 2nd and 3rd are a weekend)
        users, days = ["a", "a", "b", "b", "c", "d", "d"], [1, 2, 4, 9, 6, 11, 20]
        dates = [f"2024-03-{day:02}" for day in days]
        people = ew.Traces(np.zeros((7, 4), dtype=int), ew.Locations(n=2), users=users, dates=dates)
        for m_min, ends in ((1, ("01", "20")), (2, ("04", "09")), (3, ("06", "06")), (4, None), (5, None)):
            found = calendar(people, m_min)[0]
            assert (None if found is None else (str(found[0])[-2:], str(found[-1])[-2:])) == ends
        assert len(calendar(people, 2)[0]) == 6
        assert calendar(people, 1)[1] == pytest.approx(2 / 7)  # the 2nd and the 9th are Saturdays
        assert calendar(people, 3)[1] == 0  # two people have a day at a weekend
        assert calendar(people.select([0, 2, 4]), 4) == (None, None)

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), min_size=1, max_size=6), st.integers(1, 4))
    def test_the_calendar_is_that_of_its_definition(self, days_of, m_min):
        users = [u for u, days in enumerate(days_of) for _ in days]
        dates = np.datetime64("2024-03-01") + np.array([day for days in days_of for day in days])
        people = ew.Traces([[0]] * len(users), ew.Locations(n=1), users=users, dates=dates)
        found = calendar(people, m_min)[0]
        days = [] if found is None else (found - np.datetime64("2024-03-01")).astype(int).tolist()
        assert days == naive.calendar_span(days_of, m_min)

    def test_a_day_of_23_or_25_hours_is_no_date_of_a_fake(self):
        dates = np.arange("2024-03-25", "2024-04-03", dtype="datetime64[D]")
        people = ew.Traces(
            np.zeros((9, 1), dtype=int), ew.Locations(n=1), users=["a"] * 9, dates=dates, tz="Europe/Rome"
        )
        found = calendar(people, 1)[0]
        assert sorted(set(dates.tolist()) - set(found.tolist())) == [np.datetime64("2024-03-31").item()]

    def month(self, town):
        """Two days of everybody, one of them at a weekend: dates spread over a month, few people on each."""
        week = np.datetime64("2024-01-01") + 7 * (town.user % 4)
        dates = np.where(np.arange(len(town)) % 2, week + 5, week + 2 * (town.user % 3 == 0))
        return ew.Traces(town.r, town.locations, users=town.user, dates=dates, step_minutes=town.step_minutes)

    def test_a_fake_has_its_seeds_kind_of_day(self, town):
        month = self.month(town)
        fakes = made(month, per_seed=1)
        pool, rows = publish_with_rows(fakes)
        seeds = is_weekend(month.dates)[fakes.seed[rows]]
        assert 0 < seeds.mean() < 1
        assert np.array_equal(is_weekend(pool.traces.dates), seeds)
        assert len(np.unique(pool.traces.dates)) > 10
        assert pool.traces.dates.min() >= np.datetime64("2024-01-01")
        assert pool.traces.dates.max() <= month.dates.max()
        assert any("Weekday against weekend: holds" in note for note in pool.provenance["notes"])

    def test_private_fakes_remember_the_kind_of_day(self, town, tmp_path):
        month = self.month(town)
        fakes = made(month, per_seed=1)
        fakes.save(tmp_path / "private")
        pool, rows = publish_with_rows(ew.Fakes.load(tmp_path / "private"))
        assert np.array_equal(is_weekend(pool.traces.dates), is_weekend(month.dates)[fakes.seed[rows]])

    def test_a_kind_of_day_that_few_people_have_is_not_told(self, town):
        weekend = np.isin(town.user, [3, 17]) & (np.arange(len(town)) % 2 == 1)
        dates = np.where(weekend, np.datetime64("2024-01-13"), np.datetime64("2024-01-08") + 7 * (town.user % 3))
        few = ew.Traces(town.r, town.locations, users=town.user, dates=dates, step_minutes=town.step_minutes)
        pool = ew.publish(made(few, m_min=3))
        assert not is_weekend(pool.traces.dates).any()
        assert any("always a weekday" in note for note in pool.provenance["notes"])

    def test_dates_of_every_kind_of_calendar(self):
        def frame(days, weekend):
            dates = np.array([f"2024-03-{day:02}" for day in days], dtype="datetime64[D]")
            return PublicMap(ew.Locations(n=1), np.ones(1, dtype=bool), dates, 20, "00:00", "UTC", weekend=weekend)

        rng, kinds = np.random.default_rng(1), np.array([False, True] * 50)
        both = frame(range(1, 11), 0.5)
        assert np.array_equal(is_weekend(both.dated(kinds, 100, rng)), kinds)
        assert set(both.dated(np.tile(kinds, 20), 2000, rng).tolist()) == set(both.dates.tolist())
        # without the seeds' kinds they are drawn: 2000 of share .3, six standard deviations
        drawn = is_weekend(frame(range(1, 11), 0.3).dated(None, 2000, rng)).mean()
        assert abs(drawn - 0.3) < 6 * np.sqrt(0.21 / 2000)
        assert not is_weekend(frame(range(1, 11), 0.0).dated(kinds, 100, rng)).any()
        assert is_weekend(frame(range(1, 11), 1.0).dated(kinds, 100, rng)).all()
        week = frame(range(4, 9), 0.5)  # Monday to Friday
        assert set(week.dated(kinds, 100, rng).tolist()) <= set(week.dates.tolist())
        assert "hold no weekend" in week.on_dates(of_seeds=True)
        assert len(set(frame(range(1, 11), None).dated(kinds, 100, rng).tolist())) > 5
        assert "no analysis" in frame(range(1, 11), None).on_dates(of_seeds=True)
        assert "no analysis" in both.on_dates(of_seeds=False)
        # lives longer than the calendar: the note gives the days on which they are
        days = both.weeks(np.arange(14), np.zeros(14, dtype=int), rng)
        span = f"from {days.min()} to {days.max()} (days that enough people have: 2024-03-01 to 2024-03-10)"
        assert span in both.on_dates(of_seeds=True, of_weeks=days)

    def test_parameters_are_checked(self, fakes):
        for wrong in ({"per_seed": 0}, {"choose": "best"}, {"temp": 0.0}):
            with pytest.raises(ew.errors.InvalidParameter, match=f"`{next(iter(wrong))}`"):
                ew.publish(fakes, **wrong)
        with pytest.raises(ew.errors.InvalidParameter, match="`fakes`"):
            ew.publish([1, 2])


class TestModelFile:
    def learnt(self, town):
        return ew.learn(town, preset_of("product", m_min=2, periods=4), kappa=6, rng=np.random.default_rng(1))

    def test_round_trip(self, town, tmp_path):
        learnt = self.learnt(town)
        learnt.save(tmp_path / "model")
        back = FittedModel.load(tmp_path / "model")
        assert np.array_equal(back.classes.label, learnt.classes.label)
        assert np.array_equal(back.model.table(1, 2), learnt.model.suppressed(2).table(1, 2))
        assert back.preset == learnt.preset
        same = [
            ew.generate_fakes(town, model=model, classes=back.classes, k=3, m_min=2, rng=np.random.default_rng(5)).r
            for model in (learnt.model.suppressed(2), back.model)
        ]
        assert np.array_equal(*same)

    def test_no_move_in_the_file_is_one_users(self, town, tmp_path):
        learnt = self.learnt(town)
        learnt.save(tmp_path / "model")
        back = FittedModel.load(tmp_path / "model")
        merged = learnt.translate(town)
        made = {}
        for row, user in zip(merged.r.tolist(), merged.user.tolist(), strict=True):
            for move in pairwise(row):
                made.setdefault(move, set()).add(user)
        R, T = town.R, 4
        kept = back.model.key
        pooled = kept[kept >= T * T * R * R] - T * T * R * R
        assert {(int(k) // R, int(k) % R) for k in pooled} == {m for m, users in made.items() if len(users) >= 2}
        assert back.model.movers.min() >= 2
        assert learnt.model.movers.min() == 1

    def test_holds_no_user(self, town, tmp_path):
        learnt = self.learnt(town)
        learnt.save(tmp_path / "model")
        index = json.loads((tmp_path / "model" / "model.json").read_text())
        assert all(town.U not in d["shape"] and len(town) not in d["shape"] for d in index["arrays"].values())
        assert learnt.model.visitors[learnt.model.visitors > 0].min() >= 2

    def test_damage_and_swaps_are_noticed(self, town, tmp_path):
        folder = tmp_path / "model"
        self.learnt(town).save(folder)
        good, index = (folder / "model.npz").read_bytes(), (folder / "model.json").read_bytes()
        for damaged in (good[:-10], good[:200] + b"\x00" + good[201:], b"", b"PK\x03\x04"):
            (folder / "model.npz").write_bytes(damaged)
            with pytest.raises(ew.errors.InvalidModel):
                FittedModel.load(folder)
        (folder / "model.npz").write_bytes(good)
        for changed in (index[:-20], b"[]", b"", index.replace(b'"format": 1', b'"format": 2')):
            (folder / "model.json").write_bytes(changed)
            with pytest.raises(ew.errors.InvalidModel):
                FittedModel.load(folder)
