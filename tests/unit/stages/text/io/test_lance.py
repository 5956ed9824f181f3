"""Lance datasets: one version is read, one version is written, whatever is killed on the way."""

import base64
import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, NoInputError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter, LanceReader, LanceWriter
from gristmill.stages.text.io.writer.lance import MARKER, commit_lance_checkpoint

pytestmark = [pytest.mark.heavy, pytest.mark.slow]


def lance():
    import lance

    return lance


def dataset(path, *parts):
    """A dataset with a fragment for each list of texts."""
    for number, texts in enumerate(parts):
        table = pa.table({"text": texts, "n": list(range(len(texts)))})
        lance().write_dataset(table, str(path), mode="append" if number else "create")
    return str(path)


def source(tmp_path, parts=3, rows=4):
    (tmp_path / "in").mkdir(exist_ok=True)
    for part in range(parts):
        lines = [json.dumps({"id": f"{part}-{row}", "text": f"text {part} {row}"}) for row in range(rows)]
        (tmp_path / f"in/{part}.jsonl").write_text("\n".join(lines) + "\n")
    return str(tmp_path / "in")


def read(path, out, **options):
    result = Pipeline("r", stages=[LanceReader(path, **options), JsonlWriter(str(out))]).run(
        LocalExecutor(num_workers=2), quiet=True, max_quarantined=0.5
    )
    return result, [json.loads(line) for file in sorted(out.glob("*.jsonl")) for line in file.read_text().splitlines()]


def test_fragments_are_partitions_and_rows_say_where_they_are(tmp_path):
    path = dataset(tmp_path / "d", ["a", "b"], ["c"], ["d"])
    result, rows = read(path, tmp_path / "out", fragments_per_partition=2, fields=["text"])

    assert result.read == 4
    assert sorted(file.name for file in (tmp_path / "out").glob("*.jsonl")) == [
        "fragments-00000000.jsonl",
        "fragments-00000002.jsonl",
    ]
    assert [row["text"] for row in rows] == ["a", "b", "c", "d"]
    assert [row["__lance_fragid"] for row in rows] == [0, 0, 1, 2]
    assert set(rows[0]) == {"text", "__lance_rowid", "__lance_rowaddr", "__lance_fragid"}


def test_a_filter_and_chosen_fragments_narrow_what_is_read(tmp_path):
    path = dataset(tmp_path / "d", ["a", "b"], ["c", "d"])
    options = {"include_lance_metadata": False, "fragment_ids": [1], "read_kwargs": {"filter": "n = 1"}}

    assert read(path, tmp_path / "out", **options)[1] == [{"text": "d", "n": 1}]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fields": ["txet"]}, ConfigError, "got 'txet'; did you mean 'text'"),
        ({"fragment_ids": [7]}, ConfigError, "expected fragments that version 1 of .* has, 0; got 7"),
        ({"read_kwargs": {"version": 9}}, NoInputError, "expected a Lance dataset in .*, version 9"),
        ({"read_kwargs": {"verison": 1}}, ConfigError, "got 'verison'; did you mean 'version'"),
        ({"fragments_per_partition": 0}, ConfigError, "expected fragments_per_partition ≥ 1; got 0"),
    ],
)
def test_a_mistake_is_found_before_a_run(tmp_path, options, error, message):
    path = dataset(tmp_path / "d", ["a"])
    with pytest.raises(error, match=message):
        read(path, tmp_path / "out", **options)


def test_a_dataset_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NoInputError, match=r"expected a Lance dataset in .*nowhere"):
        read(str(tmp_path / "nowhere"), tmp_path / "out")


def test_a_damaged_fragment_is_lost_and_its_neighbours_are_read(tmp_path):
    path = dataset(tmp_path / "d", ["a"], ["b"], ["c"])
    fragment = lance().dataset(path).get_fragment(1)
    file = tmp_path / "d/data" / fragment.data_files()[0].path
    file.write_bytes(file.read_bytes()[:50])
    result, rows = read(path, tmp_path / "out")

    assert [row["text"] for row in rows] == ["a", "c"]
    assert result.lost_bytes > 0


def test_a_run_that_is_continued_reads_the_version_it_began_with(tmp_path):
    path = dataset(tmp_path / "d", ["a"], ["b"])
    script = (
        "import os, sys, signal\n"
        "from gristmill import LocalExecutor, Pipeline\n"
        "from gristmill.stages.base import ProcessingStage\n"
        "from gristmill.stages.text.io import JsonlWriter, LanceReader\n"
        "class Stop(ProcessingStage):\n"
        "    name = 'stop'\n"
        "    def process(self, task):\n"
        "        if task.column('text').to_pylist() == ['b'] and not os.path.exists('go'):\n"
        "            os.kill(int(open('driver').read()), signal.SIGKILL)\n"
        "        return task\n"
        "if __name__ == '__main__':\n"
        "    open('driver', 'w').write(str(os.getpid()))\n"
        "    stages = [LanceReader('d', fragments_per_partition=1), Stop(), JsonlWriter('out')]\n"
        "    result = Pipeline('p', stages=stages).run(LocalExecutor(num_workers=1), quiet=True)\n"
        "    print(result.read)\n"
    )
    (tmp_path / "script.py").write_text(script)
    options = {"cwd": tmp_path, "capture_output": True, "text": True}
    killed = subprocess.run([sys.executable, "script.py"], check=False, **options)
    lance().write_dataset(pa.table({"text": ["c"], "n": [0]}), path, mode="append")
    (tmp_path / "go").touch()
    done = subprocess.run([sys.executable, "script.py"], check=False, **options)

    assert killed.returncode == -signal.SIGKILL
    assert (done.stdout.strip(), done.returncode) == ("2", 0), done.stderr
    texts = [json.loads(file.read_text())["text"] for file in sorted((tmp_path / "out").glob("*.jsonl"))]
    assert texts == ["a", "b"]


# Writing


def write(tmp_path, *, commits="commits", **options):
    writer = LanceWriter(str(tmp_path / "d"), str(tmp_path / commits), **options)
    return Pipeline("w", stages=[JsonlReader(source(tmp_path)), writer]).run(LocalExecutor(num_workers=2), quiet=True)


def test_a_run_is_one_version_in_the_order_of_its_input(tmp_path):
    result = write(tmp_path)
    assert not (tmp_path / "d/_versions").exists()
    version = commit_lance_checkpoint(str(tmp_path / "d"), str(tmp_path / "commits"))
    made = lance().dataset(str(tmp_path / "d"))

    assert result.written == 12
    assert version == made.version == 1
    assert made.to_table()["id"].to_pylist() == [f"{part}-{row}" for part in range(3) for row in range(4)]


def test_appending_and_overwriting_are_one_version_more(tmp_path):
    write(tmp_path)
    paths = str(tmp_path / "d"), str(tmp_path / "commits")
    commit_lance_checkpoint(*paths)
    write(tmp_path, commits="more", mode="append")
    assert commit_lance_checkpoint(paths[0], str(tmp_path / "more")) == 2
    assert lance().dataset(paths[0]).count_rows() == 24
    write(tmp_path, commits="new", mode="overwrite")
    assert commit_lance_checkpoint(paths[0], str(tmp_path / "new")) == 3
    assert lance().dataset(paths[0]).count_rows() == 12


def test_a_commit_is_made_once_however_often_it_is_called(tmp_path):
    write(tmp_path)
    paths = str(tmp_path / "d"), str(tmp_path / "commits")
    with ThreadPoolExecutor(4) as pool:
        versions = list(pool.map(lambda _: commit_lance_checkpoint(*paths), range(4)))
    (tmp_path / "commits" / MARKER).unlink()  # as if the machine had failed just behind the commit
    versions.append(commit_lance_checkpoint(*paths))

    assert versions == [1] * 5
    assert lance().dataset(paths[0]).count_rows() == 12


def test_an_append_that_failed_behind_its_commit_is_found_behind_later_versions(tmp_path):
    path = dataset(tmp_path / "d", ["x"])
    lance().write_dataset(pa.table({"id": ["x"], "text": ["y"]}), path, mode="overwrite")
    write(tmp_path, mode="append")
    first = commit_lance_checkpoint(path, str(tmp_path / "commits"))
    lance().write_dataset(pa.table({"id": ["z"], "text": ["z"]}), path, mode="append")
    (tmp_path / "commits" / MARKER).unlink()

    assert commit_lance_checkpoint(path, str(tmp_path / "commits")) == first == 3
    assert lance().dataset(path).count_rows() == 14


def test_columns_of_lance_itself_are_not_written_again(tmp_path):
    path = dataset(tmp_path / "d0", ["a"], ["b"])
    writer = LanceWriter(str(tmp_path / "d1"), str(tmp_path / "commits"))
    Pipeline("c", stages=[LanceReader(path), writer]).run(quiet=True)
    commit_lance_checkpoint(str(tmp_path / "d1"), str(tmp_path / "commits"))

    assert lance().dataset(str(tmp_path / "d1")).schema.names == ["text", "n"]


def test_what_the_commit_would_refuse_is_refused_before_the_run(tmp_path):
    with pytest.raises(NoInputError, match="expected a Lance dataset in"):
        write(tmp_path, mode="append")
    write(tmp_path)
    commit_lance_checkpoint(str(tmp_path / "d"), str(tmp_path / "commits"))
    with pytest.raises(ConfigError, match=r"expected no dataset in .* it has version 1"):
        write(tmp_path, commits="other")


def test_records_of_another_dataset_and_of_other_schemas_are_refused(tmp_path):
    write(tmp_path)
    with pytest.raises(ConfigError, match=r"expected records of .*other.*; got those of"):
        commit_lance_checkpoint(str(tmp_path / "other"), str(tmp_path / "commits"))
    record = tmp_path / "commits/1.json"
    said = json.loads(record.read_text())
    other = pa.schema([("id", pa.int64()), ("text", pa.string())])
    record.write_text(json.dumps({**said, "schema": base64.b64encode(other.serialize().to_pybytes()).decode()}))
    with pytest.raises(ConfigError, match=r"expected one schema in all records; .*1\.json has id: int64, and others"):
        commit_lance_checkpoint(str(tmp_path / "d"), str(tmp_path / "commits"))
    with pytest.raises(NoInputError, match="expected records of LanceWriter"):
        commit_lance_checkpoint(str(tmp_path / "d"), str(tmp_path / "nothing"))


def test_a_killed_and_continued_run_is_one_version_with_every_document_once(tmp_path):
    source(tmp_path)
    script = (
        "import os, signal\n"
        "from gristmill import JsonlReader, LocalExecutor, Pipeline\n"
        "from gristmill.stages.base import ProcessingStage\n"
        "from gristmill.stages.text.io import LanceWriter\n"
        "class Stop(ProcessingStage):\n"
        "    name = 'stop'\n"
        "    def process(self, task):\n"
        "        if task.column('id').to_pylist()[0] == '1-0' and not os.path.exists('go'):\n"
        "            os.kill(int(open('driver').read()), signal.SIGKILL)\n"
        "        return task\n"
        "if __name__ == '__main__':\n"
        "    open('driver', 'w').write(str(os.getpid()))\n"
        "    stages = [JsonlReader('in'), Stop(), LanceWriter('d', 'commits')]\n"
        "    print(Pipeline('p', stages=stages).run(LocalExecutor(num_workers=1), quiet=True).written)\n"
    )
    (tmp_path / "script.py").write_text(script)
    options = {"cwd": tmp_path, "capture_output": True, "text": True}
    killed = subprocess.run([sys.executable, "script.py"], check=False, **options)
    (tmp_path / "go").touch()
    done = subprocess.run([sys.executable, "script.py"], check=False, **options)
    version = commit_lance_checkpoint(str(tmp_path / "d"), str(tmp_path / "commits"))
    made = lance().dataset(str(tmp_path / "d"))

    assert killed.returncode == -signal.SIGKILL
    assert done.returncode == 0, done.stderr
    assert [each["version"] for each in made.versions()] == [version] == [1]
    assert made.to_table()["id"].to_pylist() == [f"{part}-{row}" for part in range(3) for row in range(4)]


def test_a_limit_on_the_size_of_files_is_named_with_the_dataset_and_costs_no_document(tmp_path):
    documents = [{"id": str(row), "text": f"{row} " * 2000} for row in range(50)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    script = (
        "import os, resource\n"
        "from gristmill import JsonlReader, LocalExecutor, Pipeline\n"
        "from gristmill.stages.text.io import LanceWriter\n"
        "if not os.path.exists('room'):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, resource.RLIM_INFINITY))\n"
        "stages = [JsonlReader('in'), LanceWriter('d', 'commits', write_kwargs={'data_storage_version': '2.0'})]\n"
        "print(Pipeline('p', stages=stages).run(LocalExecutor(num_workers=0), quiet=True).written)\n"
    )
    (tmp_path / "script.py").write_text(script)
    options = {"cwd": tmp_path, "capture_output": True, "text": True}
    failed = subprocess.run([sys.executable, "script.py"], check=False, **options)
    (tmp_path / "room").touch()
    done = subprocess.run([sys.executable, "script.py"], check=False, **options)

    assert failed.returncode != 0
    assert f"{tmp_path}/d: File too large" in failed.stderr
    assert "Raise the limit on the size of a file (ulimit -f)" in failed.stderr
    assert (done.stdout.strip(), done.returncode) == ("50", 0), done.stderr
