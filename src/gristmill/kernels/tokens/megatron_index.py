"""The index of Megatron's token files: which bytes of a `.bin` form which sequence, and which sequences a document.

Little-endian, and nothing else in the file:

    9 bytes   MMIDIDX and two zeros
    u64       version, 1
    u8        what a token is: 8 for u16, 4 for i32, and others that are read but not written
    u64       S, sequences
    u64       D, documents plus one
    i32[S]    tokens of each sequence
    i64[S]    where each sequence begins in the `.bin`, in bytes
    i64[D]    the first sequence of each document, and S

Here a document is one sequence, also an empty one: no document is left out, and row n stays document n.
"""

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEADER = struct.Struct("<9sQBQQ")
HEADER_BYTES = HEADER.size
LARGEST_U16_VOCABULARY = 1 << 16  # ids 0 to 65,535
CODES = {1: "u1", 2: "i1", 3: "i2", 4: "<i4", 5: "<i8", 6: "<f8", 7: "<f4", 8: "<u2"}
U16, I32 = 8, 4


class IndexHeader(NamedTuple):
    """What an index says before its arrays."""

    code: int
    num_sequences: int
    num_document_bounds: int

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """What a token is in the `.bin`."""
        return np.dtype(CODES[self.code])

    @property
    def index_bytes(self) -> int:
        """How large the index has to be."""
        return HEADER_BYTES + 12 * self.num_sequences + 8 * self.num_document_bounds


def code_for(vocabulary_size: int) -> int:
    """The smallest kind of token that fits every id of a vocabulary, added tokens included."""
    return U16 if vocabulary_size <= LARGEST_U16_VOCABULARY else I32


def encode_header(code: int, num_sequences: int, num_document_bounds: int) -> bytes:
    """The bytes before the arrays."""
    return HEADER.pack(MAGIC, VERSION, code, num_sequences, num_document_bounds)


def decode_header(start: bytes) -> IndexHeader:
    """Read the bytes before the arrays; raises ValueError if they are not those of an index."""
    if len(start) < HEADER_BYTES:
        raise ValueError(f"expected at least {HEADER_BYTES} bytes; got {len(start)}")
    magic, version, code, sequences, bounds = HEADER.unpack(start[:HEADER_BYTES])
    if magic != MAGIC:
        raise ValueError(f"expected it to begin with {MAGIC!r}; got {magic!r}")
    if version != VERSION:
        raise ValueError(f"expected version {VERSION}; got {version}")
    if code not in CODES:
        raise ValueError(f"expected a kind of token from {min(CODES)} to {max(CODES)}; got {code}")
    return IndexHeader(code, sequences, bounds)


def encode_index(lengths: NDArray[np.int64], code: int) -> bytes:
    """The index of documents that follow one another in a `.bin`, `lengths` tokens each, in O(documents).

    lengths  [S]
    """
    width = np.dtype(CODES[code]).itemsize
    if lengths.size and int(lengths.max()) > np.iinfo(np.int32).max:
        raise ValueError(f"expected documents of at most {np.iinfo(np.int32).max} tokens; got {int(lengths.max())}")
    offsets = np.zeros(len(lengths), "<i8")
    np.cumsum(lengths[:-1] * width, out=offsets[1:]) if len(lengths) else None
    bounds = np.arange(len(lengths) + 1, dtype="<i8")
    parts = [lengths.astype("<i4").tobytes(), offsets.tobytes(), bounds.tobytes()]
    return encode_header(code, len(lengths), len(bounds)) + b"".join(parts)
