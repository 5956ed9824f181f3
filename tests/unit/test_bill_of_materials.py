"""The bill of materials names every package once, and is the same for the same packages."""

import sys

import pytest
from tools.bill_of_materials import Package, cyclonedx, installed, table

PACKAGES = [
    Package("gristmill", "0.1.0", "Apache-2.0", "Streams raw data"),
    Package("msgspec", "0.22.0", "BSD-3-Clause", "A fast serialization library"),
    Package("Typing_Extensions", "4.1", "PSF-2.0", ""),
]


def test_it_is_a_bill_of_the_package_and_what_it_needs(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    bill = cyclonedx(PACKAGES)

    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/gristmill@0.1.0"
    assert bill["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    assert [part["purl"] for part in bill["components"]] == [
        *("pkg:pypi/msgspec@0.22.0", "pkg:pypi/typing-extensions@4.1"),
    ]
    assert bill["dependencies"][0]["dependsOn"] == [part["bom-ref"] for part in bill["components"]]


def test_licences_are_a_table():
    assert table(PACKAGES).splitlines()[3] == "| msgspec | 0.22.0 | BSD-3-Clause |"


@pytest.mark.slow
def test_packages_of_an_environment_are_found_with_their_licences():
    found = {package.name: package for package in installed(sys.executable)}

    assert found["gristmill"].licence == "Apache-2.0"
    assert "BSD" in found["numpy"].licence
