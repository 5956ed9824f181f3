"""Whatever a record does to `extract`, it costs that record; a killed run of a source goes on where it was."""

import json
from pathlib import Path

import pytest
from tests.fault import crawl, sources
from tests.fault.processes import finish
from tests.fault.story import Story
from tests.own_source import Shouts, ShoutsQuickly, own_source, write_lines

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io.writer import JsonlWriter

pytestmark = [pytest.mark.fault, pytest.mark.slow]
FILES, LINES = 2, 200


def ids(work):
    files = sorted((work / "out").glob("*.jsonl"))
    return [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize("extractor", [Shouts, ShoutsQuickly])
@pytest.mark.parametrize("way", ["raise", "exit", "segfault", "hang"])
def test_a_record_that_breaks_the_extractor_costs_itself_and_nothing_else(tmp_path, way, extractor):
    source = write_lines(tmp_path / "raw", FILES, LINES, {(1, 77): way})
    stages = [own_source(source, tmp_path, extractor=extractor()), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("own", stages=stages).run(LocalExecutor(num_workers=2), quiet=True)

    assert ids(tmp_path) == [f"{f}-{n}" for f in range(FILES) for n in range(LINES) if (f, n) != (1, 77)]
    assert (result.read, result.quarantined, result.lost_parts) == (FILES * LINES, 1, 0)
    [entry] = [json.loads(line) for file in result.quarantine_files for line in Path(file).read_text().splitlines()]
    assert (entry["document_id"], entry["stage"]) == ("1-77", f"extract_{extractor.__name__.lower()}")
    assert entry["source"].endswith("downloads/part-1.txt")


class Patient(Shouts):
    batch_deadline_s = 60.0  # nothing hangs here, and a busy machine may stand still for seconds


class QuickAndPatient(Patient):
    is_quick = True


def test_records_that_break_a_quick_extractor_in_every_way_cost_themselves_and_change_no_byte(tmp_path):
    """Each ends the worker that reads as well; what was made of the part before that is made again, and counts once."""
    bad = {(0, 0): "exit", (0, 70): "raise", (0, 71): "segfault", (0, 130): "exit", (1, 64): "raise", (1, 199): "exit"}
    source = write_lines(tmp_path / "raw", FILES, LINES, bad)
    found = {}
    for extractor, workers in ((Patient, 2), (QuickAndPatient, 1), (QuickAndPatient, 2)):
        work = tmp_path / f"{extractor.__name__}-{workers}"
        stages = [own_source(source, work, extractor=extractor()), JsonlWriter(str(work / "out"))]
        result = Pipeline("own", stages=stages).run(LocalExecutor(num_workers=workers), quiet=True)
        assert (result.read, result.written, result.quarantined) == (FILES * LINES, FILES * LINES - len(bad), len(bad))
        found[extractor, workers] = {path.name: path.read_bytes() for path in (work / "out").glob("*.jsonl")}

    assert list(found.values())[1:] == [found[Patient, 2]] * 2
    expected = [f"{f}-{n}" for f in range(FILES) for n in range(LINES) if (f, n) not in bad]
    assert ids(work) == expected


def test_kills_in_every_phase_change_no_byte_and_half_a_file_is_never_taken_for_whole(scene, tmp_path, monkeypatch):
    """Of a downloader that begins again each time, as most do. What is whole is not asked for again."""
    source = write_lines(tmp_path / "raw", FILES, LINES)
    story = Story(scene, tmp_path / "killed", "tests.fault.sources", "own", source)
    story.kill_in(("download", "extract", "write"))
    asked = (story.work / "log").read_text().splitlines()
    story.start()
    finish(story.program, deadline_s=120)

    plain = tmp_path / "plain"
    plain.mkdir()
    monkeypatch.setenv(crawl.PLACE, str(plain))
    sources.build("own", source, plain).run(LocalExecutor(num_workers=0), quiet=True)
    assert ids(story.work) == [f"{f}-{n}" for f in range(FILES) for n in range(LINES)]
    told = [{path.name: path.read_bytes() for path in (w / "out").glob("*.jsonl")} for w in (story.work, plain)]
    assert told[0] == told[1]
    assert len(asked) > FILES
    assert (story.work / "log").read_text().splitlines() == asked  # the last of them had nothing left to fetch
    assert sorted(path.name for path in (story.work / "downloads").iterdir() if path.suffix in (".part", ".lock")) == []
