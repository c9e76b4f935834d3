"""The Python door, shaped like DuckDB's own client.

con = dpquery.connect("shop.yaml", analyst="alice")
r = con.query("SELECT count(*) AS n FROM orders", epsilon=0.5)
r.fetchall(), r.df(), r.intervals, r.receipt
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dpquery import engine
from dpquery.display import accounts, html, pages, text, wire, workload
from dpquery.display.together import together
from dpquery.errors import PriceWarning, Refused

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Amount = str | int | float | Decimal | Fraction
Error = Amount | Mapping[str, Amount]
Params = Sequence[Any] | Mapping[str, Any]
SHOWN = 40  # rows of a result that a prompt shows


def connect(schema: str | Path, analyst: str | None = None, ledger: str | Path | None = None) -> Connection:
    """A connection for one analyst to the data set that the schema file declares.

    Without `analyst` the account is the shared one, `default`; on a local file a name is a label, not a proof of identity. `ledger` is a
    file or postgresql://HOST/DATABASE; where it is not given the schema names it, or it lies beside the schema file.
    Raises SchemaError where the schema file is wrong.
    """
    return Connection(engine.open_session(schema, analyst, ledger))


def create_ledger(schema: str | Path, path: str | Path | None = None) -> Path | str:
    """The place of a new ledger for the schema; the data as it is now becomes the first registered version. For the data owner."""
    found = engine.create_ledger(schema, path)
    return found if isinstance(found, Path) else str(found)


class Connection:
    """One analyst's door to one data set; a context manager. Threads take turns; a forked child may go on with it."""

    def __init__(self, session: engine.Session) -> None:
        self._session: engine.Session | None = session

    def query(
        self,
        sql: str,
        params: Params | None = None,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        dialect: str = "duckdb",
        confidence: Amount | None = None,
        noise: str | None = None,
        error: Error | None = None,
        bounds: str | None = None,
        fresh: bool = False,
        tidy: bool = False,
    ) -> Result:
        """The noisy answer, after its price was charged.

        A question that this account asked before, at that price or more, is answered from the store and costs nothing; `fresh=True` draws new noise
        and pays again.

        `epsilon` (or `rho`) and `delta` are the price of the whole statement; without them the schema's `per_query` decides. `params` are the
        values of `?` (a list) or of `$name` (a dict); they are part of the question, which the log keeps. `noise` is laplace or gaussian; without
        it the one that errs least is taken, with a PriceWarning before the first charge that has no finite epsilon. `error`, in place of a price,
        is how far off the answer may be (50, "5% of 20000", {"n": 50}): the least price for that is found and charged. `bounds="auto"`
        chooses bounds of COUNT, SUM and AVG that the statement does not write from the data, within its price. With `tidy=True` a column of tidied
        values stands behind each released one of which more is known than its noise: `n_tidy`, not below 0, behind `n`. Raises Refused or OverBudget
        before anything is charged, and Fault, whose `entry` is set where the price had been charged.
        """
        price: engine.Wanted = {**_price(epsilon, delta, rho, confidence, noise, error, bounds), "tidy": tidy}
        return Result(self._open.query(_text(sql), dialect=dialect, params=params, fresh=fresh, notice=_noticed, **price))

    def explain(
        self,
        sql: str,
        params: Params | None = None,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        dialect: str = "duckdb",
        confidence: Amount | None = None,
        noise: str | None = None,
        error: Error | None = None,
        bounds: str | None = None,
    ) -> Explanation:
        """Price, split, sensitivity, noise and expected error of a statement, and what it would cost this account now (`now`).

        No private row is read and nothing is charged.
        """
        price = _price(epsilon, delta, rho, confidence, noise, error, bounds)
        found = self._open.explain(_text(sql), dialect=dialect, params=params, **price)
        return Explanation(**_fields(found))

    def profile(self, table: str, *, epsilon: Amount | None = None, target: Amount | None = None, write: bool = True) -> dict[str, Any]:
        """Caps and bounds of a private table, chosen once from noisy histograms; the price is charged. `target` is the epsilon of later statements.

        They are written into the schema file with their origin, unless `write=False`; connections made after that know them.
        """
        from dpquery.engine import profile as profiling

        found = profiling.profile(self._open, _text(table), epsilon, target)
        if write:
            profiling.write(self._open.schema.file, found)
        return found.as_dict()

    def budget(self) -> Budget:
        """What this analyst's account has spent and what it has left."""
        session = self._open
        return Budget(**_fields(session.budget()), fits=engine.fits(session))

    def what_if(
        self,
        statements: str,
        *,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
        dialect: str = "duckdb",
        confidence: Amount | None = None,
        noise: str | None = None,
        error: Error | None = None,
    ) -> Workload:
        """What statements, with `;` between them, would cost this account in order, and which of them fit. Nothing is charged."""
        price = _price(epsilon, delta, rho, confidence, noise, error)
        return Workload(**_fields(self._open.what_if(_text(statements), dialect=dialect, **price)))

    def tables(self) -> Tables:
        """What can be asked of: the declared tables and columns."""
        return Tables(self._open.tables())

    def close(self) -> None:
        """Nothing is left open. Closing twice is fine."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @property
    def _open(self) -> engine.Session:
        if self._session is None:
            raise Refused("CLOSED", "the connection is closed", instead="connect again")
        return self._session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Explanation(engine.Explanation):
    """What a statement would cost; shown as text for people."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _shown(pages.explanation(self))


@dataclass(frozen=True, slots=True, repr=False)
class Budget(engine.Balance):
    """An account; shown as text for people. `fits` says how many more pure queries of some prices the account can pay."""

    fits: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        """The JSON of `dpquery budget --format json`."""
        return {**engine.Balance.as_dict(self), "fits": dict(self.fits)}

    def together(self, units: int) -> Mapping[str, Any]:
        """What is promised to so many people together, as `dpquery budget --units` shows it."""
        return together(self, units)

    def __repr__(self) -> str:
        return _shown(accounts.budget(self, self.fits))


class Workload(engine.Workload):
    """What statements would cost together; shown as text for people."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _shown(workload.workload(self))


class Tables(tuple[engine.TableInfo, ...]):
    """The declared tables; shown as text for people."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _shown(pages.tables(self))


def _fields(found: Any) -> dict[str, Any]:
    return {field.name: getattr(found, field.name) for field in fields(found)}


def _shown(lines: pages.Lines) -> str:
    return text.as_text(lines).rstrip("\n")


def _price(
    epsilon: Amount | None,
    delta: Amount | None,
    rho: Amount | None,
    confidence: Amount | None,
    noise: str | None,
    error: Error | None,
    bounds: str | None = None,
) -> engine.Wanted:
    return {"epsilon": epsilon, "delta": delta, "rho": rho, "confidence": confidence, "noise": noise, "error": error, "bounds": bounds}


def _noticed(text: str) -> None:
    warnings.warn(text, PriceWarning, stacklevel=4)


def _text(sql: str) -> str:
    if not isinstance(sql, str):
        raise Refused("NOT_A_TEXT", f"a statement is text, not {type(sql).__name__}", instead="con.query('SELECT COUNT(*) FROM ..')")
    return sql


class Result:
    """An answer: noisy rows, their error bars, and the receipt. Rows that were fetched are gone from `fetchone`, never from `df` or `arrow`."""

    def __init__(self, answer: engine.Answer) -> None:
        self._answer = answer
        self._rest: Iterator[tuple[Any, ...]] = iter(wire.rows(answer))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._answer.table.column_names)

    @property
    def types(self) -> list[str]:
        """The SQL types of the columns."""
        return list(self._answer.types)

    @property
    def intervals(self) -> Mapping[str, Sequence[tuple[Any, Any] | list[Any] | None]]:
        """For each column that has error bars: (low, high) for each row, of a list for each of its values; None where there is none."""
        return {name: list(bars) for name, bars in wire.named_intervals(self._answer).items()}

    @property
    def confidence(self) -> float:
        """The confidence level of the intervals."""
        return float(self._answer.confidence)

    @property
    def warnings(self) -> list[str]:
        """What to know before using the numbers."""
        return list(self._answer.warnings)

    @property
    def receipt(self) -> Mapping[str, Any]:
        """What was paid for which noise under which bounds, and what is left on the account; JSON-ready."""
        return self._answer.receipt

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that were not fetched yet, as Python values."""
        return list(self._rest)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None after the last one."""
        return next(self._rest, None)

    def arrow(self) -> pa.Table:
        """The rows as a pyarrow table."""
        return self._answer.table

    def df(self) -> pd.DataFrame:
        """The rows as a pandas data frame; BIGINT and BOOLEAN columns keep their type where some rows are NULL."""
        import pandas as pd
        import pyarrow as pa

        kept = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        table = self._answer.table
        nullable = {field.type for field, column in zip(table.schema, table.columns, strict=True) if column.null_count}
        return table.to_pandas(types_mapper=lambda kind: kept.get(kind) if kind in nullable else None)

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract of `dpquery query --format json`."""
        return wire.document(self._answer)

    def __len__(self) -> int:
        return int(self._answer.table.num_rows)

    def __repr__(self) -> str:
        return _shown(iter(text.answer_lines(self._answer, SHOWN)))

    def _repr_html_(self) -> str:
        return html.table(self._answer)
