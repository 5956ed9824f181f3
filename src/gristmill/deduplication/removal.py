"""`TextDuplicatesRemovalWorkflow`: remove duplicates that an earlier run listed, for users who check the list first."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from gristmill.backends.base import BaseExecutor
from gristmill.deduplication.documents import RemoveById, RemoveDocuments, read_ids, write_removals
from gristmill.deduplication.job_input import DedupInput, given_input
from gristmill.deduplication.report import FILE_NAME
from gristmill.engine.plan import AnyStage, AnyTask
from gristmill.errors import ConfigError, StageError
from gristmill.pipeline import Pipeline
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, warn_ignored
from gristmill.runs.user import Observer
from gristmill.stages.deduplication.id_generator import CURATOR_DEDUP_ID_STR
from gristmill.stages.io.files import check_kwargs
from gristmill.stages.text.io.formats import WRITERS, check_format
from gristmill.storage.file_system import disk_path

KNOWN_FOLDERS = ("ExactDuplicateIds", "FuzzyDuplicateIds", "duplicates")  # where other tools put ids, beside our file


@dataclass
class TextDuplicatesRemovalWorkflow(WorkflowBase):
    """Write the documents of `input_path` whose id is not in `ids_to_remove_path` (a `duplicates.parquet`).

    By default ids are places in the input, as the workflows write them without an `id_field`; the input must then be
    cut as it was then, and a place it does not have is an error. With `id_field`, ids are values of that column, which
    `drop_id_field` leaves out of what is written.
    """

    IGNORED: ClassVar[tuple[str, ...]] = (
        "input_files_per_partition",
        "input_task_limit",
        "duplicate_id_read_kwargs",
        "id_generator_path",
        "id_generator_storage_options",
    )

    input_path: str | Sequence[str] | None
    ids_to_remove_path: str
    output_path: str
    input_filetype: str = "parquet"
    input_fields: Sequence[str] | None = None
    id_field: str = CURATOR_DEDUP_ID_STR
    input_files_per_partition: int | None = None
    input_blocksize: int | str | None = None
    input_file_extensions: Sequence[str] | None = None
    input_task_limit: int | None = None
    input_kwargs: Mapping[str, object] | None = None
    duplicate_id_field: str = "id"
    duplicate_id_read_kwargs: Mapping[str, object] | None = None
    id_generator_path: str | None = None
    id_generator_storage_options: Mapping[str, object] | None = None
    output_file_extension: str | None = None
    output_filetype: str = "parquet"
    output_kwargs: Mapping[str, object] | None = None
    output_fields: Sequence[str] | None = None
    output_mode: str | None = None
    drop_id_field: bool = False
    _: KW_ONLY
    run_dir: str | None = None

    def __post_init__(self) -> None:
        check_format(self.output_filetype, WRITERS, who=type(self).__name__, option="output_filetype")
        warn_ignored(self)

    def run(
        self,
        executor: BaseExecutor | None = None,
        initial_tasks: Sequence[AnyTask] | None = None,
        *,
        observer: Observer | None = None,
        quiet: bool = False,
    ) -> WorkflowRunResult:
        """Read, remove, write."""
        started = time.monotonic()
        who = type(self).__name__
        path = given_input(who, self.input_path, initial_tasks)
        options = self.input_filetype, self.input_blocksize, self.input_file_extensions, self.input_kwargs
        source = DedupInput(who, path, *options)
        run_dir = disk_path(self.run_dir or f"{self.output_path.rstrip('/')}/.gristmill", who="run_dir")
        done = self._pipeline(source, run_dir).run(
            executor, checkpoint_path=run_dir / "remove", observer=observer, quiet=quiet
        )
        return WorkflowRunResult(
            "text_duplicates_removal",
            {"removal": done},
            {"num_duplicates_removed": done.dropped_total, "total_time": time.monotonic() - started},
            str(done),
        )

    def _pipeline(self, source: DedupInput, run_dir: Path) -> Pipeline:
        fields = list(self.output_fields) if self.output_fields else None
        writer = WRITERS[self.output_filetype](
            self.output_path,
            **({"file_extension": self.output_file_extension} if self.output_file_extension else {}),
            write_kwargs=dict(self.output_kwargs or {}),
            fields=fields,
            mode=self.output_mode or "ignore",  # type: ignore[arg-type]  # checked by the writer
        )
        stages = [source.reader(self.input_fields), self._removing(source, run_dir), writer]
        return Pipeline("remove_duplicates", stages=stages)

    def _ids(self) -> tuple[str, str]:
        """The file of ids and its column. Users' scripts name those that NeMo Curator makes."""
        path = Path(self.ids_to_remove_path)
        if path.name in KNOWN_FOLDERS and not path.exists() and (path.parent / FILE_NAME).is_file():
            path = path.parent / FILE_NAME
        is_ours = path.name == FILE_NAME and self.duplicate_id_field == CURATOR_DEDUP_ID_STR
        return str(path), "id" if is_ours else self.duplicate_id_field

    def _removing(self, source: DedupInput, run_dir: Path) -> AnyStage:
        path, column = self._ids()
        if self.id_field != CURATOR_DEDUP_ID_STR:
            return RemoveById(path, self.id_field, column, drop_id_field=self.drop_id_field)
        removals = run_dir / "removals.npy"
        removals.parent.mkdir(parents=True, exist_ok=True)
        labels = read_ids(path, column).to_pylist()
        try:
            write_removals(removals, np.array([source.numbers.parse(label) for label in labels], np.uint64))
        except (StageError, ValueError) as error:
            raise ConfigError(
                f"{path}: expected places in {source.path!r} as gristmill notes them when it finds "
                f"duplicates, such as 'part-0:17'; got {labels[:1]}. Ids that another tool has numbered mean nothing "
                "here: let gristmill find the duplicates, or name a column of ids with id_field"
            ) from error
        return RemoveDocuments(source.numbers, str(removals))


class TextDuplicatesRemovalStage(RemoveById):
    """`RemoveById` with the parameters users know."""

    def __init__(
        self,
        ids_to_remove_path: str,
        id_field: str = CURATOR_DEDUP_ID_STR,
        duplicate_id_field: str = "id",
        read_kwargs: Mapping[str, object] | None = None,
    ) -> None:
        check_kwargs("remove_duplicates", "read_kwargs", read_kwargs, ())
        super().__init__(ids_to_remove_path, id_field, duplicate_id_field)
