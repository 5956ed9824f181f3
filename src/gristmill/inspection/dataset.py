"""A dataset to look at: some files of JSON lines or Parquet in a row, of any size.

Opening lists the files and opens the first. Others are opened when a page reaches them, and one at a time stays open.
A `Place` is where a row is. Numbers of rows run on over all files, and are estimates until everything before them has
been counted; `count_rows` does that, usually on a thread of its own. All methods may be called from several threads:
calls are answered one at a time.
"""

import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gristmill.errors import ConfigError, ReadError, nearest
from gristmill.inspection.columns import Kind
from gristmill.inspection.expression import parse
from gristmill.inspection.line_counts import LineCounts
from gristmill.inspection.lines_file import LinesFile
from gristmill.inspection.parquet_file import ParquetTable
from gristmill.inspection.rows import Count, DataFile, Found, Place, Row
from gristmill.inspection.wanted import Wanted
from gristmill.storage.paths import has_extension, list_files

LINES, PARQUET = (".jsonl", ".ndjson", ".json"), (".parquet",)
_SAMPLED_FILES = 4  # whose columns are looked at before a condition is checked
_AT_ONCE = 100  # rows of a sample: 20,000 long ones would be hundreds of megabytes
_RUNS = 20  # places a sample is taken from; each costs decoding some megabytes of a row group


@dataclass(frozen=True)
class Located:
    """A row, and where it is in the dataset."""

    place: Place
    row: Row
    end: Place


@dataclass(frozen=True)
class Looked:
    """One step of a search over a dataset: the wanted rows in it, and how far the search has come."""

    rows: Sequence[Located]
    found: Found
    end: Place
    share: float


class Dataset:
    """Files in a row. `paths` are files, directories or globs."""

    def __init__(self, paths: str | Sequence[str]) -> None:
        files = list_files(paths, extensions=[*LINES, *PARQUET], who="inspect")
        self.paths = [status.path for status in files]
        self._sizes = [status.size for status in files]
        self._counts = [LineCounts() for _ in self.paths]
        self._rows: dict[int, int] = {}  # of Parquet files whose footer was read, of others once they are counted
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._open: tuple[int, DataFile] | None = None
        self._kinds: dict[str, Kind] | None = None
        self._file(0)

    def close(self) -> None:
        """Stop counting and close the file that is open."""
        self._stopped.set()
        with self._lock:
            if self._open is not None:
                self._open[1].close()
            self._open = None

    def __enter__(self) -> "Dataset":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _file(self, number: int) -> DataFile:
        if self._open is not None and self._open[0] == number:
            return self._open[1]
        if self._open is not None:
            self._open[1].close()
            self._open = None
        path = self.paths[number]
        opened: DataFile
        if is_parquet(path):
            opened = ParquetTable(path)
            self._rows[number] = opened.size
        else:
            opened = LinesFile(path, self._counts[number])
        self._open = number, opened
        return opened

    @property
    def start(self) -> Place:
        """Where the first row is."""
        return Place(0, 0)

    @property
    def is_streamed(self) -> bool:
        """Whether the file at hand is compressed, so that going back in it means reading it again."""
        with self._lock:
            return self._open is not None and self._open[1].is_streamed

    def kinds(self) -> dict[str, Kind]:
        """The columns and what kind they are, as some rows of some files show them."""
        with self._lock:
            if self._kinds is None:
                kinds: dict[str, Kind] = {}
                for number in _spread(len(self.paths), _SAMPLED_FILES):
                    found = self._file(number).kinds()
                    kinds |= {name: kind for name, kind in found.items() if kinds.get(name, "unknown") == "unknown"}
                self._kinds = kinds
            return self._kinds

    def columns(self) -> list[str]:
        """The names of the columns, without the fields inside records."""
        kinds = self.kinds()
        return [name for name in kinds if not any(name.startswith(f"{outer}.") for outer in _records(kinds))]

    def wanted(self, where: str = "", text: str = "") -> Wanted:
        """Check a condition against the columns there are."""
        return Wanted(parse(where, self.kinds()) if where.strip() else None, text)

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise ConfigError for the first name that is not a column's."""
        known = self.kinds()
        for name in names:
            if name not in known:
                columns = ", ".join(self.columns())
                raise ConfigError(f"inspect: expected columns of {columns}; got {name!r}{nearest(name, known)}")

    def page(self, place: Place, count: int) -> list[Located]:
        """Return rows from a place on, across the ends of files."""
        rows: list[Located] = []
        number, offset = place
        with self._lock:
            while number < len(self.paths) and len(rows) < count:
                file = self._file(number)
                read = file.read(offset, count - len(rows))
                rows += [_located(number, row) for row in read]
                number, offset = number + 1, 0
        return rows

    def place_name(self, place: Place) -> str:
        """The file and the line or row, for people."""
        with self._lock:
            return self._file(place.file).place_name(place.offset)

    def source(self, place: Place) -> str:
        """Where a row is in words that stay the same, whether rows have been counted or not."""
        path = self.paths[place.file]
        return f"{path}: row {place.offset + 1}" if is_parquet(path) else f"{path}: byte {place.offset}"

    def back(self, place: Place, count: int) -> Place:
        """The place `count` rows earlier, across the beginnings of files."""
        number, offset = place
        with self._lock:
            offset, missing = self._file(number).back(offset, count)
            while missing and number:
                number -= 1
                offset, missing = self._file(number).back(self._end_of(number), missing)
        return Place(number, offset)

    def _end_of(self, number: int) -> int:
        file = self._file(number)
        if file.is_streamed:  # its size is known at its end only
            for _ in file.matches(0, Wanted()):
                pass
        return file.size

    def at_row(self, number: int) -> Place:
        """Where the row of a number, from 1, is, or the last one; roughly there while rows are being counted."""
        with self._lock:
            left = max(1, number)
            for index in range(len(self.paths)):
                rows = self._num_rows(index).rows
                if left <= rows or index == len(self.paths) - 1:
                    return Place(index, self._file(index).at_row(left))
                left -= rows
        raise AssertionError("a dataset has a file")

    def last(self) -> Place:
        """Where the last row is."""
        with self._lock:
            return self.back(Place(len(self.paths) - 1, self._end_of(len(self.paths) - 1)), 1)

    def row_at(self, place: Place) -> Count:
        """The number, from 1, of the row at a place."""
        with self._lock:
            own = self._file(place.file).row_at(place.offset)
            before = [self._num_rows(number) for number in range(place.file)]
        return Count(own.rows + sum(c.rows for c in before), own.is_exact and all(c.is_exact for c in before))

    def num_rows(self) -> Count:
        """How many rows there are."""
        with self._lock:
            counts = [self._num_rows(number) for number in range(len(self.paths))]
        return Count(sum(c.rows for c in counts), all(c.is_exact for c in counts))

    def _num_rows(self, number: int) -> Count:
        known = self._rows.get(number, self._counts[number].total)
        if known is not None:
            return Count(known, is_exact=True)
        if self._open is not None and self._open[0] == number:
            return self._open[1].num_rows()
        counted, counted_bytes = self._counts[number].counted()
        return Count(counted + round(max(0, self._sizes[number] - counted_bytes) * self._density()), is_exact=False)

    def _density(self) -> float:
        """Rows per byte in the files, taken from the one at hand."""
        if self._open is None:
            return 0.0
        number, file = self._open
        return file.num_rows().rows / max(1, self._sizes[number])

    def count_rows(self) -> None:
        """Count the rows of all files; returns when that is done or the dataset is closed."""
        for number, path in enumerate(self.paths):
            if self._stopped.is_set():
                return
            try:
                if not is_parquet(path):
                    self._counts[number].count(path, self._stopped)
                elif number not in self._rows:
                    file = ParquetTable(path)
                    self._rows[number] = file.size
                    file.close()
            except ReadError:  # the page that reaches the file will say what is wrong with it
                self._rows[number] = 0

    def look(self, place: Place, wanted: Wanted) -> Iterator[Looked]:
        """Yield what is wanted from a place on, stretch by stretch: a search can be stopped, and says how far it is."""
        total = sum(self._sizes) or 1
        for number in range(place.file, len(self.paths)):
            done = sum(self._sizes[:number])
            offset = place.offset if number == place.file else 0
            with self._lock:
                stretches = self._file(number).matches(offset, wanted)
            while True:
                with self._lock:
                    file = self._file(number)
                    found = next(stretches, None)
                    if found is None:
                        break
                    rows = [_located(number, row) for row in found.rows]
                    inner = min(1.0, found.end / max(1, file.size))
                share = (done + inner * self._sizes[number]) / total
                yield Looked(rows, found, Place(number, found.end), share)

    def sample(self, count: int, *, seed: int) -> Iterator[list[Located]]:
        """Yield rows from places chosen at random, in runs of neighbours; all rows if there are no more than that."""
        with self._lock:
            if self.has_at_most(count):
                place = self.start
                while rows := self.page(place, _AT_ONCE):
                    yield rows
                    place = rows[-1].end
                return
        chance = random.Random(seed)
        runs = min(count, _RUNS)
        taken: set[Place] = set()
        for number, share in enumerate(sorted(chance.random() for _ in range(runs))):
            left, place = count // runs + (number < count % runs), self._somewhere(share)
            while left > 0:
                rows = self.page(place, min(left, _AT_ONCE))
                if not rows:
                    break
                left, place = left - len(rows), rows[-1].end
                yield [located for located in rows if located.place not in taken]
                taken.update(located.place for located in rows)

    def has_at_most(self, count: int) -> bool:
        """Whether there are no more rows than that; known without reading if there are many more."""
        found = self.num_rows()
        if found.is_exact or found.rows > 4 * count:
            return found.rows <= count
        place, seen = self.start, 0
        while seen <= count and (rows := self.page(place, _AT_ONCE)):
            place, seen = rows[-1].end, seen + len(rows)
        return seen <= count

    def _somewhere(self, share: float) -> Place:
        position = share * sum(self._sizes)
        for number, size in enumerate(self._sizes):
            if position < size or number == len(self._sizes) - 1:
                with self._lock:
                    file = self._file(number)
                    return Place(number, file.near(min(1.0, position / max(1, size))))
            position -= size
        raise AssertionError("a dataset has a file")


def _located(number: int, row: Row) -> Located:
    return Located(Place(number, row.offset), row, Place(number, row.end))


def is_parquet(path: str) -> bool:
    """Whether a file is read as Parquet; everything else is read as lines of JSON."""
    return has_extension(path, PARQUET)


def _spread(count: int, most: int) -> list[int]:
    """Some numbers below `count`, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(step * (count - 1) / (most - 1)) for step in range(most)})


def _records(kinds: dict[str, Kind]) -> list[str]:
    return [name for name, kind in kinds.items() if kind == "record"]
