"""Every refusal of the SQL entrance says what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from sql_shop import ask

import dpquery
from dpquery.errors import Refused
from dpquery.sql.advice import ADVICE

ROOMS = [Path(dpquery.__file__).parent / room for room in ("sql", "plan")]
MAKERS = {"Refused": 0, "refuse": 0, "_refused": 0, "_refuse": 0, "refused": 0, "Mismatch": -1}  # how many arguments stand before the code


def without_advice() -> Iterator[tuple[str, str]]:
    """File and code of each refusal that names a code and nothing to write instead."""
    for path in (path for room in ROOMS for path in room.rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
            named = {word.arg: word.value for word in call.keywords}
            code = named.get("code") if name == "Mismatch" else next((a for a in call.args[:1]), None)
            if name not in MAKERS or "instead" in named or len(call.args) > 3:
                continue
            yield path.name, code.value if isinstance(code, ast.Constant) else "TYPE_MISMATCH"


def test_each_code_has_advice() -> None:
    assert {(file, code) for file, code in without_advice() if code not in ADVICE} == set()
    assert len(list(without_advice())) > 20


@pytest.mark.parametrize(
    ("sql", "code", "said"),
    [
        ("SELECT count(*) FROM users WHERE (age, country) < (30, 'US', 1)", "UNSUPPORTED_EXPRESSION", "a row of values"),
        ("SELECT count(*) FROM users WHERE country[1:1] = 'U'", "UNSUPPORTED_EXPRESSION", "x[..]"),
        ("SELECT count(*) FROM users WHERE age & 1 = 1", "UNSUPPORTED_EXPRESSION", "& of bits"),
        ("SELECT count(*) FROM users WHERE substr(country, age) = 'a'", "LITERAL_NEEDED", "literal"),
        ("SELECT count(*) FROM users WHERE replace(country, 'o', 'oooooooooooooooooooooooooooooo') = 'a'", "TOO_COMPLEX", "16 times"),
        ("SELECT count(*) FROM users WHERE age LIKE 'x'", "TYPE_MISMATCH", "not an integer"),
        ("SELECT count(* FROM users", "SYNTAX", ""),
        ("", "SYNTAX", "empty"),
    ],
)
def test_a_refusal_says_what_to_write(sql: str, code: str, said: str) -> None:
    with pytest.raises(Refused) as caught:
        ask(sql)
    assert caught.value.code == code
    assert said in caught.value.message
    assert caught.value.instead


def test_snowflakes_count_if_is_read() -> None:
    assert ask("SELECT count_if(age > 30) FROM users", dialect="snowflake").blocks[0].draft.asks[0].card == "count"
