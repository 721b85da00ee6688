"""`Skills`: the resource that says where an agent's skills are. Nothing is read before a chat model needs them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from emberflow.errors import InvalidAgent, shorten
from emberflow.plan.agents.resources import ResourceType, Secret, SerializableResource
from emberflow.rendering.secret_names import is_hidden

if TYPE_CHECKING:
    from emberflow.agents.agent_skills.skill_library import SkillLibrary

_ADDRESS = re.compile(r"https?://[^/?#\s\[\]][^\s]*")
Scheme = Literal["local", "package", "url"]


@dataclass(frozen=True, slots=True)
class SkillSourceSpec:
    """One place with skills."""

    scheme: Scheme
    params: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        shown = {"local": "path", "url": "url"}.get(self.scheme)
        place = self.params[shown] if shown else f"{self.params['package']}/{self.params['resource']}"
        return f"{self.scheme}:{re.sub(r'//[^/@]*@|[?].*', lambda found: '//' if found[0][0] == '/' else '', place)}"

    def __hash__(self) -> int:
        return hash((self.scheme, str(sorted(self.params.items(), key=str))))


class Skills(SerializableResource):
    """Where skills are: folders whose subfolders are skills, or zip files of such folders.

    Made with `from_local_dir`, `from_package` or `from_url`. Several resources of one agent are combined; of skills with the
    same name the last one counts. A chat model uses those that it lists: `skills=["math-calculator"]`.
    """

    def __init__(self, sources: Sequence[SkillSourceSpec] = ()) -> None:
        self.sources = list(sources)
        self.library: SkillLibrary | None = None
        """The loaded skills of the agent, if this is its first resource of this kind."""

    @classmethod
    def from_local_dir(cls, *paths: str | PathLike[str]) -> Skills:
        """Folders or zip files on the worker."""
        _check_any("from_local_dir", paths)
        return cls([SkillSourceSpec("local", {"path": str(path)}) for path in paths])

    @classmethod
    def from_package(cls, *pairs: tuple[str, str]) -> Skills:
        """Pairs of a Python package and the path of a folder or zip file in it. The package is installed on the workers, or the
        program's own, whose skills are sent to them."""
        _check_any("from_package", pairs)
        for pair in pairs:
            if isinstance(pair, str) or len(pair) != 2:
                raise InvalidAgent(
                    f"Skills.from_package got {shorten(pair)}",
                    way_out="Skills.from_package(('my_package', 'skills'))",
                )
        return cls(
            [SkillSourceSpec("package", {"package": package, "resource": path}) for package, path in pairs]
        )

    @classmethod
    def from_url(
        cls, *urls: str, headers: Mapping[str, Any] | None = None, sha256: str | None = None
    ) -> Skills:
        """Zip files that the worker downloads over http or https. `headers` are sent to the address itself, not to where it
        redirects; secrets in them are `Secret("NAME")`. With `sha256`, a file with another checksum is rejected."""
        _check_any("from_url", urls)
        for url in urls:
            if not _ADDRESS.fullmatch(url):
                raise InvalidAgent(
                    f"Skills.from_url got {shorten(url)}",
                    way_out="an address like 'https://example.com/skills.zip'",
                )
            if "@" in urlsplit(url).netloc:
                raise InvalidAgent(
                    "Skills.from_url got an address with a user or password in it",
                    way_out="headers={'Authorization': Secret('NAME')}",
                )
        if sha256 is not None and (len(urls) > 1 or not re.fullmatch(r"[0-9a-fA-F]{64}", sha256)):
            raise InvalidAgent(
                "sha256 must be the checksum of one file: 64 hexadecimal digits",
                way_out="one Skills.from_url(…) for each address",
            )
        for name, value in (headers or {}).items():
            if not isinstance(value, Secret) and is_hidden(name, value):
                raise InvalidAgent(
                    f"the header {name!r} is a secret written into the program",
                    way_out="use Secret('NAME') instead: it is read from the environment of the worker",
                )
        more: dict[str, Any] = {"headers": dict(headers)} if headers else {}
        if sha256 is not None:
            more["sha256"] = sha256.lower()
        return cls([SkillSourceSpec("url", {"url": url, **more}) for url in urls])

    @classmethod
    def resource_type(cls) -> ResourceType:
        """Always `ResourceType.SKILLS`."""
        return ResourceType.SKILLS

    @property
    def package_data(self) -> tuple[tuple[str, str], ...]:
        """The packages that have skills, each with the path of the skills in it."""
        return tuple(
            (source.params["package"], source.params["resource"])
            for source in self.sources
            if source.scheme == "package"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Skills) and self.sources == other.sources

    def __hash__(self) -> int:
        return hash(tuple(self.sources))

    def __repr__(self) -> str:
        return f"Skills({', '.join(map(str, self.sources))})"

    def close(self) -> None:
        """Removes what was unpacked or downloaded."""
        library, self.library = self.library, None
        if library is not None:
            library.close()

    def __getstate__(self) -> dict[str, Any]:
        # What was loaded, and the context, belong to this process.
        return {"sources": self.sources, "library": None}


def _check_any(method: str, given: Sequence[Any]) -> None:
    if not given:
        raise InvalidAgent(f"Skills.{method} needs at least one source")
