#!/usr/bin/env python3
"""Checks an evidence bundle with code that shares nothing with Countersign: docs/evidence-format.md.

    python3 verify_bundle.py BUNDLE [--key KEY] [--held FILE] [--json]
    python3 verify_bundle.py --vectors DIR

Needs the package `cryptography`. Exit codes: 0 valid, 4 consistent but the signer was not checked (no --key), 3 not
valid, 2 wrong use.
"""

import argparse
import base64
import hashlib
import json
import pathlib
import re
import sys
from decimal import Decimal

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:
    sys.exit("the package `cryptography` is missing: pip install cryptography, or apt install python3-cryptography")

FORMAT = "countersign.dev/bundle@v1"
KINDS = ["call", "denial", "approval", "access", "erasure", "config", "intent", "resolution", "checkpoint"]
TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?Z\Z")
VERDICTS = {
    "valid": ("valid", 0),
    "consistent": ("consistent, signer not checked", 4),
    "invalid": ("not valid", 3),
}
NOT_CHECKED = {
    "signer": "who signed the log: give the log's key with --key",
    "rewriting": "whether the log was rewritten: give a checkpoint that you kept with --held",
    "further_signatures": "signatures of others under the checkpoint",
    "links_outside": "linked records that are not in the bundle",
    "freshness": "freshness of linked answers whose record makes no claim about it",
    "sealed_payloads": "what else is in sealed payloads: only their digest was compared",
    "absent_content": "content that the bundle does not have",
}


class Fault(Exception):
    """Something that does not hold; its first argument is the code."""


def need(condition, code):
    if not condition:
        raise Fault(code)


# Canonical JSON (RFC 8785), and reading that refuses what two readers could take for two things.


def load(text):
    def members(pairs):
        need(len({name for name, _ in pairs}) == len(pairs), "not_json")
        need(not any(name.startswith("$serde_json::private::") for name, _ in pairs), "not_json")
        return dict(pairs)

    def number(text):
        value = float(text)
        need(abs(value) != float("inf") and not 2**53 <= abs(value) < 1e21, "not_json")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value

    def whole(text):
        need(len(text) < 18 and abs(int(text)) < 2**53, "not_json")
        return int(text)

    def constant(_):
        raise Fault("not_json")

    def depth(value, level=0):
        need(level <= 127, "not_json")
        if isinstance(value, (list, dict)):
            for item in value.values() if isinstance(value, dict) else value:
                depth(item, level + 1 if isinstance(item, (list, dict)) else level)
        return value

    try:
        value = json.loads(
            text, object_pairs_hook=members, parse_float=number, parse_int=whole, parse_constant=constant
        )
        json.dumps(value, ensure_ascii=False).encode()  # Half a surrogate pair has no bytes.
        return depth(value, 1 if isinstance(value, (list, dict)) else 0)
    except (ValueError, RecursionError):
        raise Fault("not_json") from None


def canonical(value):
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(value[name]) for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float):
        sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
        digits, sign = "".join(map(str, digits)), "-" * sign
        point = len(digits) + exponent
        if len(digits) <= point <= 21:
            return sign + digits + "0" * (point - len(digits))
        if 0 < point <= 21:
            return sign + digits[:point] + "." + digits[point:]
        if -6 < point <= 0:
            return sign + "0." + "0" * -point + digits
        digits = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{digits}e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return json.dumps(value, ensure_ascii=False)


def unbase64(text, code):
    try:
        value = base64.b64decode(text, validate=True)
    except ValueError:
        raise Fault(code) from None
    need(base64.b64encode(value).decode() == text, code)
    return value


# The tree of RFC 6962 and its proofs, top down as section 2.1 defines them.


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def leaf_hash(leaf):
    return sha256(b"\0", leaf)


def node_hash(left, right):
    return sha256(b"\1", left, right)


def split(size):
    return 1 << ((size - 1).bit_length() - 1)


def root_of(hashes):
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256()
    middle = split(len(hashes))
    return node_hash(root_of(hashes[:middle]), root_of(hashes[middle:]))


def root_from_path(leaf, index, size, path):
    if size == 1:
        need(not path, "length")
        return leaf
    need(path, "length")
    middle = split(size)
    if index < middle:
        return node_hash(root_from_path(leaf, index, middle, path[:-1]), path[-1])
    return node_hash(path[-1], root_from_path(leaf, index - middle, size - middle, path[:-1]))


def roots_from_growth(old, new, proof, known):
    """The roots of both trees; `known` is the old root as long as the old tree is a whole node."""
    if old == new:
        if known is not None:
            need(not proof, "length")
            return known, known
        need(len(proof) == 1, "length")
        return proof[0], proof[0]
    need(proof, "length")
    middle = split(new)
    if old <= middle:
        before, after = roots_from_growth(old, middle, proof[:-1], known)
        return before, node_hash(after, proof[-1])
    before, after = roots_from_growth(old - middle, new - middle, proof[:-1], None)
    return node_hash(proof[-1], before), node_hash(proof[-1], after)


def check_inclusion(leaf, index, size, path, root):
    need(index < size and root_from_path(leaf, index, size, path) == root, "inclusion")


def check_growth(old, old_root, new, new_root, proof):
    need(old <= new, "growth")
    if old == 0:
        need(not proof and old_root == sha256(), "growth")
    else:
        need(roots_from_growth(old, new, proof, old_root) == (old_root, new_root), "growth")


# Signed notes and checkpoints.


def parse_key(text):
    name, key_id, key = (text.split("+", 2) + ["", ""])[:3]
    key = unbase64(key, "key_malformed")
    need(re.fullmatch(r"[^\s+\x00-\x1f\x7f-\x9f]+", name) and len(key) == 33 and key[0] == 1, "key_malformed")
    need(sha256(name.encode(), b"\n", key)[:4].hex() == key_id, "key_malformed")
    return name, bytes.fromhex(key_id), key[1:]


def parse_note(note, code):
    """The text of a signed note, and its signatures: name, key id and bytes."""
    text, separator, lines = note.rpartition("\n\n")
    text += "\n"
    need(separator and lines.endswith("\n") and len(note.encode()) <= 256 * 1024, code)
    need(not re.search(r"[\x00-\x09\x0b-\x1f]", text), code)
    lines, signatures = lines[:-1].split("\n"), []
    need(len(lines) <= 100, code)
    for line in lines:
        match = re.fullmatch(r"\u2014 ([^\s+\x00-\x1f\x7f-\x9f]+) (\S+)", line)
        need(match, code)
        signature = unbase64(match[2], code)
        need(len(signature) > 4, code)
        signatures.append((match[1], signature[:4], signature[4:]))
    return text, signatures


def open_checkpoint(note, key, code):
    """Origin, size and root of a checkpoint that the key signed."""
    name, key_id, public = key
    text, signatures = parse_note(note, code)
    ours = [signature for *signer, signature in signatures if signer == [name, key_id]]
    need(ours, code)
    for signature in ours:
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(signature, text.encode())
        except (InvalidSignature, ValueError):
            raise Fault(code) from None
    origin, size, root, *extensions = (text[:-1].split("\n") + ["", "", ""])[: max(3, text.count("\n"))]
    root = unbase64(root, code)
    need(origin == name and len(root) == 32 and all(extensions), code)
    need(re.fullmatch(r"0|[1-9][0-9]{0,18}", size) and int(size) <= 2**62, code)
    return origin, int(size), root


def signatures_of_others(note, key):
    try:
        _, signatures = parse_note(note, "")
    except Fault:
        return 0
    return sum(key is None or tuple(signer) != key[:2] for *signer, _ in signatures)


# Records: a check for every member. A leaf with other members, or with empty ones, isn't a record. Error and issue codes
# are closed lists in the schema; here only their form is checked.


def text(pattern=""):
    return lambda value: isinstance(value, str) and bool(re.match(pattern, value))


def number(bits):
    return lambda value: type(value) is int and 0 <= value < 2**bits


def one_of(*words):
    return lambda value: type(value) in (str, bool) and value in words


def present(value):
    return value is not None


def many(check):
    return lambda value: isinstance(value, list) and bool(value) and all(map(check, value))


def table(check, name=text()):
    return lambda value: isinstance(value, dict) and bool(value) and all(name(k) and check(v) for k, v in value.items())


def members(required, optional=None):
    types = {**required, **(optional or {})}
    return lambda value: (
        isinstance(value, dict)
        and set(required) <= set(value) <= set(types)
        and all(types[name](item) for name, item in value.items())
    )


def versions(value):
    return isinstance(value, list) and all(map(text(), value)) and value == sorted(set(value))


ID, CODE, DIGEST = text(r"ev_[A-Za-z0-9-]{1,64}\Z"), text(r"[A-Z][A-Z0-9_]*\Z"), text(r"sha256:[0-9a-f]{64}\Z")
ACTOR = members({"type": one_of("user", "agent", "system"), "id": text()})
API_KEY = members({"type": one_of("api_key"), "id": text()})
TOKEN = members({"type": one_of("token"), "issuer": text()}, {"id": text()})
FRESH = members({"at": text(), "until": text()})
ROLE = one_of("rests_on", "looked_at")
ALWAYS = {"v": number(8), "kind": one_of(*KINDS), "id": ID, "at": text()}
COMMON = {
    "subject": text(),
    "request_id": text(r"[!-~]{1,128}\Z"),
    "actor": ACTOR,
    "principal": ACTOR,
    "delegation": many(ACTOR),
    "tool": members({"name": text()}, {"version": text(), "definition": DIGEST, "build": DIGEST}),
    "policy_revision": text(),
    "binding": members(
        {}, {"status": one_of("exact", "repaired", "incomplete", "refused"), "issues": table(number(32), CODE)}
    ),
    "rules": table(text()),
    "idempotency": members({"key": text(), "attempt": number(32), "state": text()}),
    "dry_run": one_of(True),
    "reply": members({}, {"code": CODE, "commitment": DIGEST, "ttl_seconds": number(32), "valid_until": text()}),
    "phases": members({f"{name}_us": number(64) for name in ("queued", "awaiting_approval", "executing", "settling")}),
    "payload": DIGEST,
    "retention": one_of("short", "long"),
    "act": present,
}
FIRST = {
    "trace_id": text(),
    "arguments": members({"commitment": DIGEST}, {"redacted": present}),
    "links": many(members({"id": ID, "leaf": DIGEST})),
    "sources": many(members({"type": text(), "name": text(), "hash": text(), "ts": text()})),
}
SECOND = {
    "credential": lambda value: API_KEY(value) or TOKEN(value),
    "arguments": members({}, {"commitment": DIGEST, "raw": DIGEST, "public": present}),
    "inherited_rules": table(versions),
    "shown": DIGEST,
    "links": many(members({"id": ID, "leaf": DIGEST, "role": ROLE}, {"fresh": FRESH})),
}
RECORDS = {1: members(ALWAYS, {**COMMON, **FIRST}), 2: members(ALWAYS, {**COMMON, **SECOND})}


def parse_leaf(leaf):
    need(len(leaf.encode()) <= 65535, "leaf_too_long")
    try:
        record = load(leaf)
        need(canonical(record) == leaf, "leaf_not_canonical")
    except Fault:
        raise Fault("leaf_not_canonical") from None
    version = record.get("v") if isinstance(record, dict) else None
    need(type(version) is int and version in RECORDS and RECORDS[version](record), "leaf_not_a_record")
    return record


# The bundle.


def shape(value, required, optional=None):
    """Whether this is an object with these members of these types, and no others."""
    optional = optional or {}
    types = {**required, **optional}
    need(isinstance(value, dict) and set(required) <= set(value) <= set(types), "not_a_bundle")
    for name, item in value.items():
        if not (name in optional and item is None):
            need(types[name] is object or type(item) is types[name], "not_a_bundle")


def parse_bundle(data):
    need(len(data) <= 64 << 20, "too_large")
    try:
        bundle = load(data.decode())
    except UnicodeDecodeError:
        raise Fault("not_json") from None
    need(isinstance(bundle, dict) and isinstance(bundle.get("format"), str), "not_a_bundle")
    need(bundle["format"] == FORMAT, "unknown_format")
    texts = {"format": str, "summary": str, "public_key": str, "checkpoint": str}
    shape(bundle, {**texts, "records": list}, {"earlier": dict})
    for item in bundle["records"]:
        shape(item, {"index": int, "leaf": str, "proof": list}, {"payload": str, "opened": dict})
        need(0 <= item["index"] and all(isinstance(text, str) for text in item["proof"]), "not_a_bundle")
        if item.get("opened") is not None:
            shape(item["opened"], {}, {"arguments": dict, "data": dict, "raw": dict, "shown": dict})
            for opening in item["opened"].values():
                if opening is not None:
                    shape(opening, {"salt": str}, {"value": object, "text": str})
    if bundle.get("earlier") is not None:
        shape(bundle["earlier"], {"checkpoint": str, "proof": list})
        need(all(isinstance(text, str) for text in bundle["earlier"]["proof"]), "not_a_bundle")
    need(1 <= len(bundle["records"]) <= 10_000, "record_count")
    return bundle


def commitment(domain, salt, text):
    return "sha256:" + sha256(f"countersign.dev/commit/{domain}@v1\n".encode(), salt, text.encode()).hex()


def commitments_of(record):
    """What a record commits to, by the name of the value."""
    arguments, reply = record.get("arguments", {}), record.get("reply", {})
    return {
        "arguments": arguments.get("commitment"),
        "data": reply.get("commitment"),
        "raw": arguments.get("raw"),
        "shown": record.get("shown"),
    }


def check_opening(domain, opening, expected):
    need(expected, "opened_unexpected")
    need(re.fullmatch("[0-9a-f]{64}", opening["salt"]), "salt_malformed")
    committed = opening.get("text")
    # `null` is a value, so what counts is whether the member is there.
    need(("value" in opening) != (committed is not None), "opening_malformed")
    if committed is None:
        committed = canonical(opening["value"])
    need(commitment(domain, bytes.fromhex(opening["salt"]), committed) == expected, "opened_other")


def window_of(record):
    return record.get("reply", {}).get("valid_until")


def check_claim(link, target):
    """What a link claims about freshness. Whether the tool was right to use the answer is not for a verifier to say."""
    claim = link.get("fresh")
    if claim is not None:
        need(link["role"] == "rests_on", "link_claim_unexpected")
        until, at = instant(claim["until"]), instant(claim["at"])
        need(at <= until, "link_expired")
        need(target is None or window_of(target) == claim["until"], "link_window_other")


def instant(text):
    match = TIME.match(text)
    need(match, "time_malformed")
    return match[1], (match[2] or "").ljust(9, "0")


def summary(log, items, records):
    plain = lambda text: "".join(c if " " <= c <= "~" else "?" for c in text)
    known = [record for record in records if record]
    text = f"Log: {plain(log[0])}, {log[1]} leaves\nRecords: {len(items)}"
    if known:
        counts = [(kind, sum(record["kind"] == kind for record in known)) for kind in KINDS]
        kinds = ", ".join(f"{kind} {count}" for kind, count in counts if count)
        text += f" ({kinds}), {plain(known[0]['at'])} to {plain(known[-1]['at'])}"
    tools = sorted({plain(record["tool"]["name"]) for record in known if "tool" in record})
    return text + ("\nTools: " + ", ".join(tools) if tools else "") + "\n"


class Check:
    """One verification: every fault by code and place, and what was not checked."""

    def __init__(self, bundle):
        self.bundle, self.findings, self.open = bundle, [], set()

    def attempt(self, index, action, *arguments):
        try:
            return action(*arguments)
        except Fault as fault:
            self.findings.append((fault.args[0], index))
            return None

    def run(self, trusted, held):
        bundle = self.bundle
        own = self.attempt(None, parse_key, bundle["public_key"])
        if own and trusted and own != trusted:
            self.findings.append(("key_other", None))
        key = trusted or own
        log = key and self.attempt(None, open_checkpoint, bundle["checkpoint"], key, "checkpoint")
        records = self.leaves()
        for item, record in zip(bundle["records"], records):
            self.attempt(item["index"], self.included, item, log)
            if record:
                self.content(item, record)
        self.links(records)
        if log:
            self.growth(key, log, held)
            if summary(log, bundle["records"], records) != bundle["summary"]:
                self.findings.append(("summary_other", None))
        unknown = {
            "signer": trusted is None,
            "rewriting": held is None or not log,
            "further_signatures": signatures_of_others(bundle["checkpoint"], key) > 0,
        }
        self.open |= {name for name, is_open in unknown.items() if is_open}
        verdict = "invalid" if self.findings else "valid" if trusted else "consistent"
        return report(verdict, self.findings, [name for name in NOT_CHECKED if name in self.open])

    def leaves(self):
        previous, names, records = -1, set(), []
        for item in self.bundle["records"]:
            record = self.attempt(item["index"], parse_leaf, item["leaf"])
            if item["index"] <= previous:
                self.findings.append(("order", item["index"]))
            previous = item["index"]
            if record and record["id"] in names:
                self.findings.append(("id_twice", item["index"]))
            names.add(record["id"] if record else None)
            records.append(record)
        return records

    def included(self, item, log):
        path = [unbase64(text, "proof_malformed") for text in item["proof"]]
        need(all(len(one) == 32 for one in path), "proof_malformed")
        if log:
            try:
                check_inclusion(leaf_hash(item["leaf"].encode()), item["index"], log[1], path, log[2])
            except Fault:
                raise Fault("inclusion") from None

    def content(self, item, record):
        def payload():
            sealed = unbase64(item["payload"], "payload_malformed")
            need("payload" in record, "payload_unexpected")
            need("sha256:" + sha256(sealed).hex() == record["payload"], "payload_other")

        opened = item.get("opened") or {}
        expected = commitments_of(record)
        closed = [name for name, commitment in expected.items() if commitment and opened.get(name) is None]
        if item.get("payload") is not None:
            self.attempt(item["index"], payload)
            self.open.add("sealed_payloads")
        elif "payload" in record or closed:
            self.open.add("absent_content")
        for domain, opening in opened.items():
            if opening is not None:
                self.attempt(item["index"], check_opening, domain, opening, expected[domain])

    def links(self, records):
        by_name, by_leaf = {}, {}
        for item, record in zip(self.bundle["records"], records):
            if record:
                leaf = "sha256:" + leaf_hash(item["leaf"].encode()).hex()
                by_name[record["id"]] = by_leaf[leaf] = (record, leaf, item["index"])

        def link_holds(item, link, target, leaf, index):
            if target:
                need((target["id"], leaf) == (link["id"], link["leaf"]), "link_other")
                need(index < item["index"], "link_later")
            check_claim(link, target)

        for item, record in zip(self.bundle["records"], records):
            for link in (record or {}).get("links", []):
                target = by_name.get(link["id"]) or by_leaf.get(link["leaf"]) or (None, None, None)
                if not target[0]:
                    self.open.add("links_outside")
                unclaimed = "fresh" not in link and link.get("role") != "looked_at"
                if unclaimed and (not target[0] or window_of(target[0]) is not None):
                    self.open.add("freshness")
                self.attempt(item["index"], link_holds, item, link, *target)

    def growth(self, key, log, held):
        def grown(earlier):
            old = open_checkpoint(earlier["checkpoint"], key, "earlier")
            proof = [unbase64(text, "earlier_malformed") for text in earlier["proof"]]
            need(all(len(one) == 32 for one in proof), "earlier_malformed")
            try:
                check_growth(*old[1:], *log[1:], proof)
            except Fault:
                raise Fault("earlier_not_grown") from None
            return old

        def fits():
            kept = open_checkpoint(held, key, "held")
            shown = [one for one in (log, old, (key[0], 0, sha256())) if one and one[1] == kept[1]]
            need(shown, "held_not_shown")
            need(shown[0][2] == kept[2], "forked")

        earlier = self.bundle.get("earlier")
        old = earlier and self.attempt(None, grown, earlier)
        if held is not None:
            self.attempt(None, fits)


def report(verdict, findings, not_checked):
    """The report for a program. A file that is not a bundle was not checked at all: it has no list of what was not."""
    findings = [{"code": code, "index": index} for code, index in findings]
    report = {"verdict": verdict, "valid": verdict == "valid", "findings": findings}
    return report if not_checked is None else {**report, "not_checked": not_checked}


def verify(data, key=None, held=None):
    """The report on a bundle: verdict, faults by code and place in the log, and what was not checked."""
    try:
        bundle = parse_bundle(data)
    except Fault as fault:
        return report("invalid", [(fault.args[0], None)], None)
    return Check(bundle).run(key, held)


def read_key(text):
    """The key of a log: its text, or a file that holds it."""
    try:
        return parse_key(text)
    except Fault:
        pass
    try:
        return parse_key(pathlib.Path(text).read_text(encoding="utf-8").strip())
    except (OSError, ValueError, Fault):
        raise ValueError(f"{text!r} isn't a public key: use the text in log.pub, or the path of such a file") from None


def show(report):
    for finding in report["findings"]:
        code, index = finding["code"], finding["index"]
        print("finding:", code if index is None else f"record {index}: {code}")
    for name in report.get("not_checked", []):
        print("not checked:", NOT_CHECKED[name])
    print(VERDICTS[report["verdict"]][0])


def main():
    parser = argparse.ArgumentParser(description="Checks an evidence bundle.")
    parser.add_argument("bundle", nargs="?", help="the bundle, or - for standard input")
    parser.add_argument("--key", help="the log's key, not from the bundle: its text, or a file such as log.pub")
    parser.add_argument("--held", type=pathlib.Path, help="a signed checkpoint that you kept")
    parser.add_argument("--json", action="store_true", help="write the report as one line of JSON")
    parser.add_argument("--vectors", type=pathlib.Path, help="check this implementation against a folder of vectors")
    options = parser.parse_args()
    if bool(options.bundle) == bool(options.vectors):
        parser.error("give a bundle, or --vectors and a folder")
    if options.vectors:
        import evidence_vectors  # Beside this file; not needed to check a bundle.

        return evidence_vectors.run(options.vectors)
    try:
        key = read_key(options.key) if options.key is not None else None
        held = options.held.read_text(encoding="utf-8") if options.held else None
        file = sys.stdin.buffer if options.bundle == "-" else open(options.bundle, "rb")
        with file:
            found = verify(file.read((64 << 20) + 1), key, held)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
    return VERDICTS[found["verdict"]][1]


if __name__ == "__main__":
    sys.exit(main())
