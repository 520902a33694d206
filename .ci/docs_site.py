"""What the site does beyond MkDocs: links that leave ``docs`` work as in the repository, and all settings stand on their page.

A page links to a file of the project by its path, such as ``../examples/tidy.py``. On the site such a file has a page of its own
below ``source``, with what it holds; a file in Markdown is a page as it is, and its links are followed, too.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from memci.engine.settings.config import config_file_text

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("CHANGELOG.md", "SECURITY.md", "examples/README.md")
"""What the navigation names, whether or not a page links to it."""

LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add a page for each file outside that pages link to, and for what these link to."""
    wanted = list(PAGES)
    for file in files.documentation_pages():
        wanted += outside(repository_path(file), file.content_string)
    while wanted:
        path = wanted.pop()
        if files.get_file_from_path(site_path(path)) is None:
            content = (ROOT / path).read_text(encoding="utf-8")
            if path.endswith(".md"):
                wanted += outside(path, content)
            else:
                content = f"# {path}\n\n``````{Path(path).suffix[1:]}\n{content}\n``````\n"
            files.append(File.generated(config, site_path(path), content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 (as MkDocs calls it)
    """Let links to files outside lead to their pages on the site, and links of these pages to the documentation.

    Where a page has the line ``# memci config``, what this command prints takes its place.
    """
    here = repository_path(page.file)

    def led(match: re.Match[str]) -> str:
        path = target(here, match[1])
        if not (ROOT / path).is_file():
            return match[1]
        return posixpath.relpath(site_path(path), posixpath.dirname(page.file.src_uri) or ".")

    return LINK.sub(led, markdown).replace("\n# memci config\n", f"\n{config_file_text()}")


def outside(here: str, markdown: str) -> list[str]:
    """Return the files outside ``docs`` that a page of the repository links to."""
    paths = [target(here, link) for link in LINK.findall(markdown)]
    return [path for path in paths if not path.startswith("docs/") and (ROOT / path).is_file()]


def target(here: str, link: str) -> str:
    """Return the file that a link of a file leads to, both from the top of the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), link))


def site_path(path: str) -> str:
    """Return where on the site the source of a file's page is, relative to ``docs``; pictures stay what they are."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"source/{path}" if path.endswith(".md") else f"source/{path}.md"


def repository_path(file: File) -> str:
    """Return the file of the repository that a page on the site shows."""
    if file.generated_by is None:
        return f"docs/{file.src_uri}"
    path = file.src_uri.removeprefix("source/")
    return path if (ROOT / path).is_file() else path.removesuffix(".md")
