"""Nothing that the parser says while a statement is read reaches standard error; elsewhere in the same program its log is as it was."""

from __future__ import annotations

import contextlib
import logging

import pytest
from sql_shop import ask

from dpquery.errors import Refused


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM users u WHERE age > (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) AVG(age) FROM users)",
        "ALTER TABLE users FROBNICATE x",
    ],
)
def test_nothing_is_written(sql: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    with contextlib.suppress(Refused):
        ask(sql)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    logging.getLogger("sqlglot").warning("heard")
    assert [record.message for record in caplog.records] == ["heard"]
