-- What is tidied away is found by its age, however many checkouts there are.
CREATE INDEX checkout_sessions_old ON checkout_sessions (created_at);
