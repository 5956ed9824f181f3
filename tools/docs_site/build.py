"""Build the documentation site: `make docs-site`.

Pages come from three places: `docs/` as it is, the project's own pages at the top of the repository, and a reference
made from the code. They are put together in `build/site-source`, where MkDocs turns them into `build/site`. A link that
leads nowhere is an error.
"""

import itertools
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from docs_site.catalog_pages import catalog_pages
from docs_site.command_pages import command_pages
from docs_site.notebook_pages import notebook_pages
from docs_site.pictures import pictures
from docs_site.python_pages import python_pages
from docs_site.reason_pages import reason_pages

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "build" / "site-source"
SITE = REPOSITORY / "build" / "site"

# Pages at the top of the repository, and where they are on the site.
TOP = {
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
}
FOLDERS = ("guide", "reference", "explanation", "adr")
_LINK = re.compile(r"\[(?P<text>[^\]\[]+)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")


def pages() -> Iterator[tuple[str, str]]:
    """Yield every page as (path on the site, Markdown)."""
    made = dict(_made_pages())
    yield from made.items()
    origins = {path.relative_to(REPOSITORY).as_posix(): path for path in _documents()}
    places = {**{origin: origin.removeprefix("docs/") for origin in origins}, **TOP, **{f"docs/{p}": p for p in made}}
    places |= {"README.md": "index.md", "docs/adr": "project/decisions.md"}
    for origin in (*origins, *TOP):
        yield places[origin], with_links((REPOSITORY / origin).read_text(encoding="utf-8"), origin, places)


def _made_pages() -> Iterator[tuple[str, str]]:
    yield "project/decisions.md", _decisions()
    yield from catalog_pages()
    yield from command_pages()
    yield from python_pages()
    yield from reason_pages()
    yield from notebook_pages(REPOSITORY / "docs" / "tutorials")


def _documents() -> list[Path]:
    documents = REPOSITORY / "docs"
    found = [path for folder in FOLDERS for path in (documents / folder).glob("*.md")]
    return [documents / "index.md", *sorted(found)]


def with_links(text: str, origin: str, places: Mapping[str, str]) -> str:
    """Return a page with its links leading to where pages are on the site.

    What is not on the site, such as a source file, is named without a link.

    >>> with_links("[a](b.md#c), [d](../src/e.py)", "docs/f.md", {"docs/f.md": "g/f.md", "docs/b.md": "b.md"})
    '[a](../b.md#c), d'
    """
    here = PurePosixPath(places[origin]).parent

    def relink(found: re.Match[str]) -> str:
        if "://" in found["target"] or found["target"].startswith("mailto:"):
            return found[0]
        there = places.get(posixpath.normpath(posixpath.join(posixpath.dirname(origin), found["target"])))
        if there is None:
            return found["text"]
        return f"[{found['text']}]({posixpath.relpath(there, here)}{found['anchor'] or ''})"

    return _LINK.sub(relink, text)


def _decisions() -> str:
    """A list of the decision records, by their headings."""
    text = "# Decisions\n\nWhy things are as they are, and how we would notice that one was wrong.\n\n"
    for path in sorted((REPOSITORY / "docs" / "adr").glob("[0-9]*.md")):
        heading = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        if not path.name.startswith("0000"):
            text += f"- [{heading}](../adr/{path.name})\n"
    return text


def assemble() -> int:
    """Write all pages anew and return how many there are."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    count = 0
    for name, text in itertools.chain(pages(), pictures()):
        path = SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        count += name.endswith(".md")
    shutil.copytree(REPOSITORY / "docs" / "stylesheets", SOURCE / "stylesheets")
    return count


def main() -> None:
    """Assemble the pages and build the site; warnings are errors."""
    count = assemble()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--site-dir", str(SITE)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # what it says is in ADR 0051
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    print(f"{count} pages in {SITE.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
