"""NeMo Curator's side of WARC to text: its own iterator and extractor, with an algorithm's name or its default.

python benchmarks/ingest/warc_with_nemo_curator.py FILE [ALGORITHM]     (in an environment of its own)
"""

import json
import sys
import time

from loguru import logger
from nemo_curator.stages.text.download.common_crawl.extract import CommonCrawlHTMLExtractor
from nemo_curator.stages.text.download.common_crawl.warc_iterator import CommonCrawlWarcIterator

WARM_UP = 5


def main() -> None:
    logger.remove()
    path, *algorithm = sys.argv[1:]
    extractor = CommonCrawlHTMLExtractor(*algorithm)
    for number, each in enumerate(CommonCrawlWarcIterator().iterate(path)):
        extractor.extract(each)
        if number == WARM_UP:
            break
    started = time.process_time()
    made = [extractor.extract(each) for each in CommonCrawlWarcIterator().iterate(path)]
    seconds = time.process_time() - started
    kept = [each for each in made if each is not None]
    print(
        json.dumps(
            {"cpu_s": seconds, "pages": len(made), "kept": len(kept), "chars": sum(len(k["text"]) for k in kept)}
        )
    )


if __name__ == "__main__":
    main()
