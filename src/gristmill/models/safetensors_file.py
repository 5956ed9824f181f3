"""Tensors of a safetensors file as numpy arrays, without the library of that name.

The format (huggingface.co/docs/safetensors): eight bytes that say how long the header is, a header in JSON that gives
each tensor's type, shape and place, then the numbers, little-endian and row by row. Arrays are mapped from the file, so
the workers of one machine share the memory. Whole networks are loaded by `torch_runtime`; this is for tables and single
layers.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gristmill.errors import ReadError

_MAX_HEADER_BYTES = 100_000_000  # as the library itself limits it: a damaged length must not fill the memory
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U8": "|u1", "I8": "|i1"}


def read_tensors(path: Path) -> dict[str, NDArray[np.generic]]:
    """Return all tensors of a file by name, mapped and not to be written to; bfloat16 is copied to float32."""
    try:
        header, start = _header(path)
        size = path.stat().st_size
        return {name: _tensor(path, start, size, place) for name, place in header.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReadError(f"{path}: expected a safetensors file; got {error!r}") from error


@dataclass(frozen=True)
class _Place:
    """Where a tensor is in the file, and what it is."""

    kind: str
    shape: tuple[int, ...]
    first: int
    end: int


def _header(path: Path) -> tuple[dict[str, _Place], int]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= _MAX_HEADER_BYTES:
            raise ValueError(f"a header of {length} bytes")
        entries = json.loads(file.read(length))
    entries.pop("__metadata__", None)
    places = {
        str(name): _Place(str(entry["dtype"]), tuple(map(int, entry["shape"])), *map(int, entry["data_offsets"]))
        for name, entry in entries.items()
    }
    return places, 8 + length


def _tensor(path: Path, start: int, size: int, place: _Place) -> NDArray[np.generic]:
    dtype = np.dtype(_TYPES[place.kind])
    count = math.prod(place.shape)
    if place.end - place.first != count * dtype.itemsize or not 0 <= place.first <= place.end <= size - start:
        raise ValueError(f"{place.kind}{list(place.shape)} in bytes {place.first} to {place.end} of {size - start}")
    if not count:
        return np.zeros(place.shape, dtype)  # an empty part of a file cannot be mapped
    mapped: NDArray[np.generic] = np.memmap(path, dtype, "r", start + place.first, place.shape)
    return _from_bfloat16(mapped) if place.kind == "BF16" else mapped


def _from_bfloat16(halves: NDArray[np.generic]) -> NDArray[np.float32]:
    """A bfloat16 is the upper half of a float32."""
    return (halves.astype(np.uint32) << 16).view(np.float32)
