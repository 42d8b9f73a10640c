-- What waits for somebody until a moment, of all users: counted without looking at the rest.
CREATE INDEX document_open ON document_entry (collection, value) WHERE name = '$open';
