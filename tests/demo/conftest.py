"""A shop with its own folder, and without pauses between retries."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuota_demo.settings import ShopSettings
from support.demo.shop_network import ENVIRONMENT


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuota_demo.payments.PAUSES", (0, 0))


@pytest.fixture
def settings(tmp_path: Path) -> ShopSettings:
    return ShopSettings.from_environment({**ENVIRONMENT, "SHOP_DATA": str(tmp_path)})
