"""Tries crashes: makes the directory hold what a crash has left, gives the same command again, and compares."""

import hashlib
import random
import traceback
from collections import Counter
from dataclasses import dataclass, field

from tests.fault.disk.crashes import Disk, crashes, random_crash
from tests.fault.disk.file_log import FileLog
from tests.fault.disk.programs import build

from gristmill.errors import ResumeRefused


@dataclass
class Tally:
    """What became of the states that were tried."""

    states: int = 0  # that were thought of
    tried: int = 0  # that differ from each other
    refused: Counter = field(default_factory=Counter)
    wrong: list = field(default_factory=list)

    def __add__(self, other):
        return Tally(
            self.states + other.states,
            self.tried + other.tried,
            self.refused + other.refused,
            self.wrong + other.wrong,
        )

    def __str__(self):
        refused = "; ".join(f"{count} × {words}" for words, count in self.refused.most_common(5))
        return (
            f"{self.states} crashes, {self.tried} different states tried, {len(self.wrong)} wrong, "
            f"{self.refused.total()} refused{f' ({refused})' if refused else ''}"
        )


def take_log(program, tree=None):
    """Run undisturbed, or from what a crash has left; return what was done to the files, the books and what is left."""
    if tree is None:
        program.clear()
        program.prepare()
    else:
        build(program.work, tree)
    program.restart()
    log = FileLog(program.work)
    with log.taken():
        books = program.begin() if tree is None else _go_on(program)
    assert Disk(log.operations).tree() == tree_of(program.work), "the log is not what happened"
    return log, books, program.found()


def _go_on(program):
    try:
        return program.run()
    except ResumeRefused:
        return program.begin()


def tree_of(work):
    """A real directory in the form of `Disk.tree`."""
    paths = [work, *work.rglob("*")]
    return {
        "" if path == work else str(path.relative_to(work)): None if path.is_dir() else path.read_bytes()
        for path in paths
    }


def fingerprint(tree):
    """What tells two states from each other."""
    parts = sorted((path, b"\0" if content is None else b"\1" + content) for path, content in tree.items())
    return hashlib.sha1(repr(parts).encode()).digest()


def all_states(log, *, pairs=0, seed=0, one_in=1):
    """Yield every crash at every point: (what happened, the directory after it, whether the machine was restarted).

    With `one_in` only about one of so many, chosen by the seed: to think of a state costs a tenth of trying it.
    """
    disk = Disk(log.operations[: log.begun])
    chance = random.Random(f"a share: {seed}")
    for operation in log.operations[log.begun :]:
        disk.do(operation)
        for what, lost, damaged in (("killed", None, {}), *crashes(disk, pairs=pairs, seed=seed)):
            if one_in == 1 or chance.random() * one_in < 1:
                tree = disk.tree(lost or frozenset(), damaged)
                yield f"after operation {disk.count}: {what}", tree, lost is not None


def random_states(log, chance, count):
    """Yield crashes with any combination of losses at any point."""
    for point in sorted(chance.choices(range(log.begun, len(log.operations) + 1), k=count)):
        disk = Disk(log.operations[:point])
        what, lost, damaged = random_crash(disk, chance)
        yield f"after operation {point}: {what}", disk.tree(lost, damaged), True


def states_after_two_crashes(program, log, chance, *, first, second):
    """Yield crashes of runs that go on after a crash: what they put right is as little safe as anything not synced."""
    for what, tree, _ in random_states(log, chance, first):
        again, _, _ = take_log(program, tree)
        for then, *rest in random_states(again, chance, second):
            yield (f"{what}; then {then}", *rest)


def explore(program, states, books, expected, *, seen, twice=1, stop_at=20):
    """Try the states that are not among those `seen` already, and add them.

    The command is given again until it has done what it should; after one in `twice` states, once more than that.
    """
    tally = Tally()
    for what, tree, restarted in states:
        tally.states += 1
        key = fingerprint(tree) + bytes([restarted])
        if key in seen:
            continue
        seen.add(key)
        tally.tried += 1
        build(program.work, tree)
        if restarted:
            program.restart()
        _judge(program, what, books, expected, tally, once_more=tally.tried % twice == 0)
        if len(tally.wrong) >= stop_at:
            break
    return tally


def _judge(program, what, books, expected, tally, *, once_more):
    """The same command gives the undisturbed bytes, and once more finds them, or refuses in words."""

    def compare(said, give_command):
        got = give_command()
        difference = _difference(expected, program.found()) or ("other books" if got != books else "")
        if difference:
            tally.wrong.append(f"{what}{said}: {difference}")
        return not difference

    def refuses():
        try:
            if compare("", program.run) and once_more:
                compare(", and once more", program.run)
        except ResumeRefused as error:
            tally.refused[str(error).replace(str(program.work), "")[:200]] += 1
            return True
        return False

    try:
        if refuses():
            compare(", refused and started over", program.begin)
    except Exception as error:  # noqa: BLE001  # a raw error is what is looked for, and no other refusal is expected
        place = traceback.extract_tb(error.__traceback__)[-1]
        tally.wrong.append(f"{what}: {error!r} in {place.filename.rpartition('/')[2]}:{place.lineno}")


def _difference(expected, found):
    missing, extra = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    other = [path for path in expected if path in found and found[path] != expected[path]]
    parts = {"missing": missing, "not expected": extra, "other content": other}
    return ", ".join(f"{word}: {paths}" for word, paths in parts.items() if paths)
