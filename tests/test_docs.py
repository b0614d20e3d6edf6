"""
Documentation is executed, so it cannot lie.

Examples of docstrings and pages run; names, links, tests and numbers that pages cite exist; figures of the promise are
those that the code computes; the site builds without a warning.
"""

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import math
import os
import re
import runpy
import shlex
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import typer.main

import elsewhere as ew
from elsewhere.cli import app
from elsewhere.evaluation.audit import ALL
from elsewhere.synthesis.certificate import VACUOUS, eps_of, gaussian_mu

ROOT = Path(__file__).resolve().parents[1]
DOCS = {path.stem: path for path in sorted((ROOT / "docs").glob("*.md"))}
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")), *DOCS.values()]
SOURCES = [path for folder in ("src", "tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))]
TEXT = {path: path.read_text() for path in [*PAGES, *SOURCES]}
PUBLIC = set(ew.__all__) - {"__version__", "errors"}
MODULES = [
    path.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in SOURCES
    if path.is_relative_to(ROOT / "src") and ">>> " in path.read_text()
]


def program(name):
    return runpy.run_path(str(ROOT / "bench" / f"{name}.py"), run_name=name)


def faults(paths, rule):
    """File -> what a rule finds in it."""
    return {path.relative_to(ROOT).as_posix(): found for path in paths if (found := rule(path))}


def test_pages_are_short():
    assert len(TEXT[PAGES[0]].split()) <= 900
    assert sum(len(TEXT[path].split()) for path in DOCS.values()) <= 25_000


# --- examples


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_run(module):
    failed, _ = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)

    assert failed == 0


REFERENCE = program("write_docs")


@pytest.mark.parametrize("name", REFERENCE["NAMES"])
def test_every_public_function_has_an_example(name):
    thing = REFERENCE["NAMES"][name]

    assert not inspect.isfunction(thing) or ">>> " in inspect.getdoc(thing)


# a block of code, and the comment above it where another test runs it or nobody does
BLOCK = re.compile(r"(?:^ *<!-- (.*?) -->\n)?^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return BLOCK.findall(TEXT[page])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_runs_or_says_why_not(page):
    assert TEXT[page].count("```") == 2 * len(blocks(page))
    for comment, language, _ in blocks(page):
        assert language in ("python", "sh", "text")
        if comment:
            assert language != "text"
            assert re.match(r"not run: \w+|run by tests/\w+\.py", comment)
        for test in re.findall(r"tests/\w+\.py", comment):
            assert (ROOT / test).is_file()
            assert comment.startswith("not run") or page.name in TEXT[ROOT / test]


RUN = {page: [(kind, code) for comment, kind, code in blocks(page) if not comment and kind != "text"] for page in PAGES}


@pytest.mark.filterwarnings("ignore:places that a single person visits")
@pytest.mark.parametrize("page", [page for page, found in RUN.items() if found], ids=lambda page: page.name)
def test_examples_run_and_print_what_they_say(page, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    town = ew.simulate_town(users=60, days=2, locations=40, rng=np.random.default_rng(7))
    ew.write_visits(town.visits, "traces.csv")  # the reader's own file
    names = {}
    for language, code in RUN[page]:
        if language == "sh":
            for line in code.splitlines():
                first, *words = shlex.split(line, comments=True)
                assert first == "elsewhere"
                assert run(*words)[0] == 0, line
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, page.name, "exec"), names)  # noqa: S102
        assert said.getvalue().splitlines() == re.findall(r"# -> (.*)", code)


def test_readme_and_tutorial_are_run():
    assert {language for language, _ in RUN[PAGES[0]]} == {language for language, _ in RUN[DOCS["tutorial"]]}
    assert {language for language, _ in RUN[PAGES[0]]} == {"sh", "python"}


# --- what pages name


def test_links_lead_somewhere():
    def astray(page):
        links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", TEXT[page])]
        return [link for link in links if not link.startswith("http") and not (page.parent / link).exists()]

    assert faults(PAGES, astray) == {}


def test_make_has_every_target_that_pages_name():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)

    def unknown(page):
        code = "\n".join([*re.findall(r"`make [^`]*`", TEXT[page]), *(code for _, _, code in blocks(page))])
        return set(re.findall(r"(?:^|`)make ([a-z-]+)", code, re.MULTILINE)) - set(targets)

    assert faults(PAGES, unknown) == {}


OF_DASK = {"--tls-ca-file", "--tls-cert", "--tls-key", "--local-directory", "--memory-limit"}


def test_commands_and_options_that_pages_name_exist():
    commands = typer.main.get_command(app).commands
    options = {opt for c in commands.values() for param in c.params for opt in (*param.opts, *param.secondary_opts)}

    def unknown(page):
        text = TEXT[page].split("## What is no longer offered")[0]
        lines = [line for line in re.findall(r"^(?:.*`)?(elsewhere [^`\n]*)", text, re.MULTILINE) if "dask" not in line]
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join([*lines, *re.findall(r"`(--[^`]*)`", text)])))
        words = {words[1] for line in lines if len(words := line.split()) > 1 and re.fullmatch("[a-z]+", words[1])}
        return sorted(named - options - OF_DASK - {"--help", "--version"}) + sorted(words - commands.keys())

    assert faults([page for page in PAGES if page.name != "CHANGELOG.md"], unknown) == {}


def test_nothing_is_claimed_that_may_not_be_said():
    # F50; the page on attacks has a section "What may be said"
    claim = re.compile(r"anonymous|anonymi[sz]e|indistinguishable|does not leak", re.IGNORECASE)
    code = [path for path in SOURCES if path.is_relative_to(ROOT / "src")]

    assert faults([*PAGES, *code], lambda path: claim.findall(TEXT[path])) == {}


@cache
def ids_in(file):
    """Return the ids of the tests of a file, as pytest wants them: with their class where they have one."""
    tree = ast.parse((ROOT / file).read_text())
    groups = [("", tree.body)] + [(f"{node.name}::", node.body) for node in tree.body if isinstance(node, ast.ClassDef)]
    named = {group + node.name for group, body in groups for node in body if isinstance(node, ast.FunctionDef)}
    return {name for name in named if name.split("::")[-1].startswith("test_")}


PAPER = TEXT[DOCS["paper"]]
ROWS = re.findall(r"^\| .* \| `([\w.]+)` \| `(src/[\w/]+\.py)` \| `(tests/\w+\.py)::([\w:]+)` \|$", PAPER, re.MULTILINE)


@pytest.mark.parametrize(("name", "file", "tests", "test"), ROWS, ids=[row[0] for row in ROWS])
def test_paper_map_names_what_exists(name, file, tests, test):
    thing = importlib.import_module(file.removeprefix("src/").removesuffix(".py").replace("/", "."))
    for part in name.split("."):
        thing = getattr(thing, part)

    assert test in ids_in(tests)


def test_paper_map_leaves_no_name_of_the_paper_out():
    of_the_paper = {name for name in PUBLIC if getattr(ew, name).__module__.startswith("elsewhere.paper.")}

    assert len(ROWS) > 30
    assert sorted(of_the_paper - {name for name, *_ in ROWS}) == []


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
NO_CITATION = {"A99"}  # an attack that tests ask for because it does not exist


def anchors(page):
    text = TEXT[DOCS[page]]
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
        return TEXT[path]
    wanted = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    with tokenize.open(path) as file:
        return "\n".join(token.string for token in tokenize.generate_tokens(file.readline) if token.type in wanted)


def test_every_number_that_is_cited_resolves():
    known = {number for page in set(KEYS.values()) for number in anchors(page) if KEYS[number[0]] == page}
    unknown = faults([*PAGES, *SOURCES], lambda path: cited(prose(path)) - known - NO_CITATION)

    assert unknown == {}, "give it an entry in docs/readings.md, attacks.md or reliability.md"


def test_no_document_is_cited_that_the_repository_does_not_have():
    absent = re.compile(r"\b(?:[R]EADINGS|[R]ELIABILITY|[C]ERTIFICATE|[D]ESIGN|[G]ENERATOR)\b|\b[d]ecisions? \d+")

    def missing(path):
        files = re.findall(r"\bdocs/[\w/-]+\.\w+", prose(path))
        return [*absent.findall(prose(path)), *(name for name in files if not (ROOT / name).exists())]

    assert faults([*PAGES, *SOURCES], missing) == {}


READINGS = dict(re.findall(r'^\| <a id="e(\d+)"></a>E\1 \| (.*) \|$', TEXT[DOCS["readings"]], re.MULTILINE))


def test_readings_and_attacks_are_complete():
    assert READINGS.keys() >= {str(n) for n in range(1, 80)}
    assert set(ALL) <= anchors("attacks")


@pytest.mark.parametrize("number", READINGS)
def test_every_reading_names_a_test_that_exists(number):
    named = re.findall(r"`(tests/\w+\.py)::([\w:]+)`", READINGS[number])

    assert named or "No test:" in READINGS[number]
    assert [name for file, name in named if name not in ids_in(file)] == []


def test_architecture_names_every_room():
    text = TEXT[DOCS["architecture"]]
    rooms = {path.relative_to(ROOT / "src" / "elsewhere").parts[0] for path in SOURCES if "src" in path.parts}
    rooms = {room.removesuffix(".py") for room in rooms}

    assert sorted(room for room in rooms if room[0] != "_" and f"`{room}`" not in text) == []


def test_recipes_name_what_exists():
    recipes = TEXT[ROOT / "CONTRIBUTING.md"].split("## Add a format")[1]
    code = "\n".join(TEXT[path] for path in SOURCES)
    files = [path.relative_to(ROOT).as_posix() for path in SOURCES]
    named = set(re.findall(r"`([\w./]+)`", recipes))
    paths = {name for name in named if name.endswith((".py", "/"))}

    assert len(named) > 25
    assert [name for name in paths if not any(f"/{name}" in f"/{file}" for file in files)] == []
    assert [name for name in named - paths if not re.search(rf"\b{re.escape(name)}\b", code)] == []


def test_glossary_defines_every_term_once():
    rows = re.findall(r'^\| <a id="([\w-]+)"></a>(.*?) \|', TEXT[DOCS["glossary"]], re.MULTILINE)

    assert len(rows) > 30
    assert len({anchor for anchor, _ in rows}) == len({term for _, term in rows}) == len(rows)


def test_no_file_has_marks_of_a_merge():
    assert faults(TEXT, lambda path: re.findall(r"^(?:<{7}|>{7}) ", TEXT[path], re.MULTILINE)) == {}


# --- the promise: every figure is what the code computes

README = TEXT[PAGES[0]]
PROMISE = " ".join(TEXT[DOCS["promise"]].split())
EXAMPLES = dict(re.findall(r"\*\*([\d,]+) people\.\*\* (.*?)(?=\*\*[\d,]+ people\.|##)", PROMISE))
CERTIFICATE = program("certificate")


def sure(eps):
    """How sure one is at most who held it as likely as not."""
    return f"{1 / (1 + math.exp(-eps)):.0%}".replace("%", " %")


def test_promise_says_what_the_defaults_prove():
    certificate = ew.plan(300).certificate
    told = [f"{sure(0.5)} sure at eps .5", *(f"{sure(eps)} at {eps}" for eps in (1, 2, 4))]

    assert f"{math.exp(certificate.eps):.2f} at the default" in PROMISE
    assert f"AUC of any attack at most {certificate.auc:.3f}".replace("0.", ".") in PROMISE
    assert f"at most {', '.join(told)}." in PROMISE
    assert f"eps above {VACUOUS:g} no promise" in PROMISE


def test_promise_300_people():
    plan = ew.plan(300)

    assert plan.people_certified > plan.people >= plan.people_tested
    assert f"needs {plan.people_certified} people" in EXAMPLES["300"]
    assert f"with 300 it runs from eps = {plan.eps_runs}" in EXAMPLES["300"]
    assert 1000 < math.exp(plan.eps_runs) < 10_000  # some thousands


@pytest.mark.parametrize(("people", "given"), [(10_000, {"eps": 2.0}), (1_000_000, {"eps": 0.5, "delta": 1e-8})])
def test_promise_of_many_people(people, given):
    plan = ew.plan(people, **given)
    told, c = EXAMPLES[f"{people:,}"], plan.certificate

    assert f"run needs {plan.people_certified:,} people" in told
    assert f"{plan.people_good:,} people" in told
    assert f"AUC of any attack at most {c.auc:.3f}, advantage at most {c.advantage:.3f}" in told
    assert c.words[0] in told


@pytest.mark.parametrize("eps", [1, 2, 4, 8])
def test_promise_by_eps(eps):
    plan = ew.plan(100_000, eps=float(eps))
    bounds = (f"{x:.3f}"[1:] for x in (plan.certificate.advantage, plan.certificate.auc))
    (row,) = re.findall(rf"\| {eps}(?: \(default\))? \| ([\d.,]+) \| (\S+) \| (\S+) \| ([\d,]+) \|", PROMISE)

    assert float(row[0].replace(",", "")) == pytest.approx(math.exp(eps), rel=0.02)
    assert row[1:] == (*bounds, f"{plan.people_certified:,}")


def test_people_needed_are_those_of_the_plan():
    plan = ew.plan(0)

    for page in (README, TEXT[DOCS["data"]]):
        assert f"{plan.people_tested} people" in page or f"| {plan.people_tested} |" in page
        assert f"{plan.people_certified:,}" in page


def test_promise_counts_two_ids_and_releases_as_the_accounting_does():
    mu = gaussian_mu(4.0, 1e-6)

    assert f"{eps_of(2 * mu, 1e-6):.1f} in place of 4" in PROMISE
    assert f"two at eps 4 are one at eps {eps_of(math.sqrt(2) * mu, 1e-6):.1f}" in PROMISE


def test_what_a_theorem_costs_is_what_its_table_says():
    table = CERTIFICATE["Table"]()
    rows = CERTIFICATE["cost"](table, table.towns()).splitlines()[2:]
    picture = (ROOT / "docs" / "people-eps.svg").read_text()

    assert len(rows) == 3
    assert [row for row in rows if row.replace("+", "") not in PROMISE] == []
    assert len(picture) < 60_000
    for name in (*(f">{int(town):,}<" for town in table.towns()), ">500 real people<", ">no noise<", ">eps 1<"):
        assert name in picture


# --- the site


def test_the_site_builds_without_a_warning_and_without_the_network(tmp_path):
    pytest.importorskip("material", reason="needs elsewhere[docs]")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # a word on the future of mkdocs, not on these pages
    done = subprocess.run(build, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    pages = {path.relative_to(tmp_path / "site").as_posix(): path.read_text() for path in tmp_path.rglob("*.html")}
    fetched = re.compile(r"<(?:script|img|link)[^>]+(?:src|href)=\"(?:https?:)?//([^/\"]+)")

    assert (done.returncode, re.findall(r"^(?:WARNING|ERROR).*", done.stderr, re.MULTILINE)) == (0, [])
    assert {"index.html", *(f"{name}.html" for name in DOCS), "certificate.html", "contributing.html"} <= set(pages)
    assert [name for name in PUBLIC if name not in pages["library.html"]] == []
    assert [host for text in pages.values() for host in fetched.findall(text)] == []
