"""The size of batches follows what does not fit, on a device that only pretends."""

import numpy as np
import pytest

from gristmill.models.batch_runner import run_batches
from gristmill.models.memory_limits import FORGET_S, GOOD_BATCHES, MemoryLimits, is_out_of_memory
from gristmill.testing.tiny_models import FakeRuntime


def tokens(rows, length=4):
    return np.ones(rows * length, np.int32), np.arange(rows + 1) * length


def run(runtime, limits, rows, now=0.0):
    return list(run_batches(runtime, *tokens(rows), limits, clock=lambda: now))


def test_out_of_memory_above_sixteen_rows_costs_no_row_and_settles_at_sixteen():
    runtime, limits = FakeRuntime(max_rows=16), MemoryLimits(max_rows=256, max_tokens=65_536)
    answers = run(runtime, limits, 1000)

    assert sorted(np.concatenate([answer.rows for answer in answers]).tolist()) == list(range(1000))
    assert all(answer.outputs is not None for answer in answers)
    assert limits.rows == 16
    assert limits.failures == len(runtime.failed) == 4  # 256, 128, 64, 32
    run(runtime, limits, 5000)
    assert limits.rows == 16
    assert limits.failures == 4


def test_rows_keep_their_order_without_sorting_through_a_failure():
    runtime, limits = FakeRuntime(max_rows=3), MemoryLimits(max_rows=8, max_tokens=1000)
    answers = list(run_batches(runtime, *tokens(20), limits, sort=False))

    assert np.concatenate([answer.rows for answer in answers]).tolist() == list(range(20))


def test_a_batch_smaller_than_allowed_is_not_tried_again_as_it_is():
    runtime, limits = FakeRuntime(max_rows=16), MemoryLimits(max_rows=256, max_tokens=65_536)
    run(runtime, limits, 20)

    assert runtime.failed == [(20, 4)]
    assert limits.rows == 16


def test_a_row_that_does_not_fit_alone_is_handed_back_and_the_others_are_not():
    runtime, limits = FakeRuntime(max_tokens=50), MemoryLimits(max_rows=8, max_tokens=1000)
    offsets = np.array([0, 10, 110, 120])  # the second has 100 tokens
    answers = list(run_batches(runtime, np.ones(120, np.int32), offsets, limits))

    assert [answer.rows.tolist() for answer in answers if answer.outputs is None] == [[1]]
    assert sorted(row for answer in answers if answer.outputs is not None for row in answer.rows) == [0, 2]


def test_a_single_row_that_fails_does_not_make_later_batches_smaller():
    limits = MemoryLimits(max_rows=8, max_tokens=1000)

    assert not limits.failed(1, 700, now=0)
    assert (limits.rows, limits.tokens, limits.failures) == (8, 1000, 1)


def test_size_grows_again_below_what_failed_and_beyond_it_after_a_while():
    limits = MemoryLimits(max_rows=64, max_tokens=10**6)
    limits.failed(64, 10, now=0)
    limits.failed(32, 10, now=0)
    limits.failed(16, 10, now=0)
    assert limits.rows == 8

    for _ in range(3 * GOOD_BATCHES):
        limits.succeeded(now=1)
    assert limits.rows == 8  # sixteen has failed

    for _ in range(GOOD_BATCHES):
        limits.succeeded(now=FORGET_S)
    assert limits.rows == 16
    for _ in range(10 * GOOD_BATCHES):
        limits.succeeded(now=FORGET_S)
    assert limits.rows == 64


def test_the_ceiling_is_forgotten_once_for_each_attempt():
    limits = MemoryLimits(max_rows=64, max_tokens=10**6)
    limits.failed(64, 10, now=0)
    for _ in range(GOOD_BATCHES):
        limits.succeeded(now=FORGET_S)
    assert limits.rows == 64
    limits.failed(64, 10, now=FORGET_S + 1)
    assert limits.rows == 32
    for _ in range(5 * GOOD_BATCHES):
        limits.succeeded(now=FORGET_S + 2)
    assert limits.rows == 32


def test_growth_waits_for_good_batches_in_a_row():
    limits = MemoryLimits(max_rows=64, max_tokens=10**6)
    limits.begin_at(rows=8)
    for _ in range(GOOD_BATCHES - 1):
        limits.succeeded(now=0)
    assert limits.rows == 8
    limits.succeeded(now=0)
    assert limits.rows == 16


@pytest.mark.parametrize(("learnt", "rows"), [(16.0, 16), (1000.0, 256), (0.0, 1), (None, 256)])
def test_a_worker_begins_at_what_others_have_learnt(learnt, rows):
    limits = MemoryLimits(max_rows=256, max_tokens=1024)
    limits.begin_at(rows=learnt)

    assert limits.rows == rows


def test_a_worker_begins_at_half_for_every_one_that_was_killed_and_stays_below_what_killed_it():
    limits = MemoryLimits(max_rows=256, max_tokens=1024)
    limits.begin_at(rows=64, deaths=2, now=100.0)

    assert (limits.rows, limits.tokens) == (16, 256)
    for _ in range(9 * GOOD_BATCHES):
        limits.succeeded(now=101.0)
    assert (limits.rows, limits.tokens) == (16, 256)
    for _ in range(GOOD_BATCHES):
        limits.succeeded(now=100.0 + FORGET_S)
    assert (limits.rows, limits.tokens) == (32, 512)


def test_nothing_is_smaller_than_a_row():
    limits = MemoryLimits(max_rows=4, max_tokens=4)
    limits.begin_at(deaths=9)

    assert (limits.rows, limits.tokens) == (1, 1)


def calls(runtime, limits, lengths):
    """How often a runtime is asked about rows of these lengths, what did not fit included."""
    before = len(runtime.shapes) + len(runtime.failed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    answers = run_batches(runtime, np.ones(offsets[-1], np.int32), offsets, limits, clock=lambda: 0.0)
    assert sorted(row for answer in answers for row in answer.rows) == list(range(len(lengths)))
    return len(runtime.shapes) + len(runtime.failed) - before


@pytest.mark.parametrize(("fits", "short_rows"), [({"max_tokens": 1000}, 64), ({"max_rows": 16}, 16)])
def test_long_rows_that_do_not_fit_leave_batches_of_short_ones_large(fits, short_rows):
    """The rows are not blamed for the tokens of the long ones, nor the tokens for the number of short rows."""
    runtime, limits = FakeRuntime(**fits), MemoryLimits(max_rows=256, max_tokens=65_536)
    for _ in range(3):
        calls(runtime, limits, [10] * 300 + [400] * 50)
    failures = len(runtime.failed)

    assert calls(runtime, limits, [10] * 300) <= -(-300 // short_rows)
    assert calls(runtime, limits, [400] * 50) <= 25
    assert len(runtime.failed) == failures


def test_memory_that_somebody_else_has_taken_is_no_riddle():
    runtime, limits = FakeRuntime(), MemoryLimits(max_rows=256, max_tokens=65_536)
    calls(runtime, limits, [10] * 300)
    runtime.max_rows = 4

    assert calls(runtime, limits, [10] * 300) < 90
    assert limits.rows == 4


def _named(name, base=Exception):
    return type(name, (base,), {})


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (_named("OutOfMemoryError", RuntimeError)("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory"),
            True,
        ),
        (RuntimeError("MPS backend out of memory (MPS allocated: 8 GB)"), True),
        (
            _named("Fail")("[ONNXRuntimeError] : 1 : FAIL : Failed to allocate memory for requested buffer of size 9"),
            True,
        ),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (_named("Fail")("[ONNXRuntimeError] : 1 : FAIL : Type Error"), False),
        (ValueError("Failed to allocate memory"), False),
    ],
    ids=["memory", "cuda", "torch-cpu", "mps", "onnx", "torch-other", "onnx-other", "value"],
)
def test_out_of_memory_is_told_from_other_errors(error, is_memory):
    assert is_out_of_memory(error) is is_memory
