"""What a command line means: words, pipes, conditions and redirects, and nothing else."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberflow.agents.shell.command_line import Command, CommandRefused, Redirect, Step, parse


def words(line: str) -> list[list[list[str]]]:
    return [[list(command.words) for command in step.commands] for step in parse(line)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("echo a  b", [[["echo", "a", "b"]]]),
        ("echo 'a  b' \"c d\"", [[["echo", "a  b", "c d"]]]),
        ("echo a'b'\"c\"\\ d", [[["echo", "abc d"]]]),
        ("echo '' \"\"", [[["echo", "", ""]]]),
        ("echo 'a\"b' \"a'b\"", [[["echo", 'a"b', "a'b"]]]),
        (r'echo "\$5 \`x\` \" \\ \n"', [[["echo", r'$5 `x` " \ \n']]]),
        (r"echo '$HOME `x` \'", [[["echo", "$HOME `x` \\"]]]),
        ("echo '(2 + 3) * 4' | bc", [[["echo", "(2 + 3) * 4"], ["bc"]]]),
        ("a;b; c", [[["a"]], [["b"]], [["c"]]]),
        ("a\nb\n\nc\n", [[["a"]], [["b"]], [["c"]]]),
        ("a |\n b &&\n c", [[["a"], ["b"]], [["c"]]]),
        ("a \\\n b", [[["a", "b"]]]),
        ("echo a\\\nb", [[["echo", "ab"]]]),
        ("echo 'a\nb'", [[["echo", "a\nb"]]]),
        ("echo a#b '#'", [[["echo", "a#b", "#"]]]),
        ("echo a=1 x~ '~' {} ]", [[["echo", "a=1", "x~", "~", "{}", "]"]]]),
        ("echo 'if' if", [[["echo", "if", "if"]]]),
        ("'if' x", [[["if", "x"]]]),
        ("echo x\u00a0y", [[["echo", "x\u00a0y"]]]),
        ("echo 2 >f", [[["echo", "2"]]]),
    ],
)
def test_words(line: str, found: Any) -> None:
    assert words(line) == found


def test_conditions() -> None:
    found = parse("a && b || c; d")
    assert [step.after for step in found] == [";", "&&", "||", ";"]


@pytest.mark.parametrize(
    ("line", "redirects"),
    [
        ("a > f", [Redirect(1, "write", "f")]),
        ("a>f", [Redirect(1, "write", "f")]),
        ("a 2>f", [Redirect(2, "write", "f")]),
        ("a >> 'f g'", [Redirect(1, "append", "f g")]),
        ("a < f", [Redirect(0, "read", "f")]),
        ("a 0<f", [Redirect(0, "read", "f")]),
        ("a > f 2>&1", [Redirect(1, "write", "f"), Redirect(2, "dup", "1")]),
        ("a >&2", [Redirect(1, "dup", "2")]),
    ],
)
def test_redirects(line: str, redirects: list[Redirect]) -> None:
    assert parse(line) == (Step(";", (Command(("a",), tuple(redirects)),)),)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("echo $HOME", "variables and substitutions"),
        ("echo $(ls)", "variables and substitutions"),
        ('echo "$(ls)"', "variables and substitutions"),
        ("echo ${x}", "variables and substitutions"),
        ("echo $((1))", "variables and substitutions"),
        ("echo $'a'", "variables and substitutions"),
        ("echo `ls`", "substitutions ('`…`')"),
        ('echo "`ls`"', "substitutions ('`…`')"),
        ("echo *.py", "patterns of file names"),
        ("echo a?", "patterns of file names"),
        ("grep [a] f", "patterns of file names"),
        ("ls ~", "'~' is not expanded"),
        ("ls ~root", "'~' is not expanded"),
        ("echo {a,b}", "brace expansions"),
        ("{ echo a; }", "brace expansions"),
        ("(echo a)", "subshells"),
        ("f() ls", "subshells"),
        ("echo a &", "background"),
        ("echo a & ls", "background"),
        ("echo a |& cat", "2>&1"),
        ("echo a &> f", "2>&1"),
        ("cat << EOF\nx\nEOF", "here-documents"),
        ("cat <<< x", "here-strings"),
        ("cat <(ls)", "process substitutions"),
        ("ls > >(cat)", "the file after '>' is missing"),
        ("ls >| f", "'>|'"),
        ("ls <> f", "'<>'"),
        ("ls <& 3", "'<&'"),
        ("ls >& f", "after '>&' only 1 or 2"),
        ("ls 2>&-", "after '>&' only 1 or 2"),
        ("ls 3> f", "descriptor 3"),
        ("ls 99999999999999999999> f", "descriptor 99999999"),
        ("ls 0> f", "'0>' is not supported"),
        ("ls 1< f", "'1<' is not supported"),
        ("echo a ;; ls", "';;'"),
        ("for x in a; do ls; done", "loops, conditions"),
        ("if true; then ls; fi", "loops, conditions"),
        ("while true; do ls; done", "loops, conditions"),
        ("! ls", "loops, conditions"),
        ("time ls", "loops, conditions"),
        ("[ -f x ]", "patterns of file names"),
        ("PATH=. ls", "variables cannot be set"),
        ("LD_PRELOAD=x.so ls", "variables cannot be set"),
        ("a[0]=1", "patterns of file names"),
        ("X+=1 ls", "variables cannot be set"),
        ("'PATH'=. ls", "variables cannot be set"),
        ("ls # all", "comments"),
        ("#ls", "comments"),
        ("echo 'a", "single quote is not closed"),
        ('echo "a', "double quote is not closed"),
        ("echo a\\", "ends with a backslash"),
        ("| ls", "missing before '|'"),
        ("ls |", "missing at the end"),
        ("ls | | cat", "missing before '|'"),
        ("ls &&", "no command after '&&'"),
        ("&& ls", "missing before '&&'"),
        ("; ls", "missing before ';'"),
        ("ls ; ; ls", "missing before ';'"),
        ("> f", "missing at the end"),
        ("ls >", "file after '>' is missing"),
        ("'' a", "empty name"),
        ("ls\x00", "control character"),
        ("ls\rrm x", "control character"),
        ("ls \x1b[2J", "control character"),
        ("ls \x85", "control character"),
        ("ls \udc80", "control character"),
        ("echo " + "a" * 20_000, "at most 16,384"),
        ("ls;" * 60, "more than 50 commands"),
    ],
)
def test_what_is_refused(line: str, said: str) -> None:
    with pytest.raises(CommandRefused) as raised:
        parse(line)
    assert said in str(raised.value)


@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused(line: str) -> None:
    try:
        parse(line)
    except CommandRefused:
        pass


PIECES = st.text(st.sampled_from("ab \\'\"$`|&;<>(){}*?[]~#=!\n\t"), max_size=12)


@given(st.lists(PIECES, min_size=1, max_size=4))
def test_quoted_text_is_received_as_it_is(arguments: list[str]) -> None:
    line = "echo " + " ".join(map(shlex.quote, arguments))
    assert words(line) == [[["echo", *arguments]]]
