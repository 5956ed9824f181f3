"""`DocumentWriter`: what writers of documents add to those of other things: files of at most some size."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pyarrow as pa
import xxhash

from gristmill.stages.io.files import FileWriter, storage_options, write_output
from gristmill.storage.atomic_write import Chunk
from gristmill.tasks import DocumentBatch, FileGroupTask

Part = tuple[int, Iterable[Chunk]]  # how many documents a file has, and its bytes before they are compressed
NEWLINE = ord("\n")


@dataclass(eq=False)
class _DocumentWriter(FileWriter[DocumentBatch]):
    """Write documents. With `max_file_bytes` a batch becomes several files where one would be larger.

    They are called `<task id>.0000` and so on. Bytes are counted before they are compressed. A document that is larger
    by itself has a file of its own. Where files end depends on the documents only.
    """

    max_file_bytes: int | str | None = field(default=None, kw_only=True)

    def parts(self, batch: DocumentBatch, most: int) -> Iterator[Part]:
        """Yield the files a batch becomes if none may have more than `most` bytes."""
        raise NotImplementedError

    def write_parts(self, task: DocumentBatch, most: int) -> FileGroupTask:
        selected = task if self.fields is None else self._selected(task, self.fields)
        return self._write_all(task, self.parts(selected, most))

    def _write_all(self, task: DocumentBatch, parts: Iterator[Part]) -> FileGroupTask:
        """Write the files of a batch, named after it, or outside of a run after what they hold."""
        stem = task.task_id
        if not stem:
            held = [(count, [bytes(chunk) for chunk in chunks]) for count, chunks in parts]
            stem = xxhash.xxh3_128(b"".join(chunk for _, chunks in held for chunk in chunks)).hexdigest()
            parts = iter(held)
        first, second = next(parts), next(parts, None)
        if second is None:
            return self._write(task, stem, first)
        numbered = enumerate(chain([first, second], parts))
        made = [self._write(task, f"{stem}.{number:04d}", part) for number, part in numbered]
        paths = [path for one in made for path in one.data]
        return FileGroupTask(task.dataset_name, paths, staged=tuple(file for one in made for file in one.staged))

    def _write(self, task: DocumentBatch, stem: str, part: Part) -> FileGroupTask:
        num_items, chunks = part
        final = f"{self.path.rstrip('/')}/{stem}.{self.file_extension}"
        options = storage_options(self.write_kwargs)
        return write_output(
            self.context, final, self._compressed(chunks), task, num_items=num_items, storage_options=options
        )


def cut_lines(chunks: Iterable[Chunk], most: int) -> Iterator[Part]:
    """Cut chunks of whole lines, a document each, into files of at most `most` bytes, with at least one line each."""
    held: list[Chunk] = []
    size = lines = 0
    for chunk in chunks:
        view = memoryview(chunk).cast("B")
        ends = np.flatnonzero(np.frombuffer(view, np.uint8) == NEWLINE) + 1
        done = start = 0  # lines and bytes of this chunk
        while done < len(ends):
            fitting = int(np.searchsorted(ends, start + most - size, side="right"))
            if fitting <= done and size:
                yield lines, held
                held, size, lines = [], 0, 0
                continue
            fitting = max(fitting, done + 1)  # a line that is too long has a file of its own
            end = int(ends[fitting - 1])
            held.append(view[start:end])
            size += end - start
            lines += fitting - done
            done, start = fitting, end
    if held:
        yield lines, held


def cut_table(table: pa.Table, most: int) -> Iterator[pa.Table]:
    """Cut rows into tables of at most `most` bytes in memory, with at least one row each."""
    start = 0
    while start < table.num_rows:
        low, high = 1, table.num_rows - start
        if table.slice(start).nbytes > most:
            while low < high:  # the most rows that fit
                middle = (low + high + 1) // 2
                fits = table.slice(start, middle).nbytes <= most
                low, high = (middle, high) if fits else (low, middle - 1)
        else:
            low = high
        yield table.slice(start, low)
        start += low
