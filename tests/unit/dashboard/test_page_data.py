"""What the page is told: documents by number, spans of a timeline, points of a history, states, rules."""

import json
import threading

import msgspec
import pytest

from gristmill.dashboard.apart import apart
from gristmill.dashboard.history_points import history_points
from gristmill.dashboard.kept_documents import EXAMPLES, MOST_CHARS, KeptDocuments
from gristmill.dashboard.measures import measures_of
from gristmill.dashboard.run_data import Life
from gristmill.dashboard.shown_run import Readers, ShownRun
from gristmill.dashboard.timeline import LOG_ENDS, Happened, Timeline, events, one_worker, spans_within, workers
from gristmill.dashboard.watched_run import Remembered, WatchedRun
from gristmill.metrics.history import read_history
from gristmill.metrics.history_writer import HistoryWriter
from gristmill.metrics.observations import LabelCount, Labels, MeasureTally, Observations, Side
from gristmill.metrics.snapshot import MAX_MESSAGE_CHARS, RunSnapshot, StageSnapshot
from gristmill.metrics.tally import NOT_A_NUMBER, slot_of


def snapshot(**changes):
    stages = (
        StageSnapshot("read", 0, workers=2),
        StageSnapshot("filter", 0, workers=2),
        StageSnapshot("write", 1, workers=1),
    )
    plain = RunSnapshot(
        "demo", "running", 1.0, 1, 4, 10, 5, 4, 1, 0, 100, 400, 7, 9, None, stages, shares={"useful": 1.0}
    )
    return msgspec.structs.replace(plain, **changes)


# Documents


def rejected(n, reason="short", **more):
    return {
        "id": f"d{n}",
        "text": f"text {n}",
        "reject_stage": "words",
        "reject_reason": reason,
        "reject_id": f"d{n}",
        **more,
    }


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_dropped_document_is_found_by_the_number_of_its_excerpt(tmp_path):
    written(tmp_path / "a.jsonl", [rejected(1), rejected(2, reason="other"), rejected(3, reject_value=2.5)])
    documents = KeptDocuments()
    first, second = documents.rejects(tmp_path, "words", "short")
    assert (first.id, second.id, second.value) == ("d1", "d3", 2.5)
    assert documents.document(second.ref).text == "text 3"
    assert documents.rejects(tmp_path, "words", "short")[1].ref == second.ref


@pytest.mark.parametrize("ref", [-1, 1, 10**12])
def test_a_number_nobody_was_given_is_nothing(tmp_path, ref):
    written(tmp_path / "a.jsonl", [rejected(1)])
    documents = KeptDocuments()
    documents.rejects(tmp_path, "words", "short")
    assert documents.document(ref) is None


def test_a_link_out_of_the_directory_is_left_out(tmp_path):
    (tmp_path / "run").mkdir()
    secret = written(tmp_path / "secret.jsonl", [rejected(1)])
    (tmp_path / "run" / "a.jsonl").symlink_to(secret)
    assert KeptDocuments().rejects(tmp_path / "run", "words", "short") == []


def test_of_many_documents_the_first_are_shown_and_of_a_long_one_the_beginning(tmp_path):
    written(
        tmp_path / "a.jsonl", [rejected(n) for n in range(100)] + [rejected(0, reason="long", text="x" * 1_000_000)]
    )
    documents = KeptDocuments()
    assert len(documents.rejects(tmp_path, "words", "short")) == EXAMPLES
    (long,) = documents.rejects(tmp_path, "words", "long")
    found = documents.document(long.ref)
    assert (len(found.text), found.length, found.cut) == (MOST_CHARS, 1_000_000, True)


def test_damaged_and_half_written_lines_are_passed_over(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'[1]\n{"reject_stage"\n\xff\xfe\n' + json.dumps(rejected(1)).encode()[:-1])
    assert KeptDocuments().rejects(tmp_path, "words", "short") == []


def test_documents_in_quarantine_are_those_with_errors_like_the_one_asked_for(tmp_path):
    base = {"stage": "parse", "kind": "ValueError", "source": "a.txt", "document_id": "d", "traceback": "Traceback: …"}
    records = [
        {**base, "error": f"ValueError: line {n}: no number", "line": n, "document": f"text {n}"} for n in (3, 17)
    ]
    file = written(
        tmp_path / "q.jsonl", [*records, {**base, "error": "ValueError: too long"}, {**base, "kind": "KeyError"}]
    )
    documents = KeptDocuments()
    found = documents.quarantined([file], "parse", "ValueError", "line 3: no number")
    assert [record.place for record in found] == ["a.txt:3", "a.txt:17"]
    shown = documents.document(found[1].ref)
    assert (shown.text, shown.traceback, shown.facts["line"]) == ("text 17", "Traceback: …", 17)


def test_documents_in_quarantine_are_found_by_the_beginning_of_a_long_error(tmp_path):
    """The page knows of an error as much as a report says of it."""
    message = "the beginning " + "of a long story " * 100
    record = {"stage": "parse", "kind": "ValueError", "error": f"ValueError: {message}", "document": "text"}
    file = written(tmp_path / "q.jsonl", [record, {**record, "error": "ValueError: another " + message}])
    for known in (message, message[:MAX_MESSAGE_CHARS]):
        assert len(KeptDocuments().quarantined([file], "parse", "ValueError", known)) == 1


# The timeline


def timeline(*spans):
    made = Timeline(groups=("read", "write"))
    for kind, worker, start, end, *note in spans:
        number = made.add(kind, worker, worker % 2, 0, start, end)
        made.items.append(f"item-{number}")
        made.documents.append(10)
        if note:
            made.notes[number] = note[0]
    return made


def test_workers_are_what_they_did_last():
    found = timeline(
        *(("set-up", 0, 0, 1), ("task", 0, 1, 5), ("task", 0, 5, 9, LOG_ENDS)),
        *(("task", 1, 0, 2), ("task", 2, 0, 2), ("ending", 2, 2, 3), ("task", 3, 0, 1), ("lost", 3, 1, 2, "signal 9")),
        ("set-up", 4, 8, 9, LOG_ENDS),
    )
    states = {worker.number: worker.state for worker in workers(found, is_live=True)}
    assert states == {0: "busy", 1: "idle", 2: "ended", 3: "lost", 4: "starting"}
    over = {worker.number: worker.state for worker in workers(found, is_live=False)}
    assert over == {0: "ended", 1: "ended", 2: "ended", 3: "lost", 4: "ended"}
    first = workers(found, is_live=True)[0]
    assert (first.number, first.tasks, first.busy_s) == (0, 2, 8)


def test_of_a_part_of_the_time_the_spans_are_those_that_touch_it():
    spans, number = spans_within(timeline(("task", 0, 0, 1), ("task", 0, 1, 2), ("task", 0, 5, 6)), 1.5, 5.5)
    assert (spans.start, spans.item, number) == ([1, 5], ["item-1", "item-2"], 2)


def test_too_many_spans_are_joined_with_their_neighbours_of_one_kind_only():
    rows = [("task", n % 2, float(n), n + 0.9) for n in range(2_000)] + [("lost", 0, 2_000.0, 2_001.0)]
    many = timeline(*sorted(rows, key=lambda row: (row[1], row[2])))
    spans, number = spans_within(many, 0, 2_001, most=100)
    assert number == 2_001
    assert len(spans.worker) <= 100
    assert (min(spans.start), max(spans.end)) == (0, 2_001)
    assert sorted(set(spans.kind)) == [1, 4]
    assert sum(int(note.split()[0]) if note else 1 for note in spans.note) == 2_001


def test_a_worker_is_told_with_its_memory_and_last_tasks():
    found = timeline(*(("task", 7, float(n), n + 1.0) for n in range(100)))
    for n in range(1, 1_001):
        found.sample(7, float(n), n)
    told = one_worker(found, 7, is_live=False)
    assert (told["tasks"], told["spans"][0]["item"], len(told["spans"])) == (100, "item-99", 30)
    assert 300 <= len(told["memory"]) <= 600
    assert told["memory"][-1] == (1_000.0, 1_000.0) or told["memory"][-1] == (999.0, 999.0)
    assert one_worker(found, 8, is_live=False) is None


def test_events_are_the_latest_first_with_messages_among_them():
    found = Timeline()
    for n in range(600):
        found.mark("commit", float(n), f"part {n}")
    told = events(found, [Happened("message", 599.5, "slow")], None)
    assert [event.text for event in told["events"][:2]] == ["slow", "part 599"]
    assert (told["counts"], told["left_out"]) == ({"commit": 600, "message": 1}, 401)
    assert len(events(found, [], "message")["events"]) == 0


# States and history


class Changing:
    def __init__(self):
        self.content, self.alive = None, True

    def read(self, name):
        return self.content

    def life(self):
        return Life("process 1", self.alive)


def test_a_run_that_says_nothing_and_whose_process_is_gone_was_killed():
    source = Changing()
    run = WatchedRun(source, look_s=0)
    assert (run.state().number, run.state().snapshot) == (0, None)
    source.content = msgspec.json.encode(snapshot())
    assert (run.state().number, run.state().run) == (1, "running")
    source.content = b'{"half'
    assert (run.state().number, run.state().run) == (1, "running")
    source.alive = False
    assert (run.state().number, run.state().run) == (2, "killed")
    assert run.news(1, threading.Event()).number == 2


def test_prometheus_can_ask_for_the_latest_snapshot():
    source = Changing()
    source.content = msgspec.json.encode(snapshot())
    shown = ShownRun(WatchedRun(source), Readers(dict, dict, dict, dict, dict))
    assert b'gristmill_read_documents_total{pipeline="demo"' in shown.metrics().body


def test_what_is_known_of_a_live_run_is_found_out_again_and_of_an_ended_one_once():
    calls, ended = [], False

    def find():
        calls.append(1)
        return len(calls)

    remembered = Remembered(find, lambda: ended)
    assert (remembered.get(), remembered.get()) == (1, 1)
    remembered._good_until = 0.0
    ended = True
    assert (remembered.get(), remembered.get()) == (2, 2)
    remembered._good_until = 0.0
    assert remembered.get() == 2


def history(*snapshots):
    writer = HistoryWriter()
    return read_history(b"".join(writer.lines(each) for each in snapshots))


def test_a_history_of_any_length_has_at_most_as_many_points_as_are_drawn():
    moments = [snapshot(read=10 * n, memory_bytes=n * 10**6, made_at=float(n)) for n in range(1, 1_501)]
    points = history_points(history(*moments), most=600)
    assert 550 <= len(points.time) <= 600
    assert {len(column) for column in (points.read_per_s, points.memory_bytes, *points.workers.values())} == {
        len(points.time)
    }
    assert points.read_per_s[1:] == [10.0] * (len(points.time) - 1)
    assert points.memory_bytes[-1] == 1_500 * 10**6
    assert points.workers == {"read": [2.0] * len(points.time), "write": [1.0] * len(points.time)}


def test_a_short_history_is_kept_as_it_is():
    seconds = {"cpu": {"useful": 3.0, "starved": 1.0}}
    told = (
        snapshot(made_at=1.0),
        snapshot(made_at=3.0, read=30),
        snapshot(made_at=4.0, read=20, resource_seconds=seconds),
    )
    points = history_points(history(*told))
    assert (points.time, points.read_per_s) == ([1.0, 3.0, 4.0], [None, 10.0, 0.0])
    assert points.shares == {"useful": [None, None, 0.75], "starved": [None, None, 0.25]}
    assert history_points(history()).time == []


# Rules


def test_a_rule_has_its_slots_in_order_and_counts_what_is_not_a_number():
    tally = MeasureTally("words", 1, 0, "words", "words", low=10.0)
    tally.kept = Side({slot_of(20): 3, slot_of(10): 1})
    tally.refused = Side({slot_of(-4.0): 1, slot_of(9): 2, slot_of(0): 1, NOT_A_NUMBER: 5})
    (rule,) = measures_of(Observations(tallies=[tally])).rules
    assert (rule.edges, rule.kept, rule.refused) == ([-4.0, 0.0, 9.0, 10.0, 20.0], [0, 0, 0, 1, 3], [1, 1, 2, 0, 0])
    assert rule.nexts == [-4.125, 0.0, 9.25, 10.25, 20.5]
    assert (rule.num_kept, rule.num_refused, rule.nan_refused) == (4, 9, 5)
    outside = sum(k + r for edge, k, r in zip(rule.edges, rule.kept, rule.refused, strict=True) if edge < 10)
    assert rule.nan_refused + outside == rule.num_refused


def test_a_rule_of_labels_has_them_in_place_of_slots_the_commonest_first():
    labels = Labels({"en": LabelCount(5, 0), "de": LabelCount(0, 7)}, LabelCount(0, 2))
    (rule,) = measures_of(Observations(tallies=[MeasureTally("keep", 1, 0, "other", "label", labels=labels)])).rules

    assert rule.labels == [("de", 0, 7), ("en", 5, 0), (None, 0, 2)]
    assert (rule.edges, rule.num_kept, rule.num_refused) == ([], 5, 9)


@pytest.mark.slow
def test_what_is_found_out_apart_comes_back_and_so_does_what_went_wrong():
    assert apart(json.dumps, {"a": 1}) == '{"a": 1}'
    with pytest.raises(json.JSONDecodeError):
        apart(json.loads, "{")
