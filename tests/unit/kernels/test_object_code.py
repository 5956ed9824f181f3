"""Machine code does what its function does, and code that would call what is not there is refused."""

import ctypes
import math

import numpy as np
import pytest

from gristmill.kernels.object_code import TOO_SHORT, compile_function, link, target_name
from gristmill.kernels.text.sizes import sized

pytestmark = pytest.mark.slow

SIGNATURE = ("int64*", "int64")


def sum_of_squares(values, count) -> int:
    total = 0
    for place in range(count):
        total += values[place] ** 2
    return total


def clear(values, count) -> None:
    for place in range(count):
        values[place] = 0


def tangent(values, count) -> int:
    return int(math.tan(values[0]) * count)


def test_a_function_runs_as_machine_code_and_gives_the_same():
    numbers = np.array([3, -4, 5], np.int64)
    run = link(compile_function(sum_of_squares, SIGNATURE), SIGNATURE)

    assert run(numbers.ctypes.data, 3, 3) == 50
    assert run(numbers.ctypes.data, 3, 2) == 25
    assert run(numbers.ctypes.data, 3, 0) == 0


def test_a_function_without_a_result_changes_what_it_is_given():
    numbers = np.arange(1000, dtype=np.int64)
    link(compile_function(clear, SIGNATURE), SIGNATURE)(numbers.ctypes.data, 1000, 999)

    assert numbers.nonzero()[0].tolist() == [999]


def test_a_length_is_checked_before_the_function_begins():
    @sized(values=lambda count: 2 * count)
    def fill(values, count) -> None:
        for place in range(2 * count):
            values[place] = 7

    made = compile_function(fill, SIGNATURE)
    numbers = np.zeros(6, np.int64)
    run = link(made, SIGNATURE)

    assert made.checked == ("values",)
    assert run(numbers.ctypes.data, 5, 3) == TOO_SHORT
    assert not numbers.any()
    assert run(numbers.ctypes.data, 6, 3) == 0
    assert numbers.all()


def test_code_travels_as_bytes():
    made = compile_function(sum_of_squares, SIGNATURE)
    again = type(made)(str(made.symbol), bytes(made.code), tuple(made.unused), tuple(made.checked))
    number = ctypes.c_int64(7)

    assert link(again, SIGNATURE)(ctypes.addressof(number), 1, 1) == 49


def test_a_kernel_that_calls_a_library_is_refused():
    with pytest.raises(ValueError, match=r"^tangent: expected a kernel that calls no library; got \['tan'\]$"):
        compile_function(tangent, SIGNATURE)


def test_the_target_names_processor_and_compiler():
    assert "llvmlite" in target_name()
    assert target_name() == target_name()
