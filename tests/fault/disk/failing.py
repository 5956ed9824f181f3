"""A disk that fails at a certain call: `FileLog(root, fails=Failing(...))`."""

import errno
import os

TAKES_ROOM = {"open", "write", "pwrite", "mkdir", "rename", "replace", "link", "fsync", "fdatasync"}
NAMED = {"open", "mkdir", "rename", "replace", "link", "unlink", "remove", "rmdir"}


class Failing:
    """Lets call number `at` fail, and if `lasting` every one that comes after it and is of that kind."""

    def __init__(self, number, at, *, lasting):
        self.number = number
        self.at = at
        self.lasting = lasting
        self.calls = 0
        self.failed = 0
        self.path = None  # of the first failure

    def __call__(self, name, path):
        if self.number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) and name not in TAKES_ROOM:
            return  # a full disk lets go of what it has
        self.calls += 1
        if self.calls == self.at or (self.lasting and self.calls > self.at):
            self.failed += 1
            self.path = self.path or path
            # Calls with a descriptor know no name.
            raise OSError(self.number, os.strerror(self.number), *([str(path)] if name in NAMED else []))
