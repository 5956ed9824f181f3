"""A small Common Crawl on this machine: lists of crawls and files, WARC and WET files with pages in English."""

import gzip
import json
import random

from tests.warc_files import packed, record, response

from gristmill.testing.file_server import MisbehavingFileServer

SENTENCES = (
    "The river was still high after the rain of the night before, and nobody had crossed it since.",
    "She had been told that the library would be closed, but the door was open and the lights were on.",
    "It is not known who built the first of these bridges, or why they were left to fall down.",
    "When the bread has cooled for an hour it can be cut, and it will keep for several days.",
    "There were more people in the square than he had seen there in all the years of his life.",
    "A good map shows what is there, and a better one also shows what is not there any more.",
)


def html(number):
    rng = random.Random(number)
    paragraphs = "".join(f"<p>{' '.join(rng.choices(SENTENCES, k=6))}</p>" for _ in range(3))
    return f"<html><head><title>{number}</title></head><body><h1>Page {number}</h1>{paragraphs}</body></html>".encode()


def warc(name, pages):
    members = [packed(record("warcinfo", b"", seed=name))]
    for number in pages:
        uri = f"https://example.org/{number}"
        members.append(packed(record("request", b"GET / HTTP/1.1\r\n\r\n", uri, seed=name)))
        members.append(packed(response(uri, html(number), seed=name)))
        members.append(packed(record("metadata", b"fetchTimeMs: 1\r\n", uri, seed=name)))
    return b"".join(members)


def wet(name, pages):
    rows = [record("conversion", f"Text {n}".encode(), f"https://example.org/{n}", seed=name) for n in pages]
    return b"".join(map(packed, rows))


def crawl_server(num_files=2, num_pages=40, crawls=("CC-MAIN-2025-21", "CC-MAIN-2025-18"), **options):
    """Page numbers run through all files of all crawls, in the order of the lists."""
    files = {"collinfo.json": json.dumps([{"id": name} for name in crawls]).encode()}
    first = 0
    for prefix in (*crawls, "CC-NEWS/2025/05"):
        listed = {"warc": [], "wet": []}
        for number in range(num_files):
            pages = range(first, first + num_pages)
            first += num_pages
            folder = f"crawl-data/{prefix}/segments/1.{number}"
            name = f"{prefix.replace('/', '-')}-{number:05d}"
            for kind, make, ending in (("warc", warc, "warc.gz"), ("wet", wet, "warc.wet.gz")):
                path = f"{folder}/{kind}/{name}.{ending}"
                files[path] = make(name, pages)
                listed[kind].append(path)
        for kind, paths in listed.items():
            files[f"crawl-data/{prefix}/{kind}.paths.gz"] = gzip.compress("\n".join([*paths, ""]).encode())
    return MisbehavingFileServer(files, **options)


# The indexes of a crawl, made of its WARC files.


def index_rows(server, crawl):
    """A row of the index for each page of a crawl, sorted by key."""
    from gristmill.stages.text.download.common_crawl.surt import path_key
    from gristmill.stages.text.download.common_crawl.warc_records import records_in
    from gristmill.storage.gzip_members import Members

    rows = []
    for path, content in server.files.items():
        if f"/{crawl}/segments/" not in path or "/warc/" not in path:
            continue
        for member in Members(lambda a, b, data=content: data[a:b], len(content), [b"WARC/1."], 1 << 24).part(
            0, len(content)
        ):
            for found in records_in(member.content, member.start):
                if found.kind == "response":
                    number = int(found.url.rpartition("/")[2])
                    rows.append(
                        {
                            "url_surtkey": path_key(found.url),
                            "url": found.url,
                            "url_host_name": "example.org",
                            "url_host_tld": "org",
                            "fetch_time": f"2025051204{number % 60:02d}40",
                            "fetch_status": 200,
                            "content_mime_detected": "text/html",
                            "content_languages": "eng" if number % 2 else "deu,eng",
                            "warc_filename": path,
                            "warc_record_offset": member.start,
                            "warc_record_length": member.end - member.start,
                        }
                    )
    return sorted(rows, key=lambda row: (row["url_surtkey"], row["fetch_time"]))


def add_columnar_index(server, crawl, rows_a_group=10, num_files=2):
    """Put the Parquet files of a crawl's index, and their list, on the server."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = index_rows(server, crawl)
    size = -(-len(rows) // num_files)
    paths = []
    for number in range(num_files):
        buffer = io.BytesIO()
        table = pa.Table.from_pylist(rows[number * size : (number + 1) * size])
        pq.write_table(table, buffer, row_group_size=rows_a_group)
        path = f"cc-index/table/cc-main/warc/crawl={crawl}/subset=warc/part-{number:05d}.c000.gz.parquet"
        server.files[path] = buffer.getvalue()
        paths.append(path)
    others = [path.replace("subset=warc", "subset=robotstxt") for path in paths]
    listed = "\n".join([*others, *paths, ""]).encode()
    server.files[f"crawl-data/{crawl}/cc-index-table.paths.gz"] = gzip.compress(listed)
    return rows


def add_cdx_index(server, crawl, lines_a_block=7):
    """Put `cluster.idx` and one file of blocks on the server."""
    rows = index_rows(server, crawl)
    blocks, cluster, offset = [], [], 0
    for start in range(0, len(rows), lines_a_block):
        lines = []
        for row in rows[start : start + lines_a_block]:
            told = {
                "url": row["url"],
                "mime": "text/html",
                "mime-detected": "text/html",
                "status": "200",
                "digest": "X",
                "length": str(row["warc_record_length"]),
                "offset": str(row["warc_record_offset"]),
                "filename": row["warc_filename"],
                "languages": row["content_languages"],
            }
            lines.append(f"{row['url_surtkey']} {row['fetch_time']} {json.dumps(told)}\n")
        packed_block = gzip.compress("".join(lines).encode(), mtime=0)
        first = rows[start]
        entry = (
            f"{first['url_surtkey']} {first['fetch_time']}\tcdx-00000.gz\t{offset}\t{len(packed_block)}\t{len(cluster)}"
        )
        cluster.append(entry)
        blocks.append(packed_block)
        offset += len(packed_block)
    folder = f"cc-index/collections/{crawl}/indexes"
    server.files[f"{folder}/cluster.idx"] = "\n".join([*cluster, ""]).encode()
    server.files[f"{folder}/cdx-00000.gz"] = b"".join(blocks)
    return rows
