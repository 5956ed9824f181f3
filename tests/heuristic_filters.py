"""Every heuristic filter that ships, with parameters worth testing, and texts that are hard for them."""

from gristmill.stages.text.filters import heuristic as h

SUBSTRINGS = [
    h.SubstringFilter(text, where) for text in ("", "a b", "é", "\n") for where in ("prefix", "suffix", "any")
]
NGRAMS = [
    *(h.RepeatingTopNGramsFilter(n) for n in range(1, 6)),
    *(h.RepeatingDuplicateNGramsFilter(n) for n in range(1, 12)),
]
OTHERS = [
    getattr(h, name)()
    for name in h.__all__
    if name not in ("SubstringFilter", "RepeatingTopNGramsFilter", "RepeatingDuplicateNGramsFilter")
]
FILTERS = [
    *OTHERS,
    h.CommonEnglishWordsFilter(stop_at_false=False),
    h.CommonEnglishWordsFilter(min_num_common_words=0),
    *NGRAMS,
    *SUBSTRINGS,
]

# Pieces whose neighbours decide what they count as: put together at random they make every kind of edge.
PIECES = [
    *("the", "of", "be", "that", "with\x00", "word", "words", "longer-than-eight", "ß", "é", "e\u0301", "Ж", "日本語"),
    *("𝒜", "١٢", "12", "#", "##", "#a#", "•", "  • x", "⦿", ".", '"', "!'", "⟨", "⟩", "{", "]", "\b", "\x00", "\x7f"),
    *(" ", " ", "  ", "\n", "\n\n", "\n\n\n", "\t", "\r\n", "\x0b", "\x1c", "\x1f", "\x85", "\xa0", "\u1680"),
    *("\u2003", "\u2028", "\u3000", "...", "[...]", "…", "(...)", "[…]", "-»", "read more", "READ MORE.."),
    *("http://", "https://a.b/c%20d%zz", "http://porn", "s://", "%41", "http", ":", "terms of use", "lorem IPSUM"),
    *("Use of cooKies", "use coo\u212aies", "privacy & cookies policy", "polİcy", "reuse cookies"),
]

HARD_TEXTS = {
    "empty": "",
    "newlines": "\n" * 1000,
    "one_newline": "\n",
    "spaces": " \t\u3000\u2029 ",
    "nul": "a\x00b \x00 the\x00 \x00\n\x00",
    "right_to_left": "שלום עולם\nمرحبا بالعالم. مرحبا بالعالم.\n\u202eabc\u202c",
    "combining": "e\u0301\u0302\u0303 a\u0308 \u0301\n\u0b95\u0bbf \u0e01\u0e33 " + "z\u0335" * 100,
    "replaced_surrogates": "\ufffd\ufffd x \ufffd",
    "emoji": "👩‍👩‍👧‍👦 👍🏽 🇩🇪 \U0010ffff",
    "one_word": "a" * 5000,
    "one_word_again": "again " * 3000,
    "no_break_spaces": "a\xa0b\xa0" * 500,
}
