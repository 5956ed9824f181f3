"""datatrove's side: exact deduplication (three steps) or MinHash (four), as its examples chain them.

python benchmarks/dedup/with_datatrove.py exact|fuzzy INPUT OUTPUT REPORT      (in an environment of its own)
"""

import json
import sys
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    ExactDedupConfig,
    ExactDedupFilter,
    ExactDedupSignature,
    ExactFindDedups,
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.typeshelper import Languages

WORKERS = 2


def text_of(document: object) -> str:
    return document.text  # type: ignore[attr-defined, no-any-return]


def run(output: str, name: str, pipeline: list[object], tasks: int) -> None:
    LocalPipelineExecutor(
        pipeline=pipeline, tasks=tasks, workers=WORKERS, logging_dir=f"{output}/logs/{name}", skip_completed=False
    ).run()


def exact(source: str, output: str, tasks: int) -> None:
    config = ExactDedupConfig(content_getter=text_of)
    reader = JsonlReader(source, glob_pattern="*.jsonl")
    run(output, "1", [reader, ExactDedupSignature(f"{output}/sigs", config, finder_workers=WORKERS)], tasks)
    run(output, "2", [ExactFindDedups(f"{output}/sigs", f"{output}/dups", config)], WORKERS)
    run(output, "3", [reader, ExactDedupFilter(f"{output}/dups", config=config), writer(output)], tasks)


def fuzzy(source: str, output: str, tasks: int) -> None:
    config = MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8)
    reader = JsonlReader(source, glob_pattern="*.jsonl")
    language = Languages.english
    run(output, "1", [reader, MinhashDedupSignature(f"{output}/sigs", config=config, language=language)], tasks)
    run(output, "2", [MinhashDedupBuckets(f"{output}/sigs", f"{output}/buckets", config=config)], 14)
    run(output, "3", [MinhashDedupCluster(f"{output}/buckets", f"{output}/remove", config=config)], 1)
    run(output, "4", [reader, MinhashDedupFilter(f"{output}/remove"), writer(output)], tasks)


def writer(output: str) -> JsonlWriter:
    return JsonlWriter(f"{output}/out", output_filename="${rank}.jsonl", compression=None)


def main() -> None:
    kind, source, output, report = sys.argv[1:]
    {"exact": exact, "fuzzy": fuzzy}[kind](source, output, len(list(Path(source).glob("*.jsonl"))))
    Path(report).write_text(json.dumps({"kept": f"{output}/out"}))


if __name__ == "__main__":
    main()
