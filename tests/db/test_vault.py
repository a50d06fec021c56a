"""How secrets are encrypted and hashed before they are stored."""

from __future__ import annotations

import hmac
import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cuota.db.vault import Vault, WrongKey

KEY = bytes(range(32))


@pytest.fixture
def vault() -> Vault:
    return Vault(KEY)


def test_another_process_with_the_same_key_can_decrypt_a_secret(vault: Vault) -> None:
    assert Vault(KEY).decrypt(vault.encrypt("signing_é", "merchant:1"), "merchant:1") == "signing_é"


def test_a_packed_text_is_shorter_and_stays_so_when_it_is_encrypted_with_another_key(vault: Vault) -> None:
    text = "We charged $25.00 to Visa ending 4242: payment 2 of 4 for your order."
    stored = vault.encrypt(text, "message:1", packed=True)
    newer = Vault(os.urandom(32), [KEY])
    again = newer.rewrap(stored, "message:1")
    assert len(again) == len(stored) < len(vault.encrypt(text, "message:1"))
    assert newer.is_current(again, "message:1")
    assert (newer.decrypt(again, "message:1"), vault.decrypt(stored, "message:1")) == (text, text)


def test_the_stored_bytes_do_not_contain_the_plain_text(vault: Vault) -> None:
    assert b"signing_secret" not in vault.encrypt("signing_secret", "merchant:1")


def test_the_same_text_is_encrypted_differently_each_time(vault: Vault) -> None:
    assert vault.encrypt("text", "merchant:1") != vault.encrypt("text", "merchant:1")


def test_another_key_cannot_decrypt_a_secret_and_the_error_names_the_setting(vault: Vault) -> None:
    with pytest.raises(WrongKey, match="CUOTA_SECRET_KEY"):
        Vault(os.urandom(32)).decrypt(vault.encrypt("text", "merchant:1"), "merchant:1")


def test_a_secret_copied_to_another_merchant_s_row_cannot_be_decrypted(vault: Vault) -> None:
    with pytest.raises(WrongKey):
        vault.decrypt(vault.encrypt("text", "merchant:1"), "merchant:2")


def test_every_changed_bit_is_detected(vault: Vault) -> None:
    stored = vault.encrypt("text", "merchant:1")
    for place in range(len(stored)):
        spoiled = bytearray(stored)
        spoiled[place] ^= 1
        with pytest.raises(WrongKey):
            vault.decrypt(bytes(spoiled), "merchant:1")


@pytest.mark.parametrize("length", [0, 1, 12, 13, 27])
def test_a_truncated_secret_is_detected(vault: Vault, length: int) -> None:
    with pytest.raises(WrongKey):
        vault.decrypt(vault.encrypt("text", "merchant:1")[:length], "merchant:1")


def test_the_hash_of_a_text_differs_for_each_use_and_each_key(vault: Vault) -> None:
    assert vault.hash("client-secret", "x") == Vault(KEY).hash("client-secret", "x")
    hashes = {
        vault.hash("client-secret", "x"),
        vault.hash("code", "x"),
        Vault(bytes(32)).hash("client-secret", "x"),
    }
    assert len(hashes) == 3


def test_a_consumer_s_id_is_computed_from_the_number_and_the_key(vault: Vault) -> None:
    found = vault.consumer_id("2125550142")
    assert found == Vault(KEY).consumer_id("2125550142")
    assert found != vault.consumer_id("2125550143")
    assert found != Vault(os.urandom(32)).consumer_id("2125550142")
    assert (found.version, found.variant) == (8, "specified in RFC 4122")


OLD = bytes(range(100, 132))


def test_a_secret_encrypted_with_an_old_key_is_decrypted_and_marked_as_old(vault: Vault) -> None:
    stored = Vault(OLD).encrypt("text", "merchant:1")
    both = Vault(KEY, [OLD])
    assert both.decrypt(stored, "merchant:1") == "text"
    assert not both.is_current(stored, "merchant:1")
    assert both.is_current(both.encrypt("text", "merchant:1"), "merchant:1")
    with pytest.raises(WrongKey):
        vault.decrypt(stored, "merchant:1")


def test_an_encrypted_secret_names_its_key(vault: Vault) -> None:
    both = Vault(KEY, [OLD])
    assert both.encrypt("text", "merchant:1")[:3].hex() == vault.key_id != Vault(OLD).key_id


def test_a_secret_that_an_earlier_release_encrypted_names_no_key_and_is_decrypted(vault: Vault) -> None:
    nonce = os.urandom(12)
    cipher = AESGCM(hmac.digest(OLD, b"cuota:encryption", "sha256"))
    stored = nonce + cipher.encrypt(nonce, b"text", b"merchant:1")
    assert Vault(KEY, [OLD]).decrypt(stored, "merchant:1") == "text"
    assert Vault(OLD).is_current(stored, "merchant:1")


def test_an_earlier_release_can_decrypt_a_new_secret(vault: Vault) -> None:
    stored = vault.encrypt("text", "merchant:1")
    cipher = AESGCM(hmac.digest(KEY, b"cuota:encryption", "sha256"))
    assert cipher.decrypt(stored[:12], stored[12:], b"merchant:1") == b"text"


def test_ids_and_hashes_depend_on_the_hash_key_and_not_on_the_secret_key() -> None:
    before, after = Vault(OLD, hash_key=OLD), Vault(KEY, [OLD], hash_key=OLD)
    assert before.consumer_id("2125550142") == after.consumer_id("2125550142")
    assert before.hash("client-secret", "x") == after.hash("client-secret", "x")
    # Releases without a hash key compute the same hash.
    assert Vault(OLD).hash("client-secret", "x") == after.hash("client-secret", "x")


def test_a_one_time_code_is_hashed_with_the_current_key_and_codes_of_an_old_key_are_accepted() -> None:
    sent, now = Vault(OLD, hash_key=OLD), Vault(KEY, [OLD], hash_key=OLD)
    assert sent.code_hashes("2125550142:123456")[0] in now.code_hashes("2125550142:123456")
    assert sent.code_hashes("2125550142:123456")[0] not in Vault(KEY, hash_key=OLD).code_hashes(
        "2125550142:123456"
    )
