"""
The page of the pool in a real browser: load, step, filter, download, wrong token, spent pool, 5,000 fakes.

Needs Chromium and the playwright package; set ELSEWHERE_SCREENSHOTS to a folder to keep the pictures.
"""

import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from browsing import CHROMIUM, MARKS, SIZES, Visit, started, until
from PIL import Image
from test_serve import asked, serving
from test_store import pool_of

from elsewhere.data.visits import Locations, Visits
from elsewhere.pool import Pool

pytestmark = MARKS


@pytest.fixture(scope="module")
def browser():
    with started() as one:
        yield one


def town(lives=40, places=60, days=2, seed=3):
    """Lives that sleep at home, work somewhere else, and go somewhere in between, on the coast of Helsinki."""
    rng = np.random.default_rng(seed)
    home, work, out = rng.integers(places, size=(3, lives, days))
    place = np.stack([home, work, home, out, home], axis=2)
    place[0] = 5  # somebody who stays in
    hours = np.array([0, 9, 17, 19, 20, 24])
    begin = np.datetime64("2024-03-04", "s").astype(np.int64)
    start, end = (begin + 86_400 * np.arange(days)[:, None] + 3600 * some for some in (hours[:-1], hours[1:]))
    where = Locations(lat=60.19 + rng.normal(0, 0.02, places), lon=24.95 + rng.normal(0, 0.05, places))
    users = [rng.bytes(16).hex() for _ in range(lives)]
    who = np.repeat(np.arange(lives), 5 * days)
    times = (np.tile(some.ravel(), lives) for some in (start, end))
    return Pool(Visits(who, *times, place.ravel(), where, users=users, tz="Europe/Helsinki"), {})


def steps_of(pool):
    """(lives, days, 72) places at each step of the page."""
    place = pool.visits.place.reshape(len(pool), -1, 5)
    return np.repeat(place, 3 * np.array([9, 8, 2, 1, 4]), axis=2)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    pool = town()
    pool.save(folder / "pool")
    with serving(folder / "pool", "--rate", "100000") as (told, _):
        yield told["url"], told["owner_token"], pool


def enter(visit, token):
    visit.page.fill("#token", token)
    visit.page.press("#token", "Enter")


def inside(browser, url, token, size="desktop", scheme="light"):
    visit = Visit(browser, url + "/", SIZES[size], scheme)
    enter(visit, token)
    visit.page.wait_for_selector("#inside:not([hidden]) #list button")
    return visit


def inks(page):
    """The colours of the map, and how many pixels have each."""
    picture = Image.open(io.BytesIO(page.locator("#map").screenshot())).convert("RGB")
    return {ink: n for n, ink in picture.getcolors(10_000_000)}


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_the_whole_page_without_a_word_on_the_console_or_a_request_elsewhere(browser, service, tmp_path, size, scheme):
    url, token, _ = service
    with inside(browser, url, token, size, scheme) as visit:
        page = visit.page
        page.click("#list li:nth-child(2) button")
        page.click("#next")
        folder = Path(os.environ.get("ELSEWHERE_SCREENSHOTS", tmp_path))
        page.screenshot(path=folder / f"pool-{size}-{scheme}.png", full_page=True)
        wide = page.evaluate("document.documentElement.scrollWidth")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, input, select, canvas')].filter(e => !(e.textContent.trim()"
            " || e.getAttribute('aria-label') || e.labels?.length)).map(e => e.id)"
        )

    assert visit.said == []
    assert {re.match(r"https?://[^/]+", asked)[0] for asked in visit.asked if not asked.startswith("blob:")} == {url}
    assert wide <= SIZES[size]
    assert (sum(map(int, re.findall(r"\d+", back)[:3])) < 150) == (scheme == "dark")
    assert unnamed == []


def test_nothing_is_shown_without_the_owners_token(browser, service):
    url, owner, _ = service
    device = json.loads(asked(url, "POST", "/v1/devices", owner)[1])["token"]
    with Visit(browser, url + "/", 1280) as visit:
        page = visit.page
        found = []
        for wrong in ("wrong", "ümlaut", device):
            enter(visit, wrong)
            until(page, "document.getElementById('token-wrong').textContent")
            found.append(page.inner_text("#token-wrong"))
            assert page.is_hidden("#inside")
            assert page.locator("#list button").count() == 0
        enter(visit, owner)
        page.wait_for_selector("#inside:not([hidden])")
        kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])")
        page.click("#lock")
        page.wait_for_selector("#gate:not([hidden])")
        assert page.input_value("#token") == ""

    assert "not valid" in found[0]
    assert "not valid" in found[1]
    assert "token of a device" in found[2]
    assert owner not in kept


def test_one_steps_through_a_day_and_from_day_to_day(browser, service):
    url, token, pool = service
    r, ids = steps_of(pool), pool.ids
    with inside(browser, url, token) as visit:
        page = visit.page
        first = page.inner_text("#clock")
        page.click("#next")
        page.click("#next")
        page.click("#back")
        stepped = page.inner_text("#clock")
        said = page.inner_text("#said")
        page.focus("#slot")
        page.keyboard.press("End")
        last, ended = page.inner_text("#clock"), page.is_disabled("#next")
        page.click("#play")
        playing = page.get_attribute("#play", "aria-pressed")
        until(page, "document.getElementById('clock').textContent >= '02:00'")
        page.click("#play")
        stopped = page.inner_text("#clock")
        page.wait_for_timeout(900)
        assert page.inner_text("#clock") == stopped
        page.click(f"#list button:has-text('{ids[3][:8]}')")
        page.evaluate("document.getElementById('slot').value = 30")
        page.dispatch_event("#slot", "input")
        on_day = [page.inner_text("#said")]
        page.select_option("#day", "1")
        until(page, "document.getElementById('one-title').textContent.includes('day 2')")
        on_day.append(page.inner_text("#said"))
        title = page.inner_text("#one-title")

    assert (first, stepped, last) == ("08:00", "08:20", "23:40")
    assert ended
    assert playing == "true"
    assert said == f"At 08:20, 40 fakes are at {len(set(r[:, 0, 25]))} places; 0 have just moved."
    for n, words in enumerate(on_day):
        assert words.startswith(f"At 10:00, this fake is at place {r[3, n, 30]} (")
    assert title.endswith("day 2, 2024-03-05")
    assert visit.said == []


def test_the_filter_keeps_what_it_says(browser, service):
    url, token, pool = service
    r, ids = steps_of(pool)[:, 0], pool.ids
    moves = (r[:, 1:] != r[:, :-1]).sum(axis=1)
    place = int(r[7, 36])
    with inside(browser, url, token) as visit:
        page = visit.page

        def listed():
            return {b.inner_text().split("\n")[0] for b in page.query_selector_all("#list button")}

        everybody = listed()
        page.select_option("#by-moves", "0,0")
        still = listed()
        page.select_option("#by-moves", "")
        page.select_option("#by-place", str(place))
        there = listed()
        page.fill("#by-id", ids[7][:6])
        one = listed()
        page.fill("#by-id", "zz")
        nobody = page.inner_text("#list"), page.inner_text("#matches")
        page.click("#clear")
        again = listed()
        page.fill("#by-id", ids[3])
        page.click("#list button")
        page.select_option("#by-moves", "0,0")  # what is chosen is no longer among them
        hidden = page.is_hidden("#one")

    assert everybody == again == {i[:8] for i in ids}
    assert still == {i[:8] for i, n in zip(ids, moves, strict=True) if n == 0}
    assert there == {i[:8] for i, day in zip(ids, r, strict=True) if place in day}
    assert one == {ids[7][:8]}
    assert nobody[0].startswith("No fake is like that")
    assert nobody[1] == "0 of 40"
    assert hidden
    assert visit.said == []


def test_a_click_on_the_map_keeps_who_goes_there(browser, service):
    url, token, _ = service
    with inside(browser, url, token) as visit:
        page = visit.page
        box = page.locator("#map").bounding_box()
        for across in np.linspace(0.3, 0.7, 9):
            page.mouse.click(box["x"] + across * box["width"], box["y"] + box["height"] / 2)
            if page.input_value("#by-place"):
                break
        place, some = page.input_value("#by-place"), page.inner_text("#matches")
        before = page.evaluate("document.getElementById('map').toDataURL()")
        page.click("#closer")
        closer = page.evaluate("document.getElementById('map').toDataURL()")
        page.click("#fit")
        whole = page.evaluate("document.getElementById('map').toDataURL()")

    assert place
    assert int(some.split(" of ")[0]) < 40
    assert closer != before
    assert whole == before


def test_a_device_is_let_in_and_shut_out(browser, service):
    url, token, pool = service
    with inside(browser, url, token) as visit:
        page = visit.page
        before = page.locator("#devices tr").count()
        page.fill("#label", "<b>my phone</b>")
        page.fill("#days", "30")
        page.click("#admit button")
        page.wait_for_selector("#new:not([hidden])")
        made = page.inner_text("#new-token")
        row = page.locator("#devices tr", has_text="<b>my phone</b>")
        row.wait_for()
        states = [row.locator("td").nth(2).inner_text()]
        bucket = asked(url, "GET", "/v1/buckets/0", made)
        row.locator("button").click()  # asks once more
        assert asked(url, "GET", "/v1/buckets/0", made)[0] == 200
        row.locator("button").click()
        until(page, "[...document.querySelectorAll('#devices .gone')].length > 0")
        states.append(row.locator("td").nth(2).inner_text())
        page.reload()
        enter(visit, token)
        page.wait_for_selector("#inside:not([hidden]) #list button")
        tiles = page.inner_text("#tiles")
        again = page.content()

    assert bucket[0] == 200
    assert asked(url, "GET", "/v1/buckets/0", made)[0] == 401
    assert states == ["valid", "shut out"]
    assert before
    assert made not in again  # shown once
    size = len(json.loads(bucket[1])["lives"])
    assert re.search(rf"\b{len(pool) - size}\b", tiles)
    assert visit.said == []


def test_a_spent_pool_says_so(browser, tmp_path):
    pool_of(6, days=1, slots=24).save(tmp_path / "pool")
    with serving(tmp_path / "pool") as (told, _):
        device = json.loads(asked(told["url"], "POST", "/v1/devices", told["owner_token"])[1])["token"]
        assert asked(told["url"], "GET", "/v1/buckets/0", device)[0] == 200
        with inside(browser, told["url"], told["owner_token"]) as visit:
            said = visit.page.inner_text("#level-said")
            state = visit.page.inner_text("#state")

    assert "The pool is spent" in said
    assert state == "0 of 6 left"
    assert visit.said == []


def test_by_keyboard_alone(browser, service):
    url, token, _ = service
    with Visit(browser, url + "/", 1280) as visit:
        page = visit.page

        def press(*keys):
            for key in keys:
                page.keyboard.press(key)

        def focused():
            return page.evaluate("document.activeElement.id || document.activeElement.className")

        def upto(name):
            for _ in range(120):
                if focused() == name:
                    ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                    assert ring != "none", f"no visible focus on {name}"
                    return
                press("Tab")
            raise AssertionError(f"{name} is not reached by Tab")

        upto("token")
        page.keyboard.type(token)
        press("Enter")
        page.wait_for_selector("#inside:not([hidden]) #list button")
        assert focused() == "map"
        press("ArrowRight", "ArrowRight", "ArrowLeft")
        clock = page.inner_text("#clock")
        press("ArrowDown", "ArrowDown", "ArrowUp")
        chosen = page.get_attribute("#list button[aria-pressed=true]", "data-life")
        press("Space")
        playing = page.get_attribute("#play", "aria-pressed")
        press("Space", "+", "-", "Home")
        start = page.inner_text("#clock")
        press("Escape")
        freed = page.is_hidden("#one")
        upto("by-moves")
        press("n")  # "none: stays in"
        few = page.inner_text("#matches")
        upto("clear")
        press("Enter")
        press("Tab", "Enter")
        first = page.get_attribute("#list button[aria-pressed=true]", "data-life")
        upto("label")
        page.keyboard.type("by keyboard")
        press("Enter")
        page.wait_for_selector("#new:not([hidden])")

    assert clock == "08:20"
    assert (chosen, first) == ("0", "0")
    assert playing == "true"
    assert start == "00:00"
    assert freed
    assert few == "1 of 40"
    assert visit.said == []


def test_five_thousand_fakes(browser, tmp_path):
    town(5000, places=800, days=1).save(tmp_path / "pool")
    with serving(tmp_path / "pool") as (told, _), inside(browser, told["url"], told["owner_token"]) as visit:
        page = visit.page
        count = page.inner_text("#matches")
        buttons = page.locator("#list button").count()
        milliseconds = page.evaluate(
            "async () => { const slot = document.getElementById('slot'), begun = performance.now();"
            " for (let i = 0; i < 20; i++) { slot.value = i; slot.dispatchEvent(new Event('input'));"
            " await new Promise(requestAnimationFrame); } return (performance.now() - begun) / 20; }"
        )
        page.click("#more")
        more = page.locator("#list button").count()
        drawn = inks(page)

    assert count == "all 5,000"
    assert (buttons, more) == (60, 120)
    assert len(drawn) > 50
    assert visit.said == []
    print(f"a step takes {milliseconds:.0f} ms")


def test_the_policy_of_the_page_lets_nothing_else_run(browser, service):
    # the test of the test: what an intruder would try is refused, and seen
    url, _, _ = service
    with Visit(browser, url + "/", 1280) as visit:
        page = visit.page
        page.evaluate(
            "for (const [tag, key, value] of [['script', 'textContent', 'document.title = 1'], ['img', 'src',"
            " 'https://example.org/x.png'], ['script', 'src', 'https://example.org/x.js']]) { const e ="
            " document.createElement(tag); e[key] = value; document.body.append(e); }"
        )
        page.evaluate("fetch('https://example.org/').catch(() => 0)")
        for _ in range(300):  # it is said some time later
            refused = [words for words in visit.said if "Content Security Policy" in words]
            if len(refused) >= 4:
                break
            page.wait_for_timeout(50)
        title = page.title()

    assert title == "elsewhere pool"
    assert len(refused) >= 4
    assert CHROMIUM
