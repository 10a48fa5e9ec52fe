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
	PRIMARY KEY (slot, id)
);

CREATE INDEX IF NOT EXISTS outbox_failed ON outbox (slot, key) WHERE failed IS NOT NULL;

-- The order of commits is neither that of a sequence nor that of transaction ids: a
-- transaction takes its number, and may commit after another one that took a later number.
-- So a transaction that inserts a key keeps a lock for it until it has committed, and takes the
-- number only when it has the lock. Of two transactions with the same key, the later number is
-- then the later commit. The lock is one of 4,096, so that a transaction with a million keys
-- does not fill the server's table of locks.
CREATE OR REPLACE FUNCTION outbox_order() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	digest bytea  := sha256(convert_to(NEW.key, 'UTF8'));
	high   bigint := ('x' || encode(substr(digest, 1, 4), 'hex'))::bit(32)::bigint;
	low    bigint := ('x' || encode(substr(digest, 5, 4), 'hex'))::bit(32)::bigint;
	slots  bigint := TG_ARGV[0]::bigint;
BEGIN
	PERFORM pg_advisory_xact_lock(1852140649, (low & 4095)::int);
	NEW.id := nextval(format('%I.outbox_id', TG_TABLE_SCHEMA)); -- the schema need not be in the session's search_path
	NEW.slot := ((high % slots) * (4294967296 % slots) + low % slots) % slots; -- neli.Slot(key, slots)
	NEW.failed := NULL;
	RETURN NEW;
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
