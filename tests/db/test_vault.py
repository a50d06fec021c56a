"""Secrets at rest."""

from __future__ import annotations

import os

import pytest

from cuota.db.vault import Vault, WrongKey

KEY = bytes(range(32))


@pytest.fixture
def vault() -> Vault:
    return Vault(KEY)


def test_what_was_encrypted_is_read_again_by_another_process_with_the_same_key(vault: Vault) -> None:
    assert Vault(KEY).decrypt(vault.encrypt("signing_é", "merchant:1"), "merchant:1") == "signing_é"


def test_the_text_does_not_stand_in_what_is_stored(vault: Vault) -> None:
    assert b"signing_secret" not in vault.encrypt("signing_secret", "merchant:1")


def test_the_same_text_is_never_stored_the_same_way_twice(vault: Vault) -> None:
    assert vault.encrypt("text", "merchant:1") != vault.encrypt("text", "merchant:1")


def test_another_key_cannot_read_it_and_the_setting_is_named(vault: Vault) -> None:
    with pytest.raises(WrongKey, match="CUOTA_SECRET_KEY"):
        Vault(os.urandom(32)).decrypt(vault.encrypt("text", "merchant:1"), "merchant:1")


def test_a_secret_moved_to_another_merchants_row_cannot_be_read(vault: Vault) -> None:
    with pytest.raises(WrongKey):
        vault.decrypt(vault.encrypt("text", "merchant:1"), "merchant:2")


def test_every_changed_bit_is_noticed(vault: Vault) -> None:
    stored = vault.encrypt("text", "merchant:1")
    for place in range(len(stored)):
        spoiled = bytearray(stored)
        spoiled[place] ^= 1
        with pytest.raises(WrongKey):
            vault.decrypt(bytes(spoiled), "merchant:1")


@pytest.mark.parametrize("length", [0, 1, 12, 13, 27])
def test_a_stored_secret_cut_short_is_noticed(vault: Vault, length: int) -> None:
    with pytest.raises(WrongKey):
        vault.decrypt(vault.encrypt("text", "merchant:1")[:length], "merchant:1")


def test_a_hash_is_worthless_for_another_use_and_under_another_key(vault: Vault) -> None:
    assert vault.hash("client-secret", "x") == Vault(KEY).hash("client-secret", "x")
    hashes = {
        vault.hash("client-secret", "x"),
        vault.hash("code", "x"),
        Vault(bytes(32)).hash("client-secret", "x"),
    }
    assert len(hashes) == 3


def test_a_consumer_is_found_by_number_and_only_with_the_key(vault: Vault) -> None:
    found = vault.consumer_id("2125550142")
    assert found == Vault(KEY).consumer_id("2125550142")
    assert found != vault.consumer_id("2125550143")
    assert found != Vault(os.urandom(32)).consumer_id("2125550142")
    assert (found.version, found.variant) == (8, "specified in RFC 4122")
