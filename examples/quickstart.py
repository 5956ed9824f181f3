"""The smallest useful pipeline: read a directory of JSONL, keep what is long enough, write it.

python examples/quickstart.py raw/ clean/
"""

import sys

from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter


def main(source: str, target: str) -> None:
    """Run the pipeline and print its books."""
    pipeline = Pipeline(name="quickstart", description="Keep documents of at least 50 words")
    pipeline.add_stage(JsonlReader(file_paths=source))
    pipeline.add_stage(ScoreFilter(WordCountFilter(min_words=50)))
    pipeline.add_stage(JsonlWriter(path=target))
    result = pipeline.run()
    print(f"read {result.read}, kept {result.written}, dropped {result.dropped}, quarantined {result.quarantined}")


if __name__ == "__main__":  # workers import this module, and must not start a run of their own
    main(*sys.argv[1:3])
