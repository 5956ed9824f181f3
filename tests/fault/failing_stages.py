"""Forty stages that fail on everything, each in its own way. Each row: what it does, and what the error must say."""

import ctypes
import errno
import os
import signal
import sys
from dataclasses import dataclass

from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch


class Unsayable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Unpicklable(Exception):
    def __reduce__(self):
        raise TypeError("cannot be sent")


class OfItsOwn(BaseException):
    pass


def raising(make):
    def act(task):
        raise make()

    return act


def returning(make):
    return lambda task: make()


def _imports(task):
    import a_package_nobody_has  # noqa: F401


def _names(task):
    return a_name_nobody_defined  # noqa: F821


def _recursion(task):
    return _recursion(task)


def _forks(task):
    if os.fork() == 0:
        os._exit(0)
    os._exit(7)


def _kills(number):
    return lambda task: os.kill(os.getpid(), number)


def _yields_then_raises(task):
    yield task
    raise ValueError("after the first")


def _yields_numbers(task):
    yield 1


WAYS = {
    "value_error": (raising(lambda: ValueError("bad value")), "ValueError: bad value"),
    "import_error": (_imports, "ModuleNotFoundError: No module named 'a_package_nobody_has'"),
    "name_error": (_names, "NameError: name 'a_name_nobody_defined'"),
    "key_error": (raising(lambda: KeyError("text")), "KeyError: 'text'"),
    "attribute_error": (raising(lambda: AttributeError("no such thing")), "AttributeError: no such thing"),
    "type_error": (raising(lambda: TypeError("not that type")), "TypeError: not that type"),
    "assertion_error": (raising(lambda: AssertionError("must hold")), "AssertionError: must hold"),
    "recursion_error": (_recursion, "RecursionError"),
    "memory_error": (raising(MemoryError), "MemoryError"),
    "stop_iteration": (raising(lambda: StopIteration("over")), "StopIteration: over"),
    "exception_group": (
        raising(lambda: ExceptionGroup("both", [ValueError("1"), KeyError("2")])),
        "ExceptionGroup: both",
    ),
    "unicode_error": (raising(lambda: UnicodeError("odd text")), "UnicodeError: odd text"),
    "own_file_missing": (raising(lambda: FileNotFoundError(errno.ENOENT, "No model", "model.bin")), "No model"),
    "connection_refused": (raising(lambda: ConnectionRefusedError("nobody there")), "nobody there"),
    "timeout": (raising(lambda: TimeoutError("too slow")), "TimeoutError: too slow"),
    "without_words": (raising(Unsayable), "Unsayable"),
    "cannot_be_pickled": (raising(lambda: Unpicklable("stays here")), "Unpicklable: stays here"),
    "huge_text": (raising(lambda: ValueError("x" * 1_000_000)), "ValueError: xxx"),
    "binary_text": (raising(lambda: ValueError("\x00\udcff")), "ValueError"),
    "disk_full": (raising(lambda: OSError(errno.ENOSPC, "No space left on device")), "No space left on device"),
    "disk_error": (raising(lambda: OSError(errno.EIO, "Input/output error")), "Input/output error"),
    "read_only": (raising(lambda: OSError(errno.EROFS, "Read-only file system")), "Read-only file system"),
    "returns_a_number": (returning(lambda: 7), "got 7"),
    "returns_a_text": (returning(lambda: "x"), "got 'x'"),
    "returns_numbers": (returning(lambda: [1, 2]), "got 1"),
    "returns_a_dict": (returning(lambda: {"text": 1}), "got {'text': 1}"),
    "returns_a_class": (returning(lambda: DocumentBatch), "DocumentBatch"),
    "yields_numbers": (_yields_numbers, "got 1"),
    "yields_then_raises": (_yields_then_raises, "ValueError: after the first"),
    "keyboard_interrupt": (raising(KeyboardInterrupt), "exit code 1"),
    "system_exit": (raising(lambda: SystemExit(3)), "exit code 1"),
    "base_exception": (raising(OfItsOwn), "exit code 1"),
    "exit_0": (lambda task: os._exit(0), "exit code 0"),
    "exit_1": (lambda task: os._exit(1), "exit code 1"),
    "forks_and_exits": (_forks, "exit code 7"),
    "abort": (lambda task: os.abort(), "SIGABRT"),
    "segfault": (lambda task: ctypes.string_at(0), "SIGSEGV"),
    "sigkill": (_kills(signal.SIGKILL), "SIGKILL"),
    "sigterm": (_kills(signal.SIGTERM), "SIGTERM"),
    "closes_descriptors": (lambda task: os.closerange(3, 1024), "exit code 1"),
}


@dataclass
class FailsBy(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Does what its way says to every batch it is given."""

    way: str = "value_error"
    name: str = "fails_by"

    def process(self, task):
        made = WAYS[self.way][0](task)
        return task if made is None else made


@dataclass
class FailsToStart(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Fails before it has seen a document."""

    way: str = "setup"
    name: str = "fails_to_start"

    def __post_init__(self):
        self.made_in = os.getpid()

    def wants_node_setup(self):
        return self.way == "node"

    def setup_on_node(self, node_info=None, worker_metadata=None):
        raise OSError("no model on this node")

    def before_fork(self):
        if self.way == "before_fork":
            raise ImportError("no library")

    def setup(self, worker_metadata=None):
        if self.way == "setup":
            raise RuntimeError("no licence")
        if self.way == "setup_exits":
            sys.exit(4)

    def __setstate__(self, state):
        if state["way"] == "unpickle" and state["made_in"] != os.getpid():
            raise ValueError("cannot be made again")
        self.__dict__.update(state)

    def process(self, task):
        return task


STARTS = {
    "setup": "RuntimeError: no licence",
    "setup_exits": "exit code 1",
    "node": "no model on this node",
    "before_fork": "ImportError: no library",
    "unpickle": "ValueError: cannot be made again",
}
