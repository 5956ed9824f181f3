"""What a file system may hold after the machine has stopped, given what was done to it (`file_log.py`).

What was synced is there. Of the rest anything may be there or not, in any order:

- the data of a file since its last fsync: missing, short, zeroed, or torn (a part zeroed)
- a name since the last fsync of its directory: not made, not removed, or still that of the file before. A rename within
  a directory happens or does not; between two directories it may also be found half done, in either half.

This is more than ext4 or XFS would lose: they keep names in order, and fsync of a new file keeps its name as well.
"""

import random
from itertools import combinations

from tests.fault.disk.file_log import ROOT, Cut, Names, Sync, Write, common_length


class Disk:
    """A directory as it is, and which of it is safe."""

    def __init__(self, operations=()):
        self.directories = {ROOT}
        self.names = {}  # (directory, name): number, as they are on disk for sure
        self.pending = {}  # number of an operation: its changes of names that may be lost
        self.safe = {}  # file: content at its last fsync
        self.now = {}  # file: content
        self.count = 0
        for operation in operations:
            self.do(operation)

    def do(self, operation):
        """Carry on by one operation."""
        self.count += 1
        match operation:
            case Names(changes, directories):
                self.directories |= directories
                self.pending[self.count] = list(changes)
                for _, _, number in changes:
                    if number is not None and number not in self.directories:
                        self.now.setdefault(number, b"")
            case Write(file, start, data):
                before = self.now[file]
                self.now[file] = before[:start] + data + before[start + len(data) :]
            case Cut(file, size):
                self.now[file] = self.now[file][:size]
            case Sync(number) if number in self.directories:
                self._sync_names(number)
            case Sync(number):
                self.safe[number] = self.now[number]

    def _sync_names(self, directory):
        for number, changes in list(self.pending.items()):
            for change in [change for change in changes if change[0] == directory]:
                self.names[change[:2]] = change[2]
                changes.remove(change)
            if not changes:
                del self.pending[number]

    def unsafe(self):
        """Files whose content may be lost, of those that have a name, or may have one again."""
        named = {number for number in self.names.values() if number is not None}
        named |= {change[2] for changes in self.pending.values() for change in changes}
        return [file for file in sorted(self.now) if file in named and self.now[file] != self.safe.get(file, b"")]

    def tree(self, lost=frozenset(), damaged=None):
        """Return what is found: of each path the content, None for a directory.

        `lost` are operations, or (operation, change) for one half of it; `damaged` has the content of some files.
        """
        names = dict(self.names)
        for number, changes in self.pending.items():
            for half, change in enumerate(changes):
                if number not in lost and (number, half) not in lost:
                    names[change[:2]] = change[2]
        below = {}
        for (directory, name), number in names.items():
            if number is not None:
                below.setdefault(directory, []).append((name, number))
        content = {**self.now, **(damaged or {})}
        found, waiting, seen = {}, [("", ROOT)], set()
        while waiting:
            path, number = waiting.pop()
            if number not in self.directories:
                found[path] = content[number]
            elif number not in seen:  # a directory has one name
                seen.add(number)
                found[path] = None
                waiting += [(f"{path}/{name}".lstrip("/"), below_it) for name, below_it in below.get(number, ())]
        return found


def _halves(safe, now):
    same = common_length(safe, now)
    return same, (same + len(now) + 1) // 2


def missing(safe, now):
    del now
    return safe


def short(safe, now):
    return now[: _halves(safe, now)[1]] if len(now) > len(safe) else safe[: (len(now) + len(safe)) // 2]


def zeroed(safe, now):
    same = common_length(safe, now)
    return now[:same] + bytes(len(now) - same)


def torn(safe, now):
    middle = _halves(safe, now)[1]
    return now[:middle] + bytes(len(now) - middle)


def torn_in_front(safe, now):
    same, middle = _halves(safe, now)
    return now[:same] + bytes(middle - same) + now[middle:]


DAMAGES = (missing, short, zeroed, torn, torn_in_front)


def _damaged(disk, files, damage):
    return {file: damage(disk.safe.get(file, b""), disk.now[file]) for file in files}


def crashes(disk, *, pairs=0, seed=0):
    """Yield (what happened, lost, damaged): nothing, everything, each thing alone, all but each thing.

    With `pairs`, also one in so many of all pairs of losses, chosen by the seed.
    """
    names, files = set(disk.pending), disk.unsafe()
    yield "nothing lost", set(), {}
    yield "no name kept", names, {}
    for damage in DAMAGES:
        yield f"all data {damage.__name__}", set(), _damaged(disk, files, damage)
    yield "everything lost", names, _damaged(disk, files, missing)
    for number, changes in disk.pending.items():
        yield f"operation {number} lost", {number}, {}
        yield f"only operation {number} kept", names - {number}, _damaged(disk, files, missing)
        if len(changes) == 2 and changes[0][0] != changes[1][0]:
            yield f"operation {number} half done", {(number, 0)}, {}
            yield f"operation {number} other half done", {(number, 1)}, {}
    for file in files:
        for damage in DAMAGES:
            yield f"file {file} {damage.__name__}", set(), _damaged(disk, [file], damage)
        yield f"only file {file} kept", set(), _damaged(disk, [other for other in files if other != file], missing)
    chance = random.Random(f"{seed}:{disk.count}")
    everything = [*names, *((file, damage) for file in files for damage in DAMAGES)]
    for pair in combinations(everything, 2) if pairs else ():
        if chance.random() * pairs < 1:
            yield _together(disk, pair)


def random_crash(disk, chance):
    """Return one of all the crashes there are."""
    names, files = sorted(disk.pending), disk.unsafe()
    share = chance.choice([0.05, 0.2, 0.5, 0.9])
    losses = [name for name in names if chance.random() < share]
    losses += [(file, chance.choice(DAMAGES)) for file in files if chance.random() < share]
    return _together(disk, losses)


def _together(disk, losses):
    lost = {loss for loss in losses if isinstance(loss, int)}
    damaged = {}
    for file, damage in (loss for loss in losses if not isinstance(loss, int)):
        damaged |= _damaged(disk, [file], damage)
    said = [f"file {loss[0]} {loss[1].__name__}" if isinstance(loss, tuple) else f"operation {loss}" for loss in losses]
    return f"lost: {', '.join(said)}", lost, damaged
