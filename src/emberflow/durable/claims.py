"""Which processes run which actions, as far as a call log has read.

Several may claim one action: a process that died in the middle of it, and one that began it again. Whichever is read
last, only the dead one's claim goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable


class Claims:
    """May be read by a thread while another one writes."""

    def __init__(self) -> None:
        self._owners: dict[str, set[str]] = {}

    def add(self, action: str, owner: str) -> None:
        self._owners.setdefault(action, set()).add(owner)

    def remove(self, action: str, owner: str) -> None:
        owners = self._owners.get(action)
        if owners is not None:
            owners.discard(owner)
            if not owners:
                del self._owners[action]

    def drop(self, owner: str) -> None:
        """All that the process claimed."""
        for action in self.of(owner):
            self.remove(action, owner)

    def replace(self, owner: str, actions: Iterable[str]) -> None:
        self.drop(owner)
        for action in actions:
            self.add(action, owner)

    def owners(self, action: str) -> tuple[str, ...]:
        return tuple(self._owners.get(action, ()))

    def of(self, owner: str) -> list[str]:
        return [action for action, owners in [*self._owners.items()] if owner in owners]
