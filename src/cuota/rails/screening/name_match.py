"""Computes the similarity of two names, from 0 to 100. The sandbox's list uses it, and other rails with a list may use it.

Accents, punctuation, the order of the words, titles and forms of companies do not matter. Other scripts are first converted to
Latin letters. Different spellings of the same sound (Yuri and Iouri, Mohammed and Muhammad) have a high similarity. An Arabic
or Hebrew text has no vowels, so a list should contain such names in Latin letters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from anyascii import anyascii
from rapidfuzz import fuzz
from rapidfuzz.utils import default_process

THRESHOLD = 85
"""A name with at least this score is a possible match, which a person must review. docs/operator.md gives examples."""

_APOSTROPHES = re.compile(
    "['`\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}]"
)
_IDEOGRAPH = re.compile("([\u3400-\u9fff\uf900-\ufaff])")
# Words that do not identify a person or a company. They are ignored if other words are left.
_TITLES = "mr mrs ms dr prof sir jr sr ii iii iv al el bin ibn de da di von van der"
_FORMS = (
    "the and of llc lc inc incorporated ltd limited corp corporation co company plc llp lp gmbh ag kg sa sarl srl spa bv nv ab as oy"
    " ooo oao zao pao jsc pjsc group holding holdings international intl trading trade import export services enterprises global"
)
_IGNORED = {False: frozenset(_TITLES.split()), True: frozenset(_FORMS.split())}
# Pairs of spellings with the same sound, replaced in this order. A fold is applied to both names, so it can only make them more similar.
_FOLDS = (
    ("shch", "sh"), ("sch", "sh"), ("tch", "ch"), ("kh", "h"), ("gh", "g"), ("ph", "f"), ("th", "t"), ("dh", "d"), ("ck", "k"),
    ("ks", "x"), ("cz", "ch"), ("ts", "z"), ("tz", "z"), ("dj", "j"), ("zh", "j"), ("ou", "u"), ("oo", "u"), ("ee", "i"),
    ("q", "k"), ("c", "k"), ("w", "v"), ("y", "i"), ("j", "i"), ("o", "u"), ("e", "i"),
)  # fmt: skip
_DOUBLE = re.compile(r"(.)\1+")
# A matching initial counts less than a whole word. A word whose best match is below _FITS counts as 0.
_INITIAL, _FITS, _SOUNDS = 90.0, 60.0, 80.0
_EXTRA_PERSON, _EXTRA_COMPANY = 3, 8
# A name with more words is compared only word by word, so that a hostile name takes little time.
_MOST_JOINED = 6


def likeness(one: str, other: str, *, company: bool) -> int:
    """Return the similarity of two names, from 0 to 100."""
    first, second = words_of(one, company=company), words_of(other, company=company)
    if not first or not second:
        return 0
    extra = _EXTRA_COMPANY if company else _EXTRA_PERSON
    # If each name were compared as one word, names that share only the family name would look too similar.
    fewest = min(len(first), len(second), 2)
    pairs = ((a, b) for a in _joined(first) for b in _joined(second) if min(len(a), len(b)) >= fewest)
    return max(_aligned(a, b, extra) for a, b in pairs)


@lru_cache(maxsize=4096)
def words_of(name: str, *, company: bool) -> tuple[str, ...]:
    """Return the relevant words of a name, in lower-case ASCII."""
    spaced = _IDEOGRAPH.sub(r" \1", unicodedata.normalize("NFKC", name))
    plain = _APOSTROPHES.sub("", anyascii(_APOSTROPHES.sub("", spaced)))
    words = default_process(plain).split()
    kept = [word for word in words if word not in _IGNORED[company]]
    return tuple(kept or words)


def _folded(word: str) -> str:
    for before, after in _FOLDS:
        word = word.replace(before, after)
    return _DOUBLE.sub(r"\1", word)


def _alike(one: str, other: str) -> float:
    """Return the similarity of two words, in spelling or in sound."""
    if len(one) == 1 or len(other) == 1:
        return _INITIAL if one[0] == other[0] and one != other else 100.0 * (one == other)
    spoken = fuzz.ratio(_folded(_bare(one)), _folded(_bare(other)))
    # Short words with a slightly similar sound are different names, such as Igor and Yuri.
    return max(fuzz.ratio(one, other), spoken if spoken >= _SOUNDS else 0.0)


def _bare(word: str) -> str:
    """Return a word without an Arabic article at its beginning: Alhakim becomes Hakim."""
    return word[2:] if word.startswith(("al", "el")) and len(word) >= 6 else word


def _joined(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the words, and again with each pair of neighbors as one word: Xiao Ming and Xiaoming."""
    pairs = range(len(words) - 1) if len(words) <= _MOST_JOINED else ()
    return [words, *((*words[:at], words[at] + words[at + 1], *words[at + 2 :]) for at in pairs)]


def _aligned(one: tuple[str, ...], other: tuple[str, ...], extra: int) -> int:
    """Compare each word of the shorter name with the best word of the longer name, which may have middle names.

    `extra` is subtracted for each word that is left over. A single word matches only a name of one word.
    """
    few, many = sorted((one, other), key=len)
    if len(few) == 1 and len(many) > 1:
        return 0
    open_words, left, total, letters = list(few), list(many), 0.0, 0
    for score, a, b in sorted(((_alike(a, b), a, b) for a in few for b in many), reverse=True):
        if a in open_words and b in left:
            open_words.remove(a)
            left.remove(b)
            total += (score if score >= _FITS else 0.0) * (len(a) + len(b))
            letters += len(a) + len(b)
    return max(0, round(total / letters) - extra * len(left))
