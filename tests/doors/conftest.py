from __future__ import annotations

import pytest
from command_line import Command, Told

from dpquery.cli.main import run


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs one command line in this process; no error may show a traceback."""

    def call(*words: object) -> Told:
        capfd.readouterr()
        status = run([str(word) for word in words])
        told = Told(status, *capfd.readouterr())
        assert "Traceback" not in told.out + told.err
        return told

    return call
