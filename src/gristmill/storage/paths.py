"""Find input files: directories (always recursive), globs, lists of both, local or by URL.

The result is sorted, so the same files give the same partitions on every machine. Nothing found is an error that says
what is there instead.
"""

import re
from collections.abc import Iterator, Sequence

from gristmill.errors import NoInputError, nearest
from gristmill.storage.file_system import FileStatus, FileSystem, StorageOptions, file_system, is_hidden

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
        matched, others = _matching(fs, path, wanted)
        if not matched:
            raise NoInputError(_nothing_found(fs, path, wanted, others, who))
        found.update((status.path, status) for status in matched)
    if not found:
        raise NoInputError(f"{who}: expected at least one path; got {paths!r}")
    return [found[path] for path in sorted(found)]


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
        return [status], []
    if fs.is_directory(path):
        there = list(fs.walk(path))
    elif _MAGIC.search(path):
        there = list(_glob(fs, path))
    else:
        return [], []
    if wanted is None:
        return there, []
    matched = [s for s in there if has_extension(s.path, wanted)]
    return matched, [] if matched else there


def _glob(fs: FileSystem, pattern: str) -> Iterator[FileStatus]:
    """Files whose path matches; a directory that matches stands for all files in it."""
    root, slash, _ = _MAGIC.split(pattern, maxsplit=1)[0].rpartition("/")
    base = root or slash or "."
    if not fs.is_directory(base):
        return
    matches = re.compile(_translate(pattern[len(root + slash) :])).match
    prefix = fs.full(base).rstrip("/") + "/"
    for status in fs.walk(base):
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
    if others:
        some = ", ".join(sorted(s.path.rpartition("/")[2] for s in others)[:3])
        return f"{message}, but {len(others)} file{'s' * (len(others) > 1)} of other kinds ({some})"
    if fs.is_directory(path):
        hidden = sum(is_hidden(name) for name in fs.list_names(path))
        return f"{message}: the directory has no files" + (f" but hidden ones ({hidden})" if hidden else "")
    plain = _MAGIC.split(path, maxsplit=1)[0] if _MAGIC.search(path) else path.rstrip("/")
    parent = plain.rpartition("/")[0]
    name = path.rstrip("/")[len(parent) :].lstrip("/")
    names = [n for n in fs.list_names(parent or ".") if not is_hidden(n)]
    if not names:
        return message
    some = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
    return f"{message}: {parent or '.'!r} has {some}{nearest(name, names)}"
