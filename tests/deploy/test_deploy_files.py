"""Each file under deploy/ is accepted by the program that reads it, and names only things that exist.

If a program is not installed, its test is skipped visibly. On Debian: `apt-get install nginx caddy prometheus
systemd`.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from prometheus_client import REGISTRY

from cuota.cli import main
from cuota.config import BadSettings, load
from cuota.config.table import SETTINGS
from cuota.web.api.evidence_body import MOST_EVIDENCE_BYTES
from cuota.web.body import MOST_BYTES
from cuota.web.server import deadlines, metrics
from cuota.web.upload import MOST_UPLOAD_BYTES

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("systemd/*"))
PAGES = [ROOT / "docs" / name for name in ("install.md", "upgrade.md", "production.md")]
_MODULES = (metrics, deadlines)


def program(name: str) -> str:
    """Return the program's path. Skip the test if the program is missing."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed, so it did not check its file under deploy/")
    return found


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def certificate(folder: Path) -> None:
    openssl = program("openssl")
    for_whom = ("-subj", "/CN=pay.example.com", "-days", "1", "-nodes", "-newkey", "rsa:2048")
    run(
        openssl,
        "req",
        "-x509",
        *for_whom,
        "-keyout",
        folder / "privkey.pem",
        "-out",
        folder / "fullchain.pem",
    )


def test_nginx_accepts_the_sample_configuration(tmp_path: Path) -> None:
    nginx = program("nginx")
    certificate(tmp_path)
    text = (DEPLOY / "nginx.conf").read_text().replace("/etc/letsencrypt/live/pay.example.com", str(tmp_path))
    sample = tmp_path / "cuota.conf"
    sample.write_text(text.replace("/var/log/nginx", str(tmp_path)))
    whole = tmp_path / "nginx.conf"
    whole.write_text(
        f"pid {tmp_path}/pid;\nerror_log {tmp_path}/error.log;\nevents {{}}\nhttp {{\n"
        + "".join(
            f"{kind}_temp_path {tmp_path};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + f"include {sample};\n}}\n"
    )
    said = run(nginx, "-t", "-c", whole, "-p", tmp_path)
    assert "test is successful" in said
    assert "[warn]" not in said


def test_caddy_accepts_the_sample_configuration(tmp_path: Path) -> None:
    caddy = program("caddy")
    sample = tmp_path / "Caddyfile"
    shutil.copy(DEPLOY / "Caddyfile", sample)
    assert "Valid configuration" in run(caddy, "validate", "--adapter", "caddyfile", "--config", sample)
    # The sample has Caddy's own format, so `caddy fmt` changes nothing.
    assert run(caddy, "fmt", sample) == sample.read_text()


def test_the_proxies_accept_the_largest_body_that_cuota_accepts() -> None:
    nginx = re.search(r"^ *client_max_body_size (\d+)m;$", (DEPLOY / "nginx.conf").read_text(), re.MULTILINE)
    caddy = re.search(r"^\s*max_size (\d+)MiB$", (DEPLOY / "Caddyfile").read_text(), re.MULTILINE)
    assert nginx
    assert caddy
    largest = max(MOST_BYTES, MOST_EVIDENCE_BYTES, MOST_UPLOAD_BYTES)
    for found in (nginx, caddy):
        limit = int(found[1]) * 2**20
        assert largest < limit <= largest + 2**20, found[0]


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_each_unit(unit: Path, tmp_path: Path) -> None:
    analyze = program("systemd-analyze")
    for each in UNITS:
        # The machine of the tests has no such command.
        (tmp_path / each.name).write_text(each.read_text().replace("/opt/cuota/bin/cuota", "/bin/true"))
    said = run(analyze, "verify", "--man=no", "--recursive-errors=no", tmp_path / unit.name, cwd=tmp_path)
    assert unit.name not in said, said


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
    }
    quiet: list[dict[str, object]] = [
        {"eval_time": "5m", "alertname": name} for name in ("CuotaDown", "CuotaErrors")
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


@pytest.mark.parametrize("path", [*DEPLOY.glob("*"), *UNITS, *PAGES], ids=lambda path: path.name)
def test_every_setting_named_in_a_deploy_file_exists(path: Path) -> None:
    if path.is_dir():
        return
    known = {setting.name for setting in SETTINGS}
    assert set(re.findall(r"\bCUOTA_[A-Z_]*[A-Z]\b", path.read_text())) - known == set()


@pytest.mark.parametrize("path", [*UNITS, DEPLOY / "Containerfile", *PAGES], ids=lambda path: path.name)
def test_every_command_named_in_a_deploy_file_exists(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = set(re.findall(r"(?:/bin/|^ {4}|`|-u cuota )cuota ([a-z-]+)", path.read_text(), re.MULTILINE))
    for command in named:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0, command
        capsys.readouterr()


def test_the_sample_settings_lack_only_the_secrets() -> None:
    lines = (DEPLOY / "cuota.env").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    with pytest.raises(BadSettings) as told:
        load(given)
    named = {line.split(":")[0] for line in str(told.value).splitlines()}
    empty = {name for name, text in given.items() if not text}
    assert named == empty == {"CUOTA_SECRET_KEY", "CUOTA_TEXT_HOOK_SECRET"}
    key = base64.b64encode(bytes(range(32))).decode()
    whole = load({**given, "CUOTA_SECRET_KEY": key, "CUOTA_TEXT_HOOK_SECRET": f"whsec_{key}"})
    assert (whole.environment, whole.metrics_listen) == ("production", ("127.0.0.1", 9090))


def test_the_service_trusts_the_shipped_proxies_as_the_guide_installs_them() -> None:
    setting = "CUOTA_TRUSTED_PROXIES=127.0.0.1"
    assert setting in (DEPLOY / "cuota.env").read_text().splitlines()
    assert "proxy_pass http://cuota;" in (DEPLOY / "nginx.conf").read_text()
    for name in ("nginx.conf", "Caddyfile"):
        assert "127.0.0.1:8000" in (DEPLOY / name).read_text()
    for name in ("install.md", "production.md"):
        assert "CUOTA_TRUSTED_PROXIES" in (ROOT / "docs" / name).read_text()


def test_every_file_that_the_containerfile_copies_exists() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    for sources in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE):
        for source in sources.split():
            assert (ROOT / source).exists(), source
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    has = re.search(r"^FROM python:(3\.\d+)-", text, re.MULTILINE)
    assert has
    assert tuple(map(int, has[1].split("."))) >= tuple(map(int, wanted.removeprefix(">=").split(".")))


def test_the_image_can_be_built_if_a_builder_is_installed() -> None:
    run(program("podman"), "build", "--file", DEPLOY / "Containerfile", "--tag", "cuota-test", ROOT)


def nightly() -> set[str]:
    """Return the commands that the guide runs every night."""
    return set(re.findall(r"Run `cuota ([^`]+)` every night", (ROOT / "docs" / "running.md").read_text()))


@pytest.mark.parametrize("failing", ["verify", "card-refunds", "rails", "nothing"])
def test_the_nightly_unit_runs_every_check_of_the_guide_even_after_one_failed(
    failing: str, tmp_path: Path
) -> None:
    ran, cuota = tmp_path / "ran", tmp_path / "cuota"
    cuota.write_text(f'#!/bin/sh\necho "$*" >>{ran}\n[ "$1" != {failing} ]\n')
    cuota.chmod(0o755)
    unit = (DEPLOY / "systemd" / "cuota-verify.service").read_text().replace("\\\n", " ")
    status = 0
    # systemd runs the commands of a unit until one fails, without a shell.
    for line in re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE):
        if status == 0:
            command = shlex.split(line.replace("$$", "$").replace("/opt/cuota/bin/cuota", str(cuota)))
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
            status = done.returncode
    assert "rails" in nightly()
    assert set(ran.read_text().splitlines()) == nightly()
    assert status == (0 if failing == "nothing" else 1)
    assert ("These checks failed: " + failing in done.stderr) is (failing != "nothing")
