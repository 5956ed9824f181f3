"""Archives as arXiv has them, of papers written for tests."""

import gzip
import hashlib
import io
import tarfile

PAPER = r"""\documentclass{article}
\newcommand{\R}{\mathbb{R}}
\newcommand{\norm}[1]{\| #1 \|}
\title{On norms}
\begin{document}
\maketitle
\begin{abstract}We bound $\norm{x}$.\end{abstract}
\section{Introduction}
Let $x \in \R$. % a remark
\input{proof}
\bibliography{refs}
\end{document}
"""
PROOF = "\\section{Proof}\nIt is easy.\n"
TEXT = (
    "\\title{On norms}\n\n\\begin{abstract}We bound $\\| x \\|$.\\end{abstract}\n\\section{Introduction}\n"
    "Let $x \\in \\mathbb{R}$. \\section{Proof}\nIt is easy."
)


def tar_of(files, *, format=tarfile.USTAR_FORMAT, compress=False):
    """A tar of (name, content) or of TarInfo objects."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=format) as archive:
        for entry in files.items() if isinstance(files, dict) else files:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry)
                continue
            name, content = entry
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0) if compress else buffer.getvalue()


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def project(**files):
    """A paper of several files: `main="…"` is main.tex."""
    return tar_of({f"{name}.tex": text.encode() for name, text in files.items()}, compress=True)


def single(text):
    """A paper of one file."""
    return gzip.compress(text if isinstance(text, bytes) else text.encode(), mtime=0)


def manifest(archives):
    """arXiv's list of archives: name -> content."""
    files = "".join(
        f"<file><content_md5sum>x</content_md5sum><filename>src/{name}</filename><first_item>a</first_item>"
        f"<md5sum>{hashlib.md5(content).hexdigest()}</md5sum><num_items>1</num_items><size>{len(content)}</size>"
        f"<timestamp>2010-12-23</timestamp><yymm>0704</yymm></file>"
        for name, content in archives.items()
    )
    return f"<?xml version='1.0' standalone='yes'?><arXivSRC>{files}</arXivSRC>".encode()
