-- Pots of money, and what was set aside for calls that have not ended. Amounts are whole numbers of the
-- smallest unit of their currency.

CREATE TABLE pot (
    -- Empty where it is nobody's in particular.
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    -- Which agent or session; empty where there is no such part.
    holder TEXT NOT NULL,
    currency TEXT NOT NULL,
    -- 0 where there is only one window.
    window_seconds INTEGER NOT NULL,
    -- Seconds since 1970.
    window_start INTEGER NOT NULL,
    reserved INTEGER NOT NULL,
    spent INTEGER NOT NULL,
    PRIMARY KEY (user_id, name, holder, currency, window_seconds, window_start)
) STRICT, WITHOUT ROWID;

-- One row for each pot that a call draws on. It is removed when the call ends.
CREATE TABLE reservation (
    -- Whose call it is.
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    -- Which of the call's draws, from 0.
    n INTEGER NOT NULL,
    pot_user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    holder TEXT NOT NULL,
    currency TEXT NOT NULL,
    window_seconds INTEGER NOT NULL,
    window_start INTEGER NOT NULL,
    -- Below zero: a refund.
    amount INTEGER NOT NULL,
    -- What a lost owner leaves: 0 nothing, 1 the amount, 2 what its claim says.
    lapse INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    -- The claim that it was made with.
    tool TEXT,
    key BLOB,
    attempt INTEGER,
    PRIMARY KEY (user_id, id, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservation_lease ON reservation (lease_until);
CREATE INDEX reservation_claim ON reservation (user_id, tool, key) WHERE key IS NOT NULL;
