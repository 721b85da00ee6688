"""Skills from folders, packages and addresses, and from archives that are hostile."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import importlib
import io
import stat
import sys
import threading
import zipfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from emberflow.agents import Secret
from emberflow.agents.agent_skills import skill_sources, unpacking
from emberflow.agents.agent_skills.skill_library import SkillLibrary
from emberflow.agents.agent_skills.skill_sources import bring
from emberflow.agents.agent_skills.skills import Skills
from emberflow.errors import InvalidAgent, ResourceFailed
from tests.support.skill_folders import write_skill, zipped


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "skills"
    write_skill(made, "greeter", "Greets.")
    write_skill(made, "math", "Counts.")
    (made / "README.md").write_text("not a skill")
    (made / "empty").mkdir()
    return made


class Pages:
    """A loopback server: `{path: (status, headers, body)}`."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.seen: list[tuple[str, str | None]] = []
        pages = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                pages.seen.append((self.path, self.headers.get("X-Token")))
                status, headers, body = pages.pages.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None: ...

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def pages() -> Generator[Pages]:
    with contextlib.closing(Pages()) as made:
        yield made


def names(made: Skills) -> list[str]:
    library = SkillLibrary([made])
    try:
        return library.names()
    finally:
        library.close()


def test_a_folder_is_used_where_it_is(folder: Path) -> None:
    library = SkillLibrary([Skills.from_local_dir(folder)])
    assert library.names() == ["greeter", "math"]
    assert library.get("math").folder == folder / "math"
    library.close()
    assert folder.is_dir()


def test_a_zip_file(folder: Path, tmp_path: Path) -> None:
    archive = tmp_path / "skills.zip"
    archive.write_bytes(zipped(folder))
    library = SkillLibrary([Skills.from_local_dir(str(archive))])
    place = library.get("greeter").folder
    assert (place / "reference.md").read_text() == "# Reference"
    assert stat.S_IMODE((place / "scripts" / "ask.sh").stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "reference.md").stat().st_mode) == 0o600
    assert stat.S_IMODE(place.stat().st_mode) == stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    library.close()
    assert not place.parent.exists()


def test_a_package(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, inside = tmp_path / "site", tmp_path / "packed.zip"
    for name in ("plain_skills", "packed_skills"):
        (plain / name).mkdir(parents=True)
        (plain / name / "__init__.py").write_text("")
        folder.joinpath("x").mkdir(exist_ok=True)
        for skill in ("greeter", "math"):
            write_skill(plain / name / "data", skill)
        (plain / name / "more.zip").write_bytes(zipped(folder))
    inside.write_bytes(zipped(plain))
    monkeypatch.syspath_prepend(str(plain))
    assert names(Skills.from_package(("plain_skills", "data"))) == ["greeter", "math"]
    assert names(Skills.from_package(("plain_skills", "more.zip"))) == ["greeter", "math"]
    monkeypatch.setattr(sys, "path", [str(inside), *sys.path[1:]])
    importlib.invalidate_caches()
    assert names(Skills.from_package(("packed_skills", "data"), ("packed_skills", "more.zip"))) == [
        "greeter",
        "math",
    ]
    library = SkillLibrary([Skills.from_package(("packed_skills", "data"))])
    assert stat.S_IMODE((library.get("math").folder / "scripts" / "ask.sh").stat().st_mode) == 0o700
    library.close()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Skills.from_local_dir("/nowhere/skills"), "there is no folder or file"),
        (Skills.from_package(("no_such_package_x", "skills")), "No module named"),
        (Skills.from_package(("emberflow", "nothing")), "there is no folder or file"),
        (Skills.from_package(("emberflow", "../emberflow")), "not a path inside the package"),
    ],
)
def test_places_without_skills(made: Skills, said: str) -> None:
    with pytest.raises(ResourceFailed, match=said):
        names(made)


def test_an_address(folder: Path, pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    data = zipped(folder)
    monkeypatch.setenv("SKILLS_TOKEN", "sesame")
    pages.pages["/skills.zip"] = (200, {}, data)
    pages.pages["/moved"] = (302, {"Location": "/skills.zip"}, b"")
    url = f"{pages.address}/skills.zip"
    assert names(Skills.from_url(url, sha256=hashlib.sha256(data).hexdigest())) == ["greeter", "math"]
    assert names(Skills.from_url(f"{pages.address}/moved", headers={"X-Token": Secret("SKILLS_TOKEN")})) == [
        "greeter",
        "math",
    ]
    assert pages.seen[1:] == [("/moved", "sesame"), ("/skills.zip", "sesame")]


def test_headers_are_not_sent_to_another_server(
    folder: Path, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLS_TOKEN", "sesame")
    with contextlib.closing(Pages()) as other:
        other.pages["/skills.zip"] = (200, {}, zipped(folder))
        pages.pages["/moved"] = (302, {"Location": f"{other.address}/skills.zip"}, b"")
        made = Skills.from_url(f"{pages.address}/moved", headers={"X-Token": Secret("SKILLS_TOKEN")})
        assert names(made) == ["greeter", "math"]
        assert other.seen == [("/skills.zip", None)]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ((404, {}, b""), "404 Not Found"),
        ((200, {}, b"<html>"), "zip file is damaged|not a zip file"),
        ((200, {"Content-Length": "100000"}, b"PK"), "closed after|IncompleteRead"),
        ((302, {"Location": "file:///etc/passwd"}, b""), "redirects|not allowed"),
        ((302, {"Location": "ftp://127.0.0.1/x"}, b""), "redirects"),
        ((200, {}, b"x" * 2_000), "larger than 1,000"),
    ],
)
def test_addresses_that_fail(page: Any, said: str, pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    pages.pages["/skills.zip"] = page
    monkeypatch.setattr(skill_sources, "MAX_ARCHIVE_BYTES", 1_000)
    with pytest.raises(ResourceFailed, match=said):
        names(Skills.from_url(f"{pages.address}/skills.zip"))


def test_another_checksum(folder: Path, pages: Pages) -> None:
    pages.pages["/skills.zip"] = (200, {}, zipped(folder))
    with pytest.raises(ResourceFailed, match="SHA-256 checksum"):
        names(Skills.from_url(f"{pages.address}/skills.zip", sha256="0" * 64))


def test_a_place_that_fails_is_tried_again(folder: Path, pages: Pages) -> None:
    library = SkillLibrary([Skills.from_url(f"{pages.address}/skills.zip")])
    with pytest.raises(ResourceFailed):
        library.get("math")
    pages.pages["/skills.zip"] = (200, {}, zipped(folder))
    assert library.get("math").name == "math"
    library.close()


def archive(*items: tuple[str, bytes, int], **options: Any) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data, mode in items:
            info = zipfile.ZipInfo("x")
            info.filename = name
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            opened.writestr(info, data)
    made.seek(0)
    return made


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([("../out", b"x", 0)], "leads outside"),
        ([("a/../../out", b"x", 0)], "leads outside"),
        ([("/etc/out", b"x", 0)], "leads outside"),
        ([("a//b", b"x", 0)], "leads outside"),
        ([("a/./b", b"x", 0)], "leads outside"),
        ([("..\\out", b"x", 0)], "leads outside"),
        ([("C:/out", b"x", 0)], "leads outside"),
        ([("a\x1b[2J", b"x", 0)], "leads outside"),
        ([("../", b"", 0)], "leads outside"),
        ([("a", b"/etc/passwd", stat.S_IFLNK | 0o777)], "a link or a special file"),
        ([("a", b"", stat.S_IFIFO | 0o644)], "a link or a special file"),
        ([("a", b"x", 0), ("A", b"y", 0)], "two files"),
        ([("a", b"x", 0), ("a/b", b"y", 0)], "two files"),
        ([("a/" * 1_500 + "b", b"x", 0)], "more than 32 folders deep"),
        ([("a" * 300, b"x", 0)], "cannot be written"),
        ([("big", b"\0" * 30_000, 0)], "more than 20,000 bytes"),
        ([(f"f{n}", b"", 0) for n in range(20)], "more than 10 files"),
    ],
)
def test_hostile_archives(items: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MAX_UNPACKED_BYTES", 20_000)
    monkeypatch.setattr(unpacking, "MAX_FILES", 10)
    file = tmp_path / "bad.zip"
    file.write_bytes(archive(*items).getvalue())
    with ExitStack() as owned, pytest.raises(ResourceFailed, match=said):
        bring(Skills.from_local_dir(file).sources[0], owned)
    assert not (tmp_path / "out").exists()
    assert not list(Path("/tmp").glob("out"))


def test_what_an_archive_states_about_its_sizes_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "MAX_UNPACKED_BYTES", 20_000)
    data = bytearray(archive(("big", b"\0" * 30_000, 0)).getvalue())
    for at in (data.find(b"PK\x01\x02") + 24, 22):
        data[at : at + 4] = (10).to_bytes(4, "little")
    file = tmp_path / "bad.zip"
    file.write_bytes(data)
    with ExitStack() as owned, pytest.raises(ResourceFailed):
        bring(Skills.from_local_dir(file).sources[0], owned)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Skills.from_url("ftp://x/y.zip"), "https"),
        (lambda: Skills.from_url("file:///etc/passwd"), "https"),
        (lambda: Skills.from_url("https://ann:pw@example.com/x.zip"), "a user or password in it"),
        (
            lambda: Skills.from_url("http://a/b", headers={"Authorization": "Bearer 1"}),
            "a secret written into",
        ),
        (lambda: Skills.from_url("http://a/b", sha256="x"), "64 hexadecimal digits"),
        (lambda: Skills.from_url("http://a/b", "http://a/c", sha256="0" * 64), "one file"),
        (lambda: Skills.from_local_dir(), "at least one source"),
        (lambda: Skills.from_package("a"), "from_package"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_declarations_that_cannot_be(make: Any, said: str) -> None:
    with pytest.raises(InvalidAgent, match=said):
        make()


def test_places_are_shown_without_credentials() -> None:
    made = Skills.from_url("https://example.com/x.zip?token=1")
    assert repr(made) == "Skills(url:https://example.com/x.zip)"


def test_broken_skills_do_not_disturb_others(folder: Path) -> None:
    (folder / "math" / "SKILL.md").write_text("no front matter")
    library = SkillLibrary([Skills.from_local_dir(folder)])
    assert library.names() == ["greeter"]
    with pytest.raises(ResourceFailed, match="'math' cannot be used"):
        library.get("math")
    with pytest.raises(ResourceFailed, match="did you mean 'greeter'"):
        library.get("greter")


def test_the_last_of_several_skills_of_a_name_counts(folder: Path, tmp_path: Path) -> None:
    write_skill(tmp_path / "other", "math", "Counts better.")
    first, second = Skills.from_local_dir(folder, folder), Skills.from_local_dir(tmp_path / "other")
    library = SkillLibrary([first, second])
    assert library.names() == ["greeter", "math"]
    assert library.get("math").description == "Counts better."
