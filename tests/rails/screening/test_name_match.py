"""Which names are possible matches of a listed name, and which are not."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from cuota.core.sandbox import SANCTIONED
from cuota.rails.screening.name_match import THRESHOLD, likeness

ROOT = Path(__file__).parents[3]
# Pairs of a typed name and a listed name: the same person in another spelling, order or script, or with a middle name.
SAME_PERSON = [
    ("Viktor Morozov", "Viktor Morozov"), ("MOROZOV, Viktor", "Viktor Morozov"), ("Víktor Moroźov", "Viktor Morozov"),
    ("Victor Morozov", "Viktor Morozov"), ("Viktor Morosov", "Viktor Morozov"), ("Viktor Aleksandrovich Morozov", "Viktor Morozov"),
    ("Dr. Viktor Morozov Jr.", "Viktor Morozov"), ("V. Morozov", "Viktor Morozov"), ("Виктор Морозов", "Viktor Morozov"),
    ("Yury Volkov", "Yuri Volkov"), ("Iouri Wolkow", "Yuri Volkov"), ("Юрий Волков", "Yuri Volkov"), ("Yuri Volkoff", "Yuri Volkov"),
    ("Mohammed Alhakim", "Muhammad al-Hakim"), ("Mohamed El Hakeem", "Muhammad al-Hakim"), ("Мухаммад аль-Хаким", "Muhammad al-Hakim"),
    ("Khalid Mansur", "Khaled Mansour"), ("Alexander Petrenko", "Aleksandr Petrenko"), ("Dmitri Scherbakov", "Dmitry Shcherbakov"),
    ("王小明", "Wang Xiaoming"), ("Xiao Ming Wang", "Wang Xiaoming"), ("Γιώργος Παπαδόπουλος", "Giorgos Papadopoulos"),
    ("Łukasz Zieliński", "Lukasz Zielinski"), ("Sean OBrien", "Seán O\N{RIGHT SINGLE QUOTATION MARK}Brien"),
    ("Dubois Jean-Pierre", "Jean Pierre Dubois"),
]  # fmt: skip
OTHER_PEOPLE = [
    ("Jordan Rivera", "Viktor Morozov"), ("Victoria Moore", "Viktor Morozov"), ("Viktor Hugo", "Viktor Morozov"),
    ("Igor Volkov", "Yuri Volkov"), ("Maria Volkova", "Yuri Volkov"), ("Volkov", "Yuri Volkov"), ("Li Wei", "Wang Xiaoming"),
    ("Wei Wang", "Wang Xiaoming"), ("Muhammad Ali", "Muhammad al-Hakim"), ("Khaled Hosseini", "Khaled Mansour"),
    ("Alexander Hamilton", "Aleksandr Petrenko"), ("George Papas", "Giorgos Papadopoulos"), ("John Smith", "Jan Smit"),
    ("Dr. Jr.", "Viktor Morozov"), ("", "Viktor Morozov"), ("?!", "Viktor Morozov"),
]  # fmt: skip
SAME_COMPANY = [
    ("OBSIDIAN REEF TRADING", "Obsidian Reef Trading LLC"), ("Reef Obsidian Holdings Ltd.", "Obsidian Reef Trading LLC"),
    ("Obsidian-Reef, Inc.", "Obsidian Reef Trading LLC"), ("Obsidian Reef Shipping", "Obsidian Reef Trading LLC"),
    ("Zarovia", "Zarovia Export Company"), ("The Zarovia Trading Group", "Zarovia Export Company"),
    ("Северный Поток", "OOO Severny Potok"),
]  # fmt: skip
OTHER_COMPANIES = [
    ("Northwind Outfitters LLC", "Obsidian Reef Trading LLC"), ("Obsidian Coffee", "Obsidian Reef Trading LLC"),
    ("Coral Reef Books", "Obsidian Reef Trading LLC"), ("Zarafina Trading", "Zarovia Export Company"),
    ("The Trading Company", "Zarovia Export Company"), ("Global Trade Group", "International Trading Co"),
    ("Reef", "Obsidian Reef Trading LLC"), ("Blue Harbor Fish Market of Maine", "Blue Harbor LLC"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "listed"), SAME_PERSON)
def test_a_name_in_another_spelling_order_or_script_is_a_possible_match(typed: str, listed: str) -> None:
    assert likeness(typed, listed, company=False) >= THRESHOLD


@pytest.mark.parametrize(("typed", "listed"), OTHER_PEOPLE)
def test_a_different_name_is_not_a_match(typed: str, listed: str) -> None:
    assert likeness(typed, listed, company=False) < THRESHOLD


@pytest.mark.parametrize(("typed", "listed"), SAME_COMPANY)
def test_the_form_of_a_company_and_the_order_of_its_words_do_not_matter(typed: str, listed: str) -> None:
    assert likeness(typed, listed, company=True) >= THRESHOLD


@pytest.mark.parametrize(("typed", "listed"), OTHER_COMPANIES)
def test_common_words_of_companies_make_no_match(typed: str, listed: str) -> None:
    assert likeness(typed, listed, company=True) < THRESHOLD


@pytest.mark.parametrize(("typed", "listed"), [*SAME_PERSON, *OTHER_PEOPLE])
def test_the_similarity_does_not_depend_on_which_name_comes_first(typed: str, listed: str) -> None:
    assert likeness(typed, listed, company=False) == likeness(listed, typed, company=False)


@pytest.mark.parametrize(
    "hostile", ["a " * 60, "x" * 120, "ab " * 40, "王" * 120, "\N{COMBINING ACUTE ACCENT}" * 120]
)
def test_a_hostile_name_takes_little_processor_time(hostile: str) -> None:
    began = time.process_time()
    likeness(hostile, "Viktor Aleksandrovich Morozov", company=False)
    assert time.process_time() - began < 1


def test_the_guide_names_the_threshold_and_its_examples_are_correct() -> None:
    guide = (ROOT / "docs" / "operator.md").read_text()
    assert f"From **{THRESHOLD}** on" in guide
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (match|no match) \|$", guide, re.MULTILINE)
    assert len(rows) >= 7
    for typed, listed, said in rows:
        company = any(listed in entry.names for entry in SANCTIONED if entry.company)
        assert (likeness(typed, listed, company=company) >= THRESHOLD) is (said == "match"), typed


def test_the_guide_lists_the_sandboxs_entries() -> None:
    guide = (ROOT / "docs" / "operator.md").read_text()
    for entry in SANCTIONED:
        assert f"| {entry.entry} | {', '.join(entry.names)} |" in guide
