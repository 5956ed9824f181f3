"""Texts that bring out the differences between rules: fragments of prose, lists, markup and odd characters."""

from hypothesis import strategies as st

WORDS = ["the", "of", "and", "that", "cat", "Dog", "x", "don't", "U.S.", "5km", "http://a.example", "lorem", "ipsum"]
MARKS = ["#", "...", "…", "-", "•", "{", "}", "[1]", "[edit]"]
PHRASES = [
    "privacy policy",
    "use cooKies",
    "Lorem Ipsum",
    "[citation needed]",
    "[٣]",
    "JavaScript",
    "Yes. No! Why?",
    '"Quoted."',
    "。",
]
GAPS = [
    " ",
    " ",
    " ",
    "\n",
    "\n\n",
    "\n\n\n",
    ".\n",
    ". ",
    "  ",
    "\t",
    "\r\n",
    "\r",
    "\x0b",
    "\u2028",
    "\x85",
    "",
    "...\n",
]

pieces = st.one_of(st.sampled_from(WORDS + MARKS + PHRASES), st.text(max_size=4))
prose = st.lists(st.tuples(pieces, st.sampled_from(GAPS)), max_size=40).map(
    lambda parts: "".join(a + b for a, b in parts)
)
repeated = st.tuples(prose, st.integers(1, 12)).map(lambda pair: pair[0] * pair[1])
documents = st.one_of(prose, repeated, st.text())

ODD = {
    "empty": "",
    "blank": " \n \t\n",
    "newlines": "\n" * 1000,
    "nul": "a\x00b \x00\n\x00",
    "right to left": "שלום עולם, זה טקסט. مرحبا بالعالم؟ نعم.\n" * 5,
    "combining": "e\u0301a\u0300 \u0301 z\u0335\u0336\u0337\n" * 20,
    "one long line": "word " * 20_000,
    "one long word": "x" * 100_000,
    "many lines": "a\n" * 50_000,
    "astral": "🙂 𝔘𝔫𝔦 😀😀 \U0010ffff " * 20,
}
