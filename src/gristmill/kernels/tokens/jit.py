"""`jit`: compile a function of arrays when it is first called, and keep the machine code for the next process."""

from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile without the interpreter's lock; division follows numpy, so that no code for exceptions is needed."""
    return cast("F", njit(cache=True, nogil=True, error_model="numpy")(function))


def inline(function: F) -> F:
    """Compile into every caller: a call that hands tables over costs more than what most of these functions do."""
    return cast("F", njit(nogil=True, error_model="numpy", forceinline=True)(function))


@inline
def as_int(value: np.integer[np.typing.NBitBase]) -> int:
    """Return any integer as the one type used everywhere: for each other one, callees would be compiled again."""
    return np.int64(value)  # what an int is in compiled code
