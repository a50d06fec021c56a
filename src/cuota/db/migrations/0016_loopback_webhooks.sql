-- Whether the service that ran last sends webhooks to this machine itself: `cuota time advance` does the same.
-- Null where an earlier release ran last.
ALTER TABLE last_served ADD COLUMN loopback_webhooks boolean;
