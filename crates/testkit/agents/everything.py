"""One story over all: a server of FastMCP, one of the TypeScript SDK, an HTTP service and the shop behind one gateway.

The model uses all four, four times. Between two rounds one server is killed, one changes a definition, and one lies about its schema; each time
the model is told so, and the other three work. Afterwards every call has its evidence, its pin and its trace, and the servers have heard what the
evidence says and nothing else. At last the first three rounds are played from a recording, with nothing behind the gateway.
"""

import json
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from stage import ENVIRONMENT, HERE, START_SECONDS, Process, Server, approvals, need

SHOP, WEATHER, DESK, PARCEL = "catalog.search_offers", "weather.forecast", "desk.open_ticket", "parcel.track"
TOOLS = (SHOP, WEATHER, DESK, PARCEL)

CONFIG = """
[shop]
enabled = true

[[upstream]]
name = "weather"
kind = "mcp"
url = "http://127.0.0.1:{weather}/mcp"
allow_private = ["loopback"]
trust = "first_use"

[[upstream]]
name = "desk"
kind = "mcp"
command = {desk}
shared = true
trust = "first_use"
connections.start_ms = 60000

[[upstream]]
name = "parcel"
base_url = "http://127.0.0.1:{parcel}"
allow_private = ["loopback"]

[[tool]]
name = "weather.forecast"
effect = "read"

[[tool]]
name = "desk.ping"
effect = "read"

[[tool]]
name = "parcel.track"
upstream = "parcel"
description = "Says when a parcel arrives."
effect = "read"
parameters = [{{ name = "parcel" }}]
output = {{ type = "object", properties = {{ days = {{ type = "integer" }} }}, required = ["days"] }}
response.on_mismatch = "refuse"
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def until(condition, what):
    """Waits for something that happens elsewhere."""
    end = time.monotonic() + START_SECONDS
    while not condition():
        need(time.monotonic() < end, f"{what} did not happen within {START_SECONDS} seconds")
        time.sleep(0.02)


class Parcels(ThreadingHTTPServer):
    """The HTTP service. While `lies`, its answers do not fit its schema."""

    daemon_threads = True

    def __init__(self, heard):
        super().__init__(("127.0.0.1", 0), Answer)
        self.heard, self.lies = heard, False
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        heard = {"tool": PARCEL, "request_id": self.headers["x-request-id"], "traceparent": self.headers["traceparent"]}
        with open(self.server.heard, "a") as file:
            file.write(json.dumps(heard) + "\n")
        body = json.dumps({"days": "soon" if self.server.lies else 3}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class World:
    """The servers behind the gateway."""

    def __init__(self, folder, python):
        self.folder = Path(folder)
        self.heard = self.folder / "heard.jsonl"
        self.heard.touch()
        self.changed = self.folder / "changed"
        self.python, self.port = python, free_port()
        self.parcels = Parcels(self.heard)
        self.weather = None
        node = HERE / "js"
        desk = [str(node / "node_modules/.bin/node"), str(HERE / "upstreams/desk.mjs"), str(node)]
        self.config = self.folder / "countersign.toml"
        self.config.write_text(
            CONFIG.format(
                weather=self.port,
                desk=json.dumps([*desk, str(self.heard), str(self.changed)]),
                parcel=self.parcels.server_address[1],
            )
        )

    def start_weather(self):
        command = [self.python, str(HERE / "upstreams/weather.py"), str(self.port), str(self.heard)]
        self.weather = Process(command, env=ENVIRONMENT)
        until(self.is_listening, "the start of the server of FastMCP")

    def is_listening(self):
        need(self.weather.child.poll() is None, f"the server of FastMCP has ended: {self.weather.said()}")
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def kill_weather(self):
        if self.weather is not None:
            self.weather.stop(signal.SIGKILL)

    def calls(self):
        return [json.loads(line) for line in self.heard.read_text().splitlines()]

    def end(self):
        self.kill_weather()
        self.parcels.shutdown()
        self.parcels.server_close()


def everything(stage):
    world = World(stage.folder, stage.framework.interpreter[0])
    try:
        return play(stage, world)
    finally:
        world.end()


def play(stage, world):
    world.start_weather()
    stage.server.start("--config", str(world.config))
    until(lambda: set(TOOLS) <= listed(stage.server), "the list of all tools")
    stage.connect()
    rounds = stage.tell("[story:everything] Look at the weather, the desk, the parcel and the shop.")["rounds"]
    need(rounds == [ended()], f"the first round: {rounds}")
    world.kill_weather()
    rounds = stage.tell("Go on.")["rounds"]
    need(rounds[1:] == [ended(WEATHER)], f"with one server killed: {rounds[1:]}")
    world.start_weather()
    world.changed.touch()
    world.parcels.lies = True
    until(lambda: ping(stage.server) == "UPSTREAM_ERROR", "the quarantine of a definition that has changed")
    rounds = stage.tell("Go on.")["rounds"]
    need(rounds[2:] == [ended(DESK, PARCEL)], f"with a changed definition and a lie: {rounds[2:]}")
    recorded = run(stage, world, "record", *(f"--tool={tool}" for tool in TOOLS))
    (world.folder / "calls.jsonl").write_text(recorded)
    run(stage, world, "upstreams", "approve", "desk")
    world.parcels.lies = False
    until(lambda: ping(stage.server) == "OK", "the approval of the changed definition")
    rounds = stage.tell("Go on.")["rounds"]
    need(rounds[3:] == [ended()], f"after the approval: {rounds[3:]}")
    look(stage, world)
    stage.measured |= {"rounds": len(rounds)}
    stage.close()
    stage.server.stop()
    world.end()
    from_recording(stage, world, rounds[:3])
    return {}


def ended(*failed):
    """How the calls of a round end if these fail."""
    return {tool: "UPSTREAM_ERROR" if tool in failed else "OK" for tool in TOOLS}


def listed(server):
    return {tool["name"] for tool in approvals.ask(f"{server.url}/v1/tools", None)}


def ping(server):
    """The code of a call of a tool that is on the list with the one that changes."""
    request = urllib.request.Request(f"{server.url}/v1/tools/desk.ping", b"{}")
    try:
        with urllib.request.urlopen(request, timeout=START_SECONDS):
            return "OK"
    except urllib.error.HTTPError as refused:
        return json.load(refused)["error"]["code"]


def run(stage, world, *words):
    """A command on the folder of the server, while it runs."""
    command = [stage.server.binary, "--config", str(world.config), "--data", stage.folder, *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, cwd=world.folder)
    need(ran.returncode == 0, f"{' '.join(words)}: {ran.stdout[-600:]} {ran.stderr[-600:]}")
    return ran.stdout


def look(stage, world):
    """Every call has its evidence, its pin and its trace, and the servers have heard what the evidence says."""
    url = stage.server.url
    calls = [call for call in approvals.ask(f"{url}/v1/calls?limit=200", None)["calls"] if call["tool"] in TOOLS]
    need(len(calls) == 16, f"there are {len(calls)} calls instead of 16")
    heard = {}
    for call in world.calls():
        need(call["request_id"] not in heard, f"a server has heard a call twice: {call}")
        heard[call["request_id"]] = call
    pins = {WEATHER: set(), DESK: set()}
    for call in reversed(calls):
        tool, is_ok = call["tool"], call["code"] == "OK"
        record = approvals.ask(f"{url}/v1/calls/{call['request_id']}", None)["records"][0]["record"]
        need(record["tool"].get("definition", "").startswith("sha256:"), f"a call has no pin: {record}")
        opened = json.loads(run(stage, world, "--json", "evidence", "open", record["id"], "--reason", "the story"))
        need(opened["trace"].get("trace_id"), f"a call has no trace: {opened}")
        told = heard.pop(call["request_id"], None)
        is_heard = tool != SHOP and (is_ok or tool == PARCEL)
        need((told is not None) == is_heard, f"{tool} {call['code']}: the server has heard {told}")
        if told is not None:
            need(opened["trace"]["trace_id"] in told["traceparent"], f"{tool} has another trace: {told} {opened['trace']}")
        if tool in pins:
            named = [source["hash"] for source in opened["sources"] if source["type"] == "mcp_pin"]
            need(len(named) == 1, f"{tool} names no pin: {opened}")
            pins[tool].add(named[0])
    need(not heard, f"servers have heard calls without evidence: {heard}")
    need(len(pins[WEATHER]) == 1, f"the pin of an unchanged server: {pins[WEATHER]}")
    need(len(pins[DESK]) == 2, f"the pins before and after the approval: {pins[DESK]}")
    run(stage, world, "verify", "--all")


def from_recording(stage, world, wanted):
    """The same conversation gets the same answers from a file, from a gateway that knows the shop and nothing else."""
    config = world.folder / "shop.toml"
    config.write_text("[shop]\nenabled = true\n")
    stage.server = Server(stage.server.binary, stage.folder, [])
    stage.server.start("--config", str(config), "--from-recording", str(world.folder / "calls.jsonl"))
    stage.begin_anew()
    for text in ("[story:everything] Look at all four.", "Go on.", "Go on."):
        rounds = stage.tell(text)["rounds"]
    need(rounds == wanted, f"from the recording: {rounds} instead of {wanted}")
    counts = approvals.ask(f"{stage.server.url}/v1/status", None)["recording"]
    counts.pop("digest")
    need(counts == {"calls": 12, "answered": 12, "unused": 0, "unmatched": 0}, f"the recording was used so: {counts}")
