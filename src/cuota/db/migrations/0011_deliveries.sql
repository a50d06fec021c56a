-- A replay finds its range in the feed, so that what is written three times for each delivery has an index less, and the
-- planner, while it knows nothing of the table, cannot take this one for as good as the primary key. A process of the
-- release before, which replays by it, is slower at that until it is replaced.
DROP INDEX deliveries_position;
