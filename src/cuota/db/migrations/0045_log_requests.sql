-- Writes calls of one merchant to the request log. On a Citus cluster, a call of this function is one command to the merchant's node. The
-- statement alone would be a transaction over several nodes, so that a dead node would stop the log of every merchant.
CREATE FUNCTION log_api_requests(
    merchant uuid, request_ids uuid[], client_ids text[], addresses text[], methods text[], routes text[], order_ids uuid[],
    statuses smallint[], codes text[], durations real[], with_keys boolean[], queries text[], requests text[], responses text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO api_requests (merchant_id, request_id, client_id, address, method, route, order_id, status, code, ms, keyed, query,
        request, response)
        SELECT merchant, q.* FROM unnest(request_ids, client_ids, addresses, methods, routes, order_ids, statuses, codes, durations,
            with_keys, queries, requests, responses) AS q
        ON CONFLICT DO NOTHING;
END $$;
