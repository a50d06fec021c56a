-- A card that lost a chargeback is recognized if the consumer enters it again, because then it has another token.

-- The keyed hash of the card that paid, as in plans. Null while the plan still has it, and if the rail gives no fingerprint.
ALTER TABLE charges ADD COLUMN card_hash bytea;
-- The card's bank took a charge back, and the chargeback was lost. Such a row is no decline.
ALTER TABLE card_declines ADD COLUMN charged_back boolean NOT NULL DEFAULT false;
