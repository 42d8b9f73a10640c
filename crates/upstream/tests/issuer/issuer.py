"""A small OAuth 2 issuer: client credentials (RS256), token exchange by RFC 8693 (EdDSA), and logins of users.

Prints its port and its public keys as one line of JSON, then serves until it is killed. Every token it has issued is a line on
standard output.
"""

import base64
import json
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ED = ed25519.Ed25519PrivateKey.generate()
CLIENT = ("gw", "p@ss word")
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def sign(algorithm, claims):
    head = b64(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
    text = f"{head}.{b64(json.dumps(claims).encode())}"
    if algorithm == "RS256":
        mac = RSA.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
    else:
        mac = ED.sign(text.encode())
    return f"{text}.{b64(mac)}"


def verified(token):
    """The claims of a token of this issuer; an error for any other."""
    head, payload, mac = token.split(".")
    assert json.loads(unb64(head))["alg"] == "RS256"
    RSA.public_key().verify(unb64(mac), f"{head}.{payload}".encode(), padding.PKCS1v15(), hashes.SHA256())
    claims = json.loads(unb64(payload))
    assert claims["exp"] > time.time()
    return claims


class Issuer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        form = dict(urllib.parse.parse_qsl(body))
        try:
            status, answer = self.token(form)
        except Exception as error:  # whatever is wrong with a token, it is refused
            status, answer = 400, {"error": "invalid_grant", "error_description": type(error).__name__}
        text = json.dumps(answer).encode()
        if "access_token" in answer:
            print(json.dumps({"grant": form["grant_type"], **answer}), flush=True)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def token(self, form):
        grant = form.get("grant_type")
        life = int(self.path.rsplit("/", 1)[-1])
        if grant == "password":  # how the test logs a user in
            claims = {"sub": form["username"], "iss": "issuer", "exp": time.time() + life}
            return 200, {"access_token": sign("RS256", claims), "token_type": "Bearer", "expires_in": life}
        given = self.headers.get("authorization", "")
        pair = base64.b64decode(given.removeprefix("Basic ")).decode().split(":", 1) if given else [
            form.get("client_id"), form.get("client_secret")]
        if given:
            pair = [urllib.parse.unquote(part) for part in pair]
        if tuple(pair) != CLIENT:
            return 401, {"error": "invalid_client"}
        claims = {"iss": "issuer", "aud": form.get("audience", "svc"), "exp": time.time() + life, "jti": b64(time.time_ns().to_bytes(8, "big"))}
        if grant == "client_credentials":
            token = sign("RS256", {**claims, "sub": CLIENT[0], "scope": form.get("scope", "")})
        elif grant == EXCHANGE:
            assert form["subject_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
            subject = verified(form["subject_token"])
            token = sign("EdDSA", {**claims, "sub": subject["sub"], "act": {"sub": CLIENT[0]}})
        else:
            return 400, {"error": "unsupported_grant_type"}
        return 200, {
            "access_token": token, "token_type": "Bearer", "expires_in": life,
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        }

    def log_message(self, *_):
        pass


def number(value):
    return b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
public = RSA.public_key().public_numbers()
x = ED.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
print(json.dumps({"port": server.server_port, "n": number(public.n), "e": number(public.e), "x": b64(x)}), flush=True)
server.serve_forever()
