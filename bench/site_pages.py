"""
Pages of the site that mkdocs.yml does not list.

README as the first page, CONTRIBUTING and CHANGELOG stand outside `docs`; a page of `docs` that nobody has put into the
navigation comes last in it, under "More".
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def on_config(config: Any) -> Any:
    """Put every page of `docs` into the navigation."""
    listed = re.findall(r"[\w/-]+\.md", str(config.nav))
    more = [path.name for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in listed]
    if more:
        config.nav.append({"More": more})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that stand beside `docs`."""
    for name, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links to where pages stand in the site; what the site does not have becomes plain text."""
    for name, target in OUTSIDE.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{re.escape(name)}(#[\w-]+)?\)", rf"]({target}\1)", markdown)
    if page.file.src_uri in OUTSIDE.values():
        markdown = markdown.replace("](docs/", "](")
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)*(?:LICENSE|Makefile|CITATION\.cff|people-eps\.csv)\)", r"\1", markdown)
