"""Crumbs: where a worker is, written where it can be read when the worker is gone."""

import struct

from gristmill.engine.events import Crumb
from gristmill.engine.plan import Group

CRUMB = struct.Struct("=qiii")  # task, stage, first row, end row
NO_CRUMB = CRUMB.pack(-1, -1, 0, 0)


def read_crumb(block: bytes | memoryview) -> Crumb | None:
    """Return what the worker has left; None if it was in no stage."""
    _, stage, first, end = CRUMB.unpack_from(block, 0)
    return None if stage < 0 else Crumb(stage, first, end)


def place_of(crumb: Crumb | None, group: Group) -> str:
    """In which stage and document a worker is, or was, for a message."""
    if crumb is None:
        return ""
    rows = crumb.end_row - crumb.first_row
    document = f"document {crumb.first_row}" if rows == 1 else f"one of {rows} documents"
    return f" (in stage {group.names[crumb.stage]}, {document})"
