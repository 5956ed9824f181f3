"""The books of a worker: every document that went into a call came out, was dropped, quarantined or written.

What a call gave is entered into the result of its job. Documents that leave the stream on the way, rejected or in
quarantine, leave it as side files.

And `Recording`: what stages observed is recorded once a call is in the books, and written when its job is done. A run
that records nothing loads nothing for it: `is_on` says which it is.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from gristmill.engine.commands import Care
from gristmill.engine.plan import AnyStage, AnyTask, Group
from gristmill.errors import MachineError, StageError
from gristmill.metrics.snapshot import StageCounts, error_kind
from gristmill.secrets import without_url_secrets
from gristmill.stages.context import PAYLOADS_DIR, Quarantined, Rejected, StageContext
from gristmill.storage.atomic_write import Chunk, explained, force_file, remove, stage_file
from gristmill.storage.file_system import StorageOptions
from gristmill.tasks import Batch, FileGroupTask, ItemRecord, StagedFile, StagePerfStats, Task
from gristmill.tasks.batch import Payload, extension_of, number_or_text, payload_bytes
from gristmill.worker.failing import StageRaised
from gristmill.worker.job import Job, JobResult, Place, Result, RunSettings

if TYPE_CHECKING:
    from gristmill.worker.observer import Observer


class Recording:
    """What is recorded about the documents of one group."""

    def __init__(self, group: Group, settings: RunSettings) -> None:
        self.is_on = settings.observation.is_on and settings.measures_path is not None
        self._first = settings.stages_before + group.first_stage
        self._places = [Place(name, number) for number, name in enumerate(group.names, self._first)]
        self._settings = settings
        self._observer: Observer | None = None

    @property
    def observer(self) -> "Observer":
        """The observer, loaded when something is first recorded."""
        if self._observer is None:
            from gristmill.worker.observer import Observer

            given = self._settings
            self._observer = Observer(given.observation, given.measures_path or "", given.side_options[1])
        return self._observer

    def take(self, first: int, contexts: Sequence[StageContext], result: JobResult) -> None:
        """Record what the stages from `first` on have reported in one call."""
        if not self.is_on or not any(context.has_observed for context in contexts):
            return
        from gristmill.worker.observer import fewer

        observed = self.observer.observe(list(zip(self._places[first : first + len(contexts)], contexts, strict=True)))
        # A stage keeps its context until it is called again. Until then the batch would stay in memory, and the next
        # would be read into fresh pages beside it, which took a tenth of the time that recording takes.
        for context in contexts:
            context.measured = context.gone = None
        if observed is not None:
            result.observed = fewer([*result.observed, observed])

    def take_written(self, task: AnyTask, context: StageContext | None, result: JobResult) -> None:
        """Record documents that leave the pipeline at its end; those the call dropped have not got that far."""
        if self.is_on and task.counts_documents:
            observed = self.observer.observe_written(task, None if context is None else context.gone)
            result.observed += [observed] if observed is not None else []

    def write(self, job: Job, result: JobResult, context: StageContext) -> None:
        """Write what was recorded of a job, to be published with its partition; `context` says where."""
        if result.observed:
            # Named after a stage, not the group, so that names differ however stages share workers.
            name = f"{job.item_id}-s{self._first:02d}"
            result.side_files.append(self.observer.write(result.observed, name, context))
            result.observed = []


class Item(msgspec.Struct, eq=False):
    """A task on its way through the group, and the job it belongs to."""

    job: int
    item_id: str
    task: AnyTask
    documents: int  # counted before the stage, which may change the task in place
    num_bytes: int
    seen: int = 0  # documents of it that came out, were dropped or quarantined
    wrote: bool = False
    seen_bytes: int = 0  # the same as `seen`, in bytes

    def lose(self, context: StageContext) -> int:
        """Note what was dropped of it or quarantined, and return how many documents that is."""
        lost = sum(context.dropped.values()) + sum([record.num_documents for record in context.quarantined])
        self.seen += lost
        self.seen_bytes += sum(context.dropped_bytes.values())
        return lost


class CallBooks:
    """Enters what calls of one group's stages gave."""

    def __init__(self, group: Group, settings: RunSettings) -> None:
        self._names = group.names
        self._stages = group.stages
        self._side = SideFiles(
            group, settings.rejects_path, settings.quarantine_path, settings.side_options, settings.stages_before
        )
        self.recording = Recording(group, settings)

    def enter_call(
        self,
        index: int,
        item: Item,
        job: Job,
        made: Result,
        context: StageContext,
        result: JobResult,
        seconds: float,
    ) -> None:
        """Enter what a call of one task gave; what it streams is entered as it comes."""
        if made is None and job.care is Care.NORMAL and context.is_clean and item.task.counts_documents:
            result.counts[index].returned_none += item.documents
        if isinstance(made, Task) or not isinstance(made, Iterator):
            outputs = made if isinstance(made, list) else [] if made is None else [made]
            self.enter(index, item, outputs, context, result, seconds)
        else:
            self.enter(index, item, [], context, result, seconds, more_to_come=True)

    def close(self, job: Job, result: JobResult, context: StageContext) -> None:
        """Write what was recorded of a job that is done; `context` is one of its attempt."""
        try:
            self.recording.write(job, result, context)
        except MachineError as error:
            raise StageRaised(self._stages[-1], error) from error

    def enter(
        self,
        index: int,
        item: Item,
        outputs: Sequence[AnyTask],
        context: StageContext,
        result: JobResult,
        seconds: float,
        *,
        more_to_come: bool = False,
        came_out: tuple[int, int] | None = None,  # documents and bytes, where the outputs have been through more stages
    ) -> None:
        """Enter what a call gave: every document in is out, dropped, quarantined or written."""
        made, num_bytes = self._take_outputs(index, item, outputs, result, came_out)
        counts, name, clean = result.counts[index], self._names[index], context.is_clean
        lost = 0 if clean else item.lose(context)
        item.seen += made
        item.seen_bytes += num_bytes
        counts.process_s += seconds
        counts.documents_out += made
        counts.bytes_out += num_bytes
        if not item.task.counts_documents:
            counts.read += made + lost
        if not more_to_come:
            self._close_item(item, counts, context, name)
            if item.wrote:
                self.recording.take_written(item.task, context, result)
        if not clean or context.dropped:
            _add_each(counts.dropped, context.dropped)
            _add_each(counts.dropped_bytes, context.dropped_bytes)
            self._note(index, item, context, result)
        if context.metrics is not None:
            counts.add(context.own_counts)
        if came_out is None:  # otherwise the caller that joined the stages records what all of them say
            self.recording.take(index, [context], result)
        self._add_history(item, outputs, StagePerfStats(name, seconds, 0.0, item.num_bytes / 1e6, item.documents))

    def _take_outputs(
        self,
        index: int,
        item: Item,
        outputs: Sequence[AnyTask],
        result: JobResult,
        came_out: tuple[int, int] | None,
    ) -> tuple[int, int]:
        """Check what came out and take over its files; return how many documents and bytes it is."""
        made = num_bytes = 0
        for task in outputs:  # once: on the way of a quick task this loop is a good part of what books cost
            check_is_task(self._stages[index], task)
            if not task.counts_documents:
                item.wrote = True
            elif came_out is None:
                made += task.num_items
                num_bytes += task.content_bytes
            if isinstance(task, FileGroupTask) and task.staged:
                result.files += task.staged
                task.staged = ()
        return came_out or (made, num_bytes)

    def _note(self, index: int, item: Item, context: StageContext, result: JobResult) -> None:
        """Take over what a call reported on the side."""
        counts = result.counts[index]
        for record in context.quarantined:
            counts.quarantined += record.num_documents
            counts.lost_parts += not (record.num_documents or item.task.counts_documents)
            counts.lost_bytes += record.lost_bytes
            weight = item.task.weight if isinstance(item.task, FileGroupTask) else 1.0
            counts.lost_of_plan += round(record.lost_bytes * weight)
            counts.note_error(error_kind(record.kind, record.error), record.num_documents or 1)
        stage = self._names[index]
        result.facts += [(stage, said) for said in context.facts]
        for name, value in context.learnt.items():
            key = f"{stage}/{name}"
            result.learnt[key] = min(value, result.learnt.get(key, value))
        if context.rejects or context.quarantined:
            # Counted for the stage, not for the group: a name is the same however stages are grouped.
            number = result.notes.get((index, item.item_id), 0)
            result.notes[index, item.item_id] = number + 1
            name = f"{item.item_id}-{number:04d}"
            try:
                result.side_files += self._side.write(index, name, item.item_id, context)
            except MachineError as error:
                raise StageRaised(self._stages[index], error) from error

    @staticmethod
    def _close_item(item: Item, counts: StageCounts, context: StageContext, name: str) -> None:
        """A stage is done with a task: documents not seen since were written or left out; any in excess are new."""
        counts.bytes_in += item.num_bytes
        if not item.task.counts_documents:
            return
        counts.documents_in += item.documents
        unseen = item.documents - item.seen
        if item.wrote:
            counts.written += max(unseen, 0)
        elif unseen > 0:
            context.dropped[name] = context.dropped.get(name, 0) + unseen
            unseen_bytes = max(0, item.num_bytes - item.seen_bytes)
            context.dropped_bytes[name] = context.dropped_bytes.get(name, 0) + unseen_bytes
        else:
            counts.created -= unseen

    @staticmethod
    def _add_history(item: Item, outputs: Sequence[AnyTask], perf: StagePerfStats) -> None:
        before = item.task._stage_perf
        for task in outputs:
            # A new list: a stage may hand its input's list to several outputs.
            task._stage_perf = [*(task._stage_perf or before), perf]


def _add_each(counts: dict[str, int], more: dict[str, int]) -> None:
    for reason, number in more.items():
        counts[reason] = counts.get(reason, 0) + number


def check_is_task(stage: AnyStage, given: object) -> None:
    """Refuse what a stage gave if it is not a task."""
    if not isinstance(given, Task):
        expected = "expected process to return a Task, a list of them, or None"
        raise StageRaised(stage, StageError(f"{stage.stage_name()}: {expected}; got {given!r:.200}"))


def item_of(job: int, item_id: str, task: AnyTask) -> Item:
    """Measure a task before a stage sees it."""
    return Item(job, item_id, task, task.num_items, task.content_bytes)


# Rejected and quarantined items leave a worker as files beside the output, published with it.
#
#     <directory>/part-0-0000-s02.jsonl                 a record a line: which stage, why, which item, from where
#     <directory>/payloads/part-0-0000-s02-00003.jpg    an item that is bytes, whole, as a file that can be opened
#
# Text is in the record itself. All files of a call are staged under temporary names and committed together with what
# the partition gave, so a record and its payload are either both there or not at all. What the bytes mean is up to the
# batch: nothing here knows any kind of item.

MAX_DOCUMENT_CHARS = 1 << 20  # of an item's text; the record says where all of it is


class SideFiles:
    """Writes what the stages of one group reject and quarantine."""

    def __init__(
        self,
        group: Group,
        rejects_path: str | None,
        quarantine_path: str | None,
        options: tuple[StorageOptions | None, StorageOptions | None] = (None, None),
        stages_before: int = 0,
    ) -> None:
        self._names = group.names
        self._first_stage = stages_before + group.first_stage
        self._rejects_path = rejects_path
        self._quarantine_path = quarantine_path
        self._rejects_options, self._quarantine_options = options  # where they are on a store

    def write(self, index: int, name: str, item_id: str, context: StageContext) -> list[StagedFile]:
        """Write what one call of stage `index` reported; `name` is unique in the run and the same in every attempt."""
        stage = self._names[index]
        stem = f"{name}-s{self._first_stage + index:02d}"
        staged = []
        if context.rejects and self._rejects_path:
            sheet = _Sheet(self._rejects_path, stem, context, self._rejects_options)
            for rejected in context.rejects:
                sheet.add_rejected(stage, rejected)
            staged += sheet.staged()
        if context.quarantined and self._quarantine_path:
            sheet = _Sheet(self._quarantine_path, stem, context, self._quarantine_options)
            for record in context.quarantined:
                sheet.add_quarantined(stage, item_id, record)
            staged += sheet.staged()
        return staged

    @staticmethod
    def discard(staged: Iterable[StagedFile], options: StorageOptions | None = None) -> None:
        """Remove files of a trial."""
        for file in staged:
            remove(file.temporary, storage_options=options)


class _Sheet:
    """The records of one call, and the payloads beside them."""

    def __init__(self, directory: str, stem: str, context: StageContext, options: StorageOptions | None) -> None:
        self._directory = directory.rstrip("/")
        self._stem = stem
        self._context = context
        self._options = options
        self._lines: list[bytes] = []
        self._payloads: list[StagedFile] = []
        self._items = 0

    def add_rejected(self, stage: str, rejected: Rejected) -> None:
        batch, size = rejected.items, rejected.items.num_items
        values = rejected.values or (None,) * size
        notes: dict[str, Sequence[object]] = {
            "reject_stage": [stage] * size,
            "reject_reason": [rejected.reason] * size,
            "reject_value": [None if value is None else _value(value) for value in values],
            "reject_threshold": [rejected.threshold] * size,
        }
        self._items += size
        lines = _json_lines(batch, notes | _origins(batch))
        if lines is not None:
            self._lines += lines
            return
        for row in range(size):
            item = shown_item(batch, row)
            fields: dict[str, object] = {
                "id": item.id or f"{batch.task_id}#{row}",
                "source": without_url_secrets(item.source),
                "preview": item.preview,
                "text": item.text[:MAX_DOCUMENT_CHARS],
            }
            fields |= {name: column[row] for name, column in notes.items()}
            self._lines.append(_line(fields | self._kept(item.payload, item.extension)))

    def add_quarantined(self, stage: str, item_id: str, record: Quarantined) -> None:
        fields: dict[str, object] = {
            "stage": stage,
            "task": item_id,
            "error": record.error,
            "kind": record.kind,
            "source": record.source,
            "line": record.line,
            "block_start": record.block_start,
            "row": record.row,
            "document_id": record.document_id,
            "num_documents": record.num_documents,
            "lost_bytes": record.lost_bytes,
            "traceback": record.traceback,
            "document": record.document[:MAX_DOCUMENT_CHARS],
        }
        self._items += 1
        self._lines.append(_line(fields | self._kept(record.payload, record.extension)))

    def _kept(self, payload: Payload | None, extension: str) -> dict[str, object]:
        """Stage the payload of an item; return what its record says about it."""
        if payload is None:
            return {}
        view = payload_bytes(payload)
        name = f"{PAYLOADS_DIR}/{self._stem}-{len(self._payloads):05d}{extension_of(view, extension)}"
        self._payloads.append(self._stage(name, [view], items=0))
        return {"payload": name}

    def staged(self) -> list[StagedFile]:
        """Stage the records; return all files, records first."""
        return [self._stage(f"{self._stem}.jsonl", self._lines, items=self._items), *self._payloads]

    def _stage(self, name: str, chunks: Iterable[Chunk], *, items: int) -> StagedFile:
        final = f"{self._directory}/{name}"
        with explained(final):
            temporary = self._context.staging_path(self._directory, name) or final
            written = stage_file(temporary, chunks, storage_options=self._options)
            if self._context.durable:
                force_file(written.path)
        return StagedFile(written.path, final, written.num_bytes, items, written.checksum)


def _origins(batch: Batch[object]) -> dict[str, Sequence[object]]:
    """Which items these are and where they came from, for records that are the items themselves with more fields."""
    from gristmill.tasks import TableBatch  # which needs Arrow; a worker without tables does not

    ids: list[object] = [None] * batch.num_items
    if isinstance(batch, TableBatch):
        with contextlib.suppress(Exception):  # a user's column that cannot be read: a number will do as an id
            ids = batch.column("id").to_pylist() if batch.has_column("id") else ids
    return {
        "reject_id": [f"{batch.task_id}#{row}" if name is None else str(name) for row, name in enumerate(ids)],
        "reject_source": [without_url_secrets(", ".join(batch.sources()))] * batch.num_items,
    }


def _json_lines(batch: Batch[object], notes: dict[str, Sequence[object]]) -> list[bytes] | None:
    try:
        return batch.json_lines(notes)
    except Exception:  # code of the batch's author: item by item there is more to say
        return None


def shown_item(batch: Batch[object], row: int) -> ItemRecord:
    """One item as it is recorded. What broke a stage may break the batch's own `item`: then the record says so."""
    try:
        item = batch.item(row)
        texts = (str(item.id), str(item.source), str(item.preview), str(item.text))
        payload = None if item.payload is None else payload_bytes(item.payload)
        return ItemRecord(*texts, payload, str(item.extension))
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error)[:200]}"
    return ItemRecord(source=", ".join(batch.sources()), preview=f"({type(batch).__name__}.item raised {problem})")


def _value(value: object) -> float | str | None:
    """A measured value as a record has it: a number, or text of limited length, whatever a stage gave."""
    try:
        plain = number_or_text(value, MAX_DOCUMENT_CHARS)
        return float(plain) if isinstance(plain, bool | int | float) else plain
    except Exception as error:  # its author's code, or an endless number: the item is what counts
        return f"({type(value).__name__} that cannot be shown: {type(error).__name__})"


def _line(fields: dict[str, object]) -> bytes:
    # A lone surrogate, as in a name that is not UTF-8, is not valid JSON to every reader.
    sound = {key: _sound(value) if isinstance(value, str) else value for key, value in fields.items()}
    return json.dumps(sound, ensure_ascii=True, separators=(",", ":"), default=number_or_text).encode() + b"\n"


def _sound(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
