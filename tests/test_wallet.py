"""The decoy client: what leaves it, what comes back, and what an attacker makes of what left."""

import http.server
import json
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, ks_2samp
from test_store import pool_of

from elsewhere import lbs
from elsewhere.data.visits import Locations, Visits
from elsewhere.errors import ElsewhereError
from elsewhere.lbs import Wallet
from elsewhere.pool import Pool

SECRET = b"a secret of sixteen or more bytes"
NOON = datetime(2024, 3, 6, 12, 0)
HERE = (60.123456789, 24.987654321)


def wallet_of(pool=None, **options):
    return Wallet(pool or pool_of(40, days=7, slots=24), secret=SECRET, **options)


class Service:
    """A location-based service that answers with what it was asked, and remembers all it saw."""

    def __init__(self):
        self.seen = []
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                asked = urlsplit(self.path)
                service.seen.append((time.perf_counter(), self.path, sorted(self.headers.items())))
                lat, lon = (parse_qs(asked.query)[name][0] for name in ("lat", "lon"))
                body = json.dumps(
                    {"display_name": f"{lat},{lon}", "lat": lat, "lon": lon, "place_id": 1, "address": {}}
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def positions(self):
        queries = [parse_qs(urlsplit(path).query) for _, path, _ in self.seen]
        return [(q["lat"][0], q["lon"][0]) for q in queries]


@pytest.fixture
def service():
    made = Service()
    yield made
    made.server.shutdown()
    made.server.server_close()


# ask


def test_the_true_answer_returns_and_so_many_queries_leave():
    asked = []
    answer = wallet_of().ask(lambda lat, lon: asked.append((lat, lon)) or (lat, lon), *HERE, NOON, decoys=5)

    assert answer == (60.1235, 24.9877)
    assert len(asked) == 6
    assert set(asked) == {answer, *wallet_of().positions(*HERE, NOON, decoys=5)}


@settings(max_examples=50)
@given(
    lat=st.floats(-90, 90),
    lon=st.floats(-360, 360),
    decimals=st.integers(0, 8),
    decoys=st.integers(1, 40),
    when=st.datetimes(datetime(1950, 1, 1), datetime(2200, 1, 1)),
)
def test_whatever_leaves_is_rounded_alike_and_on_the_globe(lat, lon, decimals, decoys, when):
    asked = []
    wallet_of(decimals=decimals).ask(lambda *place: asked.append(place), lat, lon, when, decoys=decoys)

    assert len(asked) == decoys + 1
    for y, x in asked:
        assert type(y) is type(x) is float
        assert -90 <= y <= 90
        assert -180 <= x < 180 or decimals == 0
        assert (round(y, decimals), round(x, decimals)) == (y, x)


def life_of(places, starts, ends=None, *, tz="UTC"):
    """A pool of one life at places 10, 11, ... degrees north, beside a place 80 degrees south where it never is."""
    starts = np.asarray(starts)
    lat = np.append(10.0 + np.arange(max(places) + 1), -80.0)
    where = Locations(lat=lat, lon=np.zeros(len(lat)))
    return Pool(Visits(np.zeros(len(places), int), starts, starts if ends is None else ends, places, where, tz=tz), {})


def seconds(text):
    return int(np.datetime64(text, "s").astype(np.int64))


def test_personas_are_nested_the_same_every_time_and_others_with_another_secret():
    pool = pool_of(40, days=7, slots=24)
    many = Wallet(pool, secret=SECRET).positions(*HERE, NOON, decoys=10)
    shuffled = Pool(pool.visits.of_users(np.random.default_rng(3).permutation(40)), {})

    assert Wallet(pool, secret=SECRET).positions(*HERE, NOON, decoys=4) == many[:4]
    assert Wallet(shuffled, secret=SECRET).positions(*HERE, NOON, decoys=10) == many
    assert Wallet(pool, secret=SECRET[::-1]).positions(*HERE, NOON, decoys=10) != many


def first_place(pool, when):
    """Where the only life of a pool is at a time: the first question of a new wallet is asked from there."""
    return round(wallet_of(pool).positions(-80, 0, when, decoys=1)[0][0] - 10)


def test_a_persona_begins_where_its_life_is_on_that_weekday_and_the_life_begins_again():
    # the place is the day: 28 days in a row
    begin = seconds("2024-03-06")
    pool = life_of(range(28), begin + 86_400 * np.arange(28), begin + 86_400 * np.arange(1, 29))
    days = [datetime(2026, 11, 1, 5) + timedelta(days=d) for d in range(80)]
    lived = [first_place(pool, day) for day in days]

    assert [(b - a) % 28 for a, b in pairwise(lived)] == [1] * 79
    assert [(2 + n) % 7 for n in lived] == [day.weekday() for day in days]  # the first one was a Wednesday


def test_between_two_visits_a_life_is_where_it_was_and_a_few_days_are_lived_over_and_over():
    begin = seconds("2024-03-04")
    pool = life_of([0, 1, 2], begin + 3600 * np.array([8, 12, 20]), begin + 3600 * np.array([10, 13, 21]))

    assert [first_place(pool, datetime(2030, 5, 5, h)) for h in (8, 11, 12, 19, 20, 23, 3)] == [0, 0, 1, 1, 2, 2, 2]


def test_hours_are_those_of_the_pool():
    begin = seconds("2024-03-04")
    pool = life_of(range(24), begin + 3600 * np.arange(24), tz="Europe/Helsinki")

    assert first_place(pool, datetime(2024, 3, 4, 10, 30)) == 10
    assert first_place(pool, datetime(2024, 3, 4, 8, 30, tzinfo=UTC)) == 10  # 10:30 in Helsinki


def town_of(lives=12, places=80, seed=2):
    """Lives of two weeks in a town: home, and three times a day somewhere of their own."""
    rng = np.random.default_rng(seed)
    start = seconds("2024-03-04") + (86_400 * np.arange(14)[:, None] + 3600 * np.array([0, 9, 13, 18])).ravel()
    own = rng.permuted(np.tile(np.arange(places), (lives, 1)), axis=1)[:, :6]
    place = np.where(
        np.arange(56) % 4 == 0, own[:, :1], own[np.arange(lives)[:, None], rng.integers(6, size=(lives, 56))]
    )
    where = Locations(lat=60 + rng.random(places) / 20, lon=24 + rng.random(places) / 10)
    users = [rng.bytes(16).hex() for _ in range(lives)]
    everybody = np.repeat(np.arange(lives), 56)
    return Pool(
        Visits(everybody, np.tile(start, lives), np.tile(start + 3600, lives), place.ravel(), where, users=users), {}
    )


def fixes(rng, days=14, noise=8.0):
    """Fixes of a phone, one in half an hour: home, work, somewhere else some evenings, with the receiver's noise."""
    own = np.array([[60.021, 24.031], [60.034, 24.062], [60.011, 24.071], [60.025, 24.013]])
    out = []
    for n in range(48 * days):
        hour = n % 48 / 2
        at = own[1] if 9 <= hour < 17 else own[2 + n // 48 % 2] if 18 <= hour < 20 and n // 48 % 3 else own[0]
        scatter = rng.normal(0, noise, 2) * (rng.random() < 0.7)
        out.append((datetime(2026, 11, 2) + timedelta(minutes=30 * n), at + scatter / [111_195, 55_600]))
    return out


@settings(max_examples=30)
@given(decimals=st.integers(1, 6), seed=st.integers(0, 99), digits=st.integers(2, 14))
@example(decimals=4, seed=0, digits=5)
def test_lines_are_alike_to_the_last_decimal_however_long_a_service_looks(decimals, seed, digits):
    # what a receiver says has few decimals or many: five of them are half of the fourth
    phone = [(when, np.round(at, digits)) for when, at in fixes(np.random.default_rng(seed), days=1)]
    wallet = wallet_of(town_of(), decimals=decimals)
    true = np.array([wallet.ask(lambda *place: place, *at, when, decoys=1) for when, at in phone])
    sent = np.array([wallet.positions(*at, when, decoys=5) for when, at in phone])
    steps = np.round((sent - true[:, None]) * 10**decimals, 3)

    assert np.array_equal(steps, np.broadcast_to(np.rint(steps[0]), steps.shape))


@pytest.mark.parametrize(("decimals", "lines"), [(4, 6), (2, 6), (0, 1)])
def test_no_two_lines_are_one_where_the_town_is_wide_enough(decimals, lines):
    for seed in range(20):
        wallet = Wallet(town_of(), secret=bytes([seed]) * 16, decimals=decimals)
        here = (60.025, 24.052)
        assert len({(round(here[0], decimals), round(here[1], decimals)), *wallet.positions(*here, NOON)}) == lines


def test_a_persona_lies_as_far_from_a_place_of_its_life_as_the_user_from_hers():
    pool = town_of()
    where = np.stack([pool.visits.locations.lat, pool.visits.locations.lon], axis=1)
    for seed in range(20):
        near = where[seed] + [0.0001, -0.0002]
        wallet = Wallet(pool, secret=bytes([seed]) * 16, decimals=7)
        for at, life in zip(wallet.positions(*near, NOON, decoys=5), wallet._order, strict=False):
            own = where[pool.visits.place[pool.visits.rows(life)]]
            assert np.abs(own - np.array(at) + [0.0001, -0.0002]).max(axis=1).min() < 1e-6


def test_in_another_town_personas_are_as_near_as_at_home():
    wallet = wallet_of(town_of())
    at_home = np.array(wallet.positions(60.02, 24.05, NOON)) - [60.02, 24.05]
    away = np.array(wallet_of(town_of()).positions(48.85, 2.35, NOON)) - [48.85, 2.35]

    assert np.abs(away).max() < 0.11  # the width of the pool's town, though the first question came from another
    assert np.allclose(np.array(wallet.positions(48.85, 2.35, NOON)) - [48.85, 2.35], at_home)


def test_how_far_personas_are_is_kept_for_its_owner_alone_and_they_go_on(tmp_path):
    phone = fixes(np.random.default_rng(8), days=4)
    whole = Wallet.load(town_of(), secret=SECRET, keep=tmp_path / "one")
    expected = [whole.positions(*at, when) for when, at in phone]
    found = []
    for part in range(0, len(phone), 40):  # a new process now and then
        wallet = Wallet.load(town_of(), secret=SECRET, keep=tmp_path / "two")
        found += [wallet.positions(*at, when) for when, at in phone[part : part + 40]]
    (kept,) = (tmp_path / "two").iterdir()

    assert found == expected
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for wrong in ("[[1, 2]]", "{}", "[]", "", json.dumps([[1, float("nan")]] * 12), "[" * 9999):
        kept.write_text(wrong)
        with pytest.raises(ElsewhereError) as refused:
            Wallet.load(town_of(), secret=SECRET, keep=tmp_path / "two")
        assert refused.value.code == "E_STATE"


def test_two_processes_that_begin_at_once_send_the_same_personas(tmp_path):
    wallets = [Wallet.load(town_of(), secret=SECRET, keep=tmp_path) for _ in range(2)]
    places = [(60.02, 24.05), (60.04, 24.01)]  # the first questions come from different places
    away = [np.array(w.positions(*at, NOON)) - at for w, at in zip(wallets, places, strict=True)]

    assert np.allclose(*away)


# errors


class Broken(Exception):
    pass


def test_errors_of_decoys_are_thrown_away_and_that_of_the_truth_is_raised():
    wallet, asked = wallet_of(), []

    def only_truth(lat, lon):
        asked.append((lat, lon))
        if (lat, lon) != (60.1235, 24.9877):
            raise Broken
        return "here"

    def only_decoys(lat, lon):
        asked.append((lat, lon))
        if (lat, lon) == (60.1235, 24.9877):
            raise Broken
        return "elsewhere"

    assert wallet.ask(only_truth, *HERE, NOON) == "here"
    with pytest.raises(Broken):
        wallet.ask(only_decoys, *HERE, NOON)
    assert len(asked) == 12  # a failure neither stops nor repeats anything


@pytest.mark.parametrize("slow", ["truth", "decoy"])
def test_the_call_ends_when_all_are_answered_whichever_was_the_true_one(slow):
    wallet = wallet_of()

    def fn(lat, lon):
        if ((lat, lon) == (60.1235, 24.9877)) == (slow == "truth"):
            time.sleep(0.3)
        return lat

    begun = time.monotonic()
    assert wallet.ask(fn, *HERE, NOON, decoys=2) == 60.1235
    assert 0.3 <= time.monotonic() - begun < 20


def test_a_service_that_hangs_is_given_up():
    hang = threading.Event()
    with pytest.raises(ElsewhereError) as late:
        wallet_of(wait=0.2).ask(lambda *_: hang.wait(60), *HERE, NOON)
    # a decoy that hangs does not keep the answer
    assert wallet_of(wait=4).ask(lambda y, x: y if y == 60.1235 else hang.wait(60), *HERE, NOON) == 60.1235
    hang.set()
    assert late.value.code == "E_TIMEOUT"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"lat": 91}, "E_OUTSIDE"),
        ({"lat": float("nan")}, "E_OUTSIDE"),
        ({"lon": float("inf")}, "E_OUTSIDE"),
        ({"lat": "north"}, "E_OUTSIDE"),
        ({"lat": None}, "E_OUTSIDE"),
        ({"decoys": 0}, "E_PARAM"),
        ({"decoys": 2.5}, "E_PARAM"),
        ({"decoys": 65}, "E_PARAM"),
        ({"decoys": 41}, "E_TOO_FEW"),
        ({"when": "noon"}, "E_DATE"),
        ({"when": 12}, "E_DATE"),
        ({"when": np.datetime64("NaT")}, "E_DATE"),
        ({"when": datetime.min}, "E_DATE"),
        ({"when": datetime.max.replace(tzinfo=UTC)}, "E_DATE"),
    ],
)
def test_wrong_questions_are_refused_before_anything_is_sent(change, code):
    sent = []
    given = {"fn": lambda *place: sent.append(place), "lat": HERE[0], "lon": HERE[1], "when": NOON, "decoys": 5}
    with pytest.raises(ElsewhereError) as wrong:
        wallet_of().ask(**given | change)

    assert wrong.value.code == code
    assert sent == []
    assert "91" not in str(wrong.value)  # where somebody is, is never shown


@pytest.mark.parametrize(
    "options",
    [{"secret": b"short"}, {"secret": 7}, {"decimals": 9}, {"decimals": -1}, {"wait": 0}, {"pause": -1}, {"pause": 61}],
)
def test_wrong_wallets_are_refused(options):
    with pytest.raises(ElsewhereError) as wrong:
        Wallet(pool_of(6), **{"secret": SECRET} | options)
    assert wrong.value.code == "E_PARAM"
    assert "short" not in str(wrong.value)


def test_a_pool_without_positions_is_refused_and_nothing_shows_the_secret():
    with pytest.raises(ElsewhereError, match="no latitude"):
        Wallet(Pool(Visits([0], [0], [9], [1], Locations(n=2)), {}), secret=SECRET)
    with pytest.raises(ElsewhereError, match="must be a `Pool`"):
        Wallet(7, secret=SECRET)
    assert repr(wallet_of()) == "Wallet(40 lives)"
    assert len(wallet_of()) == 40


# what leaves, statistically: tests that fail when the shuffle, the threads or the rounding are taken away


def test_the_truth_leaves_at_every_place_in_the_order_alike():
    wallet, places, rounds = wallet_of(pause=1e-4), Counter(), 600
    for _ in range(rounds):
        order = []
        wallet.ask(lambda *place, o=order: o.append(place), *HERE, NOON, decoys=3)
        places[order.index((60.1235, 24.9877))] += 1
    statistic = sum((places[i] - rounds / 4) ** 2 / (rounds / 4) for i in range(4))

    assert statistic < chi2.isf(1e-6, 3)


def test_what_a_service_captures_tells_neither_by_order_time_decimals_nor_headers(service):
    import requests

    wallet, rounds, K = wallet_of(), 150, 4
    session = requests.Session()
    url = f"http://{service.address}/reverse"

    def fetch(lat, lon):
        return session.get(url, params={"lat": f"{lat:.4f}", "lon": f"{lon:.4f}"}, timeout=60).json()

    rank, late, digits = Counter(), {True: [], False: []}, {True: Counter(), False: Counter()}
    heads = set()
    rng = np.random.default_rng(8)
    for _ in range(rounds):
        service.seen.clear()
        # raw positions have many decimals, or few
        lat, lon = 60 + round(rng.random(), int(rng.integers(1, 15))), 25 + rng.random()
        answer = wallet.ask(fetch, lat, lon, decoys=K - 1)
        first = min(when for when, _, _ in service.seen)
        order = sorted(service.seen)
        assert len(order) == K
        for i, (when, path, headers) in enumerate(order):
            query = parse_qs(urlsplit(path).query)
            true = (query["lat"][0], query["lon"][0]) == (answer["lat"], answer["lon"])
            rank[i] += true
            late[true].append(when - first)
            digits[true][tuple(len(query[name][0].partition(".")[2]) for name in ("lat", "lon"))] += 1
            heads.add(tuple(headers))
    statistic = sum((rank[i] - rounds / K) ** 2 / (rounds / K) for i in range(K))

    assert sum(rank.values()) == rounds
    assert statistic < chi2.isf(1e-6, K - 1)
    assert ks_2samp(late[True], late[False]).pvalue > 1e-6
    assert set(digits[True]) == set(digits[False]) == {(4, 4)}
    assert len(heads) == 1


def test_queries_leave_together():
    all_there = threading.Barrier(6)
    # one after the other, the first would wait for ever
    assert wallet_of().ask(lambda *_: all_there.wait(20) >= 0, *HERE, NOON, decoys=5)


def test_with_a_pause_queries_leave_one_after_the_other(monkeypatch):
    sent, pauses, sleep = [], [], time.sleep

    def rest(seconds):
        until = time.monotonic() + 20
        while len(sent) <= len(pauses) and time.monotonic() < until:
            sleep(0.001)
        pauses.append((seconds, len(sent)))

    monkeypatch.setattr(lbs.time, "sleep", rest)
    wallet_of(pause=0.2).ask(lambda *_: sent.append(1), *HERE, NOON, decoys=3)

    assert pauses == [(0.2, 1), (0.2, 2), (0.2, 3)]
    assert len(sent) == 4


# what is kept


def test_the_secret_is_drawn_once_and_kept_for_its_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    pool = tmp_path / "pool"
    # where all twenty lives are, in an order that only the secret tells: two wallets agree once in 20!
    pool_of(20, days=7, slots=24, places=500).save(pool)
    first, second = (Wallet.load(pool).positions(*HERE, NOON, decoys=20) for _ in range(2))
    kept = tmp_path / "state" / "elsewhere" / "secret"

    assert first == second
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert sorted(path.name.partition("-")[0] for path in kept.parent.iterdir()) == ["personas", "secret"]
    assert Wallet.load(pool, keep=tmp_path / "other").positions(*HERE, NOON, decoys=20) != first
    assert Wallet.load(Pool.load(pool), secret=kept.read_text()).positions(*HERE, NOON, decoys=20) == first


def test_before_a_question_a_wallet_with_a_secret_and_a_folder_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    pool_of(20).save(tmp_path / "pool")
    Wallet.load(str(tmp_path / "pool"), secret=SECRET)

    assert not (tmp_path / "state").exists()


def test_processes_that_begin_at_once_agree_on_the_secret(tmp_path):
    code = "import sys, pathlib, elsewhere.lbs as lbs; print(lbs._device_secret(pathlib.Path(sys.argv[1])))"
    runs = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]

    assert len({run.communicate()[0] for run in runs}) == 1


def test_a_damaged_secret_is_refused(tmp_path):
    (tmp_path / "secret").write_text("x")
    with pytest.raises(ElsewhereError) as wrong:
        Wallet.load(pool_of(6), keep=tmp_path)
    assert wrong.value.code == "E_SECRET"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://pool.example", "E_ADDRESS"),
        ("https://", "E_ADDRESS"),
        ("https://user:pw@pool.example", "E_ADDRESS"),
        ("https://pool.example:x", "E_ADDRESS"),
        ("https://pool.example/?token=1", "E_ADDRESS"),
        ("http://127.0.0.1:1", "E_SERVICE"),
    ],
)
def test_wrong_addresses_are_refused(tmp_path, url, code):
    token = "TOKEN"  # noqa: S105
    with pytest.raises(ElsewhereError) as wrong:
        Wallet.load(url, token=token, keep=tmp_path)
    assert wrong.value.code == code
    assert token not in str(wrong.value)
    with pytest.raises(ElsewhereError):
        Wallet.load("https://pool.example", keep=tmp_path)  # no token
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{}", b"null", b"\xff", b"[" * 100_000,
        b'{"kind":"elsewhere bucket","format":1}',
        b'{"kind":"elsewhere bucket","format":2,"lives":[]}',
        b'{"kind":"elsewhere bucket","format":2,"tz":"UTC","places":{"lat":[1],"lon":[NaN]},'
        b'"lives":[{"id":"a","start":[0],"end":[9],"place":[0]}]}',
        b'{"kind":"elsewhere bucket","format":2,"tz":"UTC","places":{"lat":[1],"lon":[1]},'
        b'"lives":[{"id":"a","start":[0],"end":[9],"place":[1]}]}',
        b'{"kind":"elsewhere bucket","format":2,"tz":"UTC","places":{"lat":[1],"lon":[1]},'
        b'"lives":[{"id":"a","start":[0,1],"end":[9],"place":[0]}]}',
    ],
)  # fmt: skip
def test_what_is_no_bucket_is_refused(content):
    with pytest.raises(ElsewhereError) as wrong:
        lbs.bucket_pool(content)
    assert wrong.value.code == "E_BUCKET"
