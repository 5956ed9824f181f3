"""`ReadPartition`: the second half of an exchange. One task per partition, made of its rows in every file."""

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from gristmill.errors import ReadError
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import FileGroupTask, FileSlice, TableBatch
from gristmill.tasks.serialization import HEADER_KEY, load_batch


def partition_tasks(directory: str, number: int, num_partitions: int, *, total_bytes: int = 0) -> list[FileGroupTask]:
    """Return a task for each partition of the pipeline's exchange `number`; the files need not exist yet."""
    label = "partition" if number == 1 else f"partition-{number}"
    size = total_bytes // num_partitions
    return [
        FileGroupTask(
            label,
            [directory],
            reader_config={"partition": index},
            # The name alone: a run in a moved directory is the same run.
            slices=(FileSlice(directory.rpartition("/")[2], num_bytes=size),),
            partition_name=f"{label}-{index:05d}",
        )
        for index in range(num_partitions)
    ]


@dataclass(eq=False)
class ReadPartition(ProcessingStage[FileGroupTask, TableBatch]):
    """Read one partition: its rows of each file, files in the order of their names."""

    name: str = field(default="exchange_read", kw_only=True)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def process(self, task: FileGroupTask) -> TableBatch | None:
        index = task.reader_config["partition"]
        assert isinstance(index, int)  # noqa: S101  # made by partition_tasks
        files = sorted(Path(task.data[0]).glob("*.arrow"))
        parts = [part for path in files if (part := read_rows(path, index)) is not None]
        if not parts:
            return None
        batch = type(parts[0]).concat(parts)
        batch._metadata = {}  # where the rows came from differs from row to row
        return batch


def read_rows(path: Path, index: int) -> TableBatch | None:
    """The rows of one file, mapped and not copied; None if there are none."""
    try:
        file = pa.ipc.open_file(pa.memory_map(str(path)))
        rows = file.get_batch(index)
    except (OSError, pa.ArrowInvalid) as error:
        raise ReadError(f"{path}: expected a file of an exchange; got {error}") from error
    if not rows.num_rows:
        return None
    metadata = dict(file.schema.metadata)
    header = metadata.pop(HEADER_KEY)
    return load_batch(header, pa.Table.from_batches([rows]).replace_schema_metadata(metadata or None))
