"""The bytes of a file from anywhere in it: directly, or by decompressing up to there.

`PlainBytes` reads what it is asked for. `StreamedBytes` serves compressed files: it decompresses forwards and keeps
the last 16 MiB. Going back further means waiting while the file is read from its beginning again. Nothing is written to
disk.
"""

from collections import deque
from typing import TYPE_CHECKING, Protocol

from gristmill.errors import DamagedFile
from gristmill.storage.open_read import InputFile
from gristmill.storage.paths import is_compressed

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEPT_BYTES = 16 << 20
_GUESSED_RATIO = 4  # of texts, until something has been decompressed


class ByteAccess(Protocol):
    """What a file of lines needs of its file."""

    is_streamed: bool
    guessed_size: int  # as it was guessed at the beginning, so that the same question has the same answer later

    @property
    def size(self) -> int: ...
    @property
    def damage(self) -> str: ...
    def read(self, start: int, num_bytes: int) -> bytes: ...
    def close(self) -> None: ...


def open_bytes(path: str) -> ByteAccess:
    """Open a file for reading anywhere."""
    return StreamedBytes(path) if is_compressed(path) else PlainBytes(path)


class PlainBytes:
    """A file that is not compressed. Its size is what it was when it was opened."""

    is_streamed = False
    damage = ""

    def __init__(self, path: str) -> None:
        self._file = InputFile(path)
        self.size = self.guessed_size = self._file.size

    def read(self, start: int, num_bytes: int) -> bytes:
        """Return bytes from `start` on, fewer where the file ends."""
        return self._file.read_range(start, start + num_bytes).to_pybytes() if start < self.size else b""

    def close(self) -> None:
        self._file.__exit__(None)


class StreamedBytes:
    """A compressed file. Where it is damaged it ends, and `damage` says so."""

    is_streamed = True

    def __init__(self, path: str) -> None:
        self._path = path
        self.damage = ""
        self._kept: deque[tuple[int, bytes]] = deque()
        self._end = 0  # of what has been decompressed in this pass
        self._longest = 0  # of any pass
        self._is_whole = False
        self._file = InputFile(path)
        self._pieces: Iterator[bytes] = self._file.pieces()
        self.guessed_size = self._file.size * _GUESSED_RATIO

    @property
    def size(self) -> int:
        """The size when decompressed; a guess until the end has been seen."""
        return self._longest if self._is_whole else max(self._longest + 1, self.guessed_size)

    def read(self, start: int, num_bytes: int) -> bytes:
        """Return bytes from `start` on, fewer where the file ends or is damaged."""
        if self._kept and start < self._kept[0][0]:
            self._begin_again()
        while self._end < start + num_bytes and self._decompress_more(start):
            pass
        parts = [
            piece[max(0, start - begin) : start + num_bytes - begin]
            for begin, piece in self._kept
            if begin < start + num_bytes and begin + len(piece) > start
        ]
        return b"".join(parts)

    def close(self) -> None:
        self._file.__exit__(None)

    def _begin_again(self) -> None:
        self._file.__exit__(None)
        self._file = InputFile(self._path)
        self._pieces, self._end = self._file.pieces(), 0
        self._kept.clear()

    def _decompress_more(self, wanted: int) -> bool:
        """Decompress the next piece; what is wanted from there on is kept, however much it is."""
        try:
            piece = next(self._pieces, None)
        except DamagedFile as error:
            self.damage, piece = str(error), None
        if piece is None:
            self._is_whole = True
            return False
        self._kept.append((self._end, piece))
        self._end += len(piece)
        self._longest = max(self._longest, self._end)
        keep_from = min(wanted, self._end - _KEPT_BYTES)
        while len(self._kept) > 1 and self._kept[1][0] <= keep_from:
            self._kept.popleft()
        return True
