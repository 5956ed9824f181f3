"""`gristmill inspect --web` in a real browser: rows are there, and a document is text and nothing else."""

import json
import shutil
import subprocess
import sys

import pytest

GRISTMILL = [sys.executable, "-c", "from gristmill.cli.main import main; main()"]
HOSTILE = "<img src=x onerror=document.title='acted'> \u202e </script><script>document.title='acted'</script>"


@pytest.mark.e2e
@pytest.mark.heavy
@pytest.mark.slow
def test_a_browser_shows_the_rows_as_text(tmp_path):
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "expected chromium on PATH; tools/system_programs.sh installs it"
    rows = [{"id": f"d{n}", "text": f"text {n} {HOSTILE}"} for n in range(50)]
    (tmp_path / "a.jsonl").write_text("{broken\n" + "".join(json.dumps(row) + "\n" for row in rows))
    command = [*GRISTMILL, "inspect", "a.jsonl", "--web"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip()
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
            shown = subprocess.run(
                [program, *flags, f"--user-data-dir={tmp_path / 'profile'}", address],
                capture_output=True, text=True, check=True, timeout=120,
            ).stdout  # fmt: skip
        finally:
            process.terminate()

    assert "51 rows" in shown
    assert "damaged: not JSON" in shown
    assert shown.count("<tr ") == 20
    assert "text 18 &lt;img src=x onerror=" in shown
    assert "⟨U+202E⟩" in shown
    assert "<title>gristmill inspect</title>" in shown
