"""128-bit hashes of texts: equal for equal bytes, and in practice for nothing else.

Among 10 billion different texts two collide with a probability of 1e-19. XXH3 does not resist an adversary.
"""

import numpy as np
from numpy.typing import NDArray

SHORT_BYTES = 240  # up to this length XXH3 is a different function
SECRET = bytes.fromhex(  # what XXH3 mixes into its input unless given another; part of its specification
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
SECRET_BYTES = len(SECRET)
LANES = 8  # 64-bit sums in which a long text is accumulated


def content_hash(data: NDArray[np.uint8], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return uint64[N, 2]: XXH3-128 of data[starts[i]:stops[i]]."""
    import xxhash  # not at the top: a build of the package imports this file, and has only what compiling needs

    view = memoryview(data.data)
    digest = xxhash.xxh3_128_digest
    joined = b"".join([digest(view[start:end]) for start, end in zip(starts.tolist(), stops.tolist(), strict=True)])
    return np.frombuffer(joined, ">u8").astype(np.uint64).reshape(-1, 2)
