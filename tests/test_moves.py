"""Allowed moves (E36): how a table of them is read, and that no fake of any preset makes another."""

import json
from dataclasses import replace
from itertools import pairwise

import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elsewhere as ew
from elsewhere.run.finish import summary
from elsewhere.run.model import FittedModel, note_areas
from elsewhere.settings import preset_of
from elsewhere.synthesis.walk.ways import Ways
from elsewhere.traces.maps import read_moves

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:.* classes instead of", "ignore:`m_min` = 1", "ignore:`alternates=", "ignore:.*nobody can leave"
    ),
    pytest.mark.usefixtures("few_draws", "few_rounds"),
]
ASKED = {
    "paper": {},
    "product": {"m_min": 3, "k": 3, "c_min": 1, "class_draws": 1},
    "private": {"eps": 10.0, "n": 100},
}


def lab(seed=1):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def town():
    return ew.simulate_town(users=120, locations=60, rng=lab(3)).traces


@pytest.fixture(scope="module")
def many():
    return ew.simulate_town(users=400, locations=20, rng=lab(4)).traces


@pytest.fixture(scope="module")
def weeks():
    return ew.simulate_town(users=60, days=5, locations=60, rng=lab(5)).traces


def neighbours(where, number):
    """Each place and its nearest ones, as pairs of numbers in both directions."""
    R = len(where)
    far = np.stack([where.distance(np.full(R, r), np.arange(R)) for r in range(R)])
    pairs = [(a, b) for a in range(R) for b in np.argsort(far[a], kind="stable")[1 : number + 1].tolist()]
    return sorted({*pairs, *((b, a) for a, b in pairs)})


def made_by(fakes):
    """All moves of these fakes, those over midnight between two days of one life too."""
    r, before = fakes.r.astype(int), {}
    found = {(a, b) for row in r.tolist() for a, b in pairwise(row) if a != b}
    if fakes.day is not None:
        before = dict(zip(zip(fakes.life.tolist(), fakes.day.tolist(), strict=True), range(len(r)), strict=True))
    for (life, day), row in before.items():
        if (life, day + 1) in before:
            found.add((int(r[row, -1]), int(r[before[life, day + 1], 0])))
    return {(a, b) for a, b in found if a != b}


def people_of(preset, town, many, weeks):
    return {"private": many, "lives": weeks}.get(preset, town)


@pytest.mark.parametrize("preset", ["paper", "product", "lives", "private"])
def test_no_fake_makes_a_move_that_the_table_forbids(preset, town, many, weeks):
    people, name = people_of(preset, town, many, weeks), {"lives": "product"}.get(preset, preset)
    allowed = set(neighbours(people.locations, 8))
    table = pd.DataFrame(sorted(allowed), columns=["from", "to"])
    fakes = ew.generate_fakes(people, preset=name, feasible=table, rng=lab(), **ASKED[name])

    own = {(a, b) for row in people.r.tolist() for a, b in pairwise(row) if a != b}
    assert len(own - allowed) > 0.1 * len(own)  # people make others
    assert made_by(fakes)
    assert made_by(fakes) <= allowed
    assert any("which the given table does not allow" in note for note in fakes.notes)
    assert (fakes.day is not None) == (preset == "lives")


@pytest.mark.parametrize("preset", ["paper", "product"])
def test_moves_of_the_data_are_those_that_enough_people_make(preset, town):
    asked = ASKED[preset]
    fakes = ew.generate_fakes(town, preset=preset, feasible="data", rng=lab(), **asked)
    m_min = asked.get("m_min", 1)
    learnt = fakes.learnt.translate(town)
    who = {}
    for row, user in zip(learnt.r.tolist(), learnt.user.tolist(), strict=True):
        for a, b in pairwise(row):
            who.setdefault((a, b), set()).add(user)

    assert made_by(fakes)
    # of everybody, of whom the people who are learnt from are some
    assert all(len(who.get(move, ())) >= m_min for move in made_by(fakes))


def test_the_private_preset_refuses_moves_of_its_people_before_anything_is_read(many, tmp_path):
    for call in (
        lambda: ew.generate_fakes(many, preset="private", feasible="data", eps=10.0),
        lambda: ew.synthesize("nowhere.csv", tmp_path / "out", preset="private", feasible="data", grid="1,1,2,2,9"),
    ):
        with pytest.raises(ew.errors.InvalidParameter, match="must not be learnt from the file") as refused:
            call()
        assert refused.value.code == "E_MAP"


def test_walks_do_not_pass_through_places_that_too_few_people_visit(town):
    people, others = town.of_users(np.arange(60)), town.of_users(np.arange(60, 120))
    rare = people.visitors() < 6
    # a star: every way leads through a place that few of the model's people visit
    middle = int(np.flatnonzero(rare & (others.visitors() > 0))[0])
    star = np.eye(town.R)
    star[middle] = star[:, middle] = 1
    star[np.ix_(~rare, ~rare)] = np.triu(np.ones((int((~rare).sum()),) * 2))
    first, second = np.flatnonzero(~rare)[:2]
    star[second, first] = 1  # one way back: a table without any is refused
    learnt = ew.learn(people, preset_of("product", m_min=6), kappa=6, feasible=star, rng=lab())
    fakes = ew.generate_fakes(others, m_min=6, model=learnt, rng=lab(), k=3, c_min=1)

    assert not rare[np.unique(fakes.r)].any()
    assert all(star[a, b] for a, b in made_by(fakes))
    assert any("do not lead from every place" in note for note in fakes.notes)


@pytest.mark.parametrize("preset", ["product", "private"])
def test_a_table_that_lets_nobody_go_anywhere_is_refused(preset, town, many):
    people = people_of(preset, town, many, None)
    with pytest.raises(ew.errors.InvalidParameter, match="`feasible` allows no move") as refused:
        ew.generate_fakes(people, preset=preset, feasible=np.eye(people.R), rng=lab(), **ASKED[preset])
    assert refused.value.code == "E_FEASIBLE"


def test_a_table_by_which_nobody_comes_home_is_refused(town):
    shared = np.flatnonzero(town.visitors() == town.visitors().max())[0]
    table = pd.DataFrame({"from": [shared], "to": [np.argsort(town.visitors())[-2]]})
    with pytest.raises(ew.errors.InvalidParameter, match="no way back") as refused:
        ew.generate_fakes(town, feasible=table, rng=lab(), **ASKED["product"])
    assert refused.value.code == "E_FEASIBLE"


def test_where_no_way_leads_through_the_candidates_the_paper_says_so(town):
    moving = town.select((town.r != town.r[:, :1]).any(axis=1))
    with pytest.raises(ew.errors.NoFeasiblePath, match="`feasible` allows") as refused:
        ew.generate_fakes(moving, preset="paper", feasible=np.eye(town.R), par_m=0, kappa=12, max_tries=2, rng=lab())
    assert refused.value.code == "E_PATH"


def test_a_given_model_brings_its_moves_and_a_table_replaces_them(town, tmp_path):
    one, two = (set(neighbours(town.locations, n)) for n in (6, 9))
    table = {n: pd.DataFrame(sorted(moves), columns=["from", "to"]) for n, moves in ((1, one), (2, two))}
    learnt = ew.learn(town, preset_of("product", m_min=3, c_min=1), kappa=6, feasible=table[1], rng=lab())
    learnt.save(tmp_path / "model")
    run = {"model": FittedModel.load(tmp_path / "model"), "rng": lab(), **ASKED["product"]}

    assert made_by(ew.generate_fakes(town, **run)) <= one
    assert made_by(ew.generate_fakes(town, feasible=table[2], **run)) <= two
    with pytest.raises(ew.errors.InvalidParameter, match="from the people a model is learnt from") as refused:
        ew.generate_fakes(town, feasible="data", **run)
    assert refused.value.code == "E_FEASIBLE"


@given(st.data())
def test_ways_are_those_of_the_slow_twin(data):
    R = data.draw(st.integers(2, 7))
    xy = lab(data.draw(st.integers(0, 99))).random((R, 2)) * 10
    pair = st.tuples(st.integers(0, R - 1), st.integers(0, R - 1))
    moves = data.draw(st.sets(pair, min_size=1).filter(lambda m: any(a != b for a, b in m)))
    known = np.array(data.draw(st.lists(st.booleans(), min_size=R, max_size=R)))
    inside = {(a, b) for a, b in moves if known[a] and known[b]}
    matrix = np.zeros((R, R))
    matrix[tuple(np.array(sorted(moves)).T)] = 1
    start, target = np.cumsum([0, *matrix.sum(axis=1).astype(int)]), np.nonzero(matrix)[1]
    if not any(a != b for a, b in inside):
        with pytest.raises(ew.errors.InvalidParameter, match="allows no move"):
            Ways.of((start, target), known, ew.Locations(xy=xy))
        return
    pairs = [(a, b) for a in np.flatnonzero(known).tolist() for b in np.flatnonzero(known).tolist() if a != b]
    reached = {(a, b) for a, b in pairs if naive.next_on_the_way(inside, xy, a, b) != a}
    if not any((b, a) in reached for a, b in reached):
        with pytest.raises(ew.errors.InvalidParameter, match="no way back"):
            Ways.of((start, target), known, ew.Locations(xy=xy))
        return
    ways = Ways.of((start, target), known, ew.Locations(xy=xy))
    wanted = np.flatnonzero(known)[lab(1).integers(0, known.sum(), (3, 9))]
    for before, after in zip(wanted.tolist(), ways.keep(wanted).tolist(), strict=True):
        assert after[0] == before[0]
        for here, goal, there in zip(after, before[1:], after[1:], strict=False):
            assert there == naive.next_on_the_way(inside, xy, here, goal)
    assert ways.connected == (reached == set(pairs))


class TestTables:
    def test_by_ids_or_numbers_staying_is_always_allowed(self):
        named = ew.Locations(n=3, names=["a", "b", "c"])
        moves = read_moves({"To": ["b", "a"], "FROM": ["a", "b"]})
        assert moves.matrix(named).toarray().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
        numbered = read_moves({"from": [0, 2], "to": [2, 1]})
        assert numbered.matrix(ew.Locations(n=3)).toarray().tolist() == [[1, 0, 1], [0, 1, 0], [0, 1, 1]]

    def test_points_stand_for_the_nearest_places(self):
        where = ew.Locations([46.0, 46.5, 47.0], [6.0, 6.0, 6.0])
        at = {"from_lat": [46.1], "from_lon": [6.01], "to_lat": [46.9], "to_lon": [5.9]}
        assert read_moves(at).matrix(where).toarray().tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 1]]
        with pytest.raises(ew.errors.InvalidParameter, match="have no latitude") as refused:
            read_moves(at).matrix(ew.Locations(n=3))
        assert refused.value.code == "E_FEASIBLE"

    def test_what_is_not_on_the_map_is_left_out_and_counted(self):
        with pytest.warns(UserWarning, match="1 of 2 rows of `feasible`"):
            found = read_moves({"from": ["0", "x"], "to": ["1", "0"]}).matrix(ew.Locations(n=2))
        assert found.toarray().tolist() == [[1, 1], [0, 1]]
        with pytest.raises(ew.errors.InvalidParameter, match="no move between two places of the map") as refused:
            read_moves({"from": ["x"], "to": ["y"]}).matrix(ew.Locations(n=2))
        assert refused.value.code == "E_FEASIBLE"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("a,b\n1,2\n", "needs columns `from` and `to`"),
            ("from,to\n1,2\n1,\n", "must hold an id in every row"),
            ("from_lat,from_lon,to_lat,to_lon\n46,6,47,six\n", "no number of degrees"),
            ("from_lat,from_lon,to_lat,to_lon\n46,6,97,6\n", "no number of degrees"),
        ],
    )
    def test_other_tables_are_refused(self, text, said, tmp_path):
        (tmp_path / "moves.csv").write_text(text)
        with pytest.raises(ew.errors.InvalidTraces, match=said) as refused:
            read_moves(tmp_path / "moves.csv")
        assert refused.value.code == "E_FEASIBLE"


def test_the_commands_take_the_same_table(run, tmp_path):
    town = ew.simulate_town(users=60, locations=40, rng=lab(3)).traces
    named = ew.Traces(town.r, town.locations.relabel(names=[f"p{i}" for i in range(town.R)]), users=town.user)
    allowed = {(f"p{a}", f"p{b}") for a, b in neighbours(town.locations, 8)}
    ew.write_traces(named, tmp_path / "people.csv")
    pd.DataFrame(sorted(allowed), columns=["from", "to"]).to_csv(tmp_path / "moves.csv", index=False)
    asked = ["--feasible", tmp_path / "moves.csv", "--kappa", 6, "-k", 3, "--set", "m_min=2", "--set", "c_min=1"]
    status, said, err = run(
        "synthesize", tmp_path / "people.csv", "-o", tmp_path / "out", "--no-report", "--json", *asked
    )
    assert status == 0, err
    fakes = ew.Pool.load(tmp_path / "out").traces
    names = fakes.locations.names
    moves = {(names[a], names[b]) for row in fakes.r.tolist() for a, b in pairwise(row) if a != b}
    assert moves
    assert moves <= allowed
    assert any("given table does not allow" in note for note in json.loads(said)["notes"])

    status, _, err = run("synthesize", "nowhere.csv", "-o", tmp_path / "no", "--feasible", tmp_path / "none.csv")
    assert status == 2
    assert "none.csv" in err  # before anything else is read


def test_fakes_that_hardly_move_are_told_with_both_figures():
    town = ew.simulate_town(users=60, locations=40, rng=np.random.default_rng(3)).traces
    fakes = ew.generate_fakes(town, rng=np.random.default_rng(4), **ASKED["product"])
    assert not any("less than half as often" in note for note in summary(fakes, town)["notes"])
    still = replace(fakes, r=np.repeat(fakes.r[:, :1], town.L, axis=1))
    real = np.count_nonzero(np.diff(town.r, axis=1), axis=1).mean()
    said = summary(still, town)["notes"][-1]
    assert said.startswith(f"fakes move 0.0 times a day, people {round(real, 2):.1f}: less than half as often.")


def test_no_fake_jumps_between_two_cities_within_a_slot():
    """Two towns 400 km apart; some people go from one to the other by way of places that nobody shares."""
    rng = np.random.default_rng(1)
    homes = np.column_stack([45.75 + 0.01 * rng.random(20), 4.85 + 0.01 * rng.random(20)])
    far = homes + [3.1, -2.5]
    way = np.linspace(homes[0], far[0], 12)[1:-1]
    points = np.vstack([homes, far, way])
    r = rng.integers(20, size=(80, 24))
    r[40:] += 20
    r[:6, 6:18] = np.concatenate([np.arange(40, 50), [20, 20]])  # six travel, slowly
    r[:6, 18:] = 20
    town = ew.Traces(r, ew.Locations(lat=points[:, 0], lon=points[:, 1]), step_minutes=60)

    learnt = ew.learn(town, "product", kappa=4, rng=np.random.default_rng(2))
    start, target = learnt.model.feasible
    here = np.repeat(np.arange(50), np.diff(start))
    assert town.locations.distance(here, target).max() <= 50
    assert ew.learn(town, "paper", kappa=4, rng=np.random.default_rng(2)).model.feasible is None
    assert "2 areas up to 39" in note_areas(town, 5)[0]
    assert "(46 and 34 people)" in note_areas(town, 5)[0]
    # one city, or no positions on the earth: all moves, and no note
    one = town.of_users(np.arange(40, 80))
    assert ew.learn(one, "product", kappa=4, rng=np.random.default_rng(2)).model.feasible is None
    assert note_areas(one, 5) == ()
    assert note_areas(ew.Traces(r, ew.Locations(n=50)), 5) == ()
    # as far as enough people go in one slot, fakes may go
    r[:6, 6:18] = 20
    assert ew.learn(town.with_map(town.locations, r), "product", kappa=4, rng=rng).model.feasible is None
