"""House rules of the argument: each public function a lemma with its five parts, an id and tests; its page and its fingerprint are current."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FunctionType, ModuleType

import argument
import fingerprints
import pytest

import dpquery
from dpquery.accounting import convert, pure, zcdp
from dpquery.engine.proofs import PACKAGE, README, Lemma, lemmas, proofs
from dpquery.privacy import allocation, compared, contribution, cost, later, locality, raced, resolve, rows, together

MODULES: tuple[ModuleType, ...] = (  # whose functions are lemmas
    *(locality, rows, later, raced, compared, contribution, resolve, allocation, cost, together),
    *(convert, pure, zcdp),
)
ALLOWED = ("plan", "accounting", "mechanisms", "aggregates", "numbers", "errors", "values.types", "privacy")
ID = re.compile(r"\b[A-Z]\d{1,2}\b")
LEMMAS = {lemma.id: lemma for lemma in lemmas({})}
EACH = pytest.mark.parametrize("lemma", LEMMAS.values(), ids=LEMMAS)


def public() -> Iterator[FunctionType]:
    for module in MODULES:
        for name, value in vars(module).items():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__ and not name.startswith("_"):
                yield value


# ---- lemmas --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", list(public()), ids=lambda f: f.__name__)
def test_a_public_function_of_the_argument_is_a_lemma(function: FunctionType) -> None:
    assert f"{function.__module__}.{function.__name__}" in {lemma.function for lemma in LEMMAS.values()}


def test_ids_are_unique() -> None:
    ids = [lemma.id for lemma in lemmas({})]
    assert len(ids) == len(set(ids)) > 45


@EACH
def test_a_lemma_has_its_five_parts_in_order(lemma: Lemma) -> None:
    assert all((lemma.title, lemma.given, lemma.claim, lemma.proof, lemma.tight, lemma.source))
    text = inspect.getdoc(function(lemma)) or ""
    places = [text.find(f"\n{part} ") for part in ("Given", "Claim", "Proof", "Tight", "Source")]
    assert places == sorted(places)


def function(lemma: Lemma) -> Callable[..., object]:
    module, _, name = lemma.function.rpartition(".")
    found: Callable[..., object] = getattr(__import__(module, fromlist=[name]), name)
    return found


@EACH
def test_the_tests_that_a_lemma_names_exist(lemma: Lemma) -> None:
    assert argument.reached(lemma), f"{lemma.id}: Tight names no test that reaches the claim, or that shows why there is nothing to reach"


@EACH
def test_a_lemma_is_tried(lemma: Lemma) -> None:
    assert argument.held(lemma), f"{lemma.id}: no test is marked with it: @pytest.mark.lemma({lemma.id!r})"


def test_tests_are_marked_with_lemmas_that_exist() -> None:
    assert argument.known()[1].keys() <= LEMMAS.keys()


def test_what_the_text_cites_exists() -> None:
    """Ids in the docstrings of lemmas, but for those of docs/pitfalls.md, and in the words around the page's tables."""
    pitfalls = re.compile(r"docs/pitfalls\.md[^.;]*")
    for lemma in LEMMAS.values():
        cited = set(ID.findall(" ".join((lemma.given, lemma.claim, lemma.proof, lemma.tight, pitfalls.sub("", lemma.source)))))
        assert {c for c in cited if c[0] in "LCRPZVMB"} - {"L2"} <= LEMMAS.keys(), lemma.id  # L2 is a norm as well
    assert set(ID.findall(argument.WORDS)) <= LEMMAS.keys()


def test_sources_can_be_found() -> None:
    """They name literature, other lemmas, or entries of docs/pitfalls.md that are there."""
    entries = set(re.findall(r"^\| ([A-Z]\d+) \|", (argument.ROOT / "docs/pitfalls.md").read_text(), re.MULTILINE))
    for lemma in LEMMAS.values():
        for listed in re.findall(r"docs/pitfalls\.md ((?:(?:, | and )?[A-Z]\d+)+)", lemma.source):
            assert set(ID.findall(listed)) <= entries, lemma.id
        assert not re.search(r"\b(design|theory|house style)\b|(?<!docs/)\bpitfalls\b", lemma.source), lemma.id


# ---- the page ------------------------------------------------------------------------------------------------------------------------


def test_the_page_is_current() -> None:
    assert README.read_text() == argument.page(), "run `make docs`"


def test_the_page_is_read_as_it_is_written() -> None:
    """From the README alone, which is all that an installed dpquery has, come the tests of each lemma."""
    for lemma in proofs():
        assert set(lemma.tests) == {*argument.held(lemma), *argument.reached(lemma)}


def test_links_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target


# ---- fingerprints --------------------------------------------------------------------------------------------------------------------


def test_no_body_changes_without_its_proof_being_read_again() -> None:
    kept, now = fingerprints.kept(), fingerprints.current()
    changed = sorted(id for id in {*kept, *now} if kept.get(id) != now.get(id))
    assert not changed, f"re-read the proof of {', '.join(changed)} (`dpquery proofs {changed[0]}`), then run `make fingerprints`"


SAMPLE = '''
"""A module."""

from other import third
from other import numbers as n

LIMIT = 3


def lemma(x):
    """Q1. A title."""
    return _half(x) + other(x)


def other(x):
    """Q2. Another."""
    return x


def _half(x):
    """Half."""
    return x / LIMIT + third(x) * n.up(x)  # why
'''
ELSEWHERE = {
    "other": "from deeper import third as third\n",
    "deeper": "def third(x):\n    return _third(x)\n\n\ndef _third(x):\n    return x / 3\n\n\ndef fourth(x):\n    return x / 4\n",
    "other.numbers": "def up(x):\n    return x * 1\n",
}
ONE = Lemma("Q1", "A title.", "x", "y", "", "", "", "sample.lemma")


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("_half(x) + other(x)", "_half(x) - other(x)", False),
        ("x / LIMIT", "x * LIMIT", False),
        ("LIMIT = 3", "LIMIT = 4", False),
        ("def lemma(x)", "def lemma(x, y=1)", False),
        ('"""Half."""', '"""A half."""', True),
        ("# why", "# why not", True),
        ("    return x\n", "    return (x + 1)\n", True),  # Q2 has a fingerprint of its own
        ("_half(x) + other(x)", "(_half(x)   + other(x))", True),
        ("return x / 3", "return x / 2", False),  # in another module, which a third one hands on
        ("return x / 4", "return x / 5", True),  # nobody names it
        ("return x * 1", "return x * 2", False),
    ],
)
def test_a_fingerprint_is_that_of_what_a_proof_is_about(old: str, new: str, same: bool) -> None:
    assert sum(old in source for source in (SAMPLE, *ELSEWHERE.values())) == 1
    assert (sampled(ONE) == sampled(ONE, old, new)) is same


def sampled(lemma: Lemma, old: str = "", new: str = "") -> str:
    """The fingerprint of a lemma of the sample, with a text replaced in all its modules."""
    sources = {"sample": SAMPLE, **ELSEWHERE}
    modules = {name: fingerprints.parsed(source.replace(old, new) if old else source) for name, source in sources.items()}
    return fingerprints.of(lemma, modules.get)


def test_a_fingerprint_holds_the_claim() -> None:
    for changed in (replace(ONE, claim="z"), replace(ONE, given="z")):
        assert sampled(changed) != sampled(ONE)
    assert sampled(replace(ONE, proof="z")) == sampled(ONE)


@pytest.mark.parametrize(
    ("lemma", "name"),
    [
        ("V4", "numbers.exp_up"),
        ("V1", "numbers.log_up"),
        ("R1", "plan.rules.PARTS"),
        ("R1", "aggregates.grid.grid"),
        ("L1", "plan.rel.Keep"),
        ("M1", "mechanisms.series.terms"),
        ("M5", "mechanisms.laws.law_of"),
        ("M5", "mechanisms.bits.SystemBits"),  # one of what its protocol stands for
    ],
)
def test_a_fingerprint_reaches_into_the_modules_that_a_lemma_rests_on(lemma: str, name: str) -> None:
    of = LEMMAS[lemma]
    reached = fingerprints.reached((of.module, of.function.rpartition(".")[2]), fingerprints.module)
    assert ("dpquery." + name.rpartition(".")[0], name.rpartition(".")[2]) in reached


# ---- what cites them -----------------------------------------------------------------------------------------------------------------

STATEMENTS = (
    "SELECT sum(amount, bounds => 'auto') FROM orders",
    "SELECT count(*, contribution_bounds_per_group => (0, 40), bounds => 'race') AS n FROM orders",
    "SELECT mode(amount > 50) FROM orders",
    "SELECT arg_max(status, n) FROM (SELECT status, count(*) AS n FROM orders WHERE status IN ('shipped', 'returned') GROUP BY status)",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(noise = EXPONENTIAL) median(amount) FROM orders",
    "SELECT count(*) AS n FROM users",
    "SELECT status, sum(amount) AS s FROM orders WHERE amount > 3 GROUP BY status",
    "SELECT status, count(*) AS n FROM orders WHERE status IN ('shipped', 'returned') GROUP BY status",
    "SELECT product, count(*) AS n FROM order_items GROUP BY product",
    "SELECT count(DISTINCT product) AS products FROM order_items",
    "SELECT country, avg(age) AS a FROM users GROUP BY country",
    "SELECT country, count(*) AS n FROM orders JOIN users USING (user_id) GROUP BY country",
    "SELECT region, count(*) AS n FROM users JOIN countries USING (country) GROUP BY region",
    "SELECT a.status, count(*) AS n FROM orders a JOIN orders b USING (user_id) GROUP BY a.status",
    "SELECT x, count(*) AS n FROM users LEFT JOIN (SELECT upper(category) AS x, user_id FROM orders) AS o USING (user_id) GROUP BY x",
    "SELECT count(*) * 1.0 / (SELECT count(*) FROM orders) AS share FROM orders WHERE amount > 3",
    "SELECT count(*) AS n FROM (SELECT user_id FROM orders UNION SELECT user_id FROM users)",
    "SELECT count(*) AS n FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.user_id)",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 3) status, count(*) AS n FROM orders GROUP BY status",
    "SELECT avg(n) AS a FROM (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id)",
    "SELECT category, count(*) AS n FROM orders WHERE category IN (SELECT category FROM orders GROUP BY category) GROUP BY category",
    "SELECT median(amount) AS m FROM orders",
    "SELECT sum(amount) AS s FROM (SELECT user_id, amount FROM orders QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY day) = 1)",
)


def strings() -> set[str]:
    """Every id that stands as a text in code, docstrings apart."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ID.fullmatch(node.value):
                found.add(node.value)
    return found


def test_ids_in_code_are_lemmas() -> None:
    assert strings() <= LEMMAS.keys()


@pytest.mark.lemma("R2")
def test_statements_cite_every_lemma_that_a_plan_can_use(shop: Callable[[Path], Path], tmp_path: Path) -> None:
    """Explanations and receipts, over statements that between them use every operator, key rule and bounding."""
    cited = set[str]()
    with dpquery.connect(shop(tmp_path / "shop")) as con:
        for statement in STATEMENTS:
            explained = con.explain(statement, epsilon="0.1", delta="1e-8").as_dict()
            receipt = con.query(statement, epsilon="0.1", delta="1e-8").receipt
            assert receipt["lemmas"] == explained["lemmas"]
            cited.update(explained["lemmas"])
            for row in (*explained["releases"], *receipt["releases"]):
                assert {*row.get("lemmas", ()), row["lemma"]} <= set(explained["lemmas"])
    assert cited <= LEMMAS.keys()
    assert cited == strings()


# ---- code ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(Path(locality.__file__).parent.glob("*.py")), ids=lambda p: p.name)
def test_the_argument_holds_no_float_and_looks_down(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, float)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpquery"):
            assert (node.module or "").removeprefix("dpquery.").startswith(ALLOWED)
