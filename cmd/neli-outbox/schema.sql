-- The table that applications insert into, in the transaction that changes their own tables:
--   INSERT INTO outbox (topic, key, payload, headers) VALUES ('orders', 'order 17', '…', '{"type":"paid"}')
CREATE SEQUENCE IF NOT EXISTS outbox_id;

CREATE TABLE IF NOT EXISTS outbox (
	slot    int         NOT NULL, -- the role that publishes it; set by the trigger
	id      bigint      NOT NULL, -- the place in its key's order; set by the trigger
	topic   text        NOT NULL CHECK (topic <> ''),
	key     text        NOT NULL,
	payload bytea,                -- NULL is a tombstone
	headers jsonb CHECK (jsonb_typeof(headers) = 'object'),
	created timestamptz NOT NULL DEFAULT now() CHECK (isfinite(created)), -- the time of the record
	failed  text,                 -- why it was set aside, and its key waits
	mark    bigint      NOT NULL DEFAULT 0, -- when it got its id, in microseconds since 1970; set by the trigger
	digest  bigint      NOT NULL DEFAULT 0, -- of the key; set by the trigger
	PRIMARY KEY (slot, id)
);

-- For a table of an earlier version.
ALTER TABLE outbox ADD COLUMN IF NOT EXISTS mark bigint NOT NULL DEFAULT 0, ADD COLUMN IF NOT EXISTS digest bigint NOT NULL DEFAULT 0;
UPDATE outbox SET mark = 1, digest = ('x' || encode(substr(sha256(convert_to(key, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint WHERE mark = 0;
DROP INDEX IF EXISTS outbox_failed;

-- A key can be longer than an entry of an index may be, so the index has its digest. If two keys have the same digest, the
-- second key waits, too, while a row of the first one is set aside.
CREATE INDEX IF NOT EXISTS outbox_aside ON outbox (slot, digest) WHERE failed IS NOT NULL;

-- The order of commits is neither that of a sequence nor that of transaction ids: a
-- transaction takes its number, and may commit after another one that took a later number.
-- So a transaction that inserts a key keeps a lock for it until it has committed, and takes the
-- number only when it has the lock. Of two transactions with the same key, the later number is
-- then the later commit. The lock is one of 4,096, so that a transaction with a million keys
-- does not fill the server's table of locks.
CREATE OR REPLACE FUNCTION outbox_order() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	digest bigint := ('x' || encode(substr(sha256(convert_to(coalesce(NEW.key, ''), 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint;
	high   bigint := (digest >> 32) & 4294967295;
	low    bigint := digest & 4294967295;
	slots  bigint := TG_ARGV[0]::bigint;
BEGIN
	PERFORM pg_advisory_xact_lock(1852140649, (low & 4095)::int);
	NEW.mark := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint; -- before the id, so that no mark is later than the row could be read
	NEW.id := nextval(format('%I.outbox_id', TG_TABLE_SCHEMA)); -- the schema need not be in the session's search_path
	NEW.slot := ((high % slots) * (4294967296 % slots) + low % slots) % slots; -- neli.Slot(key, slots)
	NEW.digest := digest;
	NEW.failed := NULL;
	RETURN NEW;
END $$;

-- Repairs a table whose ids went back: a relay that finds this holds the slot, and says what to type. All later ids are
-- above that one, and all rows get new ids, in their order.
CREATE OR REPLACE FUNCTION outbox_renumber(above bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	renumbered bigint;
BEGIN
	LOCK TABLE outbox IN SHARE ROW EXCLUSIVE MODE;
	PERFORM setval('outbox_id', greatest(above, (SELECT last_value FROM outbox_id), (SELECT max(id) FROM outbox)));
	UPDATE outbox SET id = new.id FROM (SELECT slot, id AS old, nextval('outbox_id') AS id
		FROM (SELECT slot, id FROM outbox ORDER BY mark, id) AS sorted) AS new
		WHERE outbox.slot = new.slot AND outbox.id = new.old;
	GET DIAGNOSTICS renumbered = ROW_COUNT;
	RETURN renumbered;
END $$;

-- The relays learn from this trigger how many slots there are.
CREATE OR REPLACE TRIGGER outbox_order BEFORE INSERT ON outbox
	FOR EACH ROW EXECUTE FUNCTION outbox_order('{{slots}}');

-- Wakes the relays. Without this trigger they see new rows when they next poll.
CREATE OR REPLACE FUNCTION outbox_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_notify('outbox', slot::text) FROM (SELECT DISTINCT slot FROM added) AS slots;
	RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER outbox_notify AFTER INSERT ON outbox
	REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION outbox_notify();
