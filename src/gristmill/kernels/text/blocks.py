"""Sixty-four bytes at a time, one bit for each: where the white space is, the letters, the newlines.

A question about 64 bytes is a handful of vector instructions. Words then cost a few operations on whole masks, and no
branch that depends on how long they are. At least 64 bytes of the array lie before the end of any text that has bytes.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import BLOCK
from gristmill.kernels.text.spaces import space_length
from gristmill.kernels.text.words_of_bytes import Bytes, count_ones, count_trailing_zeros

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@intrinsic
def _range_bits(typing_context, data, index, low, count):  # type: ignore[no-untyped-def]  # the form numba prescribes
    """Return which of data[index:index + 64] are in [low, low + count); the first byte is the lowest bit."""
    del typing_context, low, count

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del context, signature
        pointer, at, least, size = arguments
        vector = ir.VectorType(ir.IntType(8), BLOCK)
        address = builder.bitcast(builder.gep(pointer, [at]), vector.as_pointer())
        values = builder.load(address, align=1)
        apart = builder.sub(values, _everywhere(builder, vector, least))
        found = builder.icmp_unsigned("<", apart, _everywhere(builder, vector, size))
        return builder.bitcast(found, ir.IntType(64))

    return types.uint64(data, types.int64, types.int64, types.int64), generate


@intrinsic
def copy_block(typing_context, data, index, out, at):  # type: ignore[no-untyped-def]
    """Copy data[index:index + 64] to out[at:at + 64]."""
    del typing_context

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        del context, signature
        vector = ir.VectorType(ir.IntType(8), BLOCK).as_pointer()
        source = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), vector)
        target = builder.bitcast(builder.gep(arguments[2], [arguments[3]]), vector)
        builder.store(builder.load(source, align=1), target, align=1)

    return types.void(data, types.int64, out, types.int64), generate


def _everywhere(builder: ir.IRBuilder, vector: ir.VectorType, value: ir.Value) -> ir.Value:
    byte = builder.trunc(value, ir.IntType(8))
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), byte, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK))


@inline
def block_at(position: int, stop: int) -> tuple[int, np.uint64]:
    """Return where to load 64 bytes, and how far to shift what is found, to learn about those from `position` on.

    No byte at or after `stop` is loaded: at the end of a text, bytes before it are, and shifted out.
    """
    size = min(stop - position, BLOCK)
    return position + size - BLOCK, np.uint64(BLOCK - size)


@inline
def range_bits(data: Bytes, block: tuple[int, np.uint64], low: int, count: int) -> np.uint64:
    """Return which bytes of a block are in [low, low + count)."""
    index, shift = block
    return _range_bits(data, index, low, count) >> shift


@inline
def find_in_blocks(data: Bytes, start: int, stop: int, byte: int) -> int:
    """Return where a byte next occurs, `stop` if it does not."""
    for position in range(start, stop, BLOCK):
        found = range_bits(data, block_at(position, stop), byte, 1)
        if found:
            return position + count_trailing_zeros(found)
    return stop


@inline
def count_in_blocks(data: Bytes, start: int, stop: int, byte: int) -> int:
    """Count a byte."""
    count = 0
    for position in range(start, stop, BLOCK):
        count += count_ones(range_bits(data, block_at(position, stop), byte, 1))
    return count


@inline
def word_bits(data: Bytes, start: int, position: int, stop: int) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Return three masks for the 64 bytes from `position` on: in a word, not ASCII, first byte of a long character.

    `start` is where the document begins; `position` is before `stop`; from `stop` on, bytes count as white space.
    """
    block = block_at(position, stop)
    space = range_bits(data, block, 0x09, 5) | range_bits(data, block, 0x1C, 5)
    highs = range_bits(data, block, 0x80, 128)
    leads = np.uint64(0)
    inside = ~space & (_ALL >> block[1])
    if highs:
        leads = range_bits(data, block, 0xC0, 64)
        inside &= ~_long_spaces(data, start, position, stop, leads)
    return inside, highs, leads


@inline
def _long_spaces(data: Bytes, start: int, position: int, stop: int, leads: np.uint64) -> np.uint64:
    """Return the bytes of white space characters of more than one byte."""
    space = np.uint64(0)
    for before in range(1, 3):  # a character that began before the block
        if position - before >= start:
            length = space_length(data, position - before, stop)
            if length > before:
                space |= (_ONE << np.uint64(length - before)) - _ONE
    while leads:
        at = count_trailing_zeros(leads)
        leads &= leads - _ONE
        length = space_length(data, position + at, stop)
        if length:
            space |= ((_ONE << np.uint64(length)) - _ONE) << np.uint64(at)
    return space
