-- From this time on, plans.agreement has the values of an agreement as a JSON array, which begins with a bracket. Until then it has the text,
-- because the previous release, which may still run, reads only texts. Both forms stay as they are.
--
-- A new installation gets its row after the migrations, so it stores values from its first plan on.
ALTER TABLE installation ADD COLUMN agreement_values_from timestamptz NOT NULL DEFAULT now();
UPDATE installation SET agreement_values_from = now() + interval '24 hours';
