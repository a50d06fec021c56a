"""Compresses texts that are much alike and stored in large numbers: the messages to consumers, as they were sent.

A message of 360 bytes takes about 100. The common words below are the dictionary of the compression (zlib's zdict).
"""

from __future__ import annotations

import zlib

# No text in UTF-8 begins with 0xFF. The second byte is the number of the dictionary with which a text was compressed.
_PACKED = b"\xff"
_FIRST = 1
_WITHOUT_HEADER = -zlib.MAX_WBITS
_LEVEL = 9
# Stored texts need exactly these bytes. Never change them: add other words under a new number, and compress with those.
# The most frequent words come last, because that costs the fewest bits.
_WORDS = {
    _FIRST: b"""\
Notice: The federal Equal Credit Opportunity Act prohibits creditors from discriminating against credit applicants on the basis \
of race, color, religion, national origin, sex, marital status, or age (provided the applicant has the capacity to enter into a \
binding contract); because all or part of the applicant's income derives from any public assistance program; or because the \
applicant has in good faith exercised any right under the Consumer Credit Protection Act. The federal agency that administers \
compliance with this law concerning this creditor is: Federal Trade Commission, Equal Credit Opportunity, Washington, DC 20580. \
You may write to us within 60 days of this letter: we explain our decision and these reasons to you, free of charge. If you \
believe that something we know of you is wrong, say so, and we look at it again. Our address: We used no consumer report from a \
credit bureau and no credit score of one. The principal reasons were, the weightiest first: The principal reason was: \
A smaller order, or paying open installments early, could help. in a short time. Waiting a day or more could help.\\n\\n\
Thank you for choosing . On  you asked us to pay for your order of  in installments. We could not approve it. Nothing was charged.\
About your order at Dear customer You get the reasons in writing. You can choose another way to pay in the shop. \
You can complete your order  now. Nothing was charged so far: confirm it and pay until : you can complete it now\
Thank you: we told  that you sent your order  back. Your next payment waits until , or until the refund. \
 has appealed our decision about your . We look at it once more and tell you; nothing is charged meanwhile. \
You can add to your dispute: Your dispute with  is closed. We decided for you:  is to be refunded. We decided for  in your dispute \
about your . You can appeal once, until  can appeal until ; after that you get your money. See it: We have your dispute of \
. Until it is decided we charge you nothing for this order.  has until  to answer. \
We changed your plan for your , as agreed with you.  Your plan at  has changed From now on  pays for your order \
Was that not you? See your plan: Your plan has another card cannot pay . We do not try it again. Give us another card: \
 wants you to confirm . Nothing was charged. Pay it here, and confirm it with your bank: Confirm your payment of \
The bank of  declined . We try again on  Change the card or pay now: Your payment of  did not go through needs another card\
 did not ship in time, so  of your order  is canceled.  Your plan has changed: your last payments are smaller or gone.\
 canceled  of your order  refunded  of your order . We are sending back  Your bank may take a few days to show it.\
This is the plan that we agreed on with you on  Your plan is paid off: nothing is left to pay. Thank you. Your receipts: \
 January  February  March  April  May  June  July  August  September  October  November  December , 2026, 2027, 2028\
American Express ending Discover ending Mastercard ending {"subject": "Your plan is paid off", "text": "\
 is due on ", "text": "On  we charge $ to Visa ending : payment 3 of 4 for your order  at . Pay early or change the card: https://\
{"subject": "We received $", "text": "We charged $25.00 to Visa ending 4242: payment 2 of 4 for your order  at . Still to pay, by \
Visa ending : $25.00 on ; $25.00 on . Your plan and receipts: https:///account", "phone": null", "phone": "+1", "email": null, \
"email": "@gmail.com", "attached": true", "attached": false, "name": ""}""",
}


def pack(text: str) -> bytes:
    """Return the text compressed, or in UTF-8 if that is shorter."""
    plain = text.encode()
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WITHOUT_HEADER, zdict=_WORDS[_FIRST])
    packed = _PACKED + bytes([_FIRST]) + deflate.compress(plain) + deflate.flush()
    return packed if len(packed) < len(plain) else plain


def unpack(stored: bytes) -> str:
    """Return the text of `pack`, or of bytes in UTF-8."""
    if not stored.startswith(_PACKED):
        return stored.decode()
    inflate = zlib.decompressobj(_WITHOUT_HEADER, zdict=_WORDS[stored[1]])
    return (inflate.decompress(stored[2:]) + inflate.flush()).decode()
