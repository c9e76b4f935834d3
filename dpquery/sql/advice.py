"""What to write instead where a refusal does not say so itself: one piece of advice for each code."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

ADVICE: Final = {
    "AGGREGATE_HERE": "the aggregate in the SELECT list or in HAVING, and a plain expression here",
    "ALIAS": "another name",
    "BAD_LITERAL": "a literal within these limits",
    "BOUNDS_NOT_LITERAL": "contribution_bounds_per_row => (0, 100)",
    "LAMBDA": "a CASE expression, or one of the functions in docs/functions.md",
    "LITERAL_NEEDED": "a number or a text in place of the column",
    "OPTION_VALUE": "a literal in the range of the option",
    "SYNTAX": "a statement of DuckDB's SQL, or name the dialect that this one is written in",
    "TIME_ZONE": "timestamps in UTC, shifted by an interval: t + INTERVAL 1 HOUR",
    "TOO_COMPLEX": "a smaller statement, or several",
    "TOO_LONG": "a shorter statement",
    "TYPE_MISMATCH": "CAST(x AS ..) to a type that fits here; docs/functions.md has those of each function",
    "TYPE_NOT_ALLOWED": "BIGINT, DECIMAL(p,s), DOUBLE, VARCHAR, BOOLEAN, DATE, TIMESTAMP or UUID",
    "UNKNOWN_TABLE": "a table that the schema declares; `dpquery tables` lists them",
    "UNREADABLE": "a simpler wording of the same question",
    "UNSUPPORTED_CLAUSE": "the statement without it",
    "UNSUPPORTED_EXPRESSION": "comparisons, arithmetic, CASE and the functions in docs/functions.md",
    "VIEW_CLAUSE": "the clause in the statement that reads the view",
    "WINDOW_ARGUMENT": "the window function with the arguments that it takes",
    "WRONG_ARGUMENTS": "the function with the arguments that docs/functions.md gives it",
}

SHAPES: Final[dict[type[exp.Expr], tuple[str, str]]] = {
    exp.Tuple: ("a row of values", "a comparison of two rows of as many values, or of each value: a = 1 AND b = 'x'"),
    exp.Bracket: ("x[..]", "substr(x, start, length) for a text; lists are not supported"),
    exp.Dot: ("a field of a value", "a column of its own"),
    exp.BitwiseAnd: ("& of bits", "x % 2 for the last bit, AND for conditions"),
    exp.BitwiseOr: ("| of bits", "arithmetic, OR for conditions"),
    exp.BitwiseXor: ("^ or xor of bits", "power(x, y), or a <> b for conditions"),
    exp.BitwiseNot: ("~ of bits", "-x - 1, or NOT for conditions"),
    exp.BitwiseLeftShift: ("a shift of bits", "x * 2"),
    exp.BitwiseRightShift: ("a shift of bits", "x // 2"),
}
"""What people call expressions that are not read, and what to write in their place."""


def shape(node: exp.Expr) -> tuple[str, str]:
    """A node's name in words, and what to write in its place."""
    name = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(node).__name__).strip()
    return SHAPES.get(type(node), (name, ADVICE["UNSUPPORTED_EXPRESSION"]))
