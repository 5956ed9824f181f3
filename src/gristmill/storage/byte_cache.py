"""`cached_bytes`: things that are slow to make and the same every time, kept in one of the user's directories.

Nothing depends on the directory: without a writable one, things are made again by every process that needs them.
"""

import contextlib
import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

CACHE_VARIABLE = "GRISTMILL_CACHE_DIR"
_DIGEST_BYTES = 32


def cached_bytes(key: str, make: Callable[[], bytes]) -> bytes:
    """Return what `make` returned for this key, here or in another process; if several ask at once, one makes it.

    The key must say everything the bytes depend on.
    """
    path = _path(key)
    if path is None:
        return make()
    found = _read(path)
    if found is not None:
        return found
    with _locked(path.with_suffix(".lock")):
        found = _read(path)  # another process may have made it while this one waited
        if found is None:
            found = make()
            _write(path, found)
    return found


def is_cached(key: str) -> bool:
    """Whether `cached_bytes` would find what was made for this key."""
    path = _path(key)
    return path is not None and _read(path) is not None


def _path(key: str) -> Path | None:
    directory = _directory()
    return None if directory is None else directory / hashlib.sha256(key.encode()).hexdigest()


def _directory() -> Path | None:
    """The first of the usual places that exists or can be made, and that only this user may write to."""
    given = os.environ.get(CACHE_VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    usual = [Path(home).expanduser() / "gristmill", Path(tempfile.gettempdir()) / f"gristmill-{os.getuid()}"]
    for path in [Path(given)] if given else usual:
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: no home to expand
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = path.stat()
            is_private = about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if is_private and os.access(path, os.W_OK):
                return path
    return None


def _read(path: Path) -> bytes | None:
    """The bytes, unless they are not there or not whole."""
    with contextlib.suppress(OSError):
        content = path.read_bytes()
        if hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]:
            return content[_DIGEST_BYTES:]
    return None


def _write(path: Path, content: bytes) -> None:
    with contextlib.suppress(OSError):  # a full disk costs the next process some time, nothing else
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(hashlib.sha256(content).digest() + content)
        temporary.replace(path)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process; without it the work is merely done twice."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            file = stack.enter_context(path.open("wb"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
