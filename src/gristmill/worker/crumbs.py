"""Crumbs: where a worker is, written where it can be read when the worker is gone.

A block has room for one crumb a lane. With several calls under way it is unclear which of them a death is about, so
their crumbs say how many there were; the one that matters is that of a call that runs alone (`engine/dispatch.py`).
"""

import struct

from gristmill.engine.events import Crumb
from gristmill.engine.plan import Group

CRUMB = struct.Struct("=iiiii")  # method, stage, first row, end row, turn
COMPILING = "compiling"
METHODS = ("process", "setup", "teardown", COMPILING)
NO_CRUMB = CRUMB.pack(0, -1, 0, 0, 0)

NOTE_BYTES = 256  # behind the crumbs: which document it is, once there was time to find out (`silence.py`)

Left = tuple[int, int, int, int, int]


def empty_block(lanes: int = 1) -> bytes:
    """The block of a worker that has left no crumb."""
    return NO_CRUMB * lanes + bytes(NOTE_BYTES)


def write_note(block: memoryview, note: str) -> None:
    """Leave a note behind the crumbs, or remove the one that is there."""
    if len(block) < CRUMB.size + NOTE_BYTES:
        return  # it has no room for one
    said = note.encode("utf-8", "replace")[:NOTE_BYTES]
    block[len(block) - NOTE_BYTES : len(block)] = said.ljust(NOTE_BYTES, b"\0")


def _note(block: bytes | memoryview) -> str:
    return bytes(block[len(block) - NOTE_BYTES :]).rstrip(b"\0").decode("utf-8", "replace")


def method_crumb(method: str, stage: int) -> bytes:
    """The crumb a worker leaves on entering a method that sees no documents."""
    return CRUMB.pack(METHODS.index(method), stage, 0, 0, 0)


def _left(block: bytes | memoryview) -> list[Left]:
    end = max(0, len(block) - NOTE_BYTES)
    whole = end - end % CRUMB.size  # a file may have been cut with its machine
    return [crumb for crumb in CRUMB.iter_unpack(block[:whole]) if crumb[1] >= 0]


def read_crumb(block: bytes | memoryview) -> Crumb | None:
    """Return which documents the worker was at; None if it was at none, or at several things at once."""
    left = _left(block)
    if len(left) != 1:
        return None
    method, stage, first, end, turn = left[0]
    return Crumb(stage, first, end, turn) if METHODS[method] == "process" else None


def place_of(block: bytes | memoryview, group: Group) -> str:
    """In which stage and document a worker is, or was, for a message: "" if it was in none."""
    left = _left(block)
    if not left:
        return ""
    method, stage, first, end, _ = left[0]
    if METHODS[method] == COMPILING:
        return "compiling kernels, once for this machine"
    if METHODS[method] != "process":
        return f"in {METHODS[method]} of stage {group.names[stage]}"
    if len(left) > 1:
        return f"in stage {group.names[stage]}, {len(left)} calls under way"
    document = _note(block) or (f"document {first}" if end - first == 1 else f"one of {end - first} documents")
    return f"in stage {group.names[stage]}, {document}"
