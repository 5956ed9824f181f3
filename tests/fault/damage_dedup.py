"""Deduplications whose files are damaged (`damage.py`): ledgers of several pipelines, and arrays between them."""

import json
import shutil
from dataclasses import dataclass

import numpy as np
from tests.fault.damage import Scene

from gristmill.backends.local import LocalExecutor
from gristmill.deduplication.part_dedup import PartDeduplicationWorkflow
from gristmill.stages.deduplication.exact.workflow import ExactDeduplicationWorkflow
from gristmill.stages.deduplication.fuzzy.workflow import FuzzyDeduplicationWorkflow
from gristmill.stages.deduplication.semantic import SemanticDeduplicationWorkflow

RUN_DIRS = {"exact": "exact", "fuzzy": "fuzzy", "parts": "lines", "semantic": "semantic"}


@dataclass
class Deduplication(Scene):
    """Interrupted while it wrote the documents that stay: everything found so far lies in its directory.

    Exact and fuzzy ones consult an index of another dataset, so there is an array of it too.
    """

    kind: str = "exact"

    @property
    def run_dir(self):
        return self.work / "out" / ".gristmill" / RUN_DIRS[self.kind]

    def run(self, *, fresh=False):
        return self._workflow("in", self.work / "out", fresh=fresh).run(
            executor=LocalExecutor(num_workers=0), quiet=True
        )

    def _workflow(self, source, out, *, fresh=False):
        source, out = str(self.home / source), str(out)
        index = {"id_field": "id", "index": str(self.home / "index"), "fresh": fresh}
        if self.kind == "exact":
            return ExactDeduplicationWorkflow(out, source, "jsonl", total_nparts=2, **index)
        if self.kind == "fuzzy":
            return FuzzyDeduplicationWorkflow(None, out, source, "jsonl", char_ngrams=5, **index)
        if self.kind == "parts":
            return PartDeduplicationWorkflow(out, source, fresh=fresh)
        return SemanticDeduplicationWorkflow(source, out, 2, eps=0.01, input_filetype="jsonl", clear_output=fresh)

    def make_input(self):
        for number in range(3):
            _write(self.home / "in" / f"{number}.jsonl", [(number, row) for row in range(6)])
        _write(self.home / "earlier" / "0.jsonl", [(7, 1), (0, 1), (1, 3)])
        self._workflow("earlier", self.home / "earlier-out").run(executor=LocalExecutor(num_workers=0), quiet=True)

    def leave(self):
        """As if killed before the last file was written: of the last pipeline a line and a file are missing."""
        self.run()
        ledger = self.run_dir / "segment-1" / "ledger.jsonl"
        lines = ledger.read_text().splitlines(keepends=True)
        ledger.write_text("".join(lines[:-1]))
        for file in json.loads(lines[-1])["files"]:
            (self.work / file["final"]).unlink()
        (self.run_dir / "report.json").unlink()
        self.keep_index()

    def keep_index(self):
        """The index is not of the run directory, but what a run adds to it must be as it was before the run."""
        if self.kind in ("exact", "fuzzy"):
            shutil.rmtree(self.home / "left-index", ignore_errors=True)
            shutil.copytree(self.home / "index", self.home / "left-index")

    def restore(self):
        super().restore()
        if self.kind in ("exact", "fuzzy"):
            shutil.rmtree(self.home / "index")
            shutil.copytree(self.home / "left-index", self.home / "index")

    def contents(self):
        found = super().contents()
        duplicates = self.work / "out" / "duplicates.parquet"
        return found | ({"duplicates": duplicates.read_bytes()} if duplicates.exists() else {})

    @staticmethod
    def books(result):
        return {key: str(value) for key, value in result.metadata.items() if not key.endswith("_time")}


def _write(path, places):
    path.parent.mkdir(exist_ok=True)
    rows = [{"id": f"{number}-{row}", **_document(number, row)} for number, row in places]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _document(number, row):
    """Some are in every file, some nearly; with a line that comes again and again."""
    own = f"the miller of {number if row % 2 else 'all'} {row} went down to the river with a sack of flour and a cart"
    own += " of straw" * (number if row == 4 else 0)
    vector = np.random.default_rng([row, number if row % 2 else 99]).normal(size=4)
    return {"text": f"{own}\nread more", "embeddings": [round(float(value), 3) for value in vector]}


DEDUPLICATIONS = {f"{kind} deduplication": {"kind": kind} for kind in RUN_DIRS}
