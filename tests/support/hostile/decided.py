"""Lists the rows of bad_inputs.csv whose answer a design decision replaces, and the rows that another test covers completely."""

from __future__ import annotations

from dataclasses import dataclass

# The answer that replaces the row's, and the section of the service's decisions that requires it.
DECIDED: dict[str, tuple[str, str]] = {
    "B42": ("413", "section 3: a body over 256 KiB"),
    "G02": ("404, of 10 KB 414", "an address over 8 KiB is refused before any route sees it"),
    "G05": ("200", "section 4: an answer is JSON, even if the Accept header names another type"),
    "A08": (
        "401 within 5 seconds",
        "section 2: a revoked credential's tokens stop within 5 seconds on every process",
    ),
    "A11": (
        "401 431",
        "section 3: no valid token is 401; a head over its limit is refused before the token is read",
    ),
    "S05": ("401, no GUID 400", "section 3: a field rule broken on the SDK's authorization call is 400"),
    "W07": ("an attempt ends within 12 s", "section 9: a 2xx within 10 seconds acknowledges"),
    "K01": ("404 410", "an invalid link is 404; a link whose time or order has ended is 410"),
}


@dataclass(frozen=True)
class Elsewhere:
    """The tests that cover a row, as file and function. `why` says why the row is not tried here too."""

    tests: tuple[str, ...]
    why: str


_PAGES = "walks through the pages of a checkout in one browser or several"
_BROWSER = "needs a real browser with the script in it"
_RECEIVER = "needs receivers of webhooks that misbehave"
_MANY = "many simultaneous requests, and their effects"

ANSWERED_BY: dict[str, Elsewhere] = {
    "U12": Elsewhere(("web/pages/checkout/test_links.py::test_a_query_parameter_never_decides_where_the_browser_is_sent",), _PAGES),
    "C17": Elsewhere(("web/api/test_capture.py::test_of_64_simultaneous_captures_of_10_on_100_ten_are_applied",), _MANY),
    "C18": Elsewhere(("web/api/test_void.py::test_of_a_concurrent_capture_and_void_of_the_same_amount_exactly_one_is_applied",), _MANY),
    "C19": Elsewhere(("web/api/test_bad_moves.py::test_c19_a_capture_whose_client_disconnects_is_applied_once_or_not_at_all",), _MANY),
    "A08": Elsewhere(("web/api/test_token_life.py::test_a_revoked_credential_stops_its_tokens_within_5_seconds",), "waits for what processes remember"),
    "S12": Elsewhere(("web/api/test_sdk_checkout.py::test_sixty_four_identical_requests_at_once_make_one_order",), _MANY),
    "S17": Elsewhere(
        (
            "sdk_browser/test_refusals.py::test_missing_parameters_are_reported_without_opening_a_window",
            "sdk/test_units.py::test_the_compiled_modules_pass_their_own_tests",
            "sdk_browser/test_windows.py::test_a_double_click_opens_one_window_and_one_order_and_a_second_call_brings_it_to_the_front",
        ),
        _BROWSER,
    ),
    "S18": Elsewhere(
        (
            "sdk_browser/test_windows.py::test_a_blocked_popup_becomes_a_modal",
            "sdk_browser/test_loading.py::test_a_page_whose_policy_isolates_popups_gets_the_modal",
            "sdk_browser/test_windows.py::test_a_purchase_in_the_modal_needs_no_cookie_and_then_returns_the_focus",
        ),
        _BROWSER,
    ),
    "J03": Elsewhere(("sdk_browser/test_flood.py::test_ten_thousand_false_messages_at_once_cost_at_most_a_millisecond_each_and_are_ignored",), _BROWSER),
    "K03": Elsewhere(("web/pages/checkout/test_safety.py::test_a_planted_cookie_is_replaced_by_a_new_session",), _PAGES),
    "K04": Elsewhere(("web/pages/checkout/test_ends.py::test_twenty_presses_at_once_cause_one_approval_and_one_charge",), _PAGES),
    "K05": Elsewhere(("web/pages/checkout/test_steps.py::test_a_form_of_a_later_step_is_answered_with_409_and_the_current_step",), _PAGES),
    "K07": Elsewhere(
        (
            "sdk_browser/test_hostile.py::test_a_page_that_is_not_the_merchant_s_cannot_frame_the_checkout",
            "web/pages/checkout/test_sdk_pages.py::test_a_popup_cannot_be_framed_and_keeps_its_opener",
        ),
        _BROWSER,
    ),
    "K08": Elsewhere(
        (
            "web/pages/checkout/test_links.py::test_opening_the_address_of_a_form_changes_nothing_and_shows_the_page_of_its_step",
            "web/pages/checkout/test_links.py::test_a_head_request_for_the_link_opens_no_session",
        ),
        _PAGES,
    ),
    "K09": Elsewhere(("web/pages/checkout/test_links.py::test_a_spoofed_host_header_changes_no_address_on_any_page",), _PAGES),
    "W02": Elsewhere(
        (
            "flows/webhook/test_forbidden.py::test_no_notation_of_loopback_reaches_it",
            "core/webhook/test_destination.py::test_internal_addresses_are_forbidden_in_the_sandbox_too",
        ),
        _RECEIVER,
    ),
    "W03": Elsewhere(("core/webhook/test_destination.py::test_internal_addresses_are_forbidden_in_the_sandbox_too",), "a rule without a network"),
    "W04": Elsewhere(
        (
            "flows/webhook/test_forbidden.py::test_a_name_with_one_internal_address_is_refused_completely",
            "flows/webhook/test_forbidden.py::test_a_name_that_changes_to_an_internal_address_after_the_check_is_not_reached",
        ),
        _RECEIVER,
    ),
    "W06": Elsewhere(("flows/webhook/test_forbidden.py::test_a_redirect_is_not_followed_and_acknowledges_nothing",), _RECEIVER),
    "W07": Elsewhere(
        (
            "flows/webhook/test_hostile.py::test_every_attempt_ends_in_time_and_releases_its_resources",
            "flows/webhook/test_hostile.py::test_no_more_than_64_kib_of_an_answer_is_read_and_no_compressed_answer_is_unpacked",
        ),
        _RECEIVER,
    ),
    "W10": Elsewhere(("faults/test_strike_delivery.py::test_every_event_is_delivered_despite_a_fault_at_any_step",), "kills processes"),
    "H05": Elsewhere(("faults/test_slow_clients.py::test_each_kind_of_slow_client_is_disconnected_at_its_deadline_and_not_before",), "waits for deadlines of many seconds"),
}  # fmt: skip
