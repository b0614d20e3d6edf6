"""
Documentation is executed, so it cannot lie.

Docstring examples, README and tutorial run; names, files, tests and numbers that pages cite exist; pages that follow
from the code are up to date; the site builds without a warning.
"""

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import math
import os
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

import pytest

import elsewhere as ew
from elsewhere.evaluation.attacks.audit import ALL
from elsewhere.privacy.certificate import VACUOUS, odds_factor
from elsewhere.privacy.private.sums import eps_of, gaussian_mu

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PAPER = (ROOT / "docs" / "paper.md").read_text()
PAGES = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
MODULES = [
    m.name for m in pkgutil.walk_packages(ew.__path__, "elsewhere.") if not m.name.endswith(("__main__", "_kernels"))
]

WRITTEN = runpy.run_path(str(ROOT / "bench" / "write_docs.py"), run_name="write_docs")  # what the reference names


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_run(module):
    failed, _ = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)

    assert failed == 0


@pytest.mark.parametrize("name", WRITTEN["NAMES"])
def test_every_public_function_has_an_example(name):
    thing = WRITTEN["NAMES"][name]

    assert not inspect.isfunction(thing) or ">>> " in inspect.getdoc(thing)


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_readme_library_example_runs_and_prints_what_it_says():
    _, example = blocks("python")  # the other one asks a service: tests/test_serve.py
    said, promised = io.StringIO(), re.findall(r"# -> (.*)", example)
    with contextlib.redirect_stdout(said):
        exec(compile(example, "README.md", "exec"), {})  # noqa: S102

    assert len(example.splitlines()) <= 12
    assert promised
    assert said.getvalue().splitlines() == promised


def test_readme_commands_exist():
    from elsewhere.cli import COMMANDS

    lines = re.sub(r"#.*", "", "\n".join(blocks("sh")))
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = {command.__name__ for command in COMMANDS}

    assert re.findall(r"\bmake (\w+)", lines)
    assert [target for target in re.findall(r"\bmake (\w+)", lines) if target not in targets] == []
    assert [word for word in re.findall(r"\belsewhere (\w+)", lines) if word not in commands] == []


def faults(paths, rule):
    """File -> what a rule finds in it."""
    return {path.relative_to(ROOT).as_posix(): found for path in paths if (found := rule(path))}


def test_links_lead_somewhere():
    def astray(page):
        links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text())]
        return [link for link in links if not link.startswith("http") and not (page.parent / link).exists()]

    assert faults(PAGES, astray) == {}


def test_nothing_is_claimed_that_may_not_be_said():
    # F50; the page on attacks has a section "What may be said"
    claim = re.compile(r"anonymous|anonymi[sz]e|indistinguishable|does not leak", re.IGNORECASE)

    assert faults([*PAGES, *sorted((ROOT / "src").rglob("*.py"))], lambda path: claim.findall(path.read_text())) == {}


@cache
def ids_in(file):
    """Return the ids of the tests of a file, as pytest wants them: with their class where they have one."""
    tree = ast.parse((ROOT / file).read_text())
    groups = [("", tree.body)] + [(f"{node.name}::", node.body) for node in tree.body if isinstance(node, ast.ClassDef)]
    named = {group + node.name for group, body in groups for node in body if isinstance(node, ast.FunctionDef)}
    return {name for name in named if name.split("::")[-1].startswith("test_")}


ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAPER.splitlines()
    if line.startswith("|") and "`src/" in line
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1].strip("`"))
def test_paper_map_names_what_exists(row):
    _, name, file, test = (cell.strip("`") for cell in row)
    thing = importlib.import_module(file.removeprefix("src/").removesuffix(".py").replace("/", "."))
    for part in name.split("."):
        thing = getattr(thing, part) if hasattr(thing, part) else thing.__dataclass_fields__[part]
    test_file, test_name = test.split("::", 1)

    assert (ROOT / file).is_file()
    assert test_name in ids_in(test_file)


def test_paper_map_leaves_no_name_of_the_paper_out():
    mapped = {row[1].strip("`").split(".")[0] for row in ROWS}

    assert sorted({name for name, home in ew._HOME.items() if home.startswith("paper.")} - mapped) == []


LABELS = """
def:ds1 eq:as1 eq:ds1 eq:ds1ex eq:emdprob eq:hdk eq:hdkp eq:hs0 eq:hs1 eq:p_and_pi fig:alg fig:dataset
fig:deltas-fakeset2 fig:fake-fake-semantic-similarity-qq fig:locationprivacy fig:procedure
fig:real-fake-semantic-similarity fig:real-gs-similarity fig:semantic-clusters fig:visited-locs sec:alg-disc
sec:eval-metrics sec:privacy-test sec:sampling tbl:timealloc-kl tbl:vistprob-kl tbl:vistprob-kl-50mp
"""


def test_every_equation_table_and_figure_of_the_paper_is_found():
    assert [label for label in LABELS.split() if f"`{label}`" not in PAPER] == []


# --- every number that is cited stands in one of three pages, under an anchor of its own

KEYS = {"E": "readings", "A": "attacks", **dict.fromkeys("BCFRS", "reliability")}
CITED = re.compile(r"\b([ABCEFRS])([1-9]\d?)\b(?:-\1?([1-9]\d?)\b)?")
SOURCES = [path for folder in ("src", "tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))]
NO_CITATION = {"A99"}  # an attack that tests ask for because it does not exist


def anchors(page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    return set(re.findall(r"^### ([A-Z]\d+)$", text, re.MULTILINE)) | {
        name.upper() for name in re.findall(r'<a id="([a-z]\d+)"></a>', text)
    }


def cited(text):
    numbers = set()
    for letter, low, high in CITED.findall(text):
        numbers |= {f"{letter}{n}" for n in range(int(low), int(high or low) + 1)}
    return numbers


@cache
def prose(path):
    """What a reader reads: of a program its comments, docstrings and messages."""
    if path.suffix != ".py":
        return path.read_text()
    wanted = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    with tokenize.open(path) as file:
        return "\n".join(token.string for token in tokenize.generate_tokens(file.readline) if token.type in wanted)


def test_citations_are_found_in_text():
    assert cited("(E12, B45-B47) and A1-3; not E_PARAM, A9x or R") == {"E12", "B45", "B46", "B47", "A1", "A2", "A3"}


def test_every_number_that_is_cited_resolves():
    known = {number for page in set(KEYS.values()) for number in anchors(page) if KEYS[number[0]] == page}
    unknown = faults([*PAGES, *SOURCES], lambda path: cited(prose(path)) - known - NO_CITATION)

    assert unknown == {}, "give it an entry in docs/readings.md, attacks.md or reliability.md"


def test_no_document_is_cited_that_the_repository_does_not_have():
    absent = re.compile(r"\b(?:[R]EADINGS|[R]ELIABILITY|[C]ERTIFICATE|[D]ESIGN)\b")

    assert faults([*PAGES, *SOURCES], lambda path: absent.findall(prose(path))) == {}


def test_readings_and_attacks_are_complete():
    assert anchors("readings") >= {f"E{n}" for n in range(1, 75)}
    assert anchors("attacks") == set(ALL)


def named_tests(text):
    return re.findall(r"`(tests/\w+\.py)::([\w:]+)`", text)


@pytest.mark.parametrize("number", [*range(1, 75), 90, 91])
def test_every_reading_names_a_test_that_exists(number):
    text = (ROOT / "docs" / "readings.md").read_text()
    (entry,) = re.findall(rf'^\| <a id="e{number}"></a>E{number} \| (.*)$', text, re.MULTILINE)
    named = named_tests(entry)

    assert named or "No test:" in entry
    assert [name for file, name in named if name not in ids_in(file)] == []


# --- pages that follow from the code


@pytest.mark.parametrize("name", WRITTEN["PAGES"])
def test_written_pages_are_up_to_date(name):
    assert (ROOT / "docs" / name).read_text() == WRITTEN["PAGES"][name](), "run `make docs`"


def test_every_decision_begins_in_short():
    late = [
        path.name
        for path in sorted((ROOT / "docs" / "decisions").glob("0*.md"))
        if not re.match(r"# \d+\. .*\n\nIn short: ", path.read_text())
    ]

    assert late == []


def test_architecture_names_every_room():
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {path.stem for path in (ROOT / "src" / "elsewhere").iterdir() if path.suffix == ".py" or path.is_dir()}

    assert sorted(room for room in rooms if room[0] != "_" and f"`{room}`" not in text) == []


def test_recipes_name_what_exists():
    recipes = (ROOT / "CONTRIBUTING.md").read_text().split("## Add a reader format")[1]
    code = "\n".join(path.read_text() for path in SOURCES)
    files = [path.relative_to(ROOT).as_posix() for path in SOURCES]
    named = set(re.findall(r"`([\w./]+)`", recipes)) - {"user", "time", "lat", "lon", "bench/"}
    paths = {name for name in named if name.endswith((".py", "/"))}

    assert len(named) > 30
    assert [name for name in paths if not any(f"/{name}" in f"/{file}" for file in files)] == []
    assert [name for name in named - paths if not re.search(rf"\b{re.escape(name)}\b", code)] == []


def test_glossary_defines_every_term_once():
    rows = re.findall(r'^\| <a id="([\w-]+)"></a>(.*?) \|', (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)

    assert len(rows) > 40
    assert len({anchor for anchor, _ in rows}) == len({term for _, term in rows}) == len(rows)


# --- the results open with what their second table says

RESULTS = (ROOT / "docs" / "results.md").read_text()


def figures(number):
    """A table of figures as {column: {measure: figure}}."""
    block = [part for part in RESULTS.split("\n\n") if part.startswith("| measure | goal |")][number]
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
    return {
        column: {row[0]: None if row[i] == "-" else float(row[i].strip("*")) for row in rows}
        for i, column in enumerate(head)
        if i >= 2
    }


def test_results_open_with_six_questions_and_a_paragraph():
    opening = runpy.run_path(str(ROOT / "bench" / "results.py"), run_name="results")["opening"]

    assert RESULTS.startswith("# Results\n\n" + "\n".join(opening(figures(0), figures(1))) + "\n\n")
    assert RESULTS.split("\n\n")[1].count("\n") == 7  # names, a line, six rows


# --- the tutorial, from its first line to its last


@pytest.mark.filterwarnings("ignore:.* classes instead of")
def test_tutorial_runs_and_prints_what_it_says(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tutorial, names = (ROOT / "docs" / "tutorial.md").read_text(), {}
    parts = re.findall(r"^```(sh|python)\n(.*?)^```", tutorial, re.MULTILINE | re.DOTALL)
    for language, block in parts:
        if language == "sh":
            for line in block.splitlines():
                program, *words = shlex.split(line, comments=True)
                assert program == "elsewhere"
                assert run(*words)[0] == 0, line
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(block, "tutorial.md", "exec"), names)  # noqa: S102
        assert said.getvalue().splitlines() == re.findall(r"# -> (.*)", block)

    assert {language for language, _ in parts} == {"sh", "python"}
    assert "prepare.html" in {file.name for file in (tmp_path / "prepared").iterdir()}


# --- the site


def test_the_site_builds_without_a_warning_and_without_the_network(tmp_path):
    pytest.importorskip("material", reason="needs elsewhere[docs]")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # a word on the future of mkdocs, not on these pages
    done = subprocess.run(build, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    pages = {path.relative_to(tmp_path / "site").as_posix(): path.read_text() for path in tmp_path.rglob("*.html")}
    fetched = re.compile(r"<(?:script|img|link)[^>]+(?:src|href)=\"(?:https?:)?//([^/\"]+)")

    assert (done.returncode, re.findall(r"^(?:WARNING|ERROR).*", done.stderr, re.MULTILINE)) == (0, [])
    assert {"index.html", "tutorial.html", "decisions/index.html", "contributing.html"} <= set(pages)
    assert [host for text in pages.values() for host in fetched.findall(text)] == []


# --- the promise: every figure is what the code computes

PROMISE = (ROOT / "docs" / "promise.md").read_text()
EXAMPLES = dict(re.findall(r"^\*\*([\d,]+) people\.\*\* (.*?)(?=^\*\*|\Z)", PROMISE, re.MULTILINE | re.DOTALL))


def sure(eps):
    """How sure one is at most who held it as likely as not."""
    return f"{1 / (1 + math.exp(-eps)):.0%}".replace("%", " %")


def test_promise_says_what_the_defaults_prove():
    _, _, deniable, private = (each.certificate for each in ew.plan(300))
    (bounds,) = [line for line in PROMISE.splitlines() if line.startswith("| **how much**")]

    for certificate in (deniable, private):
        assert f"{odds_factor(certificate.eps)} at the default" in bounds
        assert f"AUC of any attack at most {certificate.auc:.3f}".replace("0.", ".") in bounds
    told = [f"{sure(0.5)} sure at eps .5", *(f"{sure(eps)} at {eps}" for eps in (1, 2, 4))]
    assert f"at most {', '.join(told)}." in PROMISE
    assert f"eps above {VACUOUS:g} no promise" in PROMISE


def test_promise_300_people():
    _, _, deniable, private = ew.plan(300)
    told = EXAMPLES["300"]

    assert not private.enough
    assert f"needs {private.people_needed} people" in told
    assert "with 300 it runs from eps = 8.9" in told
    assert "With 300 people it runs from eps = 8.9." in private.useful
    assert 1000 < math.exp(8.9) < 10_000  # some thousands
    assert deniable.enough
    assert deniable.useful.split(". A fake")[0] in told
    assert deniable.certificate.words[0].lower().rstrip(".") in told.lower()


@pytest.mark.parametrize(("people", "given"), [(10_000, {"eps": 2.0}), (1_000_000, {"eps": 0.5, "delta": 1e-8})])
def test_promise_of_many_people(people, given):
    private = ew.plan(people, **given)[3]
    told, certificate = EXAMPLES[f"{people:,}"], private.certificate
    (good,) = re.findall(r"([\d,]+) people (?:would bring|are enough)", private.useful)

    assert private.enough
    assert f"runs from {private.people_needed:,} people on" in told
    assert f"{good} people" in told
    assert f"AUC of any attack at most {certificate.auc:.3f}, advantage at most {certificate.advantage:.3f}" in told
    assert (
        told.count(f"a factor of {odds_factor(certificate.eps)}, except with probability {certificate.delta:.2g}") == 1
    )
    assert told.rstrip().splitlines()[-1].startswith("> Whoever you are: ")


def test_promise_counts_two_ids_and_releases_as_the_accounting_does():
    mu = gaussian_mu(4.0, 1e-6)
    private = (ROOT / "docs" / "private.md").read_text()

    for page in (PROMISE, private):
        assert f"{eps_of(2 * mu, 1e-6):.1f} in place of 4" in page
    assert f"two at eps 4 are one at eps {eps_of(math.sqrt(2) * mu, 1e-6):.1f}" in private


def test_promise_is_one_page():
    assert len(PROMISE.split()) < 950


# --- what a theorem costs: the page and the picture follow from the table

CERTIFICATE = runpy.run_path(str(ROOT / "bench" / "certificate.py"), run_name="certificate")


def test_the_page_of_costs_follows_from_its_table():
    assert (ROOT / "docs" / "certificate.md").read_text() == CERTIFICATE["page"](), "python bench/certificate.py write"
    picture = (ROOT / "docs" / "people-eps.svg").read_text()
    table = CERTIFICATE["Table"]()

    assert len(picture) < 60_000
    for town in CERTIFICATE["TOWNS"]:
        assert table.value(town, "private", "2", "TP-TV") is None or f">{int(town):,}<" in picture
    for name in (">500 real people<", ">no noise<", ">eps 1<", ">eps 2<", ">eps 4<", ">eps 8<"):
        assert name in picture


def test_no_file_has_marks_of_a_merge():
    text = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py"), *ROOT.glob("tests/*.py")]
    marked = [path.name for path in text if re.search(r"^(<{7}|>{7}) ", path.read_text(), re.MULTILINE)]

    assert marked == []
