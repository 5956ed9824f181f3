"""Keeps descriptors 0, 1 and 2 open, whatever they lead to.

In a program started with one of them closed (`2>&-`, a careless daemon), the next file or socket opened would get its
number, and whatever a library writes to standard error would end up in there: in an output, or between driver and
workers.
"""

import os


def hold_standard_descriptors() -> None:
    """Open /dev/null for each of the three that is closed."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            os.set_inheritable(descriptor, True)  # noqa: FBT003  # a signature of Python's
