"""An OpenID Connect issuer: discovery, keys, authorization code with PKCE (S256), renewal, and a login page.

Prints its port as one line of JSON, then serves until it is killed. `POST /test` registers the return address of the client and says what
goes wrong with the next tokens; everything else is what an issuer does.
"""

import base64
import hashlib
import html
import json
import secrets
import sys
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CLIENT = ("console", "p@ss word")
STATE = {"return_to": None, "fault": "", "life": 600, "grants": []}
CODES = {}
RENEWALS = {}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(claims, typ="JWT"):
    head = b64(json.dumps({"alg": "RS256", "typ": typ, "kid": "k1"}).encode())
    text = f"{head}.{b64(json.dumps(claims).encode())}"
    return f"{text}.{b64(RSA.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def number(value):
    return b64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Issuer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, kind="application/json", headers=()):
        text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def form(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        return dict(urllib.parse.parse_qsl(body))

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/.well-known/openid-configuration":
            return self.answer(200, {
                "issuer": ISSUER, "authorization_endpoint": f"{ISSUER}/authorize", "token_endpoint": f"{ISSUER}/token",
                "jwks_uri": f"{ISSUER}/keys", "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                "authorization_response_iss_parameter_supported": True,
            })
        if url.path == "/keys":
            public = RSA.public_key().public_numbers()
            key = {"kty": "RSA", "use": "sig", "kid": "k1", "alg": "RS256", "n": number(public.n), "e": number(public.e)}
            return self.answer(200, {"keys": [key]})
        if url.path == "/authorize":
            wrong = self.asked(url.query)
            if wrong:
                return self.answer(400, wrong, "text/plain")
            return self.answer(200, (
                "<!doctype html><title>Issuer</title><form method=post action='/authorize?"
                f"{html.escape(url.query)}'><input id=user name=user><button>Sign in</button>"
                "<button name=decline value=1 id=decline>Decline</button></form>"), "text/html")
        return self.answer(404, {})

    def asked(self, query):
        """What is wrong with a request of a client; nothing for a good one."""
        asked = dict(urllib.parse.parse_qsl(query))
        if asked.get("client_id") != CLIENT[0]:
            return "unknown client"
        if asked.get("redirect_uri") != STATE["return_to"]:
            return f"unknown return address {asked.get('redirect_uri')}"
        if asked.get("response_type") != "code" or "openid" not in asked.get("scope", "").split():
            return "no code of OpenID Connect"
        if asked.get("code_challenge_method") != "S256" or len(asked.get("code_challenge", "")) != 43:
            return "no proof key"
        if len(asked.get("state", "")) < 32 or len(asked.get("nonce", "")) < 32:
            return "state or nonce is short"
        if asked.get("audience") != "countersign":
            return "no audience"
        return None

    def do_POST(self):
        url = urllib.parse.urlsplit(self.path)
        form = self.form()
        if url.path == "/test":
            STATE.update({name: int(value) if name == "life" else value for name, value in form.items()})
            return self.answer(200, {"grants": STATE["grants"]})
        if url.path == "/token":
            return self.token(form)
        if url.path != "/authorize" or self.asked(url.query):
            return self.answer(404, {})
        asked = dict(urllib.parse.parse_qsl(url.query))
        back = {"state": asked["state"], "iss": ISSUER}
        if form.get("decline"):
            back["error"] = "access_denied"
        else:
            back["code"] = secrets.token_urlsafe(24)
            CODES[back["code"]] = {**asked, "user": form["user"]}
        if STATE["fault"] == "issuer":
            back["iss"] = "https://other.example"
        to = f"{asked['redirect_uri']}?{urllib.parse.urlencode(back)}"
        return self.answer(302, "", "text/plain", [("location", to)])

    def token(self, form):
        given = base64.b64decode(self.headers.get("authorization", "").removeprefix("Basic ")).decode().split(":", 1)
        if tuple(urllib.parse.unquote_plus(part) for part in given) != CLIENT:
            return self.answer(401, {"error": "invalid_client"})
        grant = form.get("grant_type")
        STATE["grants"].append(grant)
        if grant == "authorization_code":
            asked = CODES.pop(form.get("code"), None)
            verifier = form.get("code_verifier", "").encode()
            if (asked is None or asked["redirect_uri"] != form.get("redirect_uri")
                    or b64(hashlib.sha256(verifier).digest()) != asked["code_challenge"]):
                return self.answer(400, {"error": "invalid_grant"})
        else:
            asked = RENEWALS.pop(form.get("refresh_token"), None)
            if grant != "refresh_token" or asked is None or STATE["fault"] == "renewal":
                return self.answer(400, {"error": "invalid_grant"})
        return self.answer(200, self.tokens(asked))

    def tokens(self, asked):
        fault, now = STATE["fault"], int(time.time())
        client = "shopper" if fault == "agent" else CLIENT[0]
        audience = "somewhere-else" if fault == "audience" else asked["audience"]
        common = {"iss": ISSUER, "sub": asked["user"], "iat": now, "exp": now + STATE["life"]}
        access = sign({**common, "aud": audience, "client_id": client, "scope": "tools:call calls:read"}, "at+jwt")
        half = b64(hashlib.sha256(("x" if fault == "at_hash" else access).encode()).digest()[:16])
        identity = {**common, "aud": CLIENT[0], "nonce": asked["nonce"], "at_hash": half}
        if fault == "nonce":
            identity["nonce"] = "0" * 64
        if fault == "identity_audience":
            identity["aud"] = "another-client"
        if fault == "identity_over":
            identity["exp"] = now - 3600
        renewal = secrets.token_urlsafe(24)
        RENEWALS[renewal] = asked
        tokens = {"access_token": access, "token_type": "Bearer", "expires_in": STATE["life"], "refresh_token": renewal,
                  "id_token": sign(identity)}
        if fault == "no_identity":
            del tokens["id_token"]
        if fault == "forged":
            tokens["id_token"] = tokens["id_token"][:-8] + "AAAAAAAA"
        return tokens

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
# Another site than 127.0.0.1 to a browser.
ISSUER = f"http://localhost:{server.server_port}"
print(json.dumps({"port": server.server_port, "issuer": ISSUER}), flush=True)
sys.stdout.close()
server.serve_forever()
