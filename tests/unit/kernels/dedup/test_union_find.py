"""Union-find equals the connected components found by walking."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.stages.compiled_kernel import CompiledKernel

join_equal = CompiledKernel("dedup.union_find", "join_equal")
flatten = CompiledKernel("dedup.union_find", "flatten")


def components(bands):
    """The least member each one is connected to, by repeated spreading."""
    label = list(range(len(bands[0])))
    changed = True
    while changed:
        changed = False
        for band in bands:
            for i, a in enumerate(band):
                for j, b in enumerate(band):
                    if a == b and label[i] > label[j]:
                        label[i] = label[j]
                        changed = True
    return label


@settings(deadline=None)
@given(data=st.data(), size=st.integers(1, 12))
def test_members_with_a_key_in_common_end_in_one_set(data, size):
    bands = data.draw(st.lists(st.lists(st.integers(0, 8), min_size=size, max_size=size), min_size=1, max_size=3))
    parent = np.arange(size, dtype=np.int32)
    largest = 1
    for band in bands:
        keys = np.array(band, np.uint64)
        order = np.argsort(keys).astype(np.int32)
        largest = max(largest, join_equal(parent, keys[order], order, size))
    flatten(parent, size)

    assert parent.tolist() == components(bands)
    assert largest == max(band.count(key) for band in bands for key in band)
