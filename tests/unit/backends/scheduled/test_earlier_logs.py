"""The event logs of the last sessions of a run are kept."""

from gristmill.backends.scheduled.kept_records import EARLIER, FILE_NAME, keep_earlier_logs


def begin_session(directory, text):
    keep_earlier_logs(directory)
    (directory / FILE_NAME).write_text(text)


def test_the_latest_are_kept_and_the_oldest_go(tmp_path):
    for number in range(EARLIER + 3):
        begin_session(tmp_path, f"session {number}")

    assert (tmp_path / FILE_NAME).read_text() == f"session {EARLIER + 2}"
    kept = {path.name: path.read_text() for path in tmp_path.glob("events.*.log")}
    assert kept == {f"events.{n}.log": f"session {EARLIER + 2 - n}" for n in range(1, EARLIER + 1)}


def test_an_empty_log_and_none_are_not_worth_keeping(tmp_path):
    begin_session(tmp_path, "")
    begin_session(tmp_path, "one")

    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
