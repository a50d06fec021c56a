-- Chargebacks: the card network's deadline, and what the sandbox's card processor knows of a disputed charge.
ALTER TABLE card_events ADD COLUMN respond_by timestamptz;

-- A charge of the disputed test card is disputed seven days after it was made. The row is written when we answer.
CREATE TABLE card_simulator.disputes (
    charge       uuid PRIMARY KEY REFERENCES card_simulator.charges,
    evidence     text,                              -- what was sent first; later evidence does not count
    files        integer NOT NULL DEFAULT 0,
    submitted_at timestamptz,
    accepted_at  timestamptz
);
GRANT SELECT, INSERT, UPDATE ON card_simulator.disputes TO cuota_app;
