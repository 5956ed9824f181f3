"""How the arrays of this package's kernels are laid out, for compiled code and its callers.

As in `kernels.text.layout`, sizes are stated once, and what a kernel needs of each array beside the kernel. The lexicon
has a file of its own, `lexicon_layout`. Nothing here may load the compiler.
"""

from gristmill.kernels.text.layout import NGRAM_SCRATCH, TABLE_SLOTS

COUNTS = 3  # columns: words, characters of words, tokens with a letter

PIECES = 512  # looked at together: what is noted of them stays in the fastest cache
PIECE_ARRAYS = 5  # what is noted of each
NOTES = PIECE_ARRAYS * PIECES + 8  # and after them, how far a text has been read

# Numbers per byte of the longest text and of ROOM_BEHIND more.
SPANS_PER_BYTE = 2  # where each token starts and stops; a token has a byte at least
SCRATCH_PER_BYTE = 8  # two for ranges of tokens that may have to be put together, six to put them together
ROOM_BEHIND = 8  # bytes are written eight at a time, so the last may reach beyond the end

REPEAT_ARRAYS = 4  # each with a number per token, while repeated n-grams are looked for, and after them a table
REPEAT_SCRATCH = REPEAT_ARRAYS + TABLE_SLOTS + 1  # numbers per token
TOKEN_SCRATCH = max(NGRAM_SCRATCH, REPEAT_SCRATCH)  # the same, for n-grams of either kind
CLASS_BLOCKS = 0x1100  # numbers at the head of the table of characters, one for each 256 of them
BUCKET_BITS = 10
BUCKETS = 1 << BUCKET_BITS

LONGEST_LENGTH = 63  # of a listed word, as a bit: stands for all that are longer
TABLE_HEAD = 3  # numbers before the keys in a table of words: its mask, where keys are, where values are

# What becomes of a text by the line rules of C4, and the kinds of phrases they look for.
KEPT, LOREM_IPSUM, CURLY_BRACKET = range(3)
POLICY, JAVASCRIPT, LOREM = range(3)
# The rules, as numbers: -1 turns one of the first two off, 0 one of the others.
MAX_WORD_LENGTH, MIN_WORDS, CITATIONS, END_MARKS, LOREM_RULE, JAVASCRIPT_RULE, CURLY_RULE, POLICY_RULE = range(8)
