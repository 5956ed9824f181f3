"""Progress shows what snapshots say: a table within 80 columns on a terminal, a line now and then elsewhere."""

import io

import pytest
from rich.console import Console

from gristmill.metrics.progress import Progress
from gristmill.metrics.screens import IN_A_PROGRAM, ON_THE_COMMAND_LINE, Lines, Terminal, screen_on
from gristmill.metrics.snapshot import Rates, RunSnapshot, StageSnapshot
from gristmill.metrics.snapshot_line import one_line
from gristmill.metrics.snapshot_view import full_view


def snapshot(elapsed_s, *, name="demo", read=0, state="running", messages=(), stages=None, quarantined=0):
    return RunSnapshot(
        name=name,
        state=state,
        elapsed_s=elapsed_s,
        partitions_done=3,
        partitions_total=12,
        read=read,
        written=read // 2,
        dropped=read - read // 2,
        quarantined=quarantined,
        created=0,
        input_bytes_done=read * 1000,
        input_bytes_total=10_000_000,
        memory_bytes=312_000_000,
        memory_limit=1_000_000_000,
        eta_s=75.0,
        stages=stages
        or (StageSnapshot("jsonl_reader", 0, read, read, bytes_in=read * 1000, workers=2, busy_workers=1),),
        messages=messages,
    )


def console(*, terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None, highlight=False)


def shown(target):
    return target.file.getvalue()


def rates_of(*snapshots):
    rates = Rates()
    for each in snapshots:
        rates.add(each)
    return rates


def test_elsewhere_than_on_a_terminal_a_line_appears_every_few_seconds():
    target = console(terminal=False)
    with Progress(screen=screen_on(target, target.file)) as progress:
        for elapsed_s in (0.2, 4.9, 5.1, 6.0, 10.2):
            progress(snapshot(elapsed_s, read=100))

    assert [line.partition("]")[0] for line in shown(target).splitlines()] == ["[0:05", "[0:10"]


def test_the_next_run_of_a_workflow_is_shown_from_its_beginning():
    target = console(terminal=False)
    with Progress(screen=screen_on(target, target.file)) as progress:
        progress(snapshot(60.0, name="find", read=10**6))
        for elapsed_s in (0.1, 5.5):
            progress(snapshot(elapsed_s, name="remove", read=100))

    assert [line.partition("]")[0] for line in shown(target).splitlines()] == ["[1:00", "[0:05"]


def test_messages_appear_at_once_and_in_order():
    target = console(terminal=False)
    with Progress(screen=screen_on(target, target.file)) as progress:
        progress(snapshot(0.1, messages=("worker 2 was killed [for memory]", "stage x is slow")))

    assert shown(target) == "worker 2 was killed [for memory]\nstage x is slow\n"


def test_quiet_shows_nothing():
    target = console(terminal=True)
    with Progress(quiet=True, screen=screen_on(target, target.file)) as progress:
        progress(snapshot(60, read=100, messages=("hello",)))

    assert shown(target) == ""


def test_a_terminal_gets_the_table():
    target = console(terminal=True)
    with Progress(screen=screen_on(target, target.file)) as progress:
        progress(snapshot(1.0, read=1000))

    assert "jsonl_reader" in shown(target)
    assert "1:15 left" in shown(target)


def test_the_table_fits_in_80_columns_whatever_the_numbers():
    big = StageSnapshot(
        "a_stage_with_quite_a_long_name_indeed", 0, 99_999_999, 99_999_999, dropped=12_345_678, bytes_in=10**12,
        workers=128, busy_workers=128, queue_s=99.9, memory_bytes=999 * 10**9,
    )  # fmt: skip
    now = snapshot(1000.0, read=99_999_999, stages=(big, big))
    target = console(terminal=False)
    target.print(full_view(now, rates_of(now)))

    lines = shown(target).splitlines()
    assert len(lines) == 6
    assert max(map(len, lines)) <= 80
    assert "slowest" in lines[2]
    assert "128/128" in lines[4]


@pytest.mark.parametrize(
    ("width", "name"), [(80, "a_name_of_more_than_2…"), (120, "a_name_of_more_than_22_characters")]
)
def test_a_name_is_cut_only_where_there_is_no_room(width, name):
    now = snapshot(2.0, stages=(StageSnapshot("a_name_of_more_than_22_characters", 0),))
    target = Console(file=io.StringIO(), width=width, color_system=None)
    target.print(full_view(now, rates_of(now)))

    assert f"\n{name} " in shown(target)


def test_fused_stages_show_their_workers_once():
    stages = (StageSnapshot("a", 0, workers=2, busy_workers=1), StageSnapshot("b", 0, workers=2, busy_workers=1))
    now = snapshot(1.0, stages=stages)
    target = console(terminal=False)
    target.print(full_view(now, rates_of(now)))

    assert shown(target).count("1/2") == 1


def test_a_rate_is_that_of_the_last_seconds():
    rates = rates_of(*(snapshot(float(t), read=min(t, 50) * 100) for t in range(100)))

    assert rates.documents_per_s(0) == 0.0


def test_the_rate_of_a_finished_run_is_its_average():
    idle_at_the_end = [snapshot(float(t), read=min(t * 100, 1000)) for t in range(20)]
    rates = rates_of(*idle_at_the_end, snapshot(20.0, read=1000, state="finished"))

    assert rates.documents_per_s(0) == pytest.approx(50.0)


def test_what_an_earlier_attempt_did_is_no_part_of_the_rate():
    rates = rates_of(snapshot(0.0, read=900), snapshot(10.0, read=1000, state="finished"))

    assert rates.documents_per_s(0) == pytest.approx(10.0)


def test_a_line_says_everything_that_matters():
    now = snapshot(10.0, read=1000, quarantined=1)

    assert one_line(now, rates_of(now)) == (
        "[0:10] running, 3/12 parts, read 1,000, kept 500, dropped 500 (50 %), quarantined 1, 100 kB/s, about 1:15 left"
    )


def seen(pace, *snapshots, **options):
    stream = io.StringIO()
    progress = Progress(screen=Lines(pace, stream), **options)
    for each in snapshots:
        progress(each)
    progress.close()
    return stream.getvalue().splitlines()


def test_a_program_hears_of_its_run_after_ten_seconds_and_then_every_half_minute():
    lines = seen(IN_A_PROGRAM, *(snapshot(float(t), read=100) for t in range(80)))

    assert [line.partition("]")[0] for line in lines] == ["[0:10", "[0:40", "[1:10"]


def test_a_short_run_draws_no_table():
    target = console(terminal=True)
    progress = Progress(screen=Terminal(IN_A_PROGRAM, target))
    progress(snapshot(0.3, read=100))
    progress(snapshot(0.6, read=100, state="finished"))
    progress.close()

    assert shown(target) == ""


def test_an_observer_of_ones_own_replaces_the_display_and_not_the_warnings():
    heard = []
    lines = seen(ON_THE_COMMAND_LINE, snapshot(60.0, read=100, messages=("worker 2 ended",)), instead=heard.append)

    assert lines == ["worker 2 ended"]
    assert len(heard) == 1


def test_no_display_is_not_no_warnings():
    assert seen(ON_THE_COMMAND_LINE, snapshot(60.0, messages=("worker 2 ended",)), shows=False) == ["worker 2 ended"]


def deaths(number):
    return snapshot(number / 10, messages=(f"worker {number} (process {1000 + number}) of x ended: exit code 9",))


def test_eighty_nearly_equal_messages_are_a_few_lines_and_a_number():
    lines = seen(ON_THE_COMMAND_LINE, *map(deaths, range(80)), snapshot(9.0, state="finished"), shows=False)

    assert len(lines) == 6
    assert lines[-1] == "worker 79 (process 1079) of x ended: exit code 9 (and 74 more like this)"


def test_a_message_that_comes_every_minute_is_said_every_minute():
    stuck = [snapshot(60.0 * n, messages=(f"worker 0 has been busy with part-0 for {60 * n} s",)) for n in range(1, 20)]

    assert len(seen(ON_THE_COMMAND_LINE, *stuck, shows=False)) == 19


def test_quarantine_is_said_at_once_and_then_at_ten_times_as_many():
    stage = StageSnapshot("parse", 0, quarantined=1)
    numbers = [0, 1, 2, 9, 10, 50, 99, 100, 500]
    lines = seen(
        ON_THE_COMMAND_LINE,
        *(snapshot(1.0, read=1000, quarantined=number, stages=(stage,)) for number in numbers),
        shows=False,
    )

    assert lines == [
        "1 document quarantined so far, of 1,000 read, all in stage parse",
        "10 documents quarantined so far, of 1,000 read, most in stage parse",
        "100 documents quarantined so far, of 1,000 read, most in stage parse",
    ]


def test_a_word_about_quarantine_names_the_commonest_error():
    stages = (
        StageSnapshot("read", 0, quarantined=1, error="rare"),
        StageSnapshot("parse", 0, quarantined=9, error="x"),
    )
    lines = seen(ON_THE_COMMAND_LINE, snapshot(1.0, read=20, quarantined=10, stages=stages), shows=False)

    assert lines == ["10 documents quarantined so far, of 20 read, most in stage parse; the commonest error: x"]


class Full(io.StringIO):
    """Standard error redirected to a file on a full disk, or to a program that has ended."""

    def write(self, text):
        raise OSError(28, "No space left on device")


def test_a_run_goes_on_where_nothing_can_be_said():
    for stream in (Full(), closed()):
        progress = Progress(screen=Lines(ON_THE_COMMAND_LINE, stream))
        progress(snapshot(60.0, messages=("hello",)))
        progress.say("bye")
        progress.close()


def closed():
    stream = io.StringIO()
    stream.close()
    return stream
