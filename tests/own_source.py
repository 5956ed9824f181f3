"""A source as users write one: a list of files, a downloader that copies them, records of lines, and an extractor.

A line is `NAME SPACE TEXT`. Its text may say what it does to the extractor: `WAYS` of tests/fault/poison.py, or "none".
"""

import shutil
from pathlib import Path

from tests.fault.poison import WAYS

from gristmill.stages.text.download import (
    DocumentDownloader,
    DocumentDownloadExtractStage,
    DocumentExtractor,
    DocumentIterator,
    URLGenerator,
)


class FilesOf(URLGenerator):
    def __init__(self, directory):
        self.directory = str(directory)

    def generate_urls(self):
        return [str(path) for path in sorted(Path(self.directory).iterdir())]


class Copies(DocumentDownloader):
    """Notes in `log` what it is asked for."""

    def __init__(self, download_dir, verbose=False, log=None):
        super().__init__(download_dir, verbose)
        self.log = log

    def _get_output_filename(self, url):
        return url.rpartition("/")[2]

    def _download_to_path(self, url, path):
        if self.log is not None:
            with Path(self.log).open("a") as log:
                log.write(f"{url}\n")
        if not Path(url).exists():
            return False, "404 Not Found"
        shutil.copy(url, path)
        return True, None


class LinesOf(DocumentIterator):
    def iterate(self, file_path):
        with Path(file_path).open() as file:
            for line in file:
                name, _, text = line.rstrip("\n").partition(" ")
                yield {"id": name, "raw": text.encode()}

    def output_columns(self):
        return ["id", "raw"]


class Shouts(DocumentExtractor):
    batch_deadline_s = 1.5

    def extract(self, record):
        text = record.pop("raw").decode()
        if text in WAYS:
            WAYS[text]()
        return None if text == "none" else {"id": record["id"], "text": text.upper()}

    def input_columns(self):
        return ["id", "raw"]

    def output_columns(self):
        return ["id", "text"]


class ShoutsQuickly(Shouts):
    """The same in the process that reads. Every new one loads pandas in its first batch: a second on a busy machine."""

    batch_deadline_s = 5.0
    is_quick = True


def write_lines(directory, files, lines, said=None):
    """Write files of lines; `said` is (file, line) -> text."""
    directory.mkdir(parents=True)
    for file in range(files):
        texts = [(said or {}).get((file, line), f"text of {file} and {line}") for line in range(lines)]
        content = "".join(f"{file}-{line} {text}\n" for line, text in enumerate(texts))
        (directory / f"part-{file}.txt").write_text(content)
    return directory


def own_source(source, work, *, extractor=None, **options):
    downloader = Copies(str(work / "downloads"), log=str(work / "log"))
    return DocumentDownloadExtractStage(FilesOf(source), downloader, LinesOf(), extractor or Shouts(), **options)
