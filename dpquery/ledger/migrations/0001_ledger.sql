-- The tables of a ledger, in the schema that the connection's search_path names first. Columns as in formats.py; text is compared by its bytes.
CREATE TABLE entries (
    seq bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    event text COLLATE "C" NOT NULL,
    ref text COLLATE "C" UNIQUE,
    body text COLLATE "C" NOT NULL,
    link text COLLATE "C" NOT NULL
);
CREATE INDEX registered ON entries (seq) WHERE event = 'registered';
CREATE INDEX balanced ON entries (seq) WHERE event = 'balanced';

CREATE TABLE accounts (
    key text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    member_of text COLLATE "C",
    tested integer NOT NULL,
    cap_epsilon text COLLATE "C" NOT NULL,
    cap_delta text COLLATE "C" NOT NULL,
    largest_epsilon text COLLATE "C" NOT NULL,
    largest_delta text COLLATE "C" NOT NULL,
    delta_conv text COLLATE "C" NOT NULL,
    epsilon text COLLATE "C" NOT NULL,
    rho text COLLATE "C" NOT NULL,
    delta text COLLATE "C" NOT NULL,
    entries bigint NOT NULL,
    timeouts bigint NOT NULL,
    strikes bigint NOT NULL,
    granted_epsilon text COLLATE "C" NOT NULL,
    granted_delta text COLLATE "C" NOT NULL,
    periods text COLLATE "C"
);

CREATE TABLE secret (name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE seen (identity text COLLATE "C" PRIMARY KEY, line text COLLATE "C" NOT NULL);
CREATE TABLE stored (entry text COLLATE "C" PRIMARY KEY, question text COLLATE "C" NOT NULL, content bytea NOT NULL);
CREATE INDEX questions ON stored (question);
CREATE TABLE shown (
    entry text COLLATE "C" NOT NULL,
    account text COLLATE "C" NOT NULL,
    line text COLLATE "C" NOT NULL,
    PRIMARY KEY (entry, account)
);

-- Whoever writes locks this table first: it holds nothing.
CREATE TABLE turn ();

CREATE FUNCTION only_grows() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the log only grows, and accounts stay'; END $$;
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION only_grows();
CREATE TRIGGER accounts_keep BEFORE DELETE OR TRUNCATE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION only_grows();
