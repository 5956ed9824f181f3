"""Each row of the table in `engine/faults.py`, and what wrapping an error does to it."""

import errno

import pytest

from gristmill.engine.faults import Fault, fault_of
from gristmill.errors import EngineBug, InputChanged, MachineError, ReadError


def wrapped(outer, inner):
    try:
        raise outer from inner
    except type(outer) as error:
        return error


@pytest.mark.parametrize(
    ("error", "writes", "fault"),
    [
        (ValueError("x"), False, Fault.DOCUMENT),
        (ValueError("x"), True, Fault.DOCUMENT),  # a document that cannot be encoded
        (FileNotFoundError(errno.ENOENT, "a dictionary of the stage's own"), False, Fault.DOCUMENT),
        (OSError(errno.ENOSPC, "full"), False, Fault.MACHINE),
        (OSError(errno.EDQUOT, "quota"), False, Fault.MACHINE),
        (OSError(errno.EIO, "broken"), False, Fault.MACHINE),
        (OSError(errno.EMFILE, "files"), False, Fault.MACHINE),
        (OSError(errno.ESTALE, "stale"), True, Fault.MACHINE),
        (OSError(errno.EROFS, "read-only"), False, Fault.MACHINE_FINAL),
        (OSError(errno.EFBIG, "too large"), True, Fault.MACHINE_FINAL),
        (FileNotFoundError(errno.ENOENT, "staging is gone"), True, Fault.MACHINE_FINAL),
        (PermissionError(errno.EACCES, "no"), True, Fault.MACHINE_FINAL),
        (OSError("a store says slow down"), True, Fault.MACHINE),
        (TimeoutError("a store"), True, Fault.MACHINE),
        (ReadError("not JSON"), False, Fault.DOCUMENT),
        (wrapped(ReadError("cannot read"), OSError(errno.EIO, "broken")), False, Fault.MACHINE),
        (wrapped(RuntimeError("mine"), OSError(errno.ENOSPC, "full")), False, Fault.MACHINE),
        (EngineBug("a kernel was given too short an array"), False, Fault.BUG),
        (wrapped(ValueError("in my stage"), EngineBug("a kernel")), True, Fault.BUG),
        (InputChanged("grew"), False, Fault.INPUT),
        (wrapped(ValueError("in my reader"), InputChanged("grew")), False, Fault.INPUT),
        (MachineError("ledger"), False, Fault.MACHINE),
        (wrapped(MachineError("ledger"), OSError(errno.EROFS, "read-only")), False, Fault.MACHINE_FINAL),
    ],
)
def test_an_error_is_sorted_by_what_it_says_and_where_it_comes_from(error, writes, fault):
    assert fault_of(error, writes=writes) is fault


def test_what_a_stage_declares_transient_is_that_even_in_a_writer():
    assert fault_of(ConnectionError("away"), writes=True, transient=(ConnectionError,)) is Fault.TRANSIENT


def test_an_error_that_was_dealt_with_before_does_not_count():
    error = ValueError("another matter")
    error.__context__ = OSError(errno.ENOSPC, "full")

    assert fault_of(error, writes=False) is Fault.DOCUMENT


def test_a_chain_of_causes_that_is_a_circle_comes_to_an_end():
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one

    assert fault_of(one, writes=False) is Fault.DOCUMENT
