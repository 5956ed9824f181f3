"""Ask datatrove what it makes of texts. Run by the Python of datatrove's own environment, never imported.

Reads {"text": ..., "verdicts": true or false} from each line of standard input; writes for each the words, the number
of sentences and, if verdicts are asked for, of every filter that gives an answer the reason it drops the text for (null
if it keeps it) and the text it leaves if it is another one.
"""

import json
import sys
import warnings

from datatrove.data import Document  # type: ignore[import-not-found]
from datatrove.pipeline.filters import (  # type: ignore[import-not-found]
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)
from datatrove.utils.text import split_into_sentences, split_into_words  # type: ignore[import-not-found]


def main() -> None:
    warnings.simplefilter("ignore")  # of numpy, where a text has no words
    filters = {
        "GopherQuality": GopherQualityFilter(),
        "GopherRepetition": GopherRepetitionFilter(),
        "C4Quality": C4QualityFilter(),
        "C4Quality without end marks": C4QualityFilter(filter_no_terminal_punct=False),
        "FineWebQuality": FineWebQualityFilter(),
        "FineWebQuality of the paper": FineWebQualityFilter(char_duplicates_ratio=0.1),
    }
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        text = asked["text"]
        verdicts = {name: judge(each, text) for name, each in filters.items() if asked["verdicts"]}
        answer = {
            "words": split_into_words(text),
            "sentences": len(split_into_sentences(text)),
            "verdicts": {name: verdict for name, verdict in verdicts.items() if verdict is not None},
        }
        print(json.dumps(answer, ensure_ascii=False))


def judge(each: object, text: str) -> list[str | None] | None:
    """Return [reason], [None] or [None, another text]; None where the filter divides by zero."""
    document = Document(text=text, id="")
    try:
        answer = each.filter(document)  # type: ignore[attr-defined]
    except ZeroDivisionError:
        return None
    if answer is not True:
        return [answer[1]]
    return [None] if document.text == text else [None, document.text]


if __name__ == "__main__":
    main()
