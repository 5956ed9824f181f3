"""Labels are on disk as they were given, one for a row, and what is there stays if writing fails."""

import datetime
import json

import pytest

from gristmill.errors import ConfigError, MachineError
from gristmill.inspection.labels import Labels


def on_disk(labels, label):
    return [json.loads(line) for line in labels.path(label).read_text().splitlines()]


def test_a_row_has_the_last_label_it_was_given(tmp_path):
    labels = Labels(str(tmp_path / "labels"))
    labels.put("a.jsonl:1", {"id": "x", "text": "some", "day": datetime.date(2026, 11, 17), "raw": b"\0"}, "good")
    labels.put("a.jsonl:2", {"id": "y", "text": "more\ud800"}, "good")
    labels.put("a.jsonl:1", {"id": "x", "text": "some"}, "bad")
    again = Labels(str(tmp_path / "labels"))

    assert [row["id"] for row in on_disk(labels, "good")] == ["y"]
    assert on_disk(labels, "bad") == [{"id": "x", "text": "some", "labelled_in": "a.jsonl:1"}]
    assert (again.of("a.jsonl:1"), again.of("a.jsonl:2"), again.of("a.jsonl:3")) == ("bad", "good", None)
    again.put("a.jsonl:2", {}, None)
    assert dict(Labels(str(tmp_path / "labels")).counts()) == {"good": 0, "bad": 1}


def test_a_label_that_cannot_be_written_is_not_shown_as_given(tmp_path):
    labels = Labels(str(tmp_path / "labels"))
    labels.put("a:1", {"text": "x"}, "good")
    labels.directory.joinpath(".bad.jsonl.new").mkdir()
    with pytest.raises(MachineError):
        labels.put("a:1", {"text": "x"}, "bad")

    assert labels.of("a:1") == "good"
    assert [row["text"] for row in on_disk(labels, "good")] == ["x"]


def test_a_file_of_labels_that_cannot_be_read_is_not_overwritten(tmp_path):
    (tmp_path / "good.jsonl").write_text("{broken\n")
    with pytest.raises(ConfigError, match="line 1"):
        Labels(str(tmp_path))
    with pytest.raises(ConfigError, match="expected a directory"):
        Labels(str(tmp_path / "good.jsonl"))
