"""What a stage raises is told in few words, however many it used."""

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.worker.failing import MAX_ERROR_CHARS, describe


def test_an_error_of_ten_megabytes_is_told_by_its_ends():
    told = describe(ValueError("beginning " + "x" * 10_000_000 + " end"))

    assert told.startswith("ValueError: beginning xxx")
    assert told.endswith("xxx end")
    assert "[9,998,0" in told  # so many characters were left out
    assert len(told) < MAX_ERROR_CHARS + 100


def test_secrets_are_left_out_at_both_ends_of_a_long_error():
    url = "s3://me:secret-word@bucket/a"
    told = describe(ValueError(f"{url} {'x' * 500_000} {url}"))

    assert told.count("s3://***@bucket/a") == 2
    assert "secret-word" not in told


def test_half_a_secret_is_not_left_where_the_middle_is_cut_out():
    """A URL at each place the text may be cut at before it is searched for secrets."""
    many = " ".join(["https://me:secret-word@host/a"] * 40_000)

    assert "secret" not in describe(ValueError(many))


class RaisesInAHandler(ProcessingStage):
    """Fails while it handles an error of its own: both belong into the record."""

    def process(self, task):
        if "b" not in task.column("text").to_pylist():
            return task
        try:
            raise KeyError("its own")
        except KeyError:
            raise ValueError("will not do")  # noqa: B904  # what was handled is to be seen


def test_what_the_caller_was_handling_when_it_began_a_run_is_not_in_a_record(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')

    def records(name):
        reader, writer = JsonlReader(str(tmp_path / "in.jsonl")), JsonlWriter(str(tmp_path / name))
        pipeline = Pipeline("handled", stages=[reader, RaisesInAHandler(), writer])
        pipeline.run(LocalExecutor(num_workers=0), quiet=True)
        return [path.read_bytes() for path in (tmp_path / name).rglob("*-s01.jsonl")]

    plain = records("plain")
    try:
        raise RuntimeError("of the caller")
    except RuntimeError:
        handling = records("handling")

    assert plain == handling
    assert plain
    assert b"its own" in plain[0]
