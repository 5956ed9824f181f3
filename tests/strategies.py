"""Hypothesis strategies shared by tests: JSON documents as people really write them, and as nobody should."""

import json

from hypothesis import strategies as st

# A fixed alphabet: building the table of all Unicode characters takes Hypothesis seconds on a fresh checkout.
letters = st.text(st.sampled_from('ab0 é\n\t\r"\\/\x00\x7f\u2028€𝄞{}[]:,'), max_size=12)
texts = letters | st.sampled_from(["", "00123", "2024-01-01", 'é\n\t"\\', "\\n", "\\\\", "a\x00b", "\u2028", "𝄞"])
numbers = (
    st.integers(-(2**70), 2**70)
    | st.integers(-100, 100)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, -0.0, 2**63, 2**53 + 1, 1e300])
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["id", "text", "n", "a b", 'quo"te', "back\\slash", "ключ", ""]) | letters
documents = st.dictionaries(names, values, max_size=5)


@st.composite
def json_lines(draw):
    """One JSON object in one of its many spellings, with its newline."""
    document = draw(documents)
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", " : ")]))
    text = json.dumps(document, ensure_ascii=draw(st.booleans()), separators=separators)
    return text.encode() + draw(st.sampled_from([b"\n", b"\n", b"\r\n", b" \n"]))


line_lists = st.lists(json_lines(), max_size=6)
