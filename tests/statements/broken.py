"""Statements that are wrong in some way, made from right ones: names, types, clauses, bounds, prices, or a text that is cut or jumbled."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

Break = Callable[[Random, str], str]
WORD = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|[^\w\s]")

AFTER = (
    *("TABLESAMPLE 10%", "FOR UPDATE", "LIMIT 10%", "LIMIT (SELECT 1)", "OFFSET -1", "UNION ALL SELECT 1"),
    *("WINDOW w AS (ORDER BY 1)", "FETCH 3 ROWS", "; DROP TABLE orders", "; SELECT 1", "-- the end", "INTO OUTFILE 'x'"),
    *("GROUP BY ROLLUP (1)", "QUALIFY row_number() OVER () = 1", "SETTINGS x = 1", "EXCEPT SELECT uid FROM people"),
    *("ORDER BY 99", "HAVING 1", "CROSS JOIN people", "USING SAMPLE 3", ")", "ORDER BY random()"),
)
ITEMS = (
    *("*", "uid", "random()", "MAX(n)", "MEDIAN(x)", "COUNT(DISTINCT k)", "SUM(k)", "SUM(1 % 0)", "error('x')"),
    *("read_text('/etc/passwd')", "(SELECT 1)", "STRING_AGG(k, ',')", "SUM(x) OVER ()", "AVG('a')", "SUM(DISTINCT x)"),
    *("COUNT(*, contribution_bounds_per_group => (9, 1))", "nosuch", "x.y.z", "SUM(x, contribution_bounds_per_row => (0, n))"),
    *("COUNT(*, epsilon => 99)", "COUNT(*, contribution_bounds_per_row => (0, 1))", "FIRST(k)", "current_setting('threads')"),
    *("SUM(nosuch)", "COUNT(*, report_format => 'PROTO')", "CAST('x' AS INTEGER)", "md5(k)", "SUM(x, nosuch => 1)"),
    *("QUANTILE_CONT(x, 2)", "APPROX_QUANTILES(x, 4)", "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x DESC)", "width_bucket(x, 5, 0, 3)"),
    *("QUANTILE_CONT(x, [0.5, 2])", "APPROX_QUANTILES(x, n)", "QUANTILE_CONT(x, [0.5])[9]", "QUANTILE_CONT(x, [0.1, 0.5]) > 1", "x[1]"),
    *("DP_INTERVAL_LOW(APPROX_QUANTILES(x, 2))", "MAX(QUANTILE_DISC(n, [0.5])) OVER ()", "QUANTILE_CONT(n, [0.5, 0.9])[n]", "COUNT(*)[1]"),
    *("MODE(md5(g))", "MODE(uid)", "MODE()", "MODE('x')", "MODE(x, true)"),
)
CONDITIONS = (
    *("uid IN (SELECT uid FROM people)", "EXISTS (SELECT 1 FROM people)", "random() < 0.5", "k SIMILAR TO '(a'", "x = 'abc'"),
    *("n > DATE '2024-01-01'", "nosuch = 1", "1", "k", "regexp_matches(k, k)", "COUNT(*) > 1", "x IN (y)", "k LIKE g ESCAPE '!'"),
    *("CAST(k AS DATE) = 'x'", "n = (SELECT max(n) FROM orders)", "uid = ALL (SELECT 1)", "x BETWEEN 'a' AND 'b'"),
    *("d > 'nosuchday'", "k COLLATE NOCASE = 'a'", "round(x, n) = 1", "(x, n) = (1, 2)", "1 = 1 = 1"),
)
OPTIONS = (
    *("epsilon = 0", "epsilon = -1", "epsilon = 51", "epsilon = 'x'", "epsilon = 0.5, rho = 0.1", "epsilon = 1, epsilon = 2"),
    *("delta = 1.5", "rho = 1e-200", "delta = 0", "nosuch = 1", "noise = GAUSSIAN, delta = 0", "noise = UNIFORM"),
    *("max_rows_contributed = 0", "max_groups_contributed = 1.5", "group_selection_strategy = PUBLIC_GROUPS"),
    *("min_privacy_units_per_group = 5", "group_selection_epsilon = 9", "loss_epsilon = 9", "confidence_level = 0.1", "privacy_unit_column = k"),
    *("privacy_unit_column = nosuch", "max_rows_contributed = 2, max_rows_per_group = 2", "epsilon = (1, 2)", "epsilon 1", ""),
)


def _name(random: Random, text: str) -> str:
    """One word, mostly a name, is another one."""
    found = [m for m in WORD.finditer(text) if m[0][0].isalpha()]
    chosen = random.choice(found)
    return text[: chosen.start()] + random.choice(["nosuch", "uid", "k", "1", "'a'", "orders", "NULL"]) + text[chosen.end() :]


def _jumbled(random: Random, text: str) -> str:
    """Words left out, doubled or exchanged."""
    words = WORD.findall(text)
    i, j = (random.randrange(len(words)) for _ in range(2))
    match random.randrange(3):
        case 0:
            del words[i]
        case 1:
            words.insert(i, words[j])
        case _:
            words[i], words[j] = words[j], words[i]
    return " ".join(words)


def _cut(random: Random, text: str) -> str:
    return text[: random.randrange(len(text))]


def _clause(random: Random, text: str) -> str:
    return f"{text} {random.choice(AFTER)}"


def _item(random: Random, text: str) -> str:
    """One more item in the outermost SELECT; the first FROM may be another one's."""
    return re.sub(r" FROM ", lambda _: f", {random.choice(ITEMS)} FROM ", text, count=1)


def _condition(random: Random, text: str) -> str:
    """One more condition in some WHERE, or a WHERE with it."""
    wrong = random.choice(CONDITIONS)
    if " WHERE " in text:
        return re.sub(r" WHERE ", lambda _: f" WHERE {wrong} AND ", text, count=1)
    return re.sub(r" GROUP BY |$", lambda m: f" WHERE {wrong}{m[0]}", text, count=1)


def _options(random: Random, text: str) -> str:
    """A clause with a wrong option, beside or instead of its own."""
    wrong = random.choice(OPTIONS)
    if "OPTIONS(" in text:
        return re.sub(r"OPTIONS\(([^)]*)\)", lambda m: f"OPTIONS({wrong if random.random() < 0.5 else f'{m[1]}, {wrong}'})", text, count=1)
    return re.sub(r"^(.*?)SELECT (?!DISTINCT)", lambda m: f"{m[1]}SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({wrong}) ", text, count=1)


def _unbounded(random: Random, text: str) -> str:
    """Bounds left out, reversed or not literal."""
    return re.sub(
        r"(, contribution_bounds_per_\w+ => )(\([^)]*\))", lambda m: random.choice(["", f"{m[1]}(7, 1)", f"{m[1]}(0, x)", f"{m[1]}9"]), text
    )


def _join(random: Random, text: str) -> str:
    """A join on something else."""
    return re.sub(r" ON (.*?)(?= WHERE | GROUP BY | JOIN |\)|$)", lambda m: f" ON {random.choice(['TRUE', '1 = 1', f'NOT ({m[1]})'])}", text, count=1)


def _subquery(random: Random, text: str) -> str:
    return f"SELECT {random.choice(['*', 'COUNT(*)', 'MAX(1)'])} FROM ({text}) AS s"


BREAKS: dict[str, Break] = {
    "name": _name,
    "jumbled": _jumbled,
    "cut": _cut,
    "clause": _clause,
    "item": _item,
    "condition": _condition,
    "options": _options,
    "unbounded": _unbounded,
    "join": _join,
    "subquery": _subquery,
}
CALLS: tuple[dict[str, object], ...] = (
    *({"epsilon": value} for value in (0, -1, "nan", "inf", "abc", 51, "1e-200", True, "0.1 ", 1e9)),
    *({"delta": value} for value in (-0.1, 1, "x", 0, 1e-3)),
    *({"rho": value} for value in (0, 1e9, 0.01)),
    *({"confidence": value} for value in (0.1, 1, "0.9")),
    *({"dialect": value} for value in ("bigquery", "snowflake", "nosuch", "")),
    {"epsilon": 0.5, "rho": 0.5},
    {"epsilon": 1.75},
)
"""What else a caller may say of a statement, most of it wrong."""


def broken(random: Random, text: str) -> str:
    """The text, wrong in one way or two."""
    for name in random.sample(list(BREAKS), random.choice([1, 1, 2])):
        text = BREAKS[name](random, text)
    return text
