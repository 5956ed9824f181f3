"""Write tests/data/arxiv_texts.jsonl: TeX of our own, and the text that NeMo Curator's extractor makes of it.

Run it with the interpreter of an environment that has NeMo Curator (`make bench-peers`), from the repository:

    benchmarks/out/venvs/nemo-curator/bin/python tools/arxiv_fixture.py
"""

import json
from pathlib import Path

TARGET = Path(__file__).parents[1] / "tests" / "data" / "arxiv_texts.jsonl"

PAPERS: list[list[str]] = [
    ["\\documentclass{article}\n\\begin{document}\nBefore.\n\\section{One}\nText.\n\\end{document}\n"],
    ["No section at all.\n"],
    ["\\section*{Starred}\nText\n\\subsection[short]{Long}\nMore\n"],
    ["\\chapter{C}\na\n\\part{P}\nb\n\\subsubsection{S}\nc\n"],
    ["\\paragraph{Only a paragraph}\ntext\n"],
    ["\\paragraph{P}\\subparagraph{Q}\ntext\n"],
    ["\\section{A}\n% a line\nText % not this\nmore\\% stays\n100%\n  % indented\n"],
    ["\\section{A}\nText.\n\\appendix\n\\section{B}\nGone.\n"],
    ["\\section{A}\nText.\n\\begin{thebibliography}{9}\\bibitem{x} Y\\end{thebibliography}\n"],
    ["\\section{A}\nText.\n\\bibliography{refs} behind\nmore\n"],
    ["\\section{A}\nText.\n\\begin{references}\nx\n"],
    ["\\newcommand{\\R}{\\mathbb{R}}\n\\def\\al{\\alpha}\n\\section{A}\nIn $\\R$, $\\al+\\R^n$, \\Rx, \\al1 \\al.\n"],
    ["\\newcommand*{\\ie}{i.e.}\n\\section{A}\n\\ie{} this \\ie\\ that \\ie\n"],
    ["\\newcommand{\\v}[1]{\\mathbf{#1}}\n\\section{A}\n$\\v{x}$\n"],
    ["\\newcommand{\\two}{a\nb}\n\\section{A}\n\\two.\n"],
    ["\\newcommand{\\e}{é}\n\\section{A}\nCaf\\e .\n"],
    ["\\newcommand{\\e}{é}\n\\section{A}\nNot used.\n"],
    ["\\section{A}\nOne.\n", "\\section{B}\nTwo.\n"],
    ["\\section{A}\nOne.\n", "nothing here\n", "\\section{C}\nThree.\n"],
    ["\\newcommand{\\x}{X}\n", "\\section{B}\n\\x .\n"],
    ["\\section{\n}\ntext", "\\section{A"],
    ["\\section{A}\n\\newcommand{\\a}{\\b}\n\\newcommand{\\b}{\\a}\n\\a \\b\n"],
    ["\\section{A}\n\\def\\n{\\1}\n\\n .\n"],
    ["\\section{A}\n\\newcommand{\\q}{x\\\\y}\n\\q.\n"],
    ["", ""],
    [""],
]


def main() -> None:
    """Write the file."""
    from nemo_curator.stages.text.download.arxiv.extract import ArxivExtractor  # type: ignore[import-not-found]

    made = [(files, ArxivExtractor().extract({"id": "", "source_id": "", "content": files})) for files in PAPERS]
    rows = [{"files": files, "text": None if found is None else found["text"]} for files, found in made]
    TARGET.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    main()
