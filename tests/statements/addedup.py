"""Productions of what is added up within a unit: sums, spreads, shapes and pairs, written out in plain SQL as integers or clamped numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from expressions import condition, number, text
from grammar import Col, Expr, Grammar, both

from dpquery.values.types import FLOAT, INTEGER, Kind

Scope = Sequence[Col]


def anything(g: Grammar, scope: Scope) -> Expr:
    return g.random.choice([number, text, condition])(g, scope, 0 if g.chance(0.7) else 1)


def written(template: str, plain: str, kind: Callable[[Expr], object], value: Expr) -> Expr:
    made = kind(value)
    assert made is not None
    return Expr(template.replace("{0}", value.dp), plain.replace("{0}", value.plain), made, value.reads)  # type: ignore[arg-type]


def _bounded(g: Grammar, scope: Scope) -> Expr | None:
    """An integer whose bounds plain SQL keeps, too."""
    found = g.col(scope, Kind.INTEGER, where=lambda c: c.spec is not None)
    if found is None or found.bare is None or found.bare.spec is None:
        return None
    bounds = found.bare.spec.bounds
    return both("greatest(least({0}, 5), -2)", INTEGER, found) if bounds is None else replace(found, plain=_clamped(found.plain, *map(str, bounds)))


def _clamped(plain: str, low: str, high: str) -> str:
    return f"CASE WHEN {plain} IS NOT NULL THEN least(greatest({plain}, {low}), {high}) END"


def added(g: Grammar, scope: Scope) -> Expr | None:
    """SUM of integers, which is NULL where it needs more than 64 bits."""
    value, each = number(g, scope, 1), g.random.choice(["", "", "DISTINCT "])
    if value.type != INTEGER:
        return None
    return written(f"SUM({each}{{0}})", f"TRY_CAST(sum({each}{{0}}){{f}} AS BIGINT)", lambda e: INTEGER, value)


def averaged(g: Grammar, scope: Scope) -> Expr | None:
    value, word = number(g, scope, 1), g.random.choice(["AVG", "MEAN", "FAVG"])
    if value.type != INTEGER:
        return None
    return written(f"{word}({{0}})", "CAST(sum({0}){f} AS DOUBLE) / count({0}){f}", lambda e: FLOAT, value)


def decimals(g: Grammar, scope: Scope) -> Expr | None:
    found = g.col(scope, Kind.DECIMAL, where=lambda c: c.spec is not None)
    if found is None:
        return None
    word, kind, below = g.random.choice([("SUM", found.type, ""), ("AVG", FLOAT, " / count({0}){f}")])
    total = f"sum(CAST({{0}} AS DECIMAL(38,{found.type.scale}))){{f}}"
    return written(f"{word}({{0}})", f"CAST({total} AS DOUBLE){below}" if below else total, lambda e: kind, found)


def floats(g: Grammar, scope: Scope) -> Expr | None:
    """Floats in units of their declared step; those without one hold multiples of a power of two, whose sums are exact."""
    found = g.col(scope, Kind.FLOAT, where=lambda c: c.spec is not None and c.spec.bounds is not None)
    if found is None or found.bare is None or found.bare.spec is None or found.bare.spec.bounds is None:
        return None
    spec, (low, high) = found.bare.spec, found.bare.spec.bounds
    step = Fraction(spec.step) if spec.step else Fraction(1, 64)
    units = f"floor({found.plain} * {float(step.denominator)!r}::DOUBLE / {float(step.numerator)!r}::DOUBLE + 0.5)"
    whole = f"CAST({_clamped(units, f'{int(low / step)}::DOUBLE', f'{int(high / step)}::DOUBLE')} AS HUGEINT)"
    below, word = g.random.choice([("", "SUM"), (" / count({0}){f}", "AVG")])
    plain = f"CAST(sum({{0}}){{f}} AS DOUBLE){below} * {float(step)!r}::DOUBLE"
    return written(f"{word}({{0}})", plain, lambda e: FLOAT, replace(found, plain=whole))


def spread(g: Grammar, scope: Scope) -> Expr | None:
    """Variances of integers, from integer sums."""
    value = _bounded(g, scope)
    if value is None:
        return None
    words = [("VAR_POP", ""), ("VAR_SAMP", " - 1"), ("VARIANCE", " - 1"), ("STDDEV_POP", ""), ("STDDEV", " - 1"), ("SEM", "")]
    word, fewer = g.random.choice(words)
    n, one, two = "count({0}){f}", "sum({0}){f}", "sum(CAST({0} AS HUGEINT) * ({0})){f}"
    below = f"(CAST({n} AS DOUBLE) * (CAST({n} AS DOUBLE){fewer}))"
    below = f"({below} * CAST({n} AS DOUBLE))" if word == "SEM" else below
    plain = f"CASE WHEN {below} > 0 THEN CAST({n} * {two} - CAST({one} AS HUGEINT) * {one} AS DOUBLE) / {below} END"
    return written(f"{word}({{0}})", f"sqrt({plain})" if word.startswith("S") else plain, lambda e: FLOAT, value)


PAIRS = {
    "COVAR_POP": "CASE WHEN {n} > 0 THEN {c} / ({n} * {n}) END",
    "COVAR_SAMP": "CASE WHEN {n} > 1 THEN {c} / ({n} * ({n} - 1)) END",
    "CORR": "CASE WHEN {v} > 0 AND {w} > 0 THEN greatest(-1e0, least(1e0, {c} / sqrt({v} * {w}))) + 0.0 END",
    "REGR_SLOPE": "CASE WHEN {v} > 0 THEN {c} / {v} + 0.0 END",
    "REGR_INTERCEPT": "CASE WHEN {v} > 0 THEN CAST(sum({1}){f} AS DOUBLE) / {n} - {c} / {v} * (CAST(sum({0}){f} AS DOUBLE) / {n}) + 0.0 END",
    "REGR_R2": "CASE WHEN {v} > 0 THEN CASE WHEN {w} > 0 THEN least(1e0, {c} * {c} / ({v} * {w})) ELSE 1e0 END END",
    "REGR_SXY": "CASE WHEN {n} > 0 THEN {c} / {n} END",
    "REGR_SXX": "CASE WHEN {n} > 0 THEN {v} / {n} END",
    "REGR_SYY": "CASE WHEN {n} > 0 THEN {w} / {n} END",
    "REGR_COUNT": "count({0}){f}",
}
"""Of x, {0}, and y, {1}, both NULL where either is: {n} is their number, {v}, {w} and {c} n^2 times the variances and the covariance."""


def averaged_where(g: Grammar, scope: Scope) -> Expr | None:
    """The means of y and x where both are known: of integers as they are, as those of AVG."""
    y, x = number(g, scope, 1), number(g, scope, 1)
    if y.type != INTEGER or x.type != INTEGER:
        return None
    word, one, other = g.random.choice([("REGR_AVGX", x, y), ("REGR_AVGY", y, x)])
    own = f"(CASE WHEN ({other.plain}) IS NOT NULL THEN {one.plain} END)"
    return Expr(f"{word}({y.dp}, {x.dp})", f"CAST(sum({own}){{f}} AS DOUBLE) / count({own}){{f}}", FLOAT, y.reads | x.reads)


def paired(g: Grammar, scope: Scope) -> Expr | None:
    """Covariance, correlation and regression of integers, from integer sums."""
    y, x = _bounded(g, scope), _bounded(g, scope)
    if y is None or x is None:
        return None
    word = g.random.choice([*PAIRS, "REGR_R2", "REGR_SXY", "REGR_SLOPE"])
    own = {"0": f"(CASE WHEN {y.plain} IS NOT NULL THEN {x.plain} END)", "1": f"(CASE WHEN {x.plain} IS NOT NULL THEN {y.plain} END)"}
    n = f"count({own['0']}){{f}}"
    for name, one, other in (("v", "0", "0"), ("w", "1", "1"), ("c", "0", "1")):
        both_, each, too = (f"sum(CAST({text} AS HUGEINT)){{f}}" for text in (f"({own[one]} * {own[other]})", own[one], own[other]))
        own[name] = f"CAST({n} * {both_} - {each} * {too} AS DOUBLE)"
    own["n"] = f"CAST({n} AS DOUBLE)"
    plain = re.sub(r"\{(\w)\}", lambda found: own.get(found[1], found[0]), PAIRS[word])
    return Expr(f"{word}({y.dp}, {x.dp})", plain, INTEGER if word == "REGR_COUNT" else FLOAT, y.reads | x.reads)


SHAPES = {
    "SKEWNESS": (3, "sqrt({n} * ({n} - 1)) / ({n} - 2) * {third} / ({second} * sqrt({second}))"),
    "KURTOSIS": (4, "({n} - 1) * (({n} + 1) * ({fourth} / ({second} * {second})) - 3 * ({n} - 1)) / (({n} - 2) * ({n} - 3))"),
    "KURTOSIS_POP": (2, "{fourth} / ({second} * {second}) - 3"),
}


def shape(g: Grammar, scope: Scope) -> Expr | None:
    """Skewness and kurtosis of integers, by the book, around the whole number below their mean."""
    value = _bounded(g, scope)
    if value is None:
        return None
    word, n = g.random.choice([*SHAPES]), "CAST(count({0}){f} AS DOUBLE)"
    least, found = SHAPES[word]
    centre = "CAST(floor(avg({0}){f}) AS BIGINT)"
    powers = (f"list_sum(list_transform(list({{0}}){{f}}, lambda v: CAST(coalesce(v - {centre}, 0) AS HUGEINT) ** {k}))" for k in (1, 2, 3, 4))
    a, b, c, d = (f"(CAST({text} AS DOUBLE) / {n})" for text in powers)
    own = {
        "n": n,
        "second": f"({b} - {a} * {a})",
        "third": f"({c} - 3 * {a} * {b} + 2 * {a} * {a} * {a})",
        "fourth": f"({d} - 4 * {a} * {c} + 6 * {a} * {a} * {b} - 3 * {a} * {a} * {a} * {a})",
    }
    made = re.sub(r"\{(\w+)\}", lambda one: own[one[1]], found)
    return written(f"{word}({{0}})", f"CASE WHEN {n} >= {least} AND {own['second']} > 0 THEN {made} + 0.0 END", lambda e: FLOAT, value)


def bits(g: Grammar, scope: Scope) -> Expr | None:
    value, word = number(g, scope, 1), g.random.choice(["BIT_AND", "BIT_OR", "BIT_XOR"])
    return None if value.type != INTEGER else written(f"{word}({{0}})", f"{word}({{0}}){{f}}", lambda e: INTEGER, value)


TINY = f"{2.0**40!r}::DOUBLE"


def multiplied(g: Grammar, scope: Scope) -> Expr | None:
    """The product and the geometric mean of small integers, and how far numbers lie from their median."""
    value = _bounded(g, scope)
    if value is None:
        return None
    units = f"CAST(floor(ln(CASE WHEN {{0}} > 0 THEN CAST({{0}} AS DOUBLE) END) * {TINY} + 0.5) AS BIGINT)"
    mean = f"exp(CAST(sum({units}){{f}} AS DOUBLE) / count({units}){{f}} / {TINY})"
    word, plain = g.random.choice(
        [
            ("PRODUCT", "product({0}){f} + 0.0"),
            ("GEOMEAN", f"CASE WHEN min({{0}}){{f}} < 0 THEN NULL WHEN min({{0}}){{f}} = 0 THEN 0e0 ELSE {mean} END"),
            ("MAD", "mad(CAST({0} AS DOUBLE)){f} + 0.0"),
        ]
    )
    return written(f"{word}({{0}})", plain, lambda e: FLOAT, value)


def entropy(g: Grammar, scope: Scope) -> Expr:
    bins, n = "map_values(histogram({0}){f})", "count({0}){f}"
    less = f"CAST(list_sum(list_transform({bins}, lambda c: CAST(floor(c * log2(c) * {TINY} + 0.5) AS HUGEINT))) AS DOUBLE) / {TINY}"
    return written(
        "ENTROPY({0})", f"CASE WHEN {n} > 1 THEN greatest(0e0, log2({n}) - {less} / {n}) ELSE 0e0 END", lambda e: FLOAT, anything(g, scope)
    )
