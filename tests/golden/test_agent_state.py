"""What an agent stores about a key with a run in flight, in its first format: sequence number, memory with pages, the run."""

from __future__ import annotations

from pathlib import Path

from emberflow.events.batch import MAX_WATERMARK, Batch
from emberflow.events.codecs import decode, encode
from emberflow.events.identity import identity_of
from emberflow.operators.scope import SavedScope
from emberflow.state.entry import Entry
from tests.support.stored_agent import Pages, new_scope, opened

FILE = Path(__file__).parent / "v1" / "agent_entry.bin"
UPDATE = False


def in_flight() -> bytes:
    """One input done, one in flight, one queued behind it."""
    pages = Pages({})
    scope = new_scope(pages)
    operator, calls, _ = opened(scope)
    operator.receive(0, (0, 0), Batch([1], None, None, ["ann"]), None)
    calls.finish()
    operator.receive(0, (0, 0), Batch([2, 3], None, None, ["ann", "ann"]), None)
    operator.before_save()
    scope.entry("ann").write_pages(pages)
    data = encode((dict(scope.entry("ann")), scope.saved(), pages.pages))
    operator.close()
    return data


def test_a_stored_run_in_flight_continues() -> None:
    if UPDATE and not FILE.exists():
        FILE.write_bytes(in_flight())
    entry, saved, stored = decode(FILE.read_bytes())
    assert isinstance(saved, SavedScope)
    scope = new_scope(Pages(stored), saved=saved, entries={"ann": Entry(entry)})
    operator, calls, outputs = opened(scope)
    operator.resume()
    calls.finish()
    operator.receive(0, (0, 0), Batch([]), MAX_WATERMARK)
    operator.close()
    # The stored event keeps the id that the first version gave it; the next input has one of 128 bits.
    assert outputs == [
        ("ann", ("e72072736e9e074c-2.0", 2, [1, 2], 3_000)),
        ("ann", (f"{identity_of('ann', 'u')}-3.0", 3, [1, 2, 3], 3_000)),
        MAX_WATERMARK,
    ]
    assert set(scope.entry("ann")) == {"seq", "memory", "memory_size"}


def test_the_format_has_not_changed() -> None:
    """What is written now reads the same; a change of the format needs a new version and a reader for this one."""
    stored, now = decode(FILE.read_bytes()), decode(in_flight())
    assert stored[0].keys() == now[0].keys()
    assert stored[0]["run"][0] == now[0]["run"][0]
    assert dict(stored[0]["memory"]) == dict(now[0]["memory"])
