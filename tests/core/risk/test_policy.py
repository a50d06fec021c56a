"""core/risk/policy: a policy is read exactly. An error names the line and what it should contain."""

from __future__ import annotations

import pytest

from cuota.core.risk.facts import History
from cuota.core.risk.policy import BadPolicy, load_policy
from cuota.core.risk.policy_text import MOST_CHARACTERS
from support.core.risk_values import STANDARD, STANDARD_TEXT, changed


def _refused(text: str) -> BadPolicy:
    with pytest.raises(BadPolicy) as refused:
        load_policy(text)
    assert str(refused.value).startswith(f"line {refused.value.line}: ")
    return refused.value


def test_amounts_are_read_to_the_cent() -> None:
    text, _ = changed("exposure", "new", '"1234.56"')
    assert load_policy(text).exposure.new == 123_456


@pytest.mark.parametrize(
    ("paid", "late", "limit"),
    [
        (0, 0, 200_000), (3, 0, 200_000), (4, 9, 250_000), (7, 0, 250_000), (8, 1, 350_000), (8, 2, 250_000),
        (16, 0, 500_000), (16, 1, 350_000), (16, 2, 250_000), (999, 0, 500_000),
    ],
)  # fmt: skip
def test_the_limit_is_that_of_the_highest_reached_step(paid: int, late: int, limit: int) -> None:
    assert STANDARD.limit(History(paid_installments=paid, late_installments=late)) == limit


def test_a_policy_without_steps_gives_everybody_the_same_limit() -> None:
    start, end = STANDARD_TEXT.index("[[exposure.step]]"), STANDARD_TEXT.index("[velocity.phone]")
    flat = load_policy(STANDARD_TEXT[:start] + STANDARD_TEXT[end:])
    assert flat.limit(History(paid_installments=99)) == flat.limit(History()) == 200_000


@pytest.mark.parametrize(
    ("table", "key", "value", "said"),
    [
        ("", "version", "7", "version must be a name of small letters"),
        ("", "version", '"Of Today"', "version must be a name of small letters"),
        ("refuse_from", "disputes", "0", "refuse_from.disputes must be a whole number from 1 to 100"),
        (
            "exposure",
            "new",
            "600",
            'exposure.new must be an amount as text with two decimals, such as "600.00"',
        ),
        ("exposure", "new", "600.00", "exposure.new must be an amount as text with two decimals"),
        ("exposure", "new", '"600"', "exposure.new must be an amount as text with two decimals"),
        ("exposure", "new", '"600.005"', "exposure.new must be an amount as text with two decimals"),
        ("exposure", "new", '"-600.00"', "exposure.new must be an amount as text with two decimals"),
        ("exposure", "new", '"0.00"', "of more than 0.00"),
        ("exposure", "ceiling", '"1999.99"', "exposure.ceiling must be at least what a new consumer may owe"),
        (
            "exposure.step",
            "limit",
            '"1999.99"',
            "exposure.step.limit must not be lower than that of the step before",
        ),
        ("exposure.step", "limit", '"5000.01"', "exposure.step.limit must not be above exposure.ceiling"),
        ("exposure.step", "paid_installments", "0", "must be a whole number from 1 to 100"),
        ("exposure.step", "paid_installments", "true", "must be a whole number from 1 to 100"),
        ("velocity.card", "orders", "0", "velocity.card.orders must be a whole number from 1 to 1000"),
        ("velocity.device", "hours", "24.0", "velocity.device.hours must be a whole number from 1 to 720"),
        ("velocity.device", "hours", "721", "velocity.device.hours must be a whole number from 1 to 720"),
        ("mismatch", "surname", "1", "mismatch.surname must be a whole number from -1000 to 0"),
        ("score", "amount", "5", "score.amount must be a whole number from -1000 to 0"),
        ("score", "base", '"600"', "score.base must be a whole number from 0 to 10000"),
        ("score", "threshold", "717", "score.threshold must be at most 716, the highest possible score"),
        ("score.paid_installments", "points", "-5", "must be a whole number from 0 to 1000"),
        ("score.months_known", "points", "-1", "must be a whole number from 0 to 1000"),
        ("score.late_installments", "points", "25", "must be a whole number from -1000 to 0"),
        ("score.overdue_installments", "points", "1", "must be a whole number from -1000 to 0"),
        ("score.declined_orders", "points", "inf", "must be a whole number from -1000 to 0"),
        ("score.disputes", "most", "-1", "score.disputes.most must be a whole number from 0 to 100"),
        ("approvals", "most_points", "-60", "approvals.most_points must be a whole number from 0 to 1000"),
        (
            "approvals",
            "most_points",
            "",
            "approvals.most_points is missing: it must be a whole number from 0",
        ),
        ("approvals", "most_points", "= 1", "must be TOML"),
        ("approvals", "most_points", "[" * 900, "must be TOML"),
        ("approvals", "most_points", "9" * 1_001, "a line must have at most 1000 characters"),
    ],
)
def test_an_error_has_its_line_and_says_what_is_expected(table: str, key: str, value: str, said: str) -> None:
    text, line = changed(table, key, value)
    refused = _refused(text)
    # The error about a missing key has the line at which its table begins.
    assert refused.line == (line if value else line - 1)
    assert said in str(refused)


def test_a_later_step_must_require_more_and_give_at_least_as_much_and_the_error_names_its_line() -> None:
    lines = STANDARD_TEXT.split("\n")
    second = [number for number, line in enumerate(lines, 1) if line.startswith("paid_installments =")][1]
    lines[second - 1] = "paid_installments = 4"
    refused = _refused("\n".join(lines))
    assert (refused.line, "must be more than that of the step before" in str(refused)) == (second, True)


@pytest.mark.parametrize(
    ("line", "instead", "said"),
    [
        (
            "order_phone = -15",
            "order_phon = -15",
            "mismatch.order_phon is not known; this table may contain: order_phone",
        ),
        ("[approvals]", "[aprovals]", "aprovals is not known; this table may contain: version, refuse_from"),
        (
            "[[exposure.step]]",
            "[[exposure.steps]]",
            "exposure.steps is not known; this table may contain: new, ceiling, step",
        ),
        ("[velocity.card]", "[velocity.cart]", "velocity.cart is not known"),
        ("late_at_most = 1", "late_most = 1", "exposure.step.late_most is not known"),
        ("[refuse_from]", "[[refuse_from]]", "refuse_from must be a table [refuse_from]"),
        ("most = 16", "most = 16\nleast = 1", "score.paid_installments.least is not known"),
    ],
)
def test_an_unknown_key_is_an_error_at_its_line(line: str, instead: str, said: str) -> None:
    text = STANDARD_TEXT.replace(line, instead, 1)
    refused = _refused(text)
    assert said in str(refused)
    assert text.split("\n")[refused.line - 1] in instead.split("\n")


@pytest.mark.parametrize("table", ["refuse_from", "exposure", "velocity", "mismatch", "score", "approvals"])
def test_a_missing_table_is_an_error_that_names_the_table(table: str) -> None:
    kept = [
        part for part in STANDARD_TEXT.split("\n\n") if f"\n[{table}" not in f"\n{part}".replace("[[", "[")
    ]
    assert f"{table} is missing: it must be a table [{table}]" in str(_refused("\n\n".join(kept)))


def test_steps_must_be_a_list_of_tables() -> None:
    start, end = STANDARD_TEXT.index("[[exposure.step]]"), STANDARD_TEXT.index("[velocity.phone]")
    text = STANDARD_TEXT[:start] + '[exposure.step]\nlimit = "9.00"\n' + STANDARD_TEXT[end:]
    refused = _refused(text)
    assert "exposure.step must be tables [[exposure.step]]" in str(refused)
    assert text.split("\n")[refused.line - 1] == "[exposure.step]"


def test_inline_tables_and_dotted_keys_are_read_and_their_errors_have_a_line() -> None:
    inline = STANDARD_TEXT.replace(
        "[velocity.phone]\norders = 40\nhours = 24", "[velocity]\nphone.orders = 7\nphone.hours = 2"
    )
    assert load_policy(inline).velocity.phone.orders == 7
    wrong = inline.replace("phone.hours = 2", "phone.hours = 0")
    assert wrong.split("\n")[_refused(wrong).line - 1] == "phone.hours = 0"
    wrong = STANDARD_TEXT.replace(
        "[velocity.phone]\norders = 40\nhours = 24", "[velocity]\nphone = {orders = 0, hours = 2}"
    )
    assert wrong.split("\n")[_refused(wrong).line - 1].startswith("phone =")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "version",
        'version = "a"\n' * 2,
        "\x00",
        "a = [" + "[\n" * 5_000,
        "#" * 9 + "\n" + "#\n" * MOST_CHARACTERS,
    ],
)
def test_a_text_that_is_no_policy_is_refused_with_a_line_number(text: str) -> None:
    assert 1 <= _refused(text).line <= len(text.split("\n"))


def test_the_standard_policy_is_read_the_same_with_windows_line_endings() -> None:
    assert load_policy(STANDARD_TEXT.replace("\n", "\r\n")) == STANDARD


def test_a_policy_refers_nobody_unless_it_says_from_which_score_on() -> None:
    assert STANDARD.score.refer_from is None
    text = STANDARD_TEXT.replace("[score]\n", "[score]\nrefer_from = 480\n", 1)
    assert load_policy(text).score.refer_from == 480


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("500", "must be below the threshold of 500"), ("501", "must be below the threshold of 500"),
        ("-1", "must be a whole number from 0 to"), ("480.5", "must be a whole number from 0 to"),
        ("true", "must be a whole number from 0 to"), ('"480"', "must be a whole number from 0 to"),
    ],
)  # fmt: skip
def test_a_score_to_refer_from_that_cannot_be_is_refused_with_its_line(value: str, said: str) -> None:
    assert STANDARD.score.threshold == 500
    text = STANDARD_TEXT.replace("[score]\n", f"[score]\nrefer_from = {value}\n", 1)
    refused = _refused(text)
    assert said in str(refused)
    assert text.split("\n")[refused.line - 1].startswith("refer_from")
