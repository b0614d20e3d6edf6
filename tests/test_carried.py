"""What a model carries for the deniable preset: sums that enough people share, the same in a file as in memory."""

import hashlib
import io
import itertools
import json

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.privacy.deniable.archetypes import _counted, learn_archetypes
from elsewhere.privacy.deniable.carried import OF_WALK, number_of_archetypes
from elsewhere.run.model import FittedModel
from elsewhere.run.presets import preset_of
from elsewhere.synthesis.walk._walk_kernels import ALL_COLUMNS, LENGTHS, columns_of_moves
from elsewhere.synthesis.walk.fit import GRID, learn_habits, pool_day_statistics
from elsewhere.synthesis.walk.habits import geometry, ground_of

pytestmark = pytest.mark.usefixtures("few_draws")
M_MIN = 3
RUN = {"preset": "deniable", "m_min": M_MIN, "disjoint": True, "n": 50}


def lab(number=1):
    return np.random.default_rng(number)


@pytest.fixture(scope="module")
def town():
    traces = ew.simulate_town(users=240, locations=40, rng=lab(6)).traces
    return traces.of_users(np.arange(120)), traces.of_users(np.arange(120, 240))


@pytest.fixture(scope="module")
def learnt(town):
    return ew.learn(town[0], preset_of("deniable", m_min=M_MIN), kappa=5, rng=lab())


def arrays_of(files):
    with np.load(io.BytesIO(files["model.npz"]), allow_pickle=False) as arrays:
        return dict(arrays)


def written(folder, arrays, index):
    """A model folder of these arrays whose index fits them."""
    sink = io.BytesIO()
    np.savez_compressed(sink, **arrays)
    index = {
        **index,
        "arrays": {n: {"dtype": a.dtype.str, "shape": list(a.shape)} for n, a in arrays.items()},
        "files": {"model.npz": hashlib.sha256(sink.getvalue()).hexdigest()},
    }
    folder.mkdir(exist_ok=True)
    (folder / "model.npz").write_bytes(sink.getvalue())
    (folder / "model.json").write_text(json.dumps(index))
    return folder


class TestSums:
    @settings(max_examples=25)
    @given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 3))
    def test_walk_and_naive_twin(self, seed, m_min, days):
        rng = lab(seed)
        R, people, L = 5, 8, 6
        # half of the people live alike, so that some is shared and some is not
        r = np.where(rng.random((people * days, L)) < 0.5, rng.integers(R, size=L), rng.integers(R, size=(1, L)))
        r = np.where(rng.random(r.shape) < 0.3, rng.integers(R, size=r.shape), r)
        who = rng.permutation(np.repeat(np.arange(people), days))
        where = ew.Locations(xy=rng.random((R, 2)))
        habits = learn_habits(r, where, np.ones(R, dtype=bool), user=who, m_min=m_min, rng=rng)
        rows, users = r.tolist(), who.tolist()
        count, rest, arrivals, onward = naive.shared_moves(rows, users, R, m_min)
        assert dict(zip(habits.move.tolist(), habits.count.tolist(), strict=True)) == {
            a * R + b: n for (a, b), n in count.items()
        }
        assert habits.rest.tolist() == rest
        assert habits.arrivals.tolist() == arrivals
        triples = zip(habits.pair.tolist(), habits.onward.tolist(), habits.onward_count.tolist(), strict=True)
        assert {(p, b): n for p, b, n in triples} == {(x * R + a, b): n for (x, a, b), n in onward.items()}
        if m_min > 1:
            visitors = [len({u for f, u in zip(rows, users, strict=True) if x in f}) for x in range(R)]
            visits = [sum(f.count(x) for f in rows) / r.size if visitors[x] >= m_min else 0.0 for x in range(R)]
            begun = naive.shared_beginnings(rows, users, R, m_min)
            np.testing.assert_allclose(habits.first, [b + 5 * v for b, v in zip(begun, visits, strict=True)])
            assert (habits.leaving[np.array(visitors) < m_min] == 0).all()

    @settings(max_examples=15)
    @given(st.integers(0, 2**32), st.integers(2, 5))
    def test_lengths_and_weights_rest_on_enough_users(self, seed, m_min):
        rng = lab(seed)
        R, people, L = 6, 9, 5
        r = np.sort(rng.integers(R, size=(people, L)), axis=1)
        r[:3] = rng.integers(R, size=(3, L))
        where = ew.Locations(xy=rng.random((R, 2)) * [9, 1])
        habits = learn_habits(r, where, np.ones(R, dtype=bool), m_min=m_min, rng=rng)
        lengths, _ = geometry(where)
        moves = [
            (u, t, int(a), int(b)) for u, f in enumerate(r) for t, (a, b) in enumerate(itertools.pairwise(f)) if a != b
        ]

        who_went = [{u for u, _, a, b in moves if lengths[a, b] == k} for k in range(LENGTHS)]
        seen = [sum(lengths[a, b] == k for _, _, a, b in moves) * (len(who_went[k]) >= m_min) for k in range(LENGTHS)]
        leaving = habits.rest + [
            sum(n for m, n in zip(habits.move, habits.count, strict=True) if m // R == x) for x in range(R)
        ]
        expected = [
            sum(leaving[x] * habits.arrivals[y] for x in range(R) for y in range(R) if x != y and lengths[x, y] == k)
            for k in range(LENGTHS)
        ]
        np.testing.assert_allclose(habits.kernel, [(s + 0.1) / (e + 1e-9) for s, e in zip(seen, expected, strict=True)])

        far = sorted(
            (max(float(where.distance(a, b)) for u, _, a, b in moves if u == one) for one in {m[0] for m in moves}),
            reverse=True,
        )
        longest = far[min(m_min, len(far)) - 1]
        assert longest <= habits.reach * (1 + 1e-9) < longest * GRID * (1 + 1e-8)
        assert abs(np.log(habits.reach) / np.log(GRID) - round(np.log(habits.reach) / np.log(GRID))) < 1e-6

        cols = np.empty((len(moves), R, 8), dtype=np.int16)
        row, step = np.array([m[:2] for m in moves]).T.copy()
        columns_of_moves(r, row, step, R, ground_of(where), np.arange(R)[None], cols)
        users = [{m[0] for m, c in zip(moves, cols, strict=True) if k in c[m[3]]} for k in range(ALL_COLUMNS)]
        thin = np.array([len(u) < m_min for u in users])
        assert (habits.destination[:ALL_COLUMNS][thin] == 0).all()
        assert (habits.destination[:ALL_COLUMNS][~thin] != 0).any()

    @given(st.integers(0, 2**32), st.integers(2, 5))
    def test_day_statistics_of_few_are_pooled(self, seed, m_min):
        rng = lab(seed)
        r, L = rng.integers(3, size=(9, 5)), 5
        who, walks = rng.integers(6, size=9), rng.integers(2, size=(7, L))
        out = pool_day_statistics(r, who, walks, m_min)
        statistics, of_walks = (
            [
                (sum(a != b for a, b in itertools.pairwise(f)), len(set(f)), max(map(f.count, f)), int(f[0] == f[-1]))
                for f in days.tolist()
            ]
            for days in (r, walks)
        )
        for k, (low, high) in enumerate(((0, L - 1), (1, L), (1, L), (0, 1))):
            walked = np.bincount([of[k] for of in of_walks], minlength=L + 1) / len(walks)
            expected = naive.pooled([of[k] for of in statistics], who.tolist(), low, high, walked.tolist(), m_min)
            come = [{u for u, of in zip(who.tolist(), statistics, strict=True) if of[3] == home} for home in (0, 1)]
            if k == 3 and (len(come[0]) < m_min) != (len(come[1]) < m_min):
                expected = {int(len(come[1]) >= m_min): 1.0}  # what few do is not told
            np.testing.assert_allclose(out[k], [expected.get(n, 0.0) for n in range(L + 1)])
            np.testing.assert_allclose(out[k].sum(), 1)

    @given(st.integers(0, 2**32), st.integers(2, 4))
    def test_classes_of_few_are_put_together(self, seed, m_min):
        rng = lab(seed)
        classes, who, group = rng.integers(-1, 4, (14, 3)), rng.integers(9, size=14), rng.integers(2, size=14)
        indicator = (classes[:, :, None] == np.arange(4)).astype(float)
        overall = rng.random((3, 4)) + 0.1
        out = _counted(indicator, group, 2, who, overall, m_min)
        for a in range(2):
            mine = group == a
            expected = naive.shared_classes(classes[mine].tolist(), who[mine].tolist(), overall.tolist(), m_min)
            np.testing.assert_allclose(out[a], expected)

    def test_groups_are_of_enough_users_or_there_are_none(self):
        rng = lab(2)
        classes = rng.integers(4, size=(60, 8))
        groups = learn_archetypes(classes, 4, 5, m_min=6, rng=lab())
        assert np.bincount(groups.nearest(classes), minlength=5).min() >= 6
        np.testing.assert_allclose(groups.share.sum(axis=2), 1)
        with pytest.raises(ew.errors.NotEnoughUsers, match="`m_min` = 13"):
            learn_archetypes(classes, 4, 5, m_min=13, rng=lab())
        # days are not users
        with pytest.raises(ew.errors.NotEnoughUsers):
            learn_archetypes(classes, 4, 2, m_min=6, user=np.arange(60) % 4, rng=lab())

    def test_everything_is_kept_where_one_user_is_enough(self, town):
        known = np.ones(40, dtype=bool)
        one, other = (
            learn_habits(town[0].r, town[0].locations, known, user=u, rng=lab()) for u in (None, town[0].user)
        )
        assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in OF_WALK)
        moves = int((town[0].r[:, 1:] != town[0].r[:, :-1]).sum())
        assert one.count.sum() == moves
        assert one.rest.sum() == 0


class TestCanary:
    """What one person alone has done is not in the file."""

    def people(self, alone):
        """40 people on a map without coordinates; the last does what `alone` says from slot 4 on."""
        rng = lab(3)
        r = np.where(rng.random((40, 8)) < 0.6, rng.integers(4, size=(40, 1)), rng.integers(4, size=(40, 8)))
        r[-1] = [0, 1, 0, 1, *alone]
        return ew.Traces(r, ew.Locations(n=12), users=[f"u{i}" for i in range(40)])

    def arrays(self, alone):
        with_it = ew.learn(self.people(alone), preset_of("deniable", m_min=M_MIN), kappa=3, rng=lab())
        return arrays_of(with_it.files()), with_it

    def test_a_place_of_one_person_leaves_no_trace(self):
        # the two places differ in their names only, and in nobody else's day: a file in which they can be told apart
        # would say where that person was
        (one, _), (other, _) = self.arrays([9, 9, 0, 0]), self.arrays([10, 10, 0, 0])
        assert one.keys() == other.keys()
        assert {"carried.walk.move", "carried.archetypes.share"} <= one.keys()
        weights = {f"carried.walk.{name}" for name in ("destination", "moving", "leaving")}
        for name, array in one.items():
            if name in weights:  # found step by step, places in another order
                np.testing.assert_allclose(array, other[name], atol=1e-4)
            else:
                np.testing.assert_array_equal(array, other[name], err_msg=name)

    def test_moves_of_one_person_leave_no_trace(self):
        # between places that everybody knows: how often these are visited is told, the ways between them are not
        R = 12
        rng = lab(4)
        around = np.repeat(rng.integers(4, size=(40, 2)), 4, axis=1)  # nobody but the last ever goes 4 -> 5 -> 6
        around[::4, :3] = [4, 4, 0]
        around[1::4, :3] = [5, 5, 1]
        around[2::4, :3] = [6, 6, 2]
        around[-1] = [4, 4, 5, 5, 6, 6, 4, 4]
        people = ew.Traces(around, ew.Locations(xy=rng.random((R, 2))))
        learnt = ew.learn(people, preset_of("deniable", m_min=M_MIN), kappa=3, rng=lab())
        arrays = arrays_of(learnt.files())
        mine = {4 * R + 5, 5 * R + 6, 6 * R + 4}
        assert learnt.known[[4, 5, 6]].all()
        assert not mine & set(arrays["carried.walk.move"].tolist())
        assert not mine & set(arrays["carried.walk.pair"].tolist())
        assert not mine & set((arrays["model.key"] % (R * R)).tolist())
        assert arrays["carried.walk.rest"][4] == 0  # nor that somebody left by a way of his own
        # with everything kept they are there
        everything = learn_habits(around, people.locations, learnt.known, rng=lab())
        assert mine <= set(everything.move.tolist())
        # and a step that nobody else makes is as likely as lengths and arrivals say
        few = learnt.carried.habits
        tables = few.tables(people.locations, learnt.known)
        law = naive_step(few, tables.lengths, 4)
        expected = law[5] ** few.destination[-3] * few.arrivals[5] ** few.destination[-2]
        np.testing.assert_allclose(tables.steps[4, 5], expected)


def naive_step(habits, lengths, r):
    """Where a move out of r leads when nothing is known of moves out of r but how many there are."""
    R = len(habits.rest)
    pull = [0.0 if x == r else habits.arrivals[x] * habits.kernel[lengths[r, x]] for x in range(R)]
    known = {int(m % R): n for m, n in zip(habits.move, habits.count, strict=True) if m // R == r}
    total = sum(known.values()) + habits.rest[r] + 2
    return [(known.get(x, 0) + (2 + habits.rest[r]) * pull[x] / sum(pull)) / total + 1e-12 for x in range(R)]


class TestFile:
    def test_a_file_says_the_same_as_memory_to_the_last_bit(self, town, learnt, tmp_path):
        learnt.save(tmp_path)
        back = FittedModel.load(tmp_path)
        assert len(back.carried.archetypes.share) == number_of_archetypes(120, 0.5) == 10
        for name in ("share", "score", "price", "size"):
            assert np.array_equal(getattr(learnt.carried.archetypes, name), getattr(back.carried.archetypes, name))
        one, other = (x.carried.habits.tables(x.model.locations, x.known) for x in (learnt, back))
        for name, array in one._asdict().items():
            assert np.array_equal(array, getattr(other, name)), name
        # and again
        assert arrays_of(back.files()).keys() == arrays_of(learnt.files()).keys()
        made = [ew.generate_fakes(town[1], model=x, rng=lab(), **RUN) for x in (learnt, back)]
        assert np.array_equal(made[0].r, made[1].r)
        assert made[0].sampler.log_prob(made[0].r[:5], town[1].r).tolist() == (
            made[1].sampler.log_prob(made[0].r[:5], town[1].r).tolist()
        )
        assert made[0].preset.archetypes == 10

    def test_a_file_that_carries_nothing_is_refused_with_what_to_do(self, town, learnt, tmp_path):
        files = learnt.files()
        arrays = {name: a for name, a in arrays_of(files).items() if not name.startswith("carried.")}
        index = {**json.loads(files["model.json"]), "carried": None}
        bare = FittedModel.load(written(tmp_path / "bare", arrays, index))
        assert bare.carried is None
        with pytest.raises(ew.errors.InvalidParameter, match="learn it again under the deniable preset") as said:
            ew.generate_fakes(town[1], model=bare, rng=lab(), **RUN)
        assert said.value.code == "E_DISJOINT"

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("walk.move", lambda a: a[::-1]),
            ("walk.move", lambda a: a + 40 * 40),
            ("walk.move", lambda a: a.astype(np.int32)),
            ("walk.count", lambda a: -a),
            ("walk.count", lambda a: a[:-1]),
            ("walk.count", lambda a: a * np.nan),
            ("walk.rest", lambda a: a - 1e9),
            ("walk.arrivals", lambda a: a * 0),
            ("walk.kernel", lambda a: a[:-1]),
            ("walk.kernel", lambda a: a * 0),
            ("walk.pair", lambda a: np.zeros_like(a)),
            ("walk.pair", lambda a: a + 40 * 40),
            ("walk.onward", lambda a: a + 40),
            ("walk.onward_count", lambda a: a * np.inf),
            ("walk.first", lambda a: a * 0),
            ("walk.destination", lambda a: a + 1e6),
            ("walk.moving", lambda a: a.reshape(1, -1)),
            ("walk.leaving", lambda a: a - 101),
            ("walk.day_statistics", lambda a: a / 2),
            ("walk.day_statistics", lambda a: a[:, :-1]),
            ("walk.day_statistics", lambda a: a.ravel()),
            ("walk.day_statistics", lambda a: a[:, :1]),
            ("archetypes.share", lambda a: a * 2),
            ("archetypes.share", lambda a: a - 1),
            ("archetypes.share", lambda a: a[:1]),
            ("archetypes.share", lambda a: a[:, :, :-1]),
            ("archetypes.share", lambda a: a.astype(np.float32)),
            ("archetypes.score", lambda a: a * np.nan),
            ("archetypes.score", lambda a: a[:, :1]),
            ("archetypes.price", lambda a: a[:1]),
            ("archetypes.size", lambda a: a / 2),
            ("archetypes.size", lambda a: a * np.where(np.arange(len(a)) == 0, -1, 1.5)),
            ("archetypes.size", None),
            ("walk.first", None),
        ],
    )
    def test_arrays_that_cannot_be_are_refused(self, learnt, tmp_path, name, change):
        files = learnt.files()
        arrays, name = arrays_of(files), f"carried.{name}"
        arrays[name] = np.ascontiguousarray(change(arrays[name])) if change else arrays.pop(name)
        if change is None:
            del arrays[name]
        with pytest.raises(ew.errors.InvalidModel):
            FittedModel.load(written(tmp_path / "wrong", arrays, json.loads(files["model.json"])))

    @pytest.mark.parametrize(
        "change",
        [
            {"archetypes": 0},
            {"archetypes": 3},
            {"archetypes": "all"},
            {"archetypes": True},
            {"reach": -1.0},
            {"reach": "far"},
            {"reach": float("nan")},
            {"people": 0},
            {"people": None},
            None,
            [],
        ],
    )
    def test_numbers_that_cannot_be_are_refused(self, learnt, tmp_path, change):
        files = learnt.files()
        index = json.loads(files["model.json"])
        index["carried"] = {**index["carried"], **change} if isinstance(change, dict) else change
        folder = written(tmp_path / "wrong", arrays_of(files), index)
        if change is None:  # arrays that nobody asks for are not looked at
            assert FittedModel.load(folder).carried is None
            return
        with pytest.raises(ew.errors.InvalidModel):
            FittedModel.load(folder)


class TestRuns:
    def test_the_number_of_archetypes(self, town):
        chosen = ew.learn(town[0], preset_of("deniable", m_min=M_MIN, archetypes=7), kappa=5, rng=lab())
        assert ew.generate_fakes(town[1], model=chosen, rng=lab(), **RUN).preset.archetypes == 7
        with pytest.raises(ew.errors.InvalidParameter, match="at most the 120 people"):
            ew.learn(town[0], preset_of("deniable", m_min=M_MIN, archetypes=121), kappa=5, rng=lab())
        with pytest.raises(ew.errors.NotEnoughUsers, match="take fewer groups"):
            ew.learn(town[0], preset_of("deniable", m_min=M_MIN, archetypes=60), kappa=5, rng=lab())

    def test_what_does_not_fit_what_is_carried(self, town, learnt):
        # other classes: the archetypes speak of those they were learnt with
        label = np.where(learnt.classes.label >= 0, learnt.classes.label, 0)
        with pytest.raises(ew.errors.InvalidParameter, match="without `classes` of your own"):
            ew.generate_fakes(town[1], model=learnt, classes=label, rng=lab(), **RUN)
        # another number of slots
        short = ew.Traces(town[1].r[:, :36], town[1].locations, step_minutes=town[1].step_minutes)
        with pytest.raises(ew.ElsewhereError, match="72 slots") as said:
            ew.generate_fakes(short, model=learnt, rng=lab(), **RUN)
        assert said.value.code == "E_MISMATCH"

    def test_a_larger_m_min_than_it_was_learnt_with_is_refused(self, town, learnt):
        with pytest.raises(ew.errors.InvalidParameter, match="learn it again") as said:
            ew.generate_fakes(town[1], model=learnt, rng=lab(), **{**RUN, "m_min": M_MIN + 1})
        assert said.value.code == "E_MISMATCH"

    def test_other_presets_and_whoever_says_so_carry_nothing(self, town, learnt):
        plain = ew.learn(town[0], preset_of("deniable", m_min=M_MIN), kappa=5, rng=lab(), carry=False)
        assert plain.carried is None
        assert np.array_equal(plain.classes.label, learnt.classes.label)
        assert ew.learn(town[0], preset_of("product", m_min=M_MIN, c_min=1), kappa=5, rng=lab()).carried is None
        assert "array" not in repr(learnt.carried)
