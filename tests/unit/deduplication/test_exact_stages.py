"""The hash of a text is XXH3-128, whatever its length and wherever it lies."""

import numpy as np
import pytest
import xxhash

from gristmill.deduplication.exact_stages import hash_texts
from gristmill.stages.text.judging.statistics import TextColumn

pytestmark = pytest.mark.slow  # the kernel is compiled first

ROUND = [
    0,
    1,
    3,
    4,
    8,
    9,
    16,
    17,
    128,
    129,
    239,
    240,
    241,
    255,
    256,
    1023,
    1024,
    1025,
    1088,
    2048,
    2049,
    65_536,
    100_000,
]


@pytest.mark.parametrize("sizes", [ROUND, range(200, 1400)])
def test_it_is_what_the_library_says(sizes):
    rng = np.random.default_rng(len(sizes))
    data = rng.integers(0, 256, 200_000, np.uint8)
    starts = rng.integers(0, 1000, len(sizes))
    stops = starts + np.array(sizes)
    expected = [
        divmod(xxhash.xxh3_128_intdigest(data[start:stop].tobytes()), 2**64)
        for start, stop in zip(starts, stops, strict=True)
    ]

    assert hash_texts(TextColumn(data, starts, stops)).tolist() == [list(pair) for pair in expected]


def test_no_texts_have_no_hashes():
    nothing = np.zeros(0, np.int64)
    assert hash_texts(TextColumn(np.zeros(1, np.uint8), nothing, nothing)).shape == (0, 2)
