"""`FileLog`: everything a program does to the files below a directory, as operations that can be done again.

Calls of Python are caught one by one (`os`, `open`). What a library writes in C (numpy, pyarrow) is not seen as it
happens: the directory is compared with the log before and after each call, and what is new becomes a write. Something
that has gone without a call that would explain it is an error, so a log that was taken is a log of everything.

    Names   entries of directories that change at once: made (a number), renamed (two entries), removed (None)
    Write   bytes of a file at a place       Cut   a file is made shorter       Sync   fsync of a file or directory

Files and directories are numbers, as in a file system: a name may be another file's later on. The directory is 0.
"""

import builtins
import contextlib
import io
import os
import stat
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = 0
SETTLED_S = 0.05  # a file that has not been changed for so long is not read again: clocks of file systems are coarse
PATCHED = (
    "open", "write", "pwrite", "ftruncate", "truncate", "mkdir",  # what they did is seen by looking
    "fsync", "fdatasync", "rename", "replace", "link", "unlink", "remove", "rmdir",
)  # fmt: skip


class Names(NamedTuple):
    changes: tuple  # of (directory, name, number or None)
    directories: frozenset = frozenset()  # numbers that are new directories


class Write(NamedTuple):
    file: int
    start: int
    data: bytes


class Cut(NamedTuple):
    file: int
    size: int


class Sync(NamedTuple):
    file: int


def common_length(one, other):
    """How many bytes two contents begin with together."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(place for place in range(length) if one[place] != other[place])


class FileLog:
    """Watches one directory while `taken` is entered. `fails`, if given, is asked before each call and may raise."""

    def __init__(self, root, *, fails=None):
        self.root = Path(root)
        self.operations = []
        self.begun = 0  # how many operations only say what was there before
        self.entries = {ROOT: {}}  # of each directory: name to number
        self.content = {}  # of each file
        self._seen = {}  # number: (inode, size, time of change), when it was last read
        self._next = 1
        self._fails = fails
        self._real = {name: getattr(os, name) for name in PATCHED}
        self._real_open = io.open
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def taken(self):
        """Note what this process does below the directory. What is in it already comes first, as if on disk."""
        self.look()
        self.operations += [Sync(number) for number in (*self.entries, *self.content)]
        self.begun = len(self.operations)
        for name in PATCHED:
            setattr(os, name, getattr(self, f"_{name}", None) or self._plainly(name))
        io.open = builtins.open = self._open_file
        try:
            yield self
        finally:
            io.open = builtins.open = self._real_open
            for name, real in self._real.items():
                setattr(os, name, real)
            self.look()

    # Looking

    def look(self):
        """Note what has changed since the last look, and was not noted yet."""
        with self._lock:
            self._look_in(ROOT, str(self.root))

    def _look_in(self, directory, path):
        known = self.entries[directory]
        with os.scandir(path) as listed:
            found = {entry.name: entry.stat(follow_symlinks=False) for entry in listed}
        gone = known.keys() - found.keys()
        assert not gone, f"{path}: {gone} went without a call that was seen"
        for name in sorted(found):
            is_directory = stat.S_ISDIR(found[name].st_mode)
            number = known.get(name)
            if number is None:
                number = self._make(directory, name, found[name], is_directory)
            if is_directory:
                self._look_in(number, f"{path}/{name}")
            else:
                self._look_at(number, f"{path}/{name}", found[name])

    def _make(self, directory, name, status, is_directory):
        number, self._next = self._next, self._next + 1
        self.entries[directory][name] = number
        if is_directory:
            self.entries[number] = {}
        else:
            self.content[number] = b""
        self._seen[number] = (status.st_ino, -1, -1)
        self.operations.append(Names(((directory, name, number),), frozenset([number] if is_directory else [])))
        return number

    def _look_at(self, number, path, status):
        seen = (status.st_ino, status.st_size, status.st_mtime_ns)
        assert self._seen[number][0] == status.st_ino, f"{path} was replaced without a call that was seen"
        if self._seen[number] == seen and time.time() - status.st_mtime_ns / 1e9 > SETTLED_S:
            return
        self._seen[number] = seen
        with self._real_open(path, "rb") as file:
            now = file.read()
        before = self.content[number]
        if now == before:
            return
        same = common_length(before, now)
        if same < len(before):
            self.operations.append(Cut(number, same))
        if same < len(now):
            self.operations.append(Write(number, same, now[same:]))
        self.content[number] = now

    # Calls

    def _plainly(self, name):
        """What only makes, writes or cuts: the difference says it all."""

        def call(*arguments, **options):
            if name == "open" and not arguments[1] & (os.O_CREAT | os.O_TRUNC):
                return self._real[name](*arguments, **options)
            with self._lock:
                self.look()
                self._ask(name, arguments[0], options.get("dir_fd"))
                try:
                    return self._real[name](*arguments, **options)
                finally:
                    self.look()

        return call

    def _ask(self, name, target, dir_fd=None):
        path = self._path_of(target, dir_fd)
        if self._fails is not None and path is not None:
            self._fails(name, self.root / path)

    def _path_of(self, target, dir_fd=None):
        """Where a path or descriptor is below the directory; None if it is not there."""
        if isinstance(target, int):
            target = _opened(target)
        elif dir_fd is not None:
            target = f"{_opened(dir_fd)}/{os.fspath(target)}"
        path = Path(os.path.abspath(os.fspath(target)))  # noqa: PTH100
        return path.relative_to(self.root) if path.is_relative_to(self.root) else None

    def _place(self, path):
        """The directory's number and the name."""
        number = ROOT
        for part in path.parts[:-1]:
            number = self.entries[number][part]
        return number, path.name

    def _number(self, path):
        number = ROOT
        for part in path.parts:
            number = self.entries[number][part]
        return number

    def _sync(self, name, descriptor):
        with self._lock:
            path = self._path_of(descriptor)
            if path is not None:
                self.look()
                self._ask(name, descriptor)
            self._real[name](descriptor)
            if path is not None:
                self.operations.append(Sync(self._number(path)))

    def _fsync(self, descriptor):
        self._sync("fsync", descriptor)

    def _fdatasync(self, descriptor):
        self._sync("fdatasync", descriptor)

    def _move(self, name, source, target, src_dir_fd=None, dst_dir_fd=None):
        with self._lock:
            old, new = self._path_of(source, src_dir_fd), self._path_of(target, dst_dir_fd)
            assert (old is None) == (new is None), f"{source} -> {target} leads out of the directory that is watched"
            if old is not None:
                self.look()
                self._ask(name, source, src_dir_fd)
            self._real[name](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            if old is None:
                return
            (before, old_name), (after, new_name) = self._place(old), self._place(new)
            number = self.entries[before].pop(old_name)
            self.entries[after][new_name] = number
            self.operations.append(Names(((before, old_name, None), (after, new_name, number))))

    def _rename(self, source, target, **options):
        self._move("rename", source, target, **options)

    def _replace(self, source, target, **options):
        self._move("replace", source, target, **options)

    def _link(self, source, target, **options):
        with self._lock:
            old, new = self._path_of(source), self._path_of(target)
            assert (old is None) == (new is None), f"{source} -> {target} leads out of the directory that is watched"
            if old is not None:
                self.look()
                self._ask("link", source)
            self._real["link"](source, target, **options)
            if old is not None:
                directory, name = self._place(new)
                self.entries[directory][name] = self._number(old)
                self.operations.append(Names(((directory, name, self._number(old)),)))

    def _take_away(self, name, target, dir_fd=None):
        with self._lock:
            path = self._path_of(target, dir_fd)
            if path is not None:
                self.look()
                self._ask(name, target, dir_fd)
            self._real[name](target, dir_fd=dir_fd)
            if path is not None:
                directory, last = self._place(path)
                del self.entries[directory][last]
                self.operations.append(Names(((directory, last, None),)))

    def _unlink(self, target, *, dir_fd=None):
        self._take_away("unlink", target, dir_fd)

    def _remove(self, target, *, dir_fd=None):
        self._take_away("remove", target, dir_fd)

    def _rmdir(self, target, *, dir_fd=None):
        self._take_away("rmdir", target, dir_fd)

    def _open_file(self, file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, **options):
        """`open`: for writing it gives a file whose every write is seen, or made to fail."""
        path = None if isinstance(file, int) or options or not set(mode) & set("wax+") else self._path_of(file)
        if path is None:
            return self._real_open(file, mode, buffering, encoding, errors, newline, **options)
        with self._lock:
            self.look()
            self._ask("open", file)
            raw = _SeenFile(os.fspath(file), "".join(letter for letter in mode if letter not in "bt"))
            raw.log = self
            self.look()
        if buffering == 0:
            return raw
        size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
        buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw, size)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)


def _opened(descriptor):
    return str(Path(f"/proc/self/fd/{descriptor}").readlink()).removesuffix(" (deleted)")


class _SeenFile(io.FileIO):
    log = None

    def write(self, data):
        with self.log._lock:
            self.log._ask("write", self.fileno())
            count = super().write(data)
            self.log.look()
            return count

    def truncate(self, size=None):
        with self.log._lock:
            self.log._ask("truncate", self.fileno())
            try:
                return super().truncate(size)
            finally:
                self.log.look()
