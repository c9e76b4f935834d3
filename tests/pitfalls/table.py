"""How engines like this one break, and what keeps this one whole: each pitfall with its tests.

`python tests/pitfalls/table.py` writes docs/pitfalls.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "pitfalls.md"
FAMILIES = {
    "A": "Breaks the guarantee",
    "B": "Budgets and analysts",
    "C": "Wrong answers, or small leaks",
    "N": "Breaks the guarantee, found on a second reading",
    "W": "Wrong answers or broken promises, found on a second reading",
    "H": "Found on a third reading",
    "E": "Seen in other systems",
}
COUNTS = {"A": 19, "B": 12, "C": 18, "N": 12, "W": 13, "H": 7, "E": 16}


@dataclass(frozen=True)
class Pitfall:
    """`tests` are names as in `test_file.py::test_name`; `later` says with which feature of YET_TO_COME the rest of it comes."""

    breaks: str
    prevented: str
    tests: tuple[str, ...] = ()
    later: str = ""


def _in(file: str, *names: str) -> tuple[str, ...]:
    return tuple(f"test_{file}.py::test_{name}" for name in names)


YET_TO_COME: dict[str, str] = {  # with the test that shows that it is refused, or not done, today; the table of attacks names them too
    "aggregation before joins, for speed": "test_resolve.py::test_a19_clamps_sit_above_the_joins",
    "clipping to an L2 norm": "test_pitfalls_keys.py::test_c9_h_other_selections_and_clips_of_a_vector_are_refused_as_yet",
    "truncated geometric selection": "test_pitfalls_keys.py::test_c9_h_other_selections_and_clips_of_a_vector_are_refused_as_yet",
}
TABLE: dict[str, Pitfall] = {
    "A1": Pitfall(
        "Rows without a unit, made by an outer join because nobody matches, let one person act on everybody.",
        "Every private relation has a non-NULL unit: NULL units and orphans end at the scan, and no join keeps a public row by itself.",
        (
            *_in("pitfalls_relations", "a1_rows_that_belong_to_nobody_count_nowhere", "one_person_moves_no_answer_further_than_explain_says"),
            *_in("relation", "a1_rows_without_a_unit_end_at_the_scan", "a1_a_path_without_a_parent_ends_at_the_scan"),
        ),
    ),
    "A2": Pitfall(
        "Weights that bound a person's rows do not bound counts of people or sums with bounds for each group.",
        "Row weights serve parts that add up over rows, with public keys; all else is refused beside them.",
        (
            *_in("pitfalls_values", "a2_row_weights_do_not_go_with_what_does_not_add_up"),
            *_in("contribution", "a2_row_weights_over_a_thousand_groups"),
            *_in("resolve", "a2_row_weights_serve_sums_over_rows_only"),
        ),
    ),
    "A3": Pitfall(
        "A key that depends on the person stops doing so above an outer join, a lookup with several matches, or a CASE on a row's column.",
        "The dependency is a property of the plan, proven node by node; where it is not proven the cap on groups is in the statement.",
        (
            *_in("pitfalls_relations", "a3_a_key_that_a_join_can_change_is_capped"),
            *_in("locality", "a3_outer_join_is_not_fixed", "a3_lookup_with_fan_out_is_not_fixed", "a3_lookup_by_a_row_column_is_not_fixed"),
            *_in("resolve", "a3_h_other_keys_are_capped"),
        ),
    ),
    "A4": Pitfall(
        "Ties inside a person's rows are broken by row order, so that other people's values change when one person leaves.",
        "Windows in a unit that tell equals apart, frames of ROWS among them, break ties by all columns, the others take equals together; what rests "
        "on row order is refused; a cap chooses by a hash of the row, then all its columns.",
        (
            *_in(
                "pitfalls_values",
                "a4_what_ties_decide_is_decided_alike_in_whatever_order_rows_come",
                "a4_what_depends_on_the_order_of_equal_rows_is_refused",
                "a4_no_aggregate_shows_the_value_of_a_row",
            ),
            *_in("pitfalls_values", "a4_a_sketch_is_the_count_itself"),
            *_in("relation", "which_rows_a_cap_keeps_is_a_function_of_the_units_rows_and_the_salt"),
        ),
    ),
    "A5": Pitfall(
        "Whether a query runs out of time or memory tells of one person's rows.",
        "Joins within the unit cap rows first, texts are cut and cannot grow; what is left is charged, told in constant words and counted, as are "
        "interrupts and processes that die: after `timeouts_per_account` the account locks.",
        (
            *_in("crash", "a_runaway_stops_at_the_time_limit_and_the_account_locks", "a_glutton_stops_at_the_memory_limit"),
            *_in("runaway", "it_is_refused_when_it_is_read", "it_ends_within_the_limits"),
            *_in("timing", "a_time_out_leaves_at_one_moment", "an_interrupt_counts_where_having_no_reply_tells_something"),
            *_in("ledger_attendance", "dead_processes_lock_an_account_like_time_outs"),
            *_in("resolve", "a5_joins_of_several_rows_are_capped", "a5_chains_are_capped_at_each_join", "a5_caps_hold_on_data"),
            *_in("pitfalls_values", "a5_texts_do_not_grow"),
        ),
    ),
    "A6": Pitfall(
        "An expression that fails on one row answers a question about it; TRY does not catch everything.",
        "Each allowed function has a total form that stands alone; patterns, formats, zones, parts and escapes are literals.",
        (
            *_in("pitfalls_values", "a6_no_value_makes_an_expression_fail", "a6_no_value_makes_a_condition_fail"),
            *_in("pitfalls_values", "a6_functions_without_a_total_form_are_refused"),
            *_in("scalar_total", "nothing_raises", "every_function_is_tried"),
        ),
    ),
    "A7": Pitfall(
        "A group's key is spelled as one of its rows spells it: another case, another zero, another interval.",
        "Keys are canonical: collations and intervals are refused, zeros and NaN made one value at the scan and after arithmetic.",
        (
            *_in("pitfalls_values", "a7_a_key_of_others_is_spelled_and_counted_as_before"),
            *_in("pitfalls_keys", "a7_keys_whose_equality_is_coarser_than_identity_are_refused"),
            *_in("lower", "a7_a_key_looks_the_same_whichever_row_it_comes_from"),
            *_in("pitfalls_data", "a11_a12_n5_what_no_query_can_enforce_is_checked_at_registration"),
        ),
    ),
    "A8": Pitfall(
        "Two private tables joined on a column that is merely called like the unit.",
        "Joins follow lineage: the unit's own unmodified columns, or a declared path; the plan itself adds the equality of units.",
        _in(
            "pitfalls_relations",
            "a8_private_tables_join_by_lineage_never_by_name",
            "a8_the_units_own_columns_join_under_any_name",
            "a8_the_null_side_of_an_outer_join_joins_nobody_elses_rows",
        ),
    ),
    "A9": Pitfall(
        "Plans, noise or prices chosen by row counts or statistics of private tables.",
        "Plan, price, allocation and expected error are functions of statement, schema and public tables.",
        (
            *_in("pitfalls_price", "a9_plan_price_and_expected_error_know_nothing_of_private_rows"),
            *_in("cost", "the_choice_depends_on_the_plan_alone"),
            *_in("accuracy_first", "the_price_found_knows_nothing_of_private_rows"),
            *_in("what_if", "it_knows_nothing_of_private_rows"),
        ),
    ),
    "A10": Pitfall(
        "A hash of the data in a log that others may read: who knows all rows but one person's compares candidates.",
        "The log holds a version number and a commitment under the owner's key, never a fingerprint.",
        (
            *_in("pitfalls_data", "a10_no_fingerprint_of_private_data_is_written_or_shown"),
            *_in("ledger_log", "secrets_and_fingerprints_are_not_exported"),
        ),
    ),
    "A11": Pitfall(
        "Data that changed after its invariants were checked: a write-ahead log, a copy that keeps size and time, a load during the query.",
        "Only registered versions are answered from; a log beside the file refuses; the data is looked at before and after each run.",
        (
            *_in("pitfalls_data", "a11_changed_data_is_refused_until_its_owner_registers_it", "a11_a_write_ahead_log_beside_the_file_is_refused"),
            *_in("pitfalls_data", "a11_a_copy_that_keeps_size_and_time_is_seen"),
            *_in("pitfalls_data", "a11_data_that_changes_while_a_query_runs_is_charged_and_withheld"),
            *_in("pitfalls_data", "a11_data_that_is_there_for_a_moment_only_is_not_answered_from"),
            *_in("pitfalls_data", "a11_an_engine_that_has_other_files_open_is_not_answered_from"),
            *_in("pitfalls_data", "a11_data_that_does_not_fit_gets_no_ledger_and_no_version"),
            *_in("pitfalls_data", "a11_a12_n5_what_no_query_can_enforce_is_checked_at_registration"),
            *_in("ledger_rederived", "another_files_version_is_not_believed"),
        ),
    ),
    "A12": Pitfall(
        "One person under several units, because '1', '01' and '+1' are one number.",
        "All unit columns have one physical type, checked at registration; nothing is cast along a path.",
        (
            *_in("pitfalls_data", "a11_a12_n5_what_no_query_can_enforce_is_checked_at_registration"),
            *_in("relation", "a12_units_are_compared_as_they_are"),
            *_in("schema_check", "unit_types_that_have_to_be_cast"),
        ),
    ),
    "A13": Pitfall(
        "A minimum of people tested exactly, or on a noisy count that is not shifted by it.",
        "The test is noisy(units - (minimum - 1)) against the threshold; the owner's minimum can only be raised.",
        (
            *_in("pitfalls_keys", "a13_a_minimum_of_units_is_tested_on_the_shifted_noisy_count", "a13_the_owners_minimum_can_only_be_raised"),
            *_in("cost", "a13_a_minimum_does_not_change_the_price"),
        ),
    ),
    "A14": Pitfall(
        "Clipping a person's vector to a length does not bound the number of groups, so that thresholds leak.",
        "A threshold stands behind a cap on groups only; row weights, the other bounding without one, go with public keys.",
        (
            *_in("resolve", "row_weights_go_with_listed_keys_or_none"),
            *_in("pitfalls_keys", "c9_h_other_selections_and_clips_of_a_vector_are_refused_as_yet"),
        ),
        "clipping to an L2 norm",
    ),
    "A15": Pitfall(
        "A threshold on a released count whose cells exceed 1.",
        "Only a count of distinct units, cells 0 or 1, decides; it is hidden where the statement shows another count.",
        (
            *_in("pitfalls_keys", "a15_rows_never_decide_which_groups_appear", "a15_the_threshold_is_that_of_the_exact_discrete_tail"),
            *_in("resolve", "a15_nothing_but_the_plain_count_of_units_selects"),
            *_in("cost", "a15_groups_are_selected_by_counts_of_units_alone"),
        ),
    ),
    "A16": Pitfall(
        "A sum and a mean of one column taken for the same part: one is clamped, the other centred.",
        "Parts are shared only where expression, filter, NULL rule, centre, clamp and heavy-unit rule are identical.",
        (
            *_in("pitfalls_price", "a16_sum_and_mean_of_one_column_are_two_parts"),
            *_in("aggregates", "a16_sum_and_mean_share_no_part_but_count_and_mean_do"),
        ),
    ),
    "A17": Pitfall(
        "Discrete Laplace noise charged with the continuous formula: up to a quarter too little.",
        "It is charged e*tanh(e/2) of rho per coordinate.",
        (
            *_in("pitfalls_price", "a17_discrete_laplace_noise_is_charged_e_tanh_half_e"),
            *_in("cost", "a17_discrete_laplace_is_not_charged_the_continuous_rho"),
            *_in("zcdp", "discrete_laplace_costs_at_most_its_rho"),
        ),
    ),
    "A18": Pitfall(
        "Sensitivities of adding a person used where one is replaced; an exact count for nothing.",
        "Replace-one has a line of its own in each lemma, else twice the norms; no released part has sensitivity 0.",
        (
            *_in("pitfalls_price", "a18_replacing_a_person_is_priced_by_its_own_constants"),
            *_in("contribution", "a18_no_part_is_ever_free", "c6_replace_one_is_reached", "d_replace_one_by_brute_force"),
        ),
    ),
    "A19": Pitfall(
        "Bounds applied before a join that multiplies rows.",
        "Clamps and caps sit above every join.",
        (*_in("pitfalls_relations", "a19_a_clamp_holds_after_the_join"), *_in("resolve", "a19_clamps_sit_above_the_joins")),
        "aggregation before joins, for speed",
    ),
    "B1": Pitfall(
        "A filter that accepts where either of two rules holds, with a conversion delta that moves as others are spent.",
        "delta_conv is fixed when the ledger is made; a lowered cap stops later charges, the largest cap stays the guarantee.",
        (
            *_in("ledger_policy", "delta_conv_stays_when_the_cap_changes", "a_lowered_cap_accepts_no_more_than_the_largest", "tight_last_gaussian"),
            *_in("ledger_grants", "delta_conv_stays_when_delta_is_granted"),
            *_in("ledger_periods", "gaussian_noise_counts_in_its_period_only"),
        ),
    ),
    "B2": Pitfall(
        "One query with private keys sends a fresh account to the dearer branch of the filter.",
        "Sums of epsilon count while every entry has one; selection deltas are counted beside them.",
        (
            *_in("pitfalls_accounts", "b2_one_query_with_private_keys_leaves_room_for_others"),
            *_in("ledger_policy", "one_private_key_query_fits_a_fresh_account"),
        ),
    ),
    "B3": Pitfall(
        "One analyst's refusal depends on what another one spent.",
        "Caps are reserved, and no test of the whole data set runs.",
        (
            *_in("pitfalls_accounts", "b3_b4_an_analyst_sees_the_own_account_only"),
            *_in("ledger_reserve", "reserved_caps_hide_other_analysts", "oversubscribed_the_data_set_decides_too"),
            *_in("ledger_periods", "a_period_that_nobody_used_is_gone_too", "what_a_period_shows_of_others_is_nothing"),
            *_in("ledger_grants", "what_an_analyst_sees_of_others_grants_is_nothing"),
        ),
    ),
    "B4": Pitfall(
        "Balances, ids and words of a refusal that tell of other analysts.",
        "Analysts see the own account; entry ids are random; other accounts' numbers are in no message.",
        (
            *_in("pitfalls_accounts", "b3_b4_an_analyst_sees_the_own_account_only"),
            *_in("ledger_policy", "words_about_other_accounts_say_no_number_of_theirs"),
            *_in("price_before", "what_is_said_is_of_the_own_account_alone"),
            *_in("accuracy_first", "a_part_of_what_was_released_to_this_account"),
            *_in("ledger_log", "every_entry_has_its_own_id_and_nonce", "an_analyst_sees_the_own_lines"),
        ),
    ),
    "B5": Pitfall(
        "A stored answer sold to another analyst at a price that was not agreed.",
        "A stored answer serves the account that was shown it, for nothing; others under `share_answers`, at exactly the price that it cost.",
        (
            *_in("pitfalls_accounts", "b5_n12_a_stored_answer_serves_the_account_that_was_shown_it"),
            *_in(
                "pitfalls_stored",
                "b5_a_shared_answer_is_sold_at_exactly_its_price",
                "b5_every_spelling_shows_the_same_release",
                "b5_whether_others_ask_shows_in_no_price",
            ),
            *_in("ledger_stored", "a_shared_answer_costs_its_whole_price", "a_stored_answer_is_sold_at_its_price_alone"),
        ),
    ),
    "B6": Pitfall(
        "A cap for each name that anybody may invent.",
        "`default` is one shared account; members' caps fit into their group's, all into the data set's.",
        (
            *_in("pitfalls_accounts", "b6_unlisted_names_share_one_account"),
            *_in("ledger_reserve", "groups_reserve_for_their_members", "caps_must_fit_when_the_ledger_is_made", "who_has_spent_leaves_no_group"),
            *_in("ledger_grants", "a_grant_fits_into_what_the_data_set_and_the_group_have_left"),
            *_in("ledger_periods", "members_renew_out_of_their_groups_cap_and_others_not"),
        ),
    ),
    "B7": Pitfall(
        "A delta that covers conversion, or selection, or one release, but not all of them.",
        "It is split once a statement between one conversion and all thresholds, or pays once for what is never both spent.",
        (
            *_in("pitfalls_price", "b7_one_delta_covers_conversion_and_selection"),
            *_in(
                "cost", "n8_gaussian_with_private_keys_halves_it_under_replace_one", "n8_one_delta_pays_for_conversion_and_half_of_it_for_selection"
            ),
        ),
    ),
    "B8": Pitfall(
        "A delta of 1 or a huge epsilon outside tests.",
        "Both need `unsafe_testing`, which every receipt shows.",
        (*_in("pitfalls_price", "b8_delta_lies_below_one"), *_in("schema_errors", "unsafe_testing_has_limits_too")),
    ),
    "B9": Pitfall(
        "A bare epsilon so far, which no theorem supports at a moment chosen by looking at it.",
        "Raw sums, the cap's guarantee, and a ladder that was fixed beforehand.",
        (
            *_in("pitfalls_accounts", "b9_spent_amounts_are_shown_as_sums_cap_and_ladder"),
            *_in("ledger_policy", "ladder_is_fixed_in_advance_and_adds_up"),
        ),
    ),
    "B10": Pitfall(
        "A refund after the data was read, or a charge for what was refused.",
        "Opening, fingerprint and binding come before the charge; after it nothing is refunded, whatever breaks.",
        (
            *_in("pitfalls_accounts", "b10_refusals_cost_nothing_and_failures_after_the_charge_are_not_refunded"),
            *_in("pitfalls_accounts", "b10_the_price_of_what_runs_is_that_of_what_was_charged"),
            *_in("pitfalls_accounts", "b10_a_statement_that_enforces_less_than_the_plan_is_not_answered"),
            *_in("pitfalls_accounts", "b10_a_ledger_that_fails_after_the_charge_does_not_say_that_nothing_was_charged"),
            *_in("crash", "death_between_charge_and_release_leaves_the_charge"),
        ),
    ),
    "B11": Pitfall(
        "A price for each column where the analyst named one for all.",
        "epsilon is the statement's; those of single aggregates are shares of it, and more than the whole is refused.",
        (
            *_in("pitfalls_price", "b11_a_statements_price_is_what_was_said", "b11_all_releases_of_a_statement_are_charged"),
            *_in("cost", "b11_explicit_epsilons_set_shares_of_the_price"),
        ),
    ),
    "B12": Pitfall(
        "A key list from an earlier release whose length enters the price.",
        "Price, caps and bounds are made before such a list is known, and hold for one of any length.",
        _in("pitfalls_keys", "b12_a_list_of_an_earlier_release_makes_no_cap_idle_and_no_price", "b12_a_released_value_in_where_lists_no_keys"),
    ),
    "C1": Pitfall(
        "A sum clamped to its row bounds times the row cap raises a person with one row to the lower bound of many.",
        "The cell's interval is [min(l, l*C), max(u, u*C)], and a cell without a value stays out.",
        (*_in("pitfalls_values", "c1_a_sum_is_clamped_to_what_rows_can_reach"), *_in("aggregates", "c1_sum_clamps_cells_to_what_rows_can_reach")),
    ),
    "C2": Pitfall(
        "Row weights in floating point, or divided row by row, overshoot their sum.",
        "Weights are integers in units of 2^-20, and products stay in them.",
        (
            *_in("lower", "c2_weights_never_add_up_to_more_than_the_cap"),
            *_in("contribution", "c2_integer_weights_never_exceed_the_rows"),
        ),
    ),
    "C3": Pitfall(
        "A centre that is no grid point, and a lemma over real numbers.",
        "Means are centred in half units; the lemmas are over integers, each cell truncated towards zero.",
        (*_in("contribution", "c2_a_heavy_unit_keeps_its_mean"), *_in("lower", "a_heavy_unit_keeps_its_mean_truncated_towards_zero")),
    ),
    "C4": Pitfall(
        "Intervals that ignore that only lucky groups are shown.",
        "Error bars hold among the groups that appear: near the threshold they reach down to one person. A warning says that no group passed.",
        _in("pitfalls_price", "w5_intervals_under_selection_say_so", "c4_no_group_passing_is_said"),
    ),
    "C5": Pitfall(
        "A condition that looks as if it listed the keys but does not; declared values that are believed.",
        "A list is one on the very key, at the top of WHERE, below no outer join, or all branches of CASE, or declared and enforced, or public "
        "rows, or bins.",
        (
            *_in("pitfalls_keys", "c5_a_public_list_is_a_set_and_all_of_it_appears", "c5_everything_else_is_private"),
            *_in("pitfalls_keys", "c5_declared_values_are_enforced_not_believed", "c5_more_keys_than_can_be_listed_are_refused"),
            *_in("pitfalls_keys", "c5_bins_are_the_same_whatever_the_rows_and_lost_rows_are_told_of"),
            *_in("lower", "rows_outside_the_list_do_not_use_up_the_cap_on_groups"),
        ),
    ),
    "C6": Pitfall(
        "Orphans that come back as rows of a NULL unit.",
        "A path table's unit comes from its own path: orphans are dropped, and a LEFT JOIN keeps row and owner.",
        (
            *_in("pitfalls_relations", "c6_an_orphan_is_dropped_and_a_left_join_keeps_row_and_owner"),
            *_in("relation", "the_unit_of_an_outer_join_is_the_preserved_sides"),
        ),
    ),
    "C7": Pitfall(
        "UNION, INTERSECT and DISTINCT with an unseen unit change the answer in silence.",
        "They are answered where both branches select the unit in the same place, which is not UNION ALL's need; refused elsewhere.",
        _in("pitfalls_relations", "c7_set_operations_merge_no_rows_of_two_people", "one_person_moves_no_answer_further_than_explain_says"),
    ),
    "C8": Pitfall(
        "A wide Gaussian drawn as two independent parts; a tail that is clipped.",
        "Draws are exact: a table with ties settled by further bits, the tail drawn, rejection where it is wide.",
        (
            *_in("sampler_exact", "the_tail_is_drawn_not_clipped", "ties_are_settled_by_further_bits", "float_decisions_agree_with_exact_ones"),
            *_in("sampler_chance", "values", "low_digits"),
        ),
    ),
    "C9": Pitfall(
        "Truncated geometric selection charged as if delta were spent on lonely groups alone.",
        "Selection is by Laplace or Gaussian thresholds only.",
        (
            *_in("pitfalls_keys", "c9_h_other_selections_and_clips_of_a_vector_are_refused_as_yet"),
            *_in("attack_catalogue", "attack_17_thresholds_off_by_one"),
        ),
        "truncated geometric selection",
    ),
    "C10": Pitfall(
        "Bounds found in the data without a public ceiling, or histograms in which one person fills many bins.",
        "Bounds are declared or written, or, where the statement says so, chosen from a noisy histogram in which each unit fills one bin of a fixed "
        "range, at a price that knows no cap, or the best of caps under a public ceiling, all of them paid for; where none is known the answer is "
        "refused.",
        (
            *_in("pitfalls_values", "c10_bounds_that_nobody_declared_are_not_found", "e_the_bounds_are_those_of_the_expression_that_is_summed"),
            *_in("automatic_bounds", "the_histogram_takes_a_tenth_of_the_price", "the_price_is_what_is_asked_and_knows_no_cap"),
            *_in("raced", "c18_a_unit_reaches_the_claim_of_every_cap", "c18_a_plan_whose_caps_are_of_different_rows_is_refused"),
        ),
    ),
    "C11": Pitfall(
        "Progress bars, attached files above the noise and the engine's own counts.",
        "Progress is elapsed time, until the reply leaves; above the noise stands an engine that has seen the released table alone.",
        (
            *_in("cli", "progress_is_elapsed_time_on_a_terminal_only"),
            *_in("timing", "progress_goes_on_until_the_reply_leaves", "the_engine_is_gone_and_nothing_is_written_before_the_reply_leaves"),
            *_in("post", "nothing_else_is_within_reach"),
        ),
    ),
    "C12": Pitfall(
        "A price allotted by the scale of what was found.",
        "Shares are as written, equal, or those of least error in units of declared bounds.",
        _in(
            "pitfalls_price",
            "c12_shares_and_errors_are_told_on_the_declared_scale",
            "c12_plain_sql_splits_a_price_where_noise_counts_and_the_clause_equally",
        ),
    ),
    "C13": Pitfall(
        "An inner aggregate whose bound is believed.",
        "What is inside a unit is exact; what is released of it is clamped, and the clamp is what the proof reads.",
        _in("pitfalls_values", "c13_a_result_inside_a_unit_is_clamped_where_it_is_released"),
    ),
    "C14": Pitfall(
        "A cast before the clamp turns an infinity into NULL or an error.",
        "Values clamp as doubles, then become integers.",
        _in("pitfalls_values", "c14_infinities_clamp_and_count"),
    ),
    "C15": Pitfall(
        "CUBE and ROLLUP priced as one level.",
        "Each level is a release of its own, with its own bounds and its part of the price, totals included.",
        _in("pitfalls_keys", "c15_each_level_of_totals_is_paid_and_bounded_by_itself"),
    ),
    "C16": Pitfall(
        "The choice between Laplace and Gaussian by a formula for another noise.",
        "Both are calibrated exactly, and the one of less error is taken.",
        (
            *_in("pitfalls_price", "c16_laplace_for_few_coordinates_and_gaussian_for_many"),
            *_in("cost", "p1_the_mechanism_of_least_error_is_taken"),
        ),
    ),
    "C17": Pitfall(
        "Guarantees for k people by k^2 rho although deltas are spent.",
        "k epsilon, and the delta that k steps add up to, of the cap alone; never of rho.",
        (*_in("pitfalls_accounts", "b9_spent_amounts_are_shown_as_sums_cap_and_ladder"), *_in("owner_budget", "several_people_together")),
    ),
    "C18": Pitfall(
        "A copied or renamed schema that starts a new ledger.",
        "The source is bound to its ledger by an id file beside it.",
        (
            *_in("pitfalls_data", "c18_a_copied_schema_starts_no_new_budget"),
            *_in("ledger_binding", "a_second_ledger_of_the_same_data_is_refused", "a_lost_ledger_is_not_made_anew"),
            *_in("ledger_shared", "a_renamed_data_set_of_the_account_is_another_with_the_same_budget", "data_that_has_a_ledger_joins_no_other"),
        ),
    ),
    "N1": Pitfall(
        "Bounds of odd width: a mean's centre lies between grid points, and the noise is half of what it must be.",
        "Means work in half units, 2x - (l + u).",
        (
            *_in("pitfalls_price", "n1_an_odd_width_moves_by_half_units"),
            *_in("contribution", "n1_odd_widths_move_by_the_full_width"),
            *_in("lower", "n1_a_mean_of_flags_moves_by_half_units"),
        ),
    ),
    "N2": Pitfall(
        "A charge by coordinates where only the sum of shifts is bounded.",
        "Row weights are charged as one coordinate that takes all of it.",
        (*_in("pitfalls_price", "n2_row_weights_are_priced_as_one_coordinate"), *_in("cost", "n2_row_weights_are_charged_as_one_coordinate")),
    ),
    "N3": Pitfall(
        "Accounts renamed, adjacency or unit edited, noise turned off for one query: new budget for old data.",
        "Creation fixes them; every account that ever was counts at the largest cap it ever had.",
        (
            *_in("pitfalls_data", "n3_w11_what_was_fixed_at_creation_stays"),
            *_in(
                "ledger_reserve", "a_removed_account_keeps_its_share", "what_creation_fixes_stays", "an_unsafe_ledger_never_becomes_an_ordinary_one"
            ),
            *_in("ledger_periods", "a_new_account_cannot_have_what_periods_took", "another_period_or_none_takes_nothing_back"),
            *_in("found_ledgers", "what_is_noticed_of_data_under_another_name"),
        ),
    ),
    "N4": Pitfall(
        "Sums of floats inside a unit depend on row order and threads.",
        "Sums are of integers on a grid, inside a unit too.",
        (
            *_in("pitfalls_values", "n4_an_aggregate_inside_a_unit_is_the_units_own", "n4_sums_inside_a_unit_do_not_depend_on_the_order_of_rows"),
            *_in("lower", "n4_sums_do_not_depend_on_order_or_threads"),
        ),
    ),
    "N5": Pitfall(
        "Sniffed file types, physical views and generated columns: one person's row changes how all are read.",
        "Scans are literal: plain tables, CSV as the schema says, columns of other kinds refused at registration.",
        (
            *_in("source", "n5_one_persons_line_does_not_change_how_others_are_read"),
            *_in("pitfalls_data", "a11_a12_n5_what_no_query_can_enforce_is_checked_at_registration", "n5_undeclared_columns_are_invisible"),
            *_in("pitfalls_data", "n5_a_text_that_is_no_value_is_null_in_every_statement"),
            *_in("inspect", "n5_a_view_is_called_one"),
        ),
    ),
    "N6": Pitfall(
        "Rows that are equal but not alike: 0.0 and -0.0, intervals of 30 days and a month.",
        "Floats are canonical after each operation that could tell; types of coarser equality are refused.",
        (*_in("pitfalls_values", "n6_two_zeros_are_one"), *_in("relation", "n6_zeros_of_either_sign_are_one_value_and_nan_is_none")),
    ),
    "N7": Pitfall(
        "A branch with a literal unit gives a person rows that the person does not have.",
        "A private relation is empty where its owner has no rows; such branches are refused.",
        (*_in("pitfalls_relations", "n7_a_branch_without_a_unit_of_its_own_is_refused"), *_in("locality", "l1_random_relations_are_local")),
    ),
    "N8": Pitfall(
        "A delta halved for each release adds up to more than was said.",
        "The split is made once a statement.",
        (
            *_in("pitfalls_price", "n8_delta_is_split_once_a_statement"),
            *_in("cost", "n8_delta_is_split_once"),
            *_in("together", "p8_prices_of_releases_add_up"),
        ),
    ),
    "N9": Pitfall(
        "A public table with a large fan-out makes one person's presence a matter of seconds or hours.",
        "The fan-out is computed before the charge, capped beyond 100 and refused beyond 10,000, whoever is there.",
        (
            *_in("pitfalls_relations", "n9_public_fan_out_is_bounded_before_the_charge"),
            *_in("resolve", "n9_wide_lookups_are_capped", "n9_fan_out_is_refused_beyond_ten_thousand"),
            *_in("public", "n9_the_fan_out_is_that_of_the_commonest_key"),
        ),
    ),
    "N10": Pitfall(
        "Integers that overflow, raise or lose rows at the edges.",
        "Every intermediate is bounded on the plan; wide columns take a coarser grid, or are refused.",
        (
            *_in("pitfalls_price", "n10_wide_columns_take_a_coarser_grid_or_are_refused"),
            *_in("aggregates", "n10_a_wide_column_takes_a_coarser_grid", "n10_sums_that_could_overflow_are_refused"),
            *_in("lower", "n10_the_widest_rows_and_cells_stay_integers", "n10_wide_rows_keep_their_weights"),
        ),
    ),
    "N11": Pitfall(
        "A key listed twice appears twice, with fresh noise each time.",
        "A key list is a set of canonical values, NULL only where it is listed.",
        (
            *_in("pitfalls_keys", "c5_a_public_list_is_a_set_and_all_of_it_appears"),
            *_in("resolve", "n11_a_key_list_is_a_set"),
            *_in("public", "n11_a_key_list_is_a_set_without_null"),
        ),
    ),
    "N12": Pitfall(
        "Stored answers and log heads that show what others asked.",
        "Nothing is shared unless the schema says so; each entry is hashed with a nonce, and a receipt holds its own commitment alone.",
        (
            *_in("pitfalls_accounts", "n12_a_receipt_commits_to_its_own_entry_alone", "b5_n12_a_stored_answer_serves_the_account_that_was_shown_it"),
            *_in("ledger_log", "every_entry_has_its_own_id_and_nonce"),
        ),
    ),
    "W1": Pitfall(
        "Row weights that count a person's only row many times.",
        "The weight is (min(R, n) << 20) // n.",
        (*_in("pitfalls_values", "w1_a_unit_with_few_rows_counts_them_whole"), *_in("lower", "w1_a_unit_with_few_rows_counts_them_whole")),
    ),
    "W2": Pitfall(
        "The unit's equality added to a subquery in silence, which changes the answer.",
        "The unit's equality stands in the text, or the subquery is refused with what to write.",
        _in("pitfalls_relations", "w2_subqueries_on_the_unit_are_refused_with_what_to_write"),
    ),
    "W3": Pitfall(
        "Caps on a join's rows where the join cannot run away, unsaid.",
        "They sit above the input's own filters, only where rows can multiply, and are named in the warnings.",
        (
            *_in("pitfalls_relations", "w3_a_cap_on_a_joins_input_is_named"),
            *_in("relation", "w3_a_cap_sits_where_the_plan_puts_it_above_filters"),
            *_in("resolve", "an_input_of_few_rows_needs_no_cap"),
        ),
    ),
    "W4": Pitfall(
        "A price in rho that passes the limits on epsilon.",
        "It counts as its conversion at the statement's delta.",
        _in("pitfalls_price", "w4_a_price_in_rho_counts_as_its_conversion"),
    ),
    "W5": Pitfall(
        "Intervals that do not cover: under selection, and of means of few.",
        "Bars that hold among the groups that appear; Fieller's from both noises, cut to the bounds, all of them where n is not clear of 0.",
        (
            *_in("pitfalls_price", "w5_intervals_under_selection_say_so", "w5_the_interval_of_a_mean_of_hardly_anybody_is_all_of_its_bounds"),
            *_in("error_bars", "mean_covers_as_promised", "the_whole_interval_where_the_count_is_not_clear_of_zero"),
            *_in("bar_coverage", "bars_hold_among_the_groups_that_appear"),
        ),
    ),
    "W6": Pitfall(
        "COUNT(*) and COUNT(x) confused above an outer join.",
        "COUNT(*) counts rows, null-extended ones of a private LEFT JOIN included; COUNT(x) values that are neither NULL nor NaN.",
        _in("pitfalls_relations", "w6_count_star_counts_rows_and_count_x_values"),
    ),
    "W7": Pitfall(
        "Overflow above the noise that loses a paid answer.",
        "Sums saturate after the noise; arithmetic that has no value is NULL, with a warning.",
        (
            *_in("pitfalls_price", "w7_sums_saturate_after_the_noise_and_arithmetic_above_it_never_fails"),
            *_in("aggregates", "counts_and_integer_sums_saturate_as_bigint_and_stay_negative"),
            *_in("sql_split", "nothing_fails_above_the_noise"),
        ),
    ),
    "W8": Pitfall(
        "An expected error of a mean that needs the true n.",
        "It is given for n = 100, 1,000 and 10,000.",
        (
            *_in("pitfalls_price", "w8_the_expected_error_of_a_mean_is_a_function_of_n"),
            *_in("error_bars", "expected_error_of_a_mean_is_a_function_of_n"),
        ),
    ),
    "W9": Pitfall(
        "A stored answer that outlives the tables, schema or software it came from.",
        "Data version (public tables in it), schema and the software's plan version are part of the question: after a change nothing old is shown.",
        (
            *_in("pitfalls_stored", "w9_a_stored_answer_does_not_outlive_what_it_came_from"),
            *_in("same_questions", "every_field_of_a_plan_enters_the_hash", "spellings_of_a_question_have_one_hash"),
        ),
    ),
    "W10": Pitfall(
        "Drafts and listings that print an ENUM's values or sniffed types.",
        "A draft shows physical types alone; what analysts list comes from the schema.",
        (*_in("pitfalls_data", "w10_drafts_and_lists_show_no_value"), *_in("cli", "init_reads_no_value")),
    ),
    "W11": Pitfall(
        "Testing without noise on a real data set.",
        "A ledger made without `unsafe_testing` refuses such a schema, and the source is bound to it.",
        (
            *_in("pitfalls_data", "n3_w11_what_was_fixed_at_creation_stays"),
            *_in("ledger_reserve", "an_unsafe_ledger_never_becomes_an_ordinary_one"),
            *_in("schema_errors", "without_unsafe_testing_noise_cannot_be_turned_off"),
        ),
    ),
    "W12": Pitfall(
        "A public table that changes between the check of its keys and the query.",
        "Fan-outs and key lists are looked up for each query, in the version it runs on.",
        _in("pitfalls_data", "w12_public_tables_are_looked_at_in_the_version_that_is_answered_from"),
    ),
    "W13": Pitfall(
        "Units of a type with NaN, or with several spellings of one value.",
        "Integer, UUID or binary text.",
        _in("pitfalls_data", "w13_a_unit_is_an_integer_a_uuid_or_a_text"),
    ),
    "H1": Pitfall(
        "ROLLUP below the noise: the total's row belongs to nobody and holds everybody.",
        "Refused.",
        _in("pitfalls_relations", "h_totals_over_everybody_are_refused_below_the_noise"),
    ),
    "H2": Pitfall(
        "Tie-breakers that leave out computed columns.",
        "A cap's choice reads all columns of its input, computed and literal ones too.",
        _in("relation", "h_the_choice_of_rows_reads_computed_columns_and_literals_too"),
    ),
    "H3": Pitfall(
        "A CASE on a row's column taken for a key that depends on the person.",
        "A key depends on the unit only where all columns that it reads do.",
        (
            *_in("locality", "h_case_over_a_row_column_is_not_a_unit_key"),
            *_in("pitfalls_relations", "one_person_moves_no_answer_further_than_explain_says"),
        ),
    ),
    "H4": Pitfall(
        "A vector clipped to a length, priced as Laplace noise under bounds that it does not have.",
        "There is no such clip.",
        (*_in("pitfalls_keys", "c9_h_other_selections_and_clips_of_a_vector_are_refused_as_yet"), *_in("cost", "p4_rho_of_patterns")),
        "clipping to an L2 norm",
    ),
    "H5": Pitfall(
        "A grid set by an expression's wide bounds where narrow ones for each group fix the sensitivity: every answer is 0.",
        "The grid follows the bounds that fix the sensitivity.",
        (
            *_in("pitfalls_price", "h_the_grid_follows_the_bounds_that_fix_the_sensitivity"),
            *_in("aggregates", "h_the_grid_follows_the_bounds_that_fix_the_sensitivity"),
        ),
    ),
    "H6": Pitfall(
        "Distinct values summed by person, or deduplicated across people without a cap.",
        "Each person keeps max_rows_per_group values of a group, then those of all are merged: a lemma of its own.",
        (
            *_in("pitfalls_values", "h_distinct_values_are_capped_by_person_and_merged_over_people"),
            *_in("contribution", "c9_values_of_one_unit_alone_are_reached", "c9_unions_by_brute_force"),
        ),
    ),
    "H7": Pitfall(
        "An outer join that keeps public rows answered as an inner join; keys that WHERE removes shown as empty.",
        "Kept public rows are the key list, or the statement is refused; conditions on keys prune the list.",
        (
            *_in("pitfalls_relations", "h_an_outer_join_that_keeps_public_rows_is_no_inner_join"),
            *_in("pitfalls_keys", "h_keys_that_where_removes_are_not_shown_as_empty"),
            *_in("public", "h_conditions_on_a_public_table_prune_its_keys"),
        ),
    ),
    "E1": Pitfall(
        "An aggregate over no rows that returns no row.",
        "Without GROUP BY there is always exactly one noisy row.",
        (*_in("pitfalls_values", "e_an_aggregate_over_nothing_is_one_row"), *_in("lower", "without_keys_there_is_one_row_whatever_the_data")),
    ),
    "E2": Pitfall(
        "Windows inside a WITH query that nobody checks.",
        "All of the statement is read, WITH queries that nothing refers to as well.",
        _in("pitfalls_relations", "e_windows_below_the_noise_are_looked_at_everywhere"),
    ),
    "E3": Pitfall(
        "Tables that are public because nobody named them.",
        "Default deny: what is not declared does not exist, in whatever case or quotes.",
        (
            *_in("pitfalls_relations", "e_what_is_not_declared_does_not_exist", "e_a_name_in_another_case_is_the_private_table"),
            *_in("pitfalls_relations", "e_a_view_over_private_rows_is_never_public"),
        ),
    ),
    "E4": Pitfall(
        "Engine errors that carry a value, uncharged.",
        "Errors after the charge are constant and charged; the engine's words stay in its process.",
        (
            *_in("pitfalls_accounts", "b10_refusals_cost_nothing_and_failures_after_the_charge_are_not_refunded"),
            *_in("bad_input", "nothing_of_the_data_is_written_anywhere"),
            *_in("worker", "an_engines_message_never_leaves"),
        ),
    ),
    "E5": Pitfall(
        "Covariances over rows of which one argument is missing.",
        "Sums and count of a pair are over the rows in which both values are known.",
        _in("pitfalls_values", "e_pairs_of_columns_count_where_both_are_known", "e_pairs_move_no_further_than_their_claims"),
    ),
    "E6": Pitfall(
        "One NaN that turns a sum of thousands into nothing.",
        "NaN is NULL where it is read.",
        (*_in("pitfalls_values", "e_one_nan_does_not_erase_a_sum"), *_in("lower", "one_nan_does_not_spoil_a_sum")),
    ),
    "E7": Pitfall(
        "Four threads, one budget, four answers.",
        "Check and debit are one transaction.",
        (
            *_in("pitfalls_accounts", "e_four_threads_get_no_more_than_the_budget"),
            *_in("crash", "of_two_processes_one_gets_the_last_share"),
            *_in("ledger_processes", "two_processes_race_for_the_last_share"),
        ),
    ),
    "E8": Pitfall(
        "Groups judged on one random choice of rows and counted on another.",
        "Threshold and cells come from the same bounded rows of one statement.",
        _in("pitfalls_keys", "e_cells_and_threshold_come_from_the_same_bounded_rows"),
    ),
    "E9": Pitfall(
        "A price paid for selection where nothing is selected.",
        "Only private keys take a share and a delta for it.",
        (*_in("pitfalls_price", "e_no_selection_is_paid_for_without_private_keys"), *_in("cost", "e_no_selection_is_paid_for_without_private_keys")),
    ),
    "E10": Pitfall(
        "A new session with a new budget, or an argument that skips noise or charge.",
        "The budget is the ledger's; there is no such argument.",
        (
            *_in("pitfalls_data", "e_a_new_session_has_no_new_budget"),
            *_in("pitfalls_accounts", "e_no_argument_skips_the_noise_or_the_charge"),
        ),
    ),
    "E11": Pitfall(
        "Private tables crossed; FILTER, OVER or samples dropped in silence; a negative price.",
        "Read or refused, each by its name.",
        (
            *_in("pitfalls_relations", "e_two_private_tables_are_never_crossed", "e_clauses_are_never_dropped_in_silence"),
            *_in("pitfalls_price", "e_a_price_is_positive_and_finite"),
            *_in("cases", "no_clause_is_dropped_silently"),
            *_in("known_leaks", "two_private_relations_are_not_crossed", "filter_and_over_are_read", "samples_are_refused"),
        ),
    ),
    "E12": Pitfall(
        "A grouping column overwritten after the cap; a clamp on the base column of another expression.",
        "Keys are plan expressions; the clamp is on what is summed.",
        (
            *_in("pitfalls_relations", "e_a_key_is_grouped_as_it_is_bounded"),
            *_in("pitfalls_values", "e_the_bounds_are_those_of_the_expression_that_is_summed"),
            *_in("known_leaks", "a_person_is_in_as_many_groups_as_the_cap_says", "the_clamp_is_on_the_expression"),
        ),
    ),
    "E13": Pitfall(
        "Reversed bounds, overridden sensitivities, lost rows without a word.",
        "Refused; there is no override; warnings name what is left out.",
        (
            *_in("pitfalls_values", "e_reversed_bounds_are_refused"),
            *_in("pitfalls_price", "e_rows_that_are_left_out_are_said"),
            *_in("schema_errors", "each_error_names_its_code_line_and_key"),
        ),
    ),
    "E14": Pitfall(
        "A count of people noised as if each counted many times.",
        "Its cells are 0 or 1.",
        (*_in("pitfalls_keys", "a15_rows_never_decide_which_groups_appear"), *_in("aggregates", "count_of_at_most_one_is_the_count_of_units")),
    ),
    "E15": Pitfall(
        "A choice that hands over the largest score with its place: which one is paid for, how large is not.",
        "Of a part that is chosen from, 1 and 0 are all that crosses the noise line; a count beside it is a part with noise and a price of its own.",
        (*_in("pitfalls_price", "e_a_choice_tells_which_and_not_how_much"), *_in("choice", "choices_have_the_law_of_brute_force")),
    ),
    "E16": Pitfall(
        "Scores taken for monotone, and half the price charged, where replacing a person moves one up and another down.",
        "How far scores move apart is a claim of its own: W, or 2 W where a person is replaced.",
        (
            *_in("pitfalls_price", "e_scores_move_both_ways_where_a_person_is_replaced"),
            *_in("contribution", "c11_replace_one_is_reached", "c11_by_brute_force"),
        ),
    ),
}


def ids() -> list[str]:
    """All ids, in order."""
    return [f"{family}{number}" for family, count in COUNTS.items() for number in range(1, count + 1)]


def document(attacks: dict[int, tuple[str, tuple[str, ...], str]]) -> str:
    """The text of docs/pitfalls.md."""
    lines = [
        "# Pitfalls and attacks",
        "",
        "How private query engines break, what keeps dpquery from it, and the tests that show it. Each test is named as `file::test`, without the",
        "`test_` that both begin with. This page is written by `python tests/pitfalls/table.py`.",
        "",
    ]
    for family, title in FAMILIES.items():
        lines += [f"## {title}", "", "| id | what breaks | how it is prevented | tests |", "|---|---|---|---|"]
        for key in (f"{family}{number}" for number in range(1, COUNTS[family] + 1)):
            entry = TABLE[key]
            lines.append(f"| {key} | {entry.breaks} | {entry.prevented}{_later(entry.later)} | {_tests(entry.tests)} |")
        lines.append("")
    lines += ["## Attacks", "", "| no. | attack | tests |", "|---|---|---|"]
    for number, (name, tests, later) in attacks.items():
        lines.append(f"| {number} | {name}{_later(later)} | {_tests(tests)} |")
    return "\n".join(lines) + "\n"


def _later(feature: str) -> str:
    return f" Yet to come: {feature}; until then {_tests((YET_TO_COME[feature],))}." if feature else ""


def _tests(tests: tuple[str, ...]) -> str:
    return ", ".join(
        f"`{file.removeprefix('test_').removesuffix('.py')}::{name.removeprefix('test_')}`" for file, _, name in (t.partition("::") for t in tests)
    )


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1] / "attacks"))
    from attack_table import ATTACKS

    DOCUMENT.write_text(document(ATTACKS))
