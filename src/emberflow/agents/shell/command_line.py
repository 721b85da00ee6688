"""Parses a command line into commands, pipes, conditions and redirects. Everything else that a shell could do is rejected.

A word is the text that the program receives: there are no variables, substitutions, globs or aliases that could change it
after it was checked. What is rejected, and why, is in docs/tools.md.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

MAX_CHARACTERS = 16_384
MAX_COMMANDS = 50


class CommandRefused(ValueError):
    """A command line that is not run; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """`fd` is 0, 1 or 2. `target` is a file, or the descriptor to copy (`dup`)."""

    fd: int
    kind: Literal["read", "write", "append", "dup"]
    target: str


@dataclass(frozen=True, slots=True)
class Command:
    words: tuple[str, ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A pipeline, and what connects it to the one before: `;`, `&&` or `||`."""

    after: Literal[";", "&&", "||"]
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_operator: bool = False
    quoted: bool = False
    is_descriptor: bool = False
    """A number immediately before a redirect, as in `2>`."""


_OPERATORS = (
    *("<<<", "&>>", "&&", "||", ";;", "|&", "&>", "<<", "<&", "<>", "<(", ">>", ">&", ">|", ">("),
    *("&", "|", ";", "<", ">", "(", ")", "\n"),
)
_REFUSED_OPERATORS = {
    "&": "background commands ('&') are not supported: commands run one after another",
    "|&": "'|&' is not supported: write '2>&1 |'",
    "&>": "'&>' is not supported: write '> file 2>&1'",
    "&>>": "'&>>' is not supported: write '>> file 2>&1'",
    ">|": "'>|' is not supported: write '>'",
    "<>": "'<>' is not supported",
    "<&": "'<&' is not supported",
    "<<": "here-documents ('<<') are not supported: pipe the text in with echo or printf",
    "<<<": "here-strings ('<<<') are not supported: pipe the text in with echo or printf",
    "<(": "process substitutions ('<(…)') are not supported",
    ">(": "process substitutions ('>(…)') are not supported",
    "(": "subshells and functions ('(…)') are not supported",
    ")": "subshells and functions ('(…)') are not supported",
    ";;": "';;' is not supported",
}
_RESERVED = {
    *(
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "select",
        "in",
    ),
    *("function", "coproc", "time", "!", "[[", "]]"),
}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^\]]*\])?\+?=")
_DOLLAR = (
    "variables and substitutions ('$…') are not supported: put text that contains '$' into single quotes"
)
_BACKTICK = "substitutions ('`…`') are not supported: put text that contains '`' into single quotes"
_GLOB = "patterns of file names ('*', '?', '[') are not expanded: name the files, or put the text into quotes"
_BRACE = "groups and brace expansions ('{…}') are not supported: put the text into quotes"


def parse(line: str) -> tuple[Step, ...]:
    """Raises CommandRefused."""
    _check_text(line)
    return _Parser(_tokens(line)).steps()


def _check_text(line: str) -> None:
    if len(line) > MAX_CHARACTERS:
        raise CommandRefused(
            f"the command has {len(line):,} characters; at most {MAX_CHARACTERS:,} are allowed"
        )
    for character in line:
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t":
            raise CommandRefused(f"the command contains the control character {character!a}")
    if not line.strip():
        raise CommandRefused("the command is empty")


def _tokens(line: str) -> list[_Token]:
    found: list[_Token] = []
    position = 0
    while position < len(line):
        character = line[position]
        if character in " \t":
            position += 1
        elif line.startswith("\\\n", position):
            position += 2
        elif operator := next((item for item in _OPERATORS if line.startswith(item, position)), ""):
            found.append(_Token(operator, is_operator=True))
            position += len(operator)
        elif character == "#":
            raise CommandRefused("comments ('#') are not supported: leave them out, or put '#' into quotes")
        else:
            token, position = _Word(line, position).read()
            found.append(token)
    return found


class _Word:
    """Reads one word, starting at a position."""

    def __init__(self, line: str, position: int) -> None:
        self._line = line
        self._start = self._position = position
        self._parts: list[str] = []
        self._quoted = False

    def read(self) -> tuple[_Token, int]:
        line = self._line
        while self._position < len(line):
            character = line[self._position]
            if character in " \t\n|&;<>()":
                break
            if character == "'":
                self._single()
            elif character == '"':
                self._double()
            elif character == "\\":
                self._escaped()
            else:
                self._plain(character)
        text = "".join(self._parts)
        before_redirect = line[self._position : self._position + 1] in ("<", ">")
        is_descriptor = before_redirect and not self._quoted and text.isascii() and text.isdigit()
        return _Token(text, quoted=self._quoted, is_descriptor=is_descriptor), self._position

    def _single(self) -> None:
        end = self._line.find("'", self._position + 1)
        if end < 0:
            raise CommandRefused("a single quote is not closed")
        self._parts.append(self._line[self._position + 1 : end])
        self._position, self._quoted = end + 1, True

    def _double(self) -> None:
        self._quoted = True
        self._position += 1
        while self._position < len(self._line):
            character = self._line[self._position]
            following = self._line[self._position + 1 : self._position + 2]
            if character == '"':
                self._position += 1
                return
            if character == "\\" and following and following in '$`"\\\n':
                self._parts.append("" if following == "\n" else following)
                self._position += 2
                continue
            if character in "$`":
                raise CommandRefused(_DOLLAR if character == "$" else _BACKTICK)
            self._parts.append(character)
            self._position += 1
        raise CommandRefused("a double quote is not closed")

    def _escaped(self) -> None:
        following = self._line[self._position + 1 : self._position + 2]
        if not following:
            raise CommandRefused("the command ends with a backslash")
        if following != "\n":
            self._parts.append(following)
            self._quoted = True
        self._position += 2

    def _plain(self, character: str) -> None:
        if character in "$`":
            raise CommandRefused(_DOLLAR if character == "$" else _BACKTICK)
        if character in "*?[":
            raise CommandRefused(_GLOB)
        if character == "~" and self._position == self._start:
            raise CommandRefused("'~' is not expanded: write the whole path, or put it into quotes")
        if self._line.startswith("{}", self._position):
            character = "{}"
        elif character in "{}":
            raise CommandRefused(_BRACE)
        self._parts.append(character)
        self._position += len(character)


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._commands = 0

    def steps(self) -> tuple[Step, ...]:
        found: list[Step] = []
        after: Literal[";", "&&", "||"] = ";"
        self._skip_lines()
        while self._peek() is not None:
            found.append(Step(after, self._pipeline()))
            operator = self._operator()
            if operator is None:
                break
            if operator in ("&&", "||"):
                after = "&&" if operator == "&&" else "||"
                self._skip_lines()
                if self._peek() is None:
                    raise CommandRefused(f"there is no command after '{operator}'")
            else:
                after = ";"
                self._skip_lines()
        return tuple(found)

    def _pipeline(self) -> tuple[Command, ...]:
        commands = [self._command()]
        while self._operator_is("|"):
            self._position += 1
            self._skip_lines()
            commands.append(self._command())
        return tuple(commands)

    def _command(self) -> Command:
        words: list[str] = []
        redirects: list[Redirect] = []
        while (token := self._peek()) is not None:
            if token.is_operator:
                if token.text not in (">", ">>", "<", ">&"):
                    break
                redirects.append(self._redirect(1 if token.text != "<" else 0))
                continue
            self._position += 1
            if token.is_descriptor:
                redirects.append(self._redirect(_descriptor(token.text)))
                continue
            if not words:
                _check_name(token)
            words.append(token.text)
        there = self._peek()
        if there is not None and there.text in _REFUSED_OPERATORS:
            raise CommandRefused(_REFUSED_OPERATORS[there.text])
        if not words:
            where = "at the end" if there is None else f"before {there.text!r}"
            raise CommandRefused(f"a command is missing {where}")
        self._commands += 1
        if self._commands > MAX_COMMANDS:
            raise CommandRefused(f"there are more than {MAX_COMMANDS} commands")
        return Command(tuple(words), tuple(redirects))

    def _redirect(self, fd: int) -> Redirect:
        operator = self._operator()
        if (operator == "<") != (fd == 0):
            raise CommandRefused(f"'{fd}{operator}' is not supported: '<' reads 0, '>' and '>>' write 1 or 2")
        target = self._peek()
        if target is None or target.is_operator:
            raise CommandRefused(f"the file after '{operator}' is missing")
        self._position += 1
        if operator == ">&":
            if target.quoted or target.text not in ("1", "2"):
                raise CommandRefused("after '>&' only 1 or 2 is supported, as in '2>&1'")
            return Redirect(fd, "dup", target.text)
        return Redirect(fd, _KINDS[operator], target.text)

    def _operator(self) -> str | None:
        token = self._peek()
        if token is None:
            return None
        self._position += 1
        if token.text in _REFUSED_OPERATORS:
            raise CommandRefused(_REFUSED_OPERATORS[token.text])
        return token.text

    def _operator_is(self, text: str) -> bool:
        token = self._peek()
        return token is not None and token.is_operator and token.text == text

    def _peek(self) -> _Token | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def _skip_lines(self) -> None:
        while self._operator_is("\n"):
            self._position += 1


_KINDS: dict[str | None, Literal["read", "write", "append"]] = {"<": "read", ">": "write", ">>": "append"}


def _descriptor(text: str) -> int:
    if text not in ("0", "1", "2"):
        raise CommandRefused(f"the descriptor {text[:8]} cannot be redirected: only 0, 1 and 2")
    return int(text)


def _check_name(token: _Token) -> None:
    name = token.text
    if not name:
        raise CommandRefused("a command has an empty name")
    if not token.quoted and name in _RESERVED:
        raise CommandRefused(f"{name!r} is not supported: loops, conditions and functions are not available")
    if _ASSIGNMENT.match(name):
        raise CommandRefused("variables cannot be set: leave the assignment out")
