"""gristmill's side of the text benchmark: one recipe, with two workers.

python benchmarks/text/with_gristmill.py RECIPE INPUT OUTPUT REPORT
"""

import json
import sys
import time
from pathlib import Path

from gristmill.backends.local import LocalExecutor
from gristmill.config.run import create_pipeline_from_yaml


def main() -> None:
    """Run the recipe; write its seconds and how many documents it kept to REPORT."""
    recipe, source, output, report = sys.argv[1:]
    started = time.perf_counter()
    result = create_pipeline_from_yaml(recipe, input=source, output=output).run(LocalExecutor(num_workers=2))
    run_s = time.perf_counter() - started
    Path(report).write_text(json.dumps({"run_s": run_s, "kept": result.written}))


if __name__ == "__main__":
    main()
