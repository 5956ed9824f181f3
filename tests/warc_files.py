"""WARC files for tests, written from the format's description: records of every type, odd ones, and damage."""

import gzip
import random
import uuid

WORDS = [f"w{number:03d}" for number in range(400)]


def record(kind, block, uri=None, *, seed=0, version="1.0", **headers):
    """One record, not compressed."""
    identifier = uuid.UUID(int=random.Random(f"{seed}{uri}{kind}").getrandbits(128))
    given = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:uuid:{identifier}>",
        "WARC-Date": "2025-05-12T04:26:40Z",
        **({"WARC-Target-URI": uri} if uri else {}),
        **{name.replace("_", "-"): value for name, value in headers.items()},
        "Content-Length": str(len(block)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value is not None)
    return f"WARC/{version}\r\n{head}\r\n".encode() + block + b"\r\n\r\n"


def response(uri, body, *, status="200 OK", content_type="text/html", seed=0, extra=None, **http):
    lines = {"Content-Type": content_type, **{name.replace("_", "-"): value for name, value in http.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    block = f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body
    return record(
        "response", block, uri, seed=seed, Content_Type="application/http; msgtype=response",
        WARC_Identified_Payload_Type=content_type, **(extra or {}),
    )  # fmt: skip


def page(number, rng):
    words = " ".join(rng.choices(WORDS, k=rng.randint(1, 300)))
    return f"<html><body><p>Page {number}</p><p>{words}</p></body></html>".encode()


def packed(raw, level=6):
    """A record as a gzip member."""
    return gzip.compress(raw, level, mtime=0)


def crawl(num_pages, *, seed=0, host="example.org"):
    """The members of a small crawl: warcinfo, and for each page request, response and metadata."""
    rng = random.Random(seed)
    members = [packed(record("warcinfo", b"software: tests\r\n", seed=seed, Content_Type="application/warc-fields"))]
    for number in range(num_pages):
        uri = f"https://{host}/{number}"
        members.append(packed(record("request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", uri, seed=seed)))
        members.append(packed(response(uri, page(number, rng), seed=seed)))
        members.append(packed(record("metadata", b"charset-detected: UTF-8\r\n", uri, seed=seed)))
    return members


def noise(size, seed=0):
    """Bytes that nobody can compress."""
    return random.Random(seed).randbytes(size)
