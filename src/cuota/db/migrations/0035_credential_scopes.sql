-- A merchant has several credentials, each with a name for people and a scope. What is there already may do everything.
ALTER TABLE credentials
    ADD COLUMN name text NOT NULL DEFAULT '' CONSTRAINT credentials_name CHECK (length(name) <= 100);
ALTER TABLE credentials
    ADD COLUMN scope text NOT NULL DEFAULT 'full'
        CONSTRAINT credentials_scope CHECK (scope IN ('full', 'read', 'capture', 'refund'));
