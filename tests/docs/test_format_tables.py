"""docs/stored-formats.md: its tables come from the code. `python -m tests.docs.test_format_tables` writes them."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from emberflow.events.stored_types import stored_types

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "stored-formats.md"


class Format(NamedTuple):
    """One format. `version` names the constant that is written, as `module:NAME`; a text without a colon is shown."""

    name: str
    version: str
    reads: str
    written_by: str
    tests: tuple[str, ...]


_NUMBER = re.compile(r"^_?(FORMAT|VERSION|FORMAT_VERSION|SCHEMA_VERSION|NEWEST) = \d+$", re.MULTILINE)
GOLDEN = "tests/golden/test_golden.py"
JOBS = "tests/golden/test_stored_job.py::test_a_stored_job_continues"
DIRECTORY = "tests/golden/test_directory_files.py"
FORMATS = [
    Format(
        "checkpoint directory (`emberflow.json`)",
        "emberflow.engines.job.manifest:FORMAT_VERSION",
        "1",
        "engines/job/manifest.py:open_directory",
        (JOBS,),
    ),
    Format(
        "local checkpoint file",
        "emberflow.engines.local.checkpointing.checkpoints:_VERSION",
        "",
        "engines/local/checkpointing/checkpoints.py:FileCheckpoints.save",
        (JOBS, f"{GOLDEN}::test_a_checkpoint_file"),
    ),
    Format(
        "rows of `state.db`",
        "with checksums",
        "rows without",
        "engines/local/checkpointing/sealed_rows.py:SealedRows",
        (
            JOBS,
            "tests/golden/test_large_state.py::test_a_local_database",
            "tests/unit/engines/local/test_store_damage.py::test_a_database_of_the_previous_version_is_read",
        ),
    ),
    Format(
        "key group on Spark",
        "emberflow.operators.group_layout:VERSION",
        "1, 2",
        "operators/group_layout.py:GroupLayout.commit",
        (
            "tests/golden/test_group_state.py::test_a_stored_group_continues",
            "tests/golden/test_state_forms.py::test_a_stored_group_continues_with_states_of_the_same_form",
            "tests/golden/test_large_state.py::test_a_key_group",
            "tests/golden/test_spark_forms.py::test_the_state_of_a_key_group",
        ),
    ),
    Format(
        "an agent's run in a key's entry",
        "emberflow.operators.agents.agent_run:_WITH_GUARDS",
        "1",
        "operators/agents/agent_run.py:AgentRun.save",
        (
            "tests/golden/test_agent_state.py::test_a_stored_run_in_flight_continues",
            "tests/golden/test_guard_state.py::test_guards_in_flight_continue",
            "tests/golden/test_run_origins.py::test_stored_origins_are_kept",
        ),
    ),
    Format(
        "part of the call log",
        "emberflow.durable.stores.framing:NEWEST",
        "2",
        "durable/stores/framing.py:as_part",
        (JOBS, "tests/unit/durable/test_log_damage.py::test_a_part_of_the_previous_version_is_read"),
    ),
    Format(
        "call log in Postgres",
        "emberflow.durable.stores.postgres_connection:SCHEMA_VERSION",
        "",
        "durable/stores/postgres_connection.py:connect",
        (
            "tests/contracts/test_call_store_failures.py::TestPostgres::test_tables_of_another_format_are_rejected",
        ),
    ),
    Format(
        "object of the call log in a bucket",
        "emberflow.durable.stores.object_store:_VERSION",
        "1",
        "durable/stores/object_store.py:ObjectCallStore",
        (
            "tests/contracts/test_call_store_failures.py::TestDisks::"
            "test_an_object_of_the_previous_version_may_be_truncated_but_not_corrupted",
        ),
    ),
    Format(
        "location of the call log (`call-store.json`)",
        "emberflow.engines.job.savepoint_calls:_FORMAT",
        "",
        "engines/job/savepoint_calls.py:note_place",
        (f"{DIRECTORY}::test_where_the_calls_are",),
    ),
    Format(
        "decisions of a micro-batch",
        "emberflow.engines.spark.worker.batch_record:_VERSION",
        "",
        "engines/spark/worker/batch_record.py:TaskRecord.store",
        (f"{DIRECTORY}::test_the_decisions_of_a_batch",),
    ),
    Format(
        "names of stages and exchanges (`wiring.json`)",
        "emberflow.savepoints.wiring:_FORMAT",
        "1",
        "savepoints/wiring.py:write_wiring",
        (f"{DIRECTORY}::test_the_wiring_of_a_job",),
    ),
    Format(
        "newest checkpoint (`latest.json`)",
        "emberflow.engines.local.checkpointing.latest_checkpoint:_FORMAT",
        "",
        "engines/local/checkpointing/latest_checkpoint.py:write_latest",
        (f"{DIRECTORY}::test_the_newest_checkpoint_and_the_marks_of_sinks",),
    ),
    Format(
        "marks of sinks on Spark (`sinks.json`)",
        "emberflow.engines.spark.driver.sink_marks:_FORMAT",
        "",
        "engines/spark/driver/sink_marks.py:note_output",
        (f"{DIRECTORY}::test_the_newest_checkpoint_and_the_marks_of_sinks",),
    ),
    Format(
        "packet",
        "emberflow.events.packets:_WITH_ORIGINS",
        "1, 2",
        "events/packets.py:encode_packet",
        (f"{GOLDEN}::test_a_packet", f"{GOLDEN}::test_a_packet_whose_records_name_their_origin"),
    ),
    Format(
        "value",
        "a byte that names the codec",
        "",
        "events/codecs.py:encode",
        (f"{GOLDEN}::test_state_bytes",),
    ),
    Format(
        "identity of a key, derived uid",
        "128 bits",
        "ids of 32 bits",
        "events/identity.py:identity_of",
        (f"{GOLDEN}::test_identities", f"{GOLDEN}::test_state_with_uids_of_the_first_format"),
    ),
    Format(
        "key group of a key",
        "fixed",
        "",
        "events/key_groups.py:stable_hash",
        (f"{GOLDEN}::test_hashes_of_keys",),
    ),
    Format(
        "where sources begin on Spark",
        "emberflow.engines.spark.driver.source_starts:FORMAT_VERSION",
        "1",
        "engines/spark/driver/source_starts.py:source_starts",
        ("tests/unit/engines/spark/driver/test_source_starts.py::test_version_1_is_read",),
    ),
    Format(
        "source offset on Spark",
        "JSON",
        "offsets without a start",
        "engines/spark/driver/offsets.py:OffsetPlanner",
        (
            "tests/golden/test_spark_forms.py::test_offsets_of_a_source",
            "tests/golden/test_spark_forms.py::test_offsets_without_the_start_of_their_batch",
        ),
    ),
    Format(
        "plan",
        "emberflow.plan.graphs.stream_graph:FORMAT_VERSION",
        "1",
        "plan/graphs/stream_graph.py:StreamGraph.to_json",
        (f"{GOLDEN}::test_a_plan", f"{GOLDEN}::test_a_plan_of_the_first_form"),
    ),
    Format(
        "agent plan",
        "emberflow.plan.agents.agent_plan:VERSION",
        "",
        "plan/agents/agent_plan.py:AgentPlan.to_json",
        ("tests/golden/test_agent_plan.py::test_a_stored_plan_equals_the_current_plan",),
    ),
    Format(
        "ledger of a file sink",
        "emberflow.connectors.files.commit_ledger:VERSION",
        "1",
        "connectors/files/commit_ledger.py:CommitLedger.commit",
        (
            "tests/unit/connectors/files/test_file_sink.py::test_the_format_of_the_ledger_has_not_changed",
            "tests/unit/operators/agents/test_run_identities.py::test_a_ledger_of_an_earlier_version_keeps_its_folder",
        ),
    ),
    Format(
        "dead letter",
        "emberflow.dead_letters.letter_files:VERSION",
        "1",
        "dead_letters/letter_files.py:LetterEncoder",
        ("tests/unit/dead_letters/test_letter_damage.py::test_the_first_versions_files_are_read",),
    ),
    Format(
        "question and answer",
        "emberflow.approvals.question_files:VERSION",
        "1",
        "approvals/asking.py:FileApprovals",
        ("tests/unit/approvals/test_question_damage.py::test_the_first_versions_files_are_read",),
    ),
    Format(
        "savepoint",
        "emberflow.savepoints.form:FORMAT_VERSION",
        "1, 2, 3",
        "savepoints/writer.py:SavepointWriter",
        ("tests/golden/test_savepoint_form.py::test_a_stored_savepoint_is_read",),
    ),
    Format(
        "event log",
        "emberflow.observability.plain_line:VERSION",
        "",
        "observability/event_json.py:EventJson",
        (
            "tests/unit/observability/test_event_reader.py::test_lines_of_format_1_are_still_understood_and_written",
        ),
    ),
    Format(
        "recorded answers of chat models (cassette)",
        "emberflow.testing.cassette:VERSION",
        "",
        "testing/cassette.py:entry_line",
        ("tests/unit/testing/test_recorded_model.py::test_the_golden_cassette_is_written_the_same_way",),
    ),
]


def version_of(item: Format) -> str:
    module, found, name = item.version.partition(":")
    return str(getattr(importlib.import_module(module), name)) if found else item.version


def format_table() -> str:
    lines = ["| format | version | also reads | written by | checked by |", "|---|---|---|---|---|"]
    for item in FORMATS:
        tests = ", ".join(f"`{test}`" for test in item.tests)
        lines.append(f"| {item.name} | {version_of(item)} | {item.reads} | `{item.written_by}` | {tests} |")
    return "\n".join(lines)


def type_table() -> str:
    lines = ["| record | version | fields |", "|---|---|---|"]
    for name, known in stored_types().items():
        kind: Any = known.kind
        fields = (
            [f"`{field.name}`" for field in dataclasses.fields(kind)]
            if dataclasses.is_dataclass(kind)
            else []
        )
        lines.append(
            f"| `{name}` | {known.version} | {', '.join(fields) or (kind.__doc__ or '').splitlines()[0]} |"
        )
    return "\n".join(lines)


def test_every_format_names_a_test() -> None:
    assert [item.name for item in FORMATS if not item.tests] == []


def test_every_version_is_in_the_table() -> None:
    """A module of ours with the number of a format."""
    listed = {item.version.partition(":")[0] for item in FORMATS}
    found = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in (ROOT / "src").rglob("*.py")
        if _NUMBER.search(path.read_text(encoding="utf-8"))
    }
    assert found - listed == set()


TABLES = {"formats": format_table, "records": type_table}


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_match_the_code(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0]
    assert shown.strip() == TABLES[name](), "python -m tests.docs.test_format_tables writes it"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    for table, made in TABLES.items():
        before, start, rest = text.partition(f"<!-- {table} -->")
        end = f"<!-- end of {table} -->"
        text = f"{before}{start}\n{made()}\n{end}{rest.partition(end)[2]}"
    PAGE.write_text(text, encoding="utf-8")
