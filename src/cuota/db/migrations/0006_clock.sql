-- The sandbox's clock, which can be moved, and whole copies of the sandbox to go back to. Production uses neither.

CREATE TABLE sandbox_clock (
    single       boolean PRIMARY KEY DEFAULT true CHECK (single),
    ahead        interval NOT NULL DEFAULT '0',     -- service time = real time + this
    held_at      timestamptz,                       -- while it is being moved the clock stands still at this instant
    moving_until timestamptz,                       -- real time: a lease of the command that moves it
    closed       boolean NOT NULL DEFAULT false     -- copied or rewound: requests wait too
);
INSERT INTO sandbox_clock DEFAULT VALUES;

-- Each fork's tables stand in a schema of their own, fork_NAME.
CREATE TABLE forks (
    name         text PRIMARY KEY,
    taken_at     timestamptz NOT NULL DEFAULT now(), -- real time
    service_time timestamptz NOT NULL,
    migrations   text[] NOT NULL                    -- a fork goes back into the same tables only
);

GRANT SELECT, INSERT, UPDATE ON sandbox_clock TO cuota_app;
GRANT SELECT ON forks TO cuota_app;
