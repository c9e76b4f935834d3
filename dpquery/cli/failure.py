"""What a command says when it fails, and its exit status. Nothing of an unexpected exception is shown: it may hold private values."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Sequence

import typer

from dpquery.display import wire
from dpquery.errors import Error, Fault, Refused

ANSWERED = 0
INTERRUPTED = 130  # what typer makes of Ctrl-C
CLICK_EXCEPTION: type[Exception] = typer.BadParameter.__mro__[2]  # the root of usage errors, which typer has moved between versions


def status(command: Callable[[], int | None], arguments: Sequence[str]) -> int:
    """The exit status of a command: 0, or that of the error it ended with, which is then told on standard error (and as JSON on standard output)."""
    try:
        returned = command()
        sys.stdout.flush()
        if returned != INTERRUPTED:
            return returned or ANSWERED
        failure: Error = _interrupted()
    except (KeyboardInterrupt, typer.Abort):
        failure = _interrupted()
    except BrokenPipeError:
        return _nobody_reads()
    except Error as error:
        failure = error
    except CLICK_EXCEPTION as error:
        failure = Refused("USAGE", getattr(error, "message", "") or "the command cannot be read", instead=_help(arguments))
    except Exception:
        failure = Fault("INTERNAL", f"something broke inside dpquery (id {secrets.token_hex(8)})", instead="tell the data owner; no detail is shown")
    return _told(failure, arguments)


def _interrupted() -> Fault:
    return Fault("INTERRUPTED", "interrupted before an answer", instead="`dpquery budget` shows whether it had been charged")


def _help(arguments: Sequence[str]) -> str:
    words = [word for word in arguments[:2] if word.isalpha()]
    return f"`{' '.join(['dpquery', *words, '--help'])}` shows the options"


def _told(failure: Error, arguments: Sequence[str]) -> int:
    from dpquery.display.text import safe

    try:
        if wants_json(arguments):
            sys.stdout.write(wire.dump(wire.error(failure)))
            sys.stdout.flush()
        entry = getattr(failure, "entry", None)
        lines = [*str(failure).splitlines(), *([] if entry is None else [f"Ledger entry: {entry}"])]
        sys.stderr.write("\n".join(["Error: " + safe(lines[0]), *map(safe, lines[1:])]) + "\n")
    except BrokenPipeError:
        _nobody_reads()
    return failure.exit_status


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON: read by hand, so that errors in the command line itself are told in JSON too."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(word == "--format=json" or (word == "--format" and value == "json") for word, value in pairs)


def _nobody_reads() -> int:
    """The reader of standard output went away, as `head` does: not an error. The stream is silenced for the interpreter's own last flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ANSWERED
