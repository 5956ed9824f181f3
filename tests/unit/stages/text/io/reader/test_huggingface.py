"""Datasets of the hub and of its library become files of one commit; code that comes with a dataset is never run."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import hub_double

from gristmill.errors import ConfigError, NoInputError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import HuggingFaceReader, JsonlWriter
from gristmill.stages.text.io.reader.huggingface import Files, choose

NAMES = (
    "data/train-00001.parquet",
    "data/train-00000.parquet",
    "data/test-00000.parquet",
    "README.md",
    ".gitattributes",
)
CARD = """---
license: cc0-1.0
configs:
- config_name: en
  data_files:
  - split: train
    path: en/*.jsonl.gz
  - split: held_out
    path: [en/more/x.jsonl, en/more/y.jsonl]
- config_name: de
  default: true
  data_dir: de
  data_files: "**"
---
# A dataset
"""


def chosen(names, *, card="", subset=None, split="train"):
    return choose(Files("place", tuple(names), card), subset, split, who="reader: owner/name")


@pytest.mark.parametrize(
    ("names", "split", "expected"),
    [
        (NAMES, "train", ["data/train-00000.parquet", "data/train-00001.parquet"]),
        (NAMES, "test", ["data/test-00000.parquet"]),
        (["a.jsonl", "b.jsonl"], "train", ["a.jsonl", "b.jsonl"]),
        (["train/a.csv", "validation/b.csv"], "validation", ["validation/b.csv"]),
        (["corpus_train.txt", "corpus_dev.txt"], "dev", ["corpus_dev.txt"]),
        (["dataset_infos.json", "x.json"], "train", ["x.json"]),
    ],
)
def test_without_a_card_the_names_say_which_split_a_file_is_of(names, split, expected):
    assert chosen(names, split=split) == expected


def test_a_card_says_which_files_a_subset_and_a_split_have():
    names = [
        "en/b.jsonl.gz",
        "en/a.jsonl.gz",
        "en/deep/c.jsonl.gz",
        "en/more/y.jsonl",
        "en/more/x.jsonl",
        "de/q.csv",
        "de/r/s.csv",
    ]

    assert chosen(names, card=CARD, subset="en") == ["en/a.jsonl.gz", "en/b.jsonl.gz"]
    assert chosen(names, card=CARD, subset="en", split="held_out") == ["en/more/x.jsonl", "en/more/y.jsonl"]
    assert chosen(names, card=CARD) == ["de/q.csv", "de/r/s.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "tset"}, r"expected a split of \['test', 'train'\]; got 'tset'; did you mean 'test'"),
        ({"subset": "dat"}, r"expected a subset it has; got 'dat'; did you mean 'data'"),
        ({"card": CARD, "subset": "en", "split": "heldout"}, r"did you mean 'held_out'"),
        ({"card": CARD, "subset": "fr"}, r"expected a subset of \['de', 'en'\]; got 'fr'"),
        ({"card": CARD, "subset": "en"}, r"expected files as its card names them, \['en/\*.jsonl.gz'\]; found none"),
        ({"card": "---\nconfigs: [{data_files: [{path: x}]}]\n---\n"}, r"expected data_files by split in its README"),
        ({"card": "---\nconfigs: 5\n---\n"}, r"expected a list of configs in its README\.md; got 5"),
        ({"card": "---\na: [\n---\n"}, r"expected YAML at the top of its README"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(options, message):
    with pytest.raises(ConfigError, match=message):
        chosen(NAMES, **options)


SHARDS = [f"data/train-{number:05d}-of-00004-{number}abc.parquet" for number in (0, 1, 3)]
TRAIN = "---\nconfigs: [{{data_files: [{{split: train, path: {}}}]}}]\n---\n"


@pytest.mark.parametrize("card", ["", TRAIN.format("data/train-*")])
def test_a_copy_that_lacks_one_of_the_files_its_names_count_is_refused(card):
    with pytest.raises(ConfigError, match=r"expected 4 files data/train-\*-of-00004; got 3, and data/train-00002-of-"):
        chosen(SHARDS, card=card)


def test_a_card_may_ask_for_some_of_the_files():
    assert chosen(SHARDS, card=TRAIN.format("'data/train-0000[01]-*'")) == SHARDS[:2]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("state.json", '{"_data_files": [{"filename": "../other/data.arrow"}]}', r"expected names of files in"),
        ("state.json", "[]", r"expected '_data_files' in .*state\.json"),
        ("state.json", '{"_data_files": 5}', r"expected a list as '_data_files'"),
        ("dataset_dict.json", "{", r"expected 'splits' in .*dataset_dict\.json"),
    ],
)
def test_what_the_library_could_not_have_saved_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=message):
        HuggingFaceReader(str(tmp_path)).decompose()


def test_a_script_is_not_run_and_the_way_round_it_is_said():
    with pytest.raises(ConfigError, match=r"got name\.py, a loading script, .*revision='refs/convert/parquet'"):
        chosen(["name.py", "README.md"])


def test_a_dataset_without_data_is_refused():
    with pytest.raises(NoInputError, match=r"expected files of \.parquet"):
        chosen(["README.md"])


def run(reader, out):
    result = Pipeline("p", stages=[reader, JsonlWriter(str(out))]).run(quiet=True)
    return result, [json.loads(line) for path in sorted(out.glob("*.jsonl")) for line in path.read_text().splitlines()]


def test_a_copy_on_disk_is_read_by_the_reader_of_its_format(tmp_path):
    (tmp_path / "set/data").mkdir(parents=True)
    for part in range(2):
        pq.write_table(
            pa.table({"text": [f"{part}-{n}" for n in range(3)]}), tmp_path / f"set/data/train-0000{part}.parquet"
        )
    result, rows = run(HuggingFaceReader(str(tmp_path / "set")), tmp_path / "out")

    assert result.read == 6
    assert [row["text"] for row in rows] == [f"{part}-{n}" for part in range(2) for n in range(3)]


def saved(directory, tables):
    """What `Dataset.save_to_disk` leaves: Arrow streams, and a state that names them in order."""
    directory.mkdir(parents=True)
    names = [f"data-{number:05d}-of-{len(tables):05d}.arrow" for number in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        with pa.ipc.new_stream(directory / name, table.schema) as stream:
            stream.write_table(table)
    (directory / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (directory / "dataset_info.json").write_text("{}")


def test_what_the_library_saved_to_disk_is_read_with_and_without_splits(tmp_path):
    tables = [pa.table({"text": ["a", "b"]}), pa.table({"text": ["c"]})]
    saved(tmp_path / "one", tables)
    saved(tmp_path / "many/test", tables[1:])
    (tmp_path / "many/dataset_dict.json").write_text('{"splits": ["train", "test"]}')

    assert [row["text"] for row in run(HuggingFaceReader(str(tmp_path / "one")), tmp_path / "o1")[1]] == ["a", "b", "c"]
    rows = run(HuggingFaceReader(str(tmp_path / "many"), split="test"), tmp_path / "o2")[1]
    assert [row["text"] for row in rows] == ["c"]
    with pytest.raises(ConfigError, match=r"expected a split of \['train', 'test'\]; got 'dev'"):
        run(HuggingFaceReader(str(tmp_path / "many"), split="dev"), tmp_path / "o3")


def test_a_path_that_is_neither_a_directory_nor_a_dataset_is_refused(tmp_path):
    with pytest.raises(NoInputError, match="expected a directory, or a dataset of the hub such as 'owner/name'"):
        HuggingFaceReader(str(tmp_path / "nowhere")).decompose()


SCRIPT = """
import json, sys
from gristmill import Pipeline
from gristmill.stages.text.io import HuggingFaceReader, JsonlWriter
reader = HuggingFaceReader("owner/set", split=sys.argv[1], fields=["text"])
result = Pipeline("p", stages=[reader, JsonlWriter("out")]).run(quiet=True)
print(result.read, result.written)
"""


@pytest.mark.slow
def test_a_dataset_of_the_hub_is_read_by_ranges_of_one_commit(tmp_path):
    """In a process of its own: the hub's library reads its address once."""
    table = pa.table({"text": [f"text {n}" for n in range(2000)], "other": ["x" * 50] * 2000})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    files = {"data/train-0.parquet": sink.getvalue().to_pybytes(), "README.md": b"---\nlicense: mit\n---\n"}
    with hub_double.running({"owner/set": files}) as hub:
        address = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1"}
        environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"} | address
        options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
        done, missing = (
            subprocess.run([sys.executable, "-c", SCRIPT, split], check=False, **options)
            for split in ("train", "trian")
        )

    assert (done.stdout.strip(), done.returncode) == ("2000 2000", 0), done.stderr
    assert "expected a split of ['train']; got 'trian'; did you mean 'train'?" in missing.stderr


def test_a_subset_given_as_the_name_of_the_stage_is_not_passed_over(tmp_path):
    for language in ("de", "en"):
        (tmp_path / language).mkdir()
        (tmp_path / language / "a.jsonl").write_text('{"text": "x"}\n')
    (tmp_path / "README.md").write_text(CARD)

    with pytest.raises(ConfigError, match=r"expected subset='en' to read that subset; got name='en'"):
        HuggingFaceReader(str(tmp_path), name="en").decompose()
