"""Known attacks on private query engines: each with its tests, and with what comes later."""

from __future__ import annotations

HERE = "test_attack_catalogue.py::test_attack_"

# number: (the attack, its tests, with which feature the rest of it comes, of those yet to come in the table of pitfalls)
ATTACKS: dict[int, tuple[str, tuple[str, ...], str]] = {
    1: ("Low bits of noisy floats.", (f"{HERE}01_low_bits_of_noisy_floats",), ""),
    2: ("Precision that follows the value.", (f"{HERE}02_precision_that_follows_the_value",), ""),
    3: (
        "Samplers that are biased, or that repeat themselves in another process.",
        (
            f"{HERE}03_biased_or_predictable_samplers",
            "test_sampler_chance.py::test_values",
            "test_sampler_exact.py::test_the_tail_is_drawn_not_clipped",
            "test_bits.py::test_fork_shares_nothing",
            "test_sampler_independence.py::test_no_word_comes_twice",
        ),
        "",
    ),
    4: (
        "Run time that one person's row decides, or the noise that is drawn. What is left of the first without a grid, and of the second where "
        "code runs beside it, are named residual risks.",
        (
            f"{HERE}04_time_that_depends_on_a_row",
            "test_timing.py::test_an_answer_leaves_on_the_grid",
            "test_timing.py::test_a_failure_leaves_on_the_grid",
            "test_timing.py::test_a_time_out_leaves_at_one_moment",
            "test_timing_measured.py::test_run_time_tells_of_a_person_unless_replies_leave_on_a_grid",
            "test_crash.py::test_a_runaway_stops_at_the_time_limit_and_the_account_locks",
            "test_draw_time.py::test_time_hardly_depends_on_the_draw",
        ),
        "",
    ),
    5: (
        "State and side effects.",
        (f"{HERE}05_side_effects", "test_worker.py::test_only_a_single_select_is_run_or_bound", "test_fuzz.py::test_fuzzed_statements"),
        "",
    ),
    6: ("Prices and bounds that come from the data.", (f"{HERE}06_prices_and_bounds_from_the_data",), ""),
    7: ("Errors that tell of a row.", (f"{HERE}07_errors_that_tell_of_a_row", "test_scalar_total.py::test_nothing_raises"), ""),
    8: ("Keys that one person holds; public keys that vanish when empty.", (f"{HERE}08_keys_of_one_person",), ""),
    9: ("Volatile functions.", (f"{HERE}09_volatile_functions", f"{HERE}09_the_clock_is_read_once"), ""),
    10: (
        "Functions, macros and extensions of somebody's own.",
        (f"{HERE}10_functions_of_their_own_making", "test_fuzz.py::test_fuzzed_statements"),
        "",
    ),
    11: ("Files and the network.", (f"{HERE}11_files_and_network", "test_worker.py::test_nothing_outside_is_within_reach"), ""),
    12: (
        "Averaging over repetitions and rewordings.",
        (f"{HERE}12_averaging", "test_same_questions.py::test_spellings_of_a_question_have_one_hash"),
        "",
    ),
    13: (
        "Stored answers across data versions.",
        (
            f"{HERE}13_stored_answers_across_versions",
            "test_pitfalls_stored.py::test_w9_a_stored_answer_does_not_outlive_what_it_came_from",
            "test_pitfalls_stored.py::test_a_stored_answer_leaves_on_the_grid",
            "test_ledger_stored.py::test_death_before_any_statement_of_storing_an_answer",
            "test_ledger_stored.py::test_alterations_of_what_is_stored_are_found",
        ),
        "",
    ),
    14: ("Refusals that depend on the data.", (f"{HERE}14_refusals_that_depend_on_the_data",), ""),
    15: ("Noise that cancels.", (f"{HERE}15_noise_that_cancels", "test_bits.py::test_there_is_no_seed"), ""),
    16: ("Order of rows and ties.", (f"{HERE}16_order_of_rows",), ""),
    17: ("Thresholds that are off by one.", (f"{HERE}17_thresholds_off_by_one", "test_threshold.py::test_threshold_is_the_least"), ""),
    18: ("Thresholds on rows instead of people.", (f"{HERE}18_thresholds_on_rows",), ""),
    19: ("Bounds before a join.", (f"{HERE}19_bounds_before_a_join",), ""),
    20: (
        "Races for the budget.",
        (
            f"{HERE}20_races_for_the_budget",
            "test_crash.py::test_of_two_processes_one_gets_the_last_share",
            "test_ledger_processes.py::test_fifty_processes_at_a_tenth_of_the_cap",
        ),
        "",
    ),
    21: (
        "Crashes, restored copies and clocks set back. A copy restored with its folder, mark and all, is seen against a checkpoint only.",
        (
            f"{HERE}21_ledgers_that_forget",
            "test_crash.py::test_death_between_charge_and_release_leaves_the_charge",
            "test_ledger_processes.py::test_death_before_any_statement_of_a_charge",
            "test_ledger_store.py::test_an_older_copy_put_in_its_place_while_open",
            "test_ledger_log.py::test_a_clock_set_back_is_harmless",
            "test_ledger_evidence.py::test_an_older_copy_is_found_by_its_checkpoint_alone",
            "test_ledger_forgets.py::test_an_older_ledger_copied_over_the_open_one",
            "test_ledger_forgets.py::test_of_two_copies_one_goes_on",
            "test_ledger_rederived.py::test_no_table_is_beyond_the_log",
            "test_found_ledgers.py::test_what_is_noticed_of_data_under_another_name",
        ),
        "",
    ),
    22: ("Budgets in floating point.", (f"{HERE}22_budgets_in_floating_point", "test_ledger_amounts.py::test_ten_tenths_are_one"), ""),
    23: ("Metadata: catalogues, statistics, plans.", (f"{HERE}23_metadata",), ""),
    24: ("Error bars and diagnostics that come from the data.", (f"{HERE}24_error_bars_from_the_data",), ""),
    25: ("Conditions that single somebody out, or compare with another private number.", (f"{HERE}25_conditions_that_single_somebody_out",), ""),
    26: ("Finishing touches that read the data.", (f"{HERE}26_finishing_touches_that_read_the_data",), ""),
    27: ("Means of nobody.", (f"{HERE}27_means_of_nobody",), ""),
    28: ("Identifiers as keys or outputs.", (f"{HERE}28_identifiers",), ""),
}
