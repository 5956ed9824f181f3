"""Where files are, what is said if they are not, and what is downloaded: once, checked, and only if it may be."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests import hub_double

from gristmill.errors import ConfigError, MachineError, MissingDependency, ReadError, RunFailed
from gristmill.models import weights
from gristmill.models.hub import choose_files, damaged_files, fetch
from gristmill.models.runtime import ModelSource, check_installed, open_runtime
from gristmill.models.weights import check, find, is_hub_id, keep_token, locate, weight_files
from gristmill.secrets import without_secrets
from gristmill.testing.tiny_models import write_tiny_classifier

NAME = "tests/tiny-classifier"


@pytest.fixture(autouse=True)
def _own_hub_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    for name in ("GRISTMILL_OFFLINE", "HF_HUB_OFFLINE", "HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(weights, "_token", None)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = write_tiny_classifier(tmp_path_factory.mktemp("published"))
    named = {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    return named | {"README.md": b"hello", "model_quantized.onnx": b"other", "pytorch_model.bin": b"a pickle"}


@pytest.fixture
def hub(files, monkeypatch):
    with hub_double.running({NAME: dict(files)}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


def source(**more):
    return ModelSource(NAME, who="QualityClassifier", **more)


def cached(files, root, *, revision="a" * 40, branch="main"):
    folder = root / "models--tests--tiny-classifier"
    for name, data in files.items():
        path = folder / "snapshots" / revision / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / branch).write_text(revision)
    return folder / "snapshots" / revision


def test_a_directory_comes_before_the_cache(tmp_path, files, monkeypatch):
    cached(files, tmp_path / "hub")
    monkeypatch.chdir(tmp_path)
    write_tiny_classifier(tmp_path / "tests" / "tiny-classifier")

    assert locate(source()) == Path("tests/tiny-classifier")


def test_the_given_cache_comes_before_the_hubs(tmp_path, files):
    elsewhere, own = cached(files, tmp_path / "hub"), cached(files, tmp_path / "own")

    assert locate(source()) == elsewhere
    assert locate(source(cache_dir=str(tmp_path / "own"))) == own
    assert locate(source(cache_dir=str(tmp_path / "empty"))) == elsewhere


def test_a_revision_is_found_by_its_branch_and_by_its_hash(tmp_path, files):
    main = cached(files, tmp_path / "hub")
    other = cached(files, tmp_path / "hub", revision="b" * 40, branch="v2")

    assert locate(source()) == main
    assert locate(source(revision="v2")) == locate(source(revision="b" * 40)) == other
    assert find(source(revision="c" * 40)) is None


def test_without_a_branch_the_only_snapshot_is_meant(tmp_path, files):
    snapshot = cached(files, tmp_path / "hub")
    (tmp_path / "hub" / "models--tests--tiny-classifier" / "refs" / "main").unlink()
    assert find(source()) == snapshot

    cached(files, tmp_path / "hub", revision="b" * 40, branch="v2")
    assert find(source()) is None


@pytest.mark.parametrize("how", ["gone", "link"])
def test_a_cache_without_the_weights_does_not_count(tmp_path, files, how):
    """Whoever loads a tokenizer by its hub id leaves one like that."""
    snapshot = cached({name: files[name] for name in ("config.json", "tokenizer.json")}, tmp_path / "hub")
    if how == "link":
        (snapshot / "model.onnx").symlink_to("../../blobs/gone")

    assert find(source()) is None
    assert find(source(files="tokenizer")) == snapshot


def test_a_part_named_by_an_index_has_to_be_there(tmp_path):
    index = b'{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}'
    snapshot = cached({"model.safetensors.index.json": index, "model-1.safetensors": b"x"}, tmp_path / "hub")
    assert find(source()) is None
    (snapshot / "model-2.safetensors").write_bytes(b"y")
    assert find(source()) == snapshot


def test_a_package_is_found_without_being_imported(tmp_path, monkeypatch):
    write_tiny_classifier(tmp_path / "tiny_weights_package" / "model")
    (tmp_path / "tiny_weights_package" / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(tmp_path)

    found = locate(ModelSource("package:tiny_weights_package"))
    assert found == tmp_path / "tiny_weights_package" / "model"


@pytest.mark.parametrize(
    ("identifier", "message"),
    [
        ("package:no_such_package", r"^Q: expected a package 'no_such_package' with the weights; it is not installed$"),
        ("package:json", r"^Q: expected \.safetensors or \.onnx in .*; the package has none$"),
        ("./missing", r"^Q: expected a directory, 'package:NAME' or a hub id OWNER/NAME; got './missing'$"),
        ("missing", r"^Q: expected a directory, 'package:NAME' or a hub id OWNER/NAME; got 'missing'$"),
    ],
)
def test_what_is_nowhere_is_told(identifier, message):
    with pytest.raises(ConfigError, match=message):
        locate(ModelSource(identifier, who="Q"))


def test_hub_ids_are_told_from_paths():
    assert is_hub_id("nvidia/domain-classifier")
    assert not any(is_hub_id(path) for path in ("/a/b", "./a", "../a/b", "~/a", "a", "a/b/c", "package:a/b", ""))


@pytest.mark.parametrize("how", ["GRISTMILL_OFFLINE", "HF_HUB_OFFLINE", "argument"])
def test_offline_the_command_that_helps_is_told_and_no_socket_is_opened(how, monkeypatch, no_network):
    if how != "argument":
        monkeypatch.setenv(how, "1")
    wanted = source(cache_dir="CACHE_DIR", offline=True if how == "argument" else None)
    expected = (
        "QualityClassifier: expected the weights of tests/tiny-classifier in CACHE_DIR or the hub cache; found none, "
        "and offline is set. On a machine with network: gristmill models fetch tests/tiny-classifier --to DIR; "
        "then model_path=DIR"
    )
    for attempt in (check, fetch, locate):
        with pytest.raises(ConfigError) as raised:
            attempt(wanted)
        assert str(raised.value) == expected
    assert no_network == []


@pytest.fixture
def no_network(monkeypatch):
    """Refuse every connection; return the addresses that were tried."""
    import socket

    tried = []

    def refuse(self, address):
        tried.append(address)
        raise AssertionError(f"a connection to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tried


def test_what_is_here_needs_no_network(tmp_path, files, no_network):
    snapshot = cached(files, tmp_path / "hub")

    assert check(source()).directory == fetch(source()) == snapshot
    assert check(source()).revision == "a" * 40
    open_runtime(source(), threads=1, head="cls_softmax")
    assert no_network == []


def test_what_has_to_be_downloaded_is_told_with_its_size_before_anything_is(hub, files):
    found = check(source())
    wanted = {name for name in files if name not in ("README.md", "model_quantized.onnx", "pytorch_model.bin")}

    assert found.directory is None
    assert found.revision == hub.revision(NAME)
    assert found.download_bytes == sum(len(files[name]) for name in wanted)
    assert not hub.given


def test_files_are_taken_by_name_and_then_found(hub, files):
    directory = fetch(source())

    assert directory == locate(source())
    assert set(hub.given) == {"config.json", "model.onnx", "tokenizer.json", "tokenizer_config.json"}
    assert (directory / "model.onnx").read_bytes() == files["model.onnx"]
    assert damaged_files(directory) == []
    hub.given.clear()
    hub.asked.clear()
    assert fetch(source()) == directory
    assert not hub.given
    assert not hub.asked


FETCH = """
import pickle, sys
from gristmill.models.hub import fetch
sys.stdin.read()
print(fetch(pickle.loads(bytes.fromhex(sys.argv[1]))))
"""


@pytest.mark.slow
def test_eight_processes_at_once_download_once(hub):
    command = [sys.executable, "-c", FETCH, pickle.dumps(source()).hex()]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    for process in processes:  # all are started; they go when their input ends
        process.stdin.close()
    found = {process.stdout.read().strip() for process in processes}
    for process in processes:
        process.stdout.close()
        assert process.wait() == 0

    assert found == {str(locate(source()))}
    assert set(hub.given.values()) == {1}
    assert hub.asked == {NAME: 1}


@pytest.mark.fault
@pytest.mark.slow
def test_a_download_that_was_killed_leaves_no_lock_and_nothing_half(hub, files):
    hub.held.add("model.onnx")
    command = [sys.executable, "-c", FETCH, pickle.dumps(source()).hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        process.stdin.close()
        assert hub.halfway.wait(60)
        process.kill()
    assert find(source()) is None

    hub.held.clear()
    directory = fetch(source())
    assert (directory / "model.onnx").read_bytes() == files["model.onnx"]
    assert damaged_files(directory) == []


def test_a_damaged_file_is_refused_removed_and_fetched_again(hub):
    hub.damaged.add("model.onnx")
    with pytest.raises(ReadError, match=r"^model\.onnx: expected \d+ bytes with the hash [0-9a-f]{64}; got .* removed"):
        fetch(source())
    assert find(source()) is None

    hub.damaged.clear()
    assert damaged_files(fetch(source())) == []


def test_files_that_changed_later_are_found(hub, tmp_path):
    directory = fetch(source())
    (directory / "config.json").resolve().write_text("{}")
    assert damaged_files(directory) == ["config.json"]

    plain = fetch(source(), into=tmp_path / "plain")
    assert damaged_files(plain) == []
    assert sorted(path.name for path in plain.iterdir()) == [
        "config.json",
        "gristmill.json",
        "model.onnx",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    (plain / "model.onnx").unlink()
    assert damaged_files(plain) == ["model.onnx"]


@pytest.mark.parametrize(
    ("lacking", "options", "message"),
    [
        ("tokenizer.json", {"files": "tokenizer"}, r"expected a tokenizer\.json in .* on the hub; it has none$"),
        ("model.onnx", {}, r"expected \.safetensors or model\.onnx in .*; got pytorch_model\.bin, a pickle; allow_pic"),
        pytest.param(
            "model.onnx",
            {"runtime": "torch"},
            r"expected \.safetensors in .*; got pytorch_model\.bin, a pickle; allow_",
            marks=pytest.mark.heavy,
        ),
        ("model.onnx", {"runtime": "onnx"}, r"expected model\.onnx in .* on the hub; got pytorch_model\.bin"),
    ],
    ids=["tokenizer", "weights", "torch", "onnx"],
)
def test_what_a_repository_lacks_is_told_while_planning(hub, lacking, options, message):
    del hub.files[NAME][lacking]
    with pytest.raises(ConfigError, match=message):
        check(source(**options))
    assert not hub.given


def test_a_cache_that_cannot_be_written_is_told(hub, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match=r"file/\.gristmill-locks.*: Not a directory\. "):
        fetch(source(cache_dir=str(tmp_path / "file")))
    assert not hub.given


def test_without_room_nothing_is_begun(hub, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=5))
    with pytest.raises(MachineError, match=r"^QualityClassifier: expected 0 MB free in .*; got 0 MB$"):
        fetch(source())
    assert not hub.given


def test_a_hub_that_is_away_is_told(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(RunFailed, match=r"^QualityClassifier: expected to download tests/tiny-classifier; the hub did"):
        check(source())


def test_a_model_on_the_hub_that_is_not_there_is_told(hub):
    with pytest.raises(ConfigError, match=r"^model: expected a model tests/none on the hub; found none\. If it"):
        check(ModelSource("tests/none"))


def test_access_is_granted_on_a_page_and_told_by_a_token(hub, monkeypatch):
    hub.gated.add(NAME)
    with pytest.raises(
        ConfigError,
        match=r"^QualityClassifier: access to tests/tiny-class.* is granted on its page; then set HF_TOKEN$",
    ):
        check(source())

    keep_token(hub_double.TOKEN)
    monkeypatch.setenv("HF_TOKEN", "")  # so that what is put there is taken away again
    assert check(source()).directory is None
    assert os.environ["HF_TOKEN"] == hub_double.TOKEN  # for the process that downloads
    assert fetch(source()) == locate(source())


def test_no_token_gets_into_a_source_a_pickle_or_a_message():
    keep_token(hub_double.TOKEN)

    assert hub_double.TOKEN not in repr(source())
    assert hub_double.TOKEN.encode() not in pickle.dumps(source())
    assert without_secrets(f"403 for {hub_double.TOKEN}") == "403 for ***"


ADAPTER = ["adapter_config.json", "adapter_model.safetensors"]
NAMES = ["config.json", "tokenizer.json", "model.safetensors", "model.fp16.safetensors", "pytorch_model.bin"]


@pytest.mark.parametrize(
    ("names", "options", "chosen"),
    [
        (NAMES, {}, ["config.json", "tokenizer.json", "model.safetensors"]),
        ([*NAMES, "onnx/model.onnx", "onnx/model_int8.onnx"], {}, ["config.json", "tokenizer.json", "onnx/model.onnx"]),
        ([*NAMES, "onnx/model.onnx"], {"runtime": "torch"}, ["config.json", "tokenizer.json", "model.safetensors"]),
        (["model.onnx", "model.onnx_data"], {}, ["model.onnx", "model.onnx_data"]),
        (["pytorch_model.bin"], {}, []),
        (["pytorch_model.bin"], {"allow_pickle": True}, ["pytorch_model.bin"]),
        (
            ["adapter_config.json", "adapter_model.safetensors"],
            {},
            ["adapter_config.json", "adapter_model.safetensors"],
        ),
    ],
    ids=["safetensors", "onnx", "torch", "onnx-data", "pickle", "pickle-allowed", "adapter"],
)
def test_one_format_of_the_weights_is_chosen(names, options, chosen):
    assert choose_files(names, source(**options)) == chosen


def test_weights_in_parts_come_with_their_index():
    names = ["model-1-of-2.safetensors", "model-2-of-2.safetensors", "model.safetensors.index.json"]

    assert sorted(weight_files(names, ".safetensors")) == names
    assert weight_files(["a.safetensors", "b.safetensors"], ".safetensors") == []
    assert weight_files(["odd.safetensors"], ".safetensors") == ["odd.safetensors"]


@pytest.mark.parametrize(
    ("runtime", "message"),
    [
        (None, r"^Q needs onnxruntime or torch; neither is installed\. Install: pip install 'gristmill\[models\]'$"),
        ("onnx", r"^Q needs onnxruntime; it is not installed\. Install: pip install 'gristmill\[models\]'$"),
        ("torch", r"^Q needs torch; it is not installed\. Install: pip install 'gristmill\[torch\]'$"),
    ],
)
def test_a_missing_library_is_told_with_the_command(runtime, message, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=message):
        check_installed(ModelSource("a/b", runtime=runtime, who="Q"))


def test_without_the_hubs_package_the_command_is_told(monkeypatch):
    import importlib.util

    real = importlib.util.find_spec
    hidden = {"huggingface_hub"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in hidden else real(name))
    with pytest.raises(MissingDependency, match=r"Install: pip install 'gristmill\[hub\]'$"):
        check(source())
