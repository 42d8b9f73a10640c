"""The issuer of PyPI's `idpyoidc`, with its own token exchange (RFC 8693): it reads and checks the request, makes a session of the exchange, and
signs a JWT.

Prints its port and its public key as one line of JSON, then one line for each token that it has issued, with the audience that was asked for.
GET /login/CLIENT/NAME is how the test logs a user in at a client.

A token that another client was given is exchanged in a session of its own, of which this version leaves the audience out of the JWT; a token of
the same client is exchanged in its own session, and the JWT has the audience.
"""

import json
import logging
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from idpyoidc.message.oauth2 import AuthorizationRequest
from idpyoidc.server import Server
from idpyoidc.server.authn_event import create_authn_event
from idpyoidc.server.authz import AuthzHandling
from idpyoidc.server.client_authn import verify_client
from idpyoidc.server.configure import ASConfiguration
from idpyoidc.server.exception import ClientAuthenticationError, UnAuthorizedClient, UnknownClient
from idpyoidc.server.user_info import UserInfo

logging.disable(logging.CRITICAL)

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"
SECONDS = 600
TOKEN = {"class": "idpyoidc.server.token.jwt_token.JWTToken", "kwargs": {"lifetime": SECONDS, "alg": "RS256"}}
CONFIGURATION = {
    "issuer": "https://issuer.example",
    "httpc_params": {"timeout": 1},
    "keys": {"uri_path": "jwks.json", "key_defs": [{"type": "RSA", "use": ["sig"]}]},
    "client_authn": verify_client,
    "endpoint": {
        "token": {
            "path": "token",
            "class": "idpyoidc.server.oauth2.token.Token",
            "kwargs": {
                "client_authn_method": ["client_secret_basic", "client_secret_post"],
                "grant_types_helpers": {
                    EXCHANGE: {
                        "class": "idpyoidc.server.oauth2.token_helper.token_exchange.TokenExchangeHelper",
                        "kwargs": {
                            "subject_token_types_supported": [ACCESS],
                            "requested_token_types_supported": [ACCESS],
                            "policy": {"": {
                                "function": "idpyoidc.server.oauth2.token_helper.validate_token_exchange_policy",
                                "kwargs": {"audience": ["svc", "billing"], "resource": ["https://svc.example"]},
                            }},
                        },
                    },
                },
            },
        },
    },
    "authz": {
        "class": AuthzHandling,
        "kwargs": {"grant_config": {
            "usage_rules": {"access_token": {"supports_minting": ["access_token"], "expires_in": SECONDS}},
            "expires_in": 3600,
        }},
    },
    "authentication": {},
    "userinfo": {"class": UserInfo, "kwargs": {"db": {}}},
    "token_handler_args": {"token": TOKEN},
}
SERVER = Server(ASConfiguration(conf=CONFIGURATION, base_path=tempfile.gettempdir()))
CONTEXT = SERVER.context
CONTEXT.map_supported_to_preferred()
for name, grants in (("app", []), ("gw", [EXCHANGE])):
    CONTEXT.cdb[name] = {
        "client_secret": "p@ss word",
        "client_salt": "salt",
        "redirect_uris": [],
        "grant_types_supported": grants,
        "allowed_scopes": ["orders"],
    }
ENDPOINT = SERVER.get_endpoint("token")
ENDPOINT.request_format = "urlencoded"


def login(client, user):
    """A token of a user for a client, as a login would make one."""
    asked = AuthorizationRequest(client_id=client, response_type="code", redirect_uri="https://app.example", scope=["orders"], state="s")
    manager = CONTEXT.session_manager
    session = manager.create_session(create_authn_event(user), asked, user, client_id=client, sub_type="public")
    grant = CONTEXT.authz(session, asked)
    token = grant.mint_token(
        session, context=CONTEXT, token_class="access_token", token_handler=manager.token_handler["access_token"],
        usage_rules=grant.usage_rules["access_token"], token_type="Bearer", resources=[client],
    )
    token.expires_at = int(time.time()) + SECONDS
    return token.value


class Issuer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, {"access_token": login(*self.path.split("/")[-2:])})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            request = ENDPOINT.parse_request(body, http_info={"headers": headers})
            result = request if "error" in request else ENDPOINT.process_request(request)
        except (ClientAuthenticationError, UnAuthorizedClient, UnknownClient):
            self.answer(401, {"error": "invalid_client"})
            return
        except Exception as error:  # a token that does not verify
            self.answer(400, {"error": "invalid_request", "error_description": type(error).__name__})
            return
        if "error" in result:
            status = 401 if result["error"] in ("invalid_client", "unauthorized_client") else 400
            self.answer(status, {"error": result["error"], "error_description": result.get("error_description", "")})
            return
        told = ENDPOINT.do_response(request=request, **result)
        answer = json.loads(told["response"])
        print(json.dumps({"grant": request["grant_type"], "audience": request.get("audience"), **answer}), flush=True)
        self.answer(200, answer)

    def answer(self, status, answer):
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
key = SERVER.keyjar.export_jwks()["keys"][0]
print(json.dumps({"port": server.server_port, "n": key["n"], "e": key["e"]}), flush=True)
server.serve_forever()
