"""What a `$` opens: a parameter, `$1` or `$name`, or a text between dollars, `$tag$ .. $tag$`.

The parser takes whatever stands between two `$` for a tag, so that `IN ($1,$2)` opens a text to it. To the engines a tag is nothing, or a word that
begins with no digit. Up to the first true tag a text reads the same with texts between dollars and without: where a reading without them meets no
true tag, there is none, and that reading is the true one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from types import new_class

from sqlglot import Token
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Tokenizer

TAG = re.compile(r"\$(?:[^\W\d]\w*)?\$")


def tokens(text: str, reader: Dialect) -> list[Token]:
    """The tokens of the text. Raises SqlglotError where there are none."""
    if "$" not in text or not reader.tokenizer_class.HEREDOC_STRINGS:
        return list(reader.tokenize(text))
    try:
        found = list(_without(reader.tokenizer_class)(dialect=reader).tokenize(text))
    except SqlglotError:  # a quotation mark within a text between dollars, or one that is never closed
        return list(reader.tokenize(text))
    return list(reader.tokenize(text)) if any(TAG.match(text, token.start) for token in found) else found


@lru_cache(maxsize=8)
def _without(kind: type[Tokenizer]) -> type[Tokenizer]:
    """The same tokenizer to which no `$` opens a text."""
    body = {"HEREDOC_STRINGS": [], "SINGLE_TOKENS": {**kind.SINGLE_TOKENS, "$": kind.HEREDOC_STRING_ALTERNATIVE}}
    return new_class(kind.__name__, (kind,), exec_body=lambda space: space.update(body))
