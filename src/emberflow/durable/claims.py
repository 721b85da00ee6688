"""Which processes run which actions, according to the records read so far.

Several processes may claim one action: one that died while running it, and one that started it again. In whatever
order their records are read, only the dead process's claim is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable


class Claims:
    """Can be read by one thread while another one writes."""

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
        """Drops all claims of a process."""
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
