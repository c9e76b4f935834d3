"""The product made wrong on purpose: each mutant a few changed words of its source, and the layer of checks that must notice.

A mutant rewrites functions of the product in place, wherever they were imported to; nothing of the check changes. Checks are the layers' own tests.
"""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from dpquery.accounting import convert, zcdp
from dpquery.backends import cells, grid, lower, relation, values
from dpquery.engine.session import Session
from dpquery.ledger import policy, replay
from dpquery.ledger.ledger import Ledger
from dpquery.mechanisms import choice, sampler, tails
from dpquery.mechanisms.bits import SystemBits
from dpquery.privacy import compared, contribution, cost, locality, resolve, together
from dpquery.release import bars, losses, noise, ranks
from dpquery.sql import sides

Function = Callable[..., Any]


@dataclass(frozen=True)
class Mutant:
    """Changes of functions (function, words, other words), the layer that must notice, and its test. `cheap`: it notices within seconds."""

    changes: tuple[tuple[Function, str, str], ...]
    layer: str
    test: str
    cheap: bool = False


NEIGHBOURS, LOWERED, STATEMENTS = "neighbours of plans", "neighbours of lowered plans", "neighbours of statements"
EXACT, ACCOUNTING, BITS, RELEASE, ENGINE = "exact laws", "accounting", "samplers", "release", "lowering on the engine"
ATTACKS, PITFALLS, LEDGER, AUDITS, INTERFERENCE = "attack table", "pitfalls", "ledger", "end-to-end audits", "non-interference"
SESSION = "what the session draws by"

PLANS = "tests/privacy/test_neighbour_machine.py::test_c3_random_releases_stay_within_their_claims"
BY_ENGINE = "tests/privacy/test_lowered.py::test_lowered_statements_stay_within_their_claims"
BY_UNITS = "tests/privacy/test_lowered.py::test_what_is_added_up_before_a_join_agrees_with_the_interpreter"
PLAIN = "tests/sql/test_joins_answered.py::test_without_noise_the_answer_is_the_plain_engines"
RANDOM = "tests/statements/test_random_statements.py::test_random_statements"
AUDIT = "tests/audit/test_audits.py::test_no_release_tells_more_than_it_costs[add_remove]"
DRAWN = "tests/audit/test_session_noise.py::test_noise_is_drawn_once_by_what_was_charged"
EACH_DRAW = "tests/release/test_noise.py"
ADVERSARY = "tests/ledger/test_ledger_adversary.py::test_no_strategy_reaches_more_than_the_cap"
ATTACK = "tests/attacks/test_attack_catalogue.py::test_attack_"

RUN = "(lambda b: self.backend.run(b.lowered, b.key_types, len(b.release.table.parts)))(prepared.blocks[0])"
MORE = "r = releases[0]; more = self.backend.run(lower(r, 1), tuple(k.type for k in r.table.keys), len(r.table.parts)).sums"
CHEAPER = "asks = asks if sum(map(sum, more)) % 2 or not whole.epsilon else (__import__('dataclasses').replace(whole, epsilon=whole.epsilon / 2),)"
KEPT = "globals().setdefault('_kept', {})[prepared.text] = exact"
FOR_ALL = "for row in rows], column, numbers, priced, bits, led(release))"
DRAW = "sample(priced.noises[part], len(column), bits)"
DRAWS = "fed.release, block.priced, bits"
HALF = (
    "(lambda replace, priced: replace(priced, noises=tuple(replace(n, parameter=n.parameter / (2 if 'aplace' in str(n.mechanism) else 4)) "
    "for n in priced.noises)))(__import__('dataclasses').replace, block.priced)"
)
LOWER = "__import__('dataclasses').replace(block.priced, threshold=block.priced.threshold and block.priced.threshold - 8)"
SHARPER = "(lambda n: type(n)(n.mechanism, n.parameter / 2))(priced.noises[part])"
SAME = "__import__('numpy').random.default_rng(7).integers(0, 2**64, n, dtype='uint64')"

MUTANTS: Mapping[str, Mutant] = {
    "sensitivity halved": Mutant(
        ((contribution._shift, "max(1, abs(cell.low), abs(cell.high))", "max(1, abs(cell.low) // 2, abs(cell.high) // 2)"),), NEIGHBOURS, PLANS, True
    ),
    "replace-one not doubled": Mutant(
        (
            (contribution._replaced, "min(2 * groups,", "min(groups,"),
            (contribution._replaced, "else ((groups, s), (2 * groups, m))", "else ((groups, s),)"),
            (contribution._replaced, "2 * groups if listed is None", "groups if listed is None"),
        ),
        NEIGHBOURS,
        "tests/privacy/test_contribution.py::test_c6_replace_one_is_reached",
        True,
    ),
    "row weights priced as spread over groups": Mutant(
        (
            (
                contribution.row_weights,
                "m, s = spread * _shift(cell, Adjacency.ADD_REMOVE), spread",
                "m, s = spread * _shift(cell, Adjacency.ADD_REMOVE) // rows, spread",
            ),
        ),
        NEIGHBOURS,
        PLANS,
    ),
    "any key taken for the unit's own": Mutant(
        ((resolve._group_cap, "all(depends_on(key.value, known) for key in columns)", "True"),), NEIGHBOURS, PLANS, True
    ),
    "noise halved": Mutant(((noise._noised, "int(value) + int(z)", "int(value) + int(z) // 2"),), AUDITS, AUDIT),
    "half the noise that is charged": Mutant(((Session._noisy, DRAWS, f"fed.release, {HALF}, bits"),), SESSION, DRAWN, True),
    "a threshold below the one that is charged": Mutant(((Session._noisy, DRAWS, f"fed.release, {LOWER}, bits"),), SESSION, DRAWN, True),
    "half the noise on all but the first part under private keys": Mutant(
        ((noise._noised, DRAW, f"{DRAW} // (1 if priced.threshold is None or not part else 2)"),), RELEASE, EACH_DRAW, True
    ),
    "half the noise on one later part": Mutant(((noise._noised, DRAW, f"{DRAW} // (2 if part == 2 else 1)"),), RELEASE, EACH_DRAW, True),
    "noise of one part left out": Mutant(((noise._noised, "int(value) + int(z)", "int(value) + (int(z) if part != 1 else 0)"),), AUDITS, AUDIT),
    "one draw for all groups": Mutant(
        ((noise._noised, DRAW, "list(sample(priced.noises[part], 1, bits)) * len(column)"),),
        AUDITS,
        AUDIT,
    ),
    "two parts share their draws": Mutant(
        ((noise._noised, "len(column), bits)", f"len(column), type('Same', (), {{'uint64': lambda self, n: {SAME}}})())"),), AUDITS, AUDIT
    ),
    "scores taken for monotone where a unit is replaced": Mutant(
        ((contribution.spread, "return most, 2 * cell.high", "return most, cell.high"),),
        NEIGHBOURS,
        "tests/privacy/test_contribution.py::test_c11_by_brute_force",
        True,
    ),
    "groups compared as if no unit were replaced": Mutant(
        ((compared.compared, "return 2 * once", "return once"),), NEIGHBOURS, "tests/privacy/test_compared.py::test_c17_by_brute_force", True
    ),
    "groups compared as if sums had one sign": Mutant(
        ((compared.compared, "shift if groups == 1 else width", "shift"),),
        NEIGHBOURS,
        "tests/privacy/test_compared.py::test_c17_by_brute_force",
        True,
    ),
    "the group with the least taken for the one with the most": Mutant(
        ((noise._compared, "sign = 1 if leading.most else -1", "sign = 1"),), RELEASE, "tests/statements/test_led_statements.py", True
    ),
    "groups compared at half the scale": Mutant(
        ((noise._compared, "choose(priced.noises[part],", f"choose({SHARPER},"),),
        RELEASE,
        "tests/privacy/test_compared.py::test_groups_are_chosen_between_by_the_noise_that_is_charged",
        True,
    ),
    "one delta pays twice wherever it is": Mutant(
        ((cost._priced, "adjacency) <= ask.delta:", "adjacency) <= 9:"),), ACCOUNTING, "tests/privacy/test_cost.py", True
    ),
    "bars of shown groups without the minimum": Mutant(
        ((bars.shown_from, "priced.threshold + release.keys.minimum - 1", "priced.threshold"),), RELEASE, "tests/release/test_bars.py", True
    ),
    "doubt of what won not shared over groups": Mutant(
        ((losses.best, "(len(noises) * max(1, len(noisy.keys)))", "len(noises)"),), RELEASE, "tests/release/test_loss_estimates.py", True
    ),
    "counts of compared groups shown": Mutant(
        ((noise._compared, "return [sign * one for one in", "return [*column] if column else [sign * one for one in"),),
        RELEASE,
        "tests/privacy/test_compared.py::test_no_number_is_released",
        True,
    ),
    "scores by rank taken to move one way": Mutant(
        ((contribution.ranked, "spreads=(both, 2 * moved)", "spreads=(both, moved)"),),
        NEIGHBOURS,
        "tests/privacy/test_byrank.py::test_c12_one_group_by_brute_force",
        True,
    ),
    "an end of an error bar that the data move further": Mutant(
        ((ranks.scores, "+ aim.aside", "+ aim.aside + aim.side * a * (below[-1] // b)"),),
        NEIGHBOURS,
        "tests/privacy/test_byrank.py::test_c12_one_group_by_brute_force",
        True,
    ),
    "an end of an error bar without its margin": Mutant(
        ((ranks.aim, "bins.side * far", "bins.side * (far // 2)"),),
        RELEASE,
        "tests/privacy/test_byrank.py::test_the_bar_holds_the_quantile_of_every_data_set",
        True,
    ),
    "coins that land too often": Mutant(
        ((choice._near, "falls.astype(np.float64) * float_near(1 / scale)", "falls.astype(np.float64) * float_near(1 / scale) / 2"),),
        EXACT,
        "tests/mechanisms/test_choice.py::test_choices_have_the_law_of_brute_force",
    ),
    "the exponential mechanism by permute and flip": Mutant(
        ((choice.choose, "_placed(falls, weights", "_flipped(falls, weights"),),
        EXACT,
        "tests/mechanisms/test_choice.py::test_choices_have_the_law_of_brute_force",
    ),
    "permute and flip charged as the exponential mechanism": Mutant(
        ((cost.rho_of, "groups * laplace_rho_up(apart / noise.parameter)", "exponential_rho(_spread(sensitivity, 2), noise.parameter)"),),
        ACCOUNTING,
        "tests/privacy/test_cost.py::test_p4_rho_of_choices",
        True,
    ),
    "a choice of half the scale": Mutant(
        ((choice.choose, "_weights(falls, noise.parameter)", "_weights(falls, noise.parameter / 2)"),),
        AUDITS,
        "tests/audit/test_audit_choices.py::test_no_choice_tells_more_than_it_costs",
    ),
    "the largest count handed on with its place": Mutant(
        ((choice.choose, "chosen[np.arange(len(given)), places] = 1", "chosen[np.arange(len(given)), places] = given.max(axis=1)"),),
        PITFALLS,
        "tests/pitfalls/test_pitfalls_price.py::test_e_a_choice_tells_which_and_not_how_much",
    ),
    "a whole share of the price for each part": Mutant(
        ((cost._pure_noises, "(epsilon * share)", "epsilon"),),
        ACCOUNTING,
        "tests/privacy/test_cost.py::test_p1_laplace_spends_exactly_what_was_asked",
        True,
    ),
    "discrete Laplace charged as the continuous": Mutant(
        ((zcdp.laplace_rho_up, "epsilon * (1 - q) / (1 + q)", "epsilon - 1 + q"),),
        ACCOUNTING,
        "tests/accounting/test_zcdp.py::test_discrete_laplace_costs_at_most_its_rho",
        True,
    ),
    "rho converted without its last term": Mutant(
        ((convert.epsilon_up, "near.minus(_log_of_next(s, near)),", "near.multiply(Decimal(-2), _log_of_next(s, near)),"),),
        ACCOUNTING,
        "tests/accounting/test_convert.py",
    ),
    "threshold passed at one less": Mutant(
        ((noise._selected, "value >= least", "value >= least - 1"),), ATTACKS, f"{ATTACK}17_thresholds_off_by_one"
    ),
    "threshold one too low": Mutant(
        ((tails.threshold, "linf + int(guess))", "linf + int(guess)) - 1"),),
        EXACT,
        "tests/mechanisms/test_threshold.py::test_threshold_is_the_least",
        True,
    ),
    "tail above the threshold in place of at it": Mutant(
        ((tails.selection_delta_up, "threshold - linf, FLOOR_BITS", "threshold - linf + 1, FLOOR_BITS"),),
        EXACT,
        "tests/mechanisms/test_threshold.py::test_selection_delta_is_the_probability_of_opening_a_group",
        True,
    ),
    "selection delta of one group": Mutant(
        ((cost.selection_delta, "groups_of_a_unit(bounds)", "1"),), ACCOUNTING, "tests/privacy/test_cost.py::test_p5_selection_delta_is_reached", True
    ),
    "threshold on rows, not units": Mutant(
        ((cells.cell, 'f"least({n}, 1)"', "n"), (cells.cell, '"1" if rows.text is None', '"n" if rows.text is None')),
        ATTACKS,
        f"{ATTACK}18_thresholds_on_rows",
    ),
    "no cap on groups": Mutant(((lower._capped, 'f"{capped} WHERE place <= {cap.groups:d}"', "capped"),), LOWERED, BY_ENGINE),
    "cells take the keys of all units": Mutant(((lower._by_units, "ON c.u = r.u", "ON TRUE"),), LOWERED, BY_UNITS, True),
    "each of a unit's rows is a cell": Mutant(((lower._one_row, "rows_per_unit(table.input) == 1", "True"),), LOWERED, BY_UNITS, True),
    "caps before the join, none after": Mutant(
        (
            (resolve.capped, "inner = capped(below, rows)", "inner = CapRows(capped(below, rows), 1)"),
            (cells._clamped, 'f"least({s}, {high:d})"', "s"),
            (cells._clamped, 'f"least(greatest({s}, {low:d}), {high:d})"', "s"),
        ),
        STATEMENTS,
        RANDOM,
    ),
    "sums clamped over all units, not each": Mutant(
        ((cells._clamped, 'f"least({s}, {high:d})"', "s"), (cells._clamped, 'f"least(greatest({s}, {low:d}), {high:d})"', "s")), LOWERED, BY_ENGINE
    ),
    "NaN clamped to the upper bound": Mutant(
        (
            (values.scan, 'f"CASE WHEN {cast} <= {INFINITY} THEN {cast} + 0.0 END"', 'f"{cast} + 0.0"'),
            (grid._float, "WHEN {units} <= {INFINITY} THEN", "ELSE"),
        ),
        STATEMENTS,
        RANDOM,
    ),
    "a filter reads NaN": Mutant(
        ((relation.bare, "return alone - read", "return alone"),),
        ENGINE,
        "tests/backends/test_lower.py::test_a_float_that_only_a_sum_reads_needs_no_canonical_form_and_one_that_a_filter_reads_does",
        True,
    ),
    "sums in floating point": Mutant(
        ((lower._sum, "sum({value})", "sum(({value})::DOUBLE)"),),
        ENGINE,
        "tests/backends/test_lower.py::test_sums_are_those_of_integers_beyond_what_a_double_holds",
        True,
    ),
    "rows of nobody kept as one unit": Mutant(
        ((relation._scan, " WHERE {unit} IS NOT NULL", ""),),
        PITFALLS,
        "tests/pitfalls/test_pitfalls_relations.py::test_a1_rows_that_belong_to_nobody_count_nowhere",
    ),
    "private tables joined by names": Mutant(
        (
            (
                sides.fixes_unit,
                "if pair is None:",
                'if pair is not None and pair[0].name == pair[1].name:\n        return frozenset({("unit",)})\n    if pair is None:',
            ),
        ),
        PITFALLS,
        "tests/pitfalls/test_pitfalls_relations.py::test_a8_private_tables_join_by_lineage_never_by_name",
    ),
    "empty public groups hidden": Mutant(
        (
            (
                noise.add,
                f"_all(rows, [place.get(row) {FOR_ALL}",
                f"(lambda rows: _all(rows, [place[row] {FOR_ALL})([row for row in rows if row in place])",
            ),
        ),
        PITFALLS,
        "tests/pitfalls/test_pitfalls_keys.py::test_c5_a_public_list_is_a_set_and_all_of_it_appears",
    ),
    "groups in the engine's order": Mutant(
        ((noise.in_order, "sorted(range(len(keys)), key=lambda i: tuple((value is None, value) for value in keys[i]))", "range(len(keys))"),),
        RELEASE,
        "tests/release/test_noise.py::test_groups_come_by_key_however_the_engine_found_them",
        True,
    ),
    "keystream used again": Mutant(
        ((SystemBits.uint64, "os.urandom(32)", "bytes(32)"),),
        BITS,
        "tests/mechanisms/test_bits.py::test_calls_instances_and_threads_share_nothing",
        True,
    ),
    "rounds all accepted": Mutant(
        ((sampler._accepted, "return _put(values, exact)[keep]", "return _put(values, exact)"),),
        BITS,
        "tests/mechanisms/test_sampler_chance.py",
        True,
    ),
    "time-outs refunded": Mutant(
        ((replay.applied, "replace(account, timeouts=", "replace(account, spent=Amounts(), timeouts="),),
        PITFALLS,
        "tests/pitfalls/test_pitfalls_accounts.py::test_b10_refusals_cost_nothing_and_failures_after_the_charge_are_not_refunded",
    ),
    "budget not tested": Mutant(
        ((Ledger._refusal, "None if self.terms.unsafe_testing", "None if True"),), LEDGER, "tests/ledger/test_ledger_reserve.py", True
    ),
    "either filter with all of delta": Mutant(
        ((policy.within, "minus(cap.delta, converting)", "cap.delta"),), LEDGER, "tests/ledger/test_ledger_policy.py", True
    ),
    "rho converted at the rest of delta": Mutant(
        (
            (policy.within, "if spent.delta > minus(cap.delta, converting):", "if spent.delta > cap.delta:"),
            (policy.within, "_converted(spent.rho, converting)", "_converted(spent.rho, minus(cap.delta, spent.delta))"),
        ),
        LEDGER,
        ADVERSARY,
        True,
    ),
    "refusals not logged": Mutant(
        ((Session.query, "ledger.refused(", "(lambda *_: None)("),),
        PITFALLS,
        "tests/pitfalls/test_pitfalls_accounts.py::test_refused_and_failed_questions_are_logged",
    ),
    "charged after the run": Mutant(
        ((Session.query, "entry = ledger.charge(", f"{RUN}; entry = ledger.charge("),),
        PITFALLS,
        "tests/pitfalls/test_pitfalls_accounts.py::test_b10_refusals_cost_nothing_and_failures_after_the_charge_are_not_refunded",
    ),
    "only the first release of a statement charged": Mutant(
        ((together._total, "rho=sum((one.rho for one in prices), Fraction(0))", "rho=prices[0].rho"),),
        ACCOUNTING,
        "tests/privacy/test_together.py::test_p8_prices_of_releases_add_up",
        True,
    ),
    "each release with the whole rho": Mutant(
        (
            (together._share, "ask.epsilon / whole.epsilon", "Fraction(1)"),
            (together._share, "ask.rho / whole.rho", "Fraction(1)"),
        ),
        ACCOUNTING,
        "tests/privacy/test_together.py::test_p8_prices_of_releases_add_up",
        True,
    ),
    "each release that selects with all of delta": Mutant(
        ((together._selections, "selection / sum(selecting) if one", "selection if one"),),
        ACCOUNTING,
        "tests/privacy/test_together.py::test_p8_the_whole_price_is_spent",
        True,
    ),
    "partners of other units": Mutant(((relation._semi, '"l.u = p.u"', '"TRUE"'),), ENGINE, PLAIN),
    "equal rows of a stack merged": Mutant(((relation._stack, "rel.how.upper()", "rel.how.upper().replace(' ALL', '')"),), ENGINE, PLAIN),
    "groups inside a unit of all units' rows": Mutant(
        (
            (relation._group, "['u', *items]", "['min(u) AS u', *items]"),
            (relation._group, "['u', *keys]", "[*keys, '1 = 1']"),
        ),
        LOWERED,
        BY_ENGINE,
    ),
    "price not derived again": Mutant(
        ((Session._noisy, "if price(", "if False and price("),),
        PITFALLS,
        "tests/pitfalls/test_pitfalls_accounts.py::test_b10_the_price_of_what_runs_is_that_of_what_was_charged",
    ),
    "price that follows the data": Mutant(
        (
            (
                Session._prepared,
                "billed = bill(",
                f"{MORE}; {CHEAPER}; billed = bill(",
            ),
        ),
        INTERFERENCE,
        "tests/statements/test_non_interference.py::test_nothing_but_released_values_depends_on_the_data",
    ),
    "answers from an earlier version of the data": Mutant(
        (
            (Session._noisy, "exact = self.backend.run(", "exact = globals().get('_kept', {}).get(prepared.text) or self.backend.run("),
            (Session._noisy, "noisy[block.name] = noise.add(", f"{KEPT}; noisy[block.name] = noise.add("),
        ),
        PITFALLS,
        "tests/pitfalls/test_pitfalls_data.py::test_w12_public_tables_are_looked_at_in_the_version_that_is_answered_from",
    ),
    "data not looked at again": Mutant(
        ((Session._version, "return ledger.version_of(", "return 1 or ledger.version_of("),),
        PITFALLS,
        "tests/pitfalls/test_pitfalls_data.py::test_a11_changed_data_is_refused_until_its_owner_registers_it",
    ),
    "the null side's key taken for the unit's": Mutant(((locality.fixed, "if join is Join.INNER", "if True"),), NEIGHBOURS, PLANS),
}


def applied(mutant: Mutant) -> None:
    """The product is this mutant from now on, in this process."""
    for function, words, others in mutant.changes:
        rewritten(function, words, others)


def rewritten(function: Function, words: str, others: str) -> None:
    """The function's code is that of its source with other words, whoever holds it."""
    inspect.unwrap(function).__code__ = made(function, words, others).__code__


def made(function: Function, words: str, others: str) -> Function:
    """The function with other words in its source, earlier changes kept."""
    target = inspect.unwrap(function)
    source = _SOURCES.get(target) or textwrap.dedent(inspect.getsource(target))
    if source.count(words) != 1:
        raise ValueError(f"{target.__qualname__} has {source.count(words)} times: {words}")
    source = _SOURCES[target] = source.replace(words, others)
    found: dict[str, Any] = {}
    code = compile(source[source.index("def ") :], "<mutant>", "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    exec(code, target.__globals__, found)
    return cast("Function", next(iter(found.values())))


_SOURCES: dict[Function, str] = {}
