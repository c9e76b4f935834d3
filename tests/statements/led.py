"""Statements that only compare the groups of a release, so that one of them is chosen, over the data sets of worlds.py."""

from __future__ import annotations

from random import Random

from worlds import World

MOST, LEAST = ("arg_max", "max_by"), ("arg_min", "min_by")
FORMS: tuple[str, ...] = (
    "SELECT {name}({k}, n) AS best FROM ({below})",
    "WITH w AS ({below}) SELECT {name}(w.{k}, w.n) AS best FROM w",
    "SELECT (SELECT {name}({k}, n) FROM ({below}) AS t) AS best",
)


def led(made: World, random: Random) -> list[tuple[str, bool]]:
    """Statements of each private table with a column of declared values, and whether they ask for the most."""
    found = []
    for table in made.private():
        own = [column for column in table.columns if not column.unique and column.name not in (table.unit, *(table.unit or ()))]
        numbers = [f'"{column.name}"' for column in own if column.type.numeric]
        scores = ["count(*)", *(f"sum({number})" for number in numbers), *(f'count(DISTINCT "{column.name}")' for column in own)]
        for key in own:
            if key.values is None or len(key.values) < 2:
                continue
            score = random.choice(scores)
            options = random.choice(["", "WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1) "])
            below = f'SELECT {options}"{key.name}", {score} AS n FROM "{table.name}" GROUP BY "{key.name}"'
            for names in (MOST, LEAST):
                text = random.choice(FORMS).format(name=random.choice(names), k=f'"{key.name}"', below=below)
                found.append((text, names is MOST))
    return found
