"""Places with ids and categories of their own: what of them stays when traces are read."""

import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makefiles import read_together

import elsewhere as ew
from elsewhere.traces.places import Words, majority_categories
from elsewhere.traces.write import save_traces


def venues(people_of):
    """One day of each person at one venue, `people_of` venue -> persons; venue i lies i km east of Lausanne."""
    rows = []
    for i, (venue, people) in enumerate(people_of.items()):
        for person in people:
            for slot in range(72):
                at = f"2013-04-15 {slot // 3:02}:{slot % 3 * 20:02}:00"
                rows.append((person, at, 46.5, 6.5 + i / 76, venue, f"kind {venue[0]}"))
    return pd.DataFrame(rows, columns=["uid", "datetime", "lat", "lng", "venue", "category"])


def test_ids_of_places_stay_where_enough_people_share_them_and_the_rest_is_joined():
    shared = {f"s{i}": [f"u{10 * i + j}" for j in range(8)] for i in range(3)}
    rare = {f"r{i}": [f"v{i}"] for i in range(12)}
    told = []
    frame = venues({**shared, **rare})
    traces = ew.read_traces(frame, cells=6, report=told.append)

    names = traces.locations.names
    assert sorted(name for name in names if name and name[0] == "s") == ["s0", "s1", "s2"]
    assert traces.R <= 6
    assert traces.locations.lon[names.index("s2")] == pytest.approx(6.5 + 2 / 76)
    assert any("areas without an id" in note for note in told[0].notes)
    # an area holds six people at least: half of those who share nothing else
    area = [p for p, name in enumerate(names) if not name]
    assert all(len(np.unique(traces.user[(traces.r == p).any(axis=1)])) >= 6 for p in area)
    assert len(area) == traces.R - 3 > 0
    # up to `cells` of them, all stay, and so they do where the caller wants all
    for cells in (15, None):
        whole = ew.read_traces(frame, cells=cells)
        assert sorted(whole.locations.names) == sorted({**shared, **rare})
    # places of coordinates alone are merged as before
    assert ew.read_traces(frame, cells=6, columns={"place": None}).locations.names is None


def test_an_area_has_the_category_of_most_of_its_people():
    frame = venues({f"{'b' if i > 5 else 'a'}{i}": [f"p{i}"] for i in range(8)})
    joined = ew.read_traces(frame, cells=1)
    assert joined.locations.names == ("",)
    assert joined.locations.categories == ("kind a",)
    assert joined.locations.category_users.tolist() == [6]


rows_with_words = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from(["", "inn", "mill", "x"])), min_size=1, max_size=40
)


@settings(max_examples=200, deadline=None)
@given(rows_with_words)
def test_a_category_is_that_of_most_people_each_with_one_voice(rows):
    users, places, said = (list(side) for side in zip(*rows, strict=True))
    names = sorted({word for word in said if word})
    if not names:
        return
    words = Words(
        np.array(users), np.array(places), np.array([names.index(w) if w else -1 for w in said]), tuple(names)
    )
    found = majority_categories(words, 3)
    assert list(zip(found["categories"], found["category_users"].tolist(), strict=True)) == naive.majority_category(
        users, places, said, 3
    )


def test_a_column_of_categories_refuses_nobodys_file():
    frame = venues({"a1": ["p", "q"]})
    odd = frame.assign(category=["x" * 300] * len(frame))
    traces = ew.read_traces(odd)
    assert traces.locations.categories is None
    assert ew.read_traces(frame.assign(category=None)).locations.categories is None
    assert ew.read_traces(frame.drop(columns="category").assign(purpose=3)).locations.categories == ("3",)


def test_prepared_places_keep_names_and_categories(tmp_path):
    frame = venues({"a,1": ["p", "q"], 'b"2': ["r"]})
    told = []
    traces = ew.read_traces(frame, report=told.append)
    save_traces(traces, told[0], tmp_path)
    back = ew.read_traces(tmp_path)
    assert np.array_equal(back.r, traces.r)
    assert back.locations == traces.locations
    assert (back.locations.names, back.locations.categories) == (traces.locations.names, traces.locations.categories)
    assert np.array_equal(back.locations.category_users, traces.locations.category_users)
    # grid cells have no names, and get none on the way
    cells = ew.read_traces(frame, columns={"place": None}, report=told.append)
    (tmp_path / "cells").mkdir()
    save_traces(cells, told[-1], tmp_path / "cells")
    assert ew.read_traces(tmp_path / "cells").locations.names is None


def test_a_file_whose_rare_venues_were_merged_is_perfect_beside_itself():
    shared = {f"s{i}": [f"u{10 * i + j}" for j in range(8)] for i in range(3)}
    frame = venues(shared | {f"r{i}": [f"v{i}"] for i in range(12)})
    found, _ = read_together({"real": frame, "fakes": frame, "some": frame[frame.uid != "v3"]}, cells=6)
    assert np.array_equal(found["real"].r, found["fakes"].r)
    rows = [u != "v3" for u in found["real"].users]
    assert np.array_equal(found["real"].r[rows], found["some"].r)


def test_the_same_ids_elsewhere_are_other_places():
    here = venues({f"s{i}": [f"u{i}"] for i in range(4)})
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        read_together({"real": here, "fakes": here.assign(lat=20.0)})
    assert caught.value.code == "E_MISMATCH"
