"""`CompiledKernel`: a function of `gristmill.kernels`, compiled when it is first called and kept for later processes.

Only the first process on a machine that calls a kernel loads numba and compiles; those that ask for the same kernel
meanwhile wait for it. The others load machine code, which takes a tenth of a second once and a millisecond a kernel.
"""

import hashlib
import importlib
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from gristmill.errors import EngineBug
from gristmill.kernels.object_code import TOO_SHORT, Compiled, ObjectCode, compile_function, link, target_name
from gristmill.storage.byte_cache import cached_bytes

KERNELS = "gristmill.kernels"
TEXT_KERNELS = "gristmill.kernels.text"  # kernels of other packages may use its parts

Argument = NDArray[np.generic] | int


class CompiledKernel:
    """A kernel by its module and name: `CompiledKernel("text.words", "count_words")`.

    Arguments are contiguous arrays and integers; an array arrives as a pointer with its length, which the kernel checks
    before it begins. Calls of other threads go on meanwhile.
    """

    def __init__(self, module: str, function: str) -> None:
        self._module = f"{KERNELS}.{module}"
        self.name = function

    def __call__(self, *arguments: Argument) -> int:
        signature = tuple("int64" if isinstance(given, int) else f"{given.dtype}*" for given in arguments)
        kernel, checked = _load(self._module, self.name, signature)
        passed: list[int] = []
        for given in arguments:
            passed += [given] if isinstance(given, int) else [_address(given), given.size]
        result = kernel(*passed)
        if result < TOO_SHORT + len(checked):
            got = [given if isinstance(given, int) else given.shape for given in arguments]
            raise EngineBug(f"{self.name}: expected a longer array for {checked[result - TOO_SHORT]!r}; got {got}")
        return result


def _address(array: NDArray[np.generic]) -> int:
    if not array.flags.c_contiguous:
        raise ValueError(f"CompiledKernel: expected contiguous arrays; got strides {array.strides}")
    return array.ctypes.data


@cache
def _load(module: str, function: str, signature: tuple[str, ...]) -> tuple[Compiled, tuple[str, ...]]:
    key = "\n".join([module, function, *signature, *_origin(module.rpartition(".")[0])])

    def make() -> bytes:
        made = compile_function(getattr(importlib.import_module(module), function), signature)
        return msgspec.msgpack.encode(made)

    found = msgspec.msgpack.decode(cached_bytes(key, make), type=ObjectCode)
    return link(found, signature), found.checked


def prepare_kernels(package: str) -> None:
    """Do what loading the kernels of a package needs once, so that processes forked from this one need not."""
    _origin(f"{KERNELS}.{package}")


@cache
def _origin(package: str) -> tuple[str, ...]:
    """What the machine code of a package's kernels depends on, beside the kernel."""
    sources = [source_digest(name) for name in (KERNELS, TEXT_KERNELS, package)]  # the first says how it is compiled
    return target_name(), *ObjectCode._fields, *sources


@cache
def source_digest(package: str) -> str:
    """A hash of the modules of a package: a kernel may be made of parts of any of them."""
    from importlib.resources import files  # 30 ms, which a process without kernels need not pay

    digest = hashlib.sha256()
    for path in sorted(files(package).iterdir(), key=lambda item: item.name):
        if path.name.endswith(".py"):
            digest.update(path.read_bytes())
    return digest.hexdigest()
