"""Edits of OPTIONS and named arguments, of names, of types and literals, and of clauses that say nothing more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher

from sqlglot import TokenType

from dpquery.sql.edited import Change, Place, Remarked, clause_left_out, left_out, left_out_behind, put, put_behind, word_left_out
from dpquery.sql.words import Edit, Words

MEANT = re.compile(r"\A(?:write )?(\w+) *=>? *('[^']*'|\([^()]*\)|[\w.+-]+)", re.ASCII)
LIKE = re.compile(r"\(did you mean (.+)\?\)\Z")
LISTED = re.compile(r"""'([^']*)'|("(?:[^"]|"")+"|`[^`]+`)""")
OPERATORS = (TokenType.EQ, TokenType.FARROW)
CLAUSE = re.compile(r"WITH\s+DIFFERENTIAL_PRIVACY\s+OPTIONS\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*", re.IGNORECASE)
BRACKETS = r"\((?:[^()]|\([^()]*\))*\)"
LIMITED = re.compile(r"OPTIONS\((\w+ = 4)\)")
SAMPLED = (
    r"\s*\b(?:TABLESAMPLE|USING\s+SAMPLE|SAMPLE)\s*(?:(?!SAMPLE\b)[a-z]\w*\s*)?(?:\([^()]*\)|[\d.]+\s*(?:%|PERCENT\b|ROWS\b)?)"
    r"(?:\s*\(\s*\w+\s*(?:,\s*\d+\s*)?\))?(?:\s*\b(?:REPEATABLE|SEED)\s*\([^()]*\))?"
)  # how many, by which method, and from which seed
TWICE = re.compile(r"\d+ columns are called '(\w+)'")
ALIKE = 0.7  # how like a name is to the one that is meant for sure
NUMBER = re.compile(r"(\w+\s*=>?\s*)'([0-9]*[.,]?[0-9]+)'", re.ASCII)


def _option(words: Words, index: int) -> tuple[int, int] | None:
    """The option that a word belongs to, from its name to before the comma or bracket behind it."""
    opened = words.opening(index)
    close = None if opened is None else words.closing(opened)
    if opened is None or close is None:
        return None
    for first, end in words.parts(opened + 1, close):
        if first <= index < end:
            if words.kind(first + 1) in OPERATORS:
                return first, end
            return _option(words, opened) if words.kind(opened - 1) in OPERATORS else None
    return None


def option_put(place: Place) -> Iterator[Remarked]:
    """The value that the refusal names in place of the one that was given; of an option of the call, where the refusal points at a call."""
    meant, words = MEANT.match(place.instead), place.words
    if meant is None:
        return
    call, name = words.call(place.index), meant.group(1).lower()
    inside = [] if call is None else [first for first, _ in words.parts(call[0] + 1, call[1]) if words.word(first).lower() == name]
    found = _option(words, inside[0] if inside else place.index)
    if found is not None and words.word(found[0]).lower() == name:
        text = words.with_edits((words.begin(found[0] + 2), words.stop(found[1] - 1), meant.group(2)))
        yield Remarked(text, f"with {name} {words.cut(found[0] + 1, found[0] + 2)} {meant.group(2)}")


def option_left_out(place: Place) -> Iterator[Remarked]:
    """The statement without the option, and without a clause that would be empty."""
    found, words = _option(place.words, place.index), place.words
    if found is None:
        return
    edit = _without(words, *found)
    differs = f"without {words.word(found[0]).lower()}"
    if edit is not None:
        yield Remarked(words.with_edits(edit), differs)
    elif words.word(found[0] - 2) == "OPTIONS":
        whole = next((one for one in CLAUSE.finditer(place.text) if one.start() <= place.offset < one.end()), None)
        if whole is not None:
            yield Remarked(place.text[: whole.start()] + place.text[whole.end() :], differs)


def _without(words: Words, first: int, end: int) -> Edit | None:
    """What leaves out one of several between commas; None of the only one."""
    if words.kind(first - 1) is TokenType.COMMA:
        return words.stop(first - 2), words.stop(end - 1), ""
    return (words.begin(first), words.begin(end + 1), "") if words.kind(end) is TokenType.COMMA else None


def _named_left_out(*names: str) -> Change:
    """The statement without options of these names, in the call or the clause that the refusal points at, else anywhere."""

    def change(place: Place) -> Iterator[Remarked]:
        words = place.words
        close = (words.call(place.index) or (0, len(words.tokens)))[1]
        for at in range(place.index, close):
            if words.word(at).lower() in names and words.kind(at + 1) in OPERATORS:
                yield from option_left_out(replace(place, index=at))

    return change


def delta_left_out(place: Place) -> Iterator[Remarked]:
    """The statement with the schema's delta in place of its own."""
    words = place.words
    for at in range(len(words.tokens)):
        if words.word(at).lower() == "delta" and words.kind(at + 1) in OPERATORS:
            yield from option_left_out(replace(place, index=at))


def limit_set(place: Place) -> Iterator[Remarked]:
    """The clause of privacy with the limit that the refusal names, which is for the analyst to choose."""
    level, words, option = place.level, place.words, LIMITED.search(place.instead)
    if level is None or option is None:
        return
    clause = CLAUSE.match(place.text, words.begin(level.start + 1))
    if clause is None:
        at, put_ = words.begin(level.start + 1), f"WITH DIFFERENTIAL_PRIVACY OPTIONS({option[1]}) "
    else:
        at, put_ = place.text.rindex(")", 0, clause.end()), f", {option[1]}"
    yield Remarked(place.text[:at] + put_ + place.text[at:], "4 is a placeholder for how much of a unit is to count")


def shares_left_out(place: Place) -> Iterator[str]:
    """The statement without shares of single aggregates: the price is split evenly."""
    yield re.sub(r",\s*epsilon\s*=>\s*[\d.eE+-]+", "", place.text)


def bounds_turned(place: Place) -> Iterator[Remarked]:
    """The bounds the other way round."""
    found, words = _option(place.words, place.index), place.words
    parts = [] if found is None else words.parts(found[0] + 3, found[1] - 1)
    if len(parts) == 2:
        low, high = (words.cut(*part) for part in parts)
        text = words.with_edits((words.begin(parts[0][0]), words.stop(parts[1][1] - 1), f"{high}, {low}"))
        yield Remarked(text, "with the bounds the other way round")


def number_put(place: Place) -> Iterator[Remarked]:
    """A number in place of a text that spells it."""
    number = NUMBER.match(place.text, place.offset)
    if number is not None:
        value = number.group(2).replace(",", ".")
        text = place.text[: number.start()] + number.group(1) + value + place.text[number.end() :]
        yield Remarked(text, f"with {number.group(1)}{value}")


# ---- names ---------------------------------------------------------------------------------------------------------------------------


def name_put(place: Place) -> Iterator[str]:
    """The name that is meant: the only one that looks like it, or the only one that is one slip of the hand away."""
    found = LIKE.search(place.refused.message)
    names = [] if found is None else [one[1] or one[2] for one in LISTED.finditer(found.group(1))]
    text = place.text[place.offset :]
    given = re.match(r"\w+|\"[^\"]*\"|`[^`]*`", text)
    if given is None:
        return
    whole = [name for name in names if name[0] in '"`' and text.lower().startswith(name[1:-1].lower())]
    if len(whole) == 1:  # as the schema has it, but for the marks
        yield place.text[: place.offset] + whole[0] + text[len(whole[0]) - 2 :]
        return
    slips = [name for name in names if _slip(given.group().strip('"`').lower(), name.strip('"`').lower())]
    sure = [name for name in names if SequenceMatcher(None, given.group().lower(), name.lower()).ratio() >= ALIKE] if len(names) == 1 else slips
    if len(sure) == 1:
        yield place.text[: place.offset] + sure[0] + text[given.end() :]


def _slip(one: str, other: str) -> bool:
    """Whether the words differ by a letter more, less or other, or by two that changed places."""
    if len(one) == len(other):
        differ = [at for at in range(len(one)) if one[at] != other[at]]
        turned = len(differ) == 2 and differ[1] == differ[0] + 1 and one[differ[0]] == other[differ[1]] and one[differ[1]] == other[differ[0]]
        return len(differ) == 1 or turned
    short, long = sorted((one, other), key=len)
    return len(long) == len(short) + 1 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))


def table_named(place: Place) -> Iterator[str]:
    """The first table that has the column, where the text compares it with the other one's: then both have one value."""
    names = re.fullmatch(r"(\w+)\.(\w+) or (\w+)\.\2", place.instead)
    if names is None:
        return
    one, column, other = names.groups()
    pairs = (rf"\b{one}\.{column}\s*=\s*{other}\.{column}\b", rf"\b{other}\.{column}\s*=\s*{one}\.{column}\b")
    if any(re.search(pair, place.text, re.IGNORECASE) for pair in pairs):
        yield place.text[: place.offset] + f"{one}." + place.text[place.offset :]


def names_told_apart(place: Place) -> Iterator[Remarked]:
    """Of columns of one name in a subquery the second under a name of its own."""
    words, found = place.words, TWICE.search(place.refused.message)
    name = "" if found is None else found.group(1).upper()
    for at in range(len(words.tokens)):
        level = words.level(at) if name and words.kind(at) is TokenType.SELECT else None
        shown = [] if level is None else [one for one in words.items(level) if words.word(one[1] - 1) == name]
        if len(shown) > 1:
            (first, end), told = shown[1], words.cut(shown[1][1] - 1, shown[1][1])
            own = first == end - 1 or words.kind(end - 2) is TokenType.DOT
            text = f"{told} AS {told}_2" if own else f"{told}_2"
            yield Remarked(words.with_edits((words.begin(end - 1), words.stop(end - 1), text)), f"of the first {told}")
            return


def alias_put(place: Place) -> Iterator[str]:
    """An alias for the second of two relations of one name."""
    words, name = place.words, place.words.word(place.index).lower()
    if name.isidentifier() and words.kind(place.index + 1) in (None, TokenType.COMMA, TokenType.WHERE, TokenType.R_PAREN, TokenType.JOIN):
        yield words.with_edits((words.stop(place.index), words.stop(place.index), f" AS {name}_2"))
    alias = place.index + 1 + (words.kind(place.index + 1) is TokenType.ALIAS)
    read = any(words.word(at) == words.word(alias) and words.kind(at + 1) is TokenType.DOT for at in range(len(words.tokens)))
    if not read and f"called {words.word(alias).lower()!r}" in place.refused.message.lower():  # which of both is meant is never asked
        yield words.with_edits((words.stop(alias), words.stop(alias), "_2"))


def alias_list_left_out(place: Place) -> Iterator[str]:
    """An alias without names of columns."""
    words = place.words
    for at in range(place.index, min(place.index + 4, len(words.tokens))):
        close = words.closing(at) if words.kind(at) is TokenType.L_PAREN and words.kind(at + 1) is not TokenType.SELECT else None
        if close is not None:
            yield words.with_edits((words.begin(at), words.stop(close), ""))


# ---- expressions -------------------------------------------------------------------------------------------------------------------


def compared(place: Place) -> Iterator[str]:
    """A number as a condition: true where it is not 0."""
    if place.refused.message.endswith(("integer", "double")) or " decimal" in place.refused.message:
        yield place.words.with_edits((place.words.stop(place.index), place.words.stop(place.index), " <> 0"))


def cast_null(place: Place) -> Iterator[str]:
    """A NULL of a type."""
    words = place.words
    for at in (place.index, place.index - 1, place.index - 2):
        if words.word(at) == "NULL":
            yield words.with_edits((words.begin(at), words.stop(at), "CAST(NULL AS VARCHAR)"))


def comma_left_out(place: Place) -> Iterator[str]:
    """One comma in place of two."""
    if place.words.kind(place.index) is TokenType.COMMA and place.words.kind(place.index - 1) is TokenType.COMMA:
        yield place.words.with_edits((place.offset, place.words.stop(place.index), ""))


def privacy_moved(place: Place) -> Iterator[str]:
    """The clause of privacy in the SELECT within, which is the one that aggregates private rows."""
    clause, words = CLAUSE.search(place.text), place.words
    inner = None if clause is None else re.compile(r"\(\s*SELECT\s+", re.IGNORECASE).search(place.text, clause.end())
    if clause is not None and inner is not None and words.text.count(clause.group()) == 1:
        rest = place.text[clause.end() : inner.end()]
        yield place.text[: clause.start()] + rest + clause.group() + place.text[inner.end() :]


def first_alone(place: Place) -> Iterator[str]:
    """The first of several statements."""
    yield place.words.cut(0, place.index).rstrip().rstrip(";").rstrip()


EDITS: dict[str, tuple[Change, ...]] = {
    **dict.fromkeys(("BAD_CONFIDENCE", "BAD_PRICE", "BOUNDS_NOT_LITERAL", "EPSILON_TOO_LARGE", "REPORT_FORMAT", "BAD_BOUNDS"), (option_put,)),
    **dict.fromkeys(("DUPLICATE_OPTION", "OPTIONS_CONFLICT", "OPTION_WITHOUT_EFFECT", "PUBLIC_GROUPS", "ROW_WEIGHTS"), (option_left_out,)),
    **dict.fromkeys(("TWO_PRICES", "TWO_CONFIDENCES", "NO_SELECTION", "SHARES_EXCEED_PRICE", "NAMED_ARGUMENT"), (option_left_out,)),
    **dict.fromkeys(("GAUSSIAN_NEEDS_DELTA", "PRIVATE_KEYS_NEED_DELTA", "RHO_NEEDS_DELTA", "DELTA_SHARE"), (delta_left_out,)),
    **dict.fromkeys(("UNKNOWN_COLUMN", "UNKNOWN_TABLE", "UNKNOWN_OPTION"), (name_put,)),
    "BAD_DELTA": (option_put, option_left_out),
    "OPTION_VALUE": (number_put, option_put, option_left_out),
    "PRIVACY_UNIT": (option_put, option_left_out),
    "REVERSED_BOUNDS": (bounds_turned,),
    "EPSILON_SHARES": (shares_left_out,),
    "PER_ROW_BOUNDS": (_named_left_out("contribution_bounds_per_row"),),
    "PER_GROUP_BOUNDS": (put(r"(\b\w+\s*\([^()]*\bcontribution_bounds_per_)group\b", r"\1row"), _named_left_out("contribution_bounds_per_group")),
    "ANONYMIZATION": (put("ANONYMIZATION", "DIFFERENTIAL_PRIVACY"),),
    "AGGREGATION_THRESHOLD": (
        put(r"AGGREGATION_THRESHOLD\s+OPTIONS\s*\(\s*threshold\b", "DIFFERENTIAL_PRIVACY OPTIONS(min_privacy_units_per_group"),
        put(r"AGGREGATION_THRESHOLD\b", "DIFFERENTIAL_PRIVACY"),
    ),
    "QUALIFIED_NAME": (left_out(r"(?:\w+\.)+(?=\w)"),),
    "AMBIGUOUS_COLUMN": (table_named, names_told_apart),
    "DUPLICATE_ALIAS": (alias_put,),
    "ALIAS": (alias_list_left_out,),
    "LOCK": (left_out(r"\s*\bFOR\s+(?:NO\s+KEY\s+|KEY\s+)?(?:UPDATE|SHARE)\b(?:\s+(?:NOWAIT|SKIP\s+LOCKED))?"),),
    "HINT": (left_out(r"/\*\+.*?\*/\s*"),),
    "TABLESAMPLE": (left_out(SAMPLED),),
    "SELECT_INTO": (left_out(r"\bINTO\s+\w+\s+"),),
    "SELECT_KIND": (left_out(r"\bAS\s+(?:STRUCT|VALUE)\s+"),),
    "SORT_BY": (put(r"\bSORT(\s+BY\s+\w+)", r"ORDER\1"),),
    "CLUSTER_BY": (put(r"\bCLUSTER(\s+BY\s+\w+)", r"ORDER\1"),),
    "DISTRIBUTE_BY": (left_out(r"\s*\bDISTRIBUTE\s+BY\s+[\w\s,.]+?(?=\bSORT\b|\)|\Z)"),),
    "GROUP_TOTALS": (put(r"\b(GROUP\s+BY\b.*?)\s+WITH\s+TOTALS\b", r"\1"),),
    "ONLY": (left_out(r"\bONLY\s+(?=\w)"),),
    "RECURSIVE": (word_left_out("RECURSIVE"),),
    "TIME_TRAVEL": (
        left_out(rf"\s*\bFOR\s+(?:SYSTEM_TIME|SYSTEM_VERSION|TIMESTAMP|VERSION)\s+AS\s+OF\s+(?:(?:TIMESTAMP\s+)?'[^']*'|\w+(?:\s*{BRACKETS})?)"),
        left_out(rf"\s*\b(?:AT|BEFORE)\s*{BRACKETS}"),
    ),
    "WITH_TIES": (left_out_behind(r"\s+WITH\s+TIES\b"), put_behind(r"\bWITH\s+TIES\b", "ONLY")),
    "MISSING_LIMIT": (limit_set,),
    "LIMIT": (put(r"\b(LIMIT\s+)-?[\w.]+", r"\g<1>10"),),
    "LIMIT_PERCENT": (put(r"\b(LIMIT\s+\d+)\s*(?:%|PERCENT)", r"\1"),),
    "ORDER_BY_IN_SUBQUERY": (clause_left_out(TokenType.ORDER_BY),),
    "ORDER_BY_ALL": (left_out(r"\bALL\s*,\s*"),),
    "NOT_A_CONDITION": (compared,),
    "KEY_TYPE": (cast_null,),
    "SYNTAX": (comma_left_out,),
    "NESTED_RELEASE": (privacy_moved,),
    "SEVERAL_STATEMENTS": (first_alone,),
    "STAR_RENAME": (left_out(r"(?<=\*)\s*RENAME\s*\([^()]*\)"),),
    "COLLATION": (put(r"\b([\w.]+)\s+COLLATE\s+\"?nocase\"?\s*(=|<>)\s*('[^']*')", r"lower(\1) \2 lower(\3)"),),
}
