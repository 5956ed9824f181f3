"""A source of one's own: what is fetched, read and extracted, and what is on record where that fails."""

import json
from pathlib import Path

import pytest
from tests.own_source import Copies, FilesOf, LinesOf, Shouts, own_source, write_lines

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, DownloadFailed, NoInputError, StageError, TooManyQuarantined
from gristmill.pipeline import Pipeline
from gristmill.runs import joined_files
from gristmill.stages.context import Quarantined
from gristmill.stages.file_partitioning import FilePartitioningStage
from gristmill.stages.io.splitting import Lines
from gristmill.stages.text.download import DocumentDownloadExtractStage, DocumentIterator, Dropped, LeftOut
from gristmill.stages.text.download.base import DocumentIterateExtractStage, URLGenerationStage
from gristmill.stages.text.download.base.iterator import MAX_BATCH_BYTES
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.storage.transfer import RemoteFile
from gristmill.tasks import EmptyTask, RecordBatch

HERE = LocalExecutor(num_workers=0)


@pytest.fixture
def _a_file_for_each_task(monkeypatch):
    monkeypatch.setattr(joined_files, "JOINED_BYTES", 0)


def run(stages, work, **options):
    pipeline = Pipeline("own", stages=[*stages, JsonlWriter(str(work / "out"))])
    return pipeline.run(HERE, quiet=True, max_quarantined=None, **options)


def documents(work):
    files = sorted((work / "out").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def quarantined(work):
    files = sorted((work / "out" / ".gristmill" / "quarantine").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_every_record_of_every_file_becomes_a_document_with_the_name_of_its_file(tmp_path):
    source = write_lines(tmp_path / "raw", 2, 150)

    result = run([own_source(source, tmp_path)], tmp_path)

    found = documents(tmp_path)
    assert [d["id"] for d in found] == [f"{f}-{n}" for f in range(2) for n in range(150)]
    assert found[0] == {"id": "0-0", "text": "TEXT OF 0 AND 0", "file_name": "part-0.txt"}
    assert (result.read, result.written, result.quarantined) == (300, 300, 0)


def test_limits_and_the_name_of_the_column_are_as_asked_for(tmp_path):
    source = write_lines(tmp_path / "raw", 3, 100)

    run([own_source(source, tmp_path, url_limit=2, record_limit=5, add_filename_column="from")], tmp_path)

    assert [d["id"] for d in documents(tmp_path)] == [f"{f}-{n}" for f in range(2) for n in range(5)]
    assert set(documents(tmp_path)[0]) == {"id", "text", "from"}


def test_without_an_extractor_records_are_documents(tmp_path):
    source = write_lines(tmp_path / "raw", 1, 100)

    class Texts(LinesOf):
        def iterate(self, file_path):
            yield from ({"id": r["id"], "text": r["raw"].decode()} for r in super().iterate(file_path))

        def output_columns(self):
            return ["id", "text"]

    stage = DocumentDownloadExtractStage(
        FilesOf(source), Copies(str(tmp_path / "d")), Texts(), add_filename_column=False
    )
    run([stage], tmp_path)

    assert documents(tmp_path)[99] == {"id": "0-99", "text": "text of 0 and 99"}
    assert len(list((tmp_path / "out").glob("*.jsonl"))) == 1  # not one for every 64 records


class Says(Shouts):
    """Leaves records out for reasons, and puts some aside."""

    def extract(self, record):
        number = int(record["id"].partition("-")[2])
        if number % 10 == 1:
            return Dropped("ends_in_one", number, "not 1")
        if number % 10 == 2:
            return Quarantined("expected no 2; got one", "ends_in_two")
        return None if number % 10 == 3 else super().extract(record)


def test_records_leave_with_the_reason_the_extractor_gives(tmp_path):
    source = write_lines(tmp_path / "raw", 1, 100)
    result = run([own_source(source, tmp_path, extractor=Says())], tmp_path, rejects_path=tmp_path / "rejects")

    assert result.dropped == {"extract_says": {"ends_in_one": 10, "not_extracted": 10}}
    assert (result.read, result.written, result.quarantined) == (100, 70, 10)
    [first, *_] = quarantined(tmp_path)
    assert (first["kind"], first["document_id"], first["row"]) == ("ends_in_two", "0-2", 2)
    assert Path(tmp_path / "out/.gristmill/quarantine" / first["payload"]).read_bytes() == b"text of 0 and 2"
    files = (tmp_path / "rejects").glob("*.jsonl")
    rejects = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {r["reject_value"] for r in rejects if r["reject_reason"] == "ends_in_one"} == set(range(1, 100, 10))


class Few(Shouts):
    batch_records = 10


@pytest.mark.usefixtures("_a_file_for_each_task")
def test_an_extractor_says_how_many_records_it_gets_together(tmp_path):
    source = write_lines(tmp_path / "raw", 1, 25)
    run([own_source(source, tmp_path, extractor=Few())], tmp_path)
    lengths = [len(file.read_text().splitlines()) for file in sorted((tmp_path / "out").glob("*.jsonl"))]
    assert lengths == [10, 10, 5]


class OddLeftOut(LinesOf):
    """Does not want lines with odd numbers."""

    def iterate_part(self, part):
        for record in self.iterate(part.path):
            odd = int(record["id"].partition("-")[2]) % 2
            yield LeftOut(record, Dropped("odd", 1, "even")) if odd else record


def test_records_an_iterator_leaves_out_are_in_the_books_and_among_the_rejects(tmp_path):
    source = write_lines(tmp_path / "raw", 1, 200)
    stage = DocumentDownloadExtractStage(FilesOf(source), Copies(str(tmp_path / "d")), OddLeftOut(), Shouts())

    result = run([stage], tmp_path, rejects_path=tmp_path / "rejects")

    assert result.dropped == {"iterate_oddleftout": {"odd": 100}}
    assert (result.read, result.written) == (200, 100)
    files = sorted((tmp_path / "rejects").glob("*.jsonl"))
    rejects = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(rejects) == 100
    assert {(r["reject_reason"], r["reject_value"], r["reject_threshold"]) for r in rejects} == {("odd", 1, "even")}


def test_a_file_that_cannot_be_fetched_is_a_loss_on_record_and_the_others_are_there(tmp_path):
    source = write_lines(tmp_path / "raw", 2, 10)

    class WithOneMore(FilesOf):
        def generate_urls(self):
            return [*super().generate_urls(), str(tmp_path / "gone.txt")]

    stage = DocumentDownloadExtractStage(WithOneMore(source), Copies(str(tmp_path / "d")), LinesOf(), Shouts())
    plan = Pipeline("own", stages=[stage]).plan(HERE)
    assert len(plan.sources) == 3
    # Its errors pass by themselves, so the engine tries again after pauses: here the stage itself is asked.
    with pytest.raises(DownloadFailed, match="404 Not Found"):
        plan.groups[0].stages[0].process(plan.sources[2])


def test_a_file_that_is_there_counts_only_if_it_came_from_here(tmp_path):
    source = write_lines(tmp_path / "raw", 1, 10)
    downloader = Copies(str(tmp_path / "d"), log=str(tmp_path / "log"))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "part-0.txt").write_text("0-0 half of")  # by a tool that was killed

    for _ in range(2):
        path = downloader.download(str(source / "part-0.txt"))
        assert Path(path).read_bytes() == (source / "part-0.txt").read_bytes()
    assert (tmp_path / "log").read_text().count("\n") == 1

    class Trusting(Copies):
        trusts_existing_files = True

    (tmp_path / "d" / "part-0.txt").write_text("0-0 half of")
    assert Path(Trusting(str(tmp_path / "d")).download(str(source / "part-0.txt"))).read_text() == "0-0 half of"


def test_two_urls_of_one_file_name_are_not_taken_for_each_other(tmp_path):
    write_lines(tmp_path / "a", 1, 1)
    write_lines(tmp_path / "b", 1, 2)
    downloader = Copies(str(tmp_path / "d"))
    downloader.download(str(tmp_path / "a" / "part-0.txt"))

    with pytest.raises(DownloadFailed, match="expected a file name that no other URL has") as raised:
        downloader.download(str(tmp_path / "b" / "part-0.txt"))
    assert raised.value.is_final  # so nobody waits and tries again


@pytest.mark.parametrize("name", ["../x", "/etc/x", "", "a/../../x", "a\0b"])
def test_no_file_appears_outside_the_download_directory(tmp_path, name):
    class Elsewhere(Copies):
        def _get_output_filename(self, url):
            return name

    with pytest.raises(ConfigError, match="expected the name of a file below"):
        Elsewhere(str(tmp_path / "d")).download("anything")


def test_a_list_without_urls_and_odd_parameters_are_said_when_the_pipeline_is_planned(tmp_path):
    (tmp_path / "raw").mkdir()
    with pytest.raises(NoInputError, match="expected at least one URL"):
        Pipeline("own", stages=[own_source(tmp_path / "raw", tmp_path)]).plan(HERE)
    for options in ({"url_limit": 0}, {"record_limit": 0}, {"add_filename_column": ""}):
        with pytest.raises(ConfigError, match="expected"):
            own_source(tmp_path / "raw", tmp_path, **options)


def test_a_url_that_is_listed_twice_is_one_partition(tmp_path):
    source = write_lines(tmp_path / "raw", 2, 1)

    class Twice(FilesOf):
        def generate_urls(self):
            return super().generate_urls() * 2

    tasks = URLGenerationStage(Twice(source)).process(EmptyTask())
    assert [task.data for task in tasks] == [[str(source / "part-0.txt")], [str(source / "part-1.txt")]]


class LinesOfParts(LinesOf):
    """Knows where its files may be cut."""

    split = Lines()
    block_bytes = 1000

    def iterate_part(self, part):
        content = Path(part.path).read_bytes()
        start, end = part.part or (0, len(content))
        while start and content[start - 1 : start] != b"\n":
            start += 1
        at = start
        while at < min(end, len(content)):
            line, at = content[at : content.index(b"\n", at)], content.index(b"\n", at) + 1
            name, _, text = line.partition(b" ")
            yield {"id": name.decode(), "raw": text}


@pytest.mark.usefixtures("_a_file_for_each_task")
@pytest.mark.parametrize("downloaded", [True, False])
def test_a_file_is_read_in_parts_where_its_iterator_can(tmp_path, downloaded):
    source = write_lines(tmp_path / "raw", 2, 200)
    reading = DocumentIterateExtractStage(LinesOfParts(), Shouts())
    stages = [FilePartitioningStage(str(source), blocksize=1000), reading]
    if downloaded:
        stages = [DocumentDownloadExtractStage(FilesOf(source), Copies(str(tmp_path / "d")), LinesOfParts(), Shouts())]

    run(stages, tmp_path)

    assert len(list((tmp_path / "out").glob("*.jsonl"))) > 9
    assert [d["id"] for d in documents(tmp_path)] == [f"{f}-{n}" for f in range(2) for n in range(200)]
    plan = Pipeline("own", stages=stages).plan(HERE)
    assert "split_files" not in plan.stage_names


def test_records_leave_the_iterator_in_batches_bounded_in_number_and_bytes(tmp_path):
    class Large(DocumentIterator):
        def iterate(self, file_path):
            for number in range(130):
                yield {"raw": bytes(MAX_BATCH_BYTES // 4 if number < 8 else 1)}

        def output_columns(self):
            return ["raw"]

    [_, iterate, _] = DocumentIterateExtractStage(Large(), Shouts()).decompose()
    path = tmp_path / "any"
    path.touch()
    [task] = FilePartitioningStage(str(path)).process(EmptyTask())

    sizes = [batch.num_items for batch in iterate.process(task) if isinstance(batch, RecordBatch)]
    assert sizes == [4, 4, 64, 58]


def test_an_iterator_that_fails_half_way_loses_the_rest_of_its_file_only_and_says_so(tmp_path):
    source = write_lines(tmp_path / "raw", 2, 100)

    class Breaks(LinesOf):
        def iterate(self, file_path):
            for number, record in enumerate(super().iterate(file_path)):
                if number == 70 and "part-0" in file_path:
                    raise ValueError("cannot be read")
                yield record

    stage = DocumentDownloadExtractStage(FilesOf(source), Copies(str(tmp_path / "d")), Breaks(), Shouts())
    result = run([stage], tmp_path)

    assert [d["id"] for d in documents(tmp_path)] == [f"0-{n}" for n in range(70)] + [f"1-{n}" for n in range(100)]
    [record] = quarantined(tmp_path)
    assert "cannot be read" in record["error"]
    assert result.lost_parts == 1


def test_the_name_given_to_the_composite_is_that_of_the_extracting_stage(tmp_path):
    source = write_lines(tmp_path / "raw", 1, 3)
    whole = own_source(source, tmp_path)
    named = whole.with_({"iterate_extract_linesof_shouts": {"name": "mine"}})

    names = Pipeline("own", stages=[named]).plan(HERE).stage_names
    assert names == ("download_copies", "mine_iterate", "mine")


class OneDict(LinesOf):
    """Fills the same dict again for every record."""

    def iterate(self, file_path):
        record = {}
        for found in super().iterate(file_path):
            record.update(found)
            yield record


class Odd(LinesOf):
    """Gives one record that no other process can have, one that no file can hold, and nothing for the file `part-1`."""

    def iterate(self, file_path):
        return None if "part-1" in file_path else self._odd(file_path)

    def _odd(self, file_path):
        for number, record in enumerate(super().iterate(file_path)):
            odd = {30: (part for part in "ab"), 40: object()}
            yield record | ({"odd": odd[number]} if number in odd else {"odd": "no"})


def test_an_iterator_may_fill_the_same_dict_for_every_record(tmp_path):
    source = write_lines(tmp_path / "raw", 1, 100)
    run([DocumentDownloadExtractStage(FilesOf(source), Copies(str(tmp_path / "d")), OneDict(), Shouts())], tmp_path)
    assert [d["id"] for d in documents(tmp_path)] == [f"0-{n}" for n in range(100)]


@pytest.mark.parametrize(("extractor", "kinds"), [(Shouts(), ["not_sendable"]), (None, ["not_json", "not_sendable"])])
def test_a_record_that_cannot_go_on_costs_itself_and_a_file_that_gives_none_is_a_loss(tmp_path, extractor, kinds):
    source = write_lines(tmp_path / "raw", 2, 100)
    stage = DocumentDownloadExtractStage(FilesOf(source), Copies(str(tmp_path / "d")), Odd(), extractor)

    result = run([stage], tmp_path)

    lost = sorted((r["kind"], r["document_id"]) for r in quarantined(tmp_path) if r["num_documents"])
    names = {"not_sendable": "0-30", "not_json": "0-40"}
    assert lost == [(kind, names[kind]) for kind in kinds]
    assert [d["id"] for d in documents(tmp_path)] == [
        f"0-{n}" for n in range(100) if f"0-{n}" not in {names[kind] for kind in kinds}
    ]
    assert (result.read, result.written, result.quarantined) == (100, 100 - len(kinds), len(kinds))
    [unread] = [r for r in quarantined(tmp_path) if r["kind"] == "not_read"]
    assert (unread["source"], result.lost_parts) == (str(tmp_path / "d" / "part-1.txt"), 1)


class SaysNonsense(Shouts):
    """Leaves one record out for a reason that is none."""

    def extract(self, record):
        return Dropped(None) if record["id"] == "0-5" else super().extract(record)


def test_a_reason_that_is_no_text_is_the_error_of_its_record(tmp_path):
    source = write_lines(tmp_path / "raw", 1, 10)
    result = run([own_source(source, tmp_path, extractor=SaysNonsense())], tmp_path)

    assert (result.written, result.quarantined) == (9, 1)
    [record] = quarantined(tmp_path)
    assert record["document_id"] == "0-5"
    assert "expected a reason" in record["error"]


@pytest.mark.parametrize("urls", [None, "server/part-0.txt", 5, [1], ["a", None], ["a", ""]])
def test_a_list_of_urls_that_is_none_is_said_when_the_pipeline_is_planned(tmp_path, urls):
    class Wrong(FilesOf):
        def generate_urls(self):
            return urls

    stage = DocumentDownloadExtractStage(Wrong(tmp_path), Copies(str(tmp_path / "d")), LinesOf(), Shouts())
    with pytest.raises(ConfigError, match=r"Wrong.*: expected (a list of )?URLs"):
        Pipeline("own", stages=[stage]).plan(HERE)


@pytest.mark.parametrize("answer", [None, True, "a path", (True,)])
def test_a_downloader_that_does_not_answer_as_it_should_is_told_how(tmp_path, answer):
    class Wrong(Copies):
        def _download_to_path(self, url, path):
            return answer

    with pytest.raises(StageError, match=r"Wrong\._download_to_path: expected to return \(True, None\)"):
        Wrong(str(tmp_path / "d")).download("anything")


def test_a_downloader_that_returns_no_path_is_told_so(tmp_path):
    class Wrong(Copies):
        def download(self, url):
            return 7

    with pytest.raises(StageError, match=r"Wrong\.download: expected to return a path; got 7"):
        Wrong(str(tmp_path / "d")).download_file(RemoteFile("anything"))


class BreaksAtOnce(LinesOf):
    """Cannot read one of the files."""

    def iterate(self, file_path):
        if "part-0" in file_path:
            raise ValueError("cannot be read")
        return super().iterate(file_path)


@pytest.mark.parametrize(("files", "is_too_much"), [(3, True), (12, False)])
def test_what_share_of_files_cannot_be_read_counts_also_where_nobody_told_how_large_they_are(
    tmp_path, files, is_too_much
):
    source = write_lines(tmp_path / "raw", files, 20)
    stage = DocumentDownloadExtractStage(FilesOf(source), Copies(str(tmp_path / "d")), BreaksAtOnce(), Shouts())
    pipeline = Pipeline("own", stages=[stage, JsonlWriter(str(tmp_path / "out"))])

    if is_too_much:
        with pytest.raises(TooManyQuarantined, match=r"1 part of files \(.* B\) that could not be read"):
            pipeline.run(HERE, quiet=True)
    else:
        assert pipeline.run(HERE, quiet=True).lost_parts == 1
