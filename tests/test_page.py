"""
The page of the pool in a real browser: load, wrong token, devices, spent pool, by keyboard alone.

Needs Chromium and the playwright package; set ELSEWHERE_SCREENSHOTS to a folder to keep the pictures.
"""

import json
import os
import re
from pathlib import Path

import pytest
from browsing import CHROMIUM, MARKS, SIZES, Visit, started, until
from test_serve import asked, serving
from test_store import pool_of

pytestmark = MARKS


@pytest.fixture(scope="module")
def browser():
    with started() as one:
        yield one


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    pool = pool_of(40)
    pool.save(folder / "pool")
    with serving(folder / "pool", "--rate", "100000") as (told, _):
        yield told["url"], told["owner_token"], pool


def enter(visit, token):
    visit.page.fill("#token", token)
    visit.page.press("#token", "Enter")


def inside(browser, url, token, size="desktop", scheme="light"):
    visit = Visit(browser, url + "/", SIZES[size], scheme)
    enter(visit, token)
    visit.page.wait_for_selector("#inside:not([hidden]) #tiles dd")
    return visit


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_the_whole_page_without_a_word_on_the_console_or_a_request_elsewhere(browser, service, tmp_path, size, scheme):
    url, token, _ = service
    with inside(browser, url, token, size, scheme) as visit:
        page = visit.page
        folder = Path(os.environ.get("ELSEWHERE_SCREENSHOTS", tmp_path))
        page.screenshot(path=folder / f"pool-{size}-{scheme}.png", full_page=True)
        wide = page.evaluate("document.documentElement.scrollWidth")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, input')].filter(e => !(e.textContent.trim()"
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
            assert page.locator("#tiles dd").count() == 0
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
        bucket = asked(url, "GET", "/v1/bucket", made)
        row.locator("button").click()  # asks once more
        assert asked(url, "GET", "/v1/bucket", made)[0] == 200
        row.locator("button").click()
        until(page, "[...document.querySelectorAll('#devices .gone')].length > 0")
        states.append(row.locator("td").nth(2).inner_text())
        page.reload()
        enter(visit, token)
        page.wait_for_selector("#inside:not([hidden]) #tiles dd")
        tiles = page.inner_text("#tiles")
        again = page.content()

    assert bucket[0] == 200
    assert asked(url, "GET", "/v1/bucket", made)[0] == 401
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
        assert asked(told["url"], "GET", "/v1/bucket", device)[0] == 200
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
        page.wait_for_selector("#inside:not([hidden]) #tiles dd")
        assert focused() == "label"
        upto("label")
        page.keyboard.type("by keyboard")
        press("Enter")
        page.wait_for_selector("#new:not([hidden])")

    assert visit.said == []


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
