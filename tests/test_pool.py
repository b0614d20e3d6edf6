"""The pool of published fakes: what its folder holds, and what is refused of it."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2
from test_store import pool_of

from elsewhere.data.visits import Form, Locations, Visits
from elsewhere.errors import InvalidModel, InvalidParameter, OutputRefused
from elsewhere.files import write_files
from elsewhere.pool import Pool


def same(one, two):
    assert (one.users, one.tz, one.form, one.locations) == (two.users, two.tz, two.form, two.locations)
    for name in ("user", "start", "end", "place", "trip"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


def test_round_trip(tmp_path):
    made = pool_of(12, days=3)
    ids = sorted(made.ids)  # on disk lives are in the order of their ids, which are random
    pool = Pool(made.visits.of_users([made.ids.index(name) for name in ids]), {"notes": ["a"], "certificate": None})
    pool.save(tmp_path / "pool")
    back = Pool.load(tmp_path / "pool")

    same(back.visits, pool.visits)
    assert (back.ids, len(back)) == (tuple(ids), 12)
    assert dict(back.provenance) == dict(pool.provenance)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "pool").iterdir())


@pytest.mark.parametrize(
    "places",
    [
        Locations(n=4),
        Locations(xy=np.arange(8.0).reshape(4, 2)),
        Locations(
            lat=np.arange(4.0), lon=np.zeros(4), ids=["a b", "\u00fc", "c", "d"], kind=["", "Food & drink", "", "x"]
        ),
    ],
)
def test_round_trip_of_other_maps_and_trips(places, tmp_path):
    form = Form("trips", columns={"user": "who", "start": "t"}, offset=True)
    visits = Visits([0, 0, 1], [5, 9, 7], [6, 9, 70], [0, 1, 3], places, users=["a", "b"], trip=[0, 0, -1], form=form)
    Pool(visits, {}).save(tmp_path / "pool")

    same(Pool.load(tmp_path / "pool").visits, visits)


def test_a_draw_is_uniform_and_without_replacement():
    pool, rng = pool_of(8, days=1), np.random.default_rng(1)
    drawn = [pool.draw(2, rng=rng).users for _ in range(600)]
    count = np.array([sum(name in pair for pair in drawn) for name in pool.ids])

    assert all(len(set(pair)) == 2 for pair in drawn)
    # draws without replacement vary less than independent ones: the limit is on the safe side
    assert ((count - 150) ** 2 / 150).sum() < chi2.isf(1e-6, 7)
    with pytest.raises(InvalidParameter, match="`n`"):
        pool.draw(9, rng=rng)


def test_nothing_is_overwritten_by_mistake(tmp_path):
    folder, pool = tmp_path / "pool", pool_of(9)
    write_files(folder, {"mine.csv": b"mine"})
    with pytest.raises(OutputRefused):
        pool.save(folder)
    with pytest.warns(UserWarning, match="is now in"):
        pool.save(folder, force=True)

    assert {p.name for p in folder.iterdir()} == {"pool.parquet", "places.parquet", "manifest.json"}
    assert [p.read_bytes() for p in tmp_path.glob("pool.replaced-*/mine.csv")] == [b"mine"]
    Pool.load(folder)


def test_files_hold_visits_and_places_and_no_word_about_seeds(tmp_path):
    pool_of(9, places=5).save(tmp_path)
    told = json.loads((tmp_path / "manifest.json").read_text())

    assert pq.read_table(tmp_path / "pool.parquet").column_names == ["id", "start", "end", "place"]
    assert pq.read_table(tmp_path / "places.parquet").column_names == ["place", "lat", "lon"]
    assert (told["lives"], told["visits"], told["places"]) == (9, 72, 5)
    assert not [word for word in ("seed", "loglik", "entropy", "attempt", "tally") if word in json.dumps(told).lower()]


@pytest.mark.parametrize("name", ["pool.parquet", "places.parquet", "manifest.json"])
def test_damage_is_noticed(tmp_path, name):
    pool_of(9).save(tmp_path)
    data = bytearray((tmp_path / name).read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / name).write_bytes(bytes(data))
    with pytest.raises(InvalidModel):
        Pool.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 1}, {"format": 99}, {"kind": "else"}, {"visits": 10**12}, {"visits": 71}, {"lives": 8},
        {"places": 1}, {"tz": "Mars"}, {"files": {}}, {"files": 7}, {"form": {"record": "slots"}}, {"form": None},
        {"provenance": 3},
    ],
)  # fmt: skip
def test_a_manifest_that_does_not_fit_is_refused(tmp_path, change):
    pool_of(9).save(tmp_path)
    told = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**told, **change}))
    with pytest.raises(InvalidModel) as wrong:
        Pool.load(tmp_path)
    assert wrong.value.code == "E_POOL"


def test_a_folder_without_a_pool_is_refused(tmp_path):
    with pytest.raises(InvalidModel):
        Pool.load(tmp_path)
