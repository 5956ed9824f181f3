"""How the arrays of `tally.py` are laid out, for compiled code and for whoever calls it; nothing here loads numba.

The slots are those of `metrics/tally.py`, which kernels do not know; a test compares the two.
"""

PER_OCTAVE = 32
LAST = 81 * PER_OCTAVE  # the slot of what is beyond range
NOT_A_NUMBER = 1_000_000  # as a slot
SLOTS = 2 * LAST + 2  # of a side, in a dense row: from -LAST to LAST, then what is not a number
NEAREST = 8  # documents in a window
HAS_LOW, HAS_HIGH = 1, 2  # which bounds a rule has
NOBODY, ELSEWHERE = -1, -2  # in place of a value: a window has room here, or a document that is recorded already
