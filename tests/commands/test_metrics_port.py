"""CUOTA_METRICS_LISTEN gives metrics and health their own port."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from cuota.config.reading import listen
from support.commands import Cuota
from support.serving import serving


def test_metrics_are_on_their_own_port_and_not_on_the_public_port(cuota: Cuota) -> None:
    with (
        serving(cuota, "--workers", "2", CUOTA_METRICS_LISTEN="127.0.0.1:0") as (line, _),
        httpx.Client(trust_env=False, timeout=60) as http,
    ):
        assert http.get(f"{line['listen']}/configuration").status_code == 401
        assert http.get(f"{line['listen']}/metrics").status_code == 404
        assert http.get(f"{line['listen']}/health/ready").json() == {"status": "ok"}
        there = line["metrics"].removesuffix("/metrics")
        assert there != line["listen"]
        assert 'cuota_requests_total{method="GET",route="/configuration",status="401"} 1.0' in (
            http.get(line["metrics"]).text
        )
        assert http.get(f"{there}/health/live").json() == {"status": "ok"}
        assert http.get(f"{there}/health/ready").json() == {"status": "ok"}
        assert http.get(f"{there}/configuration").status_code == 404
        assert http.get(f"{there}/openapi.json").status_code == 404


def test_the_series_whose_absence_raises_an_alert_exists_before_the_first_request(cuota: Cuota) -> None:
    rules = (Path(__file__).parents[2] / "deploy" / "prometheus-rules.yml").read_text()
    (series,) = re.findall(r"absent\((\w+)\{", rules)
    with (
        serving(cuota, CUOTA_METRICS_LISTEN="127.0.0.1:0") as (line, _),
        httpx.Client(trust_env=False, timeout=60) as http,
    ):
        assert f"\n{series}{{" in http.get(line["metrics"]).text


def test_a_port_that_is_taken_stops_the_start_and_names_the_setting(cuota: Cuota) -> None:
    with serving(cuota, CUOTA_METRICS_LISTEN="127.0.0.1:0") as (line, _):
        taken = line["metrics"].removeprefix("http://").removesuffix("/metrics")
        done = cuota("serve", "--port", "0", CUOTA_METRICS_LISTEN=taken)
    assert done.returncode == 1
    assert "Choose another CUOTA_METRICS_LISTEN" in done.stderr


@pytest.mark.parametrize(
    "text", ["9464", ":9464", "127.0.0.1", "127.0.0.1:port", "127.0.0.1:70000", "http://127.0.0.1:9"]
)
def test_a_text_that_is_no_address_and_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be an address and port"):
        listen(text)


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert listen("[::1]:9464") == ("::1", 9464)
