"""Eight bytes at a time: loads that need no alignment, and questions about eight bytes asked at once."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline

Bytes = NDArray[np.uint8]

ONES = np.uint64(0x0101010101010101)
HIGHS = np.uint64(0x8080808080808080)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads neighbouring keys


@intrinsic
def load8(typing_context, data, index):  # type: ignore[no-untyped-def]  # the form numba prescribes
    """Return data[index:index + 8] as one number, the first byte lowest."""
    del typing_context

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del context, signature
        pointer = builder.gep(arguments[0], [arguments[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


@intrinsic
def store8(typing_context, data, index, value):  # type: ignore[no-untyped-def]
    """Write eight bytes, the lowest first."""
    del typing_context, value

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del context, signature
        pointer = builder.gep(arguments[0], [arguments[1]])
        builder.store(arguments[2], builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.void(data, types.int64, types.uint64), generate


@intrinsic
def count_trailing_zeros(typing_context, value):  # type: ignore[no-untyped-def]
    """Return how many low bits of a number that is not zero are zero."""
    del typing_context, value

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del context, signature
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def count_ones(typing_context, value):  # type: ignore[no-untyped-def]
    """Return how many bits are one."""
    del typing_context, value

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del context, signature
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def bits_of(typing_context, value):  # type: ignore[no-untyped-def]
    """Return the bits of a number with a fraction."""
    del typing_context, value

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del context, signature
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def prefetch(typing_context, data, index):  # type: ignore[no-untyped-def]
    """Tell the processor that data[index] will be wanted soon."""
    del typing_context

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del context, signature
        pointer = ir.IntType(8).as_pointer()
        kinds = [pointer, ir.IntType(32), ir.IntType(32), ir.IntType(32)]
        hint = builder.module.declare_intrinsic("llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), kinds))
        address = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), pointer)
        builder.call(hint, [address, *(ir.IntType(32)(number) for number in (0, 3, 1))])  # read, keep, data

    return types.void(data, types.int64), generate


@inline
def load_up_to_8(data: Bytes, start: int, stop: int) -> np.uint64:
    """Return the bytes from `start` on, at most eight, as one number; no byte at or after `stop` is touched."""
    if start + 8 <= stop:
        return load8(data, start)
    value = np.uint64(0)
    for i in range(stop - start):
        value |= np.uint64(data[start + i]) << np.uint64(8 * i)
    return value


@inline
def load_rest(data: Bytes, begin: int, start: int, stop: int) -> np.uint64:
    """Return bytes [start, stop), fewer than eight, as one number; no byte before `begin` or from `stop` on is touched.

    A loop over what is left would have an unpredictable length, which costs more than all before it.
    """
    if stop - begin >= 8:
        return load8(data, stop - 8) >> np.uint64(8 * (8 - (stop - start)) & 63) if start < stop else np.uint64(0)
    return load_up_to_8(data, start, stop)


@inline
def low_bytes(value: np.uint64, count: int) -> np.uint64:
    """Return `count` low bytes of a number, from 1 to 8 of them."""
    return value & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * count))


@inline
def mix(value: np.uint64) -> np.uint64:
    """Spread what distinguishes a number over its high bits."""
    value = (value ^ (value >> np.uint64(32))) * _MULTIPLIER
    return value ^ (value >> np.uint64(29))


@inline
def hash_bytes(data: Bytes, start: int, stop: int) -> np.uint64:
    """Hash a range of bytes: equal ranges give equal numbers. A caller that needs the converse compares the bytes."""
    one = np.uint64(stop - start)
    other = _MULTIPLIER
    position = start
    while position + 16 <= stop:  # two chains, so that one multiplication need not wait for the other
        one = (one ^ load8(data, position)) * _MULTIPLIER
        other = (other ^ load8(data, position + 8)) * _MULTIPLIER
        one ^= one >> np.uint64(32)
        other ^= other >> np.uint64(32)
        position += 16
    if position + 8 <= stop:
        one = mix(one ^ load8(data, position))
        position += 8
    if position < stop:
        one = mix(one ^ load_rest(data, start, position, stop))
    return mix(one ^ mix(other))


@inline
def find_byte(data: Bytes, start: int, stop: int, byte: int) -> int:
    """Return where a byte next occurs, `stop` if it does not."""
    everywhere = np.uint64(byte) * ONES
    position = start
    while position + 8 <= stop:
        apart = load8(data, position) ^ everywhere
        found = (apart - ONES) & ~apart & HIGHS  # the lowest flag is right; higher ones need not be
        if found:
            return position + (count_trailing_zeros(found) >> 3)
        position += 8
    apart = load_rest(data, start, position, stop) ^ everywhere
    found = (apart - ONES) & ~apart & HIGHS
    return min(stop, position + (count_trailing_zeros(found) >> 3)) if found else stop


@inline
def equal_bytes(data: Bytes, one: int, other: int, length: int) -> bool:
    """Whether two ranges of one length hold the same bytes."""
    done = 0
    while done + 8 <= length:
        if load8(data, one + done) != load8(data, other + done):
            return False
        done += 8
    rest = load_rest(data, one, one + done, one + length)
    return rest == load_rest(data, other, other + done, other + length)


@inline
def copy_bytes(data: Bytes, start: int, stop: int, out: Bytes, at: int) -> int:
    """Copy a range of bytes to `out`, which has room for eight bytes more; return where it ends there."""
    position = start
    while position + 8 <= stop:
        store8(out, at, load8(data, position))
        position, at = position + 8, at + 8
    store8(out, at, load_rest(data, start, position, stop))
    return at + stop - position


@inline
def count_characters_in(data: Bytes, start: int, stop: int) -> int:
    """Count characters: the bytes that do not continue one (10xxxxxx)."""
    count = stop - start
    position = start
    while position + 8 <= stop:
        value = load8(data, position)
        if value & HIGHS:
            count -= count_ones((value >> np.uint64(7)) & ~(value >> np.uint64(6)) & ONES)
        position += 8
    value = load_rest(data, start, position, stop)
    return count - count_ones((value >> np.uint64(7)) & ~(value >> np.uint64(6)) & ONES)
