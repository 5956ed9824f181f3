"""XXH3-128 of many long texts: what the library `xxhash` returns, without a Python object for each text.

The algorithm is that of the XXH3 specification (Collet 2020), its part for inputs of more than 240 bytes: eight sums of
64 bits over stripes of 64 bytes, stirred after every 16 stripes, folded into 128 bits at the end.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from gristmill.kernels.content_hash import LANES, SECRET, SECRET_BYTES, SHORT_BYTES
from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.sizes import TEXTS, sized
from gristmill.kernels.text.words_of_bytes import Bytes, load8

_SECRET_BYTES = len(SECRET)
_STRIPE = 64
_BLOCK = 1024  # bytes between two stirrings
_PRIME32 = (np.uint64(0x9E3779B1), np.uint64(0x85EBCA77), np.uint64(0xC2B2AE3D))
_PRIME64 = (
    np.uint64(0x9E3779B185EBCA87),
    np.uint64(0xC2B2AE3D27D4EB4F),
    np.uint64(0x165667B19E3779F9),
    np.uint64(0x85EBCA77C2B2AE63),
    np.uint64(0x27D4EB2F165667C5),
)
_AVALANCHE = np.uint64(0x165667919E3779F9)
_LOW = np.uint64(0xFFFFFFFF)
_32, _37, _47 = np.uint64(32), np.uint64(37), np.uint64(47)


@intrinsic
def _add_stripe(typing_context, sums, data, index, secret, at):  # type: ignore[no-untyped-def]  # the form of numba
    """Add data[index:index + 64] to eight sums, masked by secret[at:at + 64]."""
    del typing_context

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del context, signature
        totals, source, position, key, place = arguments
        vector = ir.VectorType(ir.IntType(64), LANES)
        address = builder.bitcast(totals, vector.as_pointer())
        places = builder.gep(source, [position]), builder.gep(key, [place])
        values, keys = (builder.load(builder.bitcast(at, vector.as_pointer()), align=1) for at in places)
        keyed = builder.xor(values, keys)
        neighbours = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [1, 0, 3, 2, 5, 4, 7, 6])
        swapped = builder.shuffle_vector(values, ir.Constant(vector, ir.Undefined), neighbours)
        low = builder.and_(keyed, ir.Constant(vector, [0xFFFFFFFF] * LANES))
        high = builder.lshr(keyed, ir.Constant(vector, [32] * LANES))
        total = builder.add(builder.load(address, align=8), builder.add(swapped, builder.mul(low, high)))
        builder.store(total, address, align=8)

    return types.void(sums, data, types.int64, secret, types.int64), generate


@inline
def _stir(sums: NDArray[np.uint64], secret: Bytes) -> None:
    for i in range(LANES):
        value = sums[i] ^ (sums[i] >> _47) ^ load8(secret, _SECRET_BYTES - _STRIPE + 8 * i)
        sums[i] = value * _PRIME32[0]


@inline
def _folded_product(one: np.uint64, other: np.uint64) -> np.uint64:
    """Return the upper half of the product of 128 bits, mixed with the lower one."""
    low, high = (one & _LOW) * (other & _LOW), (one >> _32) * (other >> _32)
    cross_one, cross_other = (one >> _32) * (other & _LOW), (one & _LOW) * (other >> _32)
    cross = (low >> _32) + (cross_one & _LOW) + cross_other
    upper = (cross_one >> _32) + (cross >> _32) + high
    return upper ^ (cross << _32 | low & _LOW)


@inline
def _fold(sums: NDArray[np.uint64], secret: Bytes, at: int, start: np.uint64) -> np.uint64:
    result = start
    for i in range(LANES // 2):
        one = sums[2 * i] ^ load8(secret, at + 16 * i)
        other = sums[2 * i + 1] ^ load8(secret, at + 16 * i + 8)
        result += _folded_product(one, other)
    result = (result ^ (result >> _37)) * _AVALANCHE
    return result ^ (result >> _32)


@inline
def _begin(sums: NDArray[np.uint64]) -> None:
    sums[0], sums[1], sums[2], sums[3] = _PRIME32[2], _PRIME64[0], _PRIME64[1], _PRIME64[2]
    sums[4], sums[5], sums[6], sums[7] = _PRIME64[3], _PRIME32[1], _PRIME64[4], _PRIME32[0]


@sized(
    **TEXTS,
    secret=lambda: SECRET_BYTES,
    sums=lambda: LANES,
    hashes=lambda documents: 2 * documents,
)
def hash_long_texts(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    secret: Bytes,
    sums: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
) -> None:
    """Write XXH3-128 of the texts of more than `SHORT_BYTES` bytes; leave the places of the others as they are.

    starts, stops  [D]       where the texts are
    secret         [192]     `SECRET`
    sums           [8]       room to work in
    hashes         [D * 2]   upper and lower half of each hash
    """
    for d in range(documents):
        position, stop = starts[d], stops[d]
        size = stop - position
        if size <= SHORT_BYTES:
            continue
        _begin(sums)
        blocks = (size - 1) // _BLOCK
        for _ in range(blocks):
            for stripe in range(_BLOCK // _STRIPE):
                _add_stripe(sums, data, position + stripe * _STRIPE, secret, 8 * stripe)
            _stir(sums, secret)
            position += _BLOCK
        for stripe in range((stop - 1 - position) // _STRIPE):
            _add_stripe(sums, data, position + stripe * _STRIPE, secret, 8 * stripe)
        _add_stripe(sums, data, stop - _STRIPE, secret, _SECRET_BYTES - _STRIPE - 7)
        length = np.uint64(size)
        hashes[2 * d] = _fold(sums, secret, _SECRET_BYTES - _STRIPE - 11, ~(length * _PRIME64[1]))
        hashes[2 * d + 1] = _fold(sums, secret, 11, length * _PRIME64[0])
