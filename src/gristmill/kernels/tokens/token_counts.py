"""What rules count on the tokens of a text besides n-grams: sentences, and which of some words occur.

A sentence ends at a token that is an end mark; the next one begins at the next token that is neither an end mark nor
punctuation, white space between tokens included.
"""

import numpy as np
from numpy.typing import NDArray

from gristmill.kernels.tokens import lexicon_layout as lay
from gristmill.kernels.tokens.lexicon import Words, number

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]


def count_sentences(offsets: Longs, ids: Ints, documents: int, lexicon: Words, counts: Longs) -> None:
    """Count sentences; white space must be among the tokens. A text without tokens counts as one sentence.

    counts  [D]
    """
    for d in range(documents):
        counts[d] = 1
        ended = False
        for k in range(offsets[d], offsets[d + 1]):
            about = lexicon[number(lexicon, lay.RECORDS_AT) + lay.RECORD * np.int64(ids[k]) + 1]
            if about & np.uint64(lay.ENDS_SENTENCE):
                ended = True
            elif ended and not about & np.uint64(lay.IS_PUNCTUATION):
                counts[d] += 1
                ended = False


def count_listed(offsets: Longs, ids: Ints, documents: int, places: Ints, seen: Longs, counts: Longs) -> None:
    """Count the different words of a list that occur.

    places  [tokens of the lexicon]   where a token stands in the list, from 1 on; 0 if it does not
    seen    [words of the list + 1]   zeros
    counts  [D]
    """
    for d in range(documents):
        counts[d] = 0
        for k in range(offsets[d], offsets[d + 1]):
            place = np.int64(places[ids[k]])
            if place and seen[place] != d + 1:
                seen[place] = d + 1
                counts[d] += 1
