"""Write docs/reference/ingest.md from what sources declare; `make docs` calls it, and a test compares.

A module that leaves records out says why in `REASONS`, and one that puts them aside in `KINDS`: name and one sentence.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import gristmill
from gristmill.stages import ingest_limits

PLACE = Path(__file__).parents[1] / "docs" / "reference" / "ingest.md"
SOURCE = Path(gristmill.__file__).parent
FOLDERS = (
    "stages/text/download", "stages/text/html", "stages/text/pdf", "stages/math", "stages/text/io/reader", "stages/io",
)  # fmt: skip
TABLES = ("REASONS", "KINDS")
# Modules of a source, by the beginning of their path below `stages`; the first that fits.
SOURCES = {
    "text/download/base": "Any source",
    "text/download/common_crawl/extract": "Pages",
    "text/download/html_extractors": "Pages",
    "text/html": "Pages",
    "math": "Mathematics",
    "text/download/common_crawl": "Common Crawl",
    "text/download/wikipedia": "Wikipedia",
    "text/download/arxiv": "arXiv",
    "text/download": "Any source",
    "text/pdf": "PDF",
    "text/io": "Formats",
    "io": "Formats",
}

HEAD = """# Raw sources: reasons, kinds, limits

*Made by `tools/ingest_reference.py` from the modules below `gristmill/stages` that declare them.*

A record that does not become a document is in the books all the same. It is **dropped** for a reason if it is not
wanted, and **quarantined** under a kind if it could not be read. An exception of an extractor quarantines its record
under the name of the exception. What is said of pages holds for Common Crawl and for mathematics too, and what is said
of formats for every reader of files.

"""


def declaring_modules() -> Iterator[tuple[str, ModuleType]]:
    """Yield the modules that declare reasons or kinds, with their paths below the package."""
    for folder in FOLDERS:
        for path in sorted((SOURCE / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
            targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
            if not set(TABLES).isdisjoint(map(ast.unparse, targets)):
                place = path.relative_to(SOURCE).with_suffix("").as_posix()
                yield place, importlib.import_module("gristmill." + place.replace("/", "."))


def render() -> str:
    """Return the text of the page."""
    text = HEAD
    for title, table in (("Reasons", "REASONS"), ("Kinds", "KINDS")):
        rows = sorted(
            {(source_of(place), *entry) for place, module in declaring_modules() for entry in _of(module, table)}
        )
        rows.sort(key=lambda row: list(SOURCES.values()).index(row[0]))
        text += f"## {title}\n\n| source | {title.lower()[:-1]} | meaning |\n|---|---|---|\n"
        text += "".join(f"| {source} | `{name}` | {meaning} |\n" for source, name, meaning in rows) + "\n"
    return text + _limits()


def _of(module: ModuleType, table: str) -> list[tuple[str, str]]:
    return list(getattr(module, table, {}).items())


def source_of(place: str) -> str:
    """Return the source, or the formats, that a module below the package belongs to."""
    below = place.removeprefix("stages/")
    return next(name for beginning, name in SOURCES.items() if below.startswith(beginning))


def _limits() -> str:
    """The fields of `IngestLimits`, with the comments beside them."""
    lines = inspect.getsource(ingest_limits.IngestLimits).splitlines()
    comments = {line.split(":")[0].strip(): line.partition("#")[2].strip() for line in lines if ": " in line}
    made = ingest_limits.IngestLimits()
    text = "## Limits\n\n`IngestLimits` has them all. Sizes are in bytes, times in seconds.\n\n"
    text += "| limit | default | what it is, and what happens above |\n|---|---|---|\n"
    for field in fields(made):
        text += f"| `{field.name}` | {getattr(made, field.name):,} | {comments[field.name]} |\n"
    return text


if __name__ == "__main__":
    PLACE.write_text(render(), encoding="utf-8")
