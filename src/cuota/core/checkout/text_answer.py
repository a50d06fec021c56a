"""Reads a consumer's answer to a text message (STOP, START or HELP), and writes the reply."""

from __future__ import annotations

from enum import StrEnum


class TextAnswer(StrEnum):
    """The meaning of an answer. OTHER has no effect."""

    STOP = "stop"
    START = "start"
    HELP = "help"
    OTHER = "other"


_WORDS = {
    **dict.fromkeys(
        ("stop", "stopall", "unsubscribe", "cancel", "end", "quit", "revoke", "optout"), TextAnswer.STOP
    ),
    **dict.fromkeys(("start", "unstop", "yes"), TextAnswer.START),
    **dict.fromkeys(("help", "info"), TextAnswer.HELP),
}


def read_answer(text: str) -> TextAnswer:
    """Read an answer in any spelling, such as `Stop.`, `STOP ALL` or `"help"`."""
    letters = "".join(char for char in text.casefold() if char.isalpha())
    return _WORDS.get(letters, TextAnswer.OTHER)


def reply(
    answer: TextAnswer, brand: str, creditor: str, page: str, help_page: str | None = None
) -> str | None:
    """Return the reply, or None if the answer needs no reply. `page` is the address of the account page."""
    if answer is TextAnswer.STOP:
        return (
            f"{brand}: you get no more texts from us. Payments go on as agreed, and notices come by e-mail. "
            f"Your plans: {page}. Reply START to get texts again."
        )
    if answer is TextAnswer.START:
        return f"{brand}: you get texts about your payments again. Reply STOP to end them, HELP for help."
    if answer is TextAnswer.HELP:
        return (
            f"{brand}: texts about your payment plans. Your plans: {page}. Help: {help_page or page}. The lender: {creditor}. "
            "Message and data rates may apply. Reply STOP to end texts."
        )
    return None
