"""Runs a user's program inside this process like `python program.py`; used by `run` and `explain`.

Options are passed to the program's environment as EMBERFLOW_* variables, which the public API reads. Everything that is
changed in this process (sys.argv, sys.path, os.environ) is restored when the program ends.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from emberflow.cli.exit_codes import ExitCode, exit_code_of
from emberflow.errors import EmberflowError, ProgramError


def add_written_for(parser: argparse.ArgumentParser) -> None:
    """Adds `--as`: the library that the program was written for."""
    parser.add_argument(
        "--as",
        dest="written_for",
        choices=("pyflink", "flink-agents"),
        help="the program was written for PyFlink or Flink Agents: `import pyflink` and `import flink_agents` resolve to "
        "emberflow",
    )


def run_program(
    program: str,
    arguments: Sequence[str],
    *,
    variables: Mapping[str, str],
    show_traceback: bool,
    written_for: str | None = None,
) -> int:
    """Runs the program and returns its exit code. Errors of emberflow are printed without a traceback unless one is wanted."""
    path = checked_program(program)
    with as_python_would(path, program, arguments, variables), resolving(written_for, path):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except EmberflowError as error:
            if show_traceback:
                _print_traceback(error, path)
            else:
                print(error, file=sys.stderr)
            return exit_code_of(error)
        except SyntaxError as error:
            _print_traceback(error, path)
            return ExitCode.BAD_PROGRAM
        except Exception as error:
            _print_traceback(error, path)
            return ExitCode.JOB_FAILED
    return ExitCode.OK


def is_yaml(program: str) -> bool:
    """Whether the program is a YAML file with agents."""
    return Path(program).suffix.lower() in (".yaml", ".yml")


def checked_program(program: str) -> Path:
    """The program's path; raises ProgramError if there is no such file."""
    path = Path(program)
    if path.is_dir():
        raise ProgramError(f"{program} is a folder", way_out="name the file to run")
    if not path.is_file():
        raise ProgramError(
            f"there is no program {program}", way_out=f"check the path; the current folder is {Path.cwd()}"
        )
    # Like Python: a program's `__file__` is absolute.
    return path.absolute()


def resolving(written_for: str | None, path: Path) -> AbstractContextManager[None]:
    """While a program runs that was written for another library, its imports resolve to emberflow. Used inside of
    `as_python_would`, which restores sys.path."""
    if written_for is None:
        return nullcontext()
    from emberflow.compat.finder import installed, root_of_own_modules
    from emberflow.compat.flink_agents.package import FLINK_AGENTS
    from emberflow.compat.pyflink.package import PYFLINK

    package = FLINK_AGENTS if written_for == "flink-agents" else PYFLINK
    root = root_of_own_modules(package, path.resolve())
    if root is not None and str(root) not in sys.path:
        sys.path.append(str(root))
    return installed(package)


@contextmanager
def as_python_would(
    path: Path, program: str, arguments: Sequence[str], variables: Mapping[str, str]
) -> Generator[None]:
    """What a program sees of this process: its arguments, its folder first on sys.path, EMBERFLOW_* variables."""
    saved_argv, saved_path = sys.argv, sys.path[:]
    saved_variables = {name: os.environ.get(name) for name in variables}
    sys.argv = [program, *arguments]
    if not sys.flags.safe_path:
        # Like Python, put the script's folder first, symlinks resolved; until now it is the folder of this command.
        sys.path[0] = str(path.resolve().parent)
    os.environ.update(variables)
    try:
        yield
    finally:
        sys.argv = saved_argv
        sys.path[:] = saved_path
        for name, value in saved_variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _print_traceback(error: BaseException, path: Path) -> None:
    """Prints the traceback from the program's first line on, without the frames of this command and of runpy."""
    frame = error.__traceback__
    while frame is not None and Path(frame.tb_frame.f_code.co_filename) != path:
        frame = frame.tb_next
    if frame is None and isinstance(error, SyntaxError):
        traceback.print_exception(error.with_traceback(None))
    else:
        traceback.print_exception(error.with_traceback(frame or error.__traceback__))
