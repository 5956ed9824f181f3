"""`split_words`: what a word is, for every filter that counts words."""

from collections.abc import Callable
from functools import cache

from gristmill.errors import require


def is_segmented(lang: str) -> bool:
    """Whether the words of a language are found with a dictionary: there is no white space between them."""
    return lang in ("zh", "ja")


def split_words(text: str, lang: str) -> list[str]:
    """Split at Unicode white space; Chinese ("zh") and Japanese ("ja") are segmented."""
    if is_segmented(lang):
        return [word for word in _segmenter(lang)(text.strip()) if not word.isspace()]
    return text.split()  # equal to text.strip().split()


@cache  # a segmenter loads a dictionary, which takes about a second: once in each worker
def _segmenter(lang: str) -> Callable[[str], list[str]]:
    if lang == "zh":
        jieba = require("jieba", extra="zh")
        return lambda text: list(jieba.cut(text))
    tagger = require("fugashi", extra="ja").Tagger("-Owakati")
    return lambda text: str(tagger.parse(text)).split()
