"""What a second run in the same run directory does: nothing, the rest, or refuse and say what differs."""

import os

import pytest
from tests.fault.corpus import make_corpus
from tests.fault.curate import build, run
from tests.fault.processes import finish, wait_until
from tests.fault.traces import contents, ledger, modification_times

from gristmill.backends.local import LocalExecutor
from gristmill.backends.schedules import RunSchedule
from gristmill.engine.spans import Span
from gristmill.errors import ConfigError, ResumeRefused
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlWriter

pytestmark = [pytest.mark.fault, pytest.mark.slow]

PARTITIONS = 12


@pytest.fixture
def corpus(tmp_path):
    make_corpus(tmp_path / "raw", PARTITIONS)
    return tmp_path / "raw"


@pytest.fixture
def finished(corpus, tmp_path):
    work = tmp_path / "work"
    run(corpus, work, work_ms=1)
    return work


def test_a_finished_run_says_so_and_changes_nothing(finished, corpus):
    before = modification_times(finished), ledger(finished)
    first = contents(finished)
    again = run(corpus, finished, work_ms=1)

    assert again.already_finished
    assert again.balanced
    assert "this run is finished already; nothing was changed" in again.messages[0]
    assert (modification_times(finished), ledger(finished)) == before
    assert contents(finished) == first


def test_a_finished_run_has_the_same_result_again(corpus, tmp_path):
    first = run(corpus, tmp_path, work_ms=1)
    again = run(corpus, tmp_path, work_ms=1)

    counted = ("read", "written", "dropped", "quarantined", "output_files", "run_dir")
    assert [getattr(again, name) for name in counted] == [getattr(first, name) for name in counted]
    assert len(again) == len(first)


def test_a_changed_threshold_is_refused_with_stage_parameter_and_both_values(finished, corpus):
    before = contents(finished)
    with pytest.raises(ResumeRefused) as refused:
        run(corpus, finished, work_ms=1, min_words=4)

    message = str(refused.value)
    assert "stage word_count" in message
    assert "min_words" in message
    assert "3 then, 4 now" in message
    assert "fresh=True (--fresh)" in message
    assert contents(finished) == before


def test_a_changed_input_is_refused_by_name(finished, corpus):
    changed = corpus / "part-0003.jsonl"
    changed.write_text(changed.read_text() + '{"id": "new", "text": "one more document here"}\n')
    with pytest.raises(ResumeRefused, match=r"part-0003\.jsonl: has changed \(size or modification time\)"):
        run(corpus, finished, work_ms=1)


def test_an_input_of_the_same_size_but_another_time_is_refused(finished, corpus):
    os.utime(corpus / "part-0003.jsonl", (1, 1))
    with pytest.raises(ResumeRefused, match=r"part-0003\.jsonl: has changed"):
        run(corpus, finished, work_ms=1)


def test_new_and_vanished_inputs_are_refused(finished, corpus):
    (corpus / "part-0003.jsonl").rename(corpus / "part-9999.jsonl")
    with pytest.raises(ResumeRefused) as refused:
        run(corpus, finished, work_ms=1)

    assert "part-0003.jsonl: was there before, is gone now" in str(refused.value)
    assert "part-9999.jsonl: is new" in str(refused.value)


def test_fresh_starts_over_with_the_new_threshold(finished, corpus, tmp_path):
    result = run(corpus, finished, work_ms=1, min_words=500, fresh=True, mode="overwrite")
    run(corpus, tmp_path / "other", work_ms=1, min_words=500, mode="overwrite")

    assert not result.resumed
    assert result.written == 0
    assert contents(finished).keys() == contents(tmp_path / "other").keys()


def test_a_missing_output_file_is_made_again_and_only_that(finished, corpus):
    before, times = contents(finished), modification_times(finished)
    lost = finished / "out" / "part-0004.jsonl"
    lost.unlink()
    result = run(corpus, finished, work_ms=1)
    touched = {name for name, time in modification_times(finished).items() if time != times[name]}

    assert result.resumed
    assert contents(finished) == before
    assert {name.split("/")[-1][:9] for name in touched if name.startswith("out")} == {"part-0004"}
    assert [line["name"] for line in ledger(finished)[PARTITIONS:]] == ["part-0004"]


def test_a_cut_output_file_is_made_again(finished, corpus):
    before = contents(finished)
    cut = finished / "out" / "part-0004.jsonl"
    cut.write_bytes(cut.read_bytes()[:-10])
    run(corpus, finished, work_ms=1)

    assert contents(finished) == before


def test_the_number_of_workers_may_change_between_sessions(finished, corpus):
    before = contents(finished)
    path = finished / "run" / "ledger.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    result = run(corpus, finished, work_ms=1, workers=0)

    assert result.resumed
    assert contents(finished) == before


def test_the_log_of_events_of_every_earlier_session_is_kept_and_can_be_shown(finished, corpus):
    home, logs = finished / "run", []
    for number in (3, 4):
        logs.insert(0, (home / "events.log").read_bytes())
        (finished / "out" / f"part-{number:04}.jsonl").unlink()
        run(corpus, finished, work_ms=1, workers=0)

    assert [(home / f"events.{number}.log").read_bytes() for number in (1, 2)] == logs
    assert not (home / "events.3.log").exists()
    done = [{span.item_id for span in RunSchedule(home, session=n) if isinstance(span, Span)} for n in (None, 1, 2)]
    assert ("part-0004" in done[0], "part-0003" in done[0]) == (True, False)
    assert ("part-0003" in done[1], "part-0004" in done[1]) == (True, False)
    assert {f"part-{number:04}" for number in range(PARTITIONS)} <= done[2]


def test_two_runs_at_once_in_one_directory_are_refused(corpus, scene):
    command = ("-m", "tests.fault.curate", corpus, scene.work)
    path = scene.work / "run" / "ledger.jsonl"
    first = scene.start(*command, hold=(0, path))
    wait_until(path.exists, what="the ledger", program=first)
    with pytest.raises(ConfigError, match=rf"process {first.pid} is running in it"):
        run(corpus, scene.work)
    assert first.poll() is None
    first.kill()
    first.communicate()
    finish(scene.start(*command))

    assert sorted(line["root"] for line in ledger(scene.work)) == list(range(PARTITIONS))


def test_two_runs_into_one_output_are_refused_whatever_their_run_directories(corpus, scene, finished):
    """The second would remove the first one's temporary files, and the first those of the second when it ends."""
    command = ("-m", "tests.fault.curate", corpus, scene.work)
    path = scene.work / "run" / "ledger.jsonl"
    first = scene.start(*command, hold=(0, path))
    wait_until(path.exists, what="the ledger", program=first)
    for out, rejects in (("out", "elsewhere"), ("elsewhere", "rejects")):
        stages = build(corpus, scene.work).stages
        stages[-1] = JsonlWriter(str(scene.work / out))
        with pytest.raises(ConfigError, match=rf"process {first.pid} does"):
            Pipeline("other", stages=stages).run(
                LocalExecutor(num_workers=0),
                checkpoint_path=scene.work / "other",
                rejects_path=scene.work / rejects,
            )
    assert first.poll() is None
    first.kill()
    first.communicate()
    finish(scene.start(*command))

    assert contents(scene.work) == contents(finished)
