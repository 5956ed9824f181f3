"""Where only a disk will do, a URL is refused, and no folder called `s3:` is made."""

import pytest

from gristmill.cli.replay import find_log
from gristmill.config.shard_books import add_up
from gristmill.deduplication.exact import ExactDeduplicationWorkflow
from gristmill.deduplication.fuzzy import FuzzyDeduplicationWorkflow
from gristmill.errors import ConfigError
from gristmill.storage.file_system import disk_path


def test_a_path_is_taken_as_it_is(tmp_path):
    assert disk_path(f"file://{tmp_path}", who="w") == disk_path(str(tmp_path), who="w") == tmp_path


@pytest.mark.parametrize(
    "attempt",
    [
        lambda raw: find_log("s3://b/out"),
        lambda raw: add_up("s3://b/out"),
        lambda raw: ExactDeduplicationWorkflow(input_path=raw, output_path="s3://b/out").run(),
        lambda raw: FuzzyDeduplicationWorkflow(input_path=raw, output_path="s3://b/out", cache_path=raw).run(),
        lambda raw: FuzzyDeduplicationWorkflow(input_path=raw, output_path=f"{raw}/o", cache_path="s3://b/c").run(),
    ],
)
def test_a_url_is_refused_with_its_name(attempt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(ConfigError, match=r"expected a directory on a disk of this machine; got 's3://b"):
        attempt(str(tmp_path / "raw"))
    assert not (tmp_path / "s3:").exists()
