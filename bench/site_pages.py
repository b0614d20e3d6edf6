"""
Pages of the site that are no files of `docs`.

README as the first page, CONTRIBUTING and CHANGELOG stand outside `docs`; the reference of the library and the figures
of a proof are made when the site is built.
"""

import re
import runpy
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
MADE = {"library.md": "write_docs", "certificate.md": "certificate"}  # page -> program in bench that has `page()`


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that stand beside `docs`, and those that are made."""
    for name, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    for page, program in MADE.items():
        made = runpy.run_path(str(ROOT / "bench" / f"{program}.py"), run_name=program)
        files.append(File.generated(config, page, content=made["page"]()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links to where pages stand in the site; what the site does not have becomes plain text."""
    for name, target in OUTSIDE.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{re.escape(name)}(#[\w-]+)?\)", rf"]({target}\1)", markdown)
    if page.file.src_uri in OUTSIDE.values():
        markdown = markdown.replace("](docs/", "](")
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)*(?:LICENSE|Makefile|CITATION\.cff)\)", r"\1", markdown)
