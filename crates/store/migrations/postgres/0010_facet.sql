-- Records by code, by tool and by kind, each in the order of time: a rare one among a million is found without looking at
-- the others. Kind `call` is left out, because most records are of it.
CREATE INDEX record_code ON record (code, at_ns, id) WHERE code IS NOT NULL;
CREATE INDEX record_tool ON record (tool, at_ns, id) WHERE tool IS NOT NULL;
CREATE INDEX record_kind ON record (kind, at_ns, id) WHERE kind <> 'call';
