"""`DocumentReader`: what readers of documents have beyond those of other things."""

from dataclasses import dataclass

from gristmill.errors import ConfigError
from gristmill.stages.io.reading import FileReader
from gristmill.tasks import DocumentBatch


@dataclass(eq=False)
class _DocumentReader(FileReader[DocumentBatch]):
    """Read files as documents. Two options that NeMo Curator has are refused with what to do instead."""

    _generate_ids: bool = False
    _assign_ids: bool = False

    def __post_init__(self) -> None:
        if self._generate_ids or self._assign_ids:
            raise ConfigError(
                f"{self.name}: expected _generate_ids and _assign_ids to be False; got {self._generate_ids!r} and "
                f"{self._assign_ids!r}. The stage AddId gives ids, and deduplication numbers documents itself"
            )
        super().__post_init__()
