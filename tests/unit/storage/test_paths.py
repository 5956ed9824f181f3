"""Input files are found wherever they are, in the same order everywhere, and never skipped without a word."""

import os
import socket
import zipfile
from pathlib import Path

import fsspec
import pytest

from gristmill.errors import ConfigError, NoInputError
from gristmill.storage.file_system import absolute
from gristmill.storage.paths import Packed, list_files

JSONL = [".jsonl", ".json"]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    for name in ["b.jsonl", "a/x.jsonl.gz", "a/deep/y.json.zst", "a/z.jsonl.bz2", "notes.txt", ".hidden.jsonl",
                 "_logs/l.jsonl", "a/.cache/c.jsonl", "[1].jsonl"]:  # fmt: skip
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(paths, extensions=JSONL):
    return [os.path.relpath(f.path, "in") for f in list_files(paths, extensions=extensions)]


ALL = ["[1].jsonl", "a/deep/y.json.zst", "a/x.jsonl.gz", "a/z.jsonl.bz2", "b.jsonl"]


def test_a_directory_is_searched_to_the_bottom_without_hidden_files_and_in_order(tree):
    assert found("in") == found("in/") == found(["in"]) == found(str(tree / "in")) == ALL


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("in/*.jsonl", ["[1].jsonl", "b.jsonl"]),
        ("in/a/*", ["a/deep/y.json.zst", "a/x.jsonl.gz", "a/z.jsonl.bz2"]),
        ("in/**/*.jsonl.gz", ["a/x.jsonl.gz"]),
        ("in/?.jsonl", ["b.jsonl"]),
        ("in/[a-c].jsonl", ["b.jsonl"]),
        ("in/[!a].jsonl", ["b.jsonl"]),
        ("*/b.jsonl", ["b.jsonl"]),
        ("./in/b*", ["b.jsonl"]),
        ("in/[1].jsonl", ["[1].jsonl"]),
    ],
)
def test_globs_find_what_a_shell_would_and_directories_stand_for_their_files(tree, pattern, expected):
    assert found(pattern) == expected


def test_a_file_named_outright_is_taken_whatever_its_name(tree):
    assert found("in/notes.txt") == ["notes.txt"]


def test_a_file_found_twice_is_read_once(tree):
    assert found(["in/b.jsonl", "in/*.jsonl", "in/b.jsonl"]) == ["[1].jsonl", "b.jsonl"]


def test_size_and_version_are_those_of_the_file(tree):
    (status,) = list_files("in/b.jsonl")
    assert (status.size, status.version) == (1, str(Path("in/b.jsonl").stat().st_mtime_ns))


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ("inn", r"^reader: expected a file ending in .* at 'inn'; got none: '\.' has in; did you mean 'in'\?$"),
        ("in/notes", r"did you mean 'notes.txt'\?"),
        ("in/*.parquet", r"at 'in/\*\.parquet'; got none: 'in' has .*notes\.txt"),
        ("nowhere/*.parquet", r"at 'nowhere/\*\.parquet'; got none$"),
        ("in/_logs/empty", r"got none: 'in/_logs' has l.jsonl"),
        ([], r"^reader: expected at least one path; got \[\]$"),
    ],
)
def test_nothing_found_says_what_is_there_instead(tree, paths, message):
    with pytest.raises(NoInputError, match=message):
        list_files(paths, extensions=JSONL, who="reader")


def test_that_archives_are_not_listed_is_said(tmp_path):
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("a.jsonl", "{}")
    with pytest.raises(NoInputError, match=r"got none: what is inside an archive is not listed\. Unpack it first$"):
        list_files(f"zip://a.jsonl::{tmp_path}/b.zip", extensions=JSONL)


def test_files_of_other_kinds_are_mentioned(tree):
    with pytest.raises(NoInputError, match=r"got none, but 6 files of other kinds \(\[1\].jsonl, b.jsonl, notes.txt\)"):
        list_files("in", extensions=[".parquet"])


def test_an_empty_directory_is_said_to_be_empty(tmp_path):
    (tmp_path / ".hidden").write_text("")
    with pytest.raises(NoInputError, match=r"the directory has only hidden files \(1\)"):
        list_files(str(tmp_path), extensions=JSONL)


def test_urls_are_searched_like_directories():
    fs = fsspec.filesystem("memory")
    fs.pipe({"/found/a.jsonl": b"1", "/found/sub/b.jsonl": b"22", "/found/_x/c.jsonl": b"", "/found/d.txt": b""})
    files = list_files("memory://found", extensions=JSONL)
    assert [(f.path, f.size) for f in files] == [("memory:///found/a.jsonl", 1), ("memory:///found/sub/b.jsonl", 2)]
    assert [f.path for f in list_files("memory://found/*.jsonl", extensions=JSONL)] == ["memory:///found/a.jsonl"]
    with pytest.raises(NoInputError, match="memory://nowhere"):
        list_files("memory://nowhere")


# One file, many spellings


def test_a_file_is_read_once_however_it_is_spelt(tree):
    ways = ["in", "./in", "in/", "in//", str(tree / "in"), f"file://{tree}/in", "in/a/../../in", "in/*", "in/./b.jsonl"]
    assert found(ways) == ALL
    assert len(list_files(ways, extensions=JSONL)) == len(ALL)


def test_what_is_listed_does_not_depend_on_spelling_or_on_the_working_directory(tree, monkeypatch):
    listed = list_files("in", extensions=JSONL)
    assert list_files("./in/", extensions=JSONL) == list_files(str(tree / "in"), extensions=JSONL) == listed
    monkeypatch.chdir(tree / "in" / "a")
    assert list_files("..", extensions=JSONL) == list_files("../../in", extensions=JSONL) == listed
    monkeypatch.chdir("/")
    assert list_files(str(tree / "in")[1:], extensions=JSONL) == listed


def test_a_link_to_a_file_that_is_listed_is_not_a_second_file_but_a_hard_link_is(tree):
    Path("in/c.jsonl").symlink_to("b.jsonl")
    Path("in/0.jsonl").symlink_to(tree / "in" / "b.jsonl")
    Path("linked").symlink_to("in")
    assert found(["in", "linked"]) == ALL
    assert found("in/0.jsonl") == ["0.jsonl"]
    os.link("in/b.jsonl", "in/hard.jsonl")
    assert found("in") == [*ALL, "hard.jsonl"]


def test_a_link_back_to_a_directory_above_ends_where_it_began(tree):
    Path("in/a/back").symlink_to("..")
    Path("in/self").symlink_to(".")
    assert found("in") == ALL


def test_directories_that_link_to_each_other_are_walked_once_each(tree):
    """By every way there is, twelve would take longer than anybody waits."""
    names = [f"d{n:02}" for n in range(12)]
    for name in names:
        Path("web", name).mkdir(parents=True)
        Path("web", name, "a.jsonl").touch()
        for other in names:
            Path("web", name, f"to_{other}").symlink_to(Path("..", other))
    assert found(["web"]) == [f"../web/{name}/a.jsonl" for name in names]


def test_a_directory_that_two_links_lead_to_is_listed_under_the_first(tree):
    Path("elsewhere").mkdir()
    Path("elsewhere/w.jsonl").touch()
    for name in ("z", "k", "m"):
        Path("in", name).symlink_to(Path("..", "elsewhere"))
    assert "k/w.jsonl" in found(["in"])
    assert len(found(["in"])) == len(ALL) + 1


def test_dots_behind_a_link_mean_what_the_system_takes_them_for(tree):
    Path("elsewhere/below").mkdir(parents=True)
    Path("elsewhere/w.jsonl").write_bytes(b"x")
    Path("w.jsonl").write_bytes(b"other")
    Path("link").symlink_to("elsewhere/below")
    assert [f.path for f in list_files("link/../w.jsonl")] == [str(tree / "elsewhere" / "w.jsonl")]


def test_an_absolute_path_keeps_the_link_the_shell_came_by(tree, monkeypatch):
    Path("linked").symlink_to("in")
    monkeypatch.chdir("linked")
    assert absolute("b.jsonl") == str(tree / "in" / "b.jsonl")
    monkeypatch.setenv("PWD", str(tree / "linked"))
    assert absolute("./b.jsonl") == str(tree / "linked" / "b.jsonl")
    monkeypatch.setenv("PWD", str(tree))
    assert absolute("b.jsonl") == str(tree / "in" / "b.jsonl")
    assert (absolute("//x//y/"), absolute("s3://b//x")) == ("/x/y", "s3://b//x")


# What cannot be read as a file


def bind(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)


ODD = {
    "named pipe": os.mkfifo,
    "socket": bind,
    "link to nothing": lambda path: Path(path).symlink_to("nowhere"),
    "device": lambda path: Path(path).symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("way", ["in", "in/*.jsonl", "in/odd.jsonl"])
def test_what_is_not_a_file_is_refused_in_words(tree, kind, way):
    ODD[kind]("in/odd.jsonl")
    with pytest.raises(ConfigError, match=r"^reader: .*odd\.jsonl.* (got a|where there is) (" + kind + "|nothing)"):
        list_files(way, extensions=JSONL, who="reader")
    Path("in/odd.jsonl").unlink()
    ODD[kind]("in/odd.lock")  # nobody would have read it
    assert found("in") == ALL


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused(path):
    with pytest.raises(ConfigError, match=rf"expected a file at '{path}'; got a device"):
        list_files(path)


def test_a_link_to_itself_is_refused_in_words(tree):
    Path("in/round.jsonl").symlink_to("round.jsonl")
    for way in ["in", "in/*.jsonl"]:
        with pytest.raises(ConfigError, match=r"round\.jsonl'; got a link to nothing"):
            list_files(way, extensions=JSONL)
    with pytest.raises(ConfigError, match="Too many levels of symbolic links"):
        list_files("in/round.jsonl")


def test_a_link_to_a_directory_that_is_not_there_is_refused_for_what_may_be_behind_it(tree):
    Path("in/2024").symlink_to("/mnt/not-mounted")
    with pytest.raises(ConfigError, match=r"in/2024'; got a link to nothing\. Remove it"):
        list_files("in", extensions=JSONL)


@pytest.mark.parametrize("name", [b"caf\xe9.jsonl", b"caf\xe9/a.jsonl"])
def test_a_name_that_is_not_utf8_is_refused_in_words(tree, name):
    path = Path("in") / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    with pytest.raises(ConfigError, match=r"expected a file name in UTF-8; got b'.*caf\\xe9") as caught:
        list_files("in", extensions=JSONL)
    str(caught.value).encode()
    with pytest.raises(ConfigError, match="UTF-8"):
        list_files(str(path))


def test_a_path_with_a_zero_byte_is_refused_in_words():
    with pytest.raises(ConfigError, match="expected files at"):
        list_files("in\0.jsonl")


def test_strings_beyond_four_gigabytes_are_found_again():
    packed = Packed()
    packed.append(b"first")
    packed._bytes = SayLonger(packed._bytes)
    packed.append(b"second")
    packed.append(b"third")

    assert list(packed._ends) == [0, 5, (1 << 32) + 11, (1 << 32) + 16]
    assert packed[0] == b"first"


class SayLonger(bytearray):
    """Says that there are 4 GB more in it than there are."""

    def __iadd__(self, other):
        self.extend(other)
        return self

    def __len__(self):
        return super().__len__() + (1 << 32)


def test_what_is_missing_in_the_root_directory_is_looked_for_there():
    with pytest.raises(NoInputError, match=r"at '/gristmill-was-never-here'; got none: '/' has "):
        list_files("/gristmill-was-never-here", extensions=JSONL)
