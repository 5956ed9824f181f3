"""What `html_depth` and its callers agree on: kinds and groups of elements, and where a name's slot is.

Nothing here needs the compiler.
"""

import numpy as np
from numpy.typing import NDArray

SLOTS = 4_096  # for names of elements: two that share one are counted as one
FACTOR = 0x9E3779B97F4A7C15  # 2**64 / golden ratio

# Kinds of elements, in the bits of a number.
VOID = 1  # has no end tag
RAW = 2  # holds text, and no tags
FORMATTING = 4  # opened again in every block until it is closed
FOREIGN = 8  # within it, a tag that ends in /> is closed
BLOCK = 16  # its start tag closes an open paragraph
EDGE = 32  # nothing beyond it is closed by a start tag within it
TABLE = 64  # the same for parts of tables
CODE = 128  # holds code

# A start tag closes an open element of its own group.
PARAGRAPH = 1
FIRST_OF_TABLE = 16
_GROUPS = (
    (PARAGRAPH, "p"),
    (2, "li"),
    (3, "dt dd"),
    (4, "option optgroup"),
    (5, "a"),
    (6, "h1 h2 h3 h4 h5 h6"),
    (7, "rb rt rtc rp"),
    (FIRST_OF_TABLE, "td th caption"),
    (FIRST_OF_TABLE + 1, "tr"),
    (FIRST_OF_TABLE + 2, "thead tbody tfoot colgroup"),
)
_KINDS = (
    (VOID, "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"),
    (RAW, "script style textarea title xmp iframe noembed noframes"),
    (FORMATTING, "a b big code em font i nobr s small strike strong tt u"),
    (FOREIGN, "svg math"),
    (BLOCK, "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form"),
    (BLOCK, "h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol pre section summary table ul"),
    (EDGE, "html body ul ol menu dl table td th caption button object select template svg math"),
    (TABLE, "table template"),
    (CODE, "pre code samp tt"),
)

MAX_STACK = 1 << 17  # deeper is counted and not remembered
MAX_LOOK = 64  # elements looked at for one that is closed by a start tag

GONE_SLOT = 0  # of elements that are closed within others that are not; the slot of the empty name

# What is found, and after it what is counted on the way: foreign elements and formatting ones that are open, and
# elements that are gone.
FOUND_DEPTH, FOUND_FORMATTING, FOUND_TAGS, FOUND_ATTRIBUTES, HINTS, FOREIGN_OPEN, FORMATTING_OPEN, GONE, FOUND = range(
    9
)
MAY_HAVE_MATH, MAY_HAVE_CODE, HAS_GLUED_CELLS, MAY_HAVE_TEX = 1, 2, 4, 8
LEAST_FORMULA = 5  # bytes of one that is written out in a text: $$x$$


def name_key(name: str) -> int:
    """Return the first eight bytes of a name as one number, with its length where it is longer."""
    data = name.lower().encode()
    key = int.from_bytes(data[:8], "little")
    return key ^ (len(data) << 56) if len(data) > 8 else key


def slot_of(key: int) -> int:
    """Return the slot of a name."""
    return (key * FACTOR % 2**64) >> 52


def element_tables() -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return keys, kinds and groups of the elements that are known, by the slots of their names."""
    keys, kinds, groups = np.zeros(SLOTS, np.uint64), np.zeros(SLOTS, np.uint8), np.zeros(SLOTS, np.uint8)
    for table, values in ((kinds, _KINDS), (groups, _GROUPS)):
        for value, names in values:
            for name in names.split():
                key = name_key(name)
                keys[slot_of(key)] = key
                table[slot_of(key)] |= value
    return keys, kinds, groups
