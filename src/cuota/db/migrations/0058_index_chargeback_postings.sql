-- A card refund asks what lost chargebacks returned of it. Without this index, each such question reads all ledger rows of the order,
-- and an order may have tens of thousands. The index contains few rows: the postings of lost chargebacks only.
-- Writes to the ledger wait while the index is built. To avoid the wait, create this index on a large table before the upgrade
-- (docs/upgrade.md).
CREATE INDEX IF NOT EXISTS transfers_chargebacks ON transfers (merchant_id, order_id, posting, cause)
    WHERE posting IN ('refund_charged_back', 'chargeback_loss');
