"""What is kept comes back, once, whatever happens to the words that stand for it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.stages.text.html.math_nodes import written_out
from gristmill.stages.text.html.placeholders import Placeholders

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)


@given(page=texts, pieces=st.lists(st.tuples(texts, st.booleans()), max_size=20), between=texts)
def test_all_pieces_return_in_their_places(page, pieces, between):
    placeholders = Placeholders.for_page(page + between)
    words = [placeholders.keep(piece, block=block) for piece, block in pieces]
    text = between.join(words)

    restored = "".join(placeholders.restore([text]))
    assert placeholders.num_lost == 0
    assert restored.replace("\n", "") == between.join(piece for piece, _ in pieces).replace("\n", "")


@pytest.mark.parametrize("number", [0, 15, 16, 255, 256, 70_000])
def test_a_word_ends_where_another_could_begin(number):
    placeholders = Placeholders("qzx", [(str(k), False) for k in range(number + 2)])
    glued = placeholders.word(number) + placeholders.word(number + 1)

    assert placeholders.restore([glued]) == [f"{number}{number + 1}"]


def test_a_prefix_that_the_page_has_is_not_taken():
    everything = "qzx qxz zqj jqz xqj vqx qvj jvq qzxaaq"
    placeholders = Placeholders.for_page(everything)

    assert placeholders.prefix not in everything
    assert placeholders.restore([everything]) == [everything]


def test_a_piece_that_an_extractor_doubles_comes_out_once_and_a_lost_one_is_counted():
    placeholders = Placeholders.for_page("")
    first, second = placeholders.keep("$a$"), placeholders.keep("$b$")
    assert second

    assert placeholders.restore([f"so {first} is", f"again {first}", "end"]) == ["so $a$ is", "again ", "end"]
    assert placeholders.num_lost == 1


def test_a_block_has_a_weight_and_lines_of_its_own():
    placeholders = Placeholders.for_page("")
    code = "x = 1\n\ny = 2\n" * 40
    words = placeholders.keep(code, block=True)

    assert 200 < len(words) <= 240
    assert placeholders.restore([words]) == [code]
    placeholders = Placeholders.for_page("")
    assert placeholders.restore([f"before {placeholders.keep('x', block=True)} after"]) == ["before \nx\n after"]


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        (r"so \(x\) and \[y\] are", [r"\(x\)", r"\[y\]"]),
        ("$$a$$ $b$ $$c$$", ["$$a$$", "$$c$$"]),
        (
            r"\begin{align}a \\ \begin{matrix}b\end{matrix}\end{align}!",
            [r"\begin{align}a \\ \begin{matrix}b\end{matrix}\end{align}"],
        ),
        (r"\begin{document}x\end{document}", []),
        ("[tex]a[/tex] [math]b[/tex]", ["[tex]a[/tex]"]),
        (r"\(never closed", []),
        (r"\(\)", []),
        ("$$" + "x" * 6_000 + "$$ $$y$$", ["$$ $$"]),
    ],
)
def test_formulas_that_are_written_out_are_found(text, formulas):
    assert [text[start:stop] for start, stop in written_out(text)] == formulas


@pytest.mark.parametrize("unit", [r"\(", "$$", r"\begin{align}", "[tex]", r"\[ \("])
def test_the_time_to_find_them_grows_with_the_text_alone(unit):
    started = time.process_time()
    list(written_out(unit * (1_000_000 // len(unit))))

    assert time.process_time() - started < 20  # by trying every end for every beginning it would be hours
