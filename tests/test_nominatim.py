"""
A real location-based service: Nominatim on an extract of Helsinki, asked by geopy with and without decoys.

`make test-lbs` installs it (see .ci/nominatim); without it these tests say that they were skipped. What the service saw
is its own log.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import BIN
from scipy.stats import chi2

from elsewhere.data.visits import Locations, Visits
from elsewhere.lbs import Wallet
from elsewhere.pool import Pool

WHERE = Path(__file__).resolve().parents[1] / ".venv-nominatim"
pytestmark = [
    pytest.mark.lbs,
    pytest.mark.skipif(not (WHERE / "installed").exists(), reason="no Nominatim on this machine: `make test-lbs`"),
]
QUERY = re.compile(r'"GET /reverse\?(\S*) HTTP')


class Geocoder:
    """A running Nominatim: its address, and what it saw."""

    def __init__(self, folder):
        self.log = folder / "seen.log"
        self.read = 0

    def seen(self, expected):
        """The queries since the last look, as (latitude, longitude) texts, in the order in which they were answered."""
        deadline = time.monotonic() + 10
        while True:
            lines = QUERY.findall(self.log.read_text())
            if len(lines) - self.read >= expected or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        new, self.read = lines[self.read :], len(lines)
        return [tuple(re.search(rf"\b{name}=([^&]+)", line)[1] for name in ("lat", "lon")) for line in new]


@pytest.fixture(scope="module")
def geocoder():
    folder = Path(tempfile.mkdtemp(prefix="nom", dir="/tmp"))  # a socket's path must be short
    root = os.getuid() == 0
    as_other = ["runuser", "-u", "postgres", "--"] if root else []
    database, project = folder / "db", folder / "project"
    database.mkdir()
    project.mkdir()
    folder.chmod(0o755)
    if root:
        shutil.chown(database, "postgres")
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    postgres = [*as_other, BIN / "pg_ctl", "-D", database / "data"]
    options = f"-c listen_addresses= -k {database} -c fsync=off -c full_page_writes=off"
    server = None
    try:
        subprocess.run([*as_other, BIN / "initdb", "-D", database / "data", "-A", "trust", "-U", "owner"], **quiet)
        subprocess.run([*postgres, "-w", "-l", database / "log", "-o", options, "start"], **quiet)
        subprocess.run([BIN / "createuser", "-h", database, "-U", "owner", "www-data"], **quiet)
        (project / ".env").write_text(f'NOMINATIM_DATABASE_DSN="pgsql:host={database};user=owner;dbname=nominatim"\n')
        nominatim = WHERE / "bin" / "nominatim"
        extract = ["--osm-file", WHERE / "Helsinki.osm.pbf", "--offline", "--threads", "2"]
        subprocess.run([nominatim, "import", *extract], **quiet | {"cwd": project})
        made = Geocoder(folder)
        with made.log.open("w") as log:
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            port = _free_port()
            made.address = f"127.0.0.1:{port}"
            command = [nominatim, "serve", "--server", made.address]
            server = subprocess.Popen(command, cwd=project, stdout=log, stderr=log, env=environment)
        _wait_for(f"http://{made.address}/status")
        yield made
    except subprocess.CalledProcessError as error:
        pytest.skip(f"Nominatim cannot be set up on this machine: `{Path(error.cmd[0]).name}` failed")
    finally:
        if server is not None:
            server.terminate()
            server.wait(20)
        subprocess.run([*postgres, "-m", "immediate", "stop"], **quiet | {"check": False})
        shutil.rmtree(folder, ignore_errors=True)


def _free_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _wait_for(url):
    for _ in range(300):
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - of this machine
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("Nominatim does not answer")


def geopy_of(geocoder, **options):
    from geopy.geocoders import Nominatim

    return Nominatim(user_agent="elsewhere test", domain=geocoder.address, scheme="http", timeout=20, **options)


def streets(lives=30, places=60):
    """A pool of lives on streets of Helsinki, and where its places are."""
    rng = np.random.default_rng(4)
    lat, lon = np.round(60.165 + 0.015 * rng.random(places), 4), np.round(24.925 + 0.03 * rng.random(places), 4)
    start = np.tile(3600 * np.arange(24), lives)
    users = [f"{i:032x}" for i in range(lives)]
    who, where = np.repeat(np.arange(lives), 24), Locations(lat=lat, lon=lon)
    visits = Visits(who, start, start + 3600, rng.integers(places, size=24 * lives), where, users=users)
    return Pool(visits.replace(tz="Europe/Helsinki"), {}), list(zip(lat.tolist(), lon.tolist(), strict=True))


def test_the_same_addresses_with_and_without_decoys(geocoder):
    pool, points = streets()
    points = points[::3]
    wallet = Wallet(pool, secret=b"a secret of sixteen or more bytes")
    alone = geopy_of(geocoder)
    plain = [alone.reverse(point).address for point in points]
    geocoder.seen(len(points))

    hidden = [wallet.ask(lambda *here: alone.reverse(here).address, *point, decoys=5) for point in points]
    assert hidden == plain
    assert len(set(plain)) > 5  # it does tell places apart
    assert len(geocoder.seen(6 * len(points))) == 6 * len(points)


def test_what_the_geocoder_saw_tells_neither_by_order_nor_by_decimals(geocoder):
    pool, points = streets()
    # its log has the order of its answers, and how long one takes depends on the place, which it knows: with a pause
    # between queries they are answered as they leave
    wallet, rank = Wallet(pool, secret=b"a secret of sixteen or more bytes", pause=0.1), Counter()
    geocoder.seen(0)

    def fetch(lat, lon):
        url = f"http://{geocoder.address}/reverse?format=jsonv2&lat={lat:.4f}&lon={lon:.4f}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)

    for n in range(120):
        lat, lon = points[n % len(points)]
        assert wallet.ask(fetch, lat, lon, decoys=3)["address"]
        seen = geocoder.seen(4)
        assert len(seen) == 4
        assert {len(text.partition(".")[2]) for point in seen for text in point} == {4}
        rank[[(float(y), float(x)) for y, x in seen].index((lat, lon))] += 1
    statistic = sum((rank[i] - 30) ** 2 / 30 for i in range(4))

    assert statistic < chi2.isf(1e-6, 3)
