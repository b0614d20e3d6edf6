"""Of several clusterings the one that says most about people."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import elsewhere as ew
from elsewhere.run import model as classes
from elsewhere.run import model as learning
from elsewhere.run.model import most_informative, neighbour_agreement
from elsewhere.run.presets import preset_of


def lab(number=0):
    return np.random.default_rng(number)


class TestNeighbourAgreement:
    @given(st.integers(2, 20).flatmap(lambda n: arrays(np.int64, (n, 5), elements=st.integers(-1, 3))))
    def test_equals_the_definition(self, label):
        like = max(1, round(len(label) / 8))
        assert neighbour_agreement(label) == pytest.approx(naive.neighbour_agreement(label.tolist(), like), abs=1e-12)

    def test_two_kinds_of_people(self):
        # 16 people, two of whom are one's like: with them one agrees always, with all 15 others in 7 of 15 cases
        label = np.repeat([[0], [1]], 8, axis=0) * np.ones(4, dtype=int)
        assert neighbour_agreement(label) == pytest.approx(1 - 7 / 15)

    def test_one_person_is_like_nobody(self):
        assert neighbour_agreement(np.zeros((1, 3), dtype=int)) == 0

    def test_places_of_no_class_are_no_agreement(self):
        assert neighbour_agreement(np.full((5, 3), -1)) == 0


class TestChoice:
    def test_takes_the_classes_that_tell_kinds_apart(self):
        # people of two kinds: places 0-3 and 4-7; the first clustering mixes them, the second knows them
        r = np.concatenate([lab().integers(0, 4, (20, 6)), lab(1).integers(4, 8, (20, 6))])
        mixed, kinds = ew.SemanticClasses(np.arange(8) % 2), ew.SemanticClasses(np.arange(8) // 4)

        assert most_informative([mixed, kinds], r, lab()) is kinds
        assert most_informative([kinds, mixed], r, lab()) is kinds
        assert most_informative([kinds, ew.SemanticClasses(1 - kinds.label)], r, lab()) is kinds  # the first of equals

    def test_a_gap_is_in_no_class(self):
        r = np.array([[0, 1], [0, 1], [-1, -1], [-1, -1]])
        label = ew.SemanticClasses([0, 1])
        assert most_informative([label], r, lab()) is label

    def test_of_very_many_people_some_are_compared(self, monkeypatch):
        seen = []
        monkeypatch.setattr(classes, "neighbour_agreement", lambda label: seen.append(len(label)) or 0.0)
        most_informative([ew.SemanticClasses([0, 1])], np.zeros((2000, 3), dtype=int), lab())
        assert seen == [classes.MOST_PEOPLE]

    def test_of_very_many_people_any_are_compared(self, monkeypatch):
        # people come sorted: the first of them need not be like the others
        seen = []
        monkeypatch.setattr(classes, "neighbour_agreement", lambda label: seen.append(label.mean()) or 0.0)
        r = np.repeat([[0], [1]], 1000, axis=0)
        most_informative([ew.SemanticClasses([0, 1])], r, lab())
        assert abs(seen[0] - 0.5) < 5 * np.sqrt(0.25 / classes.MOST_PEOPLE)


class TestLearn:
    def test_the_deniable_mode_takes_the_most_informative_of_its_draws(self, monkeypatch):
        town = ew.simulate_town(users=60, locations=80, rng=lab(1)).traces
        offered = []
        real = classes.most_informative

        def spied(candidates, r, rng):
            offered.append(list(candidates))
            return real(candidates, r, rng)

        monkeypatch.setattr("elsewhere.run.model.most_informative", spied)
        learnt = ew.learn(town, preset_of("deniable", m_min=2, class_draws=7), kappa=5, rng=lab(2))

        (candidates,) = offered
        assert len(candidates) == 7
        assert len({c.label.tobytes() for c in candidates}) > 1  # draws differ
        r = learnt.translate(town).r
        score = [neighbour_agreement(np.where(r >= 0, c.label[r], -1)) for c in candidates]
        np.testing.assert_array_equal(learnt.classes.label, candidates[int(np.argmax(score))].label)

    def test_one_draw_is_one_clustering(self, monkeypatch):
        town = ew.simulate_town(users=40, locations=60, rng=lab(1)).traces
        monkeypatch.setattr("elsewhere.run.model.most_informative", lambda *_: pytest.fail("nothing to choose from"))
        learnt = ew.learn(town, preset_of("product", m_min=2, class_draws=1), kappa=4, rng=lab(2))
        graph = ew.semantic_graph(ew.fit_profiles(learnt.translate(town), periods=12, missing="skip"))
        alone = ew.semantic_clustering(graph, kappa=4, method="roles", c_min=5, rng=lab(2))
        np.testing.assert_array_equal(learnt.classes.label, alone.label)

    def test_auto_chooses_the_number_once(self):
        town = ew.simulate_town(users=60, locations=80, rng=lab(1)).traces
        one, many = (
            ew.learn(town, preset_of("deniable", m_min=2, class_draws=n), rng=lab(2)).classes.kappa for n in (1, 9)
        )
        assert one == many

    @pytest.mark.parametrize("c_min", [5, 8])
    def test_only_clusterings_of_one_number_are_compared(self, monkeypatch, c_min):
        # c_min merges away more of some draws than of others: the number of classes is what the first one says (E29)
        town = ew.simulate_town(users=150, locations=120, rng=lab()).traces
        asked, offered = [], []
        clustering, choice = learning.semantic_clustering, learning.most_informative
        monkeypatch.setattr(
            learning, "semantic_clustering", lambda graph, **named: asked.append(named) or clustering(graph, **named)
        )
        monkeypatch.setattr(learning, "most_informative", lambda c, *more: offered.append(c) or choice(c, *more))
        with pytest.warns(UserWarning, match="classes instead of `kappa` = 30") as said:
            learnt = ew.learn(town, preset_of("deniable", c_min=c_min, m_min=2), kappa=30, rng=lab(2))

        assert [named["kappa"] for named in asked] == [30] * 20  # an explicit kappa is what is asked of each
        (candidates,) = offered
        assert 1 <= len(candidates) < 20
        assert {c.kappa for c in candidates} == {learnt.classes.kappa}
        assert str(said[0].message).startswith(f"{learnt.classes.kappa} classes")

    def test_one_class_is_not_drawn_again(self, monkeypatch):
        town = ew.simulate_town(users=30, locations=12, rng=lab()).traces
        calls = []
        one = ew.SemanticClasses(np.zeros(town.R, dtype=int))
        monkeypatch.setattr(learning, "semantic_clustering", lambda *_, **named: calls.append(named) or one)
        learnt = ew.learn(town, preset_of("deniable", m_min=2), rng=lab())
        assert learnt.classes is one
        assert len(calls) == 1

    def test_neither_numbers_of_places_nor_the_order_of_people_matter(self):
        # up to as many people as are compared, and where no two places are alike (F6)
        town = ew.simulate_town(users=90, locations=60, rng=lab(1)).traces
        settings = preset_of("deniable", m_min=2, class_draws=6)
        to = lab(3).permutation(town.R)  # new number of each place
        back = np.argsort(to)
        places = ew.Locations(lat=town.locations.lat[back], lon=town.locations.lon[back])
        renamed = ew.Traces(to[town.r][lab(4).permutation(len(town))], places, step_minutes=town.step_minutes)
        one, other = (ew.learn(people, settings, kappa=6, rng=lab(2)).classes.label for people in (town, renamed))
        np.testing.assert_array_equal(one, other[to])

    @pytest.mark.parametrize("draws", [0, -1, 1.5, 1001, "many"])
    def test_a_wrong_number_is_refused(self, draws):
        with pytest.raises(ew.errors.InvalidParameter, match="class_draws"):
            preset_of("deniable", class_draws=draws)
