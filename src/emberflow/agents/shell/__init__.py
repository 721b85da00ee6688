"""The shell tool of agents: command lines that are parsed here and run without a shell.

`command_line.py` parses, `shell_policy.py` decides what may run, `supervisor.py` runs it in a process of its own,
`shell_run.py` starts that process, `orphans.py` cleans up if it is killed, `bash_tool.py` is the tool. Loaded only if a chat model allows commands.
"""

from emberflow.agents.shell.bash_tool import BASH_TOOL, BashTool
from emberflow.agents.shell.shell_run import ShellLimits

__all__ = ["BASH_TOOL", "BashTool", "ShellLimits"]
