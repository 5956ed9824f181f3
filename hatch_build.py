"""A hook of the build: the wheel carries machine code of every kernel, so that no user waits for a compiler.

A wheel has the code for every kind of machine (`gristmill.kernels.targets`), an editable install for machines like this
one. It takes about a minute of one core, is done by all cores, and is not done again while nothing has changed.
"""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the kernels into `src/gristmill/kernels`, which version control ignores and the wheel includes."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sys.path.insert(0, str(Path(self.root) / "src"))
        from gristmill.kernels.targets import all_targets, known_targets
        from gristmill.stages.kernel_compiler import build_sets

        build_sets(known_targets() if version == "editable" else all_targets(), self.app.display_info)
