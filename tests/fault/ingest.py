"""The program that reads raw sources: `python -m tests.fault.ingest KIND SOURCE WORK [--workers N]`.

KIND is wikipedia, arxiv or pdf. All it makes is below WORK: out/, rejects/, run/ (the run directory). Each source has
documents, some that are dropped, and some that go to quarantine, in a dozen partitions.
"""

import argparse
import json
from pathlib import Path

from tests.arxiv_archives import PAPER, single, tar_of
from tests.fault.curate import Labour
from tests.pdf_files import HEIGHT, WIDTH, of_text, pdf, picture
from tests.wiki_dumps import page, streams

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.download import ArxivArchiveReader, WikipediaDumpReader
from gristmill.stages.text.io import JsonlWriter
from gristmill.stages.text.pdf import PdfReader

PARTITIONS = 12
BLOCKS = {"wikipedia": 1100, "arxiv": 5000, "pdf": 2500}
READERS = {"wikipedia": WikipediaDumpReader, "arxiv": ArxivArchiveReader, "pdf": PdfReader}
KINDS = tuple(READERS)


def make_source(kind, directory):
    directory.mkdir(parents=True)
    if kind == "wikipedia":
        pages = [page(k, f"Article '''{k}''' is about [[number]] {k}. " * (k % 7 + 1)) for k in range(150)]
        pages[10] = page(10, "#REDIRECT [[x]]", redirect="x")
        pages[20] = pages[20].replace("</title>", "</broken>")
        parts = streams(pages, pages_per_stream=2)
        parts[40] = parts[40][:-10] + bytes(10)
        (directory / "enwiki-x.xml.bz2").write_bytes(b"".join(parts))
    elif kind == "arxiv":
        members = {f"0704/0704.{k:04d}.gz": single(PAPER.replace("norms", f"norms {k}")) for k in range(80)}
        members |= {"0704/0704.0020.pdf": b"%PDF", "0704/0704.0030.gz": b"\x1f\x8bbroken"}
        (directory / "arXiv_src_0704_001.tar").write_bytes(tar_of(members))
    else:
        files = {f"{k:03d}.pdf": of_text(f"The text of file {k}.") for k in range(80)}
        files |= {"010.pdf": pdf(picture(0, 0, WIDTH, HEIGHT)), "020.pdf": b"%PDF-1.4 rubbish %%EOF"}
        for name, content in files.items():
            (directory / name).write_bytes(content)
    return directory


def run(kind, source, work, *, workers=2):
    reader = READERS[kind](str(source), blocksize=BLOCKS[kind])
    stages = [reader, Labour(5), JsonlWriter(f"{work}/out")]
    paths = {"checkpoint_path": f"{work}/run", "rejects_path": f"{work}/rejects"}
    return Pipeline("ingest", stages=stages).run(LocalExecutor(num_workers=workers), max_quarantined=None, **paths)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("source", type=Path)
    parser.add_argument("work")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    print(json.dumps(run(options.kind, options.source, options.work, workers=options.workers).to_json()))


if __name__ == "__main__":
    main()
