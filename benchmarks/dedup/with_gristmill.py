"""gristmill's side: python -m benchmarks.dedup.with_gristmill KIND INPUT OUTPUT REPORT

KIND is hashing, exact, fuzzy or fuzzy-14x8; exact-stage and fuzzy-stage are the same as stages of a pipeline, and
exact-behind and fuzzy-behind have a stage ahead of them, so that their documents go through the run directory.
"""

import json
import sys
import time
from pathlib import Path

WORKERS = 2


def main() -> None:
    kind, source, output, report = sys.argv[1:]
    name, _, form = kind.partition("-")
    if kind == "hashing":
        told = _hashing(source)
    elif form in ("stage", "behind"):
        told = _stage(name, form, source, output)
    else:
        told = _workflow(kind, source, output)
    Path(report).write_text(json.dumps(told))


def _workflow(kind: str, source: str, output: str) -> dict[str, object]:
    from gristmill.backends.local import LocalExecutor

    executor = LocalExecutor(num_workers=WORKERS, memory_limit="500MB" if kind == "exact" else None)
    if kind == "exact":
        from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow

        result = ExactDeduplicationWorkflow(output, source, "jsonl", id_field="id").run(executor=executor)
    else:
        from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow

        bands = {"num_bands": 14, "minhashes_per_band": 8} if kind == "fuzzy-14x8" else {}
        workflow = FuzzyDeduplicationWorkflow(None, output, source, "jsonl", id_field="id", **bands)
        result = workflow.run(executor=executor)
    return {"kept": f"{output}/deduplicated", "identification_s": result.metadata["identification_time"]}


def _stage(kind: str, form: str, source: str, output: str) -> dict[str, object]:
    from gristmill.backends.local import LocalExecutor
    from gristmill.pipeline import Pipeline
    from gristmill.stages.deduplication import ExactDeduplication, FuzzyDeduplication
    from gristmill.stages.text.io import JsonlReader, JsonlWriter

    ahead = []
    if form == "behind":  # what loads filters: the workflow beside it needs none
        from gristmill.stages.text.filters import ScoreFilter
        from gristmill.stages.text.filters.heuristic import WordCountFilter

        ahead.append(ScoreFilter(WordCountFilter(min_words=1)))
    executor = LocalExecutor(num_workers=WORKERS, memory_limit="500MB" if kind == "exact" else None)
    stage = ExactDeduplication(id_field="id") if kind == "exact" else FuzzyDeduplication(id_field="id")
    kept = f"{output}/deduplicated"
    stages = [JsonlReader(source), *ahead, stage, JsonlWriter(kept)]
    result = Pipeline("deduplicate", stages=stages).run(executor)
    return {"kept": kept, "identification_s": result.found[stage.name]["identification_time"]}


def _hashing(source: str) -> dict[str, object]:
    """Sketching alone, texts in memory, one core, both bandings; after a first call that compiles."""
    import numpy as np

    from gristmill.deduplication.sketches import Shingling
    from gristmill.kernels.dedup.banding import Banding
    from gristmill.stages.text.judging.statistics import TextColumn

    encoded = [json.loads(line)["text"].encode() for f in sorted(Path(source).glob("*.jsonl")) for line in f.open()]
    bounds = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
    texts = TextColumn(np.frombuffer(b"".join(encoded), np.uint8), bounds[:-1].copy(), bounds[1:].copy())
    rates = {}
    for banding in (Banding(22, 5), Banding(14, 8)):
        Shingling().sketch(texts.take(np.arange(1)), banding, 42)
        used = time.process_time()
        Shingling().sketch(texts, banding, 42)
        rates[f"docs_per_s_{banding.num_bands}x{banding.rows}"] = len(texts) / (time.process_time() - used)
    return {"mean_bytes": texts.num_bytes / len(texts), **rates}


if __name__ == "__main__":
    main()
