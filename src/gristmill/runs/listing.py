"""The list of inputs of an earlier session of a run, for stages that would list others now.

"The latest dump" is another one tomorrow. A run that is continued goes on with the files it was started with: they are
in its header, together with the configuration of the stage that listed them. Where that has changed, or where a URL
had a secret in it that was not written down, the stage lists again, and differences are reported as for other inputs.
"""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from gristmill.runs.ledger import is_sealed
from gristmill.secrets import HIDDEN
from gristmill.stages.base import AnyStage
from gristmill.storage.file_system import absolute, file_system, is_url

Listed = tuple[str, int, str]


def _run_directory_of(stages: Sequence[AnyStage], checkpoint_path: Path | str | None) -> tuple[str, AnyStage | None]:
    """Where the run of these stages keeps its header, and the stage that writes there; "" if it keeps none."""
    if checkpoint_path is not None:
        return absolute(str(checkpoint_path)), None
    writers = [stage for stage in stages if stage.output_directory() is not None]
    if not writers:
        return "", None
    return f"{absolute(writers[-1].output_directory() or '').rstrip('/')}/.gristmill", writers[-1]


def earlier_listing(
    stages: Sequence[AnyStage], checkpoint_path: Path | str | None, listing: str
) -> list[Listed] | None:
    """Return the inputs of an earlier session, listed by a stage of this configuration; None if none were."""
    directory, writer = _run_directory_of(stages, checkpoint_path)
    if not directory:
        return None
    options = writer.output_options() if writer is not None and is_url(directory) else None
    fs = file_system(directory, options)
    for name in ("header.json", "segment-1/header.json"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, json.JSONDecodeError, UnicodeDecodeError):
            with fs.open_read(f"{directory}/{name}") as file:
                text = file.read().decode()
            header = json.loads(text)
            if is_sealed(text) and isinstance(header, dict) and header.get("listing") == listing:
                inputs: list[Listed] = [(path, size, version) for path, size, version in header["inputs"]]
                return None if any(HIDDEN in path for path, _, _ in inputs) else inputs
    return None
