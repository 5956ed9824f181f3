"""Checks of the `read_kwargs` and `write_kwargs` dictionaries: an unknown key is an error, never ignored."""

from collections.abc import Iterable, Mapping
from typing import cast

from gristmill.errors import ConfigError, nearest
from gristmill.storage.file_system import StorageOptions


def check_kwargs(who: str, option: str, given: Mapping[str, object] | None, known: Iterable[str]) -> None:
    """Refuse keys that would have no effect."""
    known = sorted(known)
    for key in given or {}:
        if key not in known:
            raise ConfigError(f"{who}: expected {option} to have keys of {known}; got {key!r}{nearest(key, known)}")


def storage_options(given: Mapping[str, object] | None) -> StorageOptions | None:
    """Return what is meant for the file system."""
    return cast("StorageOptions | None", (given or {}).get("storage_options"))


def part_options(
    reader_config: Mapping[str, object], read_kwargs: Mapping[str, object] | None
) -> StorageOptions | None:
    """Return the reader's own storage options, or those the files were listed with."""
    return storage_options(read_kwargs) or storage_options(reader_config)
