"""The mails about changes that a thief would make."""

from __future__ import annotations

from cuota.core.desk.notice import StaffNoticeKind, notice_text

DASHBOARD = "https://pay.example/desk"


def test_a_mail_about_a_change_says_who_when_and_what_to_do() -> None:
    facts = {
        "who": "Ana Silva <ana@shop.example>", "place": "198.51.100.7", "last4": "6789", "before": "1234",
        "effectiveAt": "2026-11-27T15:00:00+00:00",
    }  # fmt: skip
    mail = notice_text(StaffNoticeKind.BANK_CHANGED, facts, "Alder & Oak", DASHBOARD)
    assert mail.subject == "The bank account of Alder & Oak was changed"
    for words in (
        "Ana Silva <ana@shop.example> (from the IP address 198.51.100.7) changed",
        "The new account ends in 6789",
        "It takes effect on Fri, Nov 27 at 10:00 AM EST",
        "payouts go to the account ending in 1234",
        f"withdraw the change before it takes effect: {DASHBOARD}/payouts/bank",
    ):
        assert words in mail.text, words


def test_a_mail_about_the_first_account_says_that_it_is_used_now() -> None:
    facts = {
        "who": "",
        "place": "",
        "last4": "6789",
        "before": None,
        "effectiveAt": "2026-11-27T15:00:00+00:00",
    }
    mail = notice_text(StaffNoticeKind.BANK_CHANGED, facts, "Alder & Oak", DASHBOARD)
    assert mail.text.startswith("Your payment provider changed the bank account")
    assert "It is used from now on." in mail.text


def test_a_mail_about_a_withdrawal_says_which_account_stays() -> None:
    facts = {"who": "", "place": "", "last4": "6789", "before": "1234"}
    mail = notice_text(StaffNoticeKind.BANK_WITHDRAWN, facts, "Alder & Oak", DASHBOARD)
    assert "The account ending in 6789 is not used. Payouts go on to the account ending in 1234." in mail.text


def test_a_mail_about_another_address_for_notices_names_both() -> None:
    facts = {"who": "Ana", "place": "", "email": "new@shop.example", "before": "old@shop.example"}
    mail = notice_text(StaffNoticeKind.NOTIFY_CHANGED, facts, "Alder & Oak", DASHBOARD)
    assert "from old@shop.example to new@shop.example" in mail.text
