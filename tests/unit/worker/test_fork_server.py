"""The fork server removes what a driver has left that was killed."""

from gristmill.worker.fork_server import _remove


def test_a_directory_is_removed_with_all_that_is_in_it(tmp_path):
    left, elsewhere = tmp_path / "left", tmp_path / "elsewhere"
    (left / "a" / "b").mkdir(parents=True)
    (left / "a" / "b" / "file").write_text("x")
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("y")
    (left / "link").symlink_to(elsewhere)
    (left / "a" / "nowhere").symlink_to(tmp_path / "missing")

    _remove(str(left))

    assert not left.exists()
    assert (elsewhere / "kept").read_text() == "y"


def test_a_directory_that_is_gone_is_no_error(tmp_path):
    _remove(str(tmp_path / "gone"))

    assert list(tmp_path.iterdir()) == []
