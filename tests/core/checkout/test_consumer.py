"""core/consumer: phone numbers, names, email addresses, and time zones."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from cuota.core.consumer import (
    STATES,
    ZONES,
    Address,
    Profile,
    is_email,
    is_name,
    is_us_number,
    typed_number,
    zone_of,
)


@pytest.mark.parametrize("number", ["2125550100", "9899999999", "2002000000"])
def test_a_us_number_has_ten_digits_with_area_code_and_exchange_from_2_to_9(number: str) -> None:
    assert is_us_number(number)


@pytest.mark.parametrize(
    "number",
    [
        "", "1234567890", "0212555010", "2121550100", "2120550100", "212555010", "21255501000", "+12125550100",
        "(212)555-0100", "212 555 0100", " 2125550100", "2125550100\n", "\u0662\u0661\u0662\u0665\u0665\u0665\u0660\u0661\u0660\u0660", "\uff12\uff11\uff12\uff15\uff15\uff15\uff10\uff11\uff10\uff10", "212555010O",
    ],
)  # fmt: skip
def test_a_number_of_another_form_is_no_us_number(number: str) -> None:
    assert not is_us_number(number)


@pytest.mark.parametrize(
    "typed",
    ["2125550100", "(212) 555-0100", "212.555.0100", "+1 212 555 0100", "1-212-555-0100", " 212 555 0100 "],
)
def test_a_number_as_people_type_it_is_reduced_to_its_digits(typed: str) -> None:
    assert typed_number(typed) == "2125550100"


@pytest.mark.parametrize(
    "typed",
    [
        "112125550100",
        "+44 20 7946 0958",
        "\u0662\u0661\u0662\u0665\u0665\u0665\u0660\u0661\u0660\u0660",
        "212-555-010x",
        "22125550100",
    ],
)
def test_a_typed_number_that_is_no_us_number_is_still_none_after_its_punctuation_is_removed(
    typed: str,
) -> None:
    assert not is_us_number(typed_number(typed))


@pytest.mark.parametrize(
    "name",
    [
        "José",
        "Jose\u0301",
        "Anne-Marie",
        "de la Cruz",
        "Nguyễn",
        "李小龍",
        "Ольга",
        "محمد",
        "अनिल कुमार",
        "Ng",
        "Þór",
    ],
)
def test_a_name_has_letters_of_any_script_spaces_and_dashes(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "Ana\u202eRuiz", "Ana\u200bRuiz", "\ufeffAna", "Ana\nRuiz", "Ana\tRuiz", "Ana\0", "Ana\u2066", "Ana\u00a0Ruiz",
        "R2D2", "Ana1", "O'Hara", "Ana_Ruiz", "Ana.", "Ana😀", "<b>Ana</b>", "", " ", "-", "- -", "\u0301", "\u0301Ana",
    ],
)  # fmt: skip
def test_a_text_with_other_characters_is_no_name(name: str) -> None:
    assert not is_name(name)


@pytest.mark.parametrize(
    "email",
    ["a@b.co", "jordan.rivera+pay@mail.example", "o'hara@x-y.example", "A_b@sub.mail.example", "1@2.com"],
)
def test_a_mailbox_at_a_domain_with_a_dot_is_an_email(email: str) -> None:
    assert is_email(email)


@pytest.mark.parametrize(
    "email",
    [
        "", "a", "a@b", "a@@b.c", "a b@c.de", "x@y.z\r\nBcc: q", "x@mail.example\n", "x@mail.example\r\nBcc: q@mail.example",
        "@mail.example", "a@", "a@.example", "a@mail..example", ".a@mail.example", "a.@mail.example", "a..b@mail.example",
        "a@-mail.example", "a@mail-.example", "a@mail.example.", "a@b@mail.example", "José@mail.example", "a@mäil.example",
        "a\u200b@mail.example", "<a@mail.example>", "a,b@mail.example", "a@127.0.0.1",
    ],
)  # fmt: skip
def test_a_text_of_another_form_is_no_email(email: str) -> None:
    assert not is_email(email)


def test_an_email_has_at_most_250_characters() -> None:
    local = "a" * (250 - len("@mail.example"))
    assert is_email(f"{local}@mail.example")
    assert not is_email(f"a{local}@mail.example")


def test_every_state_has_a_time_zone_that_exists() -> None:
    assert set(STATES) == set(ZONES)
    for zone in ZONES.values():
        assert ZoneInfo(zone).key == zone


@pytest.mark.parametrize(
    ("state", "zone"),
    [
        ("CA", "America/Los_Angeles"), ("ca", "America/Los_Angeles"), ("AZ", "America/Phoenix"), ("HI", "Pacific/Honolulu"),
        ("TX", "America/Chicago"), ("NY", "America/New_York"),
    ],
)  # fmt: skip
def test_the_time_zone_of_a_state_is_that_of_most_of_its_people(state: str, zone: str) -> None:
    assert zone_of(state) == zone


@pytest.mark.parametrize("state", [None, "", "XX"])
def test_an_unknown_state_has_eastern_time(state: str | None) -> None:
    assert zone_of(state) == "America/New_York"


def test_a_person_s_name_is_first_name_and_last_name() -> None:
    assert Profile("Ana", "Ruiz", "a@b.co", Address("", "", "", "", "")).name == "Ana Ruiz"
