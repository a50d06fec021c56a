"""If a rail's class lacks a method of its protocol, the service does not start, and the error names the method."""

from __future__ import annotations

from typing import Any

import pytest

from cuota.rails.card.protocol import CardRail
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.issuing import IssuingRail, SandboxIssuingRail
from cuota.rails.load import NoSuchRail, lacks, load
from cuota.rails.message import MessageRail, SandboxMessageRail
from cuota.rails.message_live import LiveMessageRail
from cuota.rails.screening.protocol import ScreeningRail
from cuota.rails.screening.sandbox import SandboxScreeningRail
from support.rails.parts import rail_parts


class Half:
    """An operator's unfinished class."""

    def __init__(self, *_: object) -> None:
        pass

    async def charge(self) -> None: ...

    refund = "not a method"


class Older:
    def __init__(self) -> None:
        pass


def made(**more: Any) -> None:
    nothing: Any = None
    load(*rail_parts(nothing, **more))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"card": "tests.rails.test_lacking.Half"}, "CUOTA_CARD_RAIL: tests.rails.test_lacking.Half lacks name, fields, keep, find_charge, give_up, refund, answer_chargeback, read_event, events_since, forget of the CardRail"),
        ({"issuing": "tests.rails.test_lacking.Half"}, "CUOTA_ISSUING_RAIL: tests.rails.test_lacking.Half lacks issue, reveal, hide, limit of the IssuingRail"),
        ({"message": "tests.rails.test_lacking.Half"}, "CUOTA_MESSAGE_RAIL: tests.rails.test_lacking.Half lacks shown_code, new_code, send_code, send of the MessageRail"),
        ({"screening": "tests.rails.test_lacking.Half"}, "CUOTA_SCREENING_RAIL: tests.rails.test_lacking.Half lacks name, screen of the ScreeningRail"),
        ({"card": "tests.rails.test_lacking.Older"}, "CUOTA_CARD_RAIL: tests.rails.test_lacking.Older\\(settings, books, vault, now\\) raised an error: .*argument"),
        ({"card": "tests.rails.test_lacking.__doc__"}, "CUOTA_CARD_RAIL: .*"),
    ],
)  # fmt: skip
def test_the_error_names_the_missing_methods(more: dict[str, Any], words: str) -> None:
    with pytest.raises(NoSuchRail, match=words):
        made(**more)


def test_our_own_rails_lack_nothing() -> None:
    for rail, protocol in (
        (SandboxCardRail, CardRail),
        (SandboxIssuingRail, IssuingRail),
        (SandboxScreeningRail, ScreeningRail),
    ):
        assert lacks(rail, protocol) == []
    # The constructor sets `shown_code`.
    assert set(lacks(SandboxMessageRail, MessageRail)) | set(lacks(LiveMessageRail, MessageRail)) <= {
        "shown_code"
    }
