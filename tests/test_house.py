"""The rules of the house, run by a machine: who may import whom, where heavy libraries live, what the door shows."""

import ast
import inspect
import re
import tomllib
import warnings
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import elsewhere as ew

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "elsewhere"
FILES = sorted(SRC.rglob("*.py"))

BASE = {"errors", "settings", "files", "scale", "checkpoint", "_jit", "_version", "sorting"}
ROOMS = ["data", "paper", "synthesis", "run", "evaluation", "reports", "cli"]
MAY_IMPORT = {room: BASE | set(ROOMS[: i + 1]) for i, room in enumerate(ROOMS)}
# the public side: the process that faces the network cannot reach code that has seen a seed
PUBLIC = {"errors", "files", "_version", "data", "pool"}
MAY_IMPORT |= dict.fromkeys(BASE, BASE)
MAY_IMPORT |= {"pool": PUBLIC, "serve": PUBLIC | {"serve"}, "lbs": PUBLIC | {"lbs"}}
MAY_IMPORT |= {"__init__": set(), "__main__": {"cli"}}
for room in ("run", "evaluation", "reports", "cli"):
    MAY_IMPORT[room] |= {"pool"}
MAY_IMPORT["cli"] |= {"serve"}
# the top of the stairs: the whole job, which ends with the judge's results and the reports
MAY_IMPORT["elsewhere.run.synthesize"] = MAY_IMPORT["reports"]

# library -> where it may be imported
ONLY_IN = {
    "numba": r".*/(_(\w+_)?kernels|_jit)\.py",
    "matplotlib": r"elsewhere/reports/.*",
    "jinja2": r"elsewhere/reports/.*",
    "shapely": r"elsewhere/data/(documents|place_table)\.py",
    "dask": r"elsewhere/scale\.py",
    "distributed": r"elsewhere/scale\.py",
    "starlette": r"elsewhere/serve(/.*|\.py)",
    "fastapi": r"elsewhere/serve(/.*|\.py)",
    "uvicorn": r"elsewhere/(serve(/.*|\.py)|cli/.*)",
    "psycopg": r"elsewhere/serve/store\.py",
    "typer": r"elsewhere/cli/.*",
    "rich": r"elsewhere/cli/.*",
    "random": "nowhere: randomness is an argument",
    "pickle": "nowhere: models are JSON and npz",
}
NEW_RANDOM = {"BitGenerator", "Generator", "PCG64", "PCG64DXSM", "Philox", "SeedSequence", "default_rng"}


def named(path):
    return path.relative_to(SRC.parent).as_posix()


def module_of(path):
    return ".".join(path.relative_to(SRC.parent).with_suffix("").parts).removesuffix(".__init__")


def room_of(path):
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@cache
def tree_of(path):
    return ast.parse(path.read_text())


@cache
def nodes(path):
    """Every node of a file: read once for all rules."""
    return list(ast.walk(tree_of(path)))


@cache
def imports(path):
    """Every absolute dotted name that a file imports, anywhere in it; relative ones start with a dot."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            # `from elsewhere import data` names a room, `from elsewhere.data import visits` already has
            found += [f"{module}.{a.name}" for a in node.names] if module == "elsewhere" else [module]
    return found


def house():
    """Module -> the modules of the house that it imports, at its top, inside functions, or for type checkers alone."""
    files = {module_of(path): path for path in FILES}

    def imported(path):
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = {f"{node.module}.{alias.name}" for alias in node.names}
                yield from named & files.keys() or {node.module}
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)

    return {module: sorted(set(imported(path)) & files.keys() - {module}) for module, path in files.items()}


def cycle(graph):
    """Some cycle of a graph (node -> nodes), or None."""
    done, trail = set(), []

    def visit(node):
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return None
        done.add(node)
        trail.append(node)
        for other in graph[node]:
            if found := visit(other):
                return found
        trail.pop()
        return None

    return next((found for node in graph if (found := visit(node))), None)


def random_faults(path):
    """Legacy numpy randomness, and generators nobody can repeat."""
    if "random" not in path.read_text():
        return
    for node in nodes(path):
        text = ast.unparse(node) if isinstance(node, (ast.Attribute, ast.Call)) else ""
        legacy = re.fullmatch(r"(?:np|numpy)\.random\.(\w+)", text)
        if legacy and legacy[1] not in NEW_RANDOM:
            yield text
        if isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            yield from (alias.name for alias in node.names if alias.name not in NEW_RANDOM)
        if re.fullmatch(r"(?:np\.random\.|numpy\.random\.)?default_rng\((None)?\)", text):
            yield text


def faults(rule):
    """File -> what of it a rule forbids."""
    return {named(path): found for path in FILES if (found := list(rule(path)))}


def test_rooms_import_one_way_only():
    def astray(path):
        assert room_of(path) in MAY_IMPORT, "a room that the house does not know"
        allowed = MAY_IMPORT.get(module_of(path), MAY_IMPORT[room_of(path)])
        inside = [name.split(".") for name in imports(path) if name.split(".")[0] == "elsewhere"]
        return [".".join(n) for n in inside if len(n) < 2 or n[1] not in allowed]

    assert faults(astray) == {}


def test_no_file_imports_itself_through_others():
    # imports inside functions count: they are there so that `import elsewhere` stays light, not to hide a cycle
    assert cycle({"a": ["b"], "b": ["c"], "c": ["a"]}) == ["a", "b", "c", "a"]
    assert cycle({"a": ["b", "c"], "b": ["c"], "c": []}) is None
    graph = house()
    # what was observed and its slots become each other when asked to: `Visits.traces()`, `Traces.visits()`
    graph["elsewhere.data.visits"].remove("elsewhere.data.slots")
    assert cycle(graph) is None


def test_every_package_holds_several_files_and_kernels_have_names():
    packages = [path.parent for path in FILES if path.name == "__init__.py"]

    assert [named(p) for p in packages if len(list(p.glob("*.py"))) + len(list(p.glob("*/__init__.py"))) < 3] == []
    assert [named(path) for path in FILES if path.name == "_kernels.py"] == []


def test_heavy_libraries_stay_in_their_rooms():
    def astray(path):
        libraries = {name.split(".")[0] for name in imports(path)}
        compiled = re.fullmatch(r"_(\w+_)?kernels\.py", path.name)
        kernels = [n for n in imports(path) if n == "elsewhere._jit" and not compiled]
        return kernels + [n for n in libraries & ONLY_IN.keys() if not re.fullmatch(ONLY_IN[n], named(path))]

    assert faults(astray) == {}


def test_imports_are_absolute_no_room_is_a_drawer_and_every_file_says_its_job():
    drawers = {"utils", "helpers", "common", "core", "types"}

    assert faults(lambda path: [name for name in imports(path) if name.startswith(".")]) == {}
    assert faults(lambda path: drawers & {path.stem, path.parent.name}) == {}
    assert [named(path) for path in FILES if not ast.get_docstring(tree_of(path))] == []


def test_randomness_is_an_argument():
    # the command line turns the user's number into a generator; nothing else makes one out of nothing
    assert faults(random_faults) == {}


def test_front_door_is_complete_sorted_and_documented():
    # a dataclass without a docstring is given its signature as one
    names = [name for name in ew.__all__ if name != "__version__"]
    silent = [n for n in names if (getattr(ew, n).__doc__ or f"{n}(").startswith(f"{n}(")]

    assert len(names) <= 33, "about 30 names: types of results and what experts need stay in their modules"
    assert silent == []
    with pytest.raises(AttributeError, match="nobody"):
        _ = ew.nobody


@pytest.mark.filterwarnings("default")
def test_files_stay_small():
    lines = {named(path): len(path.read_text().splitlines()) for path in FILES}
    for name, many in lines.items():
        if many > 400:
            warnings.warn(f"{name} has {many} lines: a reason to look", stacklevel=1)

    assert {name: many for name, many in lines.items() if many > 1000} == {}


def long_functions(path):
    """Functions above 80 lines, their docstrings not counted."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            said = len((ast.get_docstring(node, clean=False) or "").splitlines())
            if node.end_lineno - node.lineno + 1 - said > 80:
                yield f"{named(path)} {node.name}"


def test_functions_fit_on_a_screen_or_two():
    assert faults(lambda path: set(long_functions(path))) == {}


# verbs that docstrings begin with: a new one is added here, a noun is not
VERBS = """
Add Answer Apply Ask Attack Audit Begin Build Cancel Change Check Choose Claim Close Cluster Compare Compute Count Cut
Deal Decide Declare Describe Disconnect Divide Do Draw Drop End Enter Estimate Evaluate Exchange Fill Filter Find Fit
Flush Forget Gather Generate Give Go Group Hide Hold Insert Join Keep Label Learn Leave Let Link List Live Lock Log
Look Make Mark Measure Merge Minimise Move Multiply Name Open Place Plant Prepare Publish Put Read Refuse Release
Remember Remove Repeat Return Run Say Score Seal Send Serve Set Share Show Shuffle Shut Simulate Sort Start Stay Stop
Sum Sweep Tabulate Take Tell Translate Treat Turn Undo Unlock Wait Warn Work Write Yield
"""


def nouns(path):
    """Functions whose docstring does not begin with a verb, with its first word."""
    verbs = set(VERBS.split())
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (said := ast.get_docstring(node)):
            first = re.match(r"\w*", said)[0]
            if first not in verbs:
                yield f"{node.name}: {first}"


def test_docstrings_of_functions_begin_with_a_verb():
    assert faults(nouns) == {}


def test_no_public_function_has_too_many_named_parameters():
    named_ones = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    for name in ew.__all__:
        if inspect.isfunction(thing := getattr(ew, name)):
            given = [p for p in inspect.signature(thing).parameters.values() if p.kind in named_ones]
            assert len(given) <= 14, name  # `generate_fakes`


# a report is read by whoever typed the command; a worker of Dask has its own options
OPTIONS = {"elsewhere/reports/claims.py", "elsewhere/reports/page.py", "elsewhere/scale.py", "elsewhere/settings.py"}


def messages(path):
    """Texts of a file that are no docstrings."""
    said = {id(n.value) for n in nodes(path) if isinstance(n, ast.Expr)}
    texts = [n for n in nodes(path) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [n.value for n in texts if id(n) not in said]


def options(path):
    """Texts of the library that name an option of the command."""
    if room_of(path) != "cli" and named(path) not in OPTIONS:
        yield from (text for text in messages(path) if re.search(r"(^|[\s`(])--[a-z]", text))


def test_messages_of_the_library_name_parameters_and_not_options():
    assert faults(options) == {}


def test_pinned_packages_admit_every_python_that_we_do():
    # Debian's Python 3.11.2 found no pymdown-extensions that it could install
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    pins = re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    here = {re.sub(r"[-_.]+", "-", d.name).lower(): d for d in metadata.distributions()}
    pinned = [(name, here.get(re.sub(r"[-_.]+", "-", name).lower()), version) for name, version in pins]
    same = {
        name: d.metadata.get("Requires-Python") for name, d, version in pinned if d is not None and d.version == version
    }
    assert len(same) > 0.8 * len(pins)
    late = {name: needs for name, needs in same.items() if needs and not SpecifierSet(needs).contains(f"{oldest}.0")}
    assert late == {}


def test_the_rules_catch_what_they_forbid(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "SRC", tmp_path / "elsewhere")

    def written(name, text):
        path = tmp_path / "elsewhere" / "data" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    bad = written(
        "imports", "import numba\nfrom elsewhere.cli import app\nfrom . import x\ndef f():\n    import elsewhere\n"
    )
    assert list(imports(bad)) == ["numba", "elsewhere.cli", ".", "elsewhere"]
    bad = written("nouns", 'def f():\n    """The number."""\ndef g():\n    """Return the number."""\n')
    assert list(nouns(bad)) == ["f: The"]
    bad = written("draws", "np.random.seed(1)\nrng = np.random.default_rng()\nnp.random.default_rng(7)\n")
    assert {"np.random.seed", "np.random.default_rng()"} == set(random_faults(bad))
    bad = written("words", '"""Docstrings may say --cells."""\nsay("give --cells 4")\nsay("two - three --")\n')
    assert list(options(bad)) == ["give --cells 4"]
    bad = written("long", 'def f():\n    """Return\n\n\n    it."""\n' + "    x = 1\n" * 81)
    assert list(long_functions(bad)) == ["elsewhere/data/long.py f"]
    bad.write_text(bad.read_text().replace("    x = 1\n", "", 3))
    for read in (tree_of, nodes):
        read.cache_clear()
    assert list(long_functions(bad)) == []
