-- An operator has dealt with a refund that was made elsewhere or failed later, so `cuota rails` no longer lists it.
ALTER TABLE card_events ADD COLUMN settled_at timestamptz;
