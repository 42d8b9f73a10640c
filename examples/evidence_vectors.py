"""Checks verify_bundle.py, and with it the whole specification, against a folder of vectors.

    python3 verify_bundle.py --vectors DIR
"""

import base64
import hashlib
import hmac
import json
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from verify_bundle import (
    Fault,
    canonical,
    check_growth,
    check_inclusion,
    commitment,
    leaf_hash,
    load,
    parse_key,
    root_of,
    sha256,
    unbase64,
    verify,
)

# What a user's key does. AES-256-GCM-SIV (RFC 8452) is written out, because not
# every build of `cryptography` has it.


def aes(key, block):
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(block) + encryptor.finalize()


def polyval(key, blocks):
    def times(a, b):
        product = 0
        for bit in range(128):
            product ^= (a << bit) if b >> bit & 1 else 0
        for bit in range(128):  # Montgomery's reduction by x^128 + x^127 + x^126 + x^121 + 1
            if product >> bit & 1:
                product ^= (1 | 1 << 121 | 1 << 126 | 1 << 127 | 1 << 128) << bit
        return product >> 128

    total, key = 0, int.from_bytes(key, "little")
    for at in range(0, len(blocks), 16):
        total = times(total ^ int.from_bytes(blocks[at : at + 16], "little"), key)
    return total.to_bytes(16, "little")


def gcm_siv(key, nonce, plain, aad):
    parts = [aes(key, n.to_bytes(4, "little") + nonce)[:8] for n in range(6)]
    mac_key, cipher_key = b"".join(parts[:2]), b"".join(parts[2:])
    pad = lambda text: text + bytes(-len(text) % 16)
    lengths = (len(aad) * 8).to_bytes(8, "little") + (len(plain) * 8).to_bytes(8, "little")
    digest = bytearray(polyval(mac_key, pad(aad) + pad(plain) + lengths))
    for at, byte in enumerate(nonce):
        digest[at] ^= byte
    digest[15] &= 0x7F
    tag = aes(cipher_key, bytes(digest))
    counter, stream = bytearray(tag), b""
    counter[15] |= 0x80
    while len(stream) < len(plain):
        stream += aes(cipher_key, bytes(counter))
        counter[:4] = ((int.from_bytes(counter[:4], "little") + 1) % 2**32).to_bytes(4, "little")
    return bytes(a ^ b for a, b in zip(plain, stream)) + tag


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def derive(secret, label):
    return mac(secret, f"countersign.dev/key/{label}@v1".encode())


def seal(key, nonce, aad, plain):
    return b"\1" + nonce + gcm_siv(key, nonce, plain, aad)


# The vectors: each function raises where this file and the vector differ.


def same(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def refuses(action, *arguments):
    try:
        action(*arguments)
    except Fault:
        return
    raise AssertionError(f"{arguments!r} was not refused")


def vectors_canonical(data, _):
    for row in data["texts"]:
        same(canonical(load(row["text"])), row["canonical"])
    for text in data["refused"]:
        refuses(load, text)
    return len(data["texts"]) + len(data["refused"])


def vectors_commitments(data, _):
    for row in data:
        salt = mac(bytes.fromhex(row["payload_salt"]), f"countersign.dev/salt/{row['domain']}@v1".encode())
        same(salt.hex(), row["salt"])
        same(commitment(row["domain"], salt, row["text"]), row["commitment"])
    return len(data)


def vectors_notes(data, _):
    for row in data:
        name, key_id, public = parse_key(row["key"])
        private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(row["seed"]))
        same(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw), public)
        signature = base64.b64encode(key_id + private.sign(row["text"].encode())).decode()
        same(f"{row['text']}\n\u2014 {name} {signature}\n", row["note"])
    return len(data)


def vectors_seals(data, _):
    for user in data["users"]:
        secret = bytes.fromhex(user["secret"])
        names = {"subject": ("subject", 32), "fingerprint": ("fingerprint", 64)}
        names |= {"index": ("index", 64), "key_digest": ("key", 64)}
        for name, (label, length) in names.items():
            for value, text in user[name].items():
                same(mac(derive(secret, label), value.encode()).hex()[:length], text)
        chosen = lambda what, name: mac(derive(secret, "chosen"), f"{what}\0{name}".encode()).hex()[:32]
        same(chosen(user["chosen"]["what"], user["chosen"]["name"]), user["chosen"]["text"])
        for name, text in user["request_id"].items():
            same("rq_" + chosen("request", name), text)
        down = user["downstream_key"]
        tool = down["tool"].encode()
        digest = mac(derive(secret, "downstream"), len(tool).to_bytes(8, "big"), tool, down["key"].encode())
        same(digest.hex()[:32], down["text"])
        for row in user["seals"]:
            nonce, aad, plain = bytes.fromhex(row["nonce"]), row["aad"].encode(), row["plain"].encode()
            sealed = seal(derive(secret, "seal"), nonce, aad, plain)
            same(sealed.hex(), row["sealed"])
    for row in data["masters"]:
        secret, nonce = bytes.fromhex(row["secret"]), bytes.fromhex(row["nonce"])
        same(derive(secret, "id").hex()[:16], row["id"])
        wrapped = seal(derive(secret, "wrap"), nonce, row["context"].encode(), bytes.fromhex(row["user_secret"]))
        same(wrapped.hex(), row["wrapped"])
    return len(data["users"]) + len(data["masters"])


def vectors_tiles(data, _):
    def path(prefix, index, width):
        groups = [f"{index % 1000:03}"]
        while index := index // 1000:
            groups.insert(0, f"x{index % 1000:03}")
        return prefix + "/".join(groups) + (f".p/{width}" if width < 256 else "")

    levels = [[leaf_hash(str(n).encode()) for n in range(data["size"])]]
    same(root_of(levels[0]).hex(), data["root"])
    while len(levels[-1]) >= 256:
        row = levels[-1]
        levels.append([root_of(row[at : at + 256]) for at in range(0, len(row) - 255, 256)])
    for tile in data["tiles"]:
        row = levels[tile["level"]][tile["index"] * 256 : (tile["index"] + 1) * 256]
        same((len(row), "sha256:" + sha256(*row).hex()), (tile["width"], tile["digest"]))
        same(path(f"tile/{tile['level']}/", tile["index"], tile["width"]), tile["path"])
    for row in data["entry_paths"]:
        same(path("tile/entries/", row["index"], row["width"]), row["path"])
    entries = [entry.encode() for entry in data["entries"]["entries"]]
    same(b"".join(len(one).to_bytes(2, "big") + one for one in entries).hex(), data["entries"]["bytes"])
    return len(data["tiles"]) + len(data["entry_paths"]) + 1


def vectors_tree(data, _):
    hashes = [leaf_hash(bytes.fromhex(leaf)) for leaf in data["leaves"]]
    same([one.hex() for one in hashes], data["leaf_hashes"])
    roots = [root_of(hashes[:size]) for size in range(len(hashes) + 1)]
    same([root.hex() for root in roots], data["roots"])
    for row in data["inclusion"]:
        proof, size = [unbase64(text, "proof") for text in row["proof"]], row["size"]
        check_inclusion(hashes[row["index"]], row["index"], size, proof, roots[size])
        refuses(check_inclusion, hashes[row["index"]], row["index"], size, proof, sha256(b"another root"))
    for row in data["consistency"]:
        proof, old, new = [unbase64(text, "proof") for text in row["proof"]], row["old"], row["new"]
        check_growth(old, roots[old], new, roots[new], proof)
        refuses(check_growth, old, sha256(b"another root"), new, roots[new], proof)
    return len(data["inclusion"]) + len(data["consistency"])


def vectors_bundles(data, folder):
    for case in data:
        raw = case.get("bundle_base64")
        text = base64.b64decode(raw) if raw else (folder / case["bundle"]).read_bytes()
        key = parse_key(case["key"]) if case.get("key") else None
        report = verify(text, key, case.get("held"))
        found = [(finding["code"], finding["index"]) for finding in report["findings"]]
        assert report["verdict"] == case["verdict"], f"{case['name']}: {report['verdict']}, found {found}"
        if "findings" in case:
            expected = [(finding["code"], finding["index"]) for finding in case["findings"]]
            assert sorted(map(str, found)) == sorted(map(str, expected)), f"{case['name']}: found {found}"
        if "not_checked" in case:
            open_ = report.get("not_checked")
            assert open_ == case["not_checked"], f"{case['name']}: not checked {open_}"
    return len(data)


def run(folder):
    checks = {name.removeprefix("vectors_"): check for name, check in globals().items() if name.startswith("vectors_")}
    files = sorted(folder.glob("*.json"))
    if not files:
        sys.exit(f"there are no vectors in {folder}")
    for file in files:
        try:
            count = checks[file.stem](json.loads(file.read_text(encoding="utf-8")), folder)
        except (AssertionError, Fault, KeyError) as error:
            print(f"{file.name}: {error}")
            return 3
        print(f"{file.name}: {count} vectors hold")
    return 0
