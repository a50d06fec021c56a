"""A merchant, and a screening rail that finds the matches that a test sets."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.flows.context import Context
from support.onboarding import TestRail, with_screening
from support.own_service import Own


@pytest.fixture
def rail() -> TestRail:
    return TestRail()


@pytest.fixture
def context(own: Own, rail: TestRail) -> Context:
    return with_screening(own.context, rail)


@pytest.fixture
def merchant_id(own: Own) -> UUID:
    return own.merchant.merchant_id
