"""Whatever is damaged in a compressed file, reading it ends, names the damage, and gives the same again."""

import bz2
import gzip

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.budget import SEEDS

from gristmill.errors import ReadError
from gristmill.storage.open_read import read_undamaged


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


CONTENT = b"".join(b'{"id":%d,"text":"%d"}\n' % (i, i * 7919**4) for i in range(400))
WHOLE = {".gz": gzip.compress(CONTENT), ".bz2": bz2.compress(CONTENT), ".zst": zstd(CONTENT)}
DOUBLED = {suffix: whole + whole for suffix, whole in WHOLE.items()}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("salvage")


def damaged(whole, damage, place, value):
    at = int(place * (len(whole) - 1))
    if damage == "cut":
        return whole[:at]
    if damage == "flip":
        return whole[:at] + bytes([whole[at] ^ (value % 255 + 1)]) + whole[at + 1 :]
    if damage == "zeros":
        return whole[:at] + bytes(value) + whole[at + value :]
    if damage == "dropped":
        return whole[:at] + whole[at + 1 + value :]
    return whole + bytes([value]) * (1 + at % 50)


@pytest.mark.slow
@settings(max_examples=SEEDS)
@given(
    st.sampled_from(sorted(WHOLE)),
    st.booleans(),
    st.sampled_from(["cut", "flip", "zeros", "dropped", "behind"]),
    st.floats(0, 1),
    st.integers(1, 255),
)
def test_reading_a_damaged_file_ends_and_gives_the_same_again(directory, suffix, twice, damage, place, value):
    whole = (DOUBLED if twice else WHOLE)[suffix]
    path = directory / f"a{suffix}"
    path.write_bytes(damaged(whole, damage, place, value))
    found, problem = read_undamaged(str(path))
    again, problem_again = read_undamaged(str(path))

    assert (found, str(problem)) == (again, str(problem_again))
    if problem is not None:
        assert isinstance(problem, ReadError)
        assert 0 <= problem.position <= path.stat().st_size
        assert 0 < problem.lost_bytes <= path.stat().st_size or problem.is_complete
        assert problem.position + problem.lost_bytes >= path.stat().st_size
    if damage in ("cut", "behind"):
        expected = CONTENT * (2 if twice else 1)
        assert expected.startswith(found) if damage == "cut" else found == expected
