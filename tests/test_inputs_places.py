"""Bad inputs about gaps, coverage, coordinates and places (B18 - B44): each answer, and that nothing is shown."""

import json

import numpy as np
import pandas as pd
import pytest
from test_read import day
from typer.testing import CliRunner

import elsewhere as ew
from elsewhere.cli import app
from elsewhere.data.ground import is_installed
from elsewhere.traces.maps import read_grid

CANARY = "CANARY-7f3a"
HIDDEN = "46.519"  # the start of a latitude that no message may show
NIGHT = pd.Timestamp("2013-04-15")


def fixes(minutes, lat, lon, uid=CANARY):
    when = [NIGHT + pd.Timedelta(minutes=float(m)) for m in minutes]
    return pd.DataFrame({"uid": uid, "datetime": when, "lat": lat, "lng": lon})


def whole_day(lat=46.5191, lon=6.5667, uid=CANARY):
    return fixes(np.arange(10, 1440, 20), np.full(72, lat), np.full(72, lon), uid)


def spike(at):
    table = whole_day()
    table.loc[at, ["lat", "lng"]] = 10.5, 70.5
    return table


def polygon(*corners):
    return {"type": "Polygon", "coordinates": [[list(c) for c in corners]]}


HERE = polygon((6, 46), (7, 46), (7, 47), (6, 47), (6, 46))

# name -> (table, options of the command, regions, expected code)
REFUSED = {
    "B34 one fix a day": (lambda: fixes([600], [46.5191], [6.5]), [], None, "E_EMPTY"),
    "B34 nobody covered enough": (
        lambda: whole_day().iloc[::9], ["--gaps", "drop", "--min-coverage", "0.9", "--max-gap", "1h"], None, "E_EMPTY",
    ),
    "B36 every third fix is a jump": (lambda: spike(range(1, 72, 3)), [], None, "E_SPEED"),
    "a policy nobody knows": (whole_day, ["--gaps", "guess"], None, "E_PARAM"),
    "a gap that is no time": (whole_day, ["--max-gap", "soon"], None, "E_PARAM"),
    "a coverage above one": (whole_day, ["--min-coverage", "1.5"], None, "E_PARAM"),
    "places nobody knows": (whole_day, ["--places", "hexagons"], None, "E_PARAM"),
    "nobody stays": (
        lambda: fixes([0, 60, 120], [46.5191, 46.9, 47.3], [6.5] * 3),
        ["--places", "stays", "--min-coverage", "0"], None, "E_EMPTY",
    ),
    "regions elsewhere": (whole_day, [], polygon((0, 0), (1, 0), (1, 1), (0, 0)), "E_OUTSIDE"),
    "regions of no polygon": (whole_day, [], {"type": "FeatureCollection", "features": []}, "E_EMPTY"),
    "regions of two corners": (whole_day, [], {"type": "Polygon", "coordinates": [[[6, 46], [7, 46]]]}, "E_NUMBER"),
    "regions of text": (whole_day, [], polygon((CANARY, 46), (7, 46), (7, 47), (6, 46)), "E_NUMBER"),
    "regions off the globe": (whole_day, [], polygon((6, 146), (7, 146), (7, 147), (6, 146)), "E_OUTSIDE"),
    "regions that are a number": (whole_day, [], 7, "E_PARAM"),
    "regions that are no JSON": (whole_day, [], f"{{{CANARY}", "E_JSON"),
    "regions without a file": (whole_day, [], False, "E_OPEN"),
}  # fmt: skip


def run(tmp_path, table, options, regions=None):
    source, out = tmp_path / "fixes.csv", tmp_path / "out"
    table.to_csv(source, index=False)
    if regions is not None:
        path = tmp_path / "regions.geojson"
        if regions is not False:
            path.write_text(regions if isinstance(regions, str) else json.dumps(regions))
        options = [*options, "--regions", str(path)]
    return CliRunner().invoke(app, ["prepare", str(source), "-o", str(out), *options], prog_name="elsewhere"), out


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_code_and_nothing_written(tmp_path, monkeypatch, case):
    monkeypatch.setenv("ELSEWHERE_DEBUG", "1")
    make, options, regions, code = REFUSED[case]
    result, out = run(tmp_path, make(), [*options, "--json"], regions)
    said = result.output + result.stderr
    error = json.loads(result.stdout)["error"]

    assert (result.exit_code, error["code"], error["exit_status"]) == (2, code, 2)
    assert result.stderr == f"{code}: {error['message']}\n"
    assert not out.exists()
    assert CANARY not in said
    assert HIDDEN not in said
    assert "Traceback" not in said


# name -> (table, options, regions, what the counts must say)
ACCEPTED = {
    "B18 poles and the date line": (
        lambda: fixes(np.arange(10, 1440, 20), np.full(72, 90.0), np.where(np.arange(72) % 2, 180.0, -180.0)),
        [], None, {"places": 1, "slots_observed": 72},
    ),
    "B24 across the antimeridian": (
        lambda: fixes([10, 70], [0.5, 60.5], [10.0, 10.0]).assign(lat=[10.5, 10.5], lng=[179.95, -179.95]),
        ["--gaps", "interpolate", "--min-coverage", "0"], None, {"slots_held": 2, "dropped": {}},
    ),
    "B33 a day of 23 hours": (
        lambda: whole_day().assign(datetime=lambda t: t.datetime - NIGHT + pd.Timestamp("2013-03-31")).query(
            "not (datetime >= '2013-03-31 02:00' and datetime < '2013-03-31 03:00')"),
        ["--tz", "Europe/Zurich", "--max-gap", "0min"], None, {"slots_missing": 3, "days": 1},
    ),
    "B34 a thin user beside a full one": (
        lambda: pd.concat([whole_day(uid="ann"), fixes([600], [46.5191], [6.5])]),
        [], None, {"users": 1, "users_dropped": 1, "days_dropped": 1},
    ),
    "B35 a fix every second": (
        lambda: fixes(np.arange(0, 1440, 0.5), np.full(2880, 46.5191), np.full(2880, 6.5)),
        [], None, {"slots_observed": 72, "rows": 2880},
    ),
    "B36 a single jump": (lambda: pd.concat([spike(30), whole_day(uid="b"), whole_day(uid="c")]),
                          ["--max-gap", "0min"], None, {"dropped": {"E_SPEED": 1}, "slots_missing": 1}),
    "B36 three fixes of 72 are jumps": (lambda: spike([10, 30, 50]), [], None, {"dropped": {"E_SPEED": 3}}),
    "B36 a jump that lasts": (
        lambda: whole_day().assign(lat=lambda t: np.where(t.index < 36, t.lat, -10.5)),
        [], None, {"dropped": {}, "slots_observed": 72},
    ),
    "B39 somebody who never moves": (whole_day, [], None, {"places": 1, "users": 1}),
    "a region around all": (whole_day, [], HERE, {"places": 1, "slots_observed": 72, "places_by": "regions"}),
    "no gap is filled": (lambda: whole_day().iloc[::2], ["--max-gap", "0min"], None, {"slots_held": 0}),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted_counted_and_kept_private(tmp_path, case):
    make, options, regions, expected = ACCEPTED[case]
    result, out = run(tmp_path, make(), [*options, "--json"], regions)

    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert {name: told[name] for name in expected} == expected
    assert CANARY not in result.output + result.stderr
    assert HIDDEN not in result.output + result.stderr
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o600}
    assert out.stat().st_mode & 0o777 == 0o700


def test_a_jump_that_lasts_is_said_aloud(tmp_path):  # B36
    result, _ = run(tmp_path, whole_day().assign(lat=lambda t: np.where(t.index < 36, t.lat, -10.5)), [])

    assert "faster than any airliner" in result.output


def test_one_place_alone_makes_no_fakes(tmp_path):  # B40
    table = pd.concat([whole_day(uid=f"{CANARY}{i}") for i in range(12)])
    with pytest.raises(ew.errors.InvalidTraces) as caught:
        ew.generate_fakes(ew.read_traces(table), rng=np.random.default_rng(1))

    assert caught.value.code == "E_TOO_FEW_PLACES"
    assert CANARY not in str(caught.value)


def test_places_that_nobody_shares_are_refused():  # B41
    table = pd.concat([whole_day(lat=46.0 + i / 50, uid=f"{CANARY}{i}") for i in range(12)])
    with pytest.raises(ew.ElsewhereError) as caught:
        ew.learn(ew.read_traces(table, places="grid"), rng=np.random.default_rng(1))

    assert caught.value.code == "E_SUPPRESSED"


def test_prepare_does_not_overwrite(tmp_path):  # C8
    run(tmp_path, whole_day(), [])
    result, out = run(tmp_path, day("ann"), [])

    assert result.exit_code == 2
    assert "E_OUTPUT" in result.stderr
    assert ew.read_traces(out).R == 1
    assert run(tmp_path, day("ann"), ["--force"])[0].exit_code == 0
    assert ew.read_traces(out).R == 2


@pytest.mark.skipif(not is_installed(), reason="names of towns are not installed (extra `maps`)")
@pytest.mark.parametrize(("text", "like"), [("nuremberg", "Nürnberg"), ("Zurich,100", "Zürich"), ("Paaris", "Paris")])
def test_a_town_that_is_not_known_is_answered_with_those_like_it(text, like):
    with pytest.raises(ew.errors.InvalidParameter, match=f"did you mean {like}( or .*)?[?] Else give another"):
        read_grid(text)
    with pytest.raises(ew.errors.InvalidParameter, match="is known; give another one nearby"):
        read_grid("Xyzzy")
