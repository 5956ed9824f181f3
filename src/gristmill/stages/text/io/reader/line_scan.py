"""`scan_lines`: the documents of a block by one pass of a kernel, which also finds the fields that are wanted.

It takes what nearly all files are made of, and leaves every other block to `json_checks`: what that would find bad or
blank is never taken here.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.text.layout import BLOCK, TOO_MANY
from gristmill.stages.compiled_kernel import CompiledKernel
from gristmill.stages.io.line_blocks import Block
from gristmill.stages.text.io.reader.json_checks import holds_utf8, to_buffer
from gristmill.tasks.json_lines import FieldPlaces, JsonLines

_SAMPLE_BYTES = 1 << 18
_scan_objects = CompiledKernel("text.json_objects", "scan_objects")


def scan_lines(block: Block, find: Sequence[str]) -> JsonLines | None:
    """Return the documents with the places of their fields; None where something is not as it mostly is."""
    if len(block) < BLOCK or not holds_utf8(block):
        return None
    wanted = [name for name in dict.fromkeys(find) if not _needs_escapes(name)]
    most = _likely_lines(block)
    count, bounds, places = _scan(block, wanted, most)
    if count == TOO_MANY:
        count, bounds, places = _scan(block, wanted, len(block) // len(b"{}\n"))
    if count < 0:
        return None
    buffers = [None, pa.py_buffer(bounds[: count + 1].copy()), to_buffer(block)]
    values = pa.Array.from_buffers(pa.large_binary(), count, buffers)
    found = [FieldPlaces(name, *places[:, n, :count].copy()) for n, name in enumerate(wanted)]
    return JsonLines(values, places=tuple(found))


def _scan(block: Block, wanted: Sequence[str], most: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Return what the kernel returns, the bounds of lines, and int64[2, names, most] where values begin and end."""
    encoded = [name.encode() for name in wanted]
    name_bounds = np.cumsum([0, *map(len, encoded)])
    names = np.frombuffer(b"".join(encoded) or b" ", np.uint8)
    bounds = np.empty(most + 1, np.int64)
    places = np.empty((2, max(1, len(wanted)), most), np.int64)
    data = np.frombuffer(block, np.uint8)
    count = _scan_objects(data, len(data), names, name_bounds, len(wanted), most, bounds, places[0], places[1])
    return count, bounds, places


def _likely_lines(block: Block) -> int:
    """A number of lines that is mostly enough: twice as many as the beginning would have it."""
    sample = bytes(memoryview(block)[:_SAMPLE_BYTES])
    return 64 + 2 * sample.count(b"\n") * len(block) // len(sample)


def _needs_escapes(name: str) -> bool:
    return any(character in '"\\' or character < " " for character in name)
