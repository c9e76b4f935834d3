"""A ledger that is not beside the schema: in another file, or in PostgreSQL, named by --ledger, by connect or by the schema. No password is shown."""

from __future__ import annotations

import json
from pathlib import Path

import people
import postgres
import pytest
from command_line import Command

import dpquery
from dpquery.engine import open_ledger, verify_ledger
from dpquery.engine.papers import verify_receipt
from dpquery.errors import Fault, Refused, SchemaError

COUNT = "SELECT count(*) AS n FROM people"
PASSWORD = "geheim"


def named(schema: Path, place: str) -> Path:
    """The schema, which names its ledger."""
    schema.write_text(f"ledger: {place}\n{schema.read_text()}")
    return schema


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """A data set without a ledger."""
    return people.write(tmp_path / "people", terms=people.ORDINARY)


@pytest.fixture
def url() -> str:
    """A place in a database, whose URL holds a password (which the server does not ask for)."""
    return postgres.database().replace("postgres:@", f"postgres:{PASSWORD}@")


def test_connect_and_the_commands_take_the_url_of_a_database(schema: Path, url: str, command: Command, tmp_path: Path) -> None:
    made = dpquery.create_ledger(schema, url)
    assert isinstance(made, str)
    assert made.startswith("postgresql:///postgres?host=")
    with dpquery.connect(schema, ledger=url) as con:
        answer = con.query(COUNT, epsilon="0.5")
        again = con.query(COUNT, epsilon="0.5")
        assert answer.fetchall() == again.fetchall(), "the same question is answered from the store"
        assert str(con.budget().spent.epsilon) == "0.5"
    paper = tmp_path / "receipt.json"
    paper.write_text(json.dumps(answer.receipt, default=str))
    assert verify_receipt(paper, schema=schema, ledger=url).findings == ()
    assert verify_ledger(schema, url) == ()
    shown = [
        command("query", COUNT, "--schema", schema, "--ledger", url, "--epsilon", "0.25", "--format", "json"),
        command("budget", "--schema", schema, "--ledger", url, "--format", "json"),
        command("ledger", "list", "--schema", schema, "--ledger", url),
        command("ledger", "export", "--schema", schema, "--ledger", url),
        command("ledger", "verify", "--schema", schema, "--ledger", url),
        command("ledger", "backup", "--schema", schema, "--ledger", url, "--out", tmp_path / "copy"),
        command("ledger", "create", "--schema", schema, "--ledger", url),
    ]
    assert [one.status for one in shown] == [0] * 6 + [2]
    assert PASSWORD not in str(answer.receipt) + str([(one.out, one.err) for one in shown])
    assert verify_ledger(schema, tmp_path / "copy") == ()
    assert not schema.with_suffix(".ledger").exists()


def test_the_schema_names_the_ledger(schema: Path) -> None:
    named(schema, postgres.database())
    dpquery.create_ledger(schema)
    with dpquery.connect(schema) as con:
        con.query(COUNT, epsilon="0.5")
    with open_ledger(schema) as opened:
        assert [line.event for line in opened.entries()][-2:] == ["charged", "released"]


def test_the_schema_names_another_file(schema: Path) -> None:
    (schema.parent / "books").mkdir()
    assert dpquery.create_ledger(named(schema, "books/of.ledger")) == schema.parent / "books" / "of.ledger"
    with dpquery.connect(schema) as con:
        con.query(COUNT, epsilon="0.5")
    assert verify_ledger(schema) == ()


@pytest.mark.parametrize("place", [f"postgresql://u:{PASSWORD}@h/d", f"postgresql://h/d?password={PASSWORD}", f"postgresql://u:{PASSWORD}/@h/d"])
def test_a_password_in_a_schema_is_refused_and_not_repeated(place: str, schema: Path) -> None:
    with pytest.raises(SchemaError) as caught:
        dpquery.connect(named(schema, place))
    assert caught.value.code == "BAD_PATH"
    assert caught.value.instead
    assert PASSWORD not in str(caught.value)


def test_what_goes_wrong_shows_no_password(schema: Path, command: Command) -> None:
    nowhere = f"postgresql://u:{PASSWORD}@/postgres?host=/nowhere"
    with pytest.raises(Fault) as fault:
        dpquery.create_ledger(schema, nowhere)
    with pytest.raises(Refused) as refused:
        dpquery.connect(schema, ledger=f"postgresql://u:{PASSWORD}/@h")
    said = command("budget", "--schema", schema, "--ledger", nowhere, "--format", "json")
    assert (fault.value.code, refused.value.code, said.status) == ("LEDGER_FAILED", "USAGE", 5)
    assert PASSWORD not in f"{fault.value} {refused.value} {said.out} {said.err}"
