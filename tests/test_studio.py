"""The studio: what it keeps of a run, who may open it, and the page in a real browser."""

import http.client
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from browsing import MARKS, SIZES, Visit, started
from reports_made import world

import elsewhere as ew
from elsewhere.errors import ElsewhereError
from elsewhere.paper.privacy_test import RULES
from elsewhere.pool import Pool
from elsewhere.reports import studio
from elsewhere.reports.studio import Run, Studio, read_studio_file, studio_file
from elsewhere.run.finish import JUDGEMENT, PRIVATE, STUDIO, earlier_results, write_links
from elsewhere.run.publish import publish_with_rows


def made(preset="product", days=1, **more):
    """People of a small town, their fakes, the pool, and which fake each row of it is."""
    town = ew.simulate_town(users=60, locations=100, days=days, rng=np.random.default_rng(1)).traces
    names = [f"person-{user}" for user in town.user]
    town = ew.Traces(town.r, town.locations, users=names, dates=town.dates, step_minutes=town.step_minutes)
    options = {"kappa": 6, "m_min": 2, "c_min": 1, "class_draws": 1, "k": 4, "rng": np.random.default_rng(2)} | more
    fakes = ew.generate_fakes(town, preset=preset, **options)
    return town, fakes, *publish_with_rows(fakes, laboratory=True, rng=np.random.default_rng(3))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The two folders of a run that was judged, and what it was made of."""
    folder = tmp_path_factory.mktemp("studio") / "out"
    town, fakes, pool, rows = made(par_s=0.02, k=6)
    pool.save(folder)
    private = folder.with_name("out-private")
    private.mkdir()
    assert write_links(town, fakes, pool, rows, private) == ["links.csv", STUDIO]
    judged = {"audit": world()["audit"].to_dict(), "uses": world()["uses"].to_dict(), "publishing": {}, "notes": []}
    (private / JUDGEMENT).write_text(json.dumps(judged))
    return folder, town, fakes, pool, rows


# what is kept


@pytest.mark.parametrize(("preset", "days"), [("product", 1), ("product", 5), ("paper", 1)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_attempt_is_kept_with_what_the_test_measured(preset, days, tmp_path):
    alternates = {} if preset == "product" else {"alternates": "all"}
    town, fakes, pool, rows = made(preset, days, **alternates)
    (tmp_path / STUDIO).write_bytes(studio_file(town, fakes, pool, rows))
    arrays, told = read_studio_file(tmp_path / STUDIO)
    tally = fakes.tally
    with zipfile.ZipFile(tmp_path / STUDIO) as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}

    assert len(arrays["accepted_sim"]) == tally["passed"]
    assert len(arrays["accepted_sim"]) + len(arrays["rejected_sim"]) == tally["tested"] - tally["not_made"]
    assert not arrays["accepted_bits"].any()
    assert arrays["rejected_bits"].all()
    for name, bit in RULES.items():
        assert np.count_nonzero(arrays["rejected_bits"] & bit) == tally[name], name
    for i, row in enumerate(rows):
        verdict = fakes.verdicts[row]
        at = arrays["of_row"][i]
        assert (arrays["accepted_sim"][at], arrays["accepted_shared"][at]) == (verdict.sim, verdict.shared)
    assert told["preset"] == preset


@pytest.mark.parametrize("days", [1, 5])
def test_skeletons_are_the_classes_of_the_seeds_and_labels_those_of_the_places(days):
    town, fakes, pool, rows = made(days=days)
    with np.load(io.BytesIO(studio_file(town, fakes, pool, rows))) as file:
        run = dict(file)
    label = fakes.learnt.classes.label

    for i, row in enumerate(rows):
        seed = town.r[fakes.seed[row]]
        assert run["skeleton"][i].tolist() == [label[fakes.learnt.place[p]] if p >= 0 else -1 for p in seed]
        assert run["label"][pool.traces.r[i]].tolist() == [label[p] for p in fakes.r[row]]


def test_neither_a_user_nor_a_real_place_is_in_the_file(run):
    folder, town, fakes, _, _ = run
    arrays, told = read_studio_file(folder.with_name("out-private") / STUDIO)

    assert not {str(user) for user in town.users} & set(re.findall(r"[\w-]+", json.dumps(told)))
    assert arrays["skeleton"].max() < fakes.kappa  # classes, not places


def test_an_earlier_studio_file_goes_and_somebody_elses_stays(run, tmp_path):
    private = tmp_path / "private"
    shutil.copytree(run[0].with_name("out-private"), private)
    assert STUDIO in earlier_results(private)
    (private / STUDIO).write_bytes(b"mine")
    assert STUDIO not in earlier_results(private)
    assert STUDIO in PRIVATE


# who may open it


@contextmanager
def opened(folder, **more):
    server = Studio(Run(folder, **more))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(server, method, path, body=None, host=None, token=None):
    connection = http.client.HTTPConnection(server.host, timeout=10)
    headers = {"Host": host or server.host} | ({"Authorization": f"Bearer {token}"} if token else {})
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content, answer.headers


def test_the_key_is_good_once_and_nothing_is_told_without_the_token(run):
    with opened(run[0]) as server:
        key = server.url.partition("#")[2]
        before = [ask(server, "GET", "/run")[0], ask(server, "GET", "/run", token=key)[0]]
        wrong = [ask(server, "POST", "/open", body)[0] for body in ("", "wrong", "é", key[:-1], "x" * 5000)]
        other = ask(server, "POST", "/elsewhere", key)[0]
        with ThreadPoolExecutor(8) as tabs:
            answers = list(tabs.map(lambda _: ask(server, "POST", "/open", key), range(8)))
        (content,) = [content for status, content, _ in answers if status == 200]
        again = ask(server, "POST", "/open", key)[0]
        told = ask(server, "GET", "/run", token=json.loads(content)["token"])
        foreign = [ask(server, m, p, host="evil.example")[0] for m, p in (("GET", "/"), ("POST", "/open"))]

    assert before == [401, 401]
    assert wrong == [401] * 5
    assert other == 401
    assert sorted(status for status, _, _ in answers) == [200] + [401] * 7
    assert again == 401
    assert told[0] == 200
    assert len(json.loads(told[1])["fakes"]) == run[3].traces.U
    assert foreign == [403, 403]


def test_only_the_files_of_the_page_are_served_under_a_strict_policy(run, capfd):
    with opened(run[0]) as server:
        pages = {path: ask(server, "GET", path) for path in ("/", "/page/studio.js", "/page/style.css", "/page/map.js")}
        tricks = ["/page/../studio.py", "/page/pool.html", "/page/%2e%2e/x", "/etc/passwd", "/page/", "/run/"]
        refused = [ask(server, "GET", path)[0] for path in tricks]
        put = ask(server, "PUT", "/run", "x")[0]
        address = server.server_address[0]
        with socket.create_connection(server.server_address) as odd:
            odd.sendall(b"\x00\xff nonsense\r\n\r\n")
            odd.recv(1000)

    assert {status for status, _, _ in pages.values()} == {200}
    for _, _, headers in pages.values():
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Frame-Options"] == "DENY"
    assert refused == [404] * len(tricks)
    assert put == 501
    assert address == "127.0.0.1"
    assert capfd.readouterr() == ("", "")


def test_what_is_missing_or_of_another_run_is_said(run, tmp_path):
    folder = tmp_path / "alone"
    run[3].save(folder)

    def code(**more):
        with pytest.raises(ElsewhereError) as refused:
            Run(folder, **more)
        return refused.value.code

    assert code() == "E_PRIVATE"
    other = tmp_path / "other"
    other.mkdir()
    (other / STUDIO).write_bytes(b"PK nothing")
    assert code(private=other) == "E_MODEL"
    town, fakes, pool, rows = made()
    (other / STUDIO).write_bytes(studio_file(town, fakes, pool, rows))
    Pool(run[3].traces.select(np.arange(5)), run[3].provenance).save(folder, force=True)
    assert code(private=other) == "E_MISMATCH"
    (other / STUDIO).unlink()
    (other / JUDGEMENT).write_text("{")
    assert code(private=other) == "E_MODEL"
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        port.listen()
        with pytest.raises(ElsewhereError) as taken:
            Studio(Run(run[0]), port.getsockname()[1])
    assert taken.value.code == "E_PORT"


def test_the_command_says_its_address_and_ends_by_ctrl_c(run):
    command = [sys.executable, "-m", "elsewhere", "studio", run[0], "--no-open", "--json"]
    process = subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        said = "".join(iter(process.stdout.readline, "}\n")) + "}"
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#[\w-]{40,}", json.loads(said)["url"])
        process.send_signal(2)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()

    assert (process.returncode, out, err) == (0, "", "")


# the page


@pytest.fixture(scope="module")
def browser():
    with started() as one:
        yield one


def inside(browser, server, size="desktop", scheme="light"):
    visit = Visit(browser, server.url, SIZES[size], scheme)
    visit.page.wait_for_selector("#inside:not([hidden]) #list button")
    return visit


def slide(page, rule, value):
    page.evaluate(
        "([i, v]) => { const e = document.getElementById(`rule-${i}`); e.value = v;"
        " e.dispatchEvent(new Event('input')); }",
        [rule, value],
    )


class TestPage:
    """What one sees and does."""

    pytestmark = MARKS

    @pytest.mark.parametrize(("size", "scheme"), [("desktop", "dark"), ("phone", "light")])
    def test_the_whole_page_quietly(self, browser, run, tmp_path, size, scheme):
        with opened(run[0]) as server, inside(browser, server, size, scheme) as visit:
            page = visit.page
            page.click("#list li:nth-child(2) button")
            folder = Path(os.environ.get("ELSEWHERE_SCREENSHOTS", tmp_path))
            page.screenshot(path=folder / f"studio-{size}-{scheme}.png", full_page=True)
            wide = page.evaluate("document.documentElement.scrollWidth")
            address = page.url
            unnamed = page.evaluate(
                "[...document.querySelectorAll('button, input, select, canvas')].filter(e => !(e.textContent.trim()"
                " || e.getAttribute('aria-label') || e.labels?.length)).map(e => e.id)"
            )

        assert visit.said == []
        assert {re.match(r"https?://[^/]+", url)[0] for url in visit.asked} == {f"http://{server.host}"}
        assert wide <= SIZES[size]
        assert address == f"http://{server.host}/"  # the key is gone from it
        assert unnamed == []

    def test_a_second_tab_is_refused_and_the_first_may_be_loaded_again(self, browser, run):
        with opened(run[0]) as server, inside(browser, server) as visit:
            visit.page.reload()
            visit.page.wait_for_selector("#inside:not([hidden]) #list button")
            with Visit(browser, server.url, 1280) as other:
                other.page.wait_for_selector("#gate-said:has-text('cannot be opened')")
                assert other.page.is_hidden("#inside")

    def test_a_fake_stands_beside_its_skeleton(self, browser, run):
        folder, town, fakes, pool, rows = run
        label = fakes.learnt.classes.label
        with opened(folder) as server, inside(browser, server) as visit:
            page = visit.page
            page.click("#list li:nth-child(4) button")
            title = page.inner_text("#one-title").split()[1]
            bars = [page.locator(f"#{box} rect.stay").count() for box in ("fake-strip", "skeleton-strip")]
            said = page.inner_text("#one-said")
            facts = page.inner_text("#one-verdict")
            page.focus("#map")
            page.keyboard.press("Home")
            first = page.inner_text("#said")
            page.keyboard.press("ArrowRight")
            second = page.inner_text("#said")
        i = next(i for i, user in enumerate(pool.traces.users) if str(user).startswith(title))
        mine = label[fakes.r[rows[i]]]
        own = fakes.learnt.classes_of(town.r[fakes.seed[rows[i]]])

        assert bars == [1 + int(np.count_nonzero(np.diff(c))) for c in (mine, own)]
        assert f"{100 * np.mean(mine == own):.0f} %" in said
        assert f"{fakes.verdicts[rows[i]].sim_s:.3f}" in facts
        for t, words in enumerate((first, second)):
            assert f"this fake is in class {mine[t] + 1}, its skeleton in class {own[t] + 1}." in words
        assert visit.said == []

    def test_the_sliders_give_the_acceptance_of_what_was_measured(self, browser, run):
        folder, _, fakes, _, _ = run
        with opened(folder) as server, inside(browser, server) as visit:
            page = visit.page
            whole = page.inner_text("#accepted")
            slide(page, 4, 0.8)
            tight = page.inner_text("#accepted")
            page.select_option("#by", "out")
            out = page.inner_text("#matches")
            slide(page, 0, 1)
            slide(page, 2, 1)
            loose = page.inner_text("#accepted")
            page.click("#as-run")
            again = page.inner_text("#accepted")
        lives = fakes.verdicts
        both = [*lives, *fakes.rejected]
        tested = len(both)

        def share(passes):
            value = 100 * sum(map(passes, both)) / tested
            return f"{value:.1f} %" if 0 < value < 9.95 else f"{value:.0f} %"

        assert whole.startswith(share(lambda v: v.passed))
        assert tight.startswith(share(lambda v: v.passed and v.sim_s >= 0.8))
        assert out == f"{sum(v.sim_s < 0.8 for v in lives)} of {len(lives)}"
        assert loose.startswith(share(lambda v: v.sim_s >= 0.8 and not {"intersection", "others"} & set(v.rejected_by)))
        assert again == whole
        assert visit.said == []

    def test_of_many_fakes_some_are_shown_and_it_is_said(self, browser, run, monkeypatch):
        monkeypatch.setattr(studio, "MOST_SHOWN", 7)
        with opened(run[0]) as server, inside(browser, server) as visit:
            tiles, listed = visit.page.inner_text("#tiles"), visit.page.locator("#list button").count()

        assert listed == 7
        assert tiles.split("\n")[:2] == ["fakes, of which 7 are shown", str(run[3].traces.U)]
        assert visit.said == []

    def test_classes_alone_and_the_audit_by_outcome(self, browser, run):
        with opened(run[0]) as server, inside(browser, server) as visit:
            page = visit.page
            classes = page.locator("#classes button").count()
            page.click("#classes li:nth-child(2) button")
            alone = page.inner_text("#said")
            everything = page.locator("#audit tr").count()
            outcome = page.evaluate("document.querySelector('#outcome option:nth-child(2)').value")
            page.select_option("#outcome", outcome)
            some = page.locator("#audit tr").count()
            named = set(page.locator("#audit .verdict").all_inner_texts())

        assert classes == run[2].kappa
        assert alone.endswith("of class 2.")
        assert 0 < some < everything == len([n for n in world()["audit"].to_dict() if re.fullmatch(r"A\d+", n)])
        assert {words[2:] for words in named} == {outcome}
        assert visit.said == []

    def test_a_run_without_verdicts_or_judgement_shows_what_there_is(self, browser, run, tmp_path):
        folder = tmp_path / "out"
        Pool(run[3].traces, {**run[3].provenance, "preset": "private"}).save(folder)
        (tmp_path / "out-private").mkdir()
        with opened(folder) as server, inside(browser, server) as visit:
            page = visit.page
            none = page.inner_text("#thresholds-none")
            sentence = page.inner_text("#sentence")
            page.click("#list button")
            hidden = page.is_hidden("#skeleton-box")

        assert none.startswith("The preset private tests no fake")
        assert sentence.startswith("This run was not judged")
        assert hidden
        assert visit.said == []
