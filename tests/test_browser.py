"""
The report in a real browser: nothing leaves the file, nothing overflows a phone, all can be read in light and dark.

Needs Chromium and the playwright package; set ELSEWHERE_SCREENSHOTS to a folder to keep the pictures.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from browsing import MARKS, SIZES, Visit, started
from reports_made import LBS, PUBLISHING, as_events, world

import elsewhere as ew
from elsewhere.data.visits import Visits
from elsewhere.reports.page import preparation_page, write

pytestmark = MARKS


@pytest.fixture(scope="module")
def browser():
    with started() as one:
        yield one


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    w, folder = world(), tmp_path_factory.mktemp("reports")
    results, own = [w["judgement"], PUBLISHING, LBS], {"people": w["people"], "seed_of_life": w["seed"]}
    ew.report(results, folder / "shareable.html", fakes=w["fakes"])
    ew.report(results, folder / "owner.html", edition="owner", fakes=w["fakes"], **own)
    write(folder / "prepare.html", preparation_page(as_events(w["people"])))
    return folder


@pytest.mark.parametrize(
    ("edition", "size", "scheme"),
    [
        ("shareable", "desktop", "light"),
        ("shareable", "phone", "dark"),
        ("owner", "desktop", "dark"),
        ("owner", "phone", "light"),
        ("prepare", "phone", "dark"),
    ],
)
def test_nothing_leaves_the_file_nothing_overflows_and_all_can_be_read(
    browser, reports, tmp_path, edition, size, scheme
):
    path = reports / f"{edition}.html"
    with Visit(browser, path, SIZES[size], scheme) as visit:
        tall = visit.page.evaluate("document.documentElement.scrollHeight")
        first = visit.page.evaluate("document.querySelector('main svg').getBoundingClientRect().top")
        for summary in visit.page.query_selector_all("main details > summary"):
            summary.click()
        folder = Path(os.environ.get("ELSEWHERE_SCREENSHOTS", tmp_path))
        picture = folder / f"{edition}-{size}-{scheme}.png"
        visit.page.screenshot(path=picture, full_page=True)
        wide = visit.page.evaluate("document.documentElement.scrollWidth")
        small = visit.page.evaluate(
            "Array.from(document.querySelectorAll('figure svg text'))"
            ".map(t => t.getBoundingClientRect().height).filter(h => h > 0 && h < 7).length"
        )
        inks = visit.page.evaluate(INKS)

    assert visit.asked == [path.as_uri()]
    assert visit.said == []
    assert wide <= SIZES[size]
    assert small == 0, "letters too small to read"
    assert picture.stat().st_size > 50_000
    assert first < 900, "a picture on the first screen"
    if size == "desktop":
        assert tall <= 5 * 900
    assert {ink: round(contrast(ink, paper), 1) for ink, paper in inks if contrast(ink, paper) < 4.5} == {}


# the colours of all words, in the text and in pictures, each with what lies under it
INKS = """(() => {
  const under = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$|transparent/.test(c)) return c;
  } return "rgb(255, 255, 255)"; };
  const seen = new Set();
  const words = "p, h1, h2, h3, td, th, li, dt, dd, summary, span, figcaption, svg text";
  for (const e of document.querySelectorAll(words)) {
    const style = getComputedStyle(e);
    seen.add(JSON.stringify([e instanceof SVGElement ? style.fill : style.color, under(e)]));
  }
  return Array.from(seen).map(JSON.parse);
})()"""


def contrast(ink, paper):
    """The ratio of the luminances of two colours (WCAG); 4.5 can be read by nearly everybody."""
    lights = []
    for colour in (ink, paper):
        rgb = np.array([int(n) for n in re.findall(r"\d+", colour)[:3]]) / 255
        rgb = np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        lights.append(float(rgb @ [0.2126, 0.7152, 0.0722]) + 0.05)
    return max(lights) / min(lights)


def test_names_of_towns_are_on_every_map(browser, tmp_path):
    rng = np.random.default_rng(3)
    where = ew.Locations(rng.uniform(40.58, 40.85, 40), rng.uniform(-74.06, -73.85, 40))
    hour = np.tile(np.arange(24), 30) * 3600
    people, fakes = (
        Visits(np.repeat(np.arange(30), 24), hour, hour + 3600, rng.integers(40, size=720), where) for _ in range(2)
    )
    path = tmp_path / "report.html"
    ew.report(world()["audit"], path, edition="owner", people=people, fakes=fakes)
    with Visit(browser, path, SIZES["phone"], "light") as visit:
        maps = visit.page.locator("#pictures figure:has(h3:text('are')) svg")
        names = [maps.nth(i).locator("text").all_text_contents() for i in range(maps.count())]

    assert visit.asked == [path.as_uri()]
    assert len(names) == 2
    assert all({"New York City", "Brooklyn"} <= set(each) for each in names)


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
