# The part of cloudpickle that emberflow uses; the package ships no types.
from collections.abc import Callable
from types import ModuleType
from typing import IO, Any

__version__: str

def dumps(
    obj: object, protocol: int | None = None, buffer_callback: Callable[[Any], object] | None = None
) -> bytes: ...
def dump(
    obj: object,
    file: IO[bytes],
    protocol: int | None = None,
    buffer_callback: Callable[[Any], object] | None = None,
) -> None: ...
def loads(data: bytes | bytearray | memoryview, /) -> Any: ...
def load(file: IO[bytes], /) -> Any: ...
def register_pickle_by_value(module: ModuleType) -> None: ...
def unregister_pickle_by_value(module: ModuleType) -> None: ...
