"""Which of Spark's files is damaged, according to Hadoop's checksums next to them."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from zlib import crc32

import pytest

pytest.importorskip("pyspark", reason="B1 on Spark: what runs in Spark's driver")

from emberflow.engines.spark.driver.damaged_files import spark_damage
from emberflow.engines.spark.driver.job import SparkJob
from emberflow.errors import CorruptData, EngineFailed, StepFailed
from emberflow.events.fence import NO_FENCE
from emberflow.plan.job_contract import JobConfig


def write(path: Path, data: bytes) -> None:
    """Like Hadoop's local file system."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    sums = [struct.pack(">I", crc32(data[at : at + 512])) for at in range(0, len(data), 512)]
    path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + struct.pack(">I", 512) + b"".join(sums))


@pytest.mark.parametrize(
    "name", ["metadata", "offsets/6", "commits/5", "state/0/1/6.changelog", "state/0/1/1.zip"]
)
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "delete"])
def test_the_damaged_file_is_named(name: str, damage: str, tmp_path: Path) -> None:
    for other in (
        "metadata",
        "offsets/5",
        "offsets/6",
        "commits/5",
        "state/0/1/6.changelog",
        "state/0/1/1.zip",
    ):
        write(tmp_path / other, os.urandom(1_300))
    assert spark_damage(tmp_path) is None
    path = tmp_path / name
    data = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        flipped = data[:700] + bytes([data[700] ^ 1]) + data[701:]
        path.write_bytes({"flip": flipped, "cut": data[:650], "empty": b""}[damage])
    found = spark_damage(tmp_path)
    assert found is not None
    assert found.message == f"{path} is corrupted"
    assert found.cause
    assert "from a backup" in found.way_out


def test_files_without_checksums_are_not_checked(tmp_path: Path) -> None:
    write(tmp_path / "offsets" / "0", b"whole")
    (tmp_path / "offsets" / "1").write_bytes(b"of another file system")
    (tmp_path / "offsets" / ".2.crc").write_bytes(b"?")
    (tmp_path / "offsets" / "2").write_bytes(b"with a damaged checksum")
    assert spark_damage(tmp_path) is None
    assert spark_damage(tmp_path / "nowhere") is None


def failed_job(home: Path) -> SparkJob:
    """Without a query: only the description of its failure."""
    job = object.__new__(SparkJob)
    job.config = JobConfig(parallelism=1, max_parallelism=8)
    job._home, job._fence = home, NO_FENCE
    return job


def test_a_job_that_sparks_own_error_ended_names_the_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "spark" / "state" / "0" / "1" / "1.zip"
    write(path, b"state of a key group")
    error = RuntimeError("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.")
    assert isinstance(failed_job(tmp_path).explain_failure(error), EngineFailed)
    path.write_bytes(b"stata of a key group")
    explained = failed_job(tmp_path).explain_failure(error)
    assert isinstance(explained, CorruptData)
    assert explained.message == f"{path} is corrupted"
    # Errors raised by the program's own code are not about files.
    assert isinstance(failed_job(tmp_path).explain_failure(StepFailed("step 'a' failed")), StepFailed)
