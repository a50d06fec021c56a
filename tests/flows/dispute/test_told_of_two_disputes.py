"""While a message provider is down, a message about one dispute is not replaced by a message about the next dispute of the order."""

from __future__ import annotations

from cuota.flows.dispute.answer_dispute import withdraw_dispute
from support.disputes import decided, disputed
from support.flows.told import NOON, bought, move_to_hour, told
from support.own_service import Own


async def test_the_end_of_a_dispute_is_told_although_the_consumer_opened_another_one_since(own: Own) -> None:
    move_to_hour(own, NOON)
    shop = own.auto_merchant
    order = await bought(own, shop)
    first = await disputed(shop, order, 1000)
    await withdraw_dispute(own.context, shop.merchant_id, first.dispute_id)
    await disputed(shop, order, 2000)
    found = [each.subject for each in await told(own)]
    assert [each for each in found if "is closed" in each]
    assert len([each for each in found if "We have your dispute" in each]) == 1


async def test_only_the_newest_state_of_the_second_dispute_is_told(own: Own) -> None:
    move_to_hour(own, NOON)
    shop = own.auto_merchant
    order = await bought(own, shop)
    first = await disputed(shop, order, 1000)
    await withdraw_dispute(own.context, shop.merchant_id, first.dispute_id)
    second = await disputed(shop, order, 2000)
    await decided(shop, second, for_consumer=False)
    found = [each.subject for each in await told(own)]
    assert [each for each in found if "is closed" in each]
    assert [each for each in found if "we decided for the shop" in each]
    assert not [each for each in found if "We have your dispute" in each]
