"""Documents to files and back, the plain way: with `json`, not with the code under test."""

import json


def write_documents(path, documents):
    """Write one file; makes its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")


def read_documents(directory):
    """All documents of a directory's files, in the order of their names."""
    files = sorted(path for path in directory.glob("*.jsonl") if path.is_file())
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def contents(directory):
    """The visible files below a directory, by relative name."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(directory).parts)
    }
