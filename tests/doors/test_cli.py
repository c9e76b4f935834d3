"""The command line: what it prints where, its exit status, and that nothing is charged without an answer."""

from __future__ import annotations

import datetime
import io
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from command_line import Command, Told

from dpquery.cli.params import given
from dpquery.errors import Refused

COUNT = "SELECT count(*) AS n FROM orders"


@pytest.fixture(scope="module")
def schema(shop: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shop(tmp_path_factory.mktemp("cli") / "demo")


@pytest.fixture
def fresh(shop: Callable[[Path], Path], tmp_path: Path) -> Path:
    return shop(tmp_path / "demo")


def spent(command: Command, schema: Path, analyst: str = "default") -> Any:
    return command("budget", "--schema", schema, "--analyst", analyst, "--format", "json").json["spent"]


# ---- help --------------------------------------------------------------------------------------------------------------------------------


def test_help_lists_the_commands(command: Command) -> None:
    told = command("--help")
    assert told.status == 0
    for name in ("demo", "tables", "init", "query", "explain", "budget", "ledger", "check", "proofs"):
        assert re.search(rf"^  {name} ", told.out, re.MULTILINE)


def test_help_is_cheap() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "dpquery", "--help"], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.4


def test_no_command_waits_for_pandas(fresh: Path) -> None:
    script = "import sys; from dpquery.cli import main\ntry: main()\nfinally: assert 'pandas' not in sys.modules"
    words = ["query", COUNT, "--schema", str(fresh), "--epsilon", "0.1", "--format", "csv"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "n"), done.stderr


def test_version(command: Command) -> None:
    import dpquery

    assert command("--version").out == f"dpquery {dpquery.__version__}\n"


# ---- answers -----------------------------------------------------------------------------------------------------------------------------


def test_table(command: Command, schema: Path) -> None:
    told = command("query", "SELECT status, count(*) AS n, avg(amount) AS mean FROM orders GROUP BY status", "--schema", schema, "--epsilon", "0.1")
    assert told.status == 0
    assert re.search(r"^shipped +\d+ ± \d+", told.out, re.MULTILINE)
    assert "epsilon 0.1" in told.out
    assert max(map(len, told.out.splitlines())) <= 80


def test_json(command: Command, schema: Path) -> None:
    told = command("query", COUNT, "--schema", schema, "--epsilon", "0.1", "--format", "json")
    assert told.status == 0
    content = told.json
    assert list(content) == ["columns", "rows", "intervals", "confidence", "warnings", "receipt"]
    assert content["columns"] == [{"name": "n", "type": "BIGINT"}]
    ((count,),) = content["rows"]
    ((low, high),) = content["intervals"]["n"]
    assert low <= count <= high
    assert content["receipt"]["price"]["epsilon"] == "0.1"
    assert content["receipt"]["analyst"] == "default"


def test_csv_and_receipt_apart(command: Command, schema: Path) -> None:
    told = command("query", COUNT, "--schema", schema, "--epsilon", "0.1", "--format", "csv", "--fresh")
    assert re.fullmatch(r"n\n\d+\n", told.out)
    assert "Paid: epsilon 0.1" in told.err


def test_from_a_file(command: Command, schema: Path, tmp_path: Path) -> None:
    question = tmp_path / "q.sql"
    question.write_text(COUNT + ";\n")
    assert command("query", "-f", question, "--schema", schema, "--epsilon", "0.01", "--format", "json").status == 0


def test_from_standard_input(command: Command, schema: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(COUNT.encode())))
    assert command("explain", "-", "--schema", schema, "--format", "json").status == 0


@pytest.mark.parametrize(("name", "starts"), [("a.csv", b"n\n"), ("a.json", b"{"), ("a.parquet", b"PAR1"), ("a.txt", b"n\n")])
def test_the_name_of_the_file_says_the_format(command: Command, schema: Path, tmp_path: Path, name: str, starts: bytes) -> None:
    assert command("query", COUNT, "--schema", schema, "--epsilon", "0.01", "--out", tmp_path / name).status == 0
    assert (tmp_path / name).read_bytes().lstrip(b" ").startswith(starts)


@pytest.mark.parametrize("name", ["a.xlsx", "a.md", "a.csv.gz"])
def test_an_unknown_ending_is_refused_before_the_charge(command: Command, schema: Path, tmp_path: Path, name: str) -> None:
    spent = json.loads(command("budget", "--schema", schema, "--format", "json").out)["spent"]
    told = command("query", COUNT, "--schema", schema, "--epsilon", "0.01", "--out", tmp_path / name)
    assert told.status == 2
    assert ".csv, .json, .parquet or .txt" in told.err.replace("\n ", "")
    assert not (tmp_path / name).exists()
    assert json.loads(command("budget", "--schema", schema, "--format", "json").out)["spent"] == spent


def test_an_error_is_wrapped_but_not_what_one_would_paste(command: Command, schema: Path) -> None:
    many = ", ".join(["count(*)"] * 20)
    told = command("query", f"SELECT {many}, max(amount) FROM orders", "--schema", schema)
    lines = told.err.splitlines()
    assert lines[-1] == f"Accepted, the 0.99 quantile, not the largest value: SELECT {many}, quantile_cont(amount, 0.99) FROM orders"
    told = command("query", "SELECT count(*) FROM users GROUP BY width_bucket(" + "age, " * 30 + "age)", "--schema", schema / "nothing")
    assert all(len(line) <= 80 or line.endswith("shop.yaml/nothing:") for line in told.err.splitlines())
    error = Refused("USAGE", "many words " * 20 + "and `one command that is never broken`", instead="SELECT " + "x, " * 60)
    assert "`one command that is never broken`" in error.told(80)
    assert max(map(len, error.told(80).splitlines()[:-1])) <= 80
    assert error.told(80).endswith("x, x, ")
    assert str(error) == error.told()


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_out(command: Command, schema: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "answer"
    out.write_text("before")
    told = command("query", COUNT, "--schema", schema, "--epsilon", "0.01", "--fresh", "--format", form, "--out", out)
    assert told.status == 0
    assert told.out == ""
    assert "Paid: epsilon 0.01" in told.err
    if form == "parquet":
        assert pq.read_table(out).column_names == ["n"]
    else:
        assert out.read_text() != "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer"]


def test_rho(command: Command, schema: Path) -> None:
    told = command("query", COUNT, "--schema", schema, "--rho", "0.0001", "--delta", "1e-9", "--format", "json")
    assert told.json["receipt"]["price"]["asked_in"] == "rho"


def test_explain(command: Command, schema: Path) -> None:
    before = spent(command, schema)
    told = command(
        "explain", "SELECT status, avg(amount) AS mean FROM orders GROUP BY status", "--schema", schema, "--epsilon", "0.5", "--format", "json"
    )
    assert told.status == 0
    content = told.json
    assert content["price"]["epsilon"] == "0.5"
    assert {"aggregate", "l0", "linf", "l1", "l2_squared", "noise", "scale", "step", "expected_error", "lemmas"} <= set(content["releases"][0])
    assert content["keys"]["rule"] == "listed"
    assert "SELECT" in content["sql"]
    assert spent(command, schema) == before
    people = command("explain", COUNT, "--schema", schema, "--epsilon", "0.5")
    assert "epsilon 0.5" in people.out


def test_budget(command: Command, fresh: Path) -> None:
    before = command("budget", "--schema", fresh, "--format", "json").json
    assert before["spent"] == {"epsilon": "0", "rho": "0", "delta": "0"}
    assert before["cap"] == {"epsilon": "2", "delta": "0.0000002"}
    command("query", COUNT, "--schema", fresh, "--epsilon", "0.5")
    after = command("budget", "--schema", fresh, "--format", "json").json
    assert after["spent"]["epsilon"] == "0.5"
    assert command("budget", "--schema", fresh, "--analyst", "alice", "--format", "json").json["spent"]["epsilon"] == "0"
    shown = command("budget", "--schema", fresh).out
    assert "epsilon 0.5" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_tables(command: Command, schema: Path) -> None:
    assert "0 to 500, step 0.01" in command("tables", "--schema", schema).out
    content = command("tables", "--schema", schema, "--format", "json").json
    assert [table["name"] for table in content] == ["users", "orders", "order_items", "countries", "categories", "kept_orders"]
    assert content[-1]["view"].startswith("SELECT")
    assert "kept_orders (view)\nSELECT" in command("tables", "--schema", schema).out


# ---- refusals ----------------------------------------------------------------------------------------------------------------------------


def refused(told: Told, status: int, code: str) -> Any:
    """The error, in both forms: JSON on standard output, text for people on standard error."""
    assert told.status == status, told
    error = told.json["error"]
    assert error["code"] == code
    assert set(error) >= {"code", "message", "position", "instead"}
    assert " ".join(told.err.split()).startswith(f"Error: {code}: {error['message']}"[:60])
    return error


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf", "-inf", "0.1 ", " 0.1", "", "abc", "1e", "0x1", "1_0", "1e9999", "51", "2.5"])
def test_bad_epsilon(command: Command, schema: Path, amount: str) -> None:
    before = spent(command, schema)
    told = command("query", COUNT, "--schema", schema, f"--epsilon={amount}", "--format", "json")
    assert told.status == 2
    assert told.json["error"]["instead"]
    assert spent(command, schema) == before


@pytest.mark.parametrize("amount", ["-1e-9", "1", "1.01", "nan", "2"])
def test_bad_delta(command: Command, schema: Path, amount: str) -> None:
    assert command("query", COUNT, "--schema", schema, f"--delta={amount}", "--format", "json").status == 2


@pytest.mark.parametrize(
    "words", [("--epsilon", "0.1", "--rho", "0.1"), ("--rho", "0"), ("--confidence", "1"), ("--confidence", "x"), ("--dialect", "klingon")]
)
def test_bad_options(command: Command, schema: Path, words: tuple[str, ...]) -> None:
    assert command("query", COUNT, "--schema", schema, *words, "--format", "json").status == 2


def test_unknown_table(command: Command, schema: Path) -> None:
    told = command("query", "SELECT count(*) FROM order", "--schema", schema, "--format", "json")
    assert told.status == 2
    told = command("query", "SELECT count(*)\nFROM ordrs", "--schema", schema, "--format", "json")
    assert told.status == 2
    assert told.json["error"]["position"] == {"line": 2, "column": 6}
    assert "orders" in told.out
    assert "ordrs" in told.err


@pytest.mark.parametrize("words", [(), ("SELECT 1", "-f", "x.sql"), ("-f", "no-such-file.sql"), ("--nonsense",), ("SELECT 1", "SELECT 2")])
def test_bad_usage(command: Command, schema: Path, words: tuple[str, ...]) -> None:
    told = command("query", *words, "--schema", schema, "--format=json")
    refused(told, 2, "USAGE")


def test_no_schema_given(command: Command) -> None:
    refused(command("query", COUNT, "--format", "json"), 2, "USAGE")
    assert command("nonsense").status == 2
    assert command("query", COUNT, "--schema", "x.yaml", "--format", "xml").status == 2


def test_errors_for_people_only_where_json_is_not_asked_for(command: Command, schema: Path) -> None:
    told = command("query", "SELECT user_id FROM orders", "--schema", schema)
    assert told.status == 2
    assert told.out == ""
    assert "Instead: " in told.err


def test_out_is_tried_before_the_charge(command: Command, schema: Path, tmp_path: Path) -> None:
    before = spent(command, schema)
    for out in (tmp_path / "no" / "such" / "folder", tmp_path):
        refused(command("query", COUNT, "--schema", schema, "--out", out, "--format", "json"), 2, "NO_FILE")
    assert spent(command, schema) == before


def test_over_budget(command: Command, fresh: Path) -> None:
    assert command("query", COUNT, "--schema", fresh, "--epsilon", "2").status == 0
    before = spent(command, fresh)
    told = command("query", COUNT, "--schema", fresh, "--epsilon", "0.1", "--fresh", "--format", "json")
    assert told.status == 3
    assert told.json["error"]["code"] == "OVER_BUDGET"
    assert spent(command, fresh) == before
    assert command("query", COUNT, "--schema", fresh, "--epsilon", "0.1", "--analyst", "alice").status == 0


def test_bad_schema(command: Command, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("dataset: x\nbudgit: {epsilon: 1}\n")
    told = command("query", COUNT, "--schema", bad, "--format", "json")
    assert told.status == 4
    assert "bad.yaml" in told.out
    assert command("tables", "--schema", tmp_path / "none.yaml").status in (4, 5)


def test_changed_data(command: Command, fresh: Path) -> None:
    import duckdb

    with duckdb.connect(str(fresh.with_suffix(".duckdb"))) as connection:
        connection.execute("DELETE FROM orders WHERE order_id = 1")
    told = command("query", COUNT, "--schema", fresh, "--format", "json")
    assert told.status == 4
    assert spent(command, fresh)["epsilon"] == "0"
    told = command("check", fresh, "--register", "--format", "json")
    assert told.status == 0
    assert told.json["version"] == 2
    assert command("query", COUNT, "--schema", fresh).status == 0


def test_missing_data(command: Command, fresh: Path) -> None:
    fresh.with_suffix(".duckdb").unlink()
    told = command("query", COUNT, "--schema", fresh, "--format", "json")
    assert told.status == 5
    assert told.json["error"]["message"]


def test_missing_ledger(command: Command, fresh: Path) -> None:
    fresh.with_suffix(".ledger").unlink()
    told = command("query", COUNT, "--schema", fresh, "--format", "json")
    assert told.status == 5
    assert "ledger create" in told.json["error"]["instead"]


def test_corrupt_ledger(command: Command, fresh: Path) -> None:
    fresh.with_suffix(".ledger").write_bytes(b"not a database at all" * 1000)
    assert command("query", COUNT, "--schema", fresh, "--format", "json").status == 5


# ---- what must not happen ----------------------------------------------------------------------------------------------------------------


def test_unexpected_exceptions_show_nothing(command: Command, schema: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dpquery.engine

    def broken(*_: object) -> None:
        raise ValueError("salary 123456 of somebody")

    monkeypatch.setattr(dpquery.engine, "open_session", broken)
    told = command("query", COUNT, "--schema", schema, "--format", "json")
    error = refused(told, 5, "INTERNAL")
    assert re.search(r"id [0-9a-f]{16}", error["message"])
    assert "123456" not in told.out + told.err


def test_interrupted(command: Command, schema: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dpquery.engine

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dpquery.engine, "open_session", interrupted)
    refused(command("query", COUNT, "--schema", schema, "--format", "json"), 5, "INTERRUPTED")


def test_nobody_reads(schema: Path) -> None:
    """The reader of a pipe goes away: no traceback, no complaint."""
    script = f'{sys.executable} -m dpquery tables --schema "$0" --format json | true; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script, schema], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
    assert done.stderr == ""


def test_a_poor_locale_costs_no_answer(schema: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    words = [sys.executable, "-m", "dpquery", "query", "SELECT status, count(*) AS n FROM orders GROUP BY status", "--schema", str(schema)]
    done = subprocess.run(words, capture_output=True, env=environment, check=True)
    assert done.stdout.isascii()
    assert b"+-" in done.stdout


def test_progress_is_elapsed_time_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpquery.cli import progress

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.line() as show:
        assert show is None
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.line() as show:
        assert show is not None
        show(2.4)
    assert terminal.getvalue().startswith("\rrunning: 2 s")
    assert terminal.getvalue().endswith("\r")


# ---- for the owner -----------------------------------------------------------------------------------------------------------------------


def test_demo(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    assert command("demo", folder).status == 0
    assert sorted(path.name for path in folder.iterdir() if path.suffix in (".duckdb", ".yaml", ".ledger")) == [
        "shop.duckdb",
        "shop.ledger",
        "shop.yaml",
    ]
    told = command("demo", folder, "--format")
    assert told.status == 2
    told = command("demo", folder)
    assert told.status == 2
    assert "DEMO_EXISTS" in told.err


def test_check(command: Command, fresh: Path) -> None:
    assert command("check", fresh).status == 0
    text = fresh.read_text().replace("age: {type: integer", "age: {type: date").replace(", lower: 0, upper: 120}", "}")
    fresh.write_text(text)
    told = command("check", fresh, "--format", "json")
    assert told.status == 4
    assert told.json["ok"] is False
    assert command("check", fresh, "--register").status == 4


def test_init_reads_no_value(command: Command, fresh: Path) -> None:
    told = command("init", fresh.with_suffix(".duckdb"))
    assert told.status == 0
    assert "order_items" in told.out
    for value in ("furniture", "cancelled", "Americas", "2023-"):
        assert value not in told.out
    assert command("init", fresh.parent / "none.csv").status in (2, 4, 5)


def test_gaussian_noise_that_nobody_asked_for_is_told_of(command: Command, fresh: Path) -> None:
    """It takes the account's epsilons out of force; whoever asked for it, or pays in rho, knows."""
    sql = "SELECT {} category, status, count(*) AS n FROM orders JOIN categories USING (category) GROUP BY ALL"
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=30{})"
    price = ("--schema", fresh, "--epsilon", "0.2", "--delta", "1e-9", "--format", "json")

    def told(more: str) -> bool:
        return any("charged in rho" in warning for warning in command("explain", sql.format(options.format(more)), *price).json["warnings"])

    assert told("")
    assert not told(", noise='gaussian'")
    assert not told(", noise='laplace'")


def test_ledger_commands(command: Command, fresh: Path) -> None:
    command("query", COUNT, "--schema", fresh, "--epsilon", "0.25")
    command("query", "SELECT user_id FROM orders", "--schema", fresh)
    listed = command("ledger", "list", "--schema", fresh, "--format", "json").json
    assert {row["event"] for row in listed["entries"]} >= {"charged", "released", "refused"}
    assert {account["analyst"] for account in listed["accounts"]} >= {"default", "alice"}
    shown = command("ledger", "list", "--schema", fresh).out
    assert "charged" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert command("ledger", "verify", "--schema", fresh).status == 0
    assert command("ledger", "unlock", "--analyst", "alice", "--schema", fresh).out == "unlocked alice\n"
    assert (
        command("ledger", "unlock", "--analyst", "carol", "--schema", fresh).out
        == "unlocked default, the shared account: the schema lists no carol\n"
    )
    exported = command("ledger", "export", "--schema", fresh).out.splitlines()
    assert all(json.loads(line) for line in exported)
    told = command("ledger", "create", "--schema", fresh)
    assert told.status != 0


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("=returned", "returned"),
        ("=30", 30),
        ("=-1.50", Decimal("-1.50")),
        ("=1e-3", 0.001),
        ("='01234'", "01234"),
        ("='it''s'", "it's"),
        ("=TRUE", True),
        ("=null", None),
        ("=", ""),
        (":string=30", "30"),
        (":integer=030", 30),
        (":decimal=1.0", Decimal("1.0")),
        (":float=1", 1.0),
        (":boolean=false", False),
        (":date=2024-01-31", datetime.date(2024, 1, 31)),
        (":timestamp=2024-01-31 12:30", datetime.datetime(2024, 1, 31, 12, 30)),
        (":uuid=00000000-0000-0000-0000-000000000007", UUID(int=7)),
    ],
)
def test_values_of_parameters_as_words(words: str, value: object) -> None:
    assert given([words]) == [value]
    assert given([f"x{words}"]) == {"x": value}
    assert type(next(iter(given([words]) or ()))) is type(value)


@pytest.mark.parametrize("words", [["x"], ["x:money=3"], ["x:date=soon"], ["x=1", "x=2"], ["x=1", "=2"], ["x:boolean=1"], ["x:decimal=a"]])
def test_words_that_are_no_parameter(command: Command, schema: Path, words: list[str]) -> None:
    told = command("query", COUNT, "--schema", schema, *(word for one in words for word in ("--param", one)))
    assert told.status == 2
    assert "PARAMETER" in told.err


def test_parameters_are_bound_and_kept(command: Command, schema: Path) -> None:
    sql = "SELECT count(*) AS n FROM orders WHERE status = $s AND amount > $a"
    told = command("query", sql, "--param", "s=returned", "--param", "a=9.5", "--schema", schema, "--epsilon", "0.01", "--format", "json")
    assert told.json["receipt"]["parameters"] == {"s": "returned", "a": "9.5"}
    plain = command("explain", "SELECT count(*) AS n FROM orders WHERE status = 'returned' AND amount > 9.5", "--schema", schema, "--format", "json")
    bound = command("explain", sql, "--param", "s=returned", "--param", "a=9.5", "--schema", schema, "--format", "json")
    assert bound.json["price"] == plain.json["price"]
    assert "'returned'" in bound.json["sql"]
