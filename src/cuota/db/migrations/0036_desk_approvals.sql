-- Movements of money that a second person of the merchant's team must approve.
CREATE TABLE desk_approvals (
    merchant_id uuid NOT NULL,
    approval_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('capture', 'void', 'refund')),
    amount      bigint NOT NULL CHECK (amount > 0), -- cents
    reference   text NOT NULL,                      -- of the movement, so that it is made once
    reason      text NOT NULL,
    asked_by    uuid NOT NULL,
    asker       text NOT NULL,                      -- the person's name and address at that time
    asked_at    timestamptz NOT NULL,
    state       text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'approved', 'rejected')),
    decided_by  uuid,
    decider     text,
    decided_at  timestamptz,
    PRIMARY KEY (merchant_id, approval_id),
    UNIQUE (merchant_id, reference),
    CONSTRAINT decided_has_a_person CHECK ((state = 'waiting') = (decided_by IS NULL)),
    -- Nobody approves what they asked for. To give it up oneself is allowed.
    CONSTRAINT approved_by_another CHECK (state <> 'approved' OR decided_by <> asked_by)
);
CREATE INDEX desk_approvals_waiting ON desk_approvals (merchant_id, asked_at) WHERE state = 'waiting';
GRANT SELECT, INSERT, UPDATE ON desk_approvals TO cuota_app;
