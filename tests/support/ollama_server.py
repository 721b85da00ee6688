"""A server on the loopback address that speaks Ollama's own interface and answers by rules; a process of its own.

`with OllamaServer([Rule("weather", Reply("It rains."))]) as server:` sets nothing in the environment: programs find it by
`server.url`, usually in OLLAMA_HOST.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What the model says, or the tools that it wants: `{"add": {"a": 1}}`."""

    content: str = ""
    tools: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


@dataclass(frozen=True)
class Rule:
    """Applies if the conversation has the text; `after_tool`: if its last message is, or is not, the result of a tool;
    `last`: if it has this text."""

    text: str
    reply: Reply
    after_tool: bool | None = None
    last: str = ""

    def applies(self, messages: list[dict[str, Any]]) -> bool:
        said = messages[-1]
        return (
            self.after_tool in (None, said["role"] == "tool")
            and self.last in said.get("content", "")
            and any(self.text in str(item) for item in messages)
        )


class OllamaServer:
    """Requests are kept as they were received, in a file."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules

    def __enter__(self) -> OllamaServer:
        self._folder = tempfile.TemporaryDirectory()
        self._log = Path(self._folder.name, "requests.jsonl")
        self._log.touch()
        self._process = subprocess.Popen(
            [sys.executable, "-E", "-S", __file__, str(self._log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([asdict(rule) for rule in self._rules]) + "\n")
        self._process.stdin.flush()
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines()]


def serve(rules: list[Rule], log: Path) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"path": self.path, **request}) + "\n")
            found = next((rule.reply for rule in rules if rule.applies(request["messages"])), None)
            if found is None or self.path != "/api/chat":
                self._send(404, {"error": f"nothing is scripted for {request['messages'][-1]}"})
                return
            message: dict[str, Any] = {"role": "assistant", "content": found.content}
            if found.tools:
                message["tool_calls"] = [
                    {"function": {"name": name, "arguments": given}} for name, given in found.tools.items()
                ]
            answer = {
                "model": request["model"],
                "created_at": "2026-01-01T00:00:00.000000Z",
                "message": message,
                "done": True,
                "done_reason": "stop",
                "prompt_eval_count": 7,
                "eval_count": 3,
            }
            self._send(200, answer)

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = (json.dumps(body) + "\n").encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on stderr."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 1024

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Clients that are stopped cut their connections."""

    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    made = [Rule(item["text"], Reply(**item["reply"]), item["after_tool"], item["last"]) for item in given]
    serve(made, Path(sys.argv[1]))
