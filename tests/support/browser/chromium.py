"""Starts the system's Chromium for the tests: one for each test process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright, expect

from support.needed import needed

# Third-party cookies are blocked, as in a growing number of browsers.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --test-third-party-cookie-phaseout"
)
# Each window would load two pages for the menu of its address bar, which take more time than most pages of the tests.
ADDRESS_BAR = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup")
# Chromium obeys only the last --disable-features, so this list repeats what Playwright disables.
DISABLED = (
    *ADDRESS_BAR, "AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled",
    "PreconnectToSearch", "SpareRendererForSitePerProcess",
)  # fmt: skip
# This timeout only ends a test that hangs. It is not a limit on the service's speed.
PATIENCE_MS = 60_000


@asynccontextmanager
async def opened_chromium(*without: str) -> AsyncIterator[Browser]:
    """Start Chromium, and stop it at the end. If Chromium is missing, the test is skipped.

    `without` are further flags of Playwright that do not apply.
    """
    path = needed("chromium")
    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        # Playwright allows every popup; a real browser does not.
        browser = await playwright.chromium.launch(
            executable_path=path,
            args=[*FLAGS.split(), f"--disable-features={','.join(DISABLED)}"],
            ignore_default_args=["--disable-popup-blocking", *without],
        )
        yield browser
        await browser.close()
