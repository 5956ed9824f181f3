"""`ResponseCache`: every answer a server gave, kept on disk, so that no question is paid for twice.

One SQLite file in a directory, shared by all processes and all runs that name the directory. The key is made of what
decides an answer: path of the server, model, messages, all parameters, number of the sample. Errors are never kept.

An answer is on disk 0.1 s after it came: a separate thread writes what has come in the meantime, in one transaction.
Until then it is found in memory. If that thread is late, the next answer waits for it. So if the process is killed, 0.1
s of answers are all that is paid for again, besides what was in flight.

Looking up one answer costs SQLite as much as reading thirty that lie together, and a run that is repeated asks nearly
in the order of the first. So a lookup that finds an answer also reads the block of rows around it (`_Neighbours`). One
that finds none has looked into the file: what other processes have written by then is found.

The file is in WAL mode: readers and the one writer at a time do not wait for each other. WAL needs a local disk: on a
network file system SQLite refuses, or is not safe (docs/adr/0024-response-cache.md).

If the disk is full or goes away, the next caller gets the error, as with any other of the machine's
(`engine/faults.py`). What was answered stays in memory and is written when that works again.
"""

import contextlib
import errno
import hashlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import msgspec

from gristmill.errors import ConfigError, MachineError
from gristmill.models.client.usage import Answer
from gristmill.storage.atomic_write import machine_error

FILE = "responses.sqlite"
GROUP_S = 0.08  # answers that come within it are written together
LATE_S = 0.1  # an answer that is not on disk by then keeps the next one waiting
MOST_WAIT_S = 2.0  # another process may be writing for long: better to pay again than to stand still
BUSY_S = 30.0  # another process may be writing
BLOCK_ROWS = 64  # read together
BLOCKS = 4  # held: lanes ask a little out of order
LEAST_USED = 0.25  # of what is held; below it reading ahead costs more than it saves
REST = 512  # questions looked up one by one, after blocks that were not worth it
AGAIN_S = 0.5  # after a write that failed
VERSION = 1  # of the table; a file with another is refused
_APPLICATION = 0x67726973  # "gris", in the header of the file

_ERRNO = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_LOCKED: errno.EBUSY,
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


_SELECT = "SELECT rowid, choices, model, prompt_tokens, completion_tokens, at FROM answers WHERE key = ?"
_SELECT_BLOCK = (
    "SELECT key, choices, model, prompt_tokens, completion_tokens, at FROM answers WHERE rowid BETWEEN ? AND ?"
)
_Row = tuple[int | bytes, bytes, str, int, int, float]  # of either query
_decode_answers = msgspec.json.Decoder(tuple[Answer, ...]).decode


class Stored(msgspec.Struct, frozen=True, gc=False):
    """What is kept of what a server answered: all choices, the model that gave it, tokens, time."""

    answers: tuple[Answer, ...]
    model: str
    prompt_tokens: int
    completion_tokens: int
    at: float


def cache_key(path: str, request: bytes, sample: int) -> bytes:
    """Return 16 bytes for a question: the path of the server, all that it is sent, and the number of the sample."""
    made = hashlib.blake2b(f"{path}\n{sample}\n".encode(), digest_size=16)
    made.update(request)
    return made.digest()


class _Neighbours:
    """Rows that lie beside those asked for, until they are asked for themselves.

    If most of them go unused (many processes filled the file together, or the order differs), rows are looked up one by
    one for a while.
    """

    def __init__(self) -> None:
        self._rows: dict[bytes, _Row] = {}
        self._blocks: dict[int, list[bytes]] = {}  # keys of each, oldest first
        self._rest = 0

    def take(self, key: bytes) -> _Row | None:
        return self._rows.pop(key, None)

    def block_to_read(self, rowid: int) -> int | None:
        """Return the block of a row that was looked up, if reading it is likely to pay off."""
        block = rowid // BLOCK_ROWS
        if block in self._blocks:
            return None
        if self._rest:
            self._rest -= 1
            return None
        return block

    def add(self, block: int, rows: list[_Row], *, but: bytes) -> None:
        """Hold the rows of a block but for the one that was asked for, in place of the oldest block."""
        if len(self._blocks) == BLOCKS:
            if len(self._rows) > (1 - LEAST_USED) * sum(map(len, self._blocks.values())):
                self._rest = REST
                self._rows.clear()
                self._blocks.clear()
                return
            for key in self._blocks.pop(next(iter(self._blocks))):
                self._rows.pop(key, None)
        new = {cast("bytes", row[0]): row for row in rows if row[0] != but}
        self._rows |= new
        self._blocks[block] = [*new]


class ResponseCache:
    """The answers in a directory. Safe in several threads and processes."""

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory) / FILE
        self._lock = threading.Lock()  # of the connection that reads, and of what waits to be written
        self._wake = threading.Condition(self._lock)
        self._pending: dict[bytes, Stored] = {}
        self._spent: dict[str, float] = {}  # by scope, not yet written
        self._writing: dict[bytes, Stored] = {}
        self._pending_since = self._writing_since = 0.0  # when the first of them came
        self._flushes = 0  # asked for by callers that are waiting
        self._hurries = 0
        self._error: MachineError | None = None
        self._closing = False
        self._neighbours = _Neighbours()
        with self._in_words():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._reader = self._connect()
            self._asked = self._reader.cursor()  # making one for each question would take a tenth of its time
        self._writer = threading.Thread(target=self._write_on, name="gristmill-answers", daemon=True)
        self._writer.start()

    # What is asked

    def get(self, key: bytes) -> Stored | None:
        """Return what is kept for a question."""
        with self._lock:
            if self._error is not None:
                self.raise_if_failing()
            if (found := self._pending.get(key) or self._writing.get(key)) is not None:
                return found
            try:
                row = self._look_up(key)
            except sqlite3.Error as error:
                raise _explained(self.path, error) from error
        if row is None:
            return None
        return Stored(_decode_answers(row[1]), *row[2:])

    def _look_up(self, key: bytes) -> _Row | None:
        if (near := self._neighbours.take(key)) is not None:
            return near
        found = self._asked.execute(_SELECT, (key,)).fetchone()
        if found is None:
            return None
        block = self._neighbours.block_to_read(found[0])
        if block is not None:
            first = block * BLOCK_ROWS
            rows = self._asked.execute(_SELECT_BLOCK, (first, first + BLOCK_ROWS - 1)).fetchall()
            self._neighbours.add(block, rows, but=key)
        row: _Row = found
        return row

    def put(self, key: bytes, stored: Stored, *, scope: str = "", cost: float = 0.0) -> None:
        """Keep an answer, and what it cost `scope`. Waits while earlier ones are late on their way to disk."""
        with self._wake:
            now = time.monotonic()
            if not self._pending:
                self._pending_since = now
                self._wake.notify_all()
            self._pending[key] = stored
            if cost:
                self._spent[scope] = self._spent.get(scope, 0.0) + cost
            if self._is_late(now):
                self._hurries += 1
                self._wake.notify_all()
                self._wake.wait_for(lambda: self._error is not None or not self._is_late(now), MOST_WAIT_S)
                self._hurries -= 1

    def _is_late(self, now: float) -> bool:
        """Whether an answer was not on disk in time, as of `now`."""
        came = self._writing_since if self._writing else self._pending_since if self._pending else now
        return now - came > LATE_S

    def spent(self, scope: str) -> float:
        """Return what `scope`, a stage of a run, has paid for answers so far."""
        self.flush()
        with self._lock, self._in_words():
            row = self._reader.execute("SELECT cost FROM spending WHERE scope = ?", (scope,)).fetchone()
        return 0.0 if row is None else float(row[0])

    def __len__(self) -> int:
        with self._lock, self._in_words():
            return int(self._reader.execute("SELECT count(*) FROM answers").fetchone()[0])

    def flush(self) -> None:
        """Wait until everything is on disk."""
        with self._wake:
            self._flushes += 1
            self._wake.notify_all()
            self._wake.wait_for(lambda: not (self._pending or self._writing or self._spent) or self._error is not None)
            self._flushes -= 1
            self.raise_if_failing()

    def close(self) -> None:
        """Write what is left, and let go of the file."""
        try:
            self.flush()
        finally:
            with self._wake:
                self._closing = True
                self._wake.notify_all()
            self._writer.join()
            self._reader.close()

    # What is written

    def _write_on(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._pending or self._spent or self._closing)
                if self._closing:
                    break
                self._wait_for_more()
                self._writing, self._pending = self._pending, {}
                self._writing_since = self._pending_since
                spent, self._spent = self._spent, {}
            problem: MachineError | None = None
            try:
                with self._in_words():
                    connection = connection or self._connect()
                    _store(connection, self._writing, spent)
            except MachineError as error:
                problem = error
                connection = None  # whatever state it is in
            with self._wake:
                self._error = problem
                if problem is not None:  # what came in the meantime is newer
                    self._pending = self._writing | self._pending
                    for scope, cost in spent.items():
                        self._spent[scope] = self._spent.get(scope, 0.0) + cost
                for key in self._writing:
                    self._neighbours.take(key)  # it may be what was kept before
                self._writing = {}
                self._wake.notify_all()
        if connection is not None:
            connection.close()

    def _wait_for_more(self) -> None:
        """Wait until it is time to write: at once if a caller waits for it, after a while if it failed before."""
        if self._error is not None:
            self._wake.wait_for(lambda: self._flushes or self._closing, AGAIN_S)
            return
        left_s = GROUP_S - (time.monotonic() - self._pending_since) if self._pending else GROUP_S
        self._wake.wait_for(lambda: self._flushes or self._hurries or self._closing, max(0.0, left_s))

    def raise_if_failing(self) -> None:
        """Raise what keeps answers from being written, if anything does."""
        if self._error is not None:
            again = MachineError(*self._error.args)  # an error that is raised twice would grow a traceback
            again.errno = self._error.errno
            raise again

    # The file

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        """Turn SQLite's errors into errors of the machine, with the path and what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise _explained(self.path, error) from error
        except OSError as error:
            raise machine_error(str(self.path), error) from error


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make a connection ready, and the table if there is none. Several processes may be doing that at once."""
    until = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:  # the change of mode does not wait for another process's
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.02)
    # In WAL mode this survives a killed process. A machine that loses power may lose the last answers, nothing else.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    kind, version = (connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("application_id", "user_version"))
    is_new = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not is_new and (kind, version) != (_APPLICATION, VERSION):
        connection.execute("ROLLBACK")
        got = f"version {version}" if kind == _APPLICATION else "a database of something else"
        raise ConfigError(
            f"response_cache: expected answers of version {VERSION} in {path}; got {got}. Name another directory"
        )
    if is_new:
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute(
            "CREATE TABLE answers (key BLOB PRIMARY KEY, choices BLOB NOT NULL, model TEXT NOT NULL, "
            "prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, at REAL NOT NULL)"
        )
        connection.execute("CREATE TABLE spending (scope TEXT PRIMARY KEY, cost REAL NOT NULL)")
    connection.execute("COMMIT")


def _store(connection: sqlite3.Connection, answers: Mapping[bytes, Stored], spent: Mapping[str, float]) -> None:
    rows = [
        (key, msgspec.json.encode(each.answers), each.model, each.prompt_tokens, each.completion_tokens, each.at)
        for key, each in answers.items()
    ]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.executemany(
        "INSERT INTO spending VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET cost = cost + excluded.cost",
        list(spent.items()),
    )
    connection.execute("COMMIT")


def _explained(path: Path, error: sqlite3.Error) -> MachineError:
    code = getattr(error, "sqlite_errorcode", None)
    base = None if code is None else code & 0xFF  # extended codes add detail above
    if base in _DAMAGED:
        damaged = MachineError(
            f"{path}: expected answers of earlier runs; the file is damaged ({error}). Move it away, with its -wal and "
            "-shm if there are any, and run the same command again: answers in it will be asked for again"
        )
        damaged.errno = errno.ENOENT  # waiting does not mend it
        return damaged
    number = _ERRNO.get(base or 0, errno.EIO)
    return machine_error(str(path), OSError(number, str(error)))
