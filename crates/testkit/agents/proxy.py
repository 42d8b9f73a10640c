"""An HTTP proxy that loses answers: it stands between a framework and the server.

    python proxy.py --upstream http://127.0.0.1:8787 --port 0 --lose notes_add:1:close --lose cart_create:1:delay

prints `{"url": "http://127.0.0.1:PORT"}` and forwards until it is killed. Of the calls of a tool over MCP
(`tools/call`), the n-th is forwarded, the server's answer is read to its end, and then

    close   the connection is closed without an answer
    delay   nothing is sent until the client gives up, for 30 seconds at most; then the connection is closed
    502     the answer is HTTP 502, as of a load balancer
    twice   nothing is lost: the same request reaches the server a second time, at the same moment

`GET /_proxy/log` says which calls there were, in their order, and which answers were lost.
"""

import argparse
import http.client
import json
import select
import socket
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOLD_SECONDS = 30
UPSTREAM_SECONDS = 60
NOT_FORWARDED = {"host", "connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass
class Loss:
    tool: str
    nth: int
    how: str

    @classmethod
    def parse(cls, text):
        tool, nth, how = text.split(":")
        if how not in ("close", "delay", "502", "twice"):
            raise ValueError(f"an answer is not lost by {how}")
        return cls(tool, int(nth), how)


class Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, upstream, losses=(), port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.upstream = urlsplit(upstream)
        self.losses = list(losses)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.lock = threading.Lock()
        self.calls = []

    def loss(self, body):
        """Notes a call of a tool. Says how its answer gets lost, if it does."""
        tool = _tool(body)
        if tool is None:
            return None
        with self.lock:
            nth = sum(call["tool"] == tool for call in self.calls) + 1
            how = next((loss.how for loss in self.losses if (loss.tool, loss.nth) == (tool, nth)), None)
            self.calls.append({"tool": tool, "nth": nth, "lost": how})
            return how

    def handle_error(self, *_):
        """A client or a server that hangs up is no error of the proxy."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120

    def forward(self):
        if self.path == "/_proxy/log":
            return self.answer(200, json.dumps({"calls": self.server.calls}).encode())
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        loss = self.server.loss(body)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in NOT_FORWARDED}
        to = self.upstream()
        if loss == "twice":
            threading.Thread(target=self.send_and_forget, args=(body, headers), daemon=True).start()
            loss = None
        try:
            to.request(self.command, self.path, body or None, headers)
            answer = to.getresponse()
            if loss is not None:
                answer.read()
                return self.lose(loss)
            self.pass_on(answer)
        except (OSError, http.client.HTTPException):
            # The server is gone: so is this connection, as it would be without the proxy.
            self.close_connection = True
        finally:
            to.close()

    do_GET = do_POST = do_DELETE = do_PUT = do_OPTIONS = do_HEAD = forward

    def upstream(self):
        to = self.server.upstream
        return http.client.HTTPConnection(to.hostname, to.port, timeout=UPSTREAM_SECONDS)

    def send_and_forget(self, body, headers):
        to = self.upstream()
        try:
            to.request(self.command, self.path, body, headers)
            to.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass
        finally:
            to.close()

    def lose(self, how):
        if how == "502":
            return self.answer(502, b'{"error": "the upstream has closed the connection"}')
        self.close_connection = True
        if how == "delay":
            # The client gives up by closing its end, which makes the socket readable.
            select.select([self.connection], [], [], HOLD_SECONDS)
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def pass_on(self, answer):
        self.send_response(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in NOT_FORWARDED | {"date", "server"}:
                self.send_header(name, value)
        if answer.length is not None:
            content = answer.read()
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while piece := answer.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def answer(self, status, content):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def _tool(body):
    """The tool that a body calls, under the name that MCP lists."""
    try:
        message = json.loads(body)
        if message["method"] == "tools/call":
            return message["params"]["name"].replace(".", "_")
    except (ValueError, TypeError, KeyError):
        pass
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--upstream", required=True)
    parser.add_argument("--port", type=int, default=0, help="0 takes one that is free")
    parser.add_argument("--lose", action="append", default=[], type=Loss.parse, metavar="TOOL:NTH:close|delay|502|twice")
    given = parser.parse_args()
    server = Proxy(given.upstream, given.lose, given.port)
    print(json.dumps({"url": server.url}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
