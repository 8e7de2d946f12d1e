"""What the pages need to be right both on GitHub and in the site."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# Links that leave docs/ exist on GitHub; those with a page of their own here lead to it.
PAGES = {"../CHANGELOG.md": "changelog.md", "../README.md": "index.md"}
OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)]*)\)")
# Docstrings name their kin as Python's documentation does; in HTML the code alone is enough.
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|math):<code>~?([^<]*)</code>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The changelog is a page, although it lies beside docs/."""
    changelog = Path(config.config_file_path).parent / "CHANGELOG.md"
    files.append(File.generated(config, "changelog.md", abs_src_path=str(changelog)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Links out of docs/ become pages of the site or plain text."""

    def inside(link: re.Match[str]) -> str:
        page = PAGES.get(link[2])
        return f"[{link[1]}]({page})" if page else link[1]

    return OUTSIDE.sub(inside, markdown)


def on_page_content(html: str, **_: object) -> str:
    """Roles of docstrings as plain code."""
    return ROLE.sub(r"<code>\1</code>", html)
