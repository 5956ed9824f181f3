"""Machine code does what its function does, and code that would call what is not there is refused."""

import ctypes
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from gristmill.kernels.object_code import TOO_SHORT, compile_function, link, signature_of
from gristmill.kernels.targets import all_targets, host_targets
from gristmill.kernels.text.sizes import sized

pytestmark = pytest.mark.slow

SIGNATURE = ("int64*", "int64")


def made_of(function):
    [made] = compile_function(function, SIGNATURE, host_targets()[:1])
    return made


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
    run = link(made_of(sum_of_squares))

    assert run(numbers.ctypes.data, 3, 3) == 50
    assert run(numbers.ctypes.data, 3, 2) == 25
    assert run(numbers.ctypes.data, 3, 0) == 0


def test_a_function_without_a_result_changes_what_it_is_given():
    numbers = np.arange(1000, dtype=np.int64)
    link(made_of(clear))(numbers.ctypes.data, 1000, 999)

    assert numbers.nonzero()[0].tolist() == [999]


def test_a_length_is_checked_before_the_function_begins():
    @sized(values=lambda count: 2 * count)
    def fill(values, count) -> None:
        for place in range(2 * count):
            values[place] = 7

    made = made_of(fill)
    numbers = np.zeros(6, np.int64)
    run = link(made)

    assert made.checked == ("values",)
    assert run(numbers.ctypes.data, 5, 3) == TOO_SHORT
    assert not numbers.any()
    assert run(numbers.ctypes.data, 6, 3) == 0
    assert numbers.all()


def test_code_travels_as_bytes():
    made = made_of(sum_of_squares)
    again = type(made)(str(made.symbol), bytes(made.code), tuple(made.unused), tuple(made.checked), tuple(made.takes))
    number = ctypes.c_int64(7)

    assert link(again)(ctypes.addressof(number), 1, 1) == 49


def test_a_kernel_that_calls_a_library_is_refused():
    with pytest.raises(ValueError, match=r"^tangent: expected a kernel that calls no library; got \['tan'\]$"):
        made_of(tangent)


def test_code_is_made_for_other_machines_and_is_the_same_bytes_each_time():
    first, again = (compile_function(sum_of_squares, SIGNATURE, all_targets()) for _ in range(2))

    assert first == again
    assert [made.code[:4] for made in first] == [b"\x7fELF"] * 3 + [b"\xcf\xfa\xed\xfe"] * 2  # Linux, macOS
    assert len({made.code for made in first}) == len(first)


def test_every_target_this_machine_has_runs():
    numbers = np.array([3, -4], np.int64)
    for made in compile_function(sum_of_squares, SIGNATURE, host_targets()):
        assert link(made)(numbers.ctypes.data, 2, 2) == 25


def test_what_a_kernel_takes_is_read_from_its_annotations():
    def kernel(data: NDArray[np.uint8], count: int, limits: NDArray[np.float64]) -> None: ...

    assert signature_of(kernel) == ("uint8*", "int64", "float64*")
