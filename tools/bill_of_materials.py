"""What an environment is made of: packages with versions and licences, as a table and as CycloneDX JSON.

    python tools/bill_of_materials.py PYTHON DIRECTORY

PYTHON is the interpreter of the environment, in which gristmill is installed and nothing it does not need. Written are
`licences.md` and `gristmill-<version>.cdx.json` (CycloneDX 1.5). What has no licence in its metadata is listed as
unknown, and the command fails: somebody has to look.
"""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

OWN = "gristmill"
UNKNOWN = "unknown"
NOT_NEEDED = {"pip", "setuptools", "wheel"}  # what a new environment has

# Asked in the environment, which has nothing of ours but the package.
_ASK = """
import json
from importlib.metadata import distributions

def said(metadata):
    names = [line.split(" :: ")[-1] for line in metadata.get_all("Classifier") or [] if line.startswith("License ::")]
    text = (metadata.get("License") or "").strip()
    short = text if text and len(text) < 60 and "\\n" not in text else ""
    return metadata.get("License-Expression") or short or ", ".join(name for name in names if name != "OSI Approved")

def described(found):
    metadata = found.metadata
    return [metadata["Name"], found.version, said(metadata), metadata.get("Summary") or ""]

print(json.dumps(list(map(described, distributions()))))
"""
# Packages whose metadata names no licence, and where it is stated.
STATED_ELSEWHERE: dict[str, str] = {}


class Package(NamedTuple):
    """An installed package, as its metadata describes it."""

    name: str
    version: str
    licence: str
    summary: str

    @property
    def purl(self) -> str:
        """Its address in the way of package URLs."""
        return f"pkg:pypi/{self.name.lower().replace('_', '-')}@{self.version}"


def installed(python: str) -> list[Package]:
    """Return what is installed beside an interpreter, by name."""
    told = subprocess.run([python, "-c", _ASK], check=True, capture_output=True, text=True).stdout
    found = [
        Package(name, version, licence or STATED_ELSEWHERE.get(name.lower(), UNKNOWN), summary)
        for name, version, licence, summary in json.loads(told)
        if name.lower() not in NOT_NEEDED
    ]
    return sorted(found, key=lambda package: package.name.lower())


def cyclonedx(packages: list[Package]) -> dict[str, object]:
    """Return a CycloneDX document: the same packages give the same document in the same second of SOURCE_DATE_EPOCH."""
    [own] = [package for package in packages if package.name == OWN]
    made_at = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")), UTC)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": made_at.isoformat().replace("+00:00", "Z"),
            "component": _component(own, "application"),
        },
        "components": [_component(package, "library") for package in packages if package is not own],
        "dependencies": [{"ref": own.purl, "dependsOn": [p.purl for p in packages if p is not own]}],
    }


def _component(package: Package, kind: str) -> dict[str, object]:
    return {
        "type": kind,
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "description": package.summary,
        "licenses": [{"license": {"name": package.licence}}],
        "purl": package.purl,
    }


def table(packages: list[Package]) -> str:
    """Return the licences for people."""
    rows = [f"| {package.name} | {package.version} | {package.licence} |" for package in packages]
    return "\n".join(["| package | version | licence |", "|---|---|---|", *rows]) + "\n"


def write_bill(python: str, directory: Path) -> None:
    """Write both files, and print the licences."""
    packages = installed(python)
    [version] = [package.version for package in packages if package.name == OWN]
    (directory / "licences.md").write_text(table(packages), encoding="utf-8")
    bill = directory / f"{OWN}-{version}.cdx.json"
    bill.write_text(json.dumps(cyclonedx(packages), indent=1) + "\n", encoding="utf-8")
    unknown = [package.name for package in packages if package.licence == UNKNOWN]
    print(table(packages))
    if unknown:
        raise SystemExit(f"expected a licence in the metadata of every package; got none for {', '.join(unknown)}")


if __name__ == "__main__":
    write_bill(sys.argv[1], Path(sys.argv[2]))
