"""The tests that cannot run on a Citus cluster (CUOTA_TEST_CITUS), each with the reason. On plain PostgreSQL all of them run.

They are about something that Cuota refuses on a cluster, or they change or watch the database in a way that works on one server only.
A test whose own text says that it needs plain PostgreSQL has the mark `plain_postgresql` instead.
"""

from __future__ import annotations

import pytest

_FORKS = "forks of the sandbox are refused on a cluster, because Citus cannot switch off triggers"
_ROW_SECURITY = "row-level security is refused on a cluster"
_LOCKS_ALL = "the test locks rows of several shards with one statement, which Citus refuses"
_IN_PARTS = "Citus runs the parts of this statement one after another, and so locks the rows in another order"
_FAILS = "the test's own trigger lets a statement fail, and Citus allows no new trigger on these tables"
_ALTERS = "the test alters protected rows, and cannot switch off their triggers on the nodes"
_REFUSED = "Citus refuses the test's own statement, or reports its error with another code"
_TIMEOUT = "Citus does not send lock_timeout to the nodes"
_ROLES = "the test is about the roles, the addresses or the catalog of the embedded PostgreSQL"
_PLANS = "the test reads the plans or the statistics of one PostgreSQL server"
_SESSIONS = "the test counts or ends the sessions of one server, and Citus has sessions of its own"

# The beginning of a test's id below tests/: a file, a test, or a test with its parameters.
_NOT_ON_CITUS: dict[str, tuple[str, ...]] = {
    _FORKS: (
        "browser/test_forks_in_browser.py",
        "flows/sandbox/test_fork.py::test_a_fork_of_another_release_is_refused_and_nothing_changes",
        "flows/sandbox/test_fork.py::test_a_merchant_created_after_the_fork_is_unknown_immediately_after_the_rewind",
        "flows/sandbox/test_fork.py::test_a_name_that_is_taken_is_refused_unless_it_is_replaced",
        "flows/sandbox/test_fork.py::test_of_two_forks_with_one_name_at_the_same_moment_one_is_made_and_one_is_refused",
        "flows/sandbox/test_fork.py::test_a_rewind_brings_back_every_row_and_the_clock",
        "flows/sandbox/test_fork.py::test_advancing_twice_from_the_same_fork_has_the_same_result",
        "flows/sandbox/test_fork.py::test_after_a_rewind_the_triggers_of_the_ledger_work_again",
        "flows/sandbox/test_fork.py::test_new_tables_are_copied_too_and_their_sequences_continue",
        "flows/sandbox/test_fork.py::test_the_error_about_an_unknown_fork_lists_the_existing_ones",
        "flows/sandbox/test_fork.py::test_the_service_s_role_has_no_access_to_forks",
        "flows/sandbox/test_reviews_by_the_clock.py::test_a_rewind_brings_back_an_order_that_waited",
        "flows/sandbox/test_payouts_by_the_clock.py::test_a_rewind_also_removes_the_bank_s_payments",
        "flows/secret/test_rewrap.py::test_copies_of_the_sandbox_are_rewrapped_too",
        "web/pages/desk/test_forks.py",
        "web/pages/operator/test_operator_sandbox.py::test_the_operator_moves_the_clock_and_goes_back_to_a_fork",
    ),
    _ROW_SECURITY: (
        "db/test_row_security.py",
        "migrations/test_lock_wait.py::test_row_level_security_waits_for_a_backup_and_says_so",
        "migrations/test_lock_wait.py::test_row_level_security_that_waited_too_long_names_the_session_and_changes_nothing",
    ),
    _LOCKS_ALL: (
        "flows/privacy/test_erase_locks.py::test_an_erasure_that_lost_a_deadlock_is_done_all_the_same",
        "flows/test_settle.py::test_a_deadlock_under_the_rows_lock_is_tried_again_and_applied_once",
        "web/pages/checkout/test_stale.py::test_if_the_consumer_s_other_orders_block_a_press_the_page_says_so",
        "db/test_old_rows.py::test_a_sweep_leaves_a_locked_row_to_the_next_run_and_does_not_wait_for_it",
    ),
    _IN_PARTS: (
        "flows/webhook/test_lock_order.py::test_deliveries_are_locked_in_the_order_of_their_key[record]",
    ),
    _FAILS: (
        "db/test_claims.py::test_if_the_claim_fails_for_one_merchant_the_card_refunds_of_the_others_are_claimed",
        "db/test_sweeps.py::test_old_rows_of_a_merchant_are_deleted_although_those_of_another_cannot_be",
        "db/test_sweeps.py::test_old_rows_of_a_table_are_deleted_although_those_of_another_table_cannot_be",
        "db/test_sweeps.py::test_old_messages_are_deleted_although_the_retention_of_consumers_fails",
        "flows/webhook/test_many_queues.py::test_webhooks_are_sent_although_those_of_another_merchant_cannot_be_claimed",
        "flows/test_save_together.py::test_an_outcome_that_the_database_refuses_does_not_affect_the_others",
        "web/test_afterwards.py::test_a_payment_is_said_to_be_made_when_its_counts_cannot_be_written",
        "web/test_afterwards.py::test_a_payment_whose_answer_cannot_be_recorded_is_said_to_be_in_progress_and_charged_once",
        "web/test_afterwards.py::test_what_was_paid_is_told_when_the_next_payment_cannot_begin",
        "web/test_afterwards.py::test_a_changed_card_is_said_to_be_changed_when_it_cannot_be_charged_now",
        "web/test_afterwards.py::test_a_checkout_that_was_paid_never_ends_with_an_error[charges-UPDATE]",
        "web/test_afterwards.py::test_a_refused_movement_is_refused_when_its_event_cannot_be_written",
        "web/test_afterwards.py::test_an_action_is_answered_when_the_answer_cannot_be_stored_for_its_key",
        "web/test_afterwards.py::test_an_adjustment_is_said_to_be_booked_when_the_merchants_log_cannot_be_written",
        "web/test_afterwards.py::test_a_dispute_is_accepted_only_together_with_an_entry_of_the_audit_log",
    ),
    _ALTERS: (
        "flows/risk/test_explain_timeline.py::test_at_the_same_time_the_creation_stands_before_the_decision_and_the_result_after_it",
        "flows/payout/test_change_of_bank.py::test_a_payout_that_never_reached_the_old_bank_is_sent_by_the_new_one",
        "flows/dispute/test_disputes.py::test_one_altered_cent",
        "flows/payout/test_fees.py::test_one_altered_cent_of_a_fee_is_found",
        "flows/risk/test_reviews_again.py::test_verify_finds_data_that_was_changed_directly_in_the_database",
        "flows/risk/test_reviews_again.py::test_the_replay_reports_a_referral_with_changed_facts",
        "db/payout/test_verify_settlements.py::test_a_removed_row_is_found",
        "db/payout/test_verify_settlements.py::test_an_altered_capture_of_the_ledger_disagrees_with_its_line",
        "db/payout/test_verify_settlements.py::test_every_altered_column_of_every_row_is_found",
        "db/payout/test_verify_settlements.py::test_the_lines_of_all_batches_are_checked",
        "db/payout/test_verify_settlements.py::test_the_report_names_the_row_and_both_amounts",
        "db/test_verify.py::test_a_single_altered_cent_is_found",
        "db/test_verify_plan_changes.py::test_what_was_altered_is_named",
        "db/test_verify.py::test_a_removed_row_is_found",
        "db/test_verify.py::test_a_single_altered_cent_of_any_transfer_is_found",
        "db/test_verify.py::test_an_altered_account_of_any_transfer_is_found",
        "db/test_verify.py::test_an_altered_cent_of_an_order_without_a_ledger_is_found",
        "db/test_verify_plan_changes.py::test_the_database_itself_refuses",
        "db/test_verify.py::test_a_ledger_row_removed_together_with_its_count_is_found",
        "db/test_verify.py::test_altered_words_and_missing_details_are_found[UPDATE decisions",
        "db/test_verify.py::test_altered_words_and_missing_details_are_found[DELETE FROM decisions",
        "db/test_verify.py::test_a_decline_that_was_altered_is_found",
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[a settled capture that the merchant was told was refused",
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[a capture whose event reports another reference",
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[a success that is told as a failure",
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[an approval that is told as a decline",
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[an opened dispute without its event",
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[a closed dispute without its event",
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[a dispute about no order",
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[an installment of no order",
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[an order that was removed from every table",
        "db/test_verify_planted.py::test_the_last_approval_of_an_early_release_says_nothing_about_the_consumer",
        "db/test_verify_write_offs.py::test_one_altered_cent_of_each_posting_is_found_and_named",
        "db/test_verify_write_offs.py::test_a_posting_under_another_name_is_found",
        "db/test_verify_write_offs.py::test_a_mark_that_is_missing_is_found",
        "db/test_verify_write_offs.py::test_a_mark_without_a_posting_is_found",
        "db/test_verify_write_offs.py::test_a_write_off_before_its_day_is_found",
        "web/pages/desk/test_long_lists.py::test_the_page_says_when_only_the_newest_disputes_are_sorted",
    ),
    _REFUSED: (
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[a dispute that ends years later",
        "db/test_verify_planted.py::test_a_planted_row_is_found_and_named[a plan of another consumer",
        "db/test_verify_work.py::test_a_payment_whose_charge_is_later_than_any_rule_allows_is_found",
        "db/test_verify_work.py::test_an_event_without_deliveries_is_not_reported_if_it_had_no_receiver_or_is_old",
        "db/test_verify_work.py::test_work_without_a_time_is_found[UPDATE orders SET due_at = greatest",
        "db/test_verify_work.py::test_work_without_a_time_is_found[UPDATE orders SET charging = gen_random_uuid()",
        "flows/dispute/test_refund_and_chargeback.py::test_a_refund_that_the_previous_release_may_have_sent_is_not_taken_for_unsent",
        "flows/payout/test_close_batches.py::test_the_database_refuses_a_second_payout_of_the_same_line",
        "flows/payout/test_payout_edges.py::test_the_database_refuses_to_change_what_a_payout_pays[account_id]",
        "flows/payout/test_settlement_lines.py::test_a_capture_and_a_refund_have_one_line_each_with_the_reference_and_the_event",
        "flows/plan/test_change_plan.py::test_a_plan_cannot_be_changed_during_a_charge_or_a_dispute",
        "flows/plan/test_write_off.py::test_a_void_of_a_written_off_installment_reduces_the_losses",
        "flows/plan/test_write_off.py::test_the_database_refuses_a_change_of_a_written_off_installment_without_its_posting",
        "flows/risk/test_exposure.py::test_an_order_whose_row_was_rewritten_without_a_new_version_is_saved",
        "flows/risk/test_reservations.py::test_verify_names_a_reservation_that_disagrees_with_its_order",
        "flows/risk/test_reviews_again.py::test_the_database_refuses_changes_that_make_an_order_disagree_with_its_review",
        "web/pages/account/test_plans.py::test_a_payment_in_progress_says_so_and_has_no_second_button",
        "web/pages/desk/test_bank.py::test_a_mail_that_cannot_be_sent_is_retried",
        "web/pages/desk/test_sorting.py::test_disputes_are_sorted_by_time_amount_or_deadline",
        "db/risk/test_history.py::test_an_installment_whose_charge_failed_is_overdue_and_counts_as_late_once_it_is_paid",
        "db/risk/test_history.py::test_the_whole_order_counts_as_owed_while_its_card_is_charged",
        "db/risk/test_history.py::test_the_history_lists_the_reserved_orders_that_it_has_counted",
    ),
    _TIMEOUT: (
        "flows/test_save_together.py::test_a_locked_row_does_not_delay_other_orders",
        "flows/plan/test_limit_asks.py::test_an_attempt_that_ends_holds_no_count_while_it_waits_for_another[plan-give_back]",
        "flows/risk/test_exposure.py::test_if_a_consumer_has_no_row_to_lock_one_is_created",
    ),
    _ROLES: (
        "run/test_external_database.py::test_a_backup_under_load_is_restored_into_an_empty_database",
        "run/test_external_database.py::test_a_database_with_another_program_s_tables_is_not_changed",
        "migrations/test_migrate.py::test_the_service_s_role_owns_nothing_and_cannot_get_more_rights",
        "migrations/test_statements_one_by_one.py::test_every_migration_has_the_same_result_if_it_runs_statement_by_statement",
        "db/test_hosts.py::test_the_kernel_closes_a_connection_to_a_vanished_host_within_seconds",
        "db/test_pool.py::test_a_server_without_a_free_connection_is_answered_with_503_and_not_with_an_unexpected_error",
        "db/test_pool.py::test_every_session_has_its_settings_in_force[session_authorization-cuota_service]",
        "db/test_pool.py::test_every_session_has_its_settings_in_force[role-none]",
        "db/test_service_role.py::test_a_role_that_owns_the_tables_or_may_become_their_owner_is_refused_in_production",
        "db/test_service_role.py::test_a_session_that_connected_as_an_owner_works_with_the_service_s_rights_only",
        "db/test_service_role.py::test_no_session_of_the_service_began_as_the_owner_or_a_superuser",
        "db/test_service_role.py::test_the_embedded_role_has_exactly_the_rights_of_cuota_app",
        "db/test_service_role.py::test_the_service_works_completely_as_its_own_role",
    ),
    _PLANS: (
        "flows/webhook/test_backlog.py",
        "db/order/test_many_movements.py",
        "db/payout/test_many_captures.py",
        "db/risk/test_history.py::test_the_statement_reads_no_table_from_end_to_end",
        "db/test_plans.py::test_a_statement_for_several_orders_finds_each_by_its_key_even_if_it_is_planned_for_empty_tables",
        "db/test_plans.py::test_a_statement_that_is_planned_while_a_shop_is_small_does_not_read_the_whole_shop_later",
        "db/test_plans.py::test_no_statement_reads_a_growing_table_from_end_to_end",
    ),
    _SESSIONS: (
        "flows/order/test_return_money.py::test_a_session_lost_while_recording_the_answer_books_it_once",
        "db/test_kept_sessions.py::test_closing_waits_for_a_session_that_is_in_use_and_ends_the_kept_ones",
    ),
}
BEGINNINGS = {start: reason for reason, starts in _NOT_ON_CITUS.items() for start in starts}


def reason_of(item: pytest.Item) -> str | None:
    """Return why this test cannot run on a cluster, or None if it can."""
    if mark := item.get_closest_marker("plain_postgresql"):
        return str(mark.args[0])
    name = item.nodeid.removeprefix("tests/")
    return next((reason for start, reason in BEGINNINGS.items() if name.startswith(start)), None)
