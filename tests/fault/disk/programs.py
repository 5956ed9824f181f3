"""The runs whose crashes are tried: small, in one process, everything below one directory, the same every time."""

import json
import os
import shutil
from pathlib import Path

from tests.byte_batch import make_payloads
from tests.byte_batch import stages as byte_stages

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.runs import sinks as lock_file
from gristmill.stages.base import ProcessingStage
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

# What differs between two undisturbed runs, or says how a run went rather than what came of it.
INCIDENTAL = {
    *("status.json", "metrics.jsonl", "events.log", "measured.json", "lock", "start"),
    *("report.json", "ledger.jsonl", "header.json"),  # have times and sessions in them
    *(f"events.{number}.log" for number in range(1, 9)),  # of sessions before
}


class Refuse(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Cannot cope with one kind of document."""

    name = "refuse"

    def process(self, task):
        if "poison" in task.column("text").to_pylist():
            raise ValueError("will not do: poison")
        return task


def make_input(directory, num_files=3, documents=4):
    """Write files with documents to keep, to drop, to quarantine, to find twice, and a line that is no document."""
    directory.mkdir(parents=True)
    for number in range(num_files):
        rows = [{"id": f"{number}-{row}", "text": f"file {number % 2} row {row} " * 6} for row in range(documents)]
        rows[0]["text"] = f"only here: {number} " * 6
        rows += [{"id": f"{number}-short", "text": "short"}] if number != 1 else [{"id": "1-p", "text": "poison"}]
        lines = [json.dumps(row) for row in rows] + (['{"broken'] if number == 2 else [])
        (directory / f"p{number}.jsonl").write_text("\n".join(lines) + "\n")


class Program:
    """One command: `run` is what a user would do again after a crash."""

    def __init__(self, place):
        self.input = place / "in"
        self.work = place / "work"
        self.boot = place / "boot"
        make_input(self.input)

    def clear(self):
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)

    def restart(self):
        """From now on the machine is another, or has been started again."""
        self.boot.write_text(os.urandom(8).hex())
        lock_file.BOOT_ID = self.boot

    def prepare(self):
        """What was there before the command was given for the first time."""

    def begin(self):
        """Give the command for the first time; return the books."""
        return self.run()

    def run(self):
        """Give the command again; return the books."""
        raise NotImplementedError

    def found(self):
        """Return what the run has left, of each file below the directory the content."""
        found = {}
        for directory, _, names in os.walk(self.work):  # `Path.rglob` takes three times as long
            below = os.path.relpath(directory, self.work)
            # The rest only a search needs; and nobody needs how an index was made once it is there.
            kept = ("found.json", "consulted.json") if "/search/" in below else () if _of_index(below) else names
            for name in names:
                if name in kept and not _is_incidental(name, in_run_dir="lock" in names):
                    content = Path(directory, name).read_bytes()
                    if name == "found.json":  # of a search, with how long it took
                        content = json.dumps({**json.loads(content), "identification_time": 0, "xxh3": ""}).encode()
                    found[f"{below}/{name}".removeprefix("./")] = content
        return found


def _of_index(directory):
    return directory.startswith("index/") and "run" in directory.split("/")


def _is_incidental(name, *, in_run_dir):
    is_temporary = name.startswith(".") and name.endswith(".tmp")  # neither data nor anybody's any more
    if in_run_dir:
        return (name[1:-4] if is_temporary else name) in INCIDENTAL
    return name == "output.lock" or is_temporary


def _books(result):
    return {name: counts.to_json() | {"process_s": 0} for name, counts in result.counts.items()}


class _Planned(Pipeline):
    """Plans once: the input is the same every time, and a fifth of a state would be spent on looking at it."""

    def __init__(self, stages):
        super().__init__("curate", stages=stages)
        self._planned = None

    def _plan(self, executor, initial_tasks, continued=None):
        self._planned = self._planned or super()._plan(executor, initial_tasks, continued)
        return self._planned


class Curate(Program):
    """Files in, files out; documents are rejected and quarantined."""

    durable = False
    mode = "ignore"
    most = None  # bytes of a file

    def __init__(self, place):
        super().__init__(place)
        self._pipelines = {}

    def filters(self, min_words):
        return [Refuse(), ScoreFilter(WordCountFilter(min_words=min_words))]

    def _stages(self, min_words):
        writer = JsonlWriter(f"{self.work}/out", mode=self.mode, max_file_bytes=self.most)
        return [JsonlReader(str(self.input)), *self.filters(min_words), writer]

    def run(self, *, fresh=False, min_words=3):
        if min_words not in self._pipelines:
            self._pipelines[min_words] = _Planned(self._stages(min_words))
        paths = {"checkpoint_path": f"{self.work}/run", "rejects_path": f"{self.work}/rejects"}
        return _books(
            self._pipelines[min_words].run(
                LocalExecutor(num_workers=0, durable=self.durable), fresh=fresh, quiet=True, **paths
            )
        )


class Durable(Curate):
    """Every file is forced, and nobody looks at files again. Partitions have several files each."""

    durable = True
    most = 60


class Fresh(Curate):
    """Another run was here, with more documents in its output; the new one is started with `fresh`, then continued.

    That is refused for as long as the earlier run is there: then it is started over.
    """

    def prepare(self):
        self.run(min_words=1)

    def begin(self):
        return self.run(fresh=True)


class Overwrite(Curate):
    """Files of somebody else were in the output directory."""

    mode = "overwrite"

    def prepare(self):
        (self.work / "out").mkdir()
        for name in ("p1.jsonl", "theirs.jsonl"):
            (self.work / "out" / name).write_text('{"text": "not of this run"}\n')


class Regroup(Curate):
    """The same with an exchange in between."""

    def filters(self, min_words):
        return [Refuse(), Exchange("text", 3), ScoreFilter(WordCountFilter(min_words=min_words))]


class Payloads(Curate):
    """Items that are bytes: what is rejected and quarantined of them are files of their own beside the records."""

    def __init__(self, place):
        super().__init__(place)
        shutil.rmtree(self.input)
        make_payloads(self.input, files=3, items=4)

    def _stages(self, min_words):
        del min_words
        return byte_stages(self.input, self.work)


class Exact(Program):
    """Exact deduplication, with an index."""

    def run(self):
        out = f"{self.work}/out"
        options = {"total_nparts": 2, "id_field": "id", "index": f"{self.work}/index"}
        result = ExactDeduplicationWorkflow(out, str(self.input), "jsonl", **options).run(
            executor=LocalExecutor(num_workers=0), quiet=True
        )
        return _metadata(result)


class Fuzzy(Program):
    """Fuzzy deduplication, with an index."""

    def run(self):
        options = {"id_field": "id", "index": f"{self.work}/index"}
        workflow = FuzzyDeduplicationWorkflow(None, f"{self.work}/out", str(self.input), "jsonl", **options)
        return _metadata(workflow.run(executor=LocalExecutor(num_workers=0), quiet=True))


def _metadata(result):
    return {key: str(value) for key, value in result.metadata.items() if not key.endswith("_time")}


PROGRAMS = {"curate": Curate, "durable": Durable, "fresh": Fresh, "overwrite": Overwrite, "regroup": Regroup}
PROGRAMS |= {"payloads": Payloads}
PROGRAMS |= {"exact": Exact, "fuzzy": Fuzzy}


def build(work: Path, tree):
    """Make a directory hold what a crash has left."""
    shutil.rmtree(work, ignore_errors=True)
    for path in sorted(tree):
        if tree[path] is None:
            (work / path).mkdir(parents=True, exist_ok=True)
        else:
            (work / path).write_bytes(tree[path])
