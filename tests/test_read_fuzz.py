"""Mangled files of every kind: read, or refused with an error of ours that shows no value of a trace."""

import gzip
import io
import json
import re
import time
import zipfile

import numpy as np
import pandas as pd
import pytest

from elsewhere.data.read import read_visits
from elsewhere.errors import ElsewhereError

USERS = ("CANARYann7f3a", "CANARYbob91c2", "CANARYeve55d0")
SECRET = re.compile(r"CANARY|52\.51\d{3}|13\.40\d{3}|2024-03-1\d")
TOKENS = [
    b",", b";", b"\t", b'"', b"\n", b"\r", b"\x00", b"\xff", b"{", b"}", b"[", b"]", b"<", b"nan", b"-", b"1e999", b"0",
    b"99999999999999999999", "é".encode(), b"inf", b"null", b"lat", b"time", b"user", b"POINT (", b"24:00", b":60",
    b"Z", b"+02:00", b"/", b"#", b" ",
]  # fmt: skip


def rows(n=60):
    for i in range(n):
        yield (
            USERS[i % 3],
            pd.Timestamp("2024-03-10") + pd.Timedelta(minutes=37 * i),
            52.51 + 1e-5 * i,
            13.40 + 1e-5 * (i % 9),
        )


def files():
    """Return name -> bytes of one small file of every kind."""
    data = list(rows())
    frame = pd.DataFrame(data, columns=["user", "time", "lat", "lon"])
    made = {"a.csv": frame.to_csv(index=False), "b.csv": frame.to_csv(index=False, header=False, sep=";", decimal=",")}
    made["c.tsv"] = frame.assign(
        end=frame["time"] + pd.Timedelta(minutes=9), place=frame["lon"].map("v{:.5f}".format)
    ).to_csv(index=False, sep="\t")
    made["d.jsonl"] = "".join(
        json.dumps({"user": {"id": u}, "ts": t.timestamp(), "lat": y, "lon": x}) + "\n" for u, t, y, x in data
    )
    made["e.json"] = json.dumps(
        [
            {"uid": u, "time": f"{t.isoformat()}Z", "point": {"type": "Point", "coordinates": [x, y]}}
            for u, t, y, x in data
        ]
    )
    line = [[x, y, 0, t.timestamp()] for _, t, y, x in data]
    made["f.geojson"] = json.dumps(
        {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "properties": {"user": u}, "geometry": {"type": "LineString", "coordinates": line}}
                for u in USERS
            ],
        }
    )
    made["g.json"] = json.dumps(
        {
            "locations": [
                {"timestamp": f"{t.isoformat()}Z", "latitudeE7": int(y * 1e7), "longitudeE7": int(x * 1e7)}
                for _, t, y, x in data
            ]
        }
    )
    made["h.json"] = json.dumps(
        {
            "semanticSegments": [
                {
                    "startTime": f"{t.isoformat()}+01:00",
                    "endTime": f"{t.isoformat()}+01:00",
                    "visit": {"topCandidate": {"placeLocation": {"latLng": f"{y}°, {x}°"}}},
                }
                for _, t, y, x in data
            ]
        },
        ensure_ascii=False,
    )
    points = "".join(f'<trkpt lat="{y}" lon="{x}"><time>{t.isoformat()}Z</time></trkpt>' for _, t, y, x in data)
    made["i.gpx"] = (
        f'<gpx version="1.1" creator="a" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>{points}</trkseg></trk></gpx>'
    )
    made["j.plt"] = "Geolife trajectory\nWGS 84\n\n\n\n0\n" + "".join(
        f"{y},{x},0,492,0,{t:%Y-%m-%d},{t:%H:%M:%S}\n" for _, t, y, x in data
    )
    made["k.txt"] = "".join(f"{u}\tv1\tc1\tCafé\t{y}\t{x}\t60\t{t:%a %b %d %H:%M:%S +0000 %Y}\n" for u, t, y, x in data)
    made["l.txt"] = "".join(f"{u},{s},{1 + (u + s) % 9}\n" for u in range(1, 6) for s in range(1, 13))
    made["m.csv"] = "person,start_time,end_time,start_lat,start_lon,end_lat,end_lon\n" + "".join(
        f"{u},{t},{t + pd.Timedelta(minutes=9)},{y},{x},{y},{x}\n" for u, t, y, x in data
    )
    made["n.csv"] = "TRIP_ID,TAXI_ID,TIMESTAMP,POLYLINE\n" + "".join(
        f'{i},{u},{int(t.timestamp())},"[[{x},{y}],[{x},{y}]]"\n' for i, (u, t, y, x) in enumerate(data)
    )
    made["o.csv"] = "person,date,departure,arrival,from_zone,to_zone\n" + "".join(
        f"{u},{t:%d.%m.%Y},{t:%H:%M},{t:%H:%M},Z{i % 4},Z{i % 3}\n" for i, (u, t, _, _) in enumerate(data)
    )
    made["s.txt"] = "".join(
        f"{u}\t{t.isoformat()}Z\t{y + i % 7 / 999:.6f}\t{x:.6f}\t{90_000 + i % 7}\n"
        for i, (u, t, y, x) in enumerate((u, t, 52.51, 13.405) for u, t, _, _ in data)
    )
    made["t.csv"] = "person,day,start_min,end_min,activity\n" + "".join(
        f"{u},{i // 24},{60 * (i % 24)},{60 * (i % 24) + 45},a{i % 4}\n" for i, (u, *_) in enumerate(data)
    )
    made["u.txt"] = "".join(f"{u};{t:%Y-%m-%d %H:%M:%S.25}+01;POINT({y} {x})\n" for u, t, y, x in data)
    made["v.csv"] = "card,start_hour,start_minute,boarding_stop,session_end,alighting_stop,date\n" + "".join(
        f"{u},{t.hour},{t.minute},{i % 5},{t:%H:%M},{i % 4},{t:%d.%m.%Y}\n" for i, (u, t, _, _) in enumerate(data)
    )
    done = {name: content.encode() for name, content in made.items()}
    done["p.parquet"] = frame.to_parquet()
    done["q.csv.gz"] = gzip.compress(done["a.csv"])
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.csv", done["a.csv"])
    done["r.zip"] = sink.getvalue()
    return done


def mangle(content, others, rng):
    """Return the bytes with some damage: flipped, cut, doubled, moved, with tokens, or with a piece of another file."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        at, size = int(rng.integers(len(data) + 1)), int(rng.integers(1, 60))
        how = int(rng.integers(7))
        if how == 0 and data:
            data[min(at, len(data) - 1)] ^= 1 << int(rng.integers(8))
        elif how == 1:
            del data[at : at + size]
        elif how == 2:
            data[at:at] = data[at : at + size] * int(rng.integers(1, 4))
        elif how == 3:
            data[at:at] = TOKENS[int(rng.integers(len(TOKENS)))]
        elif how == 4:
            token = TOKENS[int(rng.integers(len(TOKENS)))]
            data = bytearray(
                bytes(data).replace(token, TOKENS[int(rng.integers(len(TOKENS)))], int(rng.integers(1, 99)))
            )
        elif how == 5:
            other = others[int(rng.integers(len(others)))]
            start = int(rng.integers(len(other)))
            data[at : at + size] = other[start : start + size]
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def fuzz(folder, seed, seconds):
    """Read mangled files for some seconds, and return how many were read and how many refused."""
    rng, whole = np.random.default_rng(seed), files()
    until, outcomes = time.monotonic() + seconds, {"read": 0, "refused": 0}
    for name, content in whole.items():
        (folder / name).write_bytes(content)
        assert read_visits(folder / name).U >= 1, name
    while time.monotonic() < until:
        name = list(whole)[int(rng.integers(len(whole)))]
        path = folder / f"mangled{name[1:]}"
        path.write_bytes(mangle(whole[name], list(whole.values()), rng))
        try:
            visits = read_visits(path)
            told = visits.preparation
            said = " ".join((*told.notes, *told.dropped, *told.changed, *told.left_out))
            outcomes["read"] += 1
        except ElsewhereError as error:
            said = str(error)
            outcomes["refused"] += 1
        except BaseException:
            (folder / f"failed-{seed}-{name}").write_bytes(path.read_bytes())
            raise
        assert not SECRET.search(said), said
        assert "\n" not in said
    return outcomes


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_mangled_files_are_read_or_refused(tmp_path):
    outcomes = fuzz(tmp_path, 7, 8)

    assert min(outcomes.values()) > 0


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ten_minutes_of_mangled_files(tmp_path):
    outcomes = fuzz(tmp_path, int(time.time()), 600)

    print(outcomes)
    assert min(outcomes.values()) > 0
