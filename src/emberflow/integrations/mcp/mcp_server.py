"""`MCPServer`: a resource that offers the tools and prompts of an MCP server to the agent."""

from __future__ import annotations

import asyncio
import atexit
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from emberflow.agents import ChatMessage, Resource, ResourceType
from emberflow.agents.tools.function_tool import ToolMetadata
from emberflow.errors import (
    SHORT,
    InvalidArgument,
    PackageMissing,
    ToolFailed,
    UnknownResource,
    did_you_mean,
)
from emberflow.integrations.mcp.content import plain_content
from emberflow.integrations.mcp.mcp_prompt import MCPPrompt
from emberflow.integrations.mcp.mcp_tool import MCPTool
from emberflow.integrations.mcp.session_thread import blocking, on_session_thread
from emberflow.rendering.secret_names import scrub

if TYPE_CHECKING:
    from emberflow.integrations.mcp.mcp_session import Connection

T = TypeVar("T")

_PAGES = 100
"""A listing that never ends must not hang a call."""
_CLOSING_S = 15.0


class MCPServer(Resource):
    """The tools and prompts of a server, under their own names: `tools=["add"]` of a chat model, `ctx.call_tool("add", …)`.

    Streamable HTTP: `endpoint`, `headers`, `bearer_token=Secret("TOKEN")` or `auth` (user and password, or an `Auth` of httpx),
    `timeout` and `sse_read_timeout` in seconds. A process: `command`, `args`, `env` (nothing else of the worker's environment
    except PATH, HOME and the like), `cwd`. `tools` restricts which tools the agent may use.

    Nothing is connected before the first use. A server that cannot be reached is tried `max_retries` more times, once for all
    calls that wait for it, and counts as down afterwards: calls fail at once, and a single connection is tried by the first
    call after a pause, which grows from `initial_backoff_ms` to `max_backoff_ms`. A connection that is lost fails the call,
    and the next one connects again.
    """

    def __init__(
        self,
        endpoint: str = "",
        headers: Mapping[str, Any] | None = None,
        timeout: float = 30,
        sse_read_timeout: float = 300,
        auth: Any = None,
        *,
        bearer_token: str | None = None,
        command: str = "",
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        tools: Sequence[str] | None = None,
        max_retries: int = 3,
        initial_backoff_ms: float = 100,
        max_backoff_ms: float = 10_000,
    ) -> None:
        _check(endpoint, command)
        self.endpoint = endpoint
        self.command = command
        self._headers = {name: str(value) for name, value in (headers or {}).items()}
        if bearer_token is not None:
            self._headers["Authorization"] = f"Bearer {bearer_token}"
        self._auth = auth
        self._timeout = float(timeout)
        self._sse_read_timeout = float(sse_read_timeout)
        self._args = tuple(args)
        self._env = dict(env or {})
        self._cwd = cwd
        self._allowed = None if tools is None else list(tools)
        self._backoff = (max_retries, initial_backoff_ms / 1000, max_backoff_ms / 1000)
        self._connected: Connection | None = None
        self._listed: tuple[int, dict[str, ToolMetadata]] = (0, {})

    @classmethod
    def resource_type(cls) -> ResourceType:
        """Always `ResourceType.MCP_SERVER`."""
        return ResourceType.MCP_SERVER

    @property
    def shown(self) -> str:
        """The address without credentials, for messages."""
        if self.command:
            return _command_line(Path(self.command).name, self._args)
        parts = urlsplit(self.endpoint)
        return repr(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")

    @staticmethod
    def offered(name: str, kind: ResourceType, servers: Sequence[MCPServer]) -> Any:
        """The tool or prompt of one of these servers; which one, if any, is found out when it is first used."""
        return MCPTool(name, servers) if kind is ResourceType.TOOL else MCPPrompt(name, servers)

    # What programs call. These block: an action calls them with `ctx.durable_execute_async`.

    def list_tools(self) -> list[MCPTool]:
        """The tools that the agent may use. Blocks; raises ToolFailed."""
        return [MCPTool(name, [self], found) for name, found in blocking(self._tools()).items()]

    def get_tool(self, name: str) -> MCPTool:
        """A tool by its name. Blocks; raises ToolFailed."""
        return MCPTool(name, [self], self.find_tool(name, [self])[1])

    def get_tool_metadata(self, name: str) -> ToolMetadata:
        """The description of a tool. Blocks; raises ToolFailed."""
        return self.find_tool(name, [self])[1]

    def list_prompts(self) -> list[MCPPrompt]:
        """The prompts of the server. Blocks; raises ToolFailed."""
        return [MCPPrompt(name, [self]) for name in blocking(self._prompts())]

    def get_prompt(self, name: str, arguments: Mapping[str, Any] | None = None) -> list[ChatMessage]:
        """The messages of a prompt. Blocks; raises ToolFailed."""
        return self.fill_prompt(name, arguments or {}, [self])

    async def call_tool_async(
        self, tool_name: str, arguments: Mapping[str, Any] | None = None, /, **given: Any
    ) -> Any:
        """Calls a tool: text, or a list of text, images and resources. Raises ToolFailed."""
        return await on_session_thread(self._call_tool(tool_name, {**(arguments or {}), **given}))

    # What the tools and prompts of this server call.

    def find_tool(self, name: str, servers: Sequence[MCPServer]) -> tuple[MCPServer, ToolMetadata]:
        return blocking(_find_tool(name, servers))

    async def find_tool_async(
        self, name: str, servers: Sequence[MCPServer]
    ) -> tuple[MCPServer, ToolMetadata]:
        return await on_session_thread(_find_tool(name, servers))

    def fill_prompt(
        self, name: str, values: Mapping[str, Any], servers: Sequence[MCPServer]
    ) -> list[ChatMessage]:
        return blocking(_fill_prompt(name, values, servers))

    async def fill_prompt_async(
        self, name: str, values: Mapping[str, Any], servers: Sequence[MCPServer]
    ) -> list[ChatMessage]:
        return await on_session_thread(_fill_prompt(name, values, servers))

    # On the thread of sessions.

    def _connection(self) -> Connection:
        if self._connected is None:
            try:
                from emberflow.integrations.mcp.mcp_session import Connection, Retries
                from emberflow.integrations.mcp.transports import Address
            except ImportError as error:
                raise PackageMissing(
                    "MCP servers need the package 'mcp'", way_out="pip install 'emberflow[mcp]'"
                ) from error
            address = Address(
                endpoint=self.endpoint,
                headers=self._headers,
                auth=self._auth,
                timeout_s=self._timeout,
                sse_read_timeout_s=self._sse_read_timeout,
                command=self.command,
                args=self._args,
                env=self._env,
                cwd=self._cwd,
            )
            retries, first, longest = self._backoff
            self._connected = Connection(
                self.shown,
                address,
                Retries(max_retries=retries, initial_backoff_s=first, max_backoff_s=longest),
            )
            _open_servers.add(self)
        return self._connected

    async def _ask(self, what: str, request: Callable[[Any], Awaitable[T]]) -> T:
        return await self._connection().call(what, request)

    async def _call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        if self._allowed is not None and name not in self._allowed:
            raise ToolFailed(f"the agent may not use the tool {name!r} of the MCP server {self.shown}")
        answer: Any = await self._ask(
            f"call the tool {name!r}", lambda client: client.call_tool(name, arguments)
        )
        content = plain_content(answer.content)
        if answer.is_error:
            raise ToolFailed(f"the tool {name!r} of the MCP server {self.shown} failed", cause=str(content))
        return content

    async def _tools(self, having: str | None = None) -> dict[str, ToolMetadata]:
        """From the last listing, if the session is the same and it contains the tool `having`."""
        connection = self._connection()
        session, known = self._listed
        if having in known and session == connection.opened:
            return known
        found: dict[str, ToolMetadata] = {}
        for item in await self._pages("tools", "list its tools"):
            if self._allowed is None or item.name in self._allowed:
                found[item.name] = ToolMetadata(
                    name=item.name, description=item.description or "", args_schema=dict(item.input_schema)
                )
        self._listed = (connection.opened, found)
        return found

    async def _prompts(self) -> dict[str, Any]:
        return {item.name: item for item in await self._pages("prompts", "list its prompts")}

    async def _pages(self, kind: str, what: str) -> list[Any]:
        async def every(client: Any) -> list[Any]:
            if getattr(client.server_capabilities, kind) is None:
                return []
            found: list[Any] = []
            cursor: str | None = None
            for _ in range(_PAGES):
                page = await getattr(client, f"list_{kind}")(cursor=cursor)
                found += getattr(page, kind)
                cursor = page.next_cursor
                if cursor is None:
                    break
            return found

        return await self._ask(what, every)

    def close(self) -> None:
        """Ends the session and the server's process; waits for it."""
        connection, self._connected = self._connected, None
        _open_servers.discard(self)
        if connection is not None:
            blocking(connection.close(), _CLOSING_S)

    def __repr__(self) -> str:
        return f"MCPServer({self.shown})"


_open_servers: weakref.WeakSet[MCPServer] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """A process that ends without closing its jobs leaves no servers behind."""
    for server in list(_open_servers):
        server.close()


def _command_line(name: str, args: Sequence[str]) -> str:
    """Whole arguments only: a secret that was cut would not be recognized and masked."""
    shown = [name]
    for arg in args:
        if len(" ".join([*shown, arg])) > SHORT:
            shown.append("…")
            break
        shown.append(arg)
    return repr(scrub(" ".join(shown)))


def _check(endpoint: str, command: str) -> None:
    if bool(endpoint) == bool(command):
        raise InvalidArgument(
            "an MCP server needs either an endpoint or a command",
            way_out="endpoint='http://localhost:8000/mcp', or command='python', args=['server.py']",
        )
    parts = urlsplit(endpoint)
    if endpoint and (parts.scheme not in ("http", "https") or not parts.netloc):
        raise InvalidArgument(
            f"the endpoint of an MCP server must be an address like 'http://localhost:8000/mcp', got {endpoint!r}"
        )


async def _find_tool(name: str, servers: Sequence[MCPServer]) -> tuple[MCPServer, ToolMetadata]:
    """Asks the servers at the same time. One that cannot be reached does not matter if another one has the tool."""
    return _only(f"tool {name!r}", name, *await _ask_all(servers, lambda server: server._tools(having=name)))


async def _fill_prompt(
    name: str, values: Mapping[str, Any], servers: Sequence[MCPServer]
) -> list[ChatMessage]:
    server, prompt = _only(
        f"prompt {name!r}", name, *await _ask_all(servers, lambda server: server._prompts())
    )
    declared: list[Any] = prompt.arguments or []
    for item in declared:
        if item.required and item.name not in values:
            raise ToolFailed(
                f"the prompt {name!r} of the MCP server {server.shown} needs the argument {item.name!r}",
                way_out=f"prompt_args={{{item.name!r}: …}}",
            )
    arguments = {item.name: str(values[item.name]) for item in declared if item.name in values}
    answer: Any = await server._ask(
        f"fill in the prompt {name!r}", lambda client: client.get_prompt(name, arguments)
    )
    return [
        ChatMessage(role=item.role, content=_text(name, plain_content([item.content])))
        for item in answer.messages
    ]


def _text(prompt: str, content: Any) -> str:
    if isinstance(content, str):
        return content
    raise ToolFailed(
        f"the MCP prompt {prompt!r} contains an item of the type {content[0].get('type')!r}; only text is supported"
    )


async def _ask_all(
    servers: Sequence[MCPServer], ask: Callable[[MCPServer], Coroutine[Any, Any, dict[str, T]]]
) -> tuple[list[tuple[MCPServer, dict[str, T]]], list[BaseException]]:
    answers = await asyncio.gather(*map(ask, servers), return_exceptions=True)
    found = [
        (server, item)
        for server, item in zip(servers, answers, strict=True)
        if not isinstance(item, BaseException)
    ]
    return found, [item for item in answers if isinstance(item, BaseException)]


def _only(
    what: str, name: str, found: list[tuple[MCPServer, dict[str, T]]], failed: list[BaseException]
) -> tuple[MCPServer, T]:
    having = [server for server, items in found if name in items]
    if len(having) > 1:
        raise UnknownResource(
            f"the {what} is offered by several MCP servers: {', '.join(server.shown for server in having)}",
            way_out="restrict the tools of one of them: tools=[…]",
        )
    if having:
        return having[0], dict(found)[having[0]][name]
    if failed:
        raise failed[0]
    known = [item for _, items in found for item in items]
    raise UnknownResource(
        f"{what} is defined neither by the agent nor by its MCP servers{did_you_mean(name, known)}",
        cause=f"the servers offer: {', '.join(map(repr, known)) or 'nothing'}",
        way_out="correct the name, or declare it in the agent",
    )
