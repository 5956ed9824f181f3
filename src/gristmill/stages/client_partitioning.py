"""`ClientPartitioningStage`: a list of files in a file, as users know it. Stores are read like directories anyway."""

import json
from dataclasses import dataclass, field

from gristmill.errors import ConfigError
from gristmill.stages.io.partitioning import FilePartitioningStage
from gristmill.storage.file_system import is_url
from gristmill.storage.open_read import read_all
from gristmill.storage.paths import FileList, list_files

__all__ = ["ClientPartitioningStage"]


@dataclass(eq=False)
class ClientPartitioningStage(FilePartitioningStage):
    """List files below `file_paths`; with `input_list_json_path`, those a JSON list names, and no others.

    The entries of the list are paths relative to `file_paths`, or begin with it.
    """

    input_list_json_path: str | None = None
    name: str = field(default="client_partitioning", kw_only=True)

    def _files(self) -> FileList:
        if self.input_list_json_path is None:
            return super()._files()
        if not isinstance(self.file_paths, str):
            raise ConfigError(f"{self.name}: expected file_paths to be one directory; got {self.file_paths!r}")
        root = self.file_paths.rstrip("/")
        paths = [entry if _is_absolute(entry) else f"{root}/{entry}" for entry in self._listed()]
        options = self.storage_options
        files = list_files(paths, extensions=self.file_extensions, storage_options=options, who=self.name)
        return self._noted(files)

    def _listed(self) -> list[str]:
        path = str(self.input_list_json_path)
        try:
            entries = json.loads(read_all(path, storage_options=self.storage_options))
        except ValueError as error:
            raise ConfigError(f"{self.name}: expected {path!r} to hold a JSON list of paths; got {error}") from None
        if not isinstance(entries, list) or not entries or not all(isinstance(entry, str) for entry in entries):
            raise ConfigError(f"{self.name}: expected {path!r} to hold a JSON list of paths; got {entries!r:.200}")
        return sorted(dict.fromkeys(entries))


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or is_url(path)
