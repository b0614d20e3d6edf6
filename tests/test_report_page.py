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
from elsewhere.reports.attacks import QUESTIONS, WANTED, advice, audit_table, claims, forbidden_claims, outcome_sign
from elsewhere.reports.markup import data, number, page, percent, section, tag
from elsewhere.reports.preparation import calendar
from elsewhere.reports.svg import Bar, Series, bars, plot, ticks

VOID = {"meta", "br", "hr", "input"}


class Reader(HTMLParser):
    """Reads a page strictly: every tag closed in order; keeps texts, ids, attributes and scripts."""

    def __init__(self):
        super().__init__()
        self.open, self.words, self.ids, self.tags, self.scripts = [], [], [], [], []

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
        (self.scripts if self.open and self.open[-1] == "script" else self.words).append(words)


def read(html):
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    return reader


def made(tmp_path, results=None, **arguments):
    path = tmp_path / "report.html"
    ew.report(world()["results"] if results is None else results, path, **arguments)
    return path.read_text(encoding="utf-8")


def words(html):
    return re.sub(r"\s+", " ", " ".join(read(html).words))


@pytest.fixture
def whole():
    w = world()
    return {"fakes": w["pool"], "classes": w["classes"], "run": w["run"]}


def test_everything_is_there_in_order(tmp_path, whole):
    html = made(tmp_path, **whole)
    heads = re.findall(r"<h2[^>]*>(.*?)</h2>", html)
    said = words(html)

    assert heads == [
        "What are they good for?",
        "Should they be published?",
        "What the data are good for",
        "Attacks",
        "What may be said",
        "Usefulness by the paper&#x27;s measures",
        "Decoys for a location-based service",
        "Maps and hours",
        "Days to step through",
        "How it was made",
    ]
    for phrase in (
        "40 people who do not exist, with one synthetic day each",
        "which only --preset private has",
        "Shareable edition",
        "Not run, and what it needs",
        "Q-Q of semantic similarity",
        "Most visited place of each person",
        "Its seed against everybody else",
        "10 most visited places that are the same",
        "Radius of gyration",
        "Privacy against places sent",
        "Places by class",
        "Acceptance by rule",
        "par s",
        "Versions",
    ):
        assert phrase in said, phrase
    assert "No fake shares a place with the person it was made from." in said


def test_the_figures_are_those_of_the_results(tmp_path):
    w = world()
    said, found = words(made(tmp_path)), w["audit"].to_dict()

    for attack in ("A1", "A2", "A4"):
        assert f"{100 * found[attack]['control']:.1f} %" in said
        assert found[attack]["words"] in said
    p = w["publishing"].to_dict()
    for figure in (
        p["visits"]["all"]["fakes"]["mean"],
        p["visits"]["top"]["single"],
        p["aggregate"]["pi_bar"]["testing"],
    ):
        assert number(figure) in said
    error = w["lbs"].figure("ours", 3, "aggregate", "localization")["median"]
    path = w["lbs"].figure("ours", 3, "aggregate", "tracking")["median"]
    assert f"{error:.2f} / {path:.2f}" in said


def test_results_from_json_give_the_same_page(tmp_path):
    w = world()
    told = [json.loads(json.dumps(r.to_dict())) for r in w["results"]]
    told[0] |= {"sizes": w["audit"].sizes, "notes": list(w["audit"].notes)}

    assert made(tmp_path, told) == made(tmp_path)
    assert made(tmp_path, dict(zip("abcd", told, strict=True))) == made(tmp_path)
    assert made(tmp_path, dict(zip("abcd", told, strict=True)) | {"notes": ["x"], "version": "1"}) == made(tmp_path)


def test_the_same_twice_and_nothing_is_fetched(tmp_path, whole):
    first, second = (made(tmp_path, **whole) for _ in range(2))
    reader = read(first)
    fetching = [(n, a) for n, a in reader.tags if "src" in a or a.get("href", "#")[0] != "#" or n in ("link", "img")]
    policy = next(a["content"] for n, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy")

    assert first == second
    assert fetching == []
    assert "url(" not in first
    assert "@import" not in first
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy
    assert len(first) < 2_000_000


def test_it_can_be_read_without_eyes(tmp_path, whole):
    reader = read(made(tmp_path, **whole))
    pictures = [a for n, a in reader.tags if n == "svg" and a.get("aria-hidden") != "true"]

    assert ("html", {"lang": "en"}) in reader.tags
    assert pictures
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
    run = {HOSTILE: HOSTILE, "notes": [HOSTILE], "parameters": {HOSTILE: HOSTILE}, "versions": {HOSTILE: HOSTILE}}
    run |= {"tally": {"tested": 3, "passed": 1, HOSTILE: 2}, "preset": HOSTILE}
    results = {HOSTILE: told, "more": [told, publishing, lbs]}
    html = made(tmp_path, results, edition=edition, run=run, title=HOSTILE, fakes=w["pool"], classes=w["classes"])
    reader = read(html)

    assert "<b onclick" not in html
    assert not any("onclick" in a for _, a in reader.tags)
    assert html.count("</script>") == 2  # the data of the days, and the script
    assert "".join(reader.words).count(HOSTILE) > 10


def test_data_for_the_script_cannot_close_it():
    written = data({"name": HOSTILE}, id="x")

    assert written.count("<") == 2
    assert json.loads(written.split(">", 1)[1].rsplit("<", 1)[0]) == {"name": HOSTILE}
    assert tag("p", HOSTILE, title=HOSTILE).count("<") == 2


def shown_days(html):
    return json.loads(re.search(r'id="days-data">(.*?)</script>', html)[1])


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
    days = shown_days(html)

    for secret in (CANARY, "918273645", "e3f1", "/home/ann", "its seed:", *w["fakes"].users[:3]):
        assert secret not in html
    assert all(day["real"] is None for day in days["days"])
    # every place that is drawn is one that a fake visits; the place of one person alone is not
    drawn = len(days["x"])
    assert drawn == len(np.unique(w["fakes"].r)) < PLACES
    assert LONELY not in w["fakes"].r
    circles = re.search(r"Places by visits, fakes</h4>.*?</figure>", html, re.DOTALL)[0].count("<title>")
    assert circles == drawn
    assert sum(int(n) for n in re.findall(r"class \d+ \((\d+)\)", html)) == drawn


def test_the_shareable_edition_depends_on_nothing_but_what_may_leave(tmp_path, whole):
    # the order of a file is the order of its seeds: it must not reach the page
    w = world()
    first = made(tmp_path, **whole)
    turned = w["fakes"].select(np.arange(len(w["fakes"]))[::-1])

    assert made(tmp_path, **(whole | {"fakes": ew.Pool(turned, w["pool"].provenance)})) == first


def test_real_traces_are_refused_in_the_shareable_edition(tmp_path):
    w = world()
    with pytest.raises(ew.errors.InvalidParameter, match=r"E_PRIVATE: `real` holds real traces"):
        made(tmp_path, fakes=w["pool"], real=w["real"])
    town = ew.simulate_town(users=60, locations=100, rng=np.random.default_rng(1))
    private = ew.generate_fakes(town.traces, kappa=8, m_min=2, c_min=1, rng=np.random.default_rng(1))
    with pytest.raises(ew.errors.InvalidParameter, match=r"E_PRIVATE: `fakes` as `generate_fakes` .* `publish`"):
        made(tmp_path, fakes=private)
    assert not (tmp_path / "report.html").exists()

    html = made(tmp_path, fakes=private, edition="owner")
    day = shown_days(html)["days"][0]
    moved = [(a != b) for a, b in zip(day["real"], day["fake"], strict=True)]
    assert len(moved) == town.traces.L
    assert all(moved)
    assert "Fake 1 and its seed" in html
    assert "Owner's edition: private" in words(html)


def test_the_owner_sees_real_days_beside_the_fakes(tmp_path):
    w = world()
    html = made(tmp_path, edition="owner", fakes=w["pool"], real=w["real"], classes=w["classes"])
    days = shown_days(html)
    rows = {tuple(np.unique(row, return_inverse=True)[1]) for row in w["real"].r}

    assert days["clock"][:2] == ["00:00", "01:00"]
    assert all(len(d["fake"]) == len(d["real"]) == INSTANTS for d in days["days"])
    assert all(tuple(np.unique(d["real"], return_inverse=True)[1]) in rows for d in days["days"])
    assert "Places by visits, real traces" in html
    assert CANARY not in html


def test_the_file_is_its_owners_alone_and_whole(tmp_path):
    made(tmp_path)

    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_what_is_absent_is_left_out_or_said(tmp_path):
    w = world()
    said = words(made(tmp_path, w["publishing"]))
    assert "Do not publish yet. No attack was run on these fakes" in said
    assert "Nothing about privacy: no condition is met" in said
    assert "Decoys" not in said
    assert "Places by visits" not in said

    flat = ew.Traces(w["fakes"].r, ew.Locations(n=PLACES))
    said = words(made(tmp_path, w["audit"], fakes=flat))
    assert "The places have no coordinates, so there is no map of them." in said
    assert "Days cannot be stepped through either." in said
    assert "Usefulness" not in said
    assert "No classes were given" in words(made(tmp_path, w["audit"], fakes=w["fakes"]))

    alone = ew.evaluate_publishing(w["real"].r, None, w["fakes"].r)
    said = words(made(tmp_path, alone))
    assert "No second real dataset was given" in said
    assert "It is not known which fake was made from which seed" in said
    assert "trips and radius are not measured" in said


def test_verdicts_that_the_row_does_not_show_are_explained(tmp_path):
    row = {"status": "run", "title": "t", "words": "w.", "main": 0.04, "interval": [0.02, 0.07], "bar": 0.1}
    audit = {
        "A5": {**row, "main": 0.29, "interval": [0.2, 0.4], "passed": False, "reachable": True},
        "A12": {**row, "main": 0.12, "interval": [0.03, 0.2], "passed": True},
        "A3": {**row, "main": 0.08, "interval": [0.0, 0.2], "passed": True},
        "A2": {**row, "interval": [0.0, 0.2], "passed": None, "reachable": False},
        "A4": {
            **row,
            "main": 0.2,
            "interval": [0.15, 0.3],
            "null_interval": [0, 0.12],
            "passed": False,
            "reachable": False,
        },
        "A1": {**row, "main": 0.0, "bar": 0.0, "interval": [0.0, 0.02], "passed": False, "reachable": False},
    }
    html = made(tmp_path, audit)
    found = re.findall(r"<li>(.*?)</li>", re.search(r'<ul class="words">(.*?)</ul>', html)[1])
    said = {re.search(r"<b>(\w+)</b>", item)[1]: item.split("w.", 1)[1] for item in found}

    assert said["A5"] == ""
    assert "above the bar, but not clearly above chance" in said["A12"]
    assert "The interval includes the figure of chance, or of strangers" in said["A3"]
    assert "too few people to say that it is below" in said["A2"]
    assert "exceed the bar too; this figure is clearly above theirs" in said["A4"]
    assert said["A1"] == ""
    assert "names the seed in 29.0 % (A5)" in html


def test_the_first_screen_says_what_for_and_whether_to_publish(tmp_path, whole):
    w = world()
    whole["run"] = {**w["run"], "reproducible": False}
    html = made(tmp_path, **whole)
    first = words(html).split("Shareable edition")[1]
    found = w["uses"].to_dict()
    n = [use["verdict"] for use in found.values() if isinstance(use, dict) and "verdict" in use]

    assert "40 people who do not exist, with one synthetic day each, to use in place of 40 real people" in first
    assert f"Good for {n.count('good') or 'none'} of 8 uses" in first
    assert found["places"]["figure"] + "; other real people: " + found["places"]["beside"] in first
    assert "O" + w["audit"].in_words()[1:] in first
    assert (
        first.index("What are they good for?") < first.index("Should they be published?") < first.index("Of 6 attacks")
    )
    # the table and the list say one word
    assert [html.count(f"{use['title']}</") >= 2 for use in found.values() if "title" in use] == [True] * 8


def test_nobody_wonders_who_passed_and_no_share_exceeds_the_whole(tmp_path, whole):
    for edition, more in (("shareable", {}), ("owner", {"real": world()["real"]})):
        said = words(made(tmp_path, edition=edition, **whole, **more))
        # fakes pass the tests of the generator; attacks learn something or nothing measurable
        rest = re.sub(r"passed all tests|because it passed the differential|How many fakes passed the rules", "", said)
        assert re.findall(r"\b(?:passed|failed|flagged)\b", rest, re.IGNORECASE) == []
        assert "learnt nothing measurable" in said
        assert [share for share in re.findall(r"(\d[\d,]*\.\d) %", said) if float(share.replace(",", "")) > 100] == []


def test_one_attack_shows_one_number(tmp_path):
    w = world()
    html = made(tmp_path, w["audit"])
    for name, f in w["audit"].to_dict().items():
        if f["status"] != "run" or QUESTIONS[name].unit != "share":
            continue
        row = re.search(rf"<tr><th[^>]*><div class=\"attack\"><b>{name}</b>.*?</tr>", html)[0]
        reached = re.findall(r"<b>([\d.<]+ %)</b>", row)
        assert reached == [percent(f["main"])]
        if name in ("A2", "A4"):
            assert reached[0] in f["words"]


@pytest.mark.parametrize(
    ("audit", "run", "level", "words"),
    [
        ({"A3": (False, 0.2)}, {}, "no", "who was in the data (A3)"),
        ({"A3": (True, 0.0), "A5": (False, 0.2)}, {}, "care", "the swapped places (A5)"),
        ({"A3": (True, 0.0)}, {}, "care", "Not run: copying (A1)"),
        (dict.fromkeys(WANTED, (True, 0.0)), {}, "yes", "no proof"),
        (dict.fromkeys(WANTED, (True, 0.0)) | {"A15": (False, 0.9)}, {}, "yes", "no proof"),
        (dict.fromkeys(WANTED, (True, 0.0)) | {"A4": (None, 0.1)}, {}, "care", "the times of moves (A4)"),
        (dict.fromkeys(WANTED, (True, 0.0)), {"reproducible": True}, "no", "random number"),
        ({}, {}, "no", "No attack was run"),
    ],
)
def test_advice_follows_what_was_learnt_about_people(audit, run, level, words):
    told = {
        name: {"status": "run", "passed": passed, "main": main, "bar": 0.01} for name, (passed, main) in audit.items()
    }
    said = advice(told, run)

    assert (said.level, words in said.because) == (level, True)


def test_the_headline_claims_no_more_than_the_table():
    """A figure above its bar is neither green nor "learnt nothing", though chance may reach as much (A1, A3, A12)."""
    nothing = {name: Finding(name, main=0.0, bar=0.01, passed=True) for name in WANTED}
    above = {
        "A1": Finding("A1", interval=Rate(0.09, 0.06, 0.13), control=0.25, bar=0.0, leaks=False),
        "A3": Finding("A3", interval=Rate(0.12, -0.04, 0.24), control=-0.1, bar=0.02, passed=True, leaks=False),
        "A12": Finding("A12", interval=Rate(0.12, 0.02, 0.22), control=0.09, baseline=0.09, bar=0.09, passed=True),
    }
    audit = {name: f.to_dict() for name, f in {**nothing, **above}.items()}

    for name, f in above.items():
        assert (f.learnt, f.outcome) == (None, "above its bar, not clearly above chance")
        assert outcome_sign(name, audit[name])[::2] == ("≈", "rough")
        assert outcome_sign(name, {**audit[name], "outcome": None}) == outcome_sign(name, audit[name])
    said = advice(audit, {})
    assert said[:2] == ("care", "3 attacks are above their bar, though not clearly above chance: publish with care")
    assert "Above the bar, but not clearly above chance: copying (A1), who was in the data (A3)" in said.because
    table = str(audit_table(audit, shareable=False))
    assert table.count("strangers reach as much or more") == 1
    assert table.count("not clearly above chance: there are too few people to decide") == 2
    below = Finding("A2", interval=Rate(0.0, 0.0, 0.014), control=0.05, baseline=0.01, bar=0.011)
    assert below.outcome == "cannot tell"
    unclear = {**{name: f.to_dict() for name, f in nothing.items()}, "A2": below.to_dict()}
    assert advice(unclear, {}).words == "For 1 of 9 attacks there are too few people to tell: publish with care"
    assert advice({name: f.to_dict() for name, f in nothing.items()}, {}).level == "yes"


def test_an_auc_is_above_guessing_only_with_its_interval():
    near, far = (
        Finding("A10", interval=Rate(0.55, low, 0.6), baseline=0.5, bar=0.5, passed=True, leaks=False)
        for low in (0.48, 0.52)
    )

    assert (near.above, near.learnt) == (False, False)
    assert (far.above, far.learnt) == (True, None)


def test_without_a_bar_no_outcome_is_red():
    """A19 is documented: the service learns much from the pool, and nothing says how much would be too much."""
    f = Finding("A19", interval=Rate(0.77, 0.7, 0.8), control=0.89, baseline=0.09, null=Rate(0.1, 0.0, 0.2)).to_dict()
    assert outcome_sign("A19", f) == ("•", "learnt something; there is no bar", "")
    assert outcome_sign("A3", {**f, "bar": 0.02, "passed": False})[0] == "✗"


def test_few_attacks_are_no_advice_unless_a_theorem_covers_everybody():
    audit = {"A3": {"status": "run", "passed": True, "main": 0.0, "bar": 0.01}}
    n = len(WANTED)
    assert advice(audit, {}).words == f"Cannot be advised: {n - 1} of {n} attacks on people were not run"
    proven = {"certificate": {"protects": "everybody", "eps": 4.0, "conditions": [("a map", "met")], "words": ["x"]}}
    assert advice(audit, proven).words == "A theorem covers everybody in the file: publish with care"
    broken = {"certificate": {**proven["certificate"], "conditions": [("a map", "not met")]}}
    for other in (broken, {"certificate": {**proven["certificate"], "protects": "seeds"}}):
        assert advice(audit, other).words.startswith("Cannot be advised")


def test_without_links_a_copied_day_is_no_shared_place():
    said = claims({"A1": {"status": "run", "how": "whole day", "main": 0.5, "passed": False}}, {})[0]
    assert (said.met, said.because) == (False, "A1 found that 50.0 % of the fakes are somebody's real day.")


def test_fakes_that_are_good_for_nothing_are_not_worth_publishing():
    audit = {name: {"status": "run", "passed": True, "main": 0.0, "bar": 0.01} for name in WANTED}
    bad = {"a": {"verdict": "not for this"}, "b": {"verdict": "cannot say"}, "sizes": {"people": 9}}
    assert advice(audit, {}, bad)[:2] == ("no", "Publishing makes little sense")
    for other in ("good", "rough"):
        assert advice(audit, {}, {**bad, "b": {"verdict": other}}).level == "yes"
    assert advice(audit, {}, {"b": {"verdict": "cannot say"}}).level == "yes"
    # what speaks against publishing on account of people is said first
    assert advice({"A3": {"status": "run", "passed": False, "main": 0.2}}, {}, bad).words == "Do not publish openly"


def test_several_audits_stand_side_by_side(tmp_path):
    w = world()
    said = words(made(tmp_path, {"ours": w["audit"], "theirs": w["audit"]}))

    assert "The audits side by side" in said
    assert "These sentences rest on one audit of the 2 above: ours." in said
    assert "side by side" not in words(made(tmp_path, w["audit"]))


def test_a_large_map_stays_a_small_file(tmp_path):
    rng = np.random.default_rng(3)
    places = ew.Locations(lat=rng.normal(46.5, 0.1, 30_000), lon=rng.normal(6.6, 0.1, 30_000))
    fakes = ew.Traces(rng.integers(30_000, size=(2000, 72)), places)
    html = made(tmp_path, fakes=fakes, classes=ew.SemanticClasses(rng.integers(0, 40, 30_000)))

    assert len(html) < 2_000_000
    assert "less visited ones are not drawn" in html


def test_few_people_are_not_shown_one_by_one(tmp_path):
    w = world()
    few = ew.evaluate_publishing(w["real"].r[:3], None, w["fakes"].r[:3], seed_index=[0, 1, 2])

    assert "would show single people" in words(made(tmp_path, few))
    assert "would show single people" not in words(made(tmp_path, few, edition="owner"))
    # days of one person are one person
    days = ew.Traces(w["real"].r[:8], w["real"].locations, users=["a", "b"] * 4, step_minutes=60)
    assert "would show single people" in words(made(tmp_path, ew.evaluate_publishing(days, None, w["fakes"])))
    some = ew.evaluate_publishing(w["real"], days, w["fakes"])
    assert "would show single people" in words(made(tmp_path, some))
    decoys = {"uniform": uniform_iid(PLACES, INSTANTS)}
    for n, shown in ((4, False), (5, True)):
        people = w["real"].select(np.arange(n))
        lbs = ew.evaluate_lbs(w["real"], people, decoys, n_fakes=(1,), repeats=(1, 1), rng=np.random.default_rng(1))
        assert ("places sent" in words(made(tmp_path, lbs)).lower()) is shown
        assert "places sent" in words(made(tmp_path, lbs, edition="owner")).lower()
    assert "Worst tenth" not in made(tmp_path, w["audit"]).split("</thead>")[0]
    assert "Worst tenth" in made(tmp_path, w["audit"], edition="owner").split("</thead>")[0]


def test_the_certificate_stands_in_the_report_with_its_conditions(tmp_path):
    told = Certificate("everybody", eps=0.5, conditions=[("the map is given", "asserted"), ("noise", "met")]).to_dict()
    for edition in ("shareable", "owner"):
        shown = words(made(tmp_path, run={"preset": "private", "certificate": told}, edition=edition))
        assert "factor of 1.65" in shown
        assert "the map is given: asserted" in shown
        assert "noise: met" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"results": 7}, "`results` must be a `PublishingResult`.* got int"),
        ({"results": []}, "nothing of that kind"),
        ({"results": {"a": {"b": {"c": {"d": 1}}}}}, "`results` must be"),
        ({"results": "report"}, "got str"),
        ({"edition": "public"}, '`edition` must be one of "owner", "shareable"'),
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


class TestClaims:
    CLEAN = {"A1": {"status": "run", "own_seed_zero": True, "main": 0.0, "passed": True}}
    SURE = Certificate("everybody", eps=0.5, conditions=[("noise", "met")]).to_dict()
    A9 = {"status": "run", "passed": True, "bar": 0.5, "main": 0.4}

    def met(self, audit, run):
        return [c.met for c in claims(audit, run)]

    def test_without_an_audit_nothing(self):
        assert self.met(None, {"parameters": {"par_i": 0, "intersection": "set"}}) == [False] * 3

    def test_no_shared_place_needs_both_the_count_and_the_rule(self):
        dirty = {"A1": {**self.CLEAN["A1"], "own_seed_zero": False, "main": 0.01}}

        assert self.met(self.CLEAN, {"parameters": {"par_i": 0, "intersection": "set"}})[0]
        assert not self.met(self.CLEAN, {"parameters": {"par_i": 1, "intersection": "set"}})[0]
        assert not self.met(self.CLEAN, {"parameters": {"par_i": 0, "intersection": "set"}, "preset": "private"})[0]
        assert not self.met(self.CLEAN, {})[0]
        assert not self.met(dirty, {"parameters": {"par_i": 0, "intersection": "set"}})[0]
        assert not self.met({"A1": {"status": "not run"}}, {"parameters": {"par_i": 0, "intersection": "set"}})[0]

    def test_the_certificate_needs_its_conditions_and_the_audit(self):
        run = {"preset": "private", "certificate": self.SURE}
        said = claims({"A9": self.A9}, run)[1]

        assert said.met
        assert "factor of 1.65" in said.sentence
        for wrong in ({"passed": None}, {"bar": 0.7}):
            assert not self.met({"A9": {**self.A9, **wrong}}, run)[1]
        failed = Certificate("everybody", eps=0.5, conditions=[("noise", "not met")])
        lost = claims({"A9": self.A9}, {"certificate": failed.to_dict()})[1]
        assert not lost.met
        assert "noise" in lost.because
        for nobody in (Certificate.none(), Certificate("everybody", eps=0.5).in_laboratory()):
            assert not self.met({"A9": self.A9}, {"certificate": nobody.to_dict()})[1]
        loud = Certificate("everybody", eps=12.0).to_dict()
        assert "promises nothing" in claims({"A9": {**self.A9, "bar": 12.0}}, {"certificate": loud})[1].because

    def test_an_eps_below_the_claim_is_a_promise_kept(self):
        kept = audit_table({"A9": {**self.A9, "words": "proves eps >= 0.4"}}, shareable=False)
        broken = audit_table({"A9": {**self.A9, "passed": False, "main": 0.9}}, shareable=False)

        assert "✓ the promise held" in kept
        assert "≥ 0.40 ε" in kept
        assert "learnt nothing" not in kept
        assert "✗ the promise is broken" in broken

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


class TestAdvice:
    FOUND = {name: {"status": "run", "passed": False, "main": 0.2} for name in ("A1", "A7", "A10")}

    def test_names_every_attack_that_learnt_something(self):
        assert all(f"({name})" in advice(self.FOUND, {}).because for name in self.FOUND)

    @pytest.mark.parametrize(
        ("run", "way"),
        [
            ({"preset": "product", "presets_with_a_theorem": []}, None),
            ({"preset": "product", "presets_with_a_theorem": ["private"]}, "with --preset private and"),
            ({"preset": "private", "presets_with_a_theorem": ["private"]}, "with a smaller --eps and"),
            ({}, "`elsewhere plan`"),
        ],
    )
    def test_offers_only_what_these_people_are_enough_for(self, run, way):
        because = advice(self.FOUND, run).because

        assert ("make others" in because) == (way is not None)
        assert way is None or way in because

    def test_tells_to_read_only_what_was_found(self):
        held = {"A9": TestClaims.A9}
        sure = Certificate("everybody", eps=0.5, delta=1e-6).to_dict()

        because = advice(held, {"preset": "private", "certificate": sure}).because
        assert "Read what" not in because
        assert "what the attacks that were not run need" in because
        unclear = {name: {"status": "run", "passed": None, "main": 0.2} for name in WANTED}
        assert advice(unclear, {}).because.endswith("Read what these attacks found before you publish.")


def test_bars_are_as_long_as_their_values():
    html = bars([Bar("a", 1.0), Bar("b", 0.25), Bar("c", None)], unit="share", title="Shares", top=1)
    wide = [float(w) for w in re.findall(r'<rect[^>]*? width="([\d.]+)"', html)]

    assert wide == [296.0, 74.0]
    assert "not measured" in html


def test_points_are_where_their_values_are():
    html = plot([Series("s", [0, 5, 10], [0, 0.5, 1])], x="km", y="share", title="t", y_range=(0, 1))
    at = [tuple(map(float, p)) for p in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', html)]

    assert at[1] == pytest.approx(((at[0][0] + at[2][0]) / 2, (at[0][1] + at[2][1]) / 2), abs=0.1)
    assert at[0][1] > at[2][1]
    assert ticks(0, 0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(float("nan"), 3)[0] == 0


def test_a_calendar_has_a_square_per_day():
    days = {"2013-03-27": 3, "2013-04-02": 1, "2014-01-05": 2}
    html = calendar(days, unit="users", title="Days")
    titles = re.findall(r"<title>([^<]*)</title>", html)

    assert len(titles) == 285  # 27 March to 5 January, both included
    assert [t for t in titles if not t.endswith("none")] == [f"{d}: {n} users" for d, n in days.items()]
    assert "no day is recorded" in calendar({}, unit="users", title="Days")


@pytest.mark.parametrize("first", ["2013-03-27", "2013-01-29", "2012-12-31", "2013-12-29", "2013-02-11"])
@pytest.mark.parametrize("number", [3, 9, 40, 200, 400])
def test_names_of_months_do_not_overlap(first, number):
    dates = np.datetime64(first) + np.arange(number)
    html = calendar({str(d): 1 for d in dates}, unit="users", title="Days")
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>(\d{4}-[^<]*)</text>', html)
    at = {}
    for x, y, name in found:
        at.setdefault(y, []).append((float(x), name))

    # a letter is 6.6 wide (chromium, the page's font), the picture 360
    for line in at.values():
        ends = [x + 6.6 * len(name) for x, name in line]
        assert all(end < x for end, (x, _) in zip(ends, line[1:], strict=False)), line
        assert max(ends) <= 362, line
    named = {month for line in at.values() for _, name in line for month in (name[5:7], name[-2:])}
    assert named >= {str(d)[5:7] for d in dates[14:-21]}


def test_a_page_without_a_script_allows_none():
    html = page("Preparation", [section("A <b>", "x"), section("B", "y")])

    assert "script-src 'none'" in read(html).tags[3][1]["content"]
    assert "<script" not in html
    assert 'href="#a-b"' in html


def test_many_notes_are_shown_in_both_editions():
    from elsewhere.reports.page import making

    run = {"notes": [f"note {i}." for i in range(30)]}
    assert "note 29." in making(run, shareable=True)
    assert "note 29." in making(run, shareable=False)
