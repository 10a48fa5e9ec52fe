-- A register per role, guarded by the token, and one that is not.
CREATE TABLE guarded   (role int PRIMARY KEY, token bigint NOT NULL, value bigint NOT NULL);
CREATE TABLE unguarded (role int PRIMARY KEY, token bigint NOT NULL, value bigint NOT NULL, highest bigint NOT NULL);
-- Every write in the order of the store. It is not used to decide anything.
CREATE TABLE log (
  serial   bigserial PRIMARY KEY,
  role     int     NOT NULL,
  token    bigint  NOT NULL,
  value    bigint  NOT NULL,
  member   text    NOT NULL,
  accepted boolean NOT NULL,
  stale    boolean NOT NULL -- a greater token had written to the unguarded register
);

-- The first statement is the guard, as an application has it: nothing is locked
-- before it. The row of the unguarded register is locked from the second one to
-- the end of the transaction, and where the guard accepted, so is that of the
-- guarded one from the first: the serial numbers of a role are in the order of
-- both.
CREATE FUNCTION write_role(r int, t bigint, v bigint, m text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  ok      boolean;
  highest bigint;
BEGIN
  UPDATE guarded SET token = t, value = v WHERE role = r AND token <= t;
  ok := FOUND;
  UPDATE unguarded u SET token = t, value = v, highest = greatest(u.highest, t)
    WHERE role = r RETURNING u.highest INTO STRICT highest;
  INSERT INTO log (role, token, value, member, accepted, stale) VALUES (r, t, v, m, ok, t < highest);
  RETURN ok;
END $$;

-- A write in a transaction that another row guards: it looks at no token. The row of the
-- register is locked first, so that serial numbers are in the order of its values.
CREATE FUNCTION write_held(r int, t bigint, v bigint, m text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  highest bigint;
BEGIN
  UPDATE guarded SET token = t, value = v WHERE role = r;
  UPDATE unguarded u SET token = t, value = v, highest = greatest(u.highest, t)
    WHERE role = r RETURNING u.highest INTO STRICT highest;
  INSERT INTO log (role, token, value, member, accepted, stale) VALUES (r, t, v, m, true, t < highest);
END $$;
