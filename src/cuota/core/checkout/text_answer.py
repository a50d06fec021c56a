"""What a consumer answers to a text, and what is said back: STOP, START and HELP, as carriers and people know them."""

from __future__ import annotations

from enum import StrEnum


class TextAnswer(StrEnum):
    """What an answer means. Anything else than these words is nothing that a program can act on."""

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
    """One word, however it is written: `Stop.`, `STOP ALL`, `"help"`."""
    letters = "".join(char for char in text.casefold() if char.isalpha())
    return _WORDS.get(letters, TextAnswer.OTHER)


def reply(
    answer: TextAnswer, brand: str, creditor: str, page: str, help_page: str | None = None
) -> str | None:
    """The text that is sent back, or None for a word that asks for nothing. `page` is where the consumer sees their plans."""
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
