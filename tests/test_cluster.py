"""A real Dask scheduler, workers in other processes: the same bytes whoever ends in between, and no word of whom."""

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from pieces import PATIENCE, Slow, Started, refuse

import elsewhere as ew
from elsewhere import scale

distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed: pip install '.[dask]'")

SMALL = {"k": 3, "per_seed": 8, "laboratory": True, "report": False}


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(workers=2):
        folder = tmp_path / f"dask{len(started)}"
        folder.mkdir()
        started.append(Started(folder))
        started[-1].begin()
        for _ in range(workers):
            started[-1].add()
        return started[-1]

    yield begin
    for one in started:
        one.end()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    started = Started(tmp_path_factory.mktemp("dask")).begin()
    for _ in range(2):
        started.add()
    with ew.Cluster(started.address) as cluster:
        yield started, cluster
    started.end()


@pytest.fixture
def dask(scheduler):
    """A scheduler and two workers; those that an earlier test has killed are replaced."""
    started, cluster = scheduler
    for _ in range(2 - len(alive(started))):
        started.add()
    cluster._client.wait_for_workers(2, timeout=PATIENCE)
    return started, cluster


def alive(started):
    return [worker for worker in started.workers if worker.poll() is None]


def pieces_done(cluster):
    """How much each worker has to tell, by its process."""
    told = cluster._client.run(lambda dask_worker: (os.getpid(), len(dask_worker.state.log)))
    return dict(told.values())


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A file of a town with ids, and what must be seen of it nowhere."""
    visits = ew.simulate_town(users=90, days=3, locations=60, rng=np.random.default_rng(3)).visits
    draw = np.random.default_rng(11)
    ids = [f"person-{draw.bytes(6).hex()}" for _ in range(visits.U)]
    path = tmp_path_factory.mktemp("people") / "people.csv"
    ew.write_visits(visits.replace(users=ids), path)
    return path, ids


def holds(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def made(people, out, **where):
    ew.synthesize(people[0], out / "fakes", rng=np.random.default_rng(7), **SMALL, **where)
    return holds(out)


@pytest.fixture(scope="module")
def alone(people, tmp_path_factory):
    """What one process makes."""
    return made(people, tmp_path_factory.mktemp("alone"), workers=1)


@pytest.fixture(scope="module")
def on_workers(people, scheduler, tmp_path_factory):
    """What two workers in other processes make."""
    scheduler[1]._client.wait_for_workers(2, timeout=PATIENCE)
    return made(people, tmp_path_factory.mktemp("workers"), executor=scheduler[1])


def test_results_come_in_order_and_each_piece_is_done_once(dask, tmp_path):
    _, cluster = dask

    found = scale.map_over(Slow(tmp_path, 0.0), range(40), executor=cluster)

    assert found == [n**2 for n in range(40)]
    assert all(len(path.read_text().splitlines()) == 1 for path in tmp_path.iterdir())
    assert len({path.read_text() for path in tmp_path.iterdir()}) == 2  # both workers
    assert scale.map_over(Slow(tmp_path), [], executor=cluster) == []


def test_errors_are_the_callers_and_nobody_else_reads_them(dask):
    started, cluster = dask

    with pytest.raises(ew.errors.InvalidTraces, match="E_PURPOSE: refused on purpose"):
        scale.map_over(refuse, [0], executor=cluster)
    with pytest.raises(KeyError, match="person-77"):
        scale.map_over(refuse, [77], executor=cluster)

    assert "person-77" not in started.logs()
    assert "on purpose" not in started.logs()


def test_what_is_published_is_the_same_in_one_process_threads_and_workers(alone, on_workers, people, dask, tmp_path):
    _, cluster = dask
    with ThreadPoolExecutor(2) as threads:
        in_threads = made(people, tmp_path / "threads", executor=threads)

    assert "fakes/manifest.json" in alone
    assert "fakes-private/links.csv" in alone
    assert in_threads == alone
    assert on_workers == alone
    # both workers have done a share of it
    assert len(pieces_done(cluster)) == 2
    assert min(pieces_done(cluster).values()) > 0


def test_attacks_find_the_same_on_workers(dask):
    visits = ew.simulate_town(users=50, days=3, locations=40, rng=np.random.default_rng(3)).visits
    seeds, others = visits.of_users(np.arange(25)), visits.of_users(np.arange(25, 50))
    fakes = seeds.replace(place=np.roll(seeds.place, 1))
    found = [
        ew.audit(
            seeds, others, fakes, np.arange(25), attacks=["A1", "A2"], rng=np.random.default_rng(1), executor=where
        ).to_dict()
        for where in (None, dask[1])
    ]
    assert found[0] == found[1]


def seen(started, cluster):
    """Everything that scheduler, logs and pages show to whoever runs or watches them."""

    def states(dask_scheduler):
        tasks = [repr(t) + repr(t.run_spec) for t in dask_scheduler.tasks.values()]
        return repr([tasks, list(dask_scheduler.transition_log), dask_scheduler.get_events()])

    info = cluster._client.scheduler_info()
    pages = [f"http://127.0.0.1:{info['services']['dashboard']}/info/main/{page}.html" for page in ("workers", "logs")]
    pages += [
        f"http://127.0.0.1:{one['services']['dashboard']}/info/main/logs.html" for one in info["workers"].values()
    ]
    texts = []
    for page in pages:
        try:
            with urllib.request.urlopen(page, timeout=PATIENCE) as found:  # noqa: S310 - our own
                texts.append(found.read().decode())
        except urllib.error.HTTPError:
            texts.append("")
    return "\n".join([started.logs(), cluster._client.run_on_scheduler(states), *texts])


def test_no_id_place_or_secret_is_in_logs_task_names_or_pages(people, on_workers, dask):
    started, cluster = dask
    path, ids = people
    places = ew.read_visits(path, rng=np.random.default_rng(1)).locations
    shown = seen(started, cluster)

    assert re.search(r"generate_block-[0-9a-f]{32}", shown)  # what was asked for is there, by the name of its code
    entropy = str(int.from_bytes(np.random.default_rng(7).bytes(32)[:16], "little"))
    where = {f"{x:.4f}" for x in np.concatenate([places.lat, places.lon])}
    for secret in [*ids, *(i.removeprefix("person-") for i in ids), entropy, *where]:
        assert secret not in shown
    # the search can find: an error that Dask itself sees stands in the log of its worker
    with pytest.raises(KeyError):
        cluster._client.submit(refuse, ids[0].removeprefix("person-"), pure=False).result()
    assert ids[0] in seen(started, cluster)


def test_workers_end_and_come_and_only_their_pieces_are_done_again(start, tmp_path, monkeypatch):
    started = start()
    with ew.Cluster(started.address) as cluster:
        cluster._client.wait_for_workers(2, timeout=PATIENCE)
        first = begun(tmp_path / "first")

        def one_of_two(done, total):
            if done == 5:
                started.workers[0].kill()

        found = scale.map_over(Slow(first), range(40), executor=cluster, progress=one_of_two)

        assert found == [n**2 for n in range(40)]
        again = [who for path in first.iterdir() if len(who := path.read_text().split()) > 1]
        # what is done a second time is what the one that ended had begun, or had done and not yet handed over
        assert all(who[0] == str(started.workers[0].pid) for who in again)
        assert len(again) <= scale.AHEAD * 2

        monkeypatch.setattr(scale, "ALONE", 1.0)
        monkeypatch.setattr(scale, "LOOK", 0.25)
        third = Slow(begun(tmp_path / "third"))
        with pytest.raises(ew.errors.ClusterUnavailable, match=r"E_CLUSTER_(WORKERS|LOST)"):
            scale.map_over(third, range(99), executor=cluster, progress=lambda *_: started.workers[1].kill())
        started.add()
        cluster._client.wait_for_workers(1, timeout=PATIENCE)
        monkeypatch.setattr(scale, "ALONE", PATIENCE)
        monkeypatch.setattr(scale, "CONNECT", 1.0)
        with pytest.raises(ew.errors.ClusterUnavailable, match="E_CLUSTER_LOST"):
            scale.map_over(third, range(99), executor=cluster, progress=lambda *_: started.scheduler.kill())


def begun(folder):
    folder.mkdir()
    return folder


def test_a_worker_killed_in_the_middle_changes_nothing_that_is_published(people, alone, dask, tmp_path):
    started, cluster = dask
    at_work = []

    def kill(stage, done, total):
        if stage == "making fakes" and done == 1 and not at_work:
            at_work.append(alive(started)[0])
            at_work[0].kill()

    found = made(people, tmp_path / "out", executor=cluster, progress=kill)

    assert at_work
    assert found == alone


OTHER = "import elsewhere._version\nelsewhere._version.__version__ = '0.0.0'"


def test_other_versions_and_other_software_are_refused_before_anything_is_sent(start, tmp_path, monkeypatch):
    started = start(0)
    with monkeypatch.context() as hurried:
        waits = distributed.Client.wait_for_workers
        hurried.setattr(distributed.Client, "wait_for_workers", lambda client, n, timeout: waits(client, n, timeout=1))
        with pytest.raises(ew.errors.ClusterUnavailable, match="E_CLUSTER_WORKERS"):
            ew.Cluster(started.address)
    monkeypatch.setattr(scale, "CONNECT", PATIENCE)
    for code, said in [
        (OTHER, r"worker .* has elsewhere 0\.0\.0 \(not "),
        ("import sys\nsys.modules['elsewhere'] = None", "cannot load elsewhere"),
    ]:
        worker = started.add(code)
        with pytest.raises(ew.errors.ClusterUnavailable, match=f"E_CLUSTER_VERSION: .*{said}"):
            ew.Cluster(started.address)
        worker.kill()
        worker.wait()
    started.add()
    with ew.Cluster(started.address) as cluster:
        started.add(OTHER)
        cluster._client.wait_for_workers(2, timeout=PATIENCE)
        with pytest.raises(ew.errors.ClusterUnavailable, match=r"a worker that came later has elsewhere 0\.0\.0"):
            scale.map_over(Slow(begun(tmp_path / "late")), range(30), executor=cluster)


@pytest.mark.parametrize("address", ["nonsense", "foo://127.0.0.1:1", "tcp://127.0.0.1:1", "tls://127.0.0.1:1"])
def test_a_bad_address_is_refused(address, monkeypatch):
    monkeypatch.setattr(scale, "CONNECT", 1.0)
    with pytest.raises(ew.errors.ClusterUnavailable, match=f"E_CLUSTER: no .* answers at {re.escape(address)}"):
        ew.Cluster(address)


def test_a_bad_address_ends_with_its_message_alone():
    # a client that is left open waits when Python ends, and ends with a traceback
    script = "import sys, elsewhere as ew\nfrom elsewhere import scale\nscale.CONNECT = 1.0\n"
    script += "try:\n    ew.Cluster('nonsense')\nexcept ew.ElsewhereError as e:\n    kept = e\n    sys.exit(2)\n"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert ended.stderr == ""


def test_a_client_that_cannot_be_closed_is_not_closed_again_as_garbage():
    class Stuck:
        status = "connecting"

        def close(self, timeout):
            raise OSError

    client = Stuck()
    scale._close(client, 1.0)
    assert client.status == "closed"


def test_a_process_that_ends_is_no_traceback_of_others():
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(ew.errors.ClusterUnavailable, match="E_CLUSTER_MEMORY: a process of `executor` ended"),
    ):
        scale.map_over(os._exit, [1, 1], executor=pool)


def test_what_is_no_executor_is_refused(scheduler):
    _, cluster = scheduler
    with pytest.raises(ew.errors.InvalidParameter, match=r"`executor` must be .*Executor, got Client"):
        scale.map_over(abs, [1], executor=cluster._client)


def test_the_command_line_takes_an_address(run, people, scheduler, tmp_path):
    started, _ = scheduler  # with one worker or two: an earlier test may have killed one
    words = ["-k", "3", "--no-report", "--seed", "7", "--i-know"]
    folder = people[0]
    status, _, err = run("synthesize", folder, "-o", tmp_path / "a" / "fakes", *words)
    assert status == 0, err
    status, _, err = run("synthesize", folder, "-o", tmp_path / "b" / "fakes", *words, "--dask", started.address)
    assert status == 0, err
    assert holds(tmp_path / "a") == holds(tmp_path / "b")
    status, _, err = run("synthesize", folder, "-o", tmp_path / "c", *words, "--dask", "nowhere")
    assert status == 2
    assert "E_CLUSTER: no Dask scheduler answers at nowhere" in err
    assert not (tmp_path / "c").exists()
