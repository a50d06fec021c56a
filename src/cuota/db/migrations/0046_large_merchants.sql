-- The planner assumes that each merchant has half of every table.
--
-- The service plans each statement once for all merchants, so a plan must be good for the largest one. With the measured number of
-- merchants the planner assumes an average merchant: among 40,000 shops with one order each it read all orders of a shop with
-- 60,000 orders to find one of them, because "all orders of this merchant" looked like a single row.
-- Citus has no such setting for a distributed table, and needs none: there each statement is planned for its own merchant.
DO $$
DECLARE
    each_table record;
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        RETURN;
    END IF;
    FOR each_table IN
        SELECT c.oid::regclass AS name, c.reltuples > 0 AS has_rows FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE a.attname = 'merchant_id' AND c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
            AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indpred IS NULL
                AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)
        ORDER BY c.relname
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN merchant_id SET (n_distinct = 2)', each_table.name);
        -- The next plans use it only after the table is analyzed. A table without rows is not: the planner would rely on it to stay
        -- empty. For a table that was never analyzed, the planner assumes that it grows.
        IF each_table.has_rows THEN
            EXECUTE format('ANALYZE %s', each_table.name);
        END IF;
    END LOOP;
END
$$;
