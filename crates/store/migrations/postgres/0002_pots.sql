-- Pots of money, and what was set aside for calls that have not ended. Amounts are whole numbers of the
-- smallest unit of their currency.

CREATE TABLE pot (
    -- empty where it is nobody's in particular
    user_id        text COLLATE "C" NOT NULL,
    name           text COLLATE "C" NOT NULL,
    -- which agent or session; empty where there is no such part
    holder         text COLLATE "C" NOT NULL,
    currency       text COLLATE "C" NOT NULL,
    -- 0 where there is only one window
    window_seconds bigint NOT NULL,
    -- seconds since 1970
    window_start   bigint NOT NULL,
    reserved       bigint NOT NULL,
    spent          bigint NOT NULL,
    PRIMARY KEY (user_id, name, holder, currency, window_seconds, window_start)
);

-- One row for each pot that a call draws on. It is removed when the call ends.
CREATE TABLE reservation (
    -- whose call it is
    user_id        text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    -- which of the call's draws, from 0
    n              integer NOT NULL,
    pot_user_id    text COLLATE "C" NOT NULL,
    name           text COLLATE "C" NOT NULL,
    holder         text COLLATE "C" NOT NULL,
    currency       text COLLATE "C" NOT NULL,
    window_seconds bigint NOT NULL,
    window_start   bigint NOT NULL,
    -- below zero: a refund
    amount         bigint NOT NULL,
    -- what a lost owner leaves: 0 nothing, 1 the amount, 2 what its claim says
    lapse          smallint NOT NULL,
    lease_until    timestamptz NOT NULL,
    -- the claim that it was made with
    tool           text COLLATE "C",
    key_digest     bytea,
    attempt        bigint,
    PRIMARY KEY (user_id, id, n)
);
CREATE INDEX reservation_lease ON reservation (lease_until);
CREATE INDEX reservation_claim ON reservation (user_id, tool, key_digest) WHERE key_digest IS NOT NULL;
