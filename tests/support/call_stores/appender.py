"""A process that stores calls: `python -m tests.support.call_stores.appender PLACE COMMAND [ARGUMENT]`.

Reports to the test on its standard output: first its owner's name, then a line for every step that is durable.
"""

from __future__ import annotations

import itertools
import resource
import sys

from emberflow.durable.stores.contract import CallStore
from emberflow.errors import CallLogFailed
from tests.support.call_stores.places import Place

GROUP = 7
REPLACED = 20
LARGEST_FILE = 64 * 1024
HANDED_ON = b"handed on"


def record(number: int) -> bytes:
    # Different lengths, so that nothing matches by chance.
    return b"%d:" % number + b"x" * (number * 37 % 700)


def replacement(step: int) -> list[bytes]:
    return [b"%d/%d" % (step, number) for number in range(REPLACED)]


def append(store: CallStore, groups: int) -> None:
    for group in range(groups):
        store.append([record(number) for number in range(group * GROUP, (group + 1) * GROUP)], sync=True)
        print(group, flush=True)


def append_for_ever(store: CallStore) -> None:
    append(store, sys.maxsize)


def replace_for_ever(store: CallStore) -> None:
    for step in itertools.count():
        store.replace(replacement(step))
        print(step, flush=True)
        store.append([b"between"], sync=True)


def hand_on_for_ever(place: Place, store: CallStore) -> None:
    """Takes over what ended processes wrote: first writes it again, then removes it."""
    store.append([HANDED_ON], sync=True)
    for step in itertools.count():
        after = place.open()
        after.append([HANDED_ON], sync=True)
        print(step, flush=True)
        store.close()
        after.remove(store.owner)
        store = after


def fill_the_disk(store: CallStore) -> None:
    """No file may grow beyond a limit, as on a disk that is full."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    store.append([b"before"], sync=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, most))
    try:
        store.append([b"fits", b"y" * 2 * LARGEST_FILE, b"never"], sync=True)
        print("no error", flush=True)
    except CallLogFailed as error:
        print(type(error).__name__, flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    store.append([b"after"], sync=True)
    print("done", flush=True)


def replace_on_a_full_disk(store: CallStore) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    store.append([b"old"], sync=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, most))
    try:
        store.replace([b"new", b"y" * 2 * LARGEST_FILE])
        print("no error", flush=True)
    except CallLogFailed as error:
        print(type(error).__name__, flush=True)


def main(place: str, command: str, *arguments: str) -> None:
    store = Place.from_json(place).open()
    print(store.owner, flush=True)
    match command:
        case "append":
            append(store, int(arguments[0]))
        case "append-for-ever":
            append_for_ever(store)
        case "replace-for-ever":
            replace_for_ever(store)
        case "hand-on-for-ever":
            hand_on_for_ever(Place.from_json(place), store)
        case "hold":
            store.append([b"held"], sync=True)
            print("holding", flush=True)
            sys.stdin.read()
        case "fill-the-disk":
            fill_the_disk(store)
        case "replace-on-a-full-disk":
            replace_on_a_full_disk(store)
        case _:
            raise ValueError(command)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
