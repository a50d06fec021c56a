"""The area codes of North America (+1) in which no US mobile number exists.

Canada, the Caribbean and Bermuda share the country code with the United States. The table lists what is refused, so a new US area code
works at once. A missing code of another country only costs a text. Sources: the North American Numbering Plan Administrator's list of
area codes, and the metadata of libphonenumber 9.0.43. Puerto Rico, the US Virgin Islands, Guam, American Samoa and the Northern Mariana
Islands are in the United States.
"""

from __future__ import annotations

from cuota.core.consumer import is_us_number

_CANADA = """204 226 236 249 250 257 263 273 289 306 343 354 365 367 368 382 403 416 418 428 431 437 438 450 468 474 506 514 519 548
    579 581 584 587 600 604 613 622 639 647 672 683 705 709 742 753 778 780 782 807 819 825 867 873 879 902 905 942"""
_CARIBBEAN_AND_BERMUDA = "242 246 264 268 284 345 441 473 649 658 664 721 758 767 784 809 829 849 868 869 876"
_TOLL_FREE = "800 822 833 844 855 866 877 888"
_PREMIUM = "900"
# Numbers that follow a person or a device and are in no state. 700 belongs to the long-distance companies.
_PERSONAL = "500 521 522 523 524 525 526 527 528 529 532 533 544 566 577 588 700"
NOT_US_MOBILE = frozenset(f"{_CANADA} {_CARIBBEAN_AND_BERMUDA} {_TOLL_FREE} {_PREMIUM} {_PERSONAL}".split())


def is_us_mobile(text: str) -> bool:
    """Return whether the ten digits can be a US mobile number. Whether they are one, only a text can show."""
    return is_us_number(text) and text[:3] not in NOT_US_MOBILE
