"""`CompiledKernel`: a function of `gristmill.kernels`, as machine code.

The code comes with the package (`kernel_sets.py`). Where it does not fit, because the sources or the kind of machine
differ, the first process on a machine that needs a kernel loads numba and compiles it, those that ask for the same
kernel meanwhile wait, and later ones find it in the user's cache. Loading machine code takes a tenth of a second once
and a millisecond per kernel.
"""

import contextlib
import ctypes
import hashlib
import importlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ConfigError, EngineBug, nearest
from gristmill.kernels.object_code import TOO_SHORT, Compiled, ObjectCode, compile_function, link, signature_of
from gristmill.kernels.targets import Target, host_targets, known_targets
from gristmill.stages.kernel_sets import PACKAGE, SUFFIX, NoCode, digest_of, shipped, sources_of
from gristmill.storage.byte_cache import cached_bytes, is_cached

KERNELS_VARIABLE = "GRISTMILL_KERNELS"  # a target's name, or:
COMPILE = "compile"  # as if nothing had come with the package
# Called by modules that a worker imports when it has something to count, and by then it is too late to compile.
_COUNTING = ("tally.count_measures",)
_Number = TypeVar("_Number", bound=np.generic)


class Fixed(Generic[_Number]):
    """An array that is passed again and again, such as room for results: its address is looked up once."""

    __slots__ = ("address", "array", "dtype", "size")

    def __init__(self, array: NDArray[_Number]) -> None:
        self.array = array  # which keeps the memory where it is
        self.dtype, self.size, self.address = array.dtype, array.size, _address(array)


Argument = NDArray[Any] | Fixed[Any] | int
# The kernels that modules imported here call. To search the modules for them would copy, in a worker, a thousand pages
# shared with the fork server: looking at an object counts a reference to it.
_named: set[str] = set()


class CompiledKernel:
    """A kernel by its module and name: `CompiledKernel("text.words", "count_words")`.

    Arguments are contiguous arrays and integers; an array arrives as a pointer with its length, which the kernel checks
    before it begins. Other threads go on meanwhile.
    """

    def __init__(self, module: str, function: str) -> None:
        self.full_name = f"{module}.{function}"
        self.name = function
        _named.add(self.full_name)

    def __call__(self, *arguments: Argument) -> int:
        kernel, checked, takes, kinds = _load(self.full_name, _wish())
        # Characters, not names: numpy takes longer to name a type than many a kernel to run.
        if kinds != tuple(["" if isinstance(given, int) else given.dtype.char for given in arguments]):
            got = tuple(["int64" if isinstance(given, int) else f"{given.dtype}*" for given in arguments])
            if got != takes:
                raise EngineBug(f"{self.name}: expected {', '.join(takes)}; got {', '.join(got)}")
        passed: list[int] = []
        for given in arguments:
            if isinstance(given, int):
                passed.append(given)
            else:
                passed += (given.address if isinstance(given, Fixed) else _address(given), given.size)
        result = kernel(*passed)
        if result < TOO_SHORT + len(checked):
            shapes = [given if isinstance(given, int) else given.size for given in arguments]
            raise EngineBug(f"{self.name}: expected a longer array for {checked[result - TOO_SHORT]!r}; got {shapes}")
        return result


def _address(array: NDArray[Any]) -> int:
    flags = array.flags
    if flags.carray and array.size:  # a fifth of what asking numpy takes
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]  # it is a buffer
    if not flags.c_contiguous:
        raise ValueError(f"CompiledKernel: expected contiguous arrays; got strides {array.strides}")
    return array.ctypes.data


class _Loaded(NamedTuple):
    run: Compiled
    checked: tuple[str, ...]
    takes: tuple[str, ...]
    kinds: tuple[str, ...]  # the same, as numpy's characters


@cache
def _load(name: str, wish: str) -> _Loaded:
    made = _shipped_code(name, fitting_targets() if wish != COMPILE else ()) or compiled_here(name)
    kinds = tuple("" if kind == "int64" else np.dtype(kind.removesuffix("*")).char for kind in made.takes)
    return _Loaded(link(made), made.checked, made.takes, kinds)


def _shipped_code(name: str, targets: Iterable[Target]) -> ObjectCode | None:
    for target in targets:
        with contextlib.suppress(NoCode):
            return _trusted_code(name, target)
    return None


def _trusted_code(name: str, target: Target) -> ObjectCode:
    code = shipped(target.name).code(name)
    if target.is_untried and not _runs_here(target.name):
        raise NoCode(f"{target.name}{SUFFIX} was tried and does not run here")
    return code


@cache
def _runs_here(target: str) -> bool:
    """Whether code that was never run before runs on this machine: found out once, and remembered."""
    import llvmlite

    from gristmill.stages import kernel_compiler

    file = shipped(target)

    def make() -> bytes:
        return b"runs" if kernel_compiler.try_set(file.path, target) else b"does not run"

    return cached_bytes(f"trial\n{llvmlite.__version__}\n{file.digest.hex()}", make) == b"runs"


def prepare_kernels(package: str) -> None:
    """Do, once, what loading the kernels of a package needs, so that processes forked from this one need not."""
    fitting_targets()  # which loads the library that links code: 0.08 s in every worker otherwise
    for target in known_targets():
        for name in shipped(target.name).contents.kernels:  # which reads the list
            if name.startswith(f"{package}."):
                why_missing(name)  # which reads the sources


def compile_missing(tell: Callable[[str], None]) -> None:
    """Compile what `missing_kernels` finds, and say so first. If nothing is missing, it takes a millisecond."""
    missing = missing_kernels()
    if missing:
        from gristmill.stages.kernel_compiler import compile_kernels  # few processes have to

        compile_kernels(missing, tell)


def missing_kernels() -> dict[str, str]:
    """Return which of the kernels that modules imported here call will have to be compiled, and why."""
    return {name: why for name in sorted(_named.union(_COUNTING)) if (why := why_missing(name))}


# Which code


def _wish() -> str:
    """What the user wants: the name of a target, `COMPILE`, or "" for what is best here."""
    wish = os.environ.get(KERNELS_VARIABLE, "")
    names = [COMPILE, *(target.name for target in known_targets())] if wish else [""]
    if wish not in names:
        expected = ", ".join(names)
        raise ConfigError(f"{KERNELS_VARIABLE}: expected one of {expected}; got {wish!r}{nearest(wish, names)}")
    return wish


def fitting_targets() -> tuple[Target, ...]:
    """Return the targets to take code for, the best first."""
    wish = _wish()
    fitting = tuple(target for target in host_targets() if wish in ("", COMPILE, target.name))
    if not fitting:
        able = ", ".join(target.name for target in host_targets())
        raise ConfigError(f"{KERNELS_VARIABLE}: expected code that this machine can run ({able}); got {wish!r}")
    return fitting


def compiled_here(name: str) -> ObjectCode:
    """Return the code of a kernel from the user's cache; what is not there is compiled now."""

    def make() -> bytes:
        module, _, function = name.rpartition(".")
        compiled = getattr(importlib.import_module(f"{PACKAGE}.{module}"), function)
        [made] = compile_function(compiled, signature_of(compiled), fitting_targets()[:1])
        return msgspec.msgpack.encode(made)

    return msgspec.msgpack.decode(cached_bytes(_key(name), make), type=ObjectCode)


def why_missing(name: str) -> str:
    """Why a kernel will have to be compiled before it is used; "" if it is there. Loads no library if it is."""
    wish = _wish()
    reasons = []
    for target in known_targets():
        if wish in ("", target.name):
            try:
                _trusted_code(name, target)
            except NoCode as problem:
                reasons.append(str(problem))
            else:
                return ""
    if is_cached(_key(name)):
        return ""
    return reasons[0] if reasons else f"{KERNELS_VARIABLE}={wish}" if wish else "none is built for this kind of machine"


def _key(name: str) -> str:
    """What the code of a kernel depends on."""
    import llvmlite

    sources = digest_of(sources_of(name.rpartition(".")[0])).hex()
    return "\n".join([name, repr(fitting_targets()[0]), llvmlite.__version__, *ObjectCode._fields, sources])


@cache
def source_digest(package: str) -> str:
    """A hash of the modules of a package: a kernel may be made of parts of any of them."""
    from importlib.resources import files  # 30 ms, which a process without kernels need not pay

    digest = hashlib.sha256()
    for path in sorted(files(package).iterdir(), key=lambda item: item.name):
        if path.name.endswith(".py"):
            digest.update(path.read_bytes())
    return digest.hexdigest()
