"""Servers and archives that do not follow their protocols: each ends with a `ResourceFailed` that shows no secret."""

from __future__ import annotations

import io
import random
import socket
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from emberflow.agents import Secret
from emberflow.agents.agent_skills import skill_sources
from emberflow.agents.agent_skills.skill_sources import bring
from emberflow.agents.agent_skills.skills import Skills, SkillSourceSpec
from emberflow.agents.agent_skills.unpacking import unpack
from emberflow.errors import ResourceFailed

OK = b"HTTP/1.1 200 OK\r\n"
MOVED = b"HTTP/1.1 302 Found\r\nLocation: "


def address(answer: Callable[[socket.socket], None]) -> str:
    """Of a server that answers one request."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server, server.accept()[0] as connection, suppress(OSError):
            connection.recv(65_536)
            answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{server.getsockname()[1]}/skills.zip"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"garbage", "malformed: BadStatusLine"),
        (b"", "malformed: RemoteDisconnected"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nffff\r\nabc", "malformed: IncompleteRead"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc", "malformed: IncompleteRead"),
        (OK + b"X: a\r\n" * 300 + b"\r\n", "malformed: HTTPException"),
        (OK + b"X: " + b"a" * 70_000 + b"\r\n\r\n", "malformed: LineTooLong"),
        (MOVED + b"http://ann:pw@127.0.0.1/\r\n\r\n", "not valid"),
        (MOVED + b"http://[::1/\r\n\r\n", "Invalid IPv6 URL"),
    ],
)
def test_answers_that_are_not_http(answer: bytes, said: str) -> None:
    with ExitStack() as owned, pytest.raises(ResourceFailed, match=said) as raised:
        bring(Skills.from_url(address(lambda to: to.sendall(answer))).sources[0], owned)
    assert "pw@" not in str(raised.value)


def test_a_server_that_sends_a_byte_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_sources, "DOWNLOAD_TIMEOUT_S", 0.3)

    def drip(connection: socket.socket) -> None:
        connection.sendall(OK + b"\r\n")
        while True:
            connection.sendall(b"a")
            time.sleep(0.05)

    with ExitStack() as owned, pytest.raises(ResourceFailed, match=r"took longer than 0\.3 s|timed out"):
        bring(Skills.from_url(address(drip)).sources[0], owned)


def test_a_secret_with_a_line_break_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLS_TOKEN", "sesame\n")
    made = Skills.from_url("http://127.0.0.1:1/x.zip", headers={"X-Token": Secret("SKILLS_TOKEN")})
    with ExitStack() as owned, pytest.raises(ResourceFailed, match="contains a line break") as raised:
        bring(made.sources[0], owned)
    assert "sesame" not in f"{raised.value}{raised.value.__cause__}"


def test_files_of_this_machine_are_not_downloaded() -> None:
    with ExitStack() as owned, pytest.raises(ResourceFailed, match="not file"):
        bring(SkillSourceSpec("url", {"url": "file:///etc/passwd"}), owned)


def test_other_compressions_are_refused(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_LZMA) as opened:
        opened.writestr("a", "b")
    with pytest.raises(ResourceFailed, match="not compressed with deflate"):
        unpack(made, tmp_path)


def test_damaged_archives(tmp_path: Path) -> None:
    """Changed bytes raise one kind of error, wherever they are."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("greeter/SKILL.md", "---\nname: greeter\ndescription: d\n---\nhello" * 20)
        opened.writestr("greeter/run.py", "#!/usr/bin/python\n")
    chosen = random.Random(1)
    refused = 0
    for number in range(400):
        data = bytearray(made.getvalue())
        for _ in range(chosen.randint(1, 4)):
            data[chosen.randrange(len(data))] = chosen.randrange(256)
        try:
            unpack(io.BytesIO(data), tmp_path / str(number))
        except ResourceFailed:
            refused += 1
    assert refused > 100
