"""How the arrays of the wikitext scanner are laid out, for compiled code and its callers."""

PADDING = 64  # bytes after the text and after the room for the result: whole blocks are read and written

# What is open at a place in the text. A stack holds these, the innermost last.
TEMPLATE, LINK, URL_LINK, TABLE, TABLE_TAG = range(5)
MOST_ARGUMENTS = 12  # of a template whose places are remembered; no known template asks for later ones

# One entry of the stack: its kind, where it begins in the result, and what its kind needs to remember.
#   TEMPLATE   how many braces are open; how many pipes came
#   LINK       where the text after the first pipe begins, 0 before it came
#   URL_LINK   where the text after the address begins
#   TABLE      where the row begins; where the cell begins, 0 once its attributes are passed; 1 in a heading row
KIND, START, MARK, COUNT, FLAG = range(5)
ENTRY = 5 + MOST_ARGUMENTS

# What lies where in `notes`, the scanner's memory beside the stack.
DROPPED_AT = 0  # where in the result something was dropped last, -1 once that no longer matters
HEADING_LEVEL, HEADING_AT, HEADING_DEPTH = 1, 2, 3  # of the heading in this line; level 0 if there is none
NUM_EMPTY = 4  # headings that no text has followed yet, the outermost first
TOO_DEEP, TOO_DEEP_AT = 5, 6  # templates open beyond the stack, and where the first of them begins
UNCLOSED = 7  # tags without an end anywhere ahead, a bit for each
QUOTES = 8  # whether this line is in italics, in bold
EMPTY = 9  # then, for each heading without text: its level, where it begins and where it ends
MOST_EMPTY = 8
NOTES = EMPTY + 3 * MOST_EMPTY

ITALIC, BOLD = 1, 2

# Options.
KEEP_MATH, KEEP_TABLES, MOST_OPEN, OPTIONS = 0, 1, 2, 3  # the third is how many things may be open at once

# The table of names: slots of four numbers. A key is a letter that says what is named, and the name.
KEY_AT, KEY_LENGTH, VALUE, VALUE_LENGTH = range(4)
SLOT = 4
HASH_START, HASH_FACTOR, HASH_MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF  # FNV-1a
LONGEST_NAME = 48  # bytes; nothing longer is in the table
OF_TEMPLATE, OF_FUNCTION, OF_NAMESPACE, OF_TAG, OF_ENTITY = b"tfnhe"

# What becomes of a tag; the value of its slot.
# The length of the value is the number of a tag whose end is looked for, at most 62.
STRIPPED, NEW_LINE, DROPPED, MATH, CHEMISTRY, NO_WIKI, CODE, PREFORMATTED, TABLE_BEGIN, CELL, RAISED = range(1, 12)

# In the form of a template's text bytes 1 to 9 are arguments, and these are several.
ALL_ARGUMENTS, LAST_ARGUMENT, LISTED_ARGUMENTS = 0x1F, 0x1E, 0x1D
MOST_SPANS = 10  # arguments 1 to 9
