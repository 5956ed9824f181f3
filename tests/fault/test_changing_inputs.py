"""Inputs that are cut, replaced, deleted, appended to or touched at any moment of a run.

Never does a run end well with a document missing, and never is a document of another content written. A stage in the
middle of the run changes a file at a moment that a seed picks: before, between or after the parts of it that are read.
"""

import gzip
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.jsonl_files import contents, read_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import InputsChanged, ResumeRefused
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

pytestmark = pytest.mark.fault

MOMENTS = 20
NAMES = ["a.jsonl", "b.jsonl.gz", "c.jsonl"]


def encoded(name, documents):
    text = "".join(json.dumps(document) + "\n" for document in documents).encode()
    return gzip.compress(text, mtime=0) if name.endswith(".gz") else text


def documents_of(name, version="old"):
    chance = random.Random(name + version)
    return [{"file": name, "version": version, "n": n, "x": f"{chance.getrandbits(800):x}"} for n in range(60)]


def cut(path):
    os.truncate(path, path.stat().st_size // 3)


def replace(path):
    other = path.with_name(".other")
    other.write_bytes(encoded(path.name, documents_of(path.name, "new")))
    other.rename(path)


def append(path):
    with path.open("ab") as file:
        file.write(encoded(path.name, documents_of(path.name, "new")))


def rewrite(path):
    path.write_bytes(encoded(path.name, documents_of(path.name, "new")))


def touch(path):
    os.utime(path, ns=(10**18, 10**18))


CHANGES = {
    "cut": cut,
    "replaced": replace,
    "deleted": os.unlink,
    "appended": append,
    "written": rewrite,
    "touched": touch,
}


@dataclass(eq=False)
class ChangeInput(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Passes batches on; with the one whose turn it is, an input changes."""

    path: str
    change: str
    moment: int
    name: str = "change_input"
    _calls: int = 0

    def process(self, task):
        if self._calls == self.moment:
            CHANGES[self.change](Path(self.path))
        self._calls += 1
        return task


def write_inputs(directory):
    directory.mkdir()
    for name in NAMES:
        path = directory / name
        path.write_bytes(encoded(name, documents_of(name)))
        os.utime(path, ns=(10**17, 10**17))


def pipeline(tmp_path, stage):
    reader = JsonlReader(str(tmp_path / "in"), blocksize=4000)
    return Pipeline("changing", stages=[reader, stage, JsonlWriter(str(tmp_path / "out"))])


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_no_run_ends_well_with_a_document_missing_or_of_another_content(tmp_path, change):
    expected = [document for name in NAMES for document in documents_of(name)]
    undisturbed = None
    refused = 0
    chance = random.Random(change)
    for number in range(MOMENTS):
        here = tmp_path / f"{number}"
        here.mkdir()
        write_inputs(here / "in")
        changed = chance.choice(NAMES)
        stage = ChangeInput(str(here / "in" / changed), change, moment=chance.randrange(14))
        failure = ""
        try:
            pipeline(here, stage).run(LocalExecutor(num_workers=0))
        except InputsChanged as error:
            failure = str(error)
        if failure:
            refused += 1
            assert failure.count(f"{changed}: expected") == 1  # however many of its parts were met
            written = read_documents(here / "out")
            assert {document["version"] for document in written} <= {"old"}
            # Everything of the other files is there; of the changed one only parts that were read before.
            assert [d for d in written if d["file"] != changed] == [d for d in expected if d["file"] != changed]
            assert len(written) < len(expected)
        else:
            assert read_documents(here / "out") == expected
            undisturbed = undisturbed or contents(here / "out")
            assert contents(here / "out") == undisturbed
    assert 1 < refused < MOMENTS


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_worker_processes_refuse_a_changed_input_and_the_next_run_does_too(tmp_path, change):
    write_inputs(tmp_path / "in")
    stage = ChangeInput(str(tmp_path / "in" / "c.jsonl"), change, moment=0)
    with pytest.raises(InputsChanged, match=r"c\.jsonl") as caught:
        pipeline(tmp_path, stage).run(LocalExecutor(num_workers=1), checkpoint_path=tmp_path / "run")
    assert caught.value.result.written == 120
    assert {document["file"] for document in read_documents(tmp_path / "out")} == {"a.jsonl", "b.jsonl.gz"}
    if change != "deleted":
        harmless = ChangeInput(str(tmp_path / "in" / "c.jsonl"), change, moment=0)
        with pytest.raises(ResumeRefused, match=r"c\.jsonl"):
            pipeline(tmp_path, harmless).run(LocalExecutor(num_workers=1), checkpoint_path=tmp_path / "run")
