"""Two doors to neighbouring data sets, each with a ledger of its own in the same state, and all that is heard through them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from inside import Inside
from worlds import World

from dpquery.backends.source import Identity
from dpquery.engine.receipt import JSON
from dpquery.engine.session import Prepared, Session
from dpquery.errors import Error, Fault
from dpquery.ledger import Ledger, create
from dpquery.release.answer import Answer
from dpquery.schema.model import Schema

DRAWN = frozenset({"time", "id", "nonce", "entry", "ledger", "commitment", "fingerprint"})
"""What is drawn or read from a clock for each entry of the log."""


def ordinary(text: str, epsilon: int) -> str:
    """The text of a world's schema with a budget that can be used up."""
    policy = f"budget: {{epsilon: {epsilon}, delta: 1e-3}}\nper_query: {{epsilon: 0.4, delta: 1e-7, max_epsilon: 2}}\n"
    return re.sub(r"unsafe_testing: true\nbudget: .*\nper_query: .*\n", policy, text, count=1)


class Door(Session):
    """A session on one of a world's catalogues, with a ledger in a folder of its own: the engine's own corridor, without a worker."""

    def __init__(self, made: World, schema: Schema, catalogue: str, folder: Path) -> None:
        folder.mkdir()
        schema = schema.model_copy(update={"file": folder / "world.yaml"})
        create(schema, folder / "world.ledger", fingerprint="registered", identity=[])
        super().__init__(schema, None, folder / "world.ledger")
        self._backend = Inside(made, catalogue)

    def _files(self) -> Identity:
        return []

    def _version(self, ledger: Ledger) -> int:
        return 1

    def _looked_at(self) -> JSON:
        return ["files"]


def files(made: World, catalogue: str, folder: Path) -> Path:
    """The schema file of one of a world's catalogues as a database file of its own."""
    folder.mkdir()
    made.con.execute("USE memory")
    with duckdb.connect(str(folder / "world.duckdb")) as con:
        for table in made.tables:
            con.register("given", made.con.sql(f'SELECT * FROM {catalogue}.main."{table}"').to_arrow_table())
            columns = ", ".join(f'"{c.name}" {c.physical}' for c in made.tables[table].columns)
            con.execute(f'CREATE TABLE "{table}" ({columns})')
            con.execute(f'INSERT INTO "{table}" SELECT * FROM given')
    file = folder / "world.yaml"
    file.write_text(ordinary(made.whole, 10))
    return file


def watched(one: Session) -> list[Prepared]:
    """The statements that the session prepares from now on."""
    found: list[Prepared] = []
    prepare = one._prepare

    def kept(*given: Any) -> Prepared:
        found.append(prepare(*given))
        return found[-1]

    one._prepare = kept  # type: ignore[method-assign]
    return found


@dataclass(frozen=True)
class Heard:
    """What one question gave: an answer or an error, what the ledger kept of it, and the plan where there was one."""

    reply: Mapping[str, Any]
    log: tuple[Any, ...]
    plan: Prepared | None
    answer: Answer | None = None

    @property
    def ended(self) -> str:
        return str(self.reply.get("code", "answered"))

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        assert self.answer is not None
        return list(zip(*(column.to_pylist() for column in self.answer.table.columns), strict=True))


class Listener:
    """A session, and how much of its log was read."""

    def __init__(self, one: Session) -> None:
        self.session, self.plans = one, watched(one)
        self.read = sum(1 for _ in one.ledger.entries())

    def hear(self, text: str, call: Mapping[str, Any]) -> Heard:
        """All that an analyst and the log learn of a question."""
        self.plans.clear()
        try:
            answer = self.session.query(text, **call)
        except Error as error:
            return Heard(told(error), self._log(), self._plan())
        return Heard(of(answer), self._log(), self._plan(), answer)

    def _plan(self) -> Prepared | None:
        return self.plans[-1] if self.plans else None

    def _log(self) -> tuple[Any, ...]:
        """The new lines of the log, without what is drawn for each, and without which files were there, of which no analyst hears."""
        new = list(self.session.ledger.entries())[self.read :]
        self.read += len(new)
        return tuple((one.event, plain({key: value for key, value in one.body.items() if key != "identity"})) for one in new)


def told(error: Error) -> Mapping[str, Any]:
    """Everything that an error says, and its kind. A fault's entry has an id that is drawn."""
    said = {"kind": type(error).__name__, "text": str(error), **error.as_dict()}
    assert not isinstance(error, Fault), f"a fault, {said}"
    return said


def of(answer: Answer) -> Mapping[str, Any]:
    """What of an answer may not depend on the data: its columns, and the receipt but for what is drawn and what the values give reason to say.
    Of caps that is which aggregates have some; which ones were used is read off what was released."""
    paper = {key: plain(value) if key == "stored" else value for key, value in answer.receipt.items() if key not in DRAWN | {"warnings", "caps"}}
    paper["caps"] = [(one["aggregate"], one.get("table")) for one in answer.receipt.get("caps", ())]
    return {"columns": answer.table.column_names, "types": answer.types, "confidence": answer.confidence, **paper}


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        drawn = DRAWN | {"sha256"} if "question" in value else DRAWN  # the hash of a stored answer, which is of released values
        return {key: plain(item) for key, item in value.items() if key not in drawn}
    return [plain(item) for item in value] if isinstance(value, list) else value


def charged(log: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The amounts of the charges among these lines."""
    for event, body in log:
        if event == "charged":
            yield tuple(Decimal(body[name]) if body.get(name) not in (None, "infinite") else body.get(name) for name in ("epsilon", "rho", "delta"))
