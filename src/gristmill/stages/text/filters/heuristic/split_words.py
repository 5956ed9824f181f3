"""`split_words`: what a word is, for every filter that counts words."""

from collections.abc import Callable
from functools import cache

from gristmill.errors import require

_SEGMENTERS = {"zh": "jieba", "ja": "fugashi"}  # the extra is called as the language


def is_segmented(lang: str) -> bool:
    """Whether the words of a language are found with a dictionary: there is no white space between them."""
    return lang in _SEGMENTERS


def check_segmenter(lang: str) -> None:
    """Raise MissingDependency if the words of this language cannot be found here: better now than in every worker."""
    if is_segmented(lang):
        require(_SEGMENTERS[lang], extra=lang)


def split_words(text: str, lang: str) -> list[str]:
    """Split at Unicode white space; Chinese ("zh") and Japanese ("ja") are segmented."""
    if is_segmented(lang):
        return [word for word in _segmenter(lang)(text.strip()) if not word.isspace()]
    return text.split()  # equal to text.strip().split()


@cache  # a segmenter loads a dictionary, which takes about a second: once in each worker
def _segmenter(lang: str) -> Callable[[str], list[str]]:
    library = require(_SEGMENTERS[lang], extra=lang)
    if lang == "zh":
        library.setLogLevel("WARNING")  # it tells every worker's loading of the dictionary otherwise
        return lambda text: list(library.cut(text))
    tagger = library.Tagger("-Owakati")
    return lambda text: str(tagger.parse(text)).split()
