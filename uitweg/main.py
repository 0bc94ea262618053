"""The command line: `uitweg COMMAND …`.

To add a command, write `uitweg/commands/NAME.py` and one line in `COMMANDS` below:

    "serve": Entry("uitweg.commands.serve:serve", "Host a model on this machine."),

The attribute is either a function, with its options as typer writes them (its docstring is the
help of that command), or a `typer.Typer` with commands of its own. The module is imported only when
its command is used, so `uitweg --help` stays quick whatever the commands need. What a function
returns, if it is an `int`, is the exit code; `raise typer.Exit(code)` does the same.

Errors: an exception whose class is defined in one of our packages is for the person. It is printed
as `uitweg: MESSAGE` on stderr, without a traceback; its attribute `exit_code` is used if it has
one, 1 otherwise. Any other exception is a mistake of ours, and its message says so.
`UITWEG_DEBUG=1` shows the traceback of both.

    0 done   1 failed   2 wrong usage   130 Ctrl-C        (`uitweg run` and its kin have more)
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

PACKAGES = frozenset({"harness", "local", "models", "server", "uitweg", "web"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: where it is (`module:attribute`), and its line in `uitweg --help`."""

    target: str
    help: str


COMMANDS = {
    "start": Entry("uitweg.commands.start:start", "Host the model and open the page."),
    "run": Entry("uitweg.commands.run:run", "Carry out one task."),
    "resume": Entry("uitweg.commands.resume:resume", "Go on with a run that stopped."),
    "approve": Entry("uitweg.commands.decide:approve", "Let the waiting call run, and go on."),
    "reject": Entry("uitweg.commands.decide:reject", "Refuse the waiting call, and go on."),
    "cancel": Entry("uitweg.commands.cancel:cancel", "Stop a run."),
    "runs": Entry("uitweg.commands.runs:runs", "List runs."),
    "show": Entry("uitweg.commands.show:show", "Show one run, step by step."),
    "trace": Entry("uitweg.commands.trace:trace", "Print a run's events as JSON lines."),
    "rules": Entry("uitweg.commands.rules:rules", "Show the standing rules."),
    "serve": Entry("uitweg.commands.serve:serve", "Host a model on this machine."),
    "compare": Entry("uitweg.commands.compare:compare", "Two runs side by side."),
    "experiment": Entry("uitweg.commands.experiment:experiment", "Many tasks, measured."),
    "figures": Entry("uitweg.commands.figures:figures", "Make the published figures again."),
    "doctor": Entry("uitweg.commands.doctor:doctor", "Say what is wrong here, and with a model."),
    "config": Entry("uitweg.commands.config:config", "Show the settings, and where from."),
    "record": Entry("uitweg.commands.record:record", "Write a run as a file to play back."),
    "models": Entry("uitweg.commands.models:app", "The model files: list, add, fetch, verify."),
    "bench": Entry("uitweg.commands.bench:app", "Measure the engine on this machine."),
}


class LazyGroup(TyperGroup):
    """Knows its commands by name and one line each; imports one when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  the name is typer's
        """The names, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command if it has been imported, else a stand-in that has its help line only."""
        entry = COMMANDS.get(cmd_name)
        if cmd_name in self.commands or entry is None:
            return super().get_command(ctx, cmd_name)
        return TyperCommand(cmd_name, help=entry.help, short_help=entry.help)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that is called."""
        if args and args[0] not in COMMANDS and (near := get_close_matches(args[0], COMMANDS, 1)):
            ctx.fail(f"No such command '{args[0]}'. Did you mean {near[0]}?")
        if args and args[0] in COMMANDS and args[0] not in self.commands:
            self.add_command(_load(args[0]), args[0])
        return super().resolve_command(ctx, args)


def main() -> None:
    """The entry point of the program: carry out `sys.argv` and exit."""
    sys.exit(run(sys.argv[1:]))


def run(args: Sequence[str]) -> int:
    """Carry out one command line.

    Returns:
        The exit code. Every error has been told on stderr by then.
    """
    try:
        result = get_command(_app())(args=list(args), prog_name="uitweg", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        # Whoever read our output has left, as `head` does. What is still in the buffer has
        # nowhere to go; without this the interpreter would complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001  the last resort: every command's errors end here
        return _tell(error)
    return result if isinstance(result, int) else 0


def _app() -> typer.Typer:
    app = typer.Typer(
        name="uitweg",
        cls=LazyGroup,
        help="Run an agent on a model that your own CPU hosts, and see why it ended.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # a plain help text: rich's takes three times as long to import
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    return app


def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=lambda wanted: _version(wanted)
    ),
) -> None:
    """What may stand before the command."""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"uitweg {version('uitweg')}")
        raise typer.Exit


def _load(name: str) -> Any:
    """Import a command and make it what the group can call."""
    module, _, attribute = COMMANDS[name].target.partition(":")
    target = getattr(import_module(module), attribute)
    if not isinstance(target, typer.Typer):
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(target)
        target = single
    command = get_command(target)
    command.name = name
    return command


def _tell(error: Exception) -> int:
    """Say what went wrong and give the exit code for it."""
    if os.environ.get("UITWEG_DEBUG") == "1":
        traceback.print_exception(error)
    if hasattr(error, "format_message"):  # wrong usage, told by typer's click
        message = error.format_message()
        if message.startswith("Usage:"):  # no arguments at all: the help is the message
            typer.echo(message, err=True)
            return _code(error)
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "uitweg"
        return _say(f"{message}\nSee: {path} --help", error)
    if type(error).__module__.partition(".")[0] in PACKAGES:
        return _say(str(error), error)
    return _say(
        f"a mistake of ours stopped this: {type(error).__name__}: {error}\n"
        "UITWEG_DEBUG=1 shows where.",
        error,
    )


def _say(text: str, error: Exception) -> int:
    typer.echo(f"uitweg: {text}", err=True)
    return _code(error)


def _code(error: Exception) -> int:
    code = getattr(error, "exit_code", 1)
    return code if isinstance(code, int) else 1
