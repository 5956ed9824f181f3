"""Whose fault is it? What a stage raises is sorted here, and nowhere else, before anything acts on it.

| fault         | for example                                          | what follows                                 |
|---------------|------------------------------------------------------|----------------------------------------------|
| DOCUMENT      | an exception some documents cause and others do not  | isolated, quarantined; the run goes on       |
| TRANSIENT     | what a stage declares as such: a server that is away | tried again, with pauses; then as DOCUMENT   |
| MACHINE       | disk full, input/output error, a store that is slow  | tried again, with pauses; then the run stops |
| MACHINE_FINAL | disk read-only, directory gone, access refused, a    | the run stops                                |
|               | server that refuses every request                    |                                              |
| INPUT         | a file that is not the one that was planned          | its partition is left out; the rest is done  |
| PROGRAM       | a stage that lets no document of a batch pass        | the run stops, if none has passed elsewhere  |
| LIMIT         | more of one batch fail than `max_quarantined` allows | the run stops                                |
| SPENDING      | requests have cost `max_total_cost`                  | the run stops; what is under way is finished |
| BUG           | gristmill contradicts itself: EngineBug              | the run stops                                |

A machine's error never quarantines a document and never commits a partition: the next run does what this one could not.
An OSError of a writer is the machine's whatever its errno: no document decides whether a file can be written. Nor does
a document decide whether our own arithmetic holds: what has contradicted itself once is not trusted with the rest.
"""

import errno
from collections.abc import Iterator
from enum import Enum

from gristmill.errors import EngineBug, InputChanged, MachineError, ServerRefused, SpendingLimit


class Fault(Enum):
    """The kinds of failure, as they travel from a worker to the scheduler."""

    DOCUMENT = "document"
    TRANSIENT = "transient"
    MACHINE = "machine"
    MACHINE_FINAL = "machine_final"
    INPUT = "input"
    PROGRAM = "program"
    LIMIT = "limit"
    SPENDING = "spending"
    BUG = "bug"


# Error numbers that mean the same about the machine wherever they come from, a user's own stage included.
_MACHINES = {
    getattr(errno, name)
    for name in (
        "ENOSPC",
        "EDQUOT",
        "EROFS",
        "EIO",
        "EMFILE",
        "ENFILE",
        "ESTALE",
        "EFBIG",
        "ENXIO",
        "ENODEV",
        "EUCLEAN",
    )
    if hasattr(errno, name)
}
# Waiting does not help against these. Anything else may pass: room is made, a mount comes back, a store recovers.
_FINAL = {
    errno.EROFS,
    errno.EFBIG,
    errno.EACCES,
    errno.EPERM,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
}
# Errors of our own code, whatever a stage has wrapped them in.
_OUR_OWN = {EngineBug: Fault.BUG, InputChanged: Fault.INPUT, SpendingLimit: Fault.SPENDING}
FAILED_DOCUMENTS = 100  # of a stage that none has passed: it is broken
_DEPTH = 8  # causes followed: an error may have been wrapped by code that knew the file


def fault_of(error: BaseException, *, writes: bool, transient: tuple[type[BaseException], ...] = ()) -> Fault:
    """Return whose fault an exception is. `writes`: it comes from a stage that writes the run's output."""
    for each in _causes(error):
        for kind, fault in _OUR_OWN.items():
            if isinstance(each, kind):
                return fault
        if isinstance(each, MachineError):  # of the run's own files: a stage cannot declare those transient
            return _of_machine(each)
    if isinstance(error, tuple(transient)):
        return Fault.TRANSIENT
    for each in _causes(error):
        if isinstance(each, OSError) and (each.errno in _MACHINES or writes):
            return _of_machine(each)
    return Fault.DOCUMENT


def _of_machine(error: OSError) -> Fault:
    if isinstance(error, ServerRefused):
        return Fault.MACHINE_FINAL
    numbers = [each.errno for each in _causes(error) if isinstance(each, OSError) and each.errno is not None]
    return Fault.MACHINE_FINAL if numbers and numbers[0] in _FINAL else Fault.MACHINE


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what it was raised from. Not its context: that may be an error already dealt with."""
    each: BaseException | None = error
    for _ in range(_DEPTH):
        if each is None:
            return
        yield each
        each = each.__cause__
