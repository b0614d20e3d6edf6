"""
Make the reference of the library from docstrings: a page of the site (bench/site_pages.py), no file of the repository.

`python bench/write_docs.py` prints it.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from importlib import import_module

import elsewhere as ew

# what a reader looks for, in the order of a run; other public names follow under a heading of their own
GROUPS = {
    "The whole job": ("synthesize", "Result", "plan", "Plan"),
    "Data": (
        *("read_visits", "write_visits", "Visits", "Locations", "Form", "Preparation", "Traces", "Periods"),
        *("simulate_town", "Town"),
    ),
    "Mobility": ("fit_profiles", "MobilityProfile", "Profiles", "aggregate", "AggregateModel"),
    "Similarity": (
        *("geographic_similarity", "semantic_similarity", "SemanticMatch", "pairwise_geographic_similarity"),
        *("pairwise_semantic_similarity", "mallows_distance", "scaled_distance"),
    ),
    "Semantic classes": ("semantic_graph", "LocationGraph", "semantic_clustering", "SemanticClasses"),
    "Fakes": (
        *("generate_fakes", "Fakes", "generate_fake", "privacy_test", "Verdict", "LifeVerdict", "Certificate"),
        *("publish", "Pool"),
    ),
    "Judging": (
        *("judge_usefulness", "Usefulness", "audit", "AuditResult", "Finding", "evaluate_publishing"),
        *("PublishingResult", "evaluate_lbs", "LbsResult", "report"),
    ),
}

# types of results, and what experts need: not at the front door
MODULES = {
    "AggregateModel": "paper.aggregate",
    "AuditResult": "evaluation.audit",
    "Certificate": "synthesis.certificate",
    "Finding": "evaluation.attack_base",
    "Form": "data.visits",
    "LbsResult": "evaluation.lbs",
    "LifeVerdict": "synthesis.generate_life",
    "LocationGraph": "paper.semantic_graph",
    "MobilityProfile": "paper.profiles",
    "Plan": "run.plan",
    "Preparation": "data.visits",
    "Profiles": "paper.profiles",
    "PublishingResult": "evaluation.publishing",
    "Result": "run.synthesize",
    "SemanticMatch": "paper.semantic_similarity",
    "Town": "data.town",
    "Usefulness": "evaluation.usefulness",
    "Verdict": "paper.privacy_test",
    "judge_usefulness": "evaluation.usefulness",
    "pairwise_geographic_similarity": "paper.geographic_similarity",
    "scaled_distance": "paper.geographic_similarity",
}
NAMES = {name: getattr(ew, name) for name in ew.__all__ if name not in ("__version__", "errors", "ElsewhereError")} | {
    name: getattr(import_module(f"elsewhere.{module}"), name) for name, module in MODULES.items()
}
ERRORS = {
    name: kind
    for name, kind in sorted(vars(ew.errors).items())
    if inspect.isclass(kind) and issubclass(kind, ew.ElsewhereError)
}

HEAD = """# The library

What `import elsewhere as ew` offers, and the types of its results, from the docstrings.
`ew.name` is at the front door; what stands under an import line is in its module, for experts and for annotations. Data
come first, options by keyword, `rng` last. Everything that draws takes `rng`, a `numpy.random.Generator`; where it may
be left out, the entropy is the operating system's and the result may be published ([R2](reliability.md#r2)). Errors are
`ew.ElsewhereError` with a `code`, [listed at the end](#errors). Terms are explained in the [glossary](glossary.md),
numbers in brackets in [readings](readings.md), [attacks](attacks.md) and [reliability](reliability.md).
"""


def signature(name: str, thing: object) -> str:
    """Return `ew.name(...)`, or an import and `name(...)`, as the source has it, long ones in lines."""
    before, call = "", f"ew.{name}"
    if name in MODULES:
        before, call = f"from elsewhere.{MODULES[name]} import {name}\n", name
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(thing))).body  # type: ignore[arg-type]
    parts, end = [], ")"
    if isinstance(tree, ast.ClassDef):
        made = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
        if made:
            parts = arguments(made[0].args)[1:]
        elif dataclasses.is_dataclass(thing):
            parts = [one_field(node) for node in tree.body if isinstance(node, ast.AnnAssign)]
        if not parts:
            return before.strip() or call
    elif isinstance(tree, ast.FunctionDef):
        parts = arguments(tree.args)
        end += f" -> {ast.unparse(tree.returns)}" if tree.returns else ""
    line = f"{call}({', '.join(parts)}{end}"
    return before + (line if len(line) <= 100 else "\n".join([f"{call}(", *(f"    {part}," for part in parts), end]))


def arguments(args: ast.arguments) -> list[str]:
    """Return each parameter with its type and default."""
    given = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(given) - len(args.defaults)) + list(args.defaults)
    parts = [one_argument(arg, default) for arg, default in zip(given, defaults, strict=True)]
    if args.vararg:
        parts.append(f"*{ast.unparse(args.vararg)}")
    elif args.kwonlyargs:
        parts.append("*")
    parts += [one_argument(arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return parts + ([f"**{ast.unparse(args.kwarg)}"] if args.kwarg else [])


def one_argument(arg: ast.arg, default: ast.expr | None) -> str:
    """Return `name: type = default`."""
    return ast.unparse(arg) + ("" if default is None else f" = {ast.unparse(default)}")


def one_field(node: ast.AnnAssign) -> str:
    """Return a field of a dataclass; what a factory makes is shown as dots."""
    value = "" if node.value is None else ast.unparse(node.value)
    if value.startswith("field("):
        value = "..." if "default" in value else ""
    return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}" + (f" = {value}" if value else "")


def in_markdown(doc: str) -> str:
    """Return a numpydoc docstring as Markdown: parameters as a list, examples and formulas as code."""
    out, kind, lines = [], "", doc.splitlines()
    i = 0
    while i < len(lines):
        line = lines[i]
        if i + 1 < len(lines) and line and re.fullmatch(r"-{3,}", lines[i + 1]):
            kind = line
            out += ["", f"*{line}*", ""]
            i += 2
            continue
        if kind == "Examples":
            block = []
            while i < len(lines):
                block.append(lines[i])
                i += 1
            out += ["```pycon", *"\n".join(block).strip().splitlines(), "```"]
            continue
        if kind and line and not line.startswith(" "):
            text = []
            i += 1
            while i < len(lines) and (not lines[i].strip() or lines[i].startswith(" ")):
                text.append(lines[i].strip())
                i += 1
            names = ", ".join(f"`{name.strip()}`" for name in line.split(","))
            told = re.sub(r"<(?=[a-z])", "&lt;", " ".join(t for t in text if t))
            out.append(f"- {names}: {told}".rstrip(": "))
            continue
        if line.startswith("    "):
            block = []
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                block.append(lines[i])
                i += 1
            out += ["", "```text", *textwrap.dedent("\n".join(block)).strip().splitlines(), "```", ""]
            continue
        out.append(re.sub(r"<(?=[a-z])", "&lt;", line))
        i += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


def first_line(doc: str) -> str:
    """Return the first sentence of a docstring as one line."""
    return " ".join(doc.strip().split("\n\n")[0].split())


def members(thing: type) -> list[str]:
    """Return the options that a class declares, with their defaults, and its public methods, a line each."""
    lines = [
        f"- `{name} = {field.default!r}`: {option.help}"
        for name, field in getattr(thing, "model_fields", {}).items()
        for option in field.metadata
        if hasattr(option, "help")
    ]
    for name, member in list(vars(thing).items()):
        plain = getattr(member, "fget", getattr(member, "func", getattr(member, "__func__", member)))
        doc = inspect.getdoc(plain) if callable(plain) else None
        if name.startswith("_") or not doc:
            continue
        call = name
        if not isinstance(member, property) and not hasattr(member, "func"):
            known = [p for p in inspect.signature(plain).parameters.values() if p.name not in ("self", "cls")]
            call += f"({', '.join(('*' if p.kind == p.VAR_POSITIONAL else '') + p.name for p in known)})"
        lines.append(f"- `.{call}`: {first_line(doc)}")
    return lines


def page() -> str:
    """Return the whole page."""
    placed = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "Further names": further} if (further := sorted(NAMES.keys() - placed)) else GROUPS
    out = [HEAD]
    for group, names in groups.items():
        out.append(f"## {group}\n")
        for name in names:
            thing = NAMES[name]
            out += [f"### {name}\n", f"```python\n{signature(name, thing)}\n```\n"]
            out.append(in_markdown(inspect.getdoc(thing) or "") + "\n")
            if inspect.isclass(thing) and (lines := members(thing)):
                out += ["\n".join(lines) + "\n"]
    out += [
        "## Errors\n",
        "All are in `ew.errors`; `ew.ElsewhereError` catches every one.\n",
        "| error | code | meaning |\n|---|---|---|",
    ]
    out += [f"| `{name}` | `{kind.code}` | {first_line(inspect.getdoc(kind) or '')} |" for name, kind in ERRORS.items()]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    print(page())
