"""Mutations of a statement's text: by words, by brackets, by characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

WORD = re.compile(r"\s+|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|\$\$|[\w$.]*\w|=>|::|\|\||<=|>=|<>|!=|->|\*\*|//|.", re.DOTALL)
LONGEST = 3000  # characters of a mutant, but for the huge literals
Mutation = Callable[[Random, list[str], list[str], Sequence[str]], list[str]]

SNIPPETS = tuple((Path(__file__).parent / "snippets.txt").read_text().splitlines())
ODD = (
    "\x00",
    "\u200b",
    "\u00a0",
    "\ufeff",
    "\u202e",
    "\ud800",
    "\u0301",
    "\uff33",
    "\u017f",
    "\u0131",
    "\u2019",
    "\U0001f600",
    "\\",
    "\t",
    "\r",
    "\x1a",
    "\x7f",
    "ß",
    "K",
)
WRAPS = (
    "({})",
    "abs({})",
    "CAST({} AS VARCHAR)",
    "coalesce({}, 1)",
    "NOT {}",
    "- {}",
    "({} + 1)",
    "CASE WHEN {} THEN {} END",
    "sum({})",
    "TRY({})",
    "lower({})",
    "{} IS NULL",
)

CLAUSE_WORDS = ("", "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT", "OFFSET")
OWN_WORDS = """
SELECT FROM WHERE GROUP BY HAVING QUALIFY ORDER LIMIT OFFSET JOIN LEFT RIGHT FULL INNER OUTER CROSS NATURAL ON USING AS AND OR NOT IN IS NULL LIKE
BETWEEN CASE WHEN THEN ELSE END WITH DIFFERENTIAL_PRIVACY OPTIONS DISTINCT OVER PARTITION FILTER CAST INTERVAL DATE TIMESTAMP UNION ALL"""
KEYWORDS = frozenset(OWN_WORDS.split())


def words(text: str) -> list[str]:
    """The text cut into words, brackets, quotations, blanks."""
    return WORD.findall(text)


def mutant(random: Random, parent: str, other: str, known: Sequence[str]) -> str:
    """The parent changed in one to four ways; `other` is a statement to take parts of, `known` names that mean something."""
    tokens, donor = words(parent), words(other)
    for _ in range(random.choice((1, 1, 1, 1, 2, 2, 3))):
        (change,) = random.choices(MUTATIONS, WEIGHTS)
        tokens = change(random, tokens or [" "], donor or [" "], known)
    text = "".join(tokens)
    return text if len(text) <= LONGEST or random.random() < 0.02 else text[:LONGEST]


def adapted(random: Random, text: str, known: Sequence[str]) -> str:
    """The text of another ground, its names mostly become ones that mean something here; names of functions stay."""
    tokens = words(text)
    for i, token in enumerate(tokens):
        if _kind(token) == "name" and tokens[i + 1 : i + 2] != ["("] and random.random() < 0.9:
            tokens[i] = random.choice(known)
    return "".join(tokens)


def _span(random: Random, tokens: Sequence[str], most: int) -> tuple[int, int]:
    start = random.randrange(len(tokens))
    return start, min(len(tokens), start + random.randint(1, most))


def _group(random: Random, tokens: Sequence[str]) -> tuple[int, int]:
    """The places of a pair of brackets, or of one word."""
    opening = [i for i, token in enumerate(tokens) if token == "("]
    if not opening or random.random() < 0.4:
        return _solid(random, tokens)
    start, depth = random.choice(opening), 0
    for i in range(start, len(tokens)):
        depth += (tokens[i] == "(") - (tokens[i] == ")")
        if depth == 0:
            return start, i + 1
    return start, start + 1


def _solid(random: Random, tokens: Sequence[str]) -> tuple[int, int]:
    places = [i for i, token in enumerate(tokens) if not token.isspace()] or [0]
    start = random.choice(places)
    return start, start + 1


def drop(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    start, end = random.choice((_solid, _group))(random, tokens)
    return tokens[:start] + tokens[end:]


def double(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    start, end = _span(random, tokens, 12)
    return [*tokens[:end], " ", *tokens[start:]]


def swap(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    made = list(tokens)
    (a, _), (b, _) = _solid(random, tokens), _solid(random, tokens)
    made[a], made[b] = made[b], made[a]
    return made


def _kind(token: str) -> str:
    """Whether a word is a number, a text, a name, a word of SQL's own, or none of these."""
    first = token[:1]
    if first.isdigit():
        return "number"
    if first in ("'", '"'):
        return "text"
    if first.isalpha() or first == "_":
        return "name" if token.upper() not in KEYWORDS else "keyword"
    return ""


def rename(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    """A name, number or text becomes another one, mostly of its kind."""
    places = [i for i, token in enumerate(tokens) if _kind(token) not in ("", "keyword")] or [0]
    at = random.choice(places)
    alike = [word for word in known if _kind(word) == _kind(tokens[at])] if random.random() < 0.9 else known
    return [*tokens[:at], random.choice(alike or known), *tokens[at + 1 :]]


def clause(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    """A clause of another statement takes the place of, or joins, the statement's own."""
    ours, theirs = _clauses(tokens), _clauses(donor)
    word = random.choice(sorted(theirs))
    if word == "SELECT" and "SELECT" in ours:
        head = ours["SELECT"]
        ours["SELECT"] = [*head, ", ", *theirs["SELECT"][1:], " "] if random.random() < 0.5 else theirs["SELECT"]
    else:
        ours[word] = [" ", *theirs[word]]
    return [token for name in CLAUSE_WORDS if name in ours for token in ours[name]]


def _clauses(tokens: Sequence[str]) -> dict[str, list[str]]:
    """The outermost clauses by the word they start with; what comes before the first is named by the empty word."""
    found, depth, word = dict[str, list[str]](), 0, ""
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if depth == 0 and token.upper() in CLAUSE_WORDS:
            word = token.upper()
        found.setdefault(word, []).append(token)
    return found


def graft(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    """A pair of brackets or a word becomes one of another statement's."""
    (start, end), (first, last) = _group(random, tokens), _group(random, donor)
    return tokens[:start] + donor[first:last] + tokens[end:]


def splice(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    """The beginning of one statement and the end of another."""
    return tokens[: random.randrange(len(tokens)) + 1] + donor[random.randrange(len(donor)) :]


def insert(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    at = random.randrange(len(tokens) + 1)
    return [*tokens[:at], " ", random.choice(SNIPPETS), " ", *tokens[at:]]


def replace(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    start, end = _group(random, tokens)
    return [*tokens[:start], random.choice(SNIPPETS), *tokens[end:]]


def wrap(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    """Something becomes the argument of something, now and then many times."""
    start, end = _group(random, tokens)
    form, text = random.choice(WRAPS), "".join(tokens[start:end])
    for _ in range(random.choice((1, 1, 1, 1, 2, 3, 40, 100))):
        if len(text) > LONGEST:
            break
        text = form.replace("{}", text)
    return [*tokens[:start], text, *tokens[end:]]


def quote(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    """A word gets, loses or changes its quotation marks."""
    at, _ = _solid(random, tokens)
    bare = tokens[at].strip("'\"`")
    mark = random.choice(("''", '""', "``", "[]", "", "'", '"', "`", "\u2018\u2019"))
    return [*tokens[:at], mark[:1] + bare + mark[1:], *tokens[at + 1 :]]


def odd(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    """A character that is none, or looks like another one."""
    text = "".join(tokens)
    at = random.randrange(len(text) + 1)
    return words(text[:at] + random.choice(ODD) + text[at + random.randint(0, 1) :])


def comment(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    at = random.randrange(len(tokens) + 1)
    inside = random.choice((*SNIPPETS[:20], "+ hint", "*", "/* x */", "\n", ""))
    form = random.choice(("/*{}*/", "--{}\n", "/*{}", "--{}", "#{}\n", "/*!{}*/", "//{}\n", "{{{{ {} }}}}"))
    return [*tokens[:at], form.replace("{}", inside), *tokens[at:]]


def huge(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    """A word becomes a very long one."""
    at, _ = _solid(random, tokens)
    size = random.choice((50, 400, 5_000, 70_000))
    made = random.choice(
        ("9" * size, f"'{'x' * size}'", f'"{"y" * size}"', f"0.{'0' * size}1", f"1e{'9' * min(size, 400)}", f"({'1,' * (size // 5)}2)")
    )
    return [*tokens[:at], made, *tokens[at + 1 :]]


def nest(random: Random, tokens: list[str], donor: list[str], known: Sequence[str]) -> list[str]:
    """The whole becomes a subquery, a CTE, a view of itself, one of two statements."""
    form = random.choice(
        (
            "SELECT count(*) FROM ({}) x",
            "WITH x AS ({}) SELECT count(*) FROM x",
            "({})",
            "{} ;",
            "{}; {}",
            "SELECT * FROM ({}) x",
            "EXPLAIN {}",
            "FROM ({})",
        )
    )
    return words(form.replace("{}", "".join(tokens)))


CHANGES: tuple[tuple[int, Mutation], ...] = (
    *((4, drop), (2, double), (3, swap), (30, rename), (10, graft), (12, clause), (1, splice), (4, insert), (4, replace), (10, wrap), (2, quote)),
    *((1, odd), (2, comment), (1, huge), (2, nest)),
)
MUTATIONS, WEIGHTS = [change for _, change in CHANGES], [weight for weight, _ in CHANGES]
