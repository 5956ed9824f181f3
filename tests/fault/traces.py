"""What runs leave on disk: the part that must be identical, and the part that must not be there."""

import json
from pathlib import Path

from gristmill.cli.run_files import RunFiles
from gristmill.dashboard.report_documents import documents_sections
from gristmill.dashboard.run_data import read_run
from gristmill.metrics.observation_files import encode_observations, load_observations

SHARED_MEMORY = Path("/dev/shm")


def contents(work):
    """What a run has published below a work directory, as bytes: files, and what it recorded about documents."""
    found = {name: (work / name).read_bytes() for name in published(work)}
    return found | {"run/observations": encode_observations(load_observations(work / "run"))}


def report(work):
    """What a report says about documents: its sections as they are on the page, and all that they are made from."""
    run = read_run(RunFiles(str(work / "run")))
    return {"run/report/documents": run.documents} | {
        f"run/report/{name}": part for name, part in documents_sections(run)
    }


def published(work):
    """Every published file below a work directory: output, rejects and quarantine."""
    roots = [work / "out", work / "rejects", work / "run" / "quarantine"]
    return [str(file.relative_to(work)) for root in roots for file in sorted(root.rglob("*")) if file.is_file()]


def temporary_files(work):
    """Files and directories that only a running run may have."""
    return [
        str(path.relative_to(work))
        for path in work.rglob("*")
        if path.name.endswith(".tmp") or (path.name == "tmp" and path.parent.name == ".gristmill")
    ]


def shared_memory():
    """Named blocks of shared memory, which gristmill never makes.

    Not semaphores: the directory is the whole machine's, and every pool of `multiprocessing` has some in it.
    """
    names = SHARED_MEMORY.iterdir() if SHARED_MEMORY.is_dir() else ()
    return {path.name for path in names if path.name.startswith(("gristmill", "psm_"))}


def ledger(work):
    """The ledger's whole lines, those about line numbers left out: they repeat a commit, not its work."""
    path = work / "run" / "ledger.jsonl"
    text = path.read_text() if path.exists() else ""
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in lines if not any(file["temporary"].endswith(".numbered") for file in line["side_files"])]


def modification_times(work):
    """When each published file was last written."""
    return {name: (work / name).stat().st_mtime_ns for name in published(work)}
