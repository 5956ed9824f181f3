"""`CompiledKernel`: a function of `gristmill.kernels`, compiled when it is first called and kept for later processes.

Only the first process on a machine that calls a kernel loads numba and compiles; those that ask for the same kernel
meanwhile wait for it. The others load machine code, which takes a tenth of a second once and a millisecond a kernel.
"""

import hashlib
import importlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec
import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.object_code import Compiled, ObjectCode, compile_function, link, target_name
from gristmill.storage.byte_cache import cached_bytes

KERNELS = "gristmill.kernels"

Argument = NDArray[np.generic] | int


class CompiledKernel:
    """A kernel by its module and name: `CompiledKernel("text.words", "count_words")`.

    Arguments are contiguous arrays and integers; an array arrives as a pointer, without its length. Calls of other
    threads go on meanwhile.
    """

    def __init__(self, module: str, function: str) -> None:
        self._module = f"{KERNELS}.{module}"
        self._function = function

    def __call__(self, *arguments: Argument) -> int:
        signature = tuple("int64" if isinstance(given, int) else f"{given.dtype}*" for given in arguments)
        kernel = _load(self._module, self._function, signature)
        return kernel(*(given if isinstance(given, int) else _address(given) for given in arguments))


def _address(array: NDArray[np.generic]) -> int:
    if not array.flags.c_contiguous:
        raise ValueError(f"CompiledKernel: expected contiguous arrays; got strides {array.strides}")
    return array.ctypes.data


@cache
def _load(module: str, function: str, signature: tuple[str, ...]) -> Compiled:
    key = "\n".join([module, function, *signature, target_name(), _source_digest()])

    def make() -> bytes:
        made = compile_function(getattr(importlib.import_module(module), function), signature)
        return msgspec.msgpack.encode(made)

    return link(msgspec.msgpack.decode(cached_bytes(key, make), type=ObjectCode), signature)


@cache
def _source_digest() -> str:
    """A hash of all kernels: one may be made of parts of any other."""
    digest = hashlib.sha256()
    for path in _sources(files(KERNELS)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(folder: Traversable) -> list[Traversable]:
    inside = sorted(folder.iterdir(), key=lambda item: item.name)
    here = [item for item in inside if item.name.endswith(".py")]
    return here + [path for item in inside if item.is_dir() for path in _sources(item)]
