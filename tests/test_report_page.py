"""The report: what stands in it, that nothing breaks out of it, and that the shareable edition knows nobody."""

import json
import re
import stat
from html.parser import HTMLParser

import numpy as np
import pytest
from reports_made import CANARY, HOSTILE, INSTANTS, LONELY, PLACES, world

import elsewhere as ew
from elsewhere.evaluation.attacks.audit import ALL
from elsewhere.evaluation.attacks.finding import Finding, Rate
from elsewhere.evaluation.lbs.generators import uniform_iid
from elsewhere.privacy.certificate import Certificate
from elsewhere.reports import page
from elsewhere.reports.claims import WANTED, advice, claims, forbidden_claims, outcome_sign, percent, three_sentences

VOID = {"meta", "br", "hr", "input"}


class Reader(HTMLParser):
    """Reads a page strictly: every tag closed in order; keeps texts, ids, attributes, and what is not folded away."""

    def __init__(self):
        super().__init__()
        self.open, self.words, self.visible, self.ids, self.tags = [], [], [], [], []

    def handle_starttag(self, name, attributes):
        self.tags.append((name, dict(attributes)))
        self.ids += [v for k, v in attributes if k == "id"]
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.tags.append((name, dict(attributes)))

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, words):
        self.words.append(words)
        if "details" not in self.open and "style" not in self.open:
            self.visible.append(words)


def read(html):
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    return reader


def made(tmp_path, results=None, **arguments):
    path = tmp_path / "report.html"
    ew.report(world()["audit"] if results is None else results, path, **arguments)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shareable(tmp_path_factory):
    """A whole page: results of every kind."""
    w = world()
    folder = tmp_path_factory.mktemp("page")
    return made(folder, w["results"], fakes=w["pool"], classes=w["classes"], run=w["run"])


@pytest.fixture
def no_pictures(monkeypatch):
    monkeypatch.setattr(page, "svg", lambda figure, label: "")


def words(html):
    return re.sub(r"\s+", " ", " ".join(read(html).words))


@pytest.fixture
def whole():
    w = world()
    return {"fakes": w["pool"], "classes": w["classes"], "run": w["run"]}


def test_pictures_come_first_then_uses_then_whether_to_publish_and_codes_are_folded_away(shareable):
    html = shareable
    reader = read(html)

    assert re.findall(r"<h2[^>]*>(.*?)</h2>", html) == [
        "What are they good for?",
        "Should they be published?",
        "Details",
    ]
    assert html.index('id="pictures"') < html.index("<svg") < html.index('id="uses"') < html.index('id="publish"')
    assert not re.search(r"\bA\d+\b", " ".join(reader.visible))
    assert re.search(r"\bA\d+\b", " ".join(reader.words))
    # a table is folded away, and has a picture beside it
    assert html.index("<table") > html.index("<details")
    verdict = re.search(r'<div class="verdict.*?</div>', html, re.DOTALL)[0]
    assert verdict.count("<p>") == 3


def test_the_figures_are_those_of_the_results(shareable):
    w = world()
    text, found = words(shareable), w["audit"].to_dict()

    for attack in ("A1", "A2", "A4"):
        assert percent(found[attack]["control"]) in text
        assert found[attack]["words"] in text
    assert f"{w['publishing'].to_dict()['aggregate']['pi_bar']['testing']:.3f}" in text
    assert f"aggregate {w['lbs'].figure('ours', 3, 'aggregate', 'tracking')['median']:.2f}" in text
    assert all(use.words in text for use in w["uses"].uses)


def test_results_from_json_give_the_same_page():
    w = world()
    told = [json.loads(json.dumps(r.to_dict())) for r in w["results"]]
    told[0] |= {"sizes": w["audit"].sizes, "notes": list(w["audit"].notes)}
    named = dict(zip("abcd", told, strict=True)) | {"notes": ["x"], "version": "1", "lives": None}

    by_kind = [page.collect(each) for each in (w["results"], told, named)]
    assert all(json.dumps(list(each[kind].values())) == json.dumps(list(by_kind[0][kind].values()))
               for each in by_kind for kind in by_kind[0])  # fmt: skip


def test_the_same_twice_small_and_nothing_is_fetched(tmp_path, whole, shareable):
    first, second = shareable, made(tmp_path, world()["results"], **whole)
    reader = read(first)
    fetching = [(n, a) for n, a in reader.tags if "src" in a or a.get("href", "#")[0] != "#" or n in ("link", "img")]
    policy = next(a["content"] for n, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy")

    assert first == second
    assert fetching == []
    assert not re.search(r"url\((?!#)|@import|<script", first)
    assert policy.startswith("default-src 'none'")
    assert len(first) < 1_500_000


def test_it_can_be_read_without_eyes(shareable):
    reader = read(shareable)
    pictures = [a for n, a in reader.tags if n == "svg"]

    assert ("html", {"lang": "en"}) in reader.tags
    assert len(pictures) > 10
    assert all(a.get("role") == "img" and a.get("aria-label") for a in pictures)
    assert [n for n, _ in reader.tags if n == "h1"] == ["h1"]
    assert all(a.get("scope") for n, a in reader.tags if n == "th")


@pytest.mark.parametrize("edition", ["owner", "shareable"])
def test_nothing_breaks_out(tmp_path, edition):
    w = world()
    told = w["audit"].to_dict()
    told["A1"] = {**told["A1"], "words": HOSTILE, "title": HOSTILE}
    told["A9"] = {**told["A9"], "needs": HOSTILE}
    lbs = w["lbs"].to_dict()
    lbs["generators"] = {HOSTILE: lbs["generators"]["ours"]}
    lbs["notes"] = [HOSTILE]
    publishing = w["publishing"].to_dict() | {"notes": [HOSTILE]}
    publishing["habits"] = {HOSTILE: {**publishing["habits"]["moves"], "unit": HOSTILE}}
    uses = w["uses"].to_dict()
    uses["places"] = {**uses["places"], "title": HOSTILE, "words": HOSTILE}
    run = {HOSTILE: HOSTILE, "notes": [HOSTILE], "parameters": {HOSTILE: HOSTILE}, "versions": {HOSTILE: HOSTILE}}
    run |= {"tally": {"tested": 3, "passed": 1, HOSTILE: 2}, "preset": HOSTILE}
    results = {HOSTILE: told, "more": [told, publishing, lbs, uses]}
    html = made(tmp_path, results, edition=edition, run=run, title=HOSTILE, fakes=w["pool"], classes=w["classes"])
    reader = read(html)

    assert "<b onclick" not in html
    assert not any("onclick" in a for _, a in reader.tags)
    assert "".join(reader.words).count(HOSTILE) > 10


def test_the_shareable_edition_knows_nobody(tmp_path, whole):
    w = world()
    whole["run"] = {
        **w["run"],
        "seed": 918273645,
        "entropy": "e3f1-entropy",
        "input": "/home/ann/traces.csv",
        "seed_index": w["seed"].tolist(),
        "users": [f"{CANARY}-{i}" for i in range(40)],
        "parameters": {"rng": 918273645, "par_s": 0.1},
        "array": w["real"].r,
    }
    html = made(tmp_path, **whole)

    for secret in (CANARY, "918273645", "e3f1", "/home/ann", *w["fakes"].users[:3]):
        assert secret not in html
    assert "Where people are<" not in html
    assert "The life of a person" not in html
    assert "Days of people" not in html
    # every place that is drawn is one that a fake visits; the place of one person alone is not
    assert LONELY not in w["fakes"].r
    drawn = sum(int(n) for n in re.findall(r"map of (\d+) places", html))
    night, day = (len(np.unique(w["fakes"].r[:, hours])) for hours in (slice(6), slice(10, 17)))
    assert drawn == night + day


def test_the_shareable_edition_depends_on_nothing_but_what_may_leave(tmp_path, whole):
    # the order of a file is the order of its seeds: it must not reach the page
    w = world()
    first = made(tmp_path, **whole)
    turned = w["fakes"].select(np.arange(len(w["fakes"]))[::-1])

    assert made(tmp_path, **(whole | {"fakes": ew.Pool(turned, w["pool"].provenance)})) == first


def test_lives_of_many_days_are_shown_whatever_their_order(tmp_path):
    town = ew.simulate_town(users=30, locations=40, days=5, rng=np.random.default_rng(2)).traces
    turned = town.of_users(np.arange(30)[::-1])
    first, second = (made(tmp_path, world()["audit"], fakes=t) for t in (town, turned))

    assert first == second
    assert "The life of a fake, hour by hour" in first
    assert "The life of another fake, hour by hour" in first
    owner = made(tmp_path, world()["audit"], fakes=town, real=turned, edition="owner")
    assert owner.index("The life of a person, hour by hour") < owner.index("The life of a fake, hour by hour")


def test_real_traces_are_refused_in_the_shareable_edition(tmp_path):
    w = world()
    with pytest.raises(ew.errors.InvalidParameter, match=r"E_PRIVATE: `real`"):
        made(tmp_path, fakes=w["pool"], real=w["real"])
    town = ew.simulate_town(users=60, locations=100, rng=np.random.default_rng(1))
    private = ew.generate_fakes(town.traces, kappa=8, m_min=2, c_min=1, rng=np.random.default_rng(1))
    with pytest.raises(ew.errors.InvalidParameter, match=r"E_PRIVATE: `fakes`"):
        made(tmp_path, fakes=private)
    assert not (tmp_path / "report.html").exists()

    html = made(tmp_path, fakes=private, edition="owner")
    assert "Owner's edition: private" in words(html)
    assert "The fakes made from them, hour by hour" in html


def test_each_fake_stands_beside_its_own_seed(monkeypatch):
    w = world()
    strips = []
    monkeypatch.setattr(
        page.charts, "life_strip", lambda rows, *_, **__: strips.append(rows) or page.charts.new_figure()
    )
    seed = np.arange(40)[::-1]
    page._strips(page.Shown(w["fakes"], w["real"], seed))
    people, fakes = strips

    row_of = {row.tobytes(): i for i, row in enumerate(np.asarray(w["fakes"].r))}
    rows = [row_of[np.asarray(row).tobytes()] for row in fakes]
    assert len(rows) == page.MOST_DAYS
    assert np.array_equal(people, w["real"].r[seed[rows]])


def test_the_file_is_its_owners_alone_and_whole(tmp_path):
    made(tmp_path)

    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_what_is_absent_is_left_out_or_said(tmp_path, no_pictures):
    w = world()
    html = made(tmp_path, w["publishing"])
    assert "Do not publish yet" in html
    assert '<details id="utility" open>' in html  # nothing else is there to be seen
    assert 'id="uses"' not in html
    assert 'id="pictures"' not in html

    flat = ew.Traces(w["fakes"].r, ew.Locations(n=PLACES))
    html = made(tmp_path, w["audit"], fakes=flat)
    assert "The places have no coordinates" in html
    assert "Days of fakes, hour by hour" in html
    assert 'id="utility"' not in html
    assert 'id="service"' not in html

    made(tmp_path, ew.evaluate_publishing(w["real"].r, None, w["fakes"].r))
    one = ew.Traces(w["fakes"].r[:1], w["fakes"].locations, step_minutes=60)
    html = made(tmp_path, w["audit"], fakes=one)
    assert "Days of other fakes" not in html


def test_few_people_are_not_shown_one_by_one(tmp_path, no_pictures):
    w = world()
    few = ew.evaluate_publishing(w["real"].r[:3], None, w["fakes"].r[:3], seed_index=[0, 1, 2])

    assert "would show single people" in made(tmp_path, few)
    assert "would show single people" not in made(tmp_path, few, edition="owner")
    # days of one person are one person
    days = ew.Traces(w["real"].r[:8], w["real"].locations, users=["a", "b"] * 4, step_minutes=60)
    assert "would show single people" in made(tmp_path, ew.evaluate_publishing(days, None, w["fakes"]))
    assert "would show single people" in made(tmp_path, ew.evaluate_publishing(w["real"], days, w["fakes"]))
    decoys = {"uniform": uniform_iid(PLACES, INSTANTS)}
    for n, shown in ((4, False), (5, True)):
        people = w["real"].select(np.arange(n))
        lbs = ew.evaluate_lbs(w["real"], people, decoys, n_fakes=(1,), repeats=(1, 1), rng=np.random.default_rng(1))
        assert ("Places sent" in made(tmp_path, lbs)) is shown
        assert "Places sent" in made(tmp_path, lbs, edition="owner")
    assert "Worst tenth" not in made(tmp_path, w["audit"])
    assert "Worst tenth" in made(tmp_path, w["audit"], edition="owner")


def test_a_large_map_stays_a_small_file(tmp_path):
    rng = np.random.default_rng(3)
    places = ew.Locations(lat=rng.normal(46.5, 0.1, 30_000), lon=rng.normal(6.6, 0.1, 30_000))
    fakes = ew.Traces(rng.integers(30_000, size=(2000, 72)), places)
    html = made(tmp_path, fakes=fakes, classes=ew.SemanticClasses(rng.integers(0, 40, 30_000)))

    assert len(html) < 1_500_000


def test_the_certificate_stands_in_the_report_with_its_conditions(tmp_path, no_pictures):
    told = Certificate(
        "everybody", eps=0.5, delta=1e-6, conditions=[("the map is given", "asserted"), ("coins", "met")]
    )
    for edition in ("shareable", "owner"):
        text = words(made(tmp_path, run={"preset": "private", "certificate": told.to_dict()}, edition=edition))
        assert "the map is given: asserted" in text
        assert "coins: met" in text
        assert all(sentence in text for sentence in told.to_dict()["words"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"results": 7}, "`results` must be a `PublishingResult`.* got int"),
        ({"results": []}, "nothing of that kind"),
        ({"results": {"a": {"b": {"c": {"d": 1}}}}}, "`results` must be"),
        ({"results": "report"}, "got str"),
        ({"edition": "public"}, "`edition` must be one of"),
        ({"fakes": [[1, 2]]}, "`fakes` must be a `Pool`, `Traces`.* got list"),
        ({"run": ["k"]}, "`run` must map names to values, got list"),
        ({"classes": [1, 2], "fakes": "pool"}, "must label the 40 places"),
        ({"real": [[1]], "edition": "owner"}, "`real` must be `Traces`, got list"),
        ({"real": "short", "fakes": "pool", "edition": "owner"}, "E_MISMATCH: `fakes` have 40 places"),
    ],
)
def test_what_cannot_be_a_report_is_refused(tmp_path, arguments, message):
    w = world()
    arguments = {
        n: w["pool"] if v == "pool" else w["real"].select([0]).with_places([[0, 1]]) if v == "short" else v
        for n, v in arguments.items()
    }
    with pytest.raises(ew.errors.InvalidParameter, match=message):
        made(tmp_path, **arguments)


def test_uses_in_one_sentence_are_each_where_they_belong():
    uses = world()["uses"].to_dict()
    for use, verdict in zip(list(uses)[:8], ["good", "rough", "good", "not for this"] * 2, strict=True):
        uses[use] = {**uses[use], "verdict": verdict}
    sentence = page._good_for(uses)

    assert sentence == (
        "They are good for busiest places, lengths of trips and flows between quarters / single places; "
        "rough for where people are by hour and flows between neighbourhoods; "
        "not for lengths of stays and weekdays and weekends."
    )


def finding(name, passed, main):
    return {"status": "run", "passed": passed, "main": main, "bar": 0.01, "title": name}


NOTHING = {name: finding(name, True, 0.0) for name in WANTED}


@pytest.mark.parametrize(
    ("audit", "run", "uses", "level"),
    [
        ({"A3": finding("A3", False, 0.2)}, {}, None, "no"),
        ({"A3": finding("A3", True, 0.0), "A5": finding("A5", False, 0.2)}, {}, None, "care"),
        ({"A3": finding("A3", True, 0.0)}, {}, None, "care"),
        (NOTHING, {}, None, "yes"),
        (NOTHING | {"A15": finding("A15", False, 0.9)}, {}, None, "yes"),
        (NOTHING | {"A4": finding("A4", None, 0.001)}, {}, None, "care"),
        (NOTHING, {"reproducible": True}, None, "no"),
        (NOTHING, {"reproducible": True, "simulated": True}, None, "yes"),
        ({}, {}, None, "no"),
        (NOTHING, {}, {"a": {"verdict": "not for this"}, "b": {"verdict": "cannot say"}}, "no"),
        (NOTHING, {}, {"a": {"verdict": "not for this"}, "b": {"verdict": "rough"}}, "yes"),
    ],
)
def test_advice_follows_what_was_learnt_about_people_in_three_sentences_without_codes(audit, run, uses, level):
    result = advice(audit, run, uses)

    assert result.level == level
    assert len(three_sentences(audit, run, uses)) == 3
    assert not re.search(r"\bA\d+\b", result.words + result.because)


def test_the_worst_that_was_learnt_is_told_with_its_figure_and_about_whom():
    small = {"A4": {**finding("A4", False, 0.03), "risk": 0.03, "control": 0.001}}
    large = {"A2": {**finding("A2", False, 0.31), "risk": 0.3, "control": 0.02, "role": "alternates"}}
    _, learnt, todo = three_sentences(small | large, {})
    assert "named the person behind 31.0 % of the fakes" in learnt
    assert "2.0 % where there was nothing to learn" in learnt
    assert "about the alternates" in learnt
    assert "people who may see the real data" in todo
    # what was clearly learnt comes before a larger figure that chance reaches as well
    doubtful = {"A2": {**large["A2"], "outcome": "above its bar, not clearly above chance"}}
    assert "3.0 %" in three_sentences(small | doubtful, {})[1]
    assert "No attack clearly learnt anything" in three_sentences(doubtful, {})[1]
    assert three_sentences(NOTHING, {})[1].startswith("No attack learnt anything measurable")


def test_an_outcome_claims_no_more_than_its_figure():
    """A figure above its bar is neither green nor "learnt nothing", though chance may reach as much (A1, A3, A12)."""
    above = {
        "A1": Finding("A1", interval=Rate(0.09, 0.06, 0.13), control=0.25, bar=0.0, leaks=False),
        "A3": Finding("A3", interval=Rate(0.12, -0.04, 0.24), control=-0.1, bar=0.02, passed=True, leaks=False),
        "A12": Finding("A12", interval=Rate(0.12, 0.02, 0.22), control=0.09, baseline=0.09, bar=0.09, passed=True),
    }
    for name, f in above.items():
        row = f.to_dict()
        assert outcome_sign(name, row)[::2] == ("≈", "rough")
        assert outcome_sign(name, {**row, "outcome": None}) == outcome_sign(name, row)
        assert advice(NOTHING | {name: row}, {}).level == "care"
    # A19 is documented: nothing says how much would be too much
    pool = Finding(
        "A19", interval=Rate(0.77, 0.7, 0.8), control=0.89, baseline=0.09, null=Rate(0.1, 0.0, 0.2)
    ).to_dict()
    assert outcome_sign("A19", pool) == ("•", "learnt something; there is no bar", "")
    assert outcome_sign("A3", {**pool, "bar": 0.02, "passed": False})[0] == "✗"


class TestClaims:
    CLEAN = {"A1": {"status": "run", "own_seed_zero": True, "main": 0.0, "passed": True}}
    SURE = Certificate("everybody", eps=0.5, delta=1e-6, conditions=[("coins", "met")]).to_dict()
    A9 = {"status": "run", "passed": True, "bar": 0.5, "main": 0.4}
    RULE = {"parameters": {"par_i": 0, "intersection": "set"}}

    def met(self, audit, run):
        return [c.met for c in claims(audit, run)]

    def test_no_shared_place_needs_both_the_count_and_the_rule(self):
        dirty = {"A1": {**self.CLEAN["A1"], "own_seed_zero": False, "main": 0.01}}

        assert self.met(None, self.RULE) == [False] * 3
        assert self.met(self.CLEAN, self.RULE)[0]
        assert "No fake shares a place" in three_sentences(self.CLEAN, self.RULE)[0]
        for audit, run in (
            (self.CLEAN, {"parameters": {"par_i": 1, "intersection": "set"}}),
            (self.CLEAN, {**self.RULE, "preset": "private"}),
            (self.CLEAN, {**self.RULE, "lives": True}),
            (self.CLEAN, {}),
            (dirty, self.RULE),
            ({"A1": {"status": "not run"}}, self.RULE),
            ({"A1": {"status": "run", "how": "whole day", "main": 0.5, "passed": False}}, self.RULE),
        ):
            assert not self.met(audit, run)[0]
            assert "No fake shares a place" not in three_sentences(audit, run)[0]

    def test_the_certificate_needs_its_conditions_and_the_audit(self):
        run = {"preset": "private", "certificate": self.SURE}

        assert self.met({"A9": self.A9}, run)[1]
        assert advice({"A3": finding("A3", True, 0.0)}, run).words.startswith("A theorem covers everybody")
        for wrong in ({"passed": None}, {"bar": 0.7}):
            assert not self.met({"A9": {**self.A9, **wrong}}, run)[1]
        failed = Certificate("everybody", eps=0.5, conditions=[("coins", "not met")]).to_dict()
        assert "coins" in claims({"A9": self.A9}, {"certificate": failed})[1].because
        loud = Certificate("everybody", eps=12.0).to_dict()
        for other in (failed, Certificate.none().to_dict(), loud):
            assert not self.met({"A9": {**self.A9, "bar": 12.0}}, {"certificate": other})[1]
            assert advice({"A3": finding("A3", True, 0.0)}, {"certificate": other}).words.startswith(
                "Cannot be advised"
            )

    def test_the_table_may_be_quoted_whole_only(self):
        whole = {attack: {"status": "not run"} for attack in ALL}

        assert self.met(whole, {})[-1]
        assert not self.met({k: v for k, v in whole.items() if k != "A7"}, {})[-1]

    def test_what_may_not_be_said_names_the_figure(self):
        audit = {"A15": {"status": "run", "main": 0.875}, "A4": {"status": "run", "passed": False}}
        text = " ".join(forbidden_claims(audit))

        assert "an AUC of 0.875 (A15)" in text
        assert "A4 did learn something" in text
        assert "AUC" not in " ".join(forbidden_claims(None))


def test_many_notes_are_shown_in_both_editions(tmp_path, no_pictures):
    notes = [f"note number {i}." for i in range(30)]
    for edition in ("shareable", "owner"):
        html = made(tmp_path, run={"notes": notes}, edition=edition)
        assert all(note in html for note in notes)
