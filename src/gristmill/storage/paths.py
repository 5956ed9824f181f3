"""Find input files: directories (always recursive), globs, lists of both, local or by URL.

The result is sorted, so the same files give the same partitions on every machine, and does not depend on how a path was
spelt: local paths are absolute, and a file reached in two ways is listed once. Nothing found is an error that says what
is there instead; what cannot be read as a file (a named pipe, a link to nothing) is an error too, never left out.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gristmill.errors import ConfigError, NoInputError, nearest
from gristmill.secrets import without_secrets
from gristmill.storage.file_system import (
    UNKNOWN_SIZE,
    FileStatus,
    FileSystem,
    StorageOptions,
    file_system,
    is_hidden,
    is_url,
    plain,
)

COMPRESSED = (".gz", ".zst", ".bz2")
_MAGIC = re.compile(r"[*?\[]")


def list_files(
    paths: str | Sequence[str],
    *,
    extensions: Sequence[str] | None = None,
    storage_options: StorageOptions | None = None,
    who: str = "input",
) -> list[FileStatus]:
    """Return every file once, sorted by path. A file named outright is taken whatever its extension."""
    wanted = None if extensions is None else tuple(f".{e.lstrip('.')}" for e in extensions)
    found: dict[str, FileStatus] = {}
    for path in [paths] if isinstance(paths, str) else map(str, paths):
        fs = file_system(path, storage_options)
        try:
            matched, others = _matching(fs, path, wanted)
        except (OSError, ValueError) as error:  # a link to itself, a directory that may not be read, a zero byte
            if is_url(path):
                raise
            raise ConfigError(f"{who}: expected files at {path!r}; got {error}") from error
        if not matched:
            raise NoInputError(_nothing_found(fs, path, wanted, others, who))
        found.update((status.path, status if status.size >= 0 else _with_size(fs, status)) for status in matched)
    if not found:
        raise NoInputError(f"{who}: expected at least one path; got {paths!r}")
    files = [found[path] for path in sorted(found)]
    for status in files:
        _check_readable(status, who)
    return _each_once(files)


def _with_size(fs: FileSystem, status: FileStatus) -> FileStatus:
    """Ask for a file itself: a web server's list of links tells no sizes. Taken for 0, it would be read as empty."""
    told = fs.status(status.path)
    if told is None or told.size == UNKNOWN_SIZE:
        shown = without_secrets(status.path)
        raise ConfigError(f"{shown}: expected a file whose size its server tells; got none. Download it first")
    return told


def _check_readable(status: FileStatus, who: str) -> None:
    if status.kind != "file":
        remedy = "Remove it, or name the files themselves"
        raise ConfigError(f"{who}: expected a file at {status.path!a}; got a {status.kind}. {remedy}")
    if status.identity is not None and not os.access(status.path, os.R_OK):
        raise ConfigError(f"{who}: expected a file that may be read at {status.path!a}; got one that may not")
    if not status.path.isascii():
        try:
            status.path.encode()
        except UnicodeEncodeError:
            raw = os.fsencode(status.path)
            raise ConfigError(f"{who}: expected a file name in UTF-8; got {raw!r}. Rename the file") from None


def _each_once(files: list[FileStatus]) -> list[FileStatus]:
    """Leave out links to files that are listed themselves, or by another link. Hard links are files of their own."""
    identities = [status.identity for status in files if status.identity is not None]
    if len(set(identities)) == len(identities):
        return files
    ways: dict[tuple[int, int], list[FileStatus]] = {}
    for status in files:
        if status.identity is not None:
            ways.setdefault(status.identity, []).append(status)
    doubled = set()
    for several in ways.values():
        if len(several) > 1:
            real = {status.path: os.path.realpath(status.path) for status in several}
            first: dict[str, str] = {}
            for path in sorted(real, key=lambda path: (path != real[path], path)):
                if first.setdefault(real[path], path) != path:
                    doubled.add(path)
    return [status for status in files if status.path not in doubled]


def has_extension(path: str, extensions: Sequence[str]) -> bool:
    """Whether the name ends in one of the extensions, a compression suffix aside."""
    return _uncompressed(path).endswith(tuple(extensions))


def is_compressed(path: str) -> bool:
    """Whether the name says the file is compressed."""
    return path.endswith(COMPRESSED)


def _uncompressed(path: str) -> str:
    return next((path.removesuffix(suffix) for suffix in COMPRESSED if path.endswith(suffix)), path)


def _matching(fs: FileSystem, path: str, wanted: tuple[str, ...] | None) -> tuple[list[FileStatus], list[FileStatus]]:
    """Files that match, and files that were there and have another extension."""
    status = fs.status(path)
    if status is not None and not fs.is_directory(path):
        return [status if is_url(path) else replace(status, path=fs.full(path))], []
    if fs.is_directory(path):
        there = list(fs.walk(fs.full(path)))
    elif _MAGIC.search(path):
        there = list(_glob(fs, path))
    else:
        return [], []
    if wanted is None:
        return there, []
    matched = [s for s in there if has_extension(s.path, wanted) or _may_be_directory(s)]
    return matched, [] if matched else there


def _may_be_directory(status: FileStatus) -> bool:
    """Whether this is a link to nothing whose name says nothing: behind it may be a disk that is not mounted."""
    return status.kind == "link to nothing" and "." not in status.path.rpartition("/")[2]


def _glob(fs: FileSystem, pattern: str) -> Iterator[FileStatus]:
    """Files whose path matches; a directory that matches stands for all files in it."""
    root, slash, _ = _MAGIC.split(pattern, maxsplit=1)[0].rpartition("/")
    base = root or slash or "."
    if not fs.is_directory(base):
        return
    matches = re.compile(_translate(pattern[len(root + slash) :])).match
    prefix = fs.full(base).rstrip("/") + "/"
    for status in fs.walk(fs.full(base)):
        if matches(status.path.removeprefix(prefix)):
            yield status


def _translate(pattern: str) -> str:
    """A glob as a regular expression: `**` crosses directories, `*` and `?` do not."""
    out = []
    for token in re.findall(r"\*\*/?|\*|\?|\[!?\]?[^\]]*\]|.", pattern, re.DOTALL):
        if token.startswith("**"):
            out.append("(?:.*/)?" if token.endswith("/") else ".*")
        elif token == "*":  # noqa: S105  # no password
            out.append("[^/]*")
        elif token == "?":  # noqa: S105
            out.append("[^/]")
        elif token.startswith("[") and len(token) > 1:
            out.append("[" + token[1:].replace("!", "^", 1) if token[1] == "!" else token)
        else:
            out.append(re.escape(token))
    return "".join(out) + r"(?:/.*)?\Z"


def _nothing_found(
    fs: FileSystem, path: str, wanted: tuple[str, ...] | None, others: list[FileStatus], who: str
) -> str:
    kinds = f"a file ending in {' or '.join(wanted)} (or {', '.join(COMPRESSED)} of it)" if wanted else "a file"
    message = f"{who}: expected {kinds} at {path!r}; got none"
    if "::" in path and is_url(path):
        return f"{message}: what is inside an archive is not listed. Unpack it first"
    if others:
        some = ", ".join(sorted(s.path.rpartition("/")[2] for s in others)[:3])
        return f"{message}, but {len(others)} file{'s' * (len(others) > 1)} of other kinds ({some})"
    if not is_url(path) and os.path.islink(plain(path)):  # noqa: PTH114
        return f"{message}: it is a link to {os.readlink(plain(path))!r}, where there is nothing"  # noqa: PTH115
    if fs.is_directory(path):
        hidden = sum(is_hidden(name) for name in fs.list_names(path))
        return f"{message}: the directory has no files" + (f" but hidden ones ({hidden})" if hidden else "")
    named = _MAGIC.split(path, maxsplit=1)[0] if _MAGIC.search(path) else path.rstrip("/")
    parent = named.rpartition("/")[0]
    name = path.rstrip("/")[len(parent) :].lstrip("/")
    names = [n for n in fs.list_names(parent or ".") if not is_hidden(n)]
    if not names:
        return message
    some = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
    return f"{message}: {parent or '.'!r} has {some}{nearest(name, names)}"
