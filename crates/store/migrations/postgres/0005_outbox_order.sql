-- Records wait for the tree in the order in which they were kept: what a call links was there before the call, so it
-- comes first in the tree, whatever the clocks of the processes say.
CREATE TABLE outbox_in_order (
    seq     bigint GENERATED ALWAYS AS IDENTITY,
    user_id text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    PRIMARY KEY (seq)
);
INSERT INTO outbox_in_order (user_id, id)
    SELECT o.user_id, o.id FROM outbox o LEFT JOIN record r ON r.user_id = o.user_id AND r.id = o.id
    ORDER BY r.at_ns, o.id;
DROP TABLE outbox;
ALTER TABLE outbox_in_order RENAME TO outbox;
