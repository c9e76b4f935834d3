"""How often error bars of 95% hold the value before noise, aggregate by aggregate, over many releases.

    python benchmarks/intervals.py [--releases 20000] [--only CORR] [--keys public] [--epsilon 1] [--people 30000]

The bounded statement is run once. Its exact integers of one group are then released as many times, through the product's own noise, values and error
bars. What a bar is to hold is the bounded answer: of clamped values and capped rows, before noise. Public keys: groups of 30, 1,000 and 30,000
people. Private keys: groups of about the threshold's size; coverage is among the releases that passed it. `deviation` is that of the finest noise, in
steps of its grid, of a quantile that of its value in bins; `wide` the half width of the bar (median) over 1.96 deviations of the released value;
`whole` how many bars have no ends or all that bounds allow. `bar`: 94% to 97% where keys are public and noise has a deviation of five steps at least,
and 94% or more elsewhere; `few` where it is more because one of a hundred bars or more is `whole`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpquery.aggregates import CARDS
from dpquery.aggregates.counted import Counted
from dpquery.engine import asking, create_ledger, open_session
from dpquery.engine.prepared import Ready
from dpquery.engine.session import Session
from dpquery.mechanisms import SystemBits, deviation
from dpquery.plan.draft import Affine, Output, Ratio
from dpquery.plan.release import Aggregate, Bins, Choosing, ListedKeys, PrivateKeys
from dpquery.release import noise
from dpquery.release.bars import Released, intervals
from dpquery.values.exact import Exact
from dpquery.values.noisy import Noisy
from dpquery.values.types import Value

C95 = Fraction(95, 100)
LOW, HIGH, FINE = 0.94, 0.97, 5.0
MOST_NUMBERS = 2_000_000  # noisy integers at a time
MOST_TRIED = 4_000_000  # releases of a private group, to see as many as are wanted
SIZES = (30, 1_000, 30_000)
LARGEST = 200  # people of a private group
SCHEMA = """
dataset: bars
privacy_unit: people.id
unsafe_testing: true
budget: {epsilon: 1e9, delta: 1e-3}
per_query: {epsilon: 1, delta: 1e-6}
contribution: {max_groups_contributed: 1, max_rows_per_group: 2}
tables:
  people:
    path: people.parquet
    unit: id
    max_rows_per_unit: 1
    columns:
      id: {type: integer}
      g: {type: integer, values: [30, 1000, 30000]}
      h: {type: integer}
      x: {type: integer, lower: 0, upper: 100}
      y: {type: float, lower: -10, upper: 10}
  visits:
    path: visits.parquet
    unit: id
    columns: {id: {type: integer}, g: {type: integer, values: [30, 1000, 30000]}, h: {type: integer}, x: {type: integer, lower: 0, upper: 100}}
"""
ASKED: Mapping[str, str] = {
    "COUNT(*)": "count(*)",
    "COUNT(DISTINCT unit)": "count(DISTINCT id)",
    "COUNT(DISTINCT x)": "count(DISTINCT x)",
    "SUM": "sum(x)",
    "SUM of floats": "sum(y)",
    "AVG": "avg(x)",
    "AVG of units": "avg(x, contribution_bounds_per_group => (0, 100))",
    "VAR_POP": "var_pop(x)",
    "VAR_SAMP": "var_samp(y)",
    "STDDEV_POP": "stddev_pop(y)",
    "STDDEV_SAMP": "stddev_samp(x)",
    "COVAR_POP": "covar_pop(x, y)",
    "COVAR_SAMP": "covar_samp(x, y)",
    "CORR": "corr(x, y)",
    "MEDIAN": "quantile_disc(x, 0.5)",
    "QUANTILE 9/10": "quantile_disc(x, 0.9)",
    "MEDIAN of floats": "median(y)",
    "SUM / COUNT": "sum(x), count(y)",
}
TABLES = {"COUNT(*)": "visits", "COUNT(DISTINCT x)": "visits", "AVG of units": "visits"}
PRICES = {False: (0.05, 1.0, 30.0), True: (0.3, 3.0)}  # of public and of private keys


def opened(folder: Path) -> Session:
    """The data set, made in a folder."""
    make(folder)
    create_ledger(folder / "bars.yaml")
    return open_session(folder / "bars.yaml")


def make(folder: Path) -> None:
    """People with a public and a private group each, and two visits of each."""
    rng = np.random.default_rng(1)
    g = np.repeat(SIZES, SIZES)
    h = np.zeros(len(g), dtype=np.int64)
    own = np.repeat(np.arange(1, LARGEST + 1), np.arange(1, LARGEST + 1))
    g, h = np.concatenate([g, np.zeros(len(own), dtype=np.int64)]), np.concatenate([h, own])
    ids = np.arange(len(g))
    x = np.clip(np.rint(rng.gamma(4, 9, len(g))), 0, 100).astype(np.int64)
    y = np.clip((x - 40) / 8 + rng.normal(0, 2, len(g)), -10, 10)
    pq.write_table(pa.table({"id": ids, "g": g, "h": h, "x": x, "y": y}), folder / "people.parquet")
    twice = np.concatenate([ids, ids])
    again = np.concatenate([x, np.minimum(100, x // 2 + 7)])
    pq.write_table(pa.table({"id": twice, "g": g[twice], "h": h[twice], "x": again}), folder / "visits.parquet")
    (folder / "bars.yaml").write_text(SCHEMA)


@dataclass(frozen=True, slots=True)
class Case:
    """A statement: what is asked, by which keys, with which noise at which price."""

    name: str
    private: bool
    noise: str
    epsilon: float

    @property
    def keys(self) -> str:
        return "private" if self.private else "public"

    @property
    def sql(self) -> str:
        key, table = "h" if self.private else "g", TABLES.get(self.name, "people")
        options = f"epsilon={self.epsilon}, delta={1e-6 if self.private or self.noise == 'GAUSSIAN' else 0}, noise={self.noise}"
        return f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {key}, {ASKED[self.name]} FROM {table} GROUP BY {key}"

    @property
    def output(self) -> Output:
        return Output("x", Ratio("a0", "a1") if self.name == "SUM / COUNT" else Affine("a0"), True)


@dataclass(frozen=True, slots=True)
class Measured:
    """Of so many releases of one group: how many of the bars hold the value before noise, how wide they are, and how many say nothing."""

    size: int
    steps: float
    held: float
    wide: float
    whole: float
    number: int


def ready(session: Session, case: Case) -> tuple[Ready, Exact]:
    """The statement up to its price, and the exact integers of all groups."""
    (block,) = session._prepare(case.sql, asking.call(), "duckdb").blocks
    return block, session.backend.run(block.lowered, block.key_types, len(block.release.table.parts))


def measured(block: Ready, exact: Exact, place: int, output: Output, wanted: int) -> Measured:
    """What becomes of one group's exact integers in so many releases."""
    numbers = sum(part.numbers for part in block.release.table.parts)
    truth, steps = true_value(block, exact, place), finest(block)
    values, bars, tried = list[float](), list[tuple[float, float]](), 0
    while len(bars) < wanted and tried < (wanted if isinstance(block.release.keys, ListedKeys) else MOST_TRIED):
        each = max(1, min(wanted, MOST_NUMBERS // numbers))
        tried += each
        noisy = released(block, exact, place, each)
        release = replace(block.release, keys=listed(each)) if isinstance(block.release.keys, ListedKeys) else block.release
        (column,) = intervals((output,), {"t": Released(release, noisy, block.priced, range(len(noisy.keys)))}, C95)
        assert column is not None
        bars += [(-np.inf, np.inf) if bar is None else (float(bar[0]), float(bar[1])) for bar in column]
        values += shown(block, noisy, output)
    low, high = np.array(bars or [(np.nan, np.nan)]).T
    slack = 1e-9 * max(1.0, abs(truth))
    wide, most = high - low, everything(block)
    spread = float(np.std(values)) if values else np.nan
    which = block.release.aggregates[0].quantile
    steps = steps if which is None else spread / float(which.widths[-1] * block.release.aggregates[0].step)
    held = float(np.mean((low <= truth + slack) & (truth - slack <= high)))
    whole = float(np.mean((wide >= most * (1 - 1e-12)) | ~np.isfinite(wide)))
    return Measured(int(str(exact.keys[place][0])), steps, held, float(np.median(wide)) / 2 / 1.96 / (spread or np.nan), whole, len(bars))


def everything(block: Ready) -> float:
    """How wide the bar is of a group of which nothing is known; infinite where each has the same width."""
    one = block.release.aggregates[0]
    if one.card in ("count", "units", "distinct", "total") or one.quantile is not None:
        return np.inf
    (bar,) = CARDS[one.card].interval(one, [[0]] * len(one.parts), [block.priced.noises[part] for part in one.parts], C95)
    assert isinstance(bar, tuple)
    return float(str(bar[1])) - float(str(bar[0]))


def finest(block: Ready) -> float:
    """The least deviation of noise, in steps of its grid; a choice has none."""
    drawn = [block.priced.noises[part] for one in block.release.aggregates for part in one.parts]
    return min((deviation(one) for one in drawn if not isinstance(one.mechanism, Choosing)), default=0.0)


def listed(number: int) -> ListedKeys:
    return ListedKeys(tuple((i,) for i in range(number)), "")


def released(block: Ready, exact: Exact, place: int, number: int) -> Noisy:
    """So many releases of one group, each as a group of its own."""
    keys = listed(number)
    sums = tuple((column[place],) * number if column else () for column in exact.sums)
    many = Exact(keys.rows, sums, {part: (found[place],) * number for part, found in exact.bins.items()})
    private = isinstance(block.release.keys, PrivateKeys)
    return noise.add(many, block.release if private else replace(block.release, keys=keys), block.priced, SystemBits())


def shown(block: Ready, noisy: Noisy, output: Output) -> list[float]:
    """The released values."""
    found = [_finished(block, one, noisy) for one in block.release.aggregates[:2]]
    if isinstance(output.interval, Ratio):
        return [a / b if b else np.nan for a, b in zip(*found, strict=True)]
    return found[0]


def _finished(block: Ready, one: Aggregate, noisy: Noisy) -> list[float]:
    return [_number(value) for value in CARDS[one.card].finish(one, [noisy.sums[part] for part in one.parts])]


def _number(value: object) -> float:
    return float(str(value[0] if isinstance(value, list) else value))


def true_value(block: Ready, exact: Exact, place: int) -> float:
    """The value of the exact integers themselves."""
    numbers = [
        tuple(exact.bins[i][place].get(b, 0) for b in range(part.numbers)) if i in exact.bins else (exact.sums[i][place],)
        for i, part in enumerate(block.release.table.parts)
    ]
    found: list[Value] = []
    for one in block.release.aggregates:
        cell = block.release.table.parts[one.parts[0]].cell
        if one.quantile is not None and isinstance(cell, Bins):  # counted or chosen: of the narrowest bins
            narrow = numbers[one.parts[-1]]
            ((value,),) = Counted(one.quantile.high - one.quantile.low + 1, one.quantile.widths[-1:], (np.array([narrow]) / 2**20,)).quantiles(
                replace(one.quantile, widths=one.quantile.widths[-1:])
            )
            found.append(float(value * one.step))
        else:
            found.append(CARDS[one.card].finish(one, [numbers[part] for part in one.parts])[0])
    return _number(found[0]) / _number(found[1]) if len(found) == 2 else _number(found[0])


def groups(block: Ready, exact: Exact) -> Sequence[int]:
    """The groups that are looked at: listed ones all, private ones of about the threshold's size."""
    if not isinstance(block.release.keys, PrivateKeys):
        return range(len(exact.keys))
    least = (block.priced.threshold or 1) + block.release.keys.minimum - 1
    off = deviation(block.priced.noises[block.release.keys.count])
    sizes = dict.fromkeys(max(1, min(LARGEST, round(least + k * off))) for k in (-3, -1, 0, 1, 2.5, 6))
    place = {key[0]: i for i, key in enumerate(exact.keys)}
    return [place[size] for size in sizes]


def cases(only: str) -> Iterator[Case]:
    for name in ASKED:
        for private in (False, True):
            for drawn in ("LAPLACE", "GAUSSIAN", *(("EXPONENTIAL",) if "MEDIAN" in name or "QUANTILE" in name else ())):
                for epsilon in PRICES[private]:
                    if only.lower() in name.lower() and not (private and name == "SUM / COUNT"):
                        yield Case(name, private, drawn, epsilon)


def verdict(case: Case, found: Measured) -> str:
    most = HIGH if found.steps >= FINE and not case.private else 1.0
    return "" if LOW <= found.held <= most or not found.number else "below" if found.held < LOW else "few" if found.whole >= 0.01 else "above"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=20_000)
    parser.add_argument("--only", default="", help="aggregates with this in their name")
    parser.add_argument("--keys", default="", choices=("", "public", "private"))
    parser.add_argument("--epsilon", type=float, help="this price alone")
    parser.add_argument("--people", type=int, help="groups of this size alone")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        session = opened(Path(place))
        print("| aggregate | keys | noise | epsilon | people | deviation | releases | coverage | wide | whole | bar |")
        print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
        for case in cases(args.only):
            if (args.keys or case.keys) != case.keys or (args.epsilon or case.epsilon) != case.epsilon:
                continue
            block, exact = ready(session, case)
            for group in (one for one in groups(block, exact) if args.people in (None, exact.keys[one][0])):
                f = measured(block, exact, group, case.output, args.releases)
                cells = f"{f.steps:.3g} | {f.number:,} | {f.held:.4f} | {f.wide:.2f} | {f.whole:.1%} | {verdict(case, f)}"
                print(f"| {case.name} | {case.keys} | {case.noise.lower()} | {case.epsilon:g} | {f.size:,} | {cells} |", flush=True)
        session.close()


if __name__ == "__main__":
    main()
