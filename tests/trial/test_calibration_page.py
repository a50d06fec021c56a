"""trial/page: a trial's report as one HTML file that loads nothing else."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from cuota.core.risk.model import Model, Weight
from cuota.trial.page import calibration_html
from cuota.trial.rates import Rate
from cuota.trial.trial import Bin, TrialOrder, TrialReport, report, verdict

EMPTY_ELEMENTS = {"meta", "line", "circle"}


def some_report() -> TrialReport:
    chance = random.Random(1)
    orders = []
    for number in range(1_200):
        trust, score = chance.gauss(0, 1), round(chance.gauss(530, 40))
        lost = score >= 500 and chance.random() < 0.08 * 2.0 ** (-trust)
        orders.append(
            TrialOrder(
                group=str(number), score=score, threshold=500, refused=False, approved=score >= 500, amount=10_000,
                fields={"same_device": trust > 0}, matured=True, lost=lost, lost_amount=7_500 * lost,
                points=round(40 * trust),
            )
        )  # fmt: skip
    return report(orders, bound=60, resamples=20)


@pytest.fixture(scope="module")
def found() -> TrialReport:
    return some_report()


class Page(HTMLParser):
    """Reads a page, and checks that every element is closed in the right place."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY_ELEMENTS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str, kind: str | None = None) -> list[dict[str, str | None]]:
        return [
            attrs
            for name, attrs in self.elements
            if name == tag and (kind is None or attrs.get("class") == kind)
        ]


def test_the_page_is_complete_and_loads_nothing(found: TrialReport) -> None:
    text = calibration_html(found)
    page = Page(text)
    assert page.open == []
    assert not {tag for tag, _ in page.elements} & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"://|@import|url\(|\bsrc=|\bhref=|\bon\w+=", text)
    assert len(text) < 40_000


def test_the_plot_has_a_dot_and_a_line_for_each_group_inside_its_frame(found: TrialReport) -> None:
    page = Page(calibration_html(found))
    (plot,) = page.all("svg")
    width, height = map(float, (plot["viewbox"] or "").split()[2:])
    dots, whiskers = page.all("circle", "dot"), page.all("line", "whisker")
    assert len(dots) == len(whiskers) == len(found.calibration) > 5
    for dot, whisker in zip(dots, whiskers, strict=True):
        x, y = float(dot["cx"] or ""), float(dot["cy"] or "")
        assert 0 < x < width
        assert 0 <= float(whisker["y2"] or "") <= y <= float(whisker["y1"] or "") < height


def test_a_dot_is_at_the_position_of_its_numbers(found: TrialReport) -> None:
    one = Bin(orders=100, losses=10, predicted=0.05, observed=Rate(0.1, 0.05, 0.2))
    page = Page(calibration_html(replace(found, calibration=(one,))))
    # Both axes end at 20% and are 320 units long. So 5% is at x = 68 + 320/4, and 10% is at y = 12 + 320/2.
    assert page.all("circle", "dot") == [{"class": "dot", "cx": "148.0", "cy": "172.0", "r": "4"}]
    assert page.all("line", "whisker")[0]["y2"] == "12.0"


def test_the_verdict_and_the_numbers_are_in_words(found: TrialReport) -> None:
    words = " ".join(Page(calibration_html(found)).words)
    assert verdict(found).reasons[0] in words
    assert ("Advanced Approvals may be turned on." in words) == verdict(found).ready
    assert f"{found.decided:,} orders decided" in words
    assert f"{100 * found.loss_without.value:.1f}%" in words
    assert "same_device" in words


def test_the_page_states_the_result_the_losses_and_the_meaning_of_its_axes(found: TrialReport) -> None:
    words = " ".join(Page(calibration_html(found, standing="Mode: trial. As of <now>.")).words)
    assert "Mode: trial. As of <now>." in words
    assert f"${found.lost_amount / 100:,.2f} of ${found.approved_amount / 100:,.2f}" in words
    assert "observed loss" in words
    assert "predicted loss" in words


@pytest.mark.parametrize(
    ("most", "end"),
    [(0.107, "12%"), (0.13, "16%"), (0.21, "24%"), (0.02, "2%"), (0.0091, "1%"), (1.0, "100%")],
)
def test_an_axis_ends_shortly_after_the_data(found: TrialReport, most: float, end: str) -> None:
    one = Bin(orders=100, losses=1, predicted=0.001, observed=Rate(most / 2, 0.0, most))
    assert Page(calibration_html(replace(found, calibration=(one,)))).words.count(end) >= 2


def test_a_given_model_is_printed(found: TrialReport) -> None:
    model = Model("", 60, (Weight("same_device", 34_801, 571),)).named()
    words = " ".join(Page(calibration_html(found, model=model)).words)
    assert model.version in words
    assert "34.8" in words
    assert "The model" not in calibration_html(found)


def test_a_title_cannot_contain_markup(found: TrialReport) -> None:
    text = calibration_html(found, "Ruiz & <b>Sons</b>")
    assert "<b>" not in text
    assert "<h1>Ruiz &amp; &lt;b&gt;Sons&lt;/b&gt;</h1>" in text


def test_a_trial_without_orders_also_has_a_page() -> None:
    words = " ".join(Page(calibration_html(report([], bound=60))).words)
    assert "The outcome of no approved order is known yet." in words
    assert "There are 0 decided orders; 1,000 are needed." in words
