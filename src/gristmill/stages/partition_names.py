"""Names of source partitions: readable, unique, and the same in every run over the same files.

A name becomes the name of an output file, so it never has a slash, never hides the file (. or _ in front) and never
grows beyond what file systems take.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from gristmill.secrets import HIDDEN, without_url_secrets
from gristmill.storage.paths import COMPRESSED

_MAX_CHARS = 180  # 255 bytes is the usual limit; suffixes and non-ASCII characters need room
_UNSAFE = re.compile(r'[\x00-\x1f\\:*?"<>|]')


def partition_names(first_files: Sequence[str], all_files: Sequence[str], suffixes: Sequence[str]) -> list[str]:
    """Return a name for each partition, from the first of its files and a suffix that tells parts or groups apart.

    >>> partition_names(["in/a/x.jsonl.gz", "in/b.jsonl"], ["in/a/x.jsonl.gz", "in/b.jsonl"], ["", ""])
    ['a__x', 'b']
    """
    files = {path: _shown(path) for path in all_files}
    root = _common_directory(list(files.values()))
    short = {path: _short_name(shown[len(root) :]) for path, shown in files.items()}
    # Files that differ in extension or case only would write one output on some file system.
    taken = Counter(name.lower() for name in short.values())
    times_shown = Counter(files.values())
    for path, name in short.items():
        if taken[name.lower()] > 1 or len(name) > _MAX_CHARS or not name:
            told = files[path] if times_shown[files[path]] == 1 else path
            digest = hashlib.blake2b(told[len(root) :].encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
            short[path] = f"{name[:_MAX_CHARS]}~{digest}"
    return [short[path] + suffix for path, suffix in zip(first_files, suffixes, strict=True)]


def _shown(path: str) -> str:
    """A path without what must not become the name of a file, nor change it tomorrow: passwords and signatures."""
    return without_url_secrets(path).partition(f"?{HIDDEN}")[0] if "://" in path else path


def _common_directory(paths: Sequence[str]) -> str:
    """The longest "a/b/" all paths begin with."""
    first, last = min(paths), max(paths)
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rfind("/", 0, shared) + 1] if len(first) > shared else first[: first.rfind("/") + 1]


def _short_name(relative: str) -> str:
    for suffix in COMPRESSED:
        relative = relative.removesuffix(suffix)
    directory, slash, name = relative.rpartition("/")
    stem = name.rpartition(".")[0] or name
    return _UNSAFE.sub("_", (directory + slash + stem).replace("/", "__")).lstrip("._ ")
