"""Machine code that came with the package: one file for each kind of processor, with all kernels in it.

    16 bytes    what it is, and the version of this layout
    32 bytes    SHA-256 of the list
    4 bytes     length of the list
    the list    msgpack of `Contents`
    code        of one kernel after another

A file is made when the package is built (`kernel_compiler.py`). It is used for a kernel if the sources of that kernel
are what it was made from, byte by byte; which version of numba made it does not matter then. Code that is damaged,
stale or of another kind counts as missing: the kernel is compiled on this machine, and the user who waits is told why.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec

from gristmill import kernels
from gristmill.kernels.object_code import ObjectCode

SUFFIX = ".kernels"
PACKAGE = kernels.__name__
DIRECTORY = Path(kernels.__path__[0])
_MAGIC = b"gristmill code 1"
_DIGEST_BYTES, _LENGTH_BYTES = 32, 4
_HEAD_BYTES = len(_MAGIC) + _DIGEST_BYTES + _LENGTH_BYTES
_MAKERS = ("object_code", "targets")  # how code is made, whichever kernel it is of


class NoCode(Exception):
    """There is no code for a kernel; the message says why."""


class Place(msgspec.Struct, frozen=True):
    """One kernel of a file: where its code is, counted from the end of the list, and what is known about it."""

    symbol: str
    takes: tuple[str, ...]
    unused: tuple[str, ...]
    checked: tuple[str, ...]
    sources: tuple[str, ...]  # files below `gristmill/kernels`
    sources_digest: bytes
    start: int
    size: int
    digest: bytes


class Contents(msgspec.Struct, frozen=True):
    """What is in a file: kernels by name, as "text.words.count_words"."""

    target: str
    made_with: dict[str, str]
    kernels: dict[str, Place]


class KernelSet:
    """The code for one kind of processor. `trouble` says what is wrong with the file; "" for nothing.

    `digest` is of the list, which holds a digest of everything else.
    """

    def __init__(self, path: Path, target: str) -> None:
        self.path = path
        self.contents = Contents(target, {}, {})
        self.trouble = ""
        self.digest = b""
        self._code_start = 0
        try:
            self.contents, self.digest, self._code_start = _read_list(path, target)
        except FileNotFoundError:
            self.trouble = f"{path.name} is not there"
        except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
            self.trouble = f"{path.name} cannot be used: {error}"

    def code(self, name: str) -> ObjectCode:
        """The code of a kernel; raises `NoCode`, with the reason, if there is none that fits its sources."""
        place = self.contents.kernels.get(name)
        if place is None:
            raise NoCode(self.trouble or f"{self.path.name} does not have it")
        if digest_of(place.sources) != place.sources_digest:
            raise NoCode(f"{self.path.name} was made from other sources")
        try:
            with self.path.open("rb", buffering=0) as file:
                code = os.pread(file.fileno(), place.size, self._code_start + place.start)
        except OSError as error:
            raise NoCode(f"{self.path.name} cannot be read: {error}") from error
        if hashlib.sha256(code).digest() != place.digest:
            raise NoCode(f"{self.path.name} is damaged")
        return ObjectCode(place.symbol, code, place.unused, place.checked, place.takes)


@cache
def shipped(target: str) -> KernelSet:
    """What came with the package for a target."""
    return KernelSet(DIRECTORY / f"{target}{SUFFIX}", target)


def _read_list(path: Path, target: str) -> tuple[Contents, bytes, int]:
    with path.open("rb", buffering=0) as file:
        head = file.read(_HEAD_BYTES)
        if len(head) < _HEAD_BYTES or not head.startswith(_MAGIC):
            raise ValueError("it is not a file of this version")
        length = int.from_bytes(head[-_LENGTH_BYTES:], "little")
        listed = file.read(length)
        digest = hashlib.sha256(listed).digest()
        if digest != head[len(_MAGIC) : -_LENGTH_BYTES]:
            raise ValueError("it is damaged")
        contents = msgspec.msgpack.decode(listed, type=Contents)
        if contents.target != target:
            raise ValueError(f"it was made for {contents.target}")
    return contents, digest, _HEAD_BYTES + length


def set_bytes(target: str, made_with: Mapping[str, str], codes: Mapping[str, ObjectCode]) -> bytes:
    """Return the bytes of a file: the same ones for the same code."""
    places: dict[str, Place] = {}
    start = 0
    for name, made in sorted(codes.items()):
        sources = sources_of(name.rpartition(".")[0])
        digest = hashlib.sha256(made.code).digest()
        known = (made.symbol, made.takes, made.unused, made.checked, sources, digest_of(sources))
        places[name] = Place(*known, start, len(made.code), digest)
        start += len(made.code)
    listed = msgspec.msgpack.encode(Contents(target, dict(made_with), places))
    head = _MAGIC + hashlib.sha256(listed).digest() + len(listed).to_bytes(_LENGTH_BYTES, "little")
    return b"".join([head, listed, *(codes[name].code for name in places)])


# What a kernel is made from: its module and all it imports of `gristmill.kernels`. Numba compiles the parts of a kernel
# into it, wherever they are defined.


def sources_of(module: str) -> tuple[str, ...]:
    """Return the files that a module such as "text.words" is made of, and those that say how code is made."""
    found: set[str] = set()
    wanted = [module, *_MAKERS]
    while wanted:
        path = _file_of(wanted.pop())
        if path is not None and path not in found:
            found.add(path)
            wanted += _imports(path)
    return tuple(sorted(found))


def digest_of(sources: Iterable[str]) -> bytes:
    """A hash of the contents of files below `gristmill/kernels`."""
    return hashlib.sha256(b"".join(map(_digest_of_file, sources))).digest()


@cache
def _digest_of_file(path: str) -> bytes:
    try:
        return hashlib.sha256((DIRECTORY / path).read_bytes()).digest()
    except OSError:  # it was there when the code was made
        return bytes(_DIGEST_BYTES)


def _file_of(module: str) -> str | None:
    path = module.replace(".", "/")
    return next((name for name in (f"{path}.py", f"{path}/__init__.py") if (DIRECTORY / name).is_file()), None)


@cache
def _imports(path: str) -> tuple[str, ...]:
    """Modules of `gristmill.kernels` that a file imports, anywhere in it, without that name in front."""
    import ast  # few processes need it

    tree = ast.parse((DIRECTORY / path).read_bytes())
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]  # a module, perhaps
    return tuple(name.removeprefix(f"{PACKAGE}.") for name in names if name.startswith(f"{PACKAGE}."))
