-- A replay finds its range in the feed, so it does not need this index. Without the index, the three writes of each delivery
-- cost less, and the planner cannot prefer it to the primary key while the table has no statistics. A process of the previous
-- release replays more slowly until it is replaced.
DROP INDEX deliveries_position;
