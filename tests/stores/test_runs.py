"""Whole runs on real S3 servers: every format, rejects and quarantine, and credentials given by hand only."""

import json

import pytest
from tests.byte_batch import decoded, make_payloads
from tests.byte_batch import run as run_payloads
from tests.object_stores import KEY, SECRET

from gristmill.backends.local import LocalExecutor
from gristmill.cli.run_files import find_runs
from gristmill.cli.status import read_documents
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import ArrowReader, ArrowWriter, JsonlReader, JsonlWriter, ParquetReader, ParquetWriter

pytestmark = [pytest.mark.heavy, pytest.mark.slow]

HERE = LocalExecutor(num_workers=0)
LINES = b"".join(b'{"id": %d, "text": "%s"}\n' % (n, b"word " * (n % 3)) for n in range(30))


@pytest.mark.parametrize(
    ("reader", "writer", "extension"),
    [
        (JsonlReader, JsonlWriter, "jsonl.gz"),
        (ParquetReader, ParquetWriter, "parquet"),
        (ArrowReader, ArrowWriter, "arrow"),
    ],
)
def test_what_is_written_to_a_store_is_read_again(store, reader, writer, extension):
    root = f"formats-{extension.replace('.', '-')}"
    store.put(f"{root}/in/a.jsonl", LINES)
    url = f"{store.url}/{root}"
    Pipeline("out", stages=[JsonlReader(f"{url}/in"), writer(f"{url}/kept", file_extension=extension)]).run(HERE)
    Pipeline("back", stages=[reader(f"{url}/kept"), JsonlWriter(f"{url}/back")]).run(HERE)

    assert store.keys(f"{root}/kept/a.{extension}")
    (back,) = store.objects(f"{root}/back").values()
    assert [json.loads(line) for line in back.splitlines()] == [json.loads(line) for line in LINES.splitlines()]


def test_a_run_beside_an_output_on_a_store_is_continued_without_being_told_where(store):
    store.put("default/in/a.jsonl", LINES)
    stages = [JsonlReader(f"{store.url}/default/in"), JsonlWriter(f"{store.url}/default/out")]
    first = Pipeline("p", stages=stages).run(HERE)
    again = Pipeline("p", stages=stages).run(HERE)

    assert first.run_dir == f"{store.url}/default/out/.gristmill"
    assert again.already_finished
    (run,) = find_runs(f"{store.url}/default/out", who="status")
    assert read_documents(run)["report"]["read"] == 30
    assert run.holder()[1] is False
    assert run.quarantine_files() == []


def test_credentials_given_by_hand_reach_everything_the_run_writes(seaweedfs, monkeypatch):
    for name in seaweedfs.environment:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    options = {"storage_options": {"key": KEY, "secret": SECRET, "endpoint_url": seaweedfs.endpoint}}
    seaweedfs.put("by-hand/in/a.jsonl", LINES + b"{broken\n")
    url = f"{seaweedfs.url}/by-hand"
    stages = [
        JsonlReader(f"{url}/in", read_kwargs=options),
        ScoreFilter(WordCountFilter(min_words=1)),
        JsonlWriter(f"{url}/out", write_kwargs=options),
    ]
    result = Pipeline("p", stages=stages).run(HERE, checkpoint_path=f"{url}/run", rejects_path=f"{url}/rejects")

    assert (result.read, result.written, result.quarantined) == (31, 20, 1)
    assert len(seaweedfs.objects("by-hand/rejects")) == len(seaweedfs.objects("by-hand/run/quarantine")) == 1
    everything = [
        seaweedfs.client().get_object(Bucket="mill", Key=key)["Body"].read() for key in seaweedfs.keys("by-hand")
    ]
    assert not [content for content in everything if SECRET.encode() in content]
    assert (
        Pipeline("p", stages=stages)
        .run(HERE, checkpoint_path=f"{url}/run", rejects_path=f"{url}/rejects")
        .already_finished
    )


def test_items_that_are_bytes_leave_payloads_on_a_store(store, tmp_path):
    """Rejects and quarantine of any kind of item: records and payloads are committed together, and go together."""
    make_payloads(tmp_path / "in", 2)
    url = f"{store.url}/bytes"

    def go(**options):
        return run_payloads(tmp_path / "in", url, HERE, max_quarantined=1.0, quiet=True, **options)

    result = go()
    assert go().already_finished
    quarantine, rejected = store.objects("bytes/run/quarantine"), store.objects("bytes/rejects")
    (bad,) = [json.loads(text) for name, text in quarantine.items() if name.endswith(".jsonl")]
    rejects = [json.loads(text) for name, text in sorted(rejected.items()) if name.endswith(".jsonl")]
    source = decoded((tmp_path / "in" / "part-000.payloads").read_bytes())
    assert quarantine[bad["payload"]] == source[6]
    assert [record["id"] for record in rejects] == ["part-000#3", "part-001#3"]
    assert rejected[rejects[0]["payload"]] == source[3]
    assert (result.read, result.quarantined, len(result.quarantine_files), len(result.rejects_files)) == (20, 1, 1, 2)
    (run,) = find_runs(f"{url}/run", who="status")
    assert len(run.quarantine_files()) == 1

    go(fresh=True)
    assert sum("/payloads/" in name for name in store.keys("bytes")) == 3
