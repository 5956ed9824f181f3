"""Dumps as Wikimedia makes them, of pages written for tests."""

import bz2
import hashlib
import json
from xml.sax.saxutils import escape

SITE = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="{language}">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>{database}</dbname>
    <base>https://{language}.wikipedia.org/wiki/Main_Page</base>
    <namespaces>
      <namespace key="-2" case="first-letter">{media}</namespace>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Talk</namespace>
      <namespace key="6" case="first-letter">{file}</namespace>
      <namespace key="14" case="first-letter">{category}</namespace>
    </namespaces>
  </siteinfo>
"""


def site(language="en", *, media="Media", file="File", category="Category"):
    names = {"media": media, "file": file, "category": category}
    return SITE.format(language=language, database=f"{language.replace('-', '_')}wiki", **names)


def page(number, text, *, title=None, ns=0, redirect=None, model="wikitext"):
    pointer = "" if redirect is None else f'    <redirect title="{escape(redirect)}" />\n'
    content = f'<text bytes="{len(text or "")}" xml:space="preserve">{escape(text)}</text>' if text else "<text />"
    return f"""  <page>
    <title>{escape(title or f"Article {number}")}</title>
    <ns>{ns}</ns>
    <id>{number}</id>
{pointer}    <revision>
      <id>{number + 1000}</id>
      <timestamp>2024-01-01T00:00:00Z</timestamp>
      <contributor><username>somebody</username><id>7</id></contributor>
      <model>{model}</model>
      <format>text/x-wiki</format>
      {content}
      <sha1>abc</sha1>
    </revision>
  </page>
"""


def streams(pages, *, head=None, pages_per_stream=3):
    """The streams of a multistream dump, compressed: its head, some pages each, its end."""
    groups = [pages[k : k + pages_per_stream] for k in range(0, len(pages), pages_per_stream)]
    texts = [head or site(), *("".join(group) for group in groups), "</mediawiki>\n"]
    return [bz2.compress(text.encode()) for text in texts]


def write_dump(path, pages, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(streams(pages, **options)))
    return str(path)


def dump_server_files(language="en", *, dumps, finished=True, database=None):
    """What https://dumps.wikimedia.org would serve: `dumps` is date -> {file name: content}."""
    site_name = database or f"{language.replace('-', '_')}wiki"
    links = "".join(f'<a href="{date}/">{date}/</a>\n' for date in dumps)
    files = {f"{site_name}/": f'<html><a href="../">../</a>\n{links}<a href="latest/">latest/</a></html>'.encode()}
    for date, contents in dumps.items():
        done = finished if isinstance(finished, bool) else finished[date]
        about = {
            name: {
                "size": len(content),
                "sha1": hashlib.sha1(content).hexdigest(),
                "url": f"/{site_name}/{date}/{name}",
            }
            for name, content in contents.items()
        }
        job = {"status": "done" if done else "in-progress", "files": about if done else {}}
        status = {
            "version": "0.8",
            "jobs": {"articlesmultistreamdump": job, "metahistorybz2dump": {"status": "waiting"}},
        }
        files[f"{site_name}/{date}/dumpstatus.json"] = json.dumps(status).encode()
        files |= {f"{site_name}/{date}/{name}": content for name, content in contents.items()}
    return files
