"""`compiled`: marks a kernel. It is compiled when first called, without the interpreter's lock, and kept on disk."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Make machine code of a function of arrays and numbers."""
    return cast("F", njit(nogil=True, cache=True)(function))
