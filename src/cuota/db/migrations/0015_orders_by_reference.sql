-- A merchant finds its orders by its own reference. order_details is written once for each order and never updated, so
-- the index costs one insert for each creation and nothing for a capture, a void or a refund.
CREATE INDEX order_details_reference ON order_details (merchant_id, reference, order_id);
