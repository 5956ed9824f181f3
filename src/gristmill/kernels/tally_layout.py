"""How the arrays of `tally.py` are laid out, for compiled code and its callers; nothing here loads numba.

The slots are those of `metrics/tally.py`, which kernels do not know; a test compares the two.
"""

PER_OCTAVE = 32
LAST = 81 * PER_OCTAVE  # the slot of what is beyond range
NOT_A_NUMBER = 32_767  # as a slot, which has 16 bits here
SLOTS = 2 * LAST + 2  # of a side, in a dense row: from -LAST to LAST, then what is not a number
WINDOWS = 4  # of a rule: low refused, low kept, high refused, high kept
NEAREST = 8  # documents in a window
SAMPLED = 16  # documents of a reason
NOBODY, ELSEWHERE = -1, -2  # in place of a value: there is room here, or a document that is recorded already
ALL, KEPT = -1, -2  # in place of rows: all in their order, or those that the rule before has kept
BEGINNING = 400  # characters of a text that an example shows
LONGEST_CHARACTER = 4  # bytes
