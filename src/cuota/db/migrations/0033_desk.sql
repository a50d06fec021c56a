-- The merchant's dashboard: its people, their sign-in links and sessions, the audit log, and the terms by which orders are found.

CREATE TABLE desk_people (
    merchant_id   uuid NOT NULL REFERENCES merchants,
    person_id     uuid NOT NULL,
    email         text NOT NULL CHECK (email = lower(email) AND length(email) BETWEEN 3 AND 254),
    name          text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    role          text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'finance', 'support', 'read-only')),
    factor        bytea,                            -- AES-GCM: the secret of the authenticator app; null until it is set up
    factor_step   bigint NOT NULL DEFAULT 0,        -- the last time step whose code was used: no code works twice
    factor_tries  smallint NOT NULL DEFAULT 0,      -- wrong codes in a row
    factor_closed_until timestamptz,                -- after too many wrong codes
    invited_at    timestamptz NOT NULL,
    joined_at     timestamptz,
    removed_at    timestamptz,
    PRIMARY KEY (merchant_id, person_id)
);
-- The first column is the address, because a person who signs in does not name a merchant.
CREATE UNIQUE INDEX desk_people_email ON desk_people (email, merchant_id) WHERE removed_at IS NULL;

-- The secret of a link is a keyed hash of its id, so nothing in this table opens a session.
CREATE TABLE desk_links (
    merchant_id uuid NOT NULL,
    link_id     uuid NOT NULL,
    person_id   uuid NOT NULL,
    created_at  timestamptz NOT NULL,
    ends_at     timestamptz NOT NULL,
    mail_at     timestamptz,                        -- when the mail is sent next; null: sent, or never mailed
    tries       smallint NOT NULL DEFAULT 0,
    one_step    boolean NOT NULL,                   -- sandbox only: this link asks for no second factor
    used_at     timestamptz,
    PRIMARY KEY (merchant_id, link_id)
);
CREATE INDEX desk_links_mail ON desk_links (mail_at, merchant_id) WHERE mail_at IS NOT NULL;
CREATE INDEX desk_links_old ON desk_links (ends_at);
CREATE INDEX desk_links_person ON desk_links (merchant_id, person_id, created_at);

CREATE TABLE desk_sessions (
    merchant_id  uuid NOT NULL,
    session_hash bytea NOT NULL,
    session_id   uuid NOT NULL,                     -- names the session to people; opens nothing
    person_id    uuid NOT NULL,
    created_at   timestamptz NOT NULL,
    seen_at      timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    proved_at    timestamptz,                       -- the last second factor; null: the person is not signed in yet
    one_step     boolean NOT NULL,
    new_factor   bytea,                             -- AES-GCM: the secret of an app that this browser sets up
    browser      text NOT NULL,
    address      text NOT NULL,
    PRIMARY KEY (merchant_id, session_hash)
);
CREATE INDEX desk_sessions_old ON desk_sessions (ends_at);
CREATE INDEX desk_sessions_person ON desk_sessions (merchant_id, person_id);

-- What a person did in the dashboard. Rows are never changed or deleted.
CREATE TABLE audit_log (
    merchant_id uuid NOT NULL,
    entry_id    uuid NOT NULL,
    at          timestamptz NOT NULL,
    person_id   uuid,                               -- null: the operator, by a command
    actor       text NOT NULL,                      -- the name and address of the person at that time
    role        text NOT NULL,
    address     text NOT NULL,                      -- the IP address; empty for a command
    action      text NOT NULL,
    order_id    uuid,
    subject     text NOT NULL,                      -- what the action was about, in words
    reason      text NOT NULL,
    before      json,
    after       json,
    PRIMARY KEY (merchant_id, entry_id)
);
CREATE INDEX audit_log_order ON audit_log (merchant_id, order_id, entry_id) WHERE order_id IS NOT NULL;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();

-- One row for each term of an order: the first 64 bits of a keyed hash. A job writes them from the feed, up to `position`.
CREATE TABLE order_terms (
    merchant_id uuid NOT NULL,
    term        bigint NOT NULL,
    order_id    uuid NOT NULL,
    PRIMARY KEY (merchant_id, term, order_id)
);
CREATE INDEX order_terms_order ON order_terms (merchant_id, order_id);
CREATE TABLE order_terms_read (
    merchant_id uuid PRIMARY KEY,
    position    bigint NOT NULL DEFAULT 0
);

GRANT SELECT, INSERT, UPDATE ON desk_people TO cuota_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON desk_links, desk_sessions TO cuota_app;
GRANT SELECT, INSERT ON audit_log TO cuota_app;
GRANT SELECT, INSERT, DELETE ON order_terms TO cuota_app;
GRANT SELECT, INSERT, UPDATE ON order_terms_read TO cuota_app;
