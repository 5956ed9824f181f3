"""How the arrays of this package's kernels are laid out, for compiled code and its callers.

Every size is stated once, here, and both sides import it. How long each array must be is stated beside the kernel
(`sizes.sized`) and checked when it is called. Nothing here may load the compiler.
"""

BLOCK = 64  # bytes looked at together; no text is given to a kernel with fewer before the end of its array

# Columns of counts, one row per document.
CHARACTER_COLUMNS = 5  # characters, plain ones, digits, white space, brackets
WORD_COLUMNS = 6  # words, characters in words, longest word, words with a letter, symbol words, common English words
LINE_COLUMNS = 7  # lines, with bullet, without end mark, with ellipsis, distinct, characters in distinct, in all
PIECE_COLUMNS = 4  # pieces, distinct, characters in distinct, characters in all
URL_COLUMNS = 2  # characters in URLs, URLs that contain "porn"
PHRASE_COLUMNS = 2  # matches of phrases of kind 1, paragraphs with a phrase of kind 0
SHAPE_COLUMNS = 6  # characters, number signs, ellipses, lines, with bullet, with ellipsis at the end
FILLED_COLUMNS = 4  # lines that are not blank, with end mark, short, newlines

# How a text is cut into pieces: at every double newline; stripped, at two newlines or more; at one or more; at every
# newline, leaving out blank pieces.
DOUBLE_NEWLINES, PARAGRAPHS, LINES, FILLED_LINES = range(4)

CLASS_BITS = 12  # a byte's classes are counters of this many bits in one number: counting all is one addition
LETTER_BYTES = 0x8000  # a bit for each of the first 0x40000 characters; there are no letters beyond
IN_URL, HEX_DIGIT = 1, 2  # bits of a byte's class in URLs

PAIR_BITS = 5  # of a byte that tell pairs of bytes apart in phrases; what tells capitals from small letters is left out
SHIFTS = 1 << (2 * PAIR_BITS)  # numbers at the head of a table of phrases, one for each pair

TABLE_SLOTS = 4  # most slots of a hash table for each entry, see `distinct.table_bits`

# Notes on words while n-grams are counted: this many arrays with one number for each word, and after them a table.
NGRAM_ARRAYS = 9
NGRAM_SCRATCH = NGRAM_ARRAYS + TABLE_SLOTS + 1  # numbers per word; the least table has eight slots, even for one word
TOP, DUPLICATE = 0, 1  # what may be asked for of n-grams

TOO_MANY = -2  # returned where there are more lines than there is room for
