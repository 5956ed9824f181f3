r"""The files of a paper: how their bytes are read, which of them is the paper, and what `\input{x}` means."""

import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence

TEX, STYLES, READMES = (
    (".tex", ".ltx", ".latex", ".TEX"),
    (".sty", ".cls"),
    ("00README.XXX", "00README.json", "00README"),
)
_DOCUMENT_CLASS = re.compile(r"^[^%\n]*?\\document(?:class|style)\b", re.MULTILINE)
_BEGIN = re.compile(r"^[^%\n]*?\\begin\s*\{document\}", re.MULTILINE)
_PLAIN_END = re.compile(r"^[^%\n]*?\\(?:bye|end)\b(?!\s*\{)", re.MULTILINE)
_INCLUDED = re.compile(r"\\(?:input|include|subfile)\s*\{?\s*([^\s{}\\%]+)")
_INPUT_ENCODING = re.compile(r"\\usepackage\s*\[([^]]*)\]\s*\{inputenc\}")
_USUAL_NAMES = ("main", "ms", "paper", "article", "manuscript", "root", "arxiv")

# What `inputenc` calls encodings, and what Python calls them.
_ENCODINGS = {
    "latin1": "cp1252", "latin2": "iso8859-2", "latin3": "iso8859-3", "latin4": "iso8859-4", "latin5": "iso8859-9",
    "latin9": "iso8859-15", "latin10": "iso8859-16", "ansinew": "cp1252", "cp1250": "cp1250", "cp1251": "cp1251",
    "cp1252": "cp1252", "cp1257": "cp1257", "cp437": "cp437", "cp850": "cp850", "cp852": "cp852", "cp866": "cp866",
    "applemac": "mac_roman", "koi8-r": "koi8-r", "koi8-u": "koi8-u", "maccyr": "mac_cyrillic", "utf8": "utf-8",
    "utf8x": "utf-8", "x-iso-8859-1": "cp1252",
}  # fmt: skip


def decode(content: bytes) -> str:
    """Return the text of a file: UTF-8 if it is valid, else the charset it names, else Latin-1, which anything is."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = _decode_otherwise(content)
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def _decode_otherwise(content: bytes) -> str:
    plain = content.decode("latin-1")
    said = _INPUT_ENCODING.search(plain)
    for name in said[1].split(",") if said else ():
        codec = _ENCODINGS.get(name.strip(), "utf-8")
        if codec != "utf-8":
            return content.decode(codec, "replace")
    return plain


class TexProject:
    """The texts of a paper by their names."""

    def __init__(self, texts: Mapping[str, str], styles: Mapping[str, str] | None = None) -> None:
        self.texts = dict(texts)
        self.styles = dict(styles or {})
        self._lower = {name.lower(): name for name in [*self.texts, *self.styles]}

    def roots(self) -> list[str]:
        """Return the names of the files that are papers of their own, the main one first; none if there is no TeX."""
        told = [name for name in self._told() if name in self.texts]
        included = self._included()
        whole = [name for name, text in self.texts.items() if _DOCUMENT_CLASS.search(text) and _BEGIN.search(text)]
        alone = [name for name in whole if name not in included] or whole
        if told:
            return [*told, *(name for name in sorted(alone) if name not in told and name in whole)]
        if alone:
            main, *others = sorted(alone, key=self._unlikeness)
            return [main, *sorted(others)]
        rest = [name for name in self.texts if name not in included] or list(self.texts)
        ended = [name for name in rest if _PLAIN_END.search(self.texts[name]) or _BEGIN.search(self.texts[name])]
        return [min(ended or rest, key=self._unlikeness)] if rest else []

    def _unlikeness(self, name: str) -> tuple[int, int, int, str]:
        """How little a name looks like that of the main file: directories, unusual, short text."""
        stem = posixpath.splitext(posixpath.basename(name))[0].lower()
        return name.count("/"), stem not in _USUAL_NAMES, -len(self.texts[name]), name

    def _told(self) -> Iterable[str]:
        """What one of arXiv's READMEs says the main file is."""
        for name in READMES:
            text = self.styles.get(name, "")
            if name.endswith(".json"):
                try:
                    sources = json.loads(text or "{}").get("sources", [])
                    yield from (str(each["filename"]) for each in sources if each.get("usage") == "toplevel")
                except (ValueError, AttributeError, KeyError, TypeError):
                    continue
            else:
                lines = (line.split() for line in text.splitlines())
                yield from (words[0] for words in lines if len(words) > 1 and words[1] == "toplevelfile")

    def _included(self) -> set[str]:
        found = set()
        for text in self.texts.values():
            for match in _INCLUDED.finditer(text):
                name = self.find(match[1], [""])
                if name is not None:
                    found.add(name)
        return found

    def find(self, wanted: str, directories: Sequence[str]) -> str | None:
        r"""Return the name of the file that `\input` means, looked for in these directories; None if there is none."""
        for directory in directories:
            path = posixpath.normpath(posixpath.join(directory, wanted.strip().strip('"')))
            for name in (path, *(path + suffix for suffix in TEX)):
                if name in self.texts:
                    return name
                same = self._lower.get(name.lower())
                if same in self.texts:
                    return same
        return None

    def style(self, name: str) -> str:
        """Return the text of a package that comes with the paper, "" if it does not."""
        return self.styles.get(f"{name}.sty", "")
