"""PDFs made for tests: texts at places, pictures, and damage."""

import zlib

WIDTH, HEIGHT = 600, 800
PICTURE = (
    b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>"
)


def text_at(x, y, text, size=10):
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"BT /F1 {size} Tf {x} {y} Td ({escaped}) Tj ET\n".encode("latin-1")


def lines_at(x, y, lines, *, size=10, leading=12):
    """Lines below one another, the first with its base at y."""
    return b"".join(text_at(x, y - leading * number, line, size) for number, line in enumerate(lines))


def picture(x, y, width, height):
    return f"q {width} 0 0 {height} {x} {y} cm /P Do Q\n".encode()


def pdf(*pages, unicode_map=None):
    """A PDF of pages, each a content stream. `unicode_map` says what the letter A is said to mean."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    to_unicode = b""
    if unicode_map is not None:
        cmap = "begincmap 1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfchar "
        cmap += f"<41> <{unicode_map}> endbfchar endcmap"
        to_unicode = b" /ToUnicode 5 0 R"
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica" + to_unicode + b" >>")
    objects.append(PICTURE + b"\nstream\n\x80\nendstream")
    stream = (cmap if unicode_map is not None else "").encode()
    objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    kids = []
    for content in pages:
        packed = zlib.compress(content)
        objects.append(b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed))
        number = len(objects)
        resources = b"<< /Font << /F1 3 0 R >> /XObject << /P 4 0 R >> >>"
        box = f"[0 0 {WIDTH} {HEIGHT}]".encode()
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox %s /Resources %s /Contents %d 0 R >>" % (box, resources, number)
        )
        kids.append(len(objects))
    references = " ".join(f"{kid} 0 R" for kid in kids).encode()
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (references, len(kids))
    return _written(objects)


def _written(objects):
    pieces, places, start = [b"%PDF-1.4\n"], [], 9
    for number, content in enumerate(objects, start=1):
        places.append(start)
        pieces.append(b"%d 0 obj\n%s\nendobj\n" % (number, content))
        start += len(pieces[-1])
    made = b"".join(pieces)
    made += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    made += b"".join(b"%010d 00000 n \n" % place for place in places)
    return made + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)


def that_hangs(*, levels=10):
    """A page of forms that each draw the next ten times: pdfium does not come back from the text of it.

    What stands before that in each takes time, and no memory: it is not memory that ends the reading.
    """
    fonts = b"/Font << /F1 3 0 R >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [5 0 R 7 0 R] /Count 2 >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        _stream(text_at(50, 700, "The first page.")),
        _page(4, fonts),
        _stream(b"/X Do"),
        _page(6, b"/XObject << /X 8 0 R >>"),
    ]
    for number in range(8, 8 + levels):
        resources = b"/XObject << /X %d 0 R >>" % (number + 1)
        objects.append(_stream(b"q Q\n" * 50_000 + b"/X Do\n" * 10, _form(resources)))
    objects.append(_stream(text_at(1, 1, "ha"), _form(fonts)))
    return _written(objects)


def that_unpacks_to(num_bytes):
    """A page whose content is so many blanks."""
    packer = zlib.compressobj(1)
    piece = b" " * (1 << 20)
    packed = b"".join(packer.compress(piece) for _ in range(num_bytes >> 20)) + packer.flush()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        _page(4, b""),
        _stream(packed, b"/Filter /FlateDecode"),
    ]
    return _written(objects)


def with_password():
    """A PDF that opens with a password only: what is said of the password fits none."""
    made = of_text("Secret.")
    locked = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00> <00>]" % (
        b"41" * 32,
        b"42" * 32,
    )
    return made.replace(b"/Root 1 0 R", b"/Root 1 0 R " + locked)


def _stream(content, about=b""):
    return b"<< %s /Length %d >>\nstream\n%s\nendstream" % (about, len(content), content)


def _page(contents, resources):
    about = b"/Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d]" % (WIDTH, HEIGHT)
    return b"<< %s /Resources << %s >> /Contents %d 0 R >>" % (about, resources, contents)


def _form(resources):
    return b"/Type /XObject /Subtype /Form /BBox [0 0 %d %d] /Resources << %s >>" % (WIDTH, HEIGHT, resources)


def of_text(*paragraphs):
    """A PDF of one page with some lines."""
    return pdf(lines_at(50, 700, paragraphs))
