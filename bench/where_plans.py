"""Adds up what auto_explain logged about the statements of one load: the time of each step over all its calls."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import debian

_ON = {
    "log_min_duration": "0",
    "log_analyze": "on",
    "log_timing": "on",
    "log_triggers": "on",
    "log_format": "json",
    "sample_rate": "0.2",
}
Plans = list[dict[str, Any]]


@contextlib.contextmanager
def explaining(where: dict[str, Any], folder: Path) -> Iterator[Callable[[], Plans]]:
    """Inside the block, a fifth of all statements are explained as they run. Afterwards the plans can be read."""
    log = folder / "debian" / "log" / "server.json"
    before = log.stat().st_size

    def plans() -> Plans:
        with log.open() as file:
            file.seek(before)
            said = [json.loads(line).get("message", "") for line in file]
        found = [json.loads(text.partition("plan:\n")[2]) for text in said if "plan:\n" in text]
        # A session may have begun the statement before it read these settings. Its plan has no times.
        return [each for each in found if "Actual Total Time" in each["Plan"]]

    _set(where, _ON)
    try:
        yield plans
    finally:
        _set(where, {"log_min_duration": "-1"})


def _set(where: dict[str, Any], settings: dict[str, str]) -> None:
    for name, value in settings.items():
        asyncio.run(debian.ask(where, f"ALTER SYSTEM SET auto_explain.{name} = '{value}'"))
    asyncio.run(debian.ask(where, "SELECT pg_reload_conf()"))


def table(plans: Plans) -> str:
    """Return the two statements that took the most time in all, and their slowest steps."""
    by_query: dict[str, Plans] = defaultdict(list)
    for plan in plans:
        by_query[" ".join(plan["Query Text"].split())].append(plan)
    dearest = sorted(by_query, key=lambda query: -sum(_whole(plan) for plan in by_query[query]))[:2]
    parts = []
    for query in dearest:
        steps: defaultdict[str, float] = defaultdict(float)
        for plan in by_query[query]:
            _add(plan["Plan"], steps)
            for trigger in plan.get("Triggers", []):
                steps[f"check of {trigger.get('Constraint Name', trigger['Trigger Name'])}"] += trigger[
                    "Time"
                ]
        total = sum(steps.values())
        longest = sorted(steps.items(), key=lambda item: -item[1])[:10]
        lines = [f"| {step} | {spent / total:.0%} |" for step, spent in longest]
        parts.append(
            f"auto_explain, {len(by_query[query])} calls of `{query[:70].replace('|', ' ')}`:\n\n"
            "| step | share |\n|---|--:|\n" + "\n".join(lines) + "\n"
        )
    return "\n".join(parts)


def _whole(plan: dict[str, Any]) -> float:
    return float(plan["Plan"]["Actual Total Time"]) + float(sum(t["Time"] for t in plan.get("Triggers", [])))


def _add(node: dict[str, Any], steps: defaultdict[str, float]) -> float:
    """Add a step's own time, without the time of the steps below it. Return its time including them."""
    whole = float(node.get("Actual Total Time", 0.0)) * float(node.get("Actual Loops", 1))
    under = sum(_add(child, steps) for child in node.get("Plans", []))
    what = node.get("Operation") or node["Node Type"]
    on = node.get("Relation Name") or node.get("CTE Name") or node.get("Alias") or ""
    steps[f"{what.lower()} {on}".strip()] += max(whole - under, 0.0)
    return whole
