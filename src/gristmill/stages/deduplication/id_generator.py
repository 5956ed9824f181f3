"""Ids without an id server. Elsewhere an actor hands out numbers; here a document's id is its place in the input.

The functions exist so that users' scripts run; there is nothing to create, to kill or to save.
"""

CURATOR_DEDUP_ID_STR = "_curator_dedup_id"  # stands for the place in the input, where documents have no id of their own


def create_id_generator_actor(filepath: str | None = None, storage_options: object = None) -> None:
    """Do nothing."""


def kill_id_generator_actor() -> None:
    """Do nothing."""


def write_id_generator_to_disk(filepath: str, storage_options: object = None) -> None:
    """Do nothing."""
