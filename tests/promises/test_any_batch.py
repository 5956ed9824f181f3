"""What is promised for documents holds for items of any kind: here payloads of bytes, of a class of forty lines."""

import json

import pytest
from tests.byte_batch import BAD, FATAL, decoded, expected_output, make_payloads, run

from gristmill.backends.local import LocalExecutor
from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.metrics.snapshot import balance

FILES, ITEMS = 4, 10
BAD_FILES = (0, 2)


def records(directory):
    lines = [line for file in sorted(directory.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


class AnyBatchPromises:
    """Subclass it with `make_executor`; `processes` says whether a stage may end the process it runs in."""

    processes = True

    @pytest.fixture(scope="class")
    @classmethod
    def done(cls, tmp_path_factory):
        work = tmp_path_factory.mktemp("any-batch")
        make_payloads(work / "in", FILES, ITEMS, fatal=cls.processes)
        return work, run(work / "in", work, cls.make_executor(), max_quarantined=1.0, quiet=True)

    def source(self, work, number):
        return decoded((work / "in" / f"part-{number:03d}.payloads").read_bytes())

    def test_one_bad_item_of_ten_is_quarantined_alone(self, done):
        work, result = done
        found = [record for record in records(work / "run" / "quarantine") if record["kind"] == "ValueError"]
        assert [record["document_id"] for record in found] == [f"part-{number:03d}#6" for number in BAD_FILES]
        assert [record["num_documents"] for record in found] == [1] * len(BAD_FILES)
        assert result.counts["inspect_payloads"].quarantined == len(BAD_FILES) + self.processes
        assert all(record["stage"] == "inspect_payloads" and record["row"] == 6 for record in found)
        assert [record["source"].rpartition("/")[2] for record in found] == ["part-000.payloads", "part-002.payloads"]

    def test_a_quarantined_payload_is_a_file_that_can_be_opened(self, done):
        work, _ = done
        for record in records(work / "run" / "quarantine"):
            payload = (work / "run" / "quarantine" / record["payload"]).read_bytes()
            number, row = int(record["document_id"][5:8]), int(record["document_id"].partition("#")[2])
            assert record["payload"].endswith(".bytes")
            assert payload == self.source(work, number)[row]
            assert payload.startswith((BAD, FATAL))

    def test_a_rejected_item_has_a_reason_a_value_and_its_payload(self, done):
        work, result = done
        found = records(work / "rejects")
        assert len(found) == result.counts["drop_short_payloads"].dropped["short"] == FILES
        for number, record in enumerate(found):
            payload = self.source(work, number)[3]
            assert {key: value for key, value in record.items() if key not in ("source", "payload")} == {
                "id": f"part-{number:03d}#3",
                "preview": f"{len(payload)} bytes",
                "text": "",
                "reject_stage": "drop_short_payloads",
                "reject_reason": "short",
                "reject_value": len(payload),
                "reject_threshold": "at least 8 bytes",
            }
            assert record["source"].endswith(f"part-{number:03d}.payloads")
            assert (work / "rejects" / record["payload"]).read_bytes() == payload

    def test_the_result_names_the_records_and_not_the_payloads(self, done):
        _, result = done
        assert len(result.rejects_files) == FILES
        assert all(path.endswith(".jsonl") and "/payloads/" not in path for path in result.rejects_files)
        assert all(path.endswith(".jsonl") and "/payloads/" not in path for path in result.quarantine_files)
        assert sum(error.count for error in result.errors) == result.quarantined

    def test_the_books_balance(self, done):
        _, result = done
        assert balance(list(result.counts.values())) == 0
        lost = len(BAD_FILES) + self.processes
        assert (result.read, result.quarantined, result.written) == (FILES * ITEMS, lost, FILES * (ITEMS - 1) - lost)

    def test_what_is_kept_is_written_to_the_byte(self, done):
        work, _ = done
        assert {file.name: file.read_bytes() for file in (work / "out").glob("*.payloads")} == expected_output(
            work / "in"
        )

    def test_an_item_that_ends_its_process_is_quarantined_alone(self, done):
        if not self.processes:
            pytest.skip("in this process nothing may be ended")
        work, _ = done
        [record] = [record for record in records(work / "run" / "quarantine") if record["kind"] == "WorkerLost"]
        assert (record["document_id"], record["num_documents"]) == ("part-001#7", 1)


class TestInOneProcess(AnyBatchPromises):
    processes = False

    @staticmethod
    def make_executor():
        return LocalExecutor(num_workers=0)


@pytest.mark.slow
class TestInProcesses(AnyBatchPromises):
    @staticmethod
    def make_executor():
        return LocalExecutor(num_workers=2)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.cluster
@pytest.mark.xdist_group("ray")
class TestOnRay(AnyBatchPromises):
    @staticmethod
    def make_executor():
        return RayActorPoolExecutor()
