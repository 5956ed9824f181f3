"""How often the charset of a page is found that does not declare one: real pages in 15 charsets.

    python -m benchmarks.ingest.charsets [--record]        (on Debian: apt-get downloads 80 MB of translated manuals)

Pages of libreoffice-help and of the installation guide are written again in the charsets that were used for their
languages, without their declarations; right is what gives the page's text back.
"""

import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.record import header, record

from gristmill.stages.text.html.charset import PageDecoder

PLACE = Path(__file__).parents[1] / "out" / "charsets"
LANGUAGES = ("de", "fr", "pl", "cs", "hu", "ru", "el", "tr", "ja", "zh-cn", "zh-tw", "ko")
PACKAGES = (*(f"libreoffice-help-{language}" for language in LANGUAGES), "installation-guide-amd64")
CHARSETS = {
    "windows-1252": ("cp1252", ("de", "fr")),
    "iso-8859-1": ("latin-1", ("de", "fr")),
    "iso-8859-2": ("iso8859-2", ("pl", "cs", "hu")),
    "windows-1250": ("cp1250", ("pl", "cs", "hu")),
    "windows-1251": ("cp1251", ("ru",)),
    "koi8-r": ("koi8-r", ("ru",)),
    "iso-8859-5": ("iso8859-5", ("ru",)),
    "windows-1253": ("cp1253", ("el",)),
    "windows-1254": ("cp1254", ("tr",)),
    "shift_jis": ("cp932", ("ja",)),
    "euc-jp": ("euc-jp", ("ja",)),
    "iso-2022-jp": ("iso-2022-jp", ("ja",)),
    "gb18030": ("gb18030", ("zh-cn",)),
    "big5": ("cp950", ("zh-tw",)),
    "euc-kr": ("cp949", ("ko",)),
}
PAGES = 40  # in each charset
LEAST_FOREIGN = 20  # characters beyond ASCII in the text of a page
_DECLARATION = re.compile(r"<meta[^>]*charset[^>]*>|^\s*<\?xml[^>]*\?>", re.IGNORECASE)
_MARKUP = re.compile(r"<script.*?</script>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def fetch() -> Path:
    PLACE.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        if not (PLACE / package).is_dir():
            subprocess.run(["apt-get", "download", "-q", package], cwd=PLACE, check=True, stdout=subprocess.DEVNULL)
            [archive] = PLACE.glob(f"{package}_*.deb")
            subprocess.run(["dpkg-deb", "-x", str(archive), str(PLACE / package)], check=True)
    return PLACE


def pages_in(charset: str) -> list[tuple[str, bytes]]:
    """Pages as text and as bytes."""
    codec, languages = CHARSETS[charset]
    files: list[Path] = []
    for language in languages:
        files += sorted((PLACE / f"libreoffice-help-{language}").rglob("*.html"))
        files += sorted((PLACE / "installation-guide-amd64").rglob(f"*.{language.replace('zh-cn', 'zh_CN')}.html"))
    random.Random(7).shuffle(files)
    made: list[tuple[str, bytes]] = []
    for path in files:
        page = _DECLARATION.sub("", path.read_text(encoding="utf-8", errors="replace"))
        if sum(ord(char) > 127 for char in _MARKUP.sub("", page)) < LEAST_FOREIGN:
            continue
        data = page.encode(codec, "xmlcharrefreplace")
        made.append((data.decode(codec), data))
        if len(made) == PAGES:
            break
    return made


def others() -> dict[str, Callable[[bytes], str | None]]:
    """What else finds charsets, where it is installed."""
    import cchardet
    from charset_normalizer import from_bytes
    from resiliparse.parse.encoding import detect_encoding

    def best(data: bytes) -> str | None:
        found = from_bytes(data).best()
        return found.encoding if found else None

    return {
        "resiliparse": detect_encoding,
        "faust-cchardet": lambda data: cchardet.detect(data)["encoding"],
        "charset-normalizer (the reference's)": best,
    }


def main() -> None:
    began = header()
    fetch()
    corpus = {charset: pages_in(charset) for charset in CHARSETS}
    megabytes = sum(len(data) for pages in corpus.values() for _, data in pages) / 1e6
    decoder = PageDecoder()

    def ours(data: bytes) -> str | None:
        found = decoder.decode(data)
        return None if found is None else found.text

    def by(detect: Callable[[bytes], str | None]) -> Callable[[bytes], str | None]:
        def decoded(data: bytes) -> str | None:
            try:
                return data.decode(detect(data) or "utf-8")
            except (UnicodeDecodeError, LookupError):
                return None

        return decoded

    result: dict[str, object] = {"pages": sum(map(len, corpus.values()))}
    for name, decode in {"gristmill": ours, **{name: by(detect) for name, detect in others().items()}}.items():
        wrong: Counter[str] = Counter()
        started = time.process_time()
        for charset, pages in corpus.items():
            wrong[charset] += sum(decode(data) != text for text, data in pages)
        seconds = time.process_time() - started
        right = 1 - sum(wrong.values()) / sum(map(len, corpus.values()))
        result[name] = {"right": round(right, 4), "mb_per_cpu_s": round(megabytes / seconds, 1), "wrong": dict(+wrong)}
    record("ingest_charsets", began, result)


if __name__ == "__main__":
    main()
