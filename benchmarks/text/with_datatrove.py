"""datatrove's side of the text benchmark: Gopher repetition, Gopher quality, C4, as its users chain them.

python benchmarks/text/with_datatrove.py INPUT OUTPUT REPORT      (in an environment of its own)
"""

import json
import sys
import time
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters import C4QualityFilter, GopherQualityFilter, GopherRepetitionFilter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter


def main() -> None:
    source, output, report = sys.argv[1:]
    executor = LocalPipelineExecutor(
        pipeline=[
            JsonlReader(source, glob_pattern="*.jsonl"),
            GopherRepetitionFilter(),
            GopherQualityFilter(),
            C4QualityFilter(),
            JsonlWriter(f"{output}/out", output_filename="${rank}.jsonl", compression=None),
        ],
        tasks=len(list(Path(source).glob("*.jsonl"))),
        workers=2,
        logging_dir=f"{output}/logs",
        skip_completed=False,
    )
    started = time.perf_counter()
    executor.run()
    run_s = time.perf_counter() - started
    kept = sum(1 for file in Path(output, "out").glob("*.jsonl") for _ in file.open("rb"))
    Path(report).write_text(json.dumps({"run_s": run_s, "kept": kept}))


if __name__ == "__main__":
    main()
