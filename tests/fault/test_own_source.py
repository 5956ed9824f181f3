"""Whatever a record does to `extract`, it costs that record; a killed run of a source goes on where it was."""

import json
from pathlib import Path

import pytest
from tests.own_source import own_source, write_lines

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io.writer import JsonlWriter

pytestmark = [pytest.mark.fault, pytest.mark.slow]
FILES, LINES = 2, 200


def ids(work):
    files = sorted((work / "out").glob("*.jsonl"))
    return [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("way", ["raise", "exit", "segfault", "hang"])
def test_a_record_that_breaks_the_extractor_costs_itself_and_nothing_else(tmp_path, way):
    source = write_lines(tmp_path / "raw", FILES, LINES, {(1, 77): way})
    stages = [own_source(source, tmp_path), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("own", stages=stages).run(LocalExecutor(num_workers=2), quiet=True)

    assert ids(tmp_path) == [f"{f}-{n}" for f in range(FILES) for n in range(LINES) if (f, n) != (1, 77)]
    assert (result.read, result.quarantined, result.lost_parts) == (FILES * LINES, 1, 0)
    [entry] = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]
    assert (entry["document_id"], entry["stage"]) == ("1-77", "extract_shouts")
    assert entry["source"].endswith("downloads/part-1.txt")
