-- All secrets can be replaced, including the secret key. The service may have its own database role.

-- During a rotation, a merchant's previous secret stays valid until it expires.
ALTER TABLE merchants
    ADD COLUMN old_signing_secret         bytea,    -- AES-GCM, as signing_secret
    ADD COLUMN old_signing_secret_ends_at timestamptz,
    ADD COLUMN old_webhook_secret         bytea,    -- AES-GCM, as webhook_secret
    ADD COLUMN old_webhook_secret_ends_at timestamptz,
    ADD CONSTRAINT old_signing_secret_has_an_end
        CHECK ((old_signing_secret IS NULL) = (old_signing_secret_ends_at IS NULL)),
    ADD CONSTRAINT old_webhook_secret_has_an_end
        CHECK ((old_webhook_secret IS NULL) = (old_webhook_secret_ends_at IS NULL));

-- The key for ids and hashes. It never changes. CUOTA_SECRET_KEY only encrypts it, so CUOTA_SECRET_KEY can be replaced.
CREATE TABLE hash_key (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    sealed bytea NOT NULL                           -- AES-GCM under the secret key
);
GRANT SELECT, INSERT, UPDATE ON hash_key TO cuota_app;

-- Whether production insists on a database role that is neither superuser nor owner. False only for a database that
-- an earlier release has used with such a role: the service still starts, with a warning, until it has its own role.
CREATE TABLE service_role (
    single   boolean PRIMARY KEY DEFAULT true CHECK (single),
    required boolean NOT NULL
);
INSERT INTO service_role (required) SELECT NOT EXISTS (SELECT FROM installation);
GRANT SELECT, UPDATE ON service_role TO cuota_app;

-- The service's own role cannot migrate, but it must check that the schema is up to date.
GRANT SELECT ON migrations TO cuota_app;
