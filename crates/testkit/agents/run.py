"""Drives a stock agent framework against `countersign serve` with a scripted model.

    python run.py --binary PATH --framework NAME [--scenario ALL] [--python DIR] [--driver COMMAND]

starts a server in a temporary folder for each scenario, the provider stub, and a proxy where answers get lost; talks
with the framework's driver; and asks the server afterwards what has happened. Each scenario prints one JSON line:

    {"framework": …, "scenario": …, "ok": true, "steps": "15/15", "writes": {…}, "reopened": 0, "seconds": 1.2, "why": null}

The exit code is 1 if one of them fails, 2 if something is missing. Every wait has a deadline.

`--python DIR` is the folder of the environments: DIR/agents and DIR/langchain, made from requirements-agents.txt and
requirements-langchain.txt. `--driver COMMAND` runs a driver that is not in `py/`; it speaks the lines that
py/driver.py describes.
"""

import argparse
import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import proxy

HERE = Path(__file__).resolve().parent

FRAMEWORKS = {
    "openai-agents": ("agents", "openai_agents_driver.py", ["chat", "responses"]),
    "agent-framework": ("agents", "agent_framework_driver.py", ["chat", "responses"]),
    "pydantic-ai": ("agents", "pydantic_ai_driver.py", ["chat", "responses", "anthropic"]),
    "langchain": ("langchain", "langchain_driver.py", ["chat", "responses", "anthropic"]),
}
"""Of each framework: its environment, its driver, and the dialects of its stock provider classes."""

START_SECONDS = 30
TURN_SECONDS = 60
CLIENT_SECONDS = 2
"""Time-out of the client where an answer comes late."""

GO_ON = "I have answered both questions. Go on."


class Failed(Exception):
    """A scenario has not ended as it has to."""


def need(condition, why):
    if not condition:
        raise Failed(why)


# --- processes ------------------------------------------------------------------------------------------------------


class Process:
    """A child that answers in lines. Whatever is read of it has a deadline."""

    def __init__(self, command, **options):
        self.name = Path(command[0]).name
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, **options
        )
        self.lines = queue.Queue()
        threading.Thread(target=self._pump, daemon=True).start()

    def _pump(self):
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def line(self, seconds):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise Failed(f"{self.name} said nothing for {seconds} seconds: {self.said()}") from None
        if line is None:
            self.lines.put(None)
            raise Failed(f"{self.name} has ended: {self.said()}")
        return json.loads(line)

    def tell(self, message):
        try:
            self.child.stdin.write(json.dumps(message) + "\n")
            self.child.stdin.flush()
        except OSError:
            raise Failed(f"{self.name} has ended: {self.said()}") from None

    def said(self):
        """The end of what it wrote to stderr."""
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")[-1500:]

    def stop(self, how=signal.SIGTERM, seconds=10):
        if self.child.poll() is None:
            self.child.send_signal(how)
            try:
                self.child.wait(seconds)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait(seconds)


class Server:
    """`countersign serve` with a data folder of its own."""

    def __init__(self, binary, folder, policy=None, options=()):
        self.binary, self.folder = binary, folder
        self.options = [*(["--policy", policy] if policy else []), *options]
        self.process = None
        self.listen = "127.0.0.1:0"

    def key(self, *holder):
        command = [self.binary, "keys", "create", "--data", self.folder, *holder]
        made = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS)
        need(made.returncode == 0, f"no key was made: {made.stderr}")
        return made.stdout.strip()

    def start(self):
        command = [self.binary, "--json", "serve", "--data", self.folder, "--listen", self.listen, *self.options]
        self.process = Process(command)
        self.url = self.process.line(START_SECONDS)["url"]
        self.listen = self.url.removeprefix("http://")

    def restart(self):
        """Ends it at once, as a crash does, and starts it again on the same port."""
        self.process.stop(signal.SIGKILL)
        self.start()

    def stop(self):
        if self.process is not None:
            self.process.stop()

    def get(self, path, key=None):
        return ask("GET", self.url + path, key=key)

    def calls(self, key=None, **query):
        """The records of calls that write. Each has `ran`: false for a refusal, and for an answer that was given again."""
        text = "&".join(f"{name}={value}" for name, value in {"limit": 200, **query}.items())
        found = [call for call in self.get(f"/v1/calls?{text}", key)["calls"] if call["tool"] in WRITES]
        for call in found:
            records = self.get(f"/v1/calls/{call['request_id']}", key)["records"]
            states = [entry["record"].get("idempotency", {}).get("state") for entry in records]
            call["ran"] = call["code"] == "OK" and "replayed" not in states
        return found

    def writes(self, key=None):
        """How often each tool that writes has run."""
        found = {}
        for call in self.calls(key):
            if call["ran"]:
                found[call["tool"]] = found.get(call["tool"], 0) + 1
        return found


WRITES = {
    "cart.create",
    "cart.add_item",
    "checkout.select_shipping_option",
    "checkout.create_draft_order",
    "checkout.lock_price_and_stock",
    "payment.create_payment_intent",
    "notes.add",
    "notes.clear",
}


def ask(method, url, body=None, key=None):
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        raise Failed(f"{method} {url}: {refused.code} {refused.read().decode()[:600]}") from None


# --- a scenario -----------------------------------------------------------------------------------------------------


class Stage:
    """What a scenario plays on: a server, the model, the driver, and what has to be stopped at the end."""

    def __init__(self, given, driver, stub_url):
        self.given, self.driver, self.stub_url = given, driver, stub_url
        self.folder = tempfile.mkdtemp(prefix="countersign-agents-")
        self.server = Server(given.binary, self.folder, given.policy)
        self.proxy = None
        self.opened = False
        self.story = None
        self.reopened = 0

    def lose(self, *losses):
        """A proxy in front of the server that loses these answers."""
        self.proxy = proxy.Proxy(self.server.url, [proxy.Loss.parse(loss) for loss in losses])
        threading.Thread(target=self.proxy.serve_forever, daemon=True).start()

    def open(self, **spec):
        """Connects the framework. Gives the error, if there is one."""
        url = self.proxy.url if self.proxy else self.server.url
        self.driver.tell({"do": "open", "mcp_url": f"{url}/mcp", "model_url": self.stub_url, **spec})
        answer = self.driver.line(START_SECONDS)
        self.opened = answer["ok"]
        return answer.get("error")

    def hear(self, text):
        """What the user sees of a turn: what the model says, or the error that the framework raises."""
        self.driver.tell({"do": "say", "text": text})
        answer = self.driver.line(TURN_SECONDS)
        return answer["text"] if answer["ok"] else answer["error"]

    def say(self, text):
        """What the model ends its turn with, as the framework hands it out."""
        self.driver.tell({"do": "say", "text": text})
        answer = self.driver.line(TURN_SECONDS)
        need(answer["ok"], f"the framework raised {answer.get('error')}")
        return answer["text"]

    def tell(self, text):
        """Plays a story, or goes on with it. Gives what the model has read."""
        said = self.say(text)
        found = re.match(r"STORY (\d+/\d+) (\{.*\})$", said, re.S)
        need(found, f"the model ended with {said[:400]!r}")
        self.story = found[1]
        read = json.loads(found[2])
        need(not read.get("stuck"), f"stuck after {self.story}: {read.get('stuck')}")
        return read

    def whole(self, steps):
        need(self.story == f"{steps}/{steps}", f"the model made {self.story} steps")

    def close(self):
        if self.opened:
            self.opened = False
            self.driver.tell({"do": "close"})
            self.driver.line(START_SECONDS)

    def end(self):
        if self.proxy is not None:
            self.proxy.shutdown()
            self.proxy.server_close()
        self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def story(stage, dialect, stream=False):
    """Fifteen steps to a draft order, a payment and two questions for the user."""
    stage.server.start()
    connected(stage, dialect=dialect, stream=stream)
    stage.tell("[story:shop] Buy three wireless earbuds, to Berlin.")
    stage.whole(15)
    writes = stage.server.writes()
    for tool in ("cart.create", "cart.add_item", "checkout.create_draft_order", "notes.add"):
        need(writes.get(tool) == 1, f"{tool} ran {writes.get(tool, 0)} times")
    return writes


def lost(stage, how="close", **spec):
    """The answers of three writes are lost: each write happens once, and the story goes on."""
    stage.server.start()
    stage.lose(*(f"{tool}:1:{how}" for tool in ("cart_create", "cart_add_item", "notes_add")))
    spec |= {"retry": True, "timeout": CLIENT_SECONDS if how == "delay" else 20}
    read = patiently(stage, "[story:writes] Put two earbuds into a cart, and note it.", spec)
    stage.whole(5)
    writes = stage.server.writes()
    for call in ("cart_create", "cart_add_item", "notes_add"):
        seen = [entry for entry in stage.proxy.calls if entry["tool"] == call]
        need(seen and seen[0]["lost"], f"no answer of {call} was lost")
        need(len(seen) > 1, f"{call} was not sent again")
    for tool in ("cart.create", "cart.add_item", "notes.add"):
        need(writes.get(tool) == 1, f"{tool} ran {writes.get(tool, 0)} times; the model read {read}")
    need(read["quantity"] == 2, f"the cart holds {read['quantity']} instead of 2")
    need(read["notes"] == 1, f"there are {read['notes']} notes instead of 1")
    return writes


def patiently(stage, text, spec):
    """What a program does whose framework gives up: it connects again and asks the same, three times at most."""
    for left in (3, 2, 1, 0):
        connected(stage, **spec)
        try:
            return stage.tell(text)
        except Failed:
            if left == 0:
                raise
        stage.reopened += 1
        stage.close()


def late(stage):
    """The same, but the answers do not come until the client gives up."""
    return lost(stage, "delay")


def keyed(stage):
    """The same with a key per call."""
    return lost(stage, keyed=True)


def twice(stage, **spec):
    """The same note twice, on purpose: there are two notes."""
    stage.server.start()
    connected(stage, **spec)
    read = stage.tell("[story:twice] Note the same twice.")
    stage.whole(4)
    writes = stage.server.writes()
    told = "was told" if read["told"] else "was not told"
    need(read["notes"] == 2, f"there are {read['notes']} notes instead of 2; the model {told} that the answer is the first")
    need(writes == {"notes.add": 2}, f"there ran {writes}")
    return writes


def again(stage):
    """The same with calls that say that they are meant again."""
    return twice(stage, again=True)


def approval(stage, decision="approve"):
    """The user confirms a payment and the removal of notes: the same calls, sent again, then run."""
    agent = stage.server.key("--agent", "shopper", "--for", "ann")
    ann = stage.server.key("--user", "ann")
    stage.server.start()
    connected(stage, api_key=agent)
    read = stage.tell("[story:shop] Buy three wireless earbuds, to Berlin.")
    stage.whole(15)
    before = stage.server.writes(ann)
    need("payment.create_payment_intent" not in before, "the payment ran before the user has confirmed it")
    for question in read["asked"]:
        id = question["approval_id"]
        need(question["where"], f"the text says not where the user answers: {question['text']!r}")
        ask("POST", f"{stage.server.url}/v1/approvals/{id}", {"decision": decision}, ann)
    read = stage.tell(GO_ON)
    ends = {end["tool"]: end for end in read["ends"]}
    writes = stage.server.writes(ann)
    if decision == "approve":
        for tool, end in ends.items():
            need(end["code"] == "OK", f"{tool} after the confirmation: {end['text']!r}")
        need("requires_user_action" in ends["payment_create_payment_intent"]["text"], "the payment has no intent")
    else:
        for tool, end in ends.items():
            need(end["code"] == "FORBIDDEN", f"{tool} after the refusal: {end['text']!r}")
            need(re.search(r"declin|refus|denied", end["text"]), f"the text gives no reason: {end['text']!r}")
    for tool in ("payment.create_payment_intent", "notes.clear"):
        wanted = 1 if decision == "approve" else 0
        need(writes.get(tool, 0) == wanted, f"{tool} ran {writes.get(tool, 0)} times instead of {wanted}")
    return writes


def denial(stage):
    """The user says no: the same calls are refused, and the model reads why."""
    return approval(stage, "deny")


def key(stage):
    """The right key works; a wrong one and none are refused with a reason that a person can read."""
    agent = stage.server.key("--agent", "shopper", "--for", "ann")
    stage.server.start()
    connected(stage, api_key=agent)
    stage.tell("[story:hello] Note hello.")
    stage.whole(2)
    writes = stage.server.writes(agent)
    need(writes == {"notes.add": 1}, f"with the right key ran {writes}")
    stage.close()
    for wrong in ("csk_0123456789abcdef_" + "0" * 43, None):
        text = stage.open(api_key=wrong)
        if text is None:
            text = stage.hear("[story:hello] Note hello.")
            stage.close()
        need(
            re.search(r"credential|API key|unauthorized", text, re.I),
            f"{'a wrong key' if wrong else 'no key'} says only {text[:600]!r}",
        )
    need(stage.server.writes(agent) == {"notes.add": 1}, "a wrong key has written")
    return writes


def restart(stage):
    """The server is killed and started again between two turns: the client goes on."""
    stage.server.start()
    connected(stage, retry=True)
    stage.tell("[story:pause] Make a cart.")
    need(stage.story == "2/4", f"before the restart the model made {stage.story} steps")
    stage.server.restart()
    read = stage.tell("Go on.")
    stage.whole(4)
    writes = stage.server.writes()
    need(read["quantity"] == 2, f"the cart holds {read['quantity']} instead of 2")
    need(writes == {"cart.create": 1, "notes.add": 1, "cart.add_item": 1}, f"after the restart: {writes}")
    return writes


def connected(stage, **spec):
    error = stage.open(**spec)
    need(error is None, f"the framework does not connect: {error}")


SCENARIOS = {
    "lost": lost,
    "late": late,
    "keyed": keyed,
    "twice": twice,
    "again": again,
    "approval": approval,
    "denial": denial,
    "key": key,
    "restart": restart,
}


# --- all of them ----------------------------------------------------------------------------------------------------


def scenarios(dialects):
    """Every scenario by name: the story in each dialect, once with streams, and the others."""
    found = {f"story-{dialect}": partial(story, dialect=dialect) for dialect in dialects}
    found["story-stream"] = partial(story, dialect=dialects[0], stream=True)
    return found | SCENARIOS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True, help="the program countersign")
    parser.add_argument("--framework", required=True)
    parser.add_argument("--scenario", default="ALL", help="names, or how they begin, with commas in between")
    parser.add_argument("--python", default=None, help="the folder of the environments [default: this Python]")
    parser.add_argument("--driver", help="the command of a driver that is not in py/")
    parser.add_argument("--dialects", help="the dialects of that driver, with commas in between")
    parser.add_argument("--policy", help="a policy file for the server")
    given = parser.parse_args()
    environment, script, dialects = FRAMEWORKS.get(given.framework, ("agents", None, ["chat"]))
    if given.driver:
        command = shlex.split(given.driver)
    elif script:
        command = [python(given.python, environment), str(HERE / "py" / script)]
    else:
        parser.error(f"no framework {given.framework}; there are {', '.join(FRAMEWORKS)}")
    known = scenarios(given.dialects.split(",") if given.dialects else dialects)
    wanted = given.scenario.split(",")
    chosen = {
        name: play
        for name, play in known.items()
        if given.scenario == "ALL" or any(name == one or name.startswith(one + "-") for one in wanted)
    }
    if not chosen:
        parser.error(f"no scenario {given.scenario}; there are {', '.join(known)}")
    stub = Process([python(given.python, "agents"), str(HERE / "stub.py"), "--port", "0"])
    driver = None
    failures = 0
    try:
        stub_url = stub.line(START_SECONDS)["url"]
        for name, play in chosen.items():
            if driver is None:
                driver = Process(command, env=os.environ | {"PYTHONUNBUFFERED": "1"})
            result = perform(given, name, play, driver, stub_url)
            print(json.dumps(result), flush=True)
            if not result["ok"]:
                # What is left of the conversation must not reach the next one.
                failures += 1
                driver.stop(signal.SIGKILL)
                driver = None
    finally:
        for process in (driver, stub):
            if process is not None:
                process.stop(signal.SIGKILL)
    sys.exit(1 if failures else 0)


def perform(given, name, play, driver, stub_url):
    """Plays one scenario and says how it ended."""
    stage = Stage(given, driver, stub_url)
    began, writes, why = time.monotonic(), None, None
    refused = len(ask("GET", f"{stub_url}/log")["refused"])
    try:
        writes = play(stage)
        stage.close()
    except Failed as wrong:
        why = str(wrong)
    finally:
        stage.end()
    wrong = ask("GET", f"{stub_url}/log")["refused"][refused:]
    if wrong:
        why = f"{why or ''} The provider refused a request: {wrong[0]['why']}".strip()
    return {
        "framework": given.framework,
        "scenario": name,
        "ok": why is None,
        "steps": stage.story,
        "writes": writes,
        "reopened": stage.reopened,
        "seconds": round(time.monotonic() - began, 1),
        "why": why,
    }


def python(folder, environment):
    return str(Path(folder) / environment / "bin" / "python") if folder else sys.executable


if __name__ == "__main__":
    main()
