-- Secrets can be replaced, the secret key too; and the service may have a database role of its own.

-- While a merchant's secret is rotated the one before it works too, until it ends.
ALTER TABLE merchants
    ADD COLUMN old_signing_secret         bytea,    -- AES-GCM, as signing_secret
    ADD COLUMN old_signing_secret_ends_at timestamptz,
    ADD COLUMN old_webhook_secret         bytea,    -- AES-GCM, as webhook_secret
    ADD COLUMN old_webhook_secret_ends_at timestamptz,
    ADD CONSTRAINT old_signing_secret_has_an_end
        CHECK ((old_signing_secret IS NULL) = (old_signing_secret_ends_at IS NULL)),
    ADD CONSTRAINT old_webhook_secret_has_an_end
        CHECK ((old_webhook_secret IS NULL) = (old_webhook_secret_ends_at IS NULL));

-- What ids and hashes are keyed with. It never changes, so that CUOTA_SECRET_KEY can: that one only encrypts it.
CREATE TABLE hash_key (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    sealed bytea NOT NULL                           -- AES-GCM under the secret key
);
GRANT SELECT, INSERT, UPDATE ON hash_key TO cuota_app;

-- Whether production insists on a database role that is neither superuser nor owner. False only for a database that
-- an earlier release has served with such a role: it goes on starting, with a warning, until it has a role of its own.
CREATE TABLE service_role (
    single   boolean PRIMARY KEY DEFAULT true CHECK (single),
    required boolean NOT NULL
);
INSERT INTO service_role (required) SELECT NOT EXISTS (SELECT FROM installation);
GRANT SELECT, UPDATE ON service_role TO cuota_app;

-- A role of its own cannot migrate; it must see that all is up to date.
GRANT SELECT ON migrations TO cuota_app;
