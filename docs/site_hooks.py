"""What the pages need to be right both on GitHub and in the site."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# Links that leave docs/ exist on GitHub; those with a page of their own here lead to it.
PAGES = {
    "../CHANGELOG.md": "changelog.md",
    "../README.md": "index.md",
    "../SECURITY.md": "security.md",
}
# The pages that lie beside docs/ name its pages with their folder.
INTO = re.compile(r"\]\(docs/([^)]*\.md)")
OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)]*)\)")
# Docstrings name their kin as Python's documentation does; in HTML the code alone is enough.
ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|math):<code>~?([^<]*)</code>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The changelog and the security policy are pages, although they lie beside docs/."""
    for name in ("CHANGELOG.md", "SECURITY.md"):
        path = Path(config.config_file_path).parent / name
        files.append(File.generated(config, name.lower(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Links out of docs/ become pages of the site or plain text; those into it lose their folder."""
    markdown = INTO.sub(r"](\1", markdown)

    def inside(link: re.Match[str]) -> str:
        page = PAGES.get(link[2])
        return f"[{link[1]}]({page})" if page else link[1]

    return OUTSIDE.sub(inside, markdown)


def on_page_content(html: str, **_: object) -> str:
    """Roles of docstrings as plain code."""
    return ROLE.sub(r"<code>\1</code>", html)
