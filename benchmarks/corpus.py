"""Makes the corpus that the text and deduplication benchmarks run on: real prose, tables, code and boilerplate.

    python -m benchmarks.corpus [--megabytes 50]

The text is that of documentation packages of Debian 12 in six languages, taken apart into documents of web-like length
(median 2.4 KB) and shuffled by content, so the same packages give the same files. Needs `apt-get` and `dpkg-deb`;
downloads about 140 MB once, into `benchmarks/data/`.
"""

import argparse
import hashlib
import html
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).parent / "data"
PACKAGES = [
    "apache2-doc",
    "bible-kjv-text",
    "debian-policy",
    "developers-reference",
    "dict-gcide",
    "git-doc",
    "jargon-text",
    "libreoffice-help-de",
    "libreoffice-help-es",
    "libreoffice-help-fr",
    "libreoffice-help-ja",
    "libreoffice-help-ru",
    "linux-doc-6.1",
    "openjdk-17-doc",
    "perl-doc",
    "postgresql-doc-15",
    "python-django-doc",
    "python3.11-doc",
    "r-doc-html",
    "rust-doc",
    "sqlite3-doc",
]
SHARDS = 20
MEDIAN_CHARS, SPREAD = 2400, 1.1  # of the log-normal document length
LEAST_CHARS, MOST_CHARS = 200, 50_000
PER_PACKAGE_BYTES = 30_000_000  # so that no manual fills the corpus
REPEATED_SHARE = 0.03  # how often a paragraph seen before (navigation, licences) is kept

_TEXT_FILE = re.compile(r"\.(html?|txt|rst|pod)$|/(bible|jargon)[^/]*$")
_UNSHOWN = re.compile(r"<(script|style|head|nav|svg)\b.*?</\1\s*>|<!--.*?-->", re.S | re.I)
_BLOCK = re.compile(r"</?(p|div|h[1-6]|pre|ul|ol|dl|table|section|article|blockquote)\b[^>]*>", re.I)
_ROW = re.compile(r"</?(li|tr|br|dt|dd)\b[^>]*>", re.I)
_TAG = re.compile(r"<[^>]+>")


def corpus(megabytes: int) -> Path:
    """Return the directory of a corpus of about that size, made now if it is not there yet."""
    directory = DATA / f"corpus-{megabytes}"
    if manifest(directory).exists():
        return directory
    packages = _download()
    with multiprocessing.Pool() as pool:
        documents = [document for found in pool.imap(_documents_of, packages) for document in found]
    documents.sort(key=lambda document: hashlib.md5(document["text"].encode()).digest())
    lines, size = [], 0
    for number, document in enumerate(documents):
        lines.append(json.dumps({"id": f"d{number:06d}", **document}, ensure_ascii=False).encode() + b"\n")
        size += len(lines[-1])
        if size >= megabytes * 1_000_000:
            break
    else:
        raise SystemExit(f"corpus: expected {megabytes} MB or less; the packages hold {size // 1_000_000}")
    _write(directory, lines)
    return directory


def manifest(directory: Path) -> Path:
    """Where the size of a corpus is: beside it, for some programs read every file that is in it."""
    return directory.with_suffix(".json")


def _write(directory: Path, lines: list[bytes]) -> None:
    unfinished = directory.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    checksum = hashlib.sha256()
    for shard in range(SHARDS):
        data = b"".join(lines[shard * len(lines) // SHARDS : (shard + 1) * len(lines) // SHARDS])
        (unfinished / f"{shard:05d}.jsonl").write_bytes(data)
        checksum.update(data)
    about = {"documents": len(lines), "bytes": sum(map(len, lines)), "sha256": checksum.hexdigest()}
    shutil.rmtree(directory, ignore_errors=True)
    unfinished.rename(directory)
    manifest(directory).write_text(json.dumps(about, indent=1) + "\n")


def _download() -> list[Path]:
    debs = DATA / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    missing = [name for name in PACKAGES if not list(debs.glob(f"{name}_*.deb"))]
    if missing:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "download", "-qq", *missing], check=True, cwd=debs)
    return [next(debs.glob(f"{name}_*.deb")) for name in PACKAGES]


def _documents_of(package: Path) -> list[dict[str, str]]:
    name = package.name.partition("_")[0]
    seen: set[int] = set()
    documents: list[dict[str, str]] = []
    size = 0
    for path, text in _texts(package):
        chance = random.Random(f"{name}/{path}")
        for text_of_one in _cut(_paragraphs(text), seen, chance):
            url = f"https://{name}.example.org{path.lstrip('.')}#{len(documents)}"
            documents.append({"text": text_of_one, "url": url, "source": name})
            size += len(text_of_one.encode())
        if size > PER_PACKAGE_BYTES:
            break
    return documents


def _texts(package: Path) -> Iterator[tuple[str, str]]:
    """Files of a package in the order of a hash of their names: a prefix of them is a sample of all."""
    found = []
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as unpacked,
        tarfile.open(fileobj=unpacked.stdout, mode="r|") as archive,
    ):
        for member in archive:
            if not (member.isfile() and _TEXT_FILE.search(member.name) and 500 < member.size < 20_000_000):
                continue
            file = archive.extractfile(member)
            if file is not None:
                found.append((member.name, file.read()))
    for name, raw in sorted(found, key=lambda entry: hashlib.md5(entry[0].encode()).digest()):
        if b"\0" not in raw[:2000]:
            yield name, raw.decode("utf-8", "replace")


def _paragraphs(text: str) -> list[str]:
    if "<" in text[:500]:
        text = _UNSHOWN.sub(" ", text)
        text = html.unescape(_TAG.sub("", _ROW.sub("\n", _BLOCK.sub("\n\n", text))))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return [paragraph for paragraph in re.split(r"\n{2,}", "\n".join(lines)) if paragraph.strip()]


def _cut(paragraphs: list[str], seen: set[int], chance: random.Random) -> Iterator[str]:
    """Join paragraphs to documents of random length; most of those seen before are left out."""
    some: list[str] = []
    length, wanted = 0, _length(chance)
    for paragraph in paragraphs:
        if len(paragraph) > 60:
            # Not `hash`, which differs from process to process.
            mark = int.from_bytes(hashlib.md5(paragraph.encode()).digest()[:8], "big")
            if mark in seen and chance.random() > REPEATED_SHARE:
                continue
            seen.add(mark)
        some.append(paragraph[:MOST_CHARS])
        length += len(some[-1]) + 2
        if length >= wanted:
            yield "\n\n".join(some)
            some, length, wanted = [], 0, _length(chance)
    if length >= LEAST_CHARS:
        yield "\n\n".join(some)


def _length(chance: random.Random) -> int:
    return min(MOST_CHARS, max(LEAST_CHARS, int(chance.lognormvariate(math.log(MEDIAN_CHARS), SPREAD))))


def main() -> None:
    """Make the corpus and say what is in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=50)
    directory = corpus(parser.parse_args().megabytes)
    print(os.path.relpath(directory), manifest(directory).read_text())


if __name__ == "__main__":
    main()
