"""The steps of a commit at which a job can be killed: which operation on which file. Plain data, for plan and shim.

A step is a regular expression over "<what> <file below the job's disk>", where what is one of open, read, write, sync, rename,
remove and commit (of SQLite). Spark's own steps happen in its JVM, without a shim: the tormentor polls for their files.
"""

from __future__ import annotations

SINK_STEPS = {
    "staged": r"^open out/.*/inprogress[^/]*/",
    "prepared": r"^sync out/.*/inprogress[^/]*/",
    "decision drafted": r"^open out/\.emberflow/[^/]+/[^/]+$",
    "decided": r"^rename out/\.emberflow/.*\.json$",
    "made visible": r"^rename out/[^_]",
    "done": r"^rename out/\.emberflow/.*\.done$",
    "ledger cleaned": r"^remove out/\.emberflow/[^/]+/[^/]+$",
}
CALL_STEPS = {
    "call appended": r"^write checkpoints/calls/",
    "call recorded": r"^sync checkpoints/calls/",
}
FILE_STEPS = {
    "checkpoint drafted": r"^open checkpoints/local/",
    "checkpoint synced": r"^sync checkpoints/local",
    "checkpoint written": r"^rename checkpoints/local/",
    "checkpoint removed": r"^remove checkpoints/local/",
}
SQLITE_STEPS = {"transaction": r"^commit "}
START_STEPS = {
    "owner": r"^(open|write|sync|rename) checkpoints/owners/",
    "sink taken over": r"^(open|rename) out/\.emberflow/[^/]+/ledger",
    "lease taken": r"^rename checkpoints/calls/",
    "calls removed": r"^remove checkpoints/calls/",
    "manifest": r"^(open|rename) checkpoints/[^/]+$",
    "first reads": r"^read checkpoints/",
}
"""Executed when a job starts."""
ANYTHING = {"anything": r"^(open|write|sync|rename|remove|commit) "}
QUESTION_STEPS = {"question": r"^(open|rename|remove) checkpoints/approvals/"}
WATCHED = {"spark offsets": "spark/offsets", "spark commit": "spark/commits"}
"""Folders of Spark in which a new file means that the step was executed."""

STEPS = {
    **SINK_STEPS,
    **CALL_STEPS,
    **FILE_STEPS,
    **SQLITE_STEPS,
    **QUESTION_STEPS,
    **ANYTHING,
    **START_STEPS,
}
RECOVERY_STEPS = (*START_STEPS, "anything", "call appended", "decided", "done")


def steps_of(engine: str, backend: str) -> list[str]:
    """The steps that a job of this kind executes."""
    common = [*SINK_STEPS, *CALL_STEPS, *QUESTION_STEPS, *ANYTHING, *START_STEPS]
    if engine != "local":
        return [*common, *SINK_STEPS, *WATCHED]
    return [*common, *(SQLITE_STEPS if backend == "sqlite" else FILE_STEPS)]
