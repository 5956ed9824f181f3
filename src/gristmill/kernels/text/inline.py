"""`inline`: marks the parts kernels are made of. What it decorates can be called from compiled code only."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def inline(function: F) -> F:
    """Make a function callable from a kernel; LLVM puts it where it is called."""
    return cast("F", njit(nogil=True, error_model="numpy", forceinline=True)(function))
