-- qlog 1.0: queues in PostgreSQL at log speed.
--
-- C functions and plain views over them, in one schema. Nothing here runs SQL with more rights than the caller's.
\echo Use "CREATE EXTENSION qlog" to load this file. \quit

CREATE FUNCTION qlog_version() RETURNS text
AS 'MODULE_PATHNAME', 'qlog_version' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION qlog_version() IS
'Version of the loaded library. 55000 when the library is not in shared_preload_libraries, 0A000 when the encoding of the database is not UTF8.';

-- Fails here, before anything else is made, where no function would work.
SELECT qlog_version();

-- Queues

CREATE FUNCTION queue_create(queue text, options jsonb DEFAULT '{}', if_not_exists boolean DEFAULT false) RETURNS boolean
AS 'MODULE_PATHNAME', 'queue_create' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_create(text, jsonb, boolean) IS
'Creates a queue, at COMMIT. queue: 1 to 255 bytes, case kept; names that begin with "qlog." are reserved. options: {"lease": interval, "ordered": boolean, "compression_level": integer, ...}: intervals are strings, sizes numbers or strings with a unit; NULL and {} mean the defaults. Returns true, or false when it exists and if_not_exists is true. Errors: 42710 exists, 42602, 42622 or 42939 bad name, 22004 NULL name, 22023 unknown option (the HINT lists them) or bad value, 42501 no CREATE privilege on the database.';

CREATE FUNCTION queue_drop(queue text, if_exists boolean DEFAULT false) RETURNS boolean
AS 'MODULE_PATHNAME', 'queue_drop' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_drop(text, boolean) IS
'Drops a queue with all its messages, at COMMIT; its files go soon after. Returns true, or false when it does not exist and if_exists is true. Errors: 42704 no such queue, 42501 not the owner, 22004 NULL name.';

CREATE FUNCTION queue_set(queue text, option text, value text) RETURNS void
AS 'MODULE_PATHNAME', 'queue_set' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_set(text, text, text) IS
'Sets an option of a queue, at COMMIT; the transaction itself sees it at once. value: as text, with a unit where it has one: "90 s", "10 MB", "3", "on". Errors: 42704 no such queue, 42501 neither owner nor privilege manage, 22023 unknown option (the HINT lists them), wrong type or out of range, 22007 not an interval, 22004 NULL argument, 25006 read-only.';

CREATE FUNCTION queue_reset(queue text, option text) RETURNS void
AS 'MODULE_PATHNAME', 'queue_reset' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_reset(text, text) IS
'Gives an option of a queue its default back, at COMMIT. Errors as queue_set.';

CREATE FUNCTION queue_rename(queue text, new_name text) RETURNS void
AS 'MODULE_PATHNAME', 'queue_rename' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_rename(text, text) IS
'Gives a queue another name, at COMMIT. Messages, leases, groups and privileges stay. What other transactions have pushed under the old name goes into the queue; who meets one of the two names for the first time waits for the COMMIT. Errors: 42704 no such queue, 42710 the new name exists, 42501 not the owner, 42602, 42622 or 42939 bad name, 22004 NULL argument, 25006.';

CREATE FUNCTION queue_pause(queue text, side text DEFAULT 'both') RETURNS void
AS 'MODULE_PATHNAME', 'queue_pause' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_pause(text, text) IS
'Pauses a queue, at COMMIT. side: push = pushes are refused with 55000, also those of a transaction that began before and commits after; pop = pops find nothing; both (NULL too). Leases go on, and can be answered. Errors: 42704, 42501 neither owner nor privilege manage, 22023 unknown side, 22004 NULL queue, 25006.';

CREATE FUNCTION queue_resume(queue text, side text DEFAULT 'both') RETURNS void
AS 'MODULE_PATHNAME', 'queue_resume' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_resume(text, text) IS
'Ends what queue_pause has begun, at COMMIT. Arguments and errors as there.';

CREATE FUNCTION queue_owner(queue text, new_owner regrole) RETURNS void
AS 'MODULE_PATHNAME', 'queue_owner' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_owner(text, regrole) IS
'Gives a queue to another role, at COMMIT. As with tables the caller owns the queue and may become the new owner, which has CREATE on the database; superusers may always. Errors: 42704 no such queue or role, 42501, 22023 PUBLIC, 22004 NULL argument, 25006.';

CREATE FUNCTION queue_grant(queue text, role regrole, privilege text) RETURNS void
AS 'MODULE_PATHNAME', 'queue_grant' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_grant(text, regrole, text) IS
'Gives a role privileges on a queue, at COMMIT. role: ''-'' is PUBLIC. privilege: push, pop (also answers and peeking), manage (options, pause, purge, groups, dead letters), all, or a list with commas. Members of the role have them when they inherit; they cannot be passed on. Errors: 42704 no such queue or role, 42501 not the owner, 22023 unknown privilege, 54000 more than 1000 roles, 22004 NULL argument, 25006.';

CREATE FUNCTION queue_revoke(queue text, role regrole, privilege text) RETURNS void
AS 'MODULE_PATHNAME', 'queue_revoke' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_revoke(text, regrole, text) IS
'Takes privileges on a queue from a role, at COMMIT; what it does not have is passed over. Arguments and errors as queue_grant.';

CREATE FUNCTION has_queue_privilege(role regrole, queue text, privilege text) RETURNS boolean
AS 'MODULE_PATHNAME', 'has_queue_privilege' LANGUAGE C STABLE PARALLEL RESTRICTED;
COMMENT ON FUNCTION has_queue_privilege(regrole, text, text) IS
'Has the role any of these privileges on the queue: push, pop, manage, or a list with commas? role: ''-'' is PUBLIC. NULL for a NULL argument, as has_table_privilege. Errors: 42704 no such queue or role, 22023 unknown privilege.';

CREATE FUNCTION has_queue_privilege(queue text, privilege text) RETURNS boolean
AS 'MODULE_PATHNAME', 'has_queue_privilege_current' LANGUAGE C STABLE PARALLEL RESTRICTED;
COMMENT ON FUNCTION has_queue_privilege(text, text) IS
'Has the current role any of these privileges on the queue? As has_queue_privilege(role, queue, privilege).';

CREATE FUNCTION queue_definitions() RETURNS SETOF text
AS 'MODULE_PATHNAME', 'queue_definitions' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION queue_definitions() IS
'Statements that make the queues of this database again, with options, owner, privileges, consumer groups and pauses, without their messages; of groups what is committed: of the queues that the role has a privilege on (pg_monitor: all), oldest first. Run them as a superuser, or as their owner.';

-- Push

CREATE FUNCTION queue_push(queue text, payload text, partition text DEFAULT NULL, dedup_id text DEFAULT NULL,
                           headers json DEFAULT NULL, deliver_at timestamptz DEFAULT NULL) RETURNS uuid
AS 'MODULE_PATHNAME', 'queue_push_text' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_push(text, text, text, text, json, timestamptz) IS
'Adds a message whose payload is JSON text, stored byte for byte; it can be popped from COMMIT on. The queue (with qlog.auto_create) and the partition are made when they are missing, at once. partition: NULL or '''' is the default partition, where consumers compete; a named one is delivered in order. headers: JSON shown with the message. dedup_id: up to 1024 bytes; when a message with the same one was pushed to the same partition within the dedup_window of the queue, nothing is stored, and the id of that message is returned; at COMMIT it waits for a transaction that is committing the same one. deliver_at: the message enters its partition at this time; NULL = at COMMIT, or after the "delay" of the queue. Messages that wait enter in the order of their times, each as a new message of then. Returns the message id. Errors: 22P02 not JSON, 54000 over qlog.max_message_size or qlog.max_transaction_bytes, 42704 no such queue, 42501, 22004 NULL queue or payload, 22023 empty or long dedup_id or infinite deliver_at, 53400 qlog.dedup_memory full (at COMMIT), 53100 disk full, 53200 qlog.state_memory full, 25006 read-only.';

CREATE FUNCTION queue_push(queue text, payload json, partition text DEFAULT NULL, dedup_id text DEFAULT NULL,
                           headers json DEFAULT NULL, deliver_at timestamptz DEFAULT NULL) RETURNS uuid
AS 'MODULE_PATHNAME', 'queue_push_json' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_push(text, json, text, text, json, timestamptz) IS
'As queue_push(text, text): the json is stored byte for byte.';

CREATE FUNCTION queue_push(queue text, payload jsonb, partition text DEFAULT NULL, dedup_id text DEFAULT NULL,
                           headers json DEFAULT NULL, deliver_at timestamptz DEFAULT NULL) RETURNS uuid
AS 'MODULE_PATHNAME', 'queue_push_jsonb' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_push(text, jsonb, text, text, json, timestamptz) IS
'As queue_push(text, text): the jsonb is stored as it prints.';

CREATE FUNCTION queue_push(queue text, payload bytea, partition text DEFAULT NULL, dedup_id text DEFAULT NULL,
                           headers json DEFAULT NULL, deliver_at timestamptz DEFAULT NULL) RETURNS uuid
AS 'MODULE_PATHNAME', 'queue_push_bytea' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_push(text, bytea, text, text, json, timestamptz) IS
'As queue_push(text, text) for bytes: they come back in payload_bytes, with payload NULL.';

CREATE FUNCTION queue_push_batch(queue text, payloads text[], partitions text[] DEFAULT NULL, dedup_ids text[] DEFAULT NULL,
                                 headers text[] DEFAULT NULL, deliver_at timestamptz DEFAULT NULL) RETURNS SETOF uuid
AS 'MODULE_PATHNAME', 'queue_push_batch_text' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION queue_push_batch(text, text[], text[], text[], text[], timestamptz) IS
'Adds many messages, in the order of the array, at COMMIT; all or none. Each payload is JSON text. partitions, dedup_ids, headers: NULL, or as many elements as payloads, a NULL element meaning the default partition, no dedup id, no headers. Returns the message ids in input order. Errors as queue_push, and 22004 for a NULL payload, 22023 for arrays of other lengths or dimensions, 54000 for more than 4096 partitions in one transaction.';

CREATE FUNCTION queue_push_batch_bytea(queue text, payloads bytea[], partitions text[] DEFAULT NULL, dedup_ids text[] DEFAULT NULL,
                                       headers text[] DEFAULT NULL, deliver_at timestamptz DEFAULT NULL) RETURNS SETOF uuid
AS 'MODULE_PATHNAME', 'queue_push_batch_bytea' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION queue_push_batch_bytea(text, bytea[], text[], text[], text[], timestamptz) IS
'As queue_push_batch, for payloads that are bytes.';

CREATE FUNCTION queue_push_batch_json(queue text, payloads json, partition text DEFAULT NULL, headers json DEFAULT NULL) RETURNS SETOF uuid
AS 'MODULE_PATHNAME', 'queue_push_batch_json' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION queue_push_batch_json(text, json, text, json) IS
'As queue_push_batch, for one JSON array: each element becomes a message, as its bytes stand in the array without the white space around them. partition, headers: for all of them; NULL = the default partition, no headers. A JSON null is a message; an empty array is none. Returns the message ids in input order. Errors: 22023 not an array, and those of queue_push.';

CREATE FUNCTION queue_push_row() RETURNS trigger
AS 'MODULE_PATHNAME', 'queue_push_row' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_push_row() IS
'Trigger function: pushes the row change as {"op": "INSERT" | "UPDATE" | "DELETE", "table": "schema.name", "new": row or null, "old": row or null}, with the transaction that made it. CREATE TRIGGER ... AFTER INSERT OR UPDATE OR DELETE ON ... FOR EACH ROW EXECUTE FUNCTION queue_push_row(''queue'' [, ''column'']). column: its text names the partition, NULL meaning the default one. Runs with the rights of whoever changes the row. Errors: 39P01 not such a trigger, 42703 no such column, and those of queue_push.';

CREATE FUNCTION queue_cancel(queue text, message_id uuid) RETURNS boolean
AS 'MODULE_PATHNAME', 'queue_cancel' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_cancel(text, uuid) IS
'Takes back a delayed message that has not entered its partition yet: at once, whatever becomes of the transaction. Its dedup id can be pushed again. Returns true, or false when there is no such message waiting: it has entered its partition, was cancelled, or its push has not been committed. Needs the privilege push. Errors: 42704, 42501, 22004 NULL argument, 25006.';

-- Pop and its answers

CREATE FUNCTION queue_pop(queue text, batch int DEFAULT 1, consumer_group text DEFAULT NULL, partition text DEFAULT NULL,
                          wait interval DEFAULT NULL, lease interval DEFAULT NULL, auto_ack boolean DEFAULT false,
                          max_partitions int DEFAULT 1, max_bytes bigint DEFAULT NULL)
RETURNS TABLE (message_id uuid, partition text, "position" bigint, attempt int, payload json, payload_bytes bytea, headers json,
               dedup_id text, pushed_at timestamptz, lease_id bigint, leased_until timestamptz)
AS 'MODULE_PATHNAME', 'queue_pop' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION queue_pop(text, int, text, text, interval, interval, boolean, int, bigint) IS
'Takes a lease on up to batch messages (at most qlog.max_leases_per_cursor of a partition) and returns them, partition by partition, in order within each: at once, whatever becomes of the transaction; a rollback gives them back, the attempt stays counted. The lease cannot expire while the transaction is open and runs for its time from COMMIT on. partition: NULL = any, '''' = the default one. lease: NULL = the option of the queue. auto_ack: acknowledged at COMMIT. max_partitions: from at most so many partitions, under one lease id; NULL = 1. max_bytes: payloads and headers of at most so many bytes, but one message at least; NULL = no limit. wait: sleeps until there is something, at most so long and at most qlog.max_pop_wait, since the statement keeps its snapshot meanwhile (CALL queue_wait() does not); NULL or 0 = does not wait. consumer_group: reads the whole queue on its own; NULL or '''' = the default one; one that does not exist is made, from the oldest message kept on, which commits at once (with qlog.auto_create). No rows when there is nothing to deliver. Errors: 42704 no such queue, or dropped meanwhile, or no such group and qlog.auto_create is off; 42602, 42622 name of the group, 54000 more than 64 groups, 42501, 22004, 22023 batch, wait, lease, max_partitions or max_bytes out of range, 53200, XX001 damaged file, 25006. Of messages some of which are damaged the others are returned, with a WARNING.';

CREATE PROCEDURE queue_wait(queue text, wait interval DEFAULT '30 s', consumer_group text DEFAULT NULL)
AS 'MODULE_PATHNAME', 'queue_wait' LANGUAGE C;
COMMENT ON PROCEDURE queue_wait(text, interval, text) IS
'Returns when a pop of the group would find something, or when the time is over: pop next. One caller is told of each message. It ends the transaction that it is called in, as COMMIT would, so that it holds no snapshot, no lock and no transaction id while it sleeps. wait: NULL = 30 s, 0 = look once, at most 365 days. consumer_group: NULL = the default one. Errors: 25001 in a transaction block, or in a transaction that has changed something; 2D000 called by a function or inside a block with an exception handler; 42704 no such queue, or dropped meanwhile; 42501, 22004 NULL queue, 22023 wait out of range, 25006. Cancel, statement_timeout and the loss of the client end the wait.';

CREATE FUNCTION queue_ack(lease_id bigint, message_ids uuid[] DEFAULT NULL) RETURNS bigint
AS 'MODULE_PATHNAME', 'queue_ack' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_ack(bigint, uuid[]) IS
'Acknowledges messages of a lease, at COMMIT, with the table changes of the transaction. message_ids: NULL = all of the lease; ids that it does not hold are ignored, repeats count once. Returns how many; 0 when the lease is gone. Repeating the ack of a lease that was acknowledged whole returns its count again, but makes COMMIT fail with 40001 when the transaction does anything else. COMMIT fails with 40001 when the lease is lost before. Errors: 55006 the lease belongs to a transaction of another session that is still open, 22004 NULL lease, 25006.';

CREATE FUNCTION queue_nack(lease_id bigint, message_ids uuid[] DEFAULT NULL, retry_after interval DEFAULT NULL, reason text DEFAULT NULL) RETURNS bigint
AS 'MODULE_PATHNAME', 'queue_nack' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_nack(bigint, uuid[], interval, text) IS
'Gives messages of a lease back, at once and whatever becomes of the transaction; in an ordered partition the lowest one named and everything of the lease behind it. message_ids: NULL = all. retry_after: how long they wait; NULL = the option retry_delay of the queue, doubled with each time that the message has come back, up to retry_delay_max. A message that was delivered retry_limit times more than once goes to the dead letters instead; in an ordered partition only the lowest one is charged with the delivery. reason: kept with the dead letter, and in the log of the queue, where qlog_dump shows it. Returns how many; 0 when the lease is gone. Errors: 55006 the lease belongs to a transaction of another session that is still open, 22004 NULL lease, 22023 negative retry_after or long reason, 25006.';

CREATE FUNCTION queue_reject(lease_id bigint, message_ids uuid[] DEFAULT NULL, reason text DEFAULT NULL) RETURNS bigint
AS 'MODULE_PATHNAME', 'queue_reject' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_reject(bigint, uuid[], text) IS
'Sends messages of a lease to the dead letters of its consumer group, with their payload, at COMMIT; with the option dead_letters off they are dropped. message_ids: NULL = all. reason: up to 1024 bytes, shown by qlog_dead_letters; NULL = "rejected". A message that cannot be read any more becomes a letter without payload. Returns how many; 0 when the lease is gone. COMMIT fails with 40001 when the lease is lost before. Errors: 55006 the lease belongs to a transaction of another session that is still open, 22004 NULL lease, 22023 long reason, 53100, 53200, 25006.';

CREATE FUNCTION queue_redrive(queue text, consumer_group text DEFAULT NULL, batch int DEFAULT NULL) RETURNS bigint
AS 'MODULE_PATHNAME', 'queue_redrive' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_redrive(text, text, int) IS
'Moves dead letters of a consumer group, oldest first, back to the end of the partition that each comes from, at COMMIT. They keep id, headers and dedup id (which is not looked at again), their attempts begin anew, and every consumer group of the queue gets them. A partition that is gone meanwhile is made anew under its name. consumer_group: NULL or '''' = the default group. batch: at most so many messages, NULL = all; a transaction holds no more than qlog.max_transaction_bytes. Neither queue_pause() nor max_bytes hold them up. Another call for the same group waits until the transaction ends, so none is moved twice. Letters whose payload could not be read stay, with a WARNING. Returns how many. Errors: 42704 no such queue or group, 42501 without the privilege manage, 22004 NULL queue, 22023 batch below 1, 54000, 53100, 53200, XX001 damaged file, 25006.';

CREATE FUNCTION queue_purge_dead(queue text, consumer_group text DEFAULT NULL) RETURNS bigint
AS 'MODULE_PATHNAME', 'queue_purge_dead' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_purge_dead(text, text) IS
'Removes the dead letters of a consumer group, at COMMIT; those that come meanwhile stay. consumer_group: NULL or '''' = the default group. Another call of it or of queue_redrive() for the same group waits until the transaction ends. Returns how many. Errors: 42704 no such queue or group, 42501 without the privilege manage, 22004 NULL queue, 53200, 25006.';

CREATE FUNCTION queue_renew(lease_id bigint, lease interval DEFAULT NULL) RETURNS timestamptz
AS 'MODULE_PATHNAME', 'queue_renew' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_renew(bigint, interval) IS
'Lets a lease run for this time from now on, at once. lease: NULL = the option of the queue. Returns the new end; NULL when the lease is gone. Errors: 55006 the lease belongs to a transaction of another session that is still open, 22004 NULL lease_id, 22023 lease out of range, 25006.';

CREATE FUNCTION queue_peek(queue text, partition text DEFAULT NULL, from_position bigint DEFAULT NULL, from_time timestamptz DEFAULT NULL, batch int DEFAULT 10)
RETURNS TABLE (message_id uuid, partition text, "position" bigint, attempt int, payload json, payload_bytes bytea, headers json,
               dedup_id text, pushed_at timestamptz)
AS 'MODULE_PATHNAME', 'queue_peek' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 10;
COMMENT ON FUNCTION queue_peek(text, text, bigint, timestamptz, int) IS
'Shows messages and takes nothing. Without a position or a time: what is still to be done, leased messages included; with one: everything that is kept from there on. partition: NULL = all, '''' = the default one; a position needs one. batch: at most so many. Allowed in read-only transactions. Errors: 42704, 42501, 22004, 22023 batch or position out of range, XX001 damaged file.';

CREATE FUNCTION queue_peek_message(queue text, message_id uuid)
RETURNS TABLE (message_id uuid, partition text, "position" bigint, attempt int, payload json, payload_bytes bytea, headers json,
               dedup_id text, pushed_at timestamptz)
AS 'MODULE_PATHNAME', 'queue_peek_message' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1;
COMMENT ON FUNCTION queue_peek_message(text, uuid) IS
'Shows one message of the queue by its id, done or not, as long as it is kept; no row when there is none. attempt: NULL when the default group is done with it. position: NULL while the message is delayed; partition is then the one that it will enter. Searches the log from the time on at which the id was made: quick for a young message, a walk over all younger ones for an id that is not there. Allowed in read-only transactions. Errors: 42704, 42501, 22004 NULL argument, XX001 damaged file.';

CREATE FUNCTION queue_transaction(operations jsonb) RETURNS jsonb
AS 'MODULE_PATHNAME', 'queue_transaction' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_transaction(jsonb) IS
'Pushes and acknowledgements over any queues in one call, all or nothing, at COMMIT. operations: an array of {"op": "push", "queue": ..., "payload": ..., "partition": ..., "headers": ..., "dedup_id": ..., "deliver_at": ...} and {"op": "ack", "lease_id": "...", "message_ids": [...]}; a lease id may be a string, since JSON numbers lose digits in many clients. Returns an array with a result for each: {"op": "push", "message_id": ...} or {"op": "ack", "acked": n}. Errors: 22023 naming the operation, 23505 when a dedup id has been pushed before, 40001 when an ack finds nothing to acknowledge (none of the operations is done), and those of queue_push and queue_ack.';

-- Consumer groups

CREATE FUNCTION queue_subscribe(queue text, consumer_group text, start_at text DEFAULT 'new') RETURNS boolean
AS 'MODULE_PATHNAME', 'queue_subscribe' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_subscribe(text, text, text) IS
'Makes a consumer group, which reads the whole queue on its own, at COMMIT. start_at: new (NULL) = it gets what is pushed from then on, exactly: no message of a transaction that committed before it, or with it, and every one that takes its position after it; oldest = everything that is kept; a timestamp = what was pushed then or later. Costs the same whatever the number of partitions. Returns false when the group exists already, which stays as it is. Needs the privilege manage. Errors: 42704 no such queue, 42501, 22004 NULL queue or group, 42602, 42622 name, 22007 start_at is no timestamp, 54000 more than 64 groups, 53200, 25006.';

CREATE FUNCTION queue_unsubscribe(queue text, consumer_group text) RETURNS boolean
AS 'MODULE_PATHNAME', 'queue_unsubscribe' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_unsubscribe(text, text) IS
'Drops a consumer group at COMMIT: its leases end without an answer (later ones of them return 0, or fail with 40001 at COMMIT) and its dead letters go. The default group, named by the empty string, can be dropped too; a pop without a group makes it again. Returns false when there is no such group. Needs the privilege manage. Errors: 42704 no such queue, 42501, 22004 NULL queue or group, 42602, 42622 name, 25006.';

CREATE FUNCTION queue_seek(queue text, consumer_group text, partition text DEFAULT NULL, to_position bigint DEFAULT NULL,
                           to_time timestamptz DEFAULT NULL, to_end boolean DEFAULT false) RETURNS void
AS 'MODULE_PATHNAME', 'queue_seek' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_seek(text, text, text, bigint, timestamptz, boolean) IS
'Lets a consumer group go on from elsewhere, at COMMIT: from a position, from the first message pushed at a time or later, or from behind the last one. consumer_group: '''' = the default one. partition: NULL = all of them, '''' = the default one. A position or time before the first message kept means that one, one beyond the last means the end. Messages delivered before are delivered again, their attempts count anew. Leases of the group on what is sought end without an answer: later ones of them return 0, or fail with 40001 at COMMIT. Costs the same whatever the number of partitions; pops look for the place in each of them when they come to it. Needs the privilege manage. Errors: 22023 not exactly one of to_position, to_time and to_end, or a negative position; 42704 no such queue, group or partition; 42501, 22004 NULL queue or group, 42602, 42622 name, 53200, XX001 damaged file, 25006.';

CREATE FUNCTION queue_purge(queue text, partition text DEFAULT NULL) RETURNS bigint
AS 'MODULE_PATHNAME', 'queue_purge' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION queue_purge(text, text) IS
'Takes the messages that wait in the queue, or in one of its partitions, out of it for all consumer groups, at COMMIT: they cannot be popped, peeked at or sought any more. Messages that a consumer holds stay leased, can be acknowledged, and come back when they are given back. What is pushed and not committed then stays, also what this transaction pushes; so do dead letters and delayed messages. partition: NULL = all, '''' = the default one. Returns how many messages waited when it was called, in the group with most of them. Costs the same whatever the number of partitions. Needs the privilege manage. Errors: 42704 no such queue, 42501, 22004 NULL queue, 42602, 42622 name, 25006.';

-- Views

CREATE FUNCTION qlog_queues(OUT queue text, OUT owner regrole, OUT options jsonb, OUT acl aclitem[], OUT created_at timestamptz,
                            OUT log_id bigint, OUT directory text, OUT partitions bigint, OUT damage text, OUT paused text) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_queues' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION qlog_queues() IS 'Rows of the view qlog_queues.';
CREATE VIEW qlog_queues AS SELECT * FROM qlog_queues();
COMMENT ON VIEW qlog_queues IS
'Queues of this database that the role has a privilege on (pg_monitor: all), with the uncommitted changes of the transaction: owner, options that were set, privileges (NULL = the owner''s alone; in the letters of PostgreSQL a is push, r is pop, w is manage), time of the creation (NULL = not committed yet), log id, directory below qlog.data_directory, number of partitions, where it is damaged (NULL = in service), and which side is paused: push, pop, both or NULL.';

CREATE FUNCTION qlog_stat_queues(OUT queue text, OUT ready bigint, OUT leased bigint, OUT delayed bigint, OUT dead bigint,
                                 OUT pushed bigint, OUT popped bigint, OUT acked bigint, OUT nacked bigint, OUT expired bigint,
                                 OUT deduplicated bigint, OUT oldest_ready_age interval, OUT bytes bigint,
                                 OUT last_push timestamptz, OUT last_pop timestamptz, OUT waiting bigint, OUT wakeups bigint,
                                 OUT live_bytes bigint, OUT dropped bigint, OUT removed_unread bigint) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_stat_queues' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION qlog_stat_queues() IS 'Rows of the view qlog_stat_queues.';
CREATE VIEW qlog_stat_queues AS SELECT * FROM qlog_stat_queues();
COMMENT ON VIEW qlog_stat_queues IS
'Counters of the queues that the role may use. Messages now, summed over the consumer groups: ready, leased, delayed (given back with a retry time that has not come; once each those pushed for later), dead. Since the queue was made: pushed, popped (deliveries), acked, nacked, expired, deduplicated (pushes that a dedup id answered). oldest_ready_age: age of the message that the next pop takes first. bytes: size of its log, which it may share (qlog.shards). last_push: the last message written, also one that was due or became a dead letter. waiting: sessions that wait in queue_pop() or queue_wait() now; wakeups: how often one of them was woken since the server started. live_bytes: of messages that are not done, dead letters included, and of what is about to be committed: what the option max_bytes limits. Exact while messages come in and when none is left, an estimate in between. dropped: messages that retry_limit or queue_reject() took out of a queue with the option dead_letters off, removed_unread: those that the options retention and retention_bytes removed before every consumer group had finished them (as the group counts that is furthest behind), both since it was made. Cheap enough to be read every second.';

CREATE FUNCTION qlog_stat_partitions(OUT queue text, OUT partition text, OUT first_position bigint, OUT next_position bigint,
                                     OUT ready bigint, OUT bytes bigint, OUT last_push timestamptz, OUT blocked_by_pid int,
                                     OUT blocked_since timestamptz) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_stat_partitions' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1000;
COMMENT ON FUNCTION qlog_stat_partitions() IS 'Rows of the view qlog_stat_partitions.';
CREATE VIEW qlog_stat_partitions AS SELECT * FROM qlog_stat_partitions();
COMMENT ON VIEW qlog_stat_partitions IS
'Partitions of the queues that the role may use; the default one is named by the empty string. first_position: the lowest position that is kept, to which queue_seek() can go back; next_position: that of the next message. ready: messages that wait, summed over the consumer groups. bytes: of all its message records since it was made. blocked_by_pid, blocked_since: the process and time of a transaction that has logged messages, has not finished its commit and holds up the messages pushed to the partition after them; NULL = there is none, or it is from before a crash and about to be decided.';

CREATE FUNCTION qlog_stat_consumer_groups(OUT queue text, OUT consumer_group text, OUT lag bigint, OUT leased bigint,
                                          OUT oldest_unacked_age interval, OUT acked bigint, OUT redelivered bigint,
                                          OUT last_pop timestamptz, OUT full_partitions bigint) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_stat_consumer_groups' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION qlog_stat_consumer_groups() IS 'Rows of the view qlog_stat_consumer_groups.';
CREATE VIEW qlog_stat_consumer_groups AS SELECT * FROM qlog_stat_consumer_groups();
COMMENT ON VIEW qlog_stat_consumer_groups IS
'Consumer groups of the queues that the role may use; the default one is named by the empty string. lag: messages that the group has not finished (dead letters are finished, delayed messages have not come): exact, but for the first moments of a group that begins at a time or was sought to one or to a position, when everything counts in partitions that have not been looked at yet. leased: of these, held by consumers. oldest_unacked_age: age of the oldest of them, exact for queues of up to 64 partitions, otherwise of what its next pop takes first or of its oldest lease. acked: messages acknowledged, redelivered: deliveries after the first one of a message, both since the group was made. last_pop: its last delivery. full_partitions: partitions of which it has qlog.max_leases_per_cursor messages leased or waiting for a retry: until some of these are finished, nothing new is delivered from them. Costs the same whatever the number of partitions.';

CREATE FUNCTION qlog_leases(OUT lease_id bigint, OUT queue text, OUT consumer_group text, OUT partition text, OUT messages bigint,
                            OUT pid int, OUT leased_at timestamptz, OUT leased_until timestamptz, OUT in_transaction boolean) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_leases' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION qlog_leases() IS 'Rows of the view qlog_leases.';
CREATE VIEW qlog_leases AS SELECT * FROM qlog_leases();
COMMENT ON VIEW qlog_leases IS
'Leases on messages of queues that the role may use. consumer_group and partition: the default ones are named by the empty string. pid: the backend whose transaction took it and is still open. in_transaction: it cannot expire now, and leased_until is NULL.';

CREATE FUNCTION qlog_dead_letters(OUT queue text, OUT consumer_group text, OUT partition text, OUT "position" bigint, OUT message_id uuid,
                                  OUT attempts int, OUT reason text, OUT died_at timestamptz, OUT payload json, OUT payload_bytes bytea,
                                  OUT headers json) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_dead_letters' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1000;
COMMENT ON FUNCTION qlog_dead_letters() IS 'Rows of the view qlog_dead_letters.';
CREATE VIEW qlog_dead_letters AS SELECT * FROM qlog_dead_letters();
COMMENT ON VIEW qlog_dead_letters IS
'Dead letters of queues that the role may use, oldest first in each consumer group (the default one is named by the empty string). partition and position: where the message was. attempts: how often it was delivered. reason: what its consumer said in queue_reject() or queue_nack(), otherwise what happened to it. died_at: when it became a dead letter. payload, payload_bytes, headers: NULL for roles without the privilege pop. A message whose record was damaged is here without id and payload, and reason tells the file and the place. Reads every letter of these queues.';

CREATE FUNCTION qlog_stat_log(OUT entries bigint, OUT bytes bigint, OUT fsyncs bigint, OUT fsync_time double precision,
                              OUT group_size_avg double precision, OUT group_size_max bigint, OUT waits bigint, OUT durable_seq bigint,
                              OUT checkpoint_seq bigint, OUT checkpoints bigint, OUT state_memory_used bigint, OUT state_memory_limit bigint,
                              OUT index_memory_used bigint, OUT index_memory_limit bigint, OUT disk_free bigint,
                              OUT disk_reserve bigint, OUT pushes_refused boolean, OUT stats_reset timestamptz) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_stat_log' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1;
COMMENT ON FUNCTION qlog_stat_log() IS 'The row of the view qlog_stat_log.';
CREATE VIEW qlog_stat_log AS SELECT * FROM qlog_stat_log();
COMMENT ON VIEW qlog_stat_log IS
'The log of the server since its start, or since qlog_stat_reset(): entries, bytes, syncs and milliseconds spent in them (qlog.track_timing), entries made durable by one flush, waits for the flush of another, newest durable and checkpointed entry; memory in use; bytes free on the file system of qlog.data_directory, qlog.journal_directory and qlog.checkpoint_directory that has the fewest, bytes of the reserve that are left there (qlog.disk_reserve), and whether pushes are refused for lack of room (qlog.disk_high_pct, or the reserve or the checkpoint store is short); stats_reset: when qlog_stat_reset() was called last (NULL = not since the start).';

CREATE FUNCTION qlog_stat_reset() RETURNS void
AS 'MODULE_PATHNAME', 'qlog_stat_reset' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION qlog_stat_reset() IS
'Begins the counters of the view qlog_stat_log anew, at once. Those of queues and consumer groups count from when these were made, and stay. For superusers. Errors: 57P03 still recovering, XX001 out of service, 25006 on a standby, 55000 library not preloaded.';

CREATE FUNCTION qlog_stat_workers(OUT role text, OUT pid int, OUT state text, OUT last_error text, OUT restarts bigint,
                                  OUT passes bigint, OUT last_pass_at timestamptz, OUT last_pass_time double precision) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_stat_workers' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 7;
COMMENT ON FUNCTION qlog_stat_workers() IS 'Rows of the view qlog_stat_workers.';
CREATE VIEW qlog_stat_workers AS SELECT * FROM qlog_stat_workers();
COMMENT ON VIEW qlog_stat_workers IS
'Background workers of qlog: what each does (idle: nothing; waiting: the checkpointer, until qlog.checkpoint_timeout is over; on guard: a guard, in a term of qlog.log_flush_interval), its last error (NULL = none since it last succeeded), restarts, passes and milliseconds of the last one. Works while qlog is recovering or out of service, and says why.';

CREATE FUNCTION qlog_files(OUT queue text, OUT file text, OUT bytes bigint, OUT live_bytes bigint, OUT records bigint,
                           OUT oldest timestamptz, OUT newest timestamptz, OUT state text, OUT held_by text) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_files_view' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 100;
COMMENT ON FUNCTION qlog_files() IS 'Rows of the view qlog_files. Errors: 53200 out of memory.';
CREATE VIEW qlog_files AS SELECT * FROM qlog_files();
COMMENT ON VIEW qlog_files IS
'Log files of this database''s queues, and of the system log and shared logs (queue is NULL): path below qlog.data_directory, bytes on disk, message records, time of the first record and a time after which it holds none, and whether the file is active, closed, or made ahead. live_bytes: bytes of records that are still needed; NULL where they cannot be told, as the file is damaged or made ahead. held_by: why the file is there: active (also made ahead), messages, leases, dead letters, delayed messages, dedup ids (within dedup_window), damaged queue, damage (the file cannot be read through), unknown records, base backup (one runs), reclaim (nothing is needed, the next pass of the reclaim worker takes it unless qlog.keep_old_files keeps it). Reads the index of every file.';

CREATE FUNCTION qlog_stat_progress_reclaim(OUT pid int, OUT phase text, OUT done bigint, OUT total bigint, OUT started_at timestamptz) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_stat_progress_reclaim' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1;
COMMENT ON FUNCTION qlog_stat_progress_reclaim() IS 'The row of the view qlog_stat_progress_reclaim.';
CREATE VIEW qlog_stat_progress_reclaim AS SELECT * FROM qlog_stat_progress_reclaim();
COMMENT ON VIEW qlog_stat_progress_reclaim IS
'The pass of the reclaim worker that is running, no row when none is: looking (files looked at, and how many the pass looks at), copying, deleting (files done, and how many there are), since when. The last pass: qlog_stat_workers.';

-- Damage

CREATE FUNCTION qlog_verify(queue text DEFAULT NULL, deep boolean DEFAULT false, OUT queue text, OUT file text, OUT "position" bigint, OUT bytes bigint,
                            OUT partition text, OUT first_position bigint, OUT messages bigint, OUT finding text) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_verify' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 10;
COMMENT ON FUNCTION qlog_verify(text, boolean) IS
'Reads the log files of a queue, or (NULL) those of all queues of this database, the system log and the snapshots, and returns one row for each thing that is wrong; none = all is well. Every record is checked by its checksum; messages that a queue should have and no file has are found too: a file that is gone, empty or cut short. deep: true also unpacks and decodes every message. file, position, bytes: a damaged place; partition, first_position, messages: messages that cannot be read; finding: what is wrong. Changes nothing; qlog_stat_progress_verify shows how far it is. For members of pg_monitor. Errors: 42704 no such queue, 58030 a file cannot be read, 57P03 still recovering, XX001 out of service.';

CREATE FUNCTION qlog_repair(queue text, dry_run boolean DEFAULT true, OUT queue text, OUT file text, OUT "position" bigint, OUT bytes bigint,
                            OUT partition text, OUT first_position bigint, OUT messages bigint, OUT action text) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_repair' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 10;
COMMENT ON FUNCTION qlog_repair(text, boolean) IS
'Gives up the messages of a queue that cannot be read, and brings it back into service: one row for each damaged place and each run of lost messages. queue NULL, while the start of qlog is refused for damage: says why, and what would have to be given up so that it starts: entries from one on, in all logs, as if the server had died before it, with the messages in them; logs whose files are gone. dry_run (the default, and NULL): only says what would be done; false with NULL: starts once more, giving up that and nothing else, and waits for it. Damaged bytes are kept beside the file as *.bad.POSITION, entries as *.cut.NUMBER. What is done stays done when the transaction is rolled back. Waits while a base backup runs. For superusers. Errors: 42704 no such queue, 22004 NULL queue while qlog serves, XX001 giving up does not help or the start is refused again, 53100 or 53200 no room for what is logged, 58030 a file cannot be read or written, 25006 read-only.';

CREATE FUNCTION qlog_stat_progress_verify(OUT pid int, OUT what text, OUT file text, OUT files_done bigint, OUT files_total bigint,
                                          OUT bytes_done bigint, OUT bytes_total bigint, OUT findings bigint, OUT started_at timestamptz) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_stat_progress_verify' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 2;
COMMENT ON FUNCTION qlog_stat_progress_verify() IS 'Rows of the view qlog_stat_progress_verify.';
CREATE VIEW qlog_stat_progress_verify AS SELECT * FROM qlog_stat_progress_verify();
COMMENT ON VIEW qlog_stat_progress_verify IS
'Each qlog_verify and qlog_repair that runs: process, verify or repair, the file it reads, files and bytes read and in all, findings so far, when it began.';

CREATE FUNCTION qlog_damage(OUT queue text, OUT file text, OUT "position" bigint, OUT bytes bigint, OUT finding text, OUT needed boolean,
                            OUT out_of_service boolean, OUT found_at timestamptz) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'qlog_damage' LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 2;
COMMENT ON FUNCTION qlog_damage() IS 'Rows of the view qlog_damage.';
CREATE VIEW qlog_damage AS SELECT * FROM qlog_damage();
COMMENT ON VIEW qlog_damage IS
'Damaged places of log files, and messages that are in no file (file is NULL), that the scrub worker or a pop has found since the server started, and the first one of each queue that is out of service: queue (NULL when several share the log, or for the system log), file, byte, length (NULL = not known), what is wrong, whether something needed stood there, whether a queue of the log is out of service, when it was found (NULL = before this start).';

CREATE FUNCTION qlog_checkpoint(snapshot boolean DEFAULT false) RETURNS bigint
AS 'MODULE_PATHNAME', 'qlog_checkpoint' LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION qlog_checkpoint(boolean) IS
'Stores the state of all queues now, which is done every qlog.checkpoint_timeout anyway. snapshot: true also copies what was stored into a file below snapshots/ of qlog.data_directory, which a start uses when the store is damaged, lost, or in a copy does not fit the logs; the two newest are kept; NULL means false. Returns the number of the newest log entry that the store covers. Waits while a base backup runs. For members of pg_checkpoint. Errors: 58030 it could not be written (the DETAIL says why), 57P03 still recovering, XX001 out of service, 25006 on a standby, 55000 library not preloaded.';

-- For exporters

CREATE VIEW qlog_metrics AS
SELECT 'qlog_queue_' || m.name AS metric, jsonb_build_object('database', current_database(), 'queue', q.queue) AS labels, m.value
FROM qlog_stat_queues() AS q CROSS JOIN LATERAL (VALUES
     ('ready', q.ready::double precision), ('leased', q.leased), ('delayed', q.delayed), ('dead', q.dead),
     ('pushed_total', q.pushed), ('popped_total', q.popped), ('acked_total', q.acked), ('nacked_total', q.nacked),
     ('expired_total', q.expired), ('deduplicated_total', q.deduplicated), ('dropped_total', q.dropped),
     ('removed_unread_total', q.removed_unread), ('waiting', q.waiting), ('wakeups_total', q.wakeups),
     ('oldest_ready_age_seconds', extract(epoch FROM q.oldest_ready_age)), ('bytes', q.bytes), ('live_bytes', q.live_bytes),
     ('last_push_timestamp_seconds', extract(epoch FROM q.last_push)),
     ('last_pop_timestamp_seconds', extract(epoch FROM q.last_pop))) AS m (name, value)
WHERE m.value IS NOT NULL
UNION ALL
SELECT 'qlog_group_' || m.name,
       jsonb_build_object('database', current_database(), 'queue', g.queue, 'consumer_group', g.consumer_group), m.value
FROM qlog_stat_consumer_groups() AS g CROSS JOIN LATERAL (VALUES
     ('lag', g.lag::double precision), ('leased', g.leased), ('acked_total', g.acked), ('redelivered_total', g.redelivered),
     ('full_partitions', g.full_partitions), ('oldest_unacked_age_seconds', extract(epoch FROM g.oldest_unacked_age)),
     ('last_pop_timestamp_seconds', extract(epoch FROM g.last_pop))) AS m (name, value)
WHERE m.value IS NOT NULL
UNION ALL
SELECT 'qlog_log_' || m.name, '{}', m.value
FROM qlog_stat_log() AS l CROSS JOIN LATERAL (VALUES
     ('entries_total', l.entries::double precision), ('bytes_total', l.bytes), ('fsyncs_total', l.fsyncs),
     ('fsync_seconds_total', l.fsync_time / 1000), ('group_size_avg', l.group_size_avg), ('group_size_max', l.group_size_max),
     ('waits_total', l.waits), ('durable_seq', l.durable_seq), ('checkpoint_seq', l.checkpoint_seq),
     ('checkpoints_total', l.checkpoints), ('state_memory_used_bytes', l.state_memory_used),
     ('state_memory_limit_bytes', l.state_memory_limit), ('index_memory_used_bytes', l.index_memory_used),
     ('index_memory_limit_bytes', l.index_memory_limit), ('disk_free_bytes', l.disk_free),
     ('disk_reserve_bytes', l.disk_reserve), ('pushes_refused', l.pushes_refused::int)) AS m (name, value)
WHERE m.value IS NOT NULL
UNION ALL
SELECT 'qlog_worker_' || m.name, jsonb_build_object('role', w.role), m.value
FROM qlog_stat_workers() AS w CROSS JOIN LATERAL (VALUES
     ('up', (w.pid IS NOT NULL)::int::double precision), ('failing', (w.last_error IS NOT NULL)::int),
     ('restarts_total', w.restarts), ('passes_total', w.passes), ('last_pass_seconds', w.last_pass_time / 1000),
     ('last_pass_timestamp_seconds', extract(epoch FROM w.last_pass_at))) AS m (name, value)
WHERE m.value IS NOT NULL;
COMMENT ON VIEW qlog_metrics IS
'What the views qlog_stat_queues and qlog_stat_consumer_groups (of this database), qlog_stat_log and qlog_stat_workers (of the server) tell, one figure a row, for any exporter. metric: qlog_queue_*, qlog_group_*, qlog_log_* or qlog_worker_*; those that end with _total only grow, until a restart or for ever, as the view says. labels: database and queue, consumer_group (empty = the default one), or role. value: messages, bytes, seconds, Unix times, or 1 and 0 for yes and no; what the view has no value for is left out. For members of pg_monitor. Cheap enough to be read every second.';

-- What concerns the whole server is for monitoring roles.
REVOKE ALL ON FUNCTION qlog_stat_log(), qlog_stat_workers(), qlog_files(), qlog_stat_progress_reclaim() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION qlog_stat_log(), qlog_stat_workers(), qlog_files(), qlog_stat_progress_reclaim() TO pg_monitor;
REVOKE ALL ON FUNCTION qlog_verify(text, boolean), qlog_repair(text, boolean), qlog_stat_progress_verify(), qlog_damage() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION qlog_verify(text, boolean), qlog_stat_progress_verify(), qlog_damage() TO pg_monitor;
GRANT SELECT ON qlog_stat_progress_verify, qlog_damage TO pg_monitor;
REVOKE ALL ON FUNCTION qlog_checkpoint(boolean), qlog_stat_reset() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION qlog_checkpoint(boolean) TO pg_checkpoint;
GRANT SELECT ON qlog_queues, qlog_stat_queues, qlog_stat_partitions, qlog_stat_consumer_groups, qlog_leases, qlog_dead_letters TO PUBLIC;
GRANT SELECT ON qlog_stat_log, qlog_stat_workers, qlog_files, qlog_stat_progress_reclaim, qlog_metrics TO pg_monitor;
