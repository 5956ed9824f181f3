"""`HistogramFilter`: a cheap kind of language identification.

After NLLB (Costa-jussà et al., 2022, section 5.1.3): a text whose characters are rare in trusted text of its supposed
language is probably in another one.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError
from gristmill.stages.text.judging.document_filter import Bounds, DocumentFilter

# Where the histograms published with M2M-100 have their files, below the directory they were unpacked in.
_PUBLISHED = "histograms/checkpoint/edunov/cc60_multilingual/clean_hists"


@dataclass
class HistogramFilter(DocumentFilter[int]):
    """Keep texts of which a share above `threshold` are characters of the language: they score 1, others 0.

    `cache_dir` holds a file for each language, named after it, or the unpacked histograms published with M2M-100
    (fairseq, `m2m_100/histograms.tar.gz`). Each line of a file begins with a character, most frequent first; the line
    that begins with `threshold_char` ends the list. Nothing is downloaded.
    """

    measure: ClassVar[str] = "characters are the language's"
    score_type: ClassVar[pa.DataType] = pa.int64()

    lang: str = "en"
    threshold: float = 0.8
    cache_dir: str = ""
    threshold_char: str = "]"
    characters: str = field(default="", init=False, repr=False)  # a field, so that another file is another filter

    def __post_init__(self) -> None:
        places = [Path(self.cache_dir) / self.lang, Path(self.cache_dir) / _PUBLISHED / self.lang]
        file = next((place for place in places if place.is_file()), None)
        if file is None:
            raise ConfigError(
                f"HistogramFilter: expected cache_dir to hold a histogram of {self.lang!r}; "
                f"there is neither {places[0]} nor {places[1]}"
            )
        found: dict[str, None] = {}
        for line in file.read_text(encoding="utf-8").split("\n"):
            if line.startswith(self.threshold_char):
                break
            found |= dict.fromkeys(line[:1])
        self.characters = "".join(found)
        if not self.characters:
            raise ConfigError(f"HistogramFilter: expected characters in {file}; got none")

    def score_document(self, text: str) -> int:
        runs = re.findall(f"[{re.escape(self.characters)}]+", text.strip())  # re caches the compiled pattern
        return int(bool(text) and sum(map(len, runs)) / len(text) > self.threshold)

    def bounds(self) -> Bounds:
        return 1, None
