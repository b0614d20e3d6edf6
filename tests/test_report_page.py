"""The report and the page of a preparation: what stands where, what is never shown, what may be said."""

import re
import stat
from html.parser import HTMLParser

import numpy as np
import pytest
from reports_made import (
    CANARY,
    HOSTILE,
    LBS,
    PUBLISHING,
    as_events,
    as_trips,
    audit,
    finding,
    one_day,
    without_coordinates,
    world,
)

import elsewhere as ew
from elsewhere.data.visits import Form, Preparation, Visits
from elsewhere.reports import claims
from elsewhere.reports.page import preparation_page

CODE = re.compile(r"\bA\d+\b")


class Page(HTMLParser):
    """The words of a page, those inside folded parts apart, and its tags."""

    def __init__(self, html):
        super().__init__()
        self.folded, self.depth, self.tags, self.ids = [], 0, [], []
        self.open = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [dict(attrs)["id"]] if "id" in dict(attrs) else []
        self.depth += tag in ("details", "style")

    def handle_endtag(self, tag):
        self.depth -= tag in ("details", "style")

    def handle_data(self, data):
        (self.folded if self.depth else self.open).append(data)


def made(tmp_path, results, **arguments):
    path = tmp_path / "report.html"
    ew.report(results, path, **arguments)
    return path.read_text()


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    w = world()
    return made(
        tmp_path_factory.mktemp("owner"),
        w["judgement"],
        edition="owner",
        people=w["people"],
        fakes=w["fakes"],
        seed_of_life=w["seed"],
    )


@pytest.fixture(scope="module")
def shareable(tmp_path_factory):
    return made(tmp_path_factory.mktemp("shareable"), world()["judgement"], fakes=world()["fakes"])


def test_pictures_come_first_then_uses_then_whether_to_publish_and_codes_are_folded_away(owner, shareable):
    for html in (owner, shareable):
        page = Page(html)
        order = [html.index(f'id="{name}"') for name in ("pictures", "uses", "publish", "details")]
        assert order == sorted(order)
        assert html.index('id="pictures"') < html.index("<table")
        assert html[: order[1]].count("<svg") == 6  # two lives by hour and on the map, two crowds
        assert not CODE.search(" ".join(page.open))
        assert CODE.search(" ".join(page.folded))
        assert len(page.ids) == len(set(page.ids))


def test_nothing_breaks_out_nothing_is_fetched_and_the_page_is_small(owner):
    page = Page(owner)

    assert "<b onclick" not in owner
    assert not [tag for tag, _ in page.tags if tag in ("script", "img", "link", "iframe")]
    assert not re.search(r"https?://|url\((?!#)|@import", owner)
    assert len(owner) < 600_000
    assert all("aria-label" in attrs for tag, attrs in page.tags if tag == "svg")


def test_the_shareable_edition_knows_nobody(tmp_path, shareable):
    w = world()
    for secret in (CANARY, "424242", "424,242", "/home/canary", w["fakes"].users[0][-12:]):
        assert secret not in shareable
    assert "par s" in shareable  # other parameters are there
    assert shareable == made(tmp_path, w["judgement"], fakes=w["fakes"])


@pytest.mark.parametrize("argument", ["people", "seed_of_life"])
def test_real_people_are_refused_in_the_shareable_edition(tmp_path, argument):
    w = world()
    given = {"people": w["people"], "seed_of_life": w["seed"]}[argument]

    with pytest.raises(ew.errors.InvalidParameter) as caught:
        ew.report(w["judgement"], tmp_path / "report.html", fakes=w["fakes"], **{argument: given})
    assert (caught.value.code, caught.value.parameter) == ("E_PRIVATE", argument)
    assert not list(tmp_path.iterdir())


def test_each_fake_stands_beside_its_own_person(monkeypatch, tmp_path):
    from elsewhere.reports import page

    drawn = []
    real = page.Life.of
    monkeypatch.setattr(
        page.Life, "of", staticmethod(lambda v, users: drawn.append((v, list(users))) or real(v, users))
    )
    w = world()
    made(tmp_path, w["judgement"], edition="owner", people=w["people"], fakes=w["fakes"], seed_of_life=w["seed"])
    (people, person), (fakes, fake) = drawn
    number = w["fakes"].users.index(fakes.users[fake[0]])

    assert people.users[person[0]] == w["people"].users[w["seed"][number]]


@pytest.mark.parametrize(
    ("change", "with_people", "alone", "words"),
    [
        (as_events, 6, 6, "The fortnight of"),
        (as_trips, 6, 6, "where a trip begins"),
        (one_day, 6, 6, "Days of"),
        (without_coordinates, 2, 2, "no coordinates"),
        (lambda v: v.of_users([2]), 6, 4, "The fortnight of"),  # one fake has no other beside it
    ],
)
def test_every_kind_of_record_has_its_first_picture(tmp_path, change, with_people, alone, words):
    people, fakes, results = change(world()["people"]), change(world()["fakes"]), world()["judgement"]
    pages = (
        made(tmp_path, results, edition="owner", people=people, fakes=fakes),
        made(tmp_path, results, fakes=fakes),
    )
    for html, pictures in zip(pages, (with_people, alone), strict=True):
        first = html[: html.index('id="uses"')]
        assert first.count("<svg") == pictures
        assert words in first


def test_results_of_every_kind_alone_or_in_a_list(tmp_path):
    w = world()
    assert 'id="uses"' in made(tmp_path, w["usefulness"])
    assert "attack A15" in made(tmp_path, w["audit"])
    html = made(tmp_path, [PUBLISHING, LBS, w["usefulness"]])
    assert "0.812" in html
    assert "Decoys for a location-based service" in html
    few = PUBLISHING | {"sizes": PUBLISHING["sizes"] | {"users": 4}}
    assert "measures of usefulness" not in made(tmp_path, [few])
    assert "measures of usefulness" in made(tmp_path, [few], edition="owner")


@pytest.mark.parametrize("results", [None, 3, {}, [{"some": "thing"}], "text"])
def test_what_cannot_be_a_report_is_refused(tmp_path, results):
    with pytest.raises(ew.errors.InvalidParameter) as caught:
        ew.report(results, tmp_path / "report.html")
    assert caught.value.parameter == "results"


def test_without_anything_judged_it_is_said(tmp_path):
    html = made(tmp_path, {"usefulness": None, "audit": None, "run": {"method": "life"}}, fakes=world()["fakes"])

    assert "No audit was run" in html
    assert 'id="uses"' not in html
    assert 'class="verdict bad"' in html


def test_uses_have_their_verdict_words_and_picture_and_the_six_divergences_are_folded(owner):
    usefulness = world()["usefulness"]
    section = owner[owner.index('id="uses"') : owner.index('id="publish"')]
    for use in usefulness.uses:
        assert use.words in section.replace("&#39;", "'")
    with_figures = [use for use in usefulness.uses if use.fakes is not None]
    assert section.count("<svg") == len(with_figures)
    table = owner[owner.index('class="divergences"') :].split("</details>")[0]
    assert table.count('<th scope="row"') == len(usefulness.divergences["fakes"]) == 6


def test_the_file_is_its_owners_alone(tmp_path):
    made(tmp_path, world()["audit"])
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o600


CLEAN = {"method": "life", "parameters": {"k": 10}}


@pytest.mark.parametrize(
    ("findings", "run", "level"),
    [
        (None, CLEAN, "no"),
        (audit(), CLEAN | {"reproducible": True}, "no"),
        (audit(), CLEAN | {"reproducible": True, "simulated": True}, "care"),  # A12 was not run
        ({n: f for n, f in audit().items() if n != "A12"}, CLEAN, "yes"),
        (audit(A3=finding("A3", 0.4, passed=False)), CLEAN, "no"),
        (audit(A5=finding("A5", 0.4, passed=False)), CLEAN, "care"),  # inside knowledge
        (audit(A15=finding("A15", 0.99, passed=False)), {}, "care"),  # about fakes, not about people
        ({n: {"status": "not run"} for n in ("A1", "A2")}, CLEAN, "no"),
    ],
)
def test_advice_follows_what_was_learnt_about_people_in_three_sentences_without_codes(findings, run, level):
    sentences = claims.three_sentences(findings, run)

    assert claims.advice(findings, run).level == level
    assert len(sentences) == 3
    assert not CODE.search(" ".join(sentences))


def test_the_worst_that_was_learnt_is_told_in_its_words():
    worst = finding("A3", 0.4, passed=False, words="Whoever has the file tells 40 % of the people.")
    told = claims.three_sentences(audit(A3=worst, A2=finding("A2", 0.2, passed=False)), CLEAN)[1]

    assert "tells 40 % of the people" in told
    # of two that learnt something, the one farther from guessing: 0.6 is little where a guess reaches 0.5
    nearer = finding("A10", 0.6, passed=False, words="Near.") | {"baseline": 0.5}
    assert "tells 40 % of the people" in claims.three_sentences(audit(A3=worst, A10=nearer), CLEAN)[1]
    assert "not known" in claims.three_sentences(None, CLEAN)[1]


class TestClaims:
    def test_no_shared_place_needs_the_count(self):
        assert claims.claims(audit(), CLEAN)[0].met
        shared = finding("A1", 0.1) | {"own_seed_zero": False}
        assert not claims.claims(audit(A1=shared), CLEAN)[0].met
        assert not claims.claims(None, CLEAN)[0].met

    def test_others_as_similar_needs_the_test_and_the_attack_beside_it(self):
        claim = claims.claims(audit(), CLEAN)[1]
        assert claim.met
        assert audit()["A5"]["words"][1:] in claim.sentence
        assert "9 other people" in claim.sentence
        assert not claims.claims(audit(A5={"status": "not run"}), CLEAN)[1].met
        assert not claims.claims(audit(), CLEAN | {"method": "paper"})[1].met

    def test_the_certificate_needs_its_conditions_and_a_bound_that_means_something(self):
        good = {"protects": "everybody", "eps": 2.0, "words": ["eps is 2."], "conditions": [["one file", "met"]]}
        met = lambda certificate, found=None: claims.claims(found, {"certificate": certificate})[2].met  # noqa: E731
        assert met(good)
        assert not met(good | {"eps": 20.0})
        assert not met(good | {"conditions": [["one file", "not met"]]})
        assert not met(good, {"A9": finding("A9", passed=False)})
        assert not met(None)

    def test_the_table_may_be_quoted_whole_only_and_names_what_was_not_run(self):
        assert "A12" in claims.claims(audit(), CLEAN)[3].because
        assert not claims.claims(None, CLEAN)[3].met


def test_the_page_of_a_preparation_tells_what_was_dropped_and_names_columns_and_unit():
    form = Form("events", columns={"user": "uid", "start": HOSTILE})
    told = Preparation(rows=1234, dropped={"no position": 17}, changed={"read as UTC": 3}, form=form, notes=("a note",))
    html = preparation_page(as_events(world()["people"]).replace(preparation=told, form=form))

    for words in ("1,234", "no position", ">17<", "read as UTC", ">uid<", "a note"):
        assert words in html
    assert "<b onclick" not in html
    assert html.count("<svg") == 2  # map, hours
    assert CANARY not in html


@pytest.mark.parametrize("change", [as_trips, without_coordinates, one_day, lambda v: v.select([5])])
def test_every_kind_of_record_has_its_page_of_preparation(change):
    visits = change(world()["people"])
    assert f"{len(visits):,} visit" in preparation_page(visits)


def test_many_people_are_sampled_and_their_own_seeds_stay_theirs():
    from elsewhere.reports.page import MOST_PEOPLE, Shown

    w = world()
    n = MOST_PEOPLE + 500
    rng = np.random.default_rng(2)
    base = w["people"]
    place = rng.integers(base.R, size=n)
    people = Visits(np.arange(n), np.arange(n) * 60, np.arange(n) * 60, place, base.locations)
    seed = rng.permutation(n)
    fakes = people.replace(place=place[seed])
    shown = Shown.of(people, fakes, seed)

    assert shown.fakes.U == MOST_PEOPLE
    assert np.array_equal(shown.people.place[shown.seed], shown.fakes.place)
