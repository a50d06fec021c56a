-- The times in an array that are later than another time. Citus cannot rewrite a subquery in the SET or WHERE of an
-- ON CONFLICT DO UPDATE; it can rewrite the call of a function.
CREATE FUNCTION later_than(times timestamptz[], since timestamptz) RETURNS timestamptz[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(SELECT t FROM unnest(times) t WHERE t > since)
$$;
