"""What a command says when it fails, and its exit status. Nothing of an unexpected exception is shown: it may hold private values."""

from __future__ import annotations

import itertools
import secrets
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

import typer

from dpquery.cli import stream
from dpquery.display import wire
from dpquery.errors import Error, Fault, Refused

ANSWERED = 0
INTERRUPTED = 130  # what typer makes of Ctrl-C
CLICK_EXCEPTION: type[Exception] = typer.BadParameter.__mro__[2]  # the root of usage errors, which typer has moved between versions


def status(command: Callable[[], int | None], arguments: Sequence[str]) -> int:
    """The exit status of a command: 0, or that of the error it ended with, which is then told on standard error (and as JSON on standard output)."""
    try:
        returned = command()
        if returned != INTERRUPTED:
            return returned or ANSWERED
        failure: Error = _interrupted()
    except (KeyboardInterrupt, typer.Abort):
        failure = _interrupted()
    except Error as error:
        failure = error
    except CLICK_EXCEPTION as error:
        failure = _unreadable(error)
    except Exception:
        failure = Fault("INTERNAL", f"something broke inside dpquery (id {secrets.token_hex(8)})", instead="tell the data owner; no detail is shown")
    return _told(failure, arguments)


def _interrupted() -> Fault:
    return Fault("INTERRUPTED", "interrupted before an answer", instead="`dpquery budget` shows whether it had been charged")


def _unreadable(error: Exception) -> Refused:
    """The command line is wrong; what typer says of it, and whose --help shows what is right."""
    message = getattr(error, "format_message", lambda: "the command line cannot be read")()
    command = getattr(getattr(error, "ctx", None), "command_path", "dpquery")
    return Refused("USAGE", message, instead=f"`{command} --help` shows what there is")


def _told(failure: Error, arguments: Sequence[str]) -> int:
    from dpquery.display.text import safe

    if wants_json(arguments):
        with suppress(Fault):  # nobody takes it: what failed first is still told on standard error, with its own exit status
            stream.write(wire.dump(wire.error(failure)))
    entry = getattr(failure, "entry", None)
    lines = [*failure.told(_width(), "Error: ").splitlines(), *([] if entry is None else [f"Ledger entry: {entry}"])]
    stream.tell(map(safe, lines))
    return failure.exit_status


def _width() -> int:
    """The width that errors are wrapped at: the terminal's, 80 where there is none."""
    return max(40, shutil.get_terminal_size((80, 24)).columns) if sys.stderr.isatty() else 80


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON: read by hand, so that errors in the command line itself are told in JSON too."""
    return "--format=json" in arguments or ("--format", "json") in itertools.pairwise(arguments)
