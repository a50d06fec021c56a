-- The operator's dashboard: its people, their sign-in links and sessions, and the log of what they did.
-- Nothing is shared with the merchants' people (migration 0033), so a merchant's session can never be one of the operator.

CREATE TABLE operator_people (
    person_id     uuid PRIMARY KEY,
    email         text NOT NULL CHECK (email = lower(email) AND length(email) BETWEEN 3 AND 254),
    name          text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    role          text NOT NULL CHECK (role IN ('owner', 'support', 'risk', 'finance', 'read-only')),
    factor        bytea,                            -- AES-GCM: the secret of the authenticator app; null until it is set up
    factor_step   bigint NOT NULL DEFAULT 0,        -- the last time step whose code was used: no code works twice
    factor_tries  smallint NOT NULL DEFAULT 0,      -- wrong codes in a row
    factor_closed_until timestamptz,                -- after too many wrong codes
    invited_at    timestamptz NOT NULL,
    joined_at     timestamptz,
    removed_at    timestamptz
);
CREATE UNIQUE INDEX operator_people_email ON operator_people (email) WHERE removed_at IS NULL;

-- The secret of a link is a keyed hash of its id, so nothing in this table opens a session.
CREATE TABLE operator_links (
    link_id    uuid PRIMARY KEY,
    person_id  uuid NOT NULL REFERENCES operator_people,
    created_at timestamptz NOT NULL,
    ends_at    timestamptz NOT NULL,
    mail_at    timestamptz,                         -- when the mail is sent next; null: sent, or never mailed
    tries      smallint NOT NULL DEFAULT 0,
    one_step   boolean NOT NULL,                    -- sandbox only: this link asks for no second factor
    used_at    timestamptz
);
CREATE INDEX operator_links_mail ON operator_links (mail_at) WHERE mail_at IS NOT NULL;
CREATE INDEX operator_links_old ON operator_links (ends_at);
CREATE INDEX operator_links_person ON operator_links (person_id, created_at);

CREATE TABLE operator_sessions (
    session_hash bytea PRIMARY KEY,
    session_id   uuid NOT NULL,                     -- names the session to people; opens nothing
    person_id    uuid NOT NULL REFERENCES operator_people,
    created_at   timestamptz NOT NULL,
    seen_at      timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    proved_at    timestamptz,                       -- the last second factor; null: the person is not signed in yet
    one_step     boolean NOT NULL,
    new_factor   bytea,                             -- AES-GCM: the secret of an app that this browser sets up
    browser      text NOT NULL,
    address      text NOT NULL
);
CREATE INDEX operator_sessions_old ON operator_sessions (ends_at);
CREATE INDEX operator_sessions_person ON operator_sessions (person_id);

-- What a person of the operator did. Rows are never changed or deleted.
CREATE TABLE operator_log (
    entry_id  uuid PRIMARY KEY,
    at        timestamptz NOT NULL,
    person_id uuid,                                 -- null: a command
    actor     text NOT NULL,                        -- the name and address of the person at that time
    role      text NOT NULL,
    address   text NOT NULL,                        -- the IP address; empty for a command
    action    text NOT NULL,
    about     uuid,                                 -- the merchant, consumer, order or dispute
    subject   text NOT NULL,                        -- what the action was about, in words; no personal data of a consumer
    reason    text NOT NULL,
    before    json,
    after     json
);
CREATE INDEX operator_log_about ON operator_log (about, entry_id) WHERE about IS NOT NULL;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_log
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();

GRANT SELECT, INSERT, UPDATE ON operator_people TO cuota_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON operator_links, operator_sessions TO cuota_app;
GRANT SELECT, INSERT ON operator_log TO cuota_app;

-- What `cuota verify` found, each time it ran to its end.
CREATE TABLE verify_runs (
    run_id    uuid PRIMARY KEY,
    at        timestamptz NOT NULL,
    orders    bigint NOT NULL,
    transfers bigint NOT NULL,
    problems  bigint NOT NULL                       -- rows that disagree; the command lists them
);
GRANT SELECT, INSERT ON verify_runs TO cuota_app;

-- For the operator's lists over all merchants, newest first. Few rows are added to these tables.
CREATE INDEX disputes_newest ON disputes (opened_at DESC, dispute_id DESC);
CREATE INDEX payouts_newest ON payouts (closed_at DESC, payout_id);
CREATE INDEX disputes_to_decide ON disputes (opened_at) WHERE kind = 'dispute' AND status IN ('under_review', 'appealed');
