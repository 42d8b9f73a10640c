"""Checks exports of Countersign with packages that others wrote: scitt-cose and ocsf-pydantic.

    check.py scitt FILE PEM             verifies a statement and its receipt
    check.py receipt FILE PEM LEAF      verifies a receipt for the leaf in a file
    check.py ocsf FILE                  reads each line as an event; unknown members are faults

Writes one JSON value to stdout. Exit code 1: a check failed.
"""

import json
import sys
from pathlib import Path


def scitt(file, pem):
    from scitt_cose import extract_receipts, parse_signed_statement

    message, key = Path(file).read_bytes(), Path(pem).read_bytes()
    statement = parse_signed_statement(message, public_key_pem=key)
    receipts = extract_receipts(message)
    payload = statement["payload"] or b""
    return {
        "verified": statement["signature_verified"],
        "issuer": statement["issuer"],
        "subject": statement["subject"],
        "content_type": statement["content_type"],
        "record": json.loads(payload or b"null"),
        "receipts": [proved(receipt, payload, key) for receipt in receipts],
    }


def proved(message, leaf, key):
    from scitt_cose import verify_receipt

    result = verify_receipt(message, leaf_entry_hex=leaf.hex(), log_public_key_pem=key)
    return {
        "ok": result.ok,
        "root": result.root,
        "tree_size": result.tree_size,
        "leaf_index": result.leaf_index,
        "issuer": result.issuer,
        "subject": result.subject,
        "kid": (result.protected_header_ext.get(4) or b"").hex(),
        "errors": result.errors,
    }


def receipt(file, pem, leaf):
    message, key = Path(file).read_bytes(), Path(pem).read_bytes()
    return proved(message, Path(leaf).read_bytes(), key)


def ocsf(file):
    from ocsf.events.application.api import APIActivity

    faults, count = [], 0
    for line in Path(file).read_text().splitlines():
        event, count = json.loads(line), count + 1
        known = json.loads(APIActivity(**event).model_dump_json(exclude_unset=True))
        faults += [f"line {count}: {fault}" for fault in lost(event, known, "")]
    return {"events": count, "faults": faults}


def lost(given, known, at):
    """Members that the schema does not know, and values that it reads as others."""
    if isinstance(given, dict) and isinstance(known, dict):
        for name, value in given.items():
            if name not in known:
                yield f"{at}/{name} is unknown"
            else:
                yield from lost(value, known[name], f"{at}/{name}")
    elif isinstance(given, list) and isinstance(known, list) and len(given) == len(known):
        for index, (value, other) in enumerate(zip(given, known)):
            yield from lost(value, other, f"{at}/{index}")
    elif given != known:
        yield f"{at} is read as {known!r}"


def main():
    commands = {"scitt": scitt, "receipt": receipt, "ocsf": ocsf}
    json.dump(commands[sys.argv[1]](*sys.argv[2:]), sys.stdout)


if __name__ == "__main__":
    main()
