"""`DecontaminationWorkflow`: documents without parts of benchmarks, and a report of those that had some."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from gristmill.backends.base import BaseExecutor
from gristmill.backends.default_executor import default_executor
from gristmill.deduplication.job_input import DedupInput
from gristmill.pipeline import Pipeline
from gristmill.pipeline.pipeline import Watching
from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult, errors_of
from gristmill.runs.user import Observer
from gristmill.stages.text.decontamination import Decontaminate
from gristmill.stages.text.io.formats import WRITERS
from gristmill.storage.atomic_write import write_file
from gristmill.storage.file_system import disk_path

EXAMPLES = 20  # documents named for each benchmark
SHOWN_CHARS = 200


@dataclass
class DecontaminationWorkflow(WorkflowBase):
    """Write the clean documents below `output_path/clean`, the others below `contaminated`, and `report.json`.

    The contaminated ones carry the benchmark and the words they share with it.
    """

    output_path: str
    input_path: str | Sequence[str]
    benchmarks: str
    input_filetype: str = "jsonl"
    text_field: str = "text"
    _: KW_ONLY
    ngram_words: int = 13
    min_hits: int = 1
    fresh: bool = False

    def run(
        self, executor: BaseExecutor | None = None, *, observer: Observer | None = None, quiet: bool = False
    ) -> WorkflowRunResult:
        """Read twice: once for what is clean, once for what is not."""
        executor = executor or default_executor()
        with Watching("decontamination", executor, quiet=quiet, observer=observer) as watching:
            result = self._run(executor, watching.observer)
            watching.tell(result)
        return result

    def _run(self, executor: BaseExecutor, observer: Observer | None) -> WorkflowRunResult:
        output = disk_path(self.output_path, who="output_path")
        if self.fresh:
            for name in (".gristmill", "clean", "contaminated"):
                shutil.rmtree(output / name, ignore_errors=True)
        source = DedupInput(type(self).__name__, self.input_path, self.input_filetype)
        done = {}
        for name, contaminated in (("clean", False), ("contaminated", True)):
            stage = Decontaminate(self.benchmarks, self.ngram_words, self.text_field, self.min_hits, contaminated)
            kind = source.filetype if name == "clean" else "jsonl"
            stages = [source.reader(), stage, WRITERS[kind](str(output / name))]
            pipeline = Pipeline(f"decontaminate_{name}", stages=stages)  # type: ignore[arg-type]  # invariant
            run_dir = output / ".gristmill" / name
            done[name] = pipeline.run(executor, checkpoint_path=run_dir, observer=observer, quiet=True)
        report = self._report(done["contaminated"].output_files)
        path = output / "report.json"
        write_file(str(path), [json.dumps(report, indent=1, ensure_ascii=False).encode()])
        numbers = {"num_documents": done["clean"].read, "num_contaminated": done["contaminated"].written}
        by_benchmark = {name: own["documents"] for name, own in report.items()}
        lines = [f"{numbers['num_documents']:,} documents, {numbers['num_contaminated']:,} contaminated"]
        lines += [f"  {number:>10,}  {benchmark}" for benchmark, number in by_benchmark.items()]
        return WorkflowRunResult(
            "decontamination",
            {**done},
            {**numbers, "by_benchmark": by_benchmark, "report_path": str(path)},
            "\n".join([*lines, "", f"report       {path}"]),
            errors_of(list(done.values())),
        )

    def _report(self, files: Sequence[str]) -> dict[str, dict[str, object]]:
        """For each benchmark: how many documents, which words in a row, and some of the documents."""
        documents: Counter[str] = Counter()
        words: dict[str, Counter[str]] = {}
        examples: dict[str, list[dict[str, str]]] = {}
        for file in files:
            for row in _rows(file):
                benchmark, matched = str(row["contaminated_by"]), str(row["contaminating_words"])[:SHOWN_CHARS]
                documents[benchmark] += 1
                words.setdefault(benchmark, Counter())[matched] += 1
                if len(examples.setdefault(benchmark, [])) < EXAMPLES:
                    text = str(row.get(self.text_field, ""))[:SHOWN_CHARS]
                    examples[benchmark].append({"id": str(row.get("id", "")), "text": text, "words": matched})
        return {
            name: {
                "documents": count,
                "words": dict(words[name].most_common(EXAMPLES)),
                "examples": examples[name],
            }
            for name, count in sorted(documents.items())
        }


def _rows(file: str) -> Iterator[dict[str, object]]:
    """Documents one by one. Only a newline ends a line: texts may hold other characters that Python takes for one."""
    with Path(file).open("rb") as lines:
        for line in lines:
            yield json.loads(line)
