"""The files for Prometheus and Grafana under deploy/ are accepted, alert when they should, and name only things that exist.

If promtool is not installed, its tests are skipped visibly. On Debian: `apt-get install prometheus`.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml
from prometheus_client import REGISTRY

from cuota.cli import COMMANDS, make_parser
from cuota.web.server import deadlines, metrics
from support.deploy.programs import program, run

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_MODULES = (metrics, deadlines)


def test_promtool_accepts_the_rules_and_the_configuration() -> None:
    promtool = program("promtool")
    assert "SUCCESS" in run(promtool, "check", "rules", DEPLOY / "prometheus-rules.yml")
    assert "SUCCESS" in run(promtool, "check", "config", DEPLOY / "prometheus.yml")


def test_the_rules_alert_when_they_should_and_not_before(tmp_path: Path) -> None:
    requests = "cuota_requests_total{job='cuota',route='/order',method='POST',status="
    series = {
        "up{job='cuota',instance='a'}": "1x5 0x20",
        f"{requests}'200'}}": "0+100x25",
        f"{requests}'500'}}": "0x5 0+10x20",
        "cuota_reviews_total{job='cuota',state='approved'}": "0x5 _x20",
    }
    quiet: list[dict[str, object]] = [
        {"eval_time": "5m", "alertname": name} for name in ("CuotaDown", "CuotaErrors", "CuotaWithoutMetrics")
    ]
    check_alerts(tmp_path, series, [*quiet, *(fires("20m", *each) for each in _expected())])


@pytest.mark.parametrize("approved", [True, False], ids=["zero", "no series"])
def test_the_alert_about_no_approval_fires_although_no_order_was_approved_since_the_start(
    tmp_path: Path, *, approved: bool
) -> None:
    series = {
        "cuota_decisions_total{outcome='declined',reason='high_amount'}": "0+1x120",
        "cuota_orders_total{status='Declined'}": "0+1x120",
    }
    if approved:
        series["cuota_orders_total{status='Approved'}"] = "0x120"
    notes = _rules()["CuotaNothingApproved"]["annotations"]
    check_alerts(tmp_path, series, [fires("90m", "CuotaNothingApproved", {"severity": "page"}, notes)])


def test_the_alert_about_no_approval_stays_quiet_while_orders_are_approved(tmp_path: Path) -> None:
    series = {
        "cuota_decisions_total{outcome='declined',reason='high_amount'}": "0+1x120",
        "cuota_orders_total{status='Approved'}": "0+1x120",
    }
    check_alerts(tmp_path, series, [{"eval_time": "90m", "alertname": "CuotaNothingApproved"}])


def check_alerts(folder: Path, series: dict[str, str], expected: list[dict[str, object]]) -> None:
    """Let promtool evaluate the rules over these series, with one value a minute."""
    promtool = program("promtool")
    shutil.copy(DEPLOY / "prometheus-rules.yml", folder / "rules.yml")
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [],
                "alert_rule_test": expected,
            }
        ],
    }
    file = folder / "tests.yml"
    file.write_text(yaml.safe_dump(tests))
    assert "SUCCESS" in run(promtool, "test", "rules", file)


def fires(at: str, name: str, labels: dict[str, str], notes: dict[str, str]) -> dict[str, object]:
    return {
        "eval_time": at,
        "alertname": name,
        "exp_alerts": [{"exp_labels": labels, "exp_annotations": notes}],
    }


def _rules() -> dict[str, dict[str, dict[str, str]]]:
    rules = yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text())["groups"][0]["rules"]
    return {rule["alert"]: rule for rule in rules}


def _expected() -> list[tuple[str, dict[str, str], dict[str, str]]]:
    rules = _rules()
    down = {**rules["CuotaDown"]["annotations"], "summary": "Cuota does not answer on a"}
    errors = {**rules["CuotaErrors"]["annotations"], "summary": "9.091% of requests get a 5xx answer"}
    return [
        ("CuotaDown", {"severity": "page", "job": "cuota", "instance": "a"}, down),
        ("CuotaErrors", {"severity": "page"}, errors),
        (
            "CuotaWithoutMetrics",
            {"severity": "page", "job": "cuota"},
            rules["CuotaWithoutMetrics"]["annotations"],
        ),
    ]


def exported() -> set[str]:
    """Return the names under which Prometheus reads Cuota's metrics."""
    assert _MODULES
    found = set()
    for metric in REGISTRY.collect():
        if metric.name.startswith("cuota_"):
            found |= {
                metric.name,
                f"{metric.name}_total",
                f"{metric.name}_bucket",
                f"{metric.name}_count",
                f"{metric.name}_sum",
            }
    return found


@pytest.mark.parametrize("name", ["prometheus-rules.yml", "grafana-dashboard.json"])
def test_the_alert_rules_and_the_dashboard_use_only_metrics_that_exist(name: str) -> None:
    used = set(re.findall(r"\bcuota_[a-z_]+\b", (DEPLOY / name).read_text()))
    assert used
    assert used - exported() == set()


def test_every_command_that_an_alert_tells_people_to_run_parses() -> None:
    named = []
    for rule in yaml.safe_load((DEPLOY / "prometheus-rules.yml").read_text())["groups"][0]["rules"]:
        action = rule["annotations"]["action"]
        commands = re.findall(r"`cuota ([^`]+)`", action)
        # Every command is in backquotes, so that none is overlooked.
        assert re.findall(rf"\bcuota (?:{'|'.join(COMMANDS)})\b", re.sub(r"`[^`]+`", "", action)) == []
        named += commands
        for command in commands:
            make_parser().parse_args(shlex.split(command))
    assert "explain order ID" in named


def test_the_alert_about_card_testing_stops_open_checkouts_too() -> None:
    """A revoked merchant's open checkouts can still be paid, so `docs/production.md` suspends the merchant."""
    rules = (DEPLOY / "prometheus-rules.yml").read_text()
    assert "cuota merchant suspend NAME --reason WHY" in rules
    assert "cuota merchant revoke" not in rules


def test_the_dashboard_shows_every_metric_of_cuota() -> None:
    text = (DEPLOY / "grafana-dashboard.json").read_text()
    names = {metric.name for metric in REGISTRY.collect() if metric.name.startswith("cuota_")}
    assert {name for name in names if name not in text} == set()


def test_grafana_can_import_the_dashboard() -> None:
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    assert board["title"] == "Cuota"
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(numbers)) == len(numbers)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]}
    assert len(places) == len(numbers), "no two panels have the same position"
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in board["panels"])


def test_prometheus_scrapes_the_metrics_port_which_is_not_the_port_of_prometheus_itself() -> None:
    (address,) = re.findall(r"^CUOTA_METRICS_LISTEN=(.+)$", (DEPLOY / "cuota.env").read_text(), re.MULTILINE)
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    assert job["static_configs"] == [{"targets": [address]}]
    assert not address.endswith(":9090")
    assert f"curl http://{address}/health/ready" in (ROOT / "docs" / "install.md").read_text()
