"""Crumbs: where a worker is, written where it can be read when the worker is gone."""

import struct

from gristmill.engine.events import Crumb
from gristmill.engine.plan import Group

CRUMB = struct.Struct("=iiii")  # method, stage, first row, end row
METHODS = ("process", "setup", "teardown")
NO_CRUMB = CRUMB.pack(0, -1, 0, 0)


def method_crumb(method: str, stage: int) -> bytes:
    """What a worker leaves that enters a method which sees no documents."""
    return CRUMB.pack(METHODS.index(method), stage, 0, 0)


def read_crumb(block: bytes | memoryview) -> Crumb | None:
    """Return which documents the worker was at; None if it was at none."""
    method, stage, first, end = CRUMB.unpack_from(block, 0)
    return Crumb(stage, first, end) if stage >= 0 and METHODS[method] == "process" else None


def place_of(block: bytes | memoryview, group: Group) -> str:
    """In which stage and document a worker is, or was, for a message: "" if it was in none."""
    method, stage, first, end = CRUMB.unpack_from(block, 0)
    if stage < 0:
        return ""
    if METHODS[method] != "process":
        return f"in {METHODS[method]} of stage {group.names[stage]}"
    document = f"document {first}" if end - first == 1 else f"one of {end - first} documents"
    return f"in stage {group.names[stage]}, {document}"
