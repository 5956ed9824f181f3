"""`inline` and `part`: mark the parts kernels are made of. Only compiled code can call what they decorate."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])

# Nothing but kernels calls these functions: leaving out the ways to call them from Python and C saves a third of the
# time that compiling takes.
_OPTIONS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "no_rewrites": True}


def inline(function: F) -> F:
    """Make a function callable from a kernel; LLVM inlines it where it is called."""
    return cast("F", njit(nogil=True, error_model="numpy", forceinline=True, **_OPTIONS)(function))


def part(function: F) -> F:
    """Make a function callable from a kernel; it stays a function unless it is short.

    For code that is long, called from several places and not run for every byte: inlined, it would be compiled once
    per call.
    """
    return cast("F", njit(nogil=True, error_model="numpy", **_OPTIONS)(function))
