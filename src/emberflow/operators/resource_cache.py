"""An agent's resources in one process: made when first asked for, shared by all tasks, closed with the last one."""

from __future__ import annotations

import logging
import threading
from difflib import get_close_matches
from typing import Any

from emberflow.errors import EmberflowError, ResourceFailed, describe_cause
from emberflow.plan.agent_plan import AgentPlan
from emberflow.plan.resource_providers import ResourceProvider
from emberflow.plan.resources import ResourceType, Secret

_log = logging.getLogger("emberflow.agents")


class ResourceCache:
    """Actions may ask from several threads at once."""

    def __init__(self, plan: AgentPlan) -> None:
        self._plan = plan
        self._lock = threading.RLock()
        self._made: dict[tuple[ResourceType, str], Any] = {}
        self._making: list[str] = []
        self._secrets: set[str] = set()
        self.users = 0

    def get_resource(self, name: str, type: ResourceType) -> Any:
        found = self._made.get((type, name))
        if found is not None:
            return found
        with self._lock:
            found = self._made.get((type, name))
            return self._make(name, type) if found is None else found

    def _make(self, name: str, kind: ResourceType) -> Any:
        provider = self._plan.resource_providers.get(kind, {}).get(name)
        if provider is None:
            raise self._unknown(name, kind)
        label = f"{kind.value} {name!r}"
        if label in self._making:
            circle = " -> ".join([*self._making[self._making.index(label) :], label])
            raise ResourceFailed(
                f"agent {self._plan.name!r}: resources need each other in a circle: {circle}"
            )
        self._making.append(label)
        try:
            made = self._create(provider)
            self._made[(kind, name)] = made
            return made
        except EmberflowError:
            raise
        except Exception as error:
            cause = describe_cause(error)
            shown = self._masked(cause)
            raise ResourceFailed(
                f"agent {self._plan.name!r}: the {label} could not be made",
                cause=shown,
                way_out="check the arguments of its descriptor, and that what it connects to is reachable",
                # A stack trace would show the secret that the cause hides.
            ) from (error if shown == cause else None)
        finally:
            self._making.pop()

    def _create(self, provider: ResourceProvider) -> Any:
        descriptor = provider.descriptor
        if descriptor is None:
            made = provider.instance
        else:
            made = descriptor.clazz(
                **{name: self._revealed(value) for name, value in descriptor.arguments.items()}
            )
        if hasattr(made, "open"):
            made.resource_context = self
            try:
                made.open()
            except BaseException:
                # Nobody will ever see it: what it holds already is let go here.
                _close(provider.type, provider.name, made)
                raise
        return made

    def _revealed(self, value: Any) -> Any:
        """The argument with secrets in place of their references, also inside dictionaries and lists."""
        if isinstance(value, Secret):
            found = value.resolve()
            if found:
                self._secrets.add(found)
            return found
        if value.__class__ is dict:
            return {name: self._revealed(item) for name, item in value.items()}
        if value.__class__ is list:
            return [self._revealed(item) for item in value]
        return tuple(self._revealed(item) for item in value) if value.__class__ is tuple else value

    def hide_secrets(self, error: EmberflowError) -> bool:
        """Masks secrets that resources were made with; whether there were any in the error."""
        message, cause = self._masked(error.message), self._masked(error.cause)
        if (message, cause) == (error.message, error.cause):
            return False
        error.message, error.cause = message, cause
        return True

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def _unknown(self, name: str, kind: ResourceType) -> ResourceFailed:
        named = self._plan.resource_providers.get(kind, {})
        near = get_close_matches(name, named, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        known = ", ".join(map(repr, named)) or "none"
        elsewhere = [other.value for other, items in self._plan.resource_providers.items() if name in items]
        cause = (
            f"there is a {elsewhere[0]} of that name" if elsewhere else f"its {kind.value} resources: {known}"
        )
        return ResourceFailed(
            f"agent {self._plan.name!r} has no {kind.value} named {name!r}{hint}",
            cause=cause,
            way_out=f"declare it in the agent or with add_resource({name!r}, ResourceType.{kind.name}, …)",
        )

    def close(self) -> None:
        """In reverse order of making: a resource is closed before what it depends on."""
        with self._lock:
            for (kind, name), made in reversed(self._made.items()):
                _close(kind, name, made)
            self._made.clear()


def _close(kind: ResourceType, name: str, made: Any) -> None:
    close = getattr(made, "close", None)
    if close is None:
        return
    try:
        close()
    except Exception as error:
        _log.warning("closing the %s %r failed: %s", kind.value, name, describe_cause(error))


_caches: dict[str, ResourceCache] = {}
_caches_lock = threading.Lock()


def acquire(plan_id: str, plan: AgentPlan) -> ResourceCache:
    """The resources of this process for one use of an agent."""
    with _caches_lock:
        cache = _caches.get(plan_id)
        if cache is None:
            cache = _caches[plan_id] = ResourceCache(plan)
        cache.users += 1
        return cache


def release(plan_id: str) -> None:
    """Closes them when nobody uses them any more."""
    with _caches_lock:
        cache = _caches.get(plan_id)
        if cache is None:
            return
        cache.users -= 1
        if cache.users > 0:
            return
        del _caches[plan_id]
    cache.close()
