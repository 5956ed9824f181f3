"""Characters in URLs: matches of `https?://(?:[A-Za-z0-9$\\-_@.&+/:=?#~]|[!*(),]|%[0-9A-Fa-f]{2})+`."""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.text.inline import inline
from gristmill.kernels.text.layout import HEX_DIGIT, IN_URL
from gristmill.kernels.text.layout import URL_COLUMNS as COLUMNS
from gristmill.kernels.text.sizes import TEXTS, sized
from gristmill.kernels.text.words_of_bytes import Bytes, find_byte


@inline
def _scheme_start(data: Bytes, start: int, colon: int) -> int:
    """Return where "http" or "https" begins that ends at the colon, -1 if there is neither."""
    end = colon
    if end > start and data[end - 1] == 0x73:
        end -= 1
    if end - 4 < start:
        return -1
    is_http = data[end - 4] == 0x68 and data[end - 3] == 0x74 and data[end - 2] == 0x74 and data[end - 1] == 0x70
    return end - 4 if is_http else -1


@inline
def _url_stop(data: Bytes, position: int, stop: int, classes: Bytes) -> int:
    while position < stop:
        if classes[data[position]] & IN_URL:
            position += 1
        elif (
            data[position] == 0x25
            and position + 2 < stop
            and classes[data[position + 1]] & HEX_DIGIT
            and classes[data[position + 2]] & HEX_DIGIT
        ):
            position += 3
        else:
            break
    return position


@inline
def _contains_porn(data: Bytes, start: int, stop: int) -> bool:
    for i in range(start, stop - 3):
        if data[i] == 0x70 and data[i + 1] == 0x6F and data[i + 2] == 0x72 and data[i + 3] == 0x6E:
            return True
    return False


@sized(
    **TEXTS,
    classes=lambda: 256,
    counts=lambda documents: documents * COLUMNS,
)
def count_urls(
    data: Bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: int,
    classes: Bytes,
    counts: NDArray[np.int64],
) -> None:
    """Measure the URLs of each document.

    classes  [256]    IN_URL, HEX_DIGIT or both for each byte
    counts   [D, 2]   one row per document
    """
    for d in range(documents):
        position, stop = starts[d], stops[d]
        chars = bad = 0
        colon = find_byte(data, position, stop, 0x3A)
        while colon < stop:
            after = colon + 1
            if colon + 3 < stop and data[colon + 1] == 0x2F and data[colon + 2] == 0x2F:
                scheme = _scheme_start(data, position, colon)
                end = _url_stop(data, colon + 3, stop, classes)
                if scheme >= 0 and end > colon + 3:
                    chars += end - scheme
                    bad += _contains_porn(data, scheme, end)
                    position = after = end
            colon = find_byte(data, after, stop, 0x3A)
        counts[d * COLUMNS], counts[d * COLUMNS + 1] = chars, bad
