"""`SlotSharingGroup` and `MemorySize`: PyFlink's way to ask for resources, kept for programs that use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import total_ordering
from typing import Self

from emberflow.errors import InvalidArgument

_KIBI = 1024


@total_ordering
@dataclass(frozen=True, slots=True)
class MemorySize:
    """A number of bytes."""

    bytes_size: int

    def __post_init__(self) -> None:
        if self.bytes_size < 0:
            raise InvalidArgument(f"a size of memory must not be negative, got {self.bytes_size}")

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """`mebi_bytes` times 1,048,576 bytes."""
        return MemorySize(mebi_bytes * _KIBI**2)

    def get_bytes(self) -> int:
        """The size in bytes."""
        return self.bytes_size

    def get_kibi_bytes(self) -> int:
        """The size in whole KiB."""
        return self.bytes_size // _KIBI

    def get_mebi_bytes(self) -> int:
        """The size in whole MiB."""
        return self.bytes_size // _KIBI**2

    def get_gibi_bytes(self) -> int:
        """The size in whole GiB."""
        return self.bytes_size // _KIBI**3

    def get_tebi_bytes(self) -> int:
        """The size in whole TiB."""
        return self.bytes_size // _KIBI**4

    def __lt__(self, other: MemorySize) -> bool:
        return self.bytes_size < other.bytes_size

    def __str__(self) -> str:
        return f"{self.bytes_size} bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSharingGroup:
    """Steps that share slots, and the resources they ask for; made by `SlotSharingGroup.builder(name)`."""

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: dict[str, float] = field(default_factory=dict[str, float])

    @staticmethod
    def builder(name: str) -> SlotSharingGroupBuilder:
        """Starts building a group; an empty name raises `InvalidArgument`."""
        return SlotSharingGroupBuilder(name)

    def get_name(self) -> str:
        """The name of the group."""
        return self.name

    def get_cpu_cores(self) -> float | None:
        """The cores asked for; None if none were."""
        return self.cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """The heap memory asked for; None if none was."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """The memory outside of the heap asked for; None if none was."""
        return self.task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """The managed memory asked for; None if none was."""
        return self.managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Amounts of external resources by name."""
        return dict(self.external_resources)


class SlotSharingGroupBuilder:
    """Collects what a `SlotSharingGroup` asks for."""

    def __init__(self, name: str) -> None:
        if not name:
            raise InvalidArgument("a slot sharing group needs a name")
        self._name = name
        self._cpu_cores: float | None = None
        self._memory: dict[str, MemorySize] = {}
        self._external: dict[str, float] = {}

    def set_cpu_cores(self, cpu_cores: float) -> Self:
        """Asks for cores; a number that is not positive raises `InvalidArgument`."""
        if cpu_cores <= 0:
            raise InvalidArgument(f"the number of cores must be positive, got {cpu_cores}")
        self._cpu_cores = cpu_cores
        return self

    def set_task_heap_memory(self, task_heap_memory: MemorySize) -> Self:
        """Asks for heap memory."""
        return self._set("task_heap_memory", task_heap_memory)

    def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> Self:
        """Asks for heap memory, in MiB."""
        return self._set("task_heap_memory", MemorySize.of_mebi_bytes(task_heap_memory_mb))

    def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> Self:
        """Asks for memory outside of the heap."""
        return self._set("task_off_heap_memory", task_off_heap_memory)

    def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> Self:
        """Asks for memory outside of the heap, in MiB."""
        return self._set("task_off_heap_memory", MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

    def set_managed_memory(self, managed_memory: MemorySize) -> Self:
        """Asks for managed memory."""
        return self._set("managed_memory", managed_memory)

    def set_managed_memory_mb(self, managed_memory_mb: int) -> Self:
        """Asks for managed memory, in MiB."""
        return self._set("managed_memory", MemorySize.of_mebi_bytes(managed_memory_mb))

    def set_external_resource(self, name: str, value: float) -> Self:
        """Asks for an amount of an external resource, such as a GPU."""
        self._external[name] = value
        return self

    def build(self) -> SlotSharingGroup:
        """The group."""
        return SlotSharingGroup(
            name=self._name, cpu_cores=self._cpu_cores, external_resources=self._external, **self._memory
        )

    def _set(self, name: str, size: MemorySize) -> Self:
        self._memory[name] = size
        return self
