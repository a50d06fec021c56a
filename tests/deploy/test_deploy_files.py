"""Each file under deploy/ is accepted by the program that reads it, and names only things that exist.

If a program is not installed, its test is skipped visibly. On Debian: `apt-get install nginx caddy prometheus
systemd`.
"""

from __future__ import annotations

import base64
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from cuota.cli import main
from cuota.config import BadSettings, load
from cuota.config.table import SETTINGS
from cuota.web.api.evidence_body import MOST_EVIDENCE_BYTES
from cuota.web.body import MOST_BYTES
from cuota.web.upload import MOST_UPLOAD_BYTES
from support.deploy.programs import program, run

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("systemd/*"))
PAGES = [ROOT / "docs" / name for name in ("install.md", "upgrade.md", "production.md")]


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
    assert (whole.environment, whole.metrics_listen) == ("production", ("127.0.0.1", 9464))


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


@pytest.mark.parametrize("failing", ["verify", "card-refunds", "rails", "payouts", "nothing"])
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
