-- A replay finds its range in the feed, so that what is written three times for each delivery has an index less. Nor
-- does the planner, while it knows nothing of the table, take "all of a merchant's" for as good as the primary key.
DROP INDEX deliveries_position;
