"""Looking at a file takes memory for what is looked at, not for the file or for a row group of it."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

NUM_ROWS, TEXT_BYTES = 24_000, 4_000  # 96 MB, in Parquet one row group: read whole it would fail the limit
MOST_MB = 70  # beyond what the imports take; it is about 30 and 50

SCRIPT = """
import sys
from gristmill.cli.inspect import take_little_memory
take_little_memory()
from gristmill.inspection import selection
from gristmill.inspection.dataset import Dataset
from gristmill.inspection.statistics import measure

def peak():
    with open("/proc/self/status") as status:
        return int(status.read().partition("VmHWM:")[2].split()[0]) / 1024

before = peak()
with Dataset(sys.argv[1]) as dataset:
    place = dataset.start
    for _ in range(30):
        place = dataset.page(place, 20)[-1].end
    dataset.count_rows()
    assert dataset.page(dataset.at_row(20_000), 20)[0].row.values["n"] == 19_999
    assert dataset.page(dataset.last(), 1)[0].row.values["n"] == 23_999
    measure(dataset, dataset.columns(), seed=0)
    wanted = dataset.wanted("n % 5000 == 4999 and len(text) > 10")
    assert len(selection.first(dataset, wanted, 100, dataset.start).rows) == 4
    assert len(selection.first(dataset, dataset.wanted(text="needle"), 100, dataset.start).rows) == 1
print(peak() - before)
"""


def texts():
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz      ", np.uint8)
    drawn = letters[np.random.default_rng(1).integers(0, 32, NUM_ROWS * TEXT_BYTES, np.uint8)].tobytes().decode()
    made = [drawn[start : start + TEXT_BYTES] for start in range(0, len(drawn), TEXT_BYTES)]
    made[23_500] += "needle"
    return made


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the greatest memory of a process from /proc")
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_paging_jumping_searching_and_measuring_stay_small(tmp_path, form):
    path = tmp_path / f"a.{form}"
    if form == "jsonl":
        path.write_text("".join(f'{{"n": {n}, "text": "{text}"}}\n' for n, text in enumerate(texts())))
    else:
        table = pa.table({"n": range(NUM_ROWS), "text": texts()})
        pq.write_table(table, path, row_group_size=NUM_ROWS, compression="none", use_dictionary=False)
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < MOST_MB
