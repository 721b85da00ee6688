"""The exit codes of all `emberflow` commands."""

from __future__ import annotations

from enum import IntEnum

from emberflow.errors import EmberflowError, EnvironmentProblem, ProgramError


class ExitCode(IntEnum):
    """Exit codes; a program that calls `sys.exit(n)` itself keeps its `n`."""

    OK = 0
    JOB_FAILED = 1
    BAD_PROGRAM = 2
    ENVIRONMENT = 3
    INTERRUPTED = 130


EXIT_CODES_HELP = """\
exit codes:
  0    success
  1    the job failed, or the program raised an error
  2    wrong usage, or a program that cannot be run
  3    this machine lacks something (see `emberflow doctor`)
  130  interrupted with Ctrl-C
"""


def exit_code_of(error: EmberflowError) -> ExitCode:
    """The exit code for an error."""
    if isinstance(error, ProgramError):
        return ExitCode.BAD_PROGRAM
    if isinstance(error, EnvironmentProblem):
        return ExitCode.ENVIRONMENT
    return ExitCode.JOB_FAILED
