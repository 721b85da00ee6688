"""`Image`: a picture in a message to a chat model. Plain data, like the message."""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emberflow.errors import InvalidArgument, describe_cause, shorten
from emberflow.events.model_shape import ReadableAsDict
from emberflow.events.stored_types import stored_type

_BEGINNINGS = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


@stored_type()
@dataclass(frozen=True, slots=True, kw_only=True)
class Image(ReadableAsDict):
    """Either an address that the service fetches, or the picture itself: `Image(url="https://…")`, `Image(data=png_bytes)`,
    `Image.from_file("cat.png")`. Raises InvalidArgument for anything else."""

    url: str = ""

    data: str = ""
    """In base64; may be given as bytes."""

    media_type: str = ""
    """Such as `image/png`; recognized in PNG, JPEG, GIF and WebP data."""

    if TYPE_CHECKING:
        # For type checkers: data may be given as bytes.
        def __init__(self, *, url: str = ..., data: str | bytes = ..., media_type: str = ...) -> None: ...

    def __post_init__(self) -> None:
        given: str | bytes = self.data
        if bool(self.url) == bool(given):
            raise InvalidArgument(
                "an image needs either a url or data",
                way_out="Image(url='https://…'), Image(data=…) or Image.from_file('cat.png')",
            )
        if not given:
            return
        if isinstance(given, bytes):
            object.__setattr__(self, "data", base64.b64encode(given).decode())
        try:
            start = base64.b64decode(self.data[:64], validate=True)
        except (binascii.Error, ValueError, TypeError) as error:
            raise InvalidArgument(
                f"the data of an image is not base64: {shorten(given, 40)}", way_out="give it as bytes"
            ) from error
        if not self.media_type:
            object.__setattr__(self, "media_type", _media_type(start))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Image:
        """Reads the picture, so that it travels with the message."""
        try:
            return cls(data=Path(path).read_bytes())
        except OSError as error:
            raise InvalidArgument(
                f"the image {str(path)!r} cannot be read", cause=describe_cause(error)
            ) from error

    @property
    def source(self) -> str:
        """The address, or the picture as a `data:` address."""
        return self.url or f"data:{self.media_type};base64,{self.data}"

    def __repr__(self) -> str:
        return (
            f"Image(url={self.url!r})"
            if self.url
            else f"Image({self.media_type}, {len(self.data)} characters)"
        )


def _media_type(start: bytes) -> str:
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    for beginning, media_type in _BEGINNINGS:
        if start.startswith(beginning):
            return media_type
    raise InvalidArgument(
        "the data of an image is neither PNG, JPEG, GIF nor WebP", way_out="name its media_type: 'image/…'"
    )
