"""Drives stock agent frameworks against `countersign serve` with a scripted model.

    python run.py --binary PATH --framework NAME[,NAME…|ALL] [--scenario ALL] [--python DIR] [--driver COMMAND]

starts a server in a temporary folder for each scenario, the provider stub, and a proxy where answers get lost; talks
with the framework's driver; and asks the server afterwards what has happened. Each scenario prints one JSON line:

    {"framework": …, "scenario": …, "ok": true, "steps": "15/15", "writes": {…}, "reopened": 0, "seconds": 1.2, "why": null}

`writes` is how often each tool that writes has run, `reopened` how often the framework gave up and the program had to
begin again. The exit code is 1 if a scenario fails, 2 for wrong use. Every wait has a deadline.

`--python DIR` is the folder of the environments: DIR/agents and DIR/langchain, made from requirements-agents.txt and
requirements-langchain.txt. The JavaScript frameworks need `npm ci` in js/. `--driver COMMAND` replaces the driver; it
speaks the lines that py/driver.py describes.
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
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import approvals
import proxy

HERE = Path(__file__).resolve().parent

START_SECONDS = 60
TURN_SECONDS = 60
CLIENT_SECONDS = 2
"""Time-out of the client where an answer comes late."""

PAGE = "https://shop.example/approvals/{id}"
"""The page on which users of the test answer questions."""

ENVIRONMENT = {name: os.environ[name] for name in os.environ if name != "PYTHONDONTWRITEBYTECODE"}
"""Of the children. The environments are installed without bytecode: it has to be kept once it is made."""

OPENAI = ["chat", "responses"]
EVERY = ["chat", "responses", "anthropic"]


@dataclass
class Framework:
    """A framework: the command of its driver, and what its stock classes can do."""

    driver: list[str]
    dialects: list[str] = field(default_factory=lambda: OPENAI)
    without: tuple[str, ...] = ()
    """Scenarios that the framework has no means for."""
    sessions: bool = False
    """True if a form needs a server that keeps sessions."""


def python(environment, script):
    """The command of a Python driver; PYTHON and the environment become a path."""
    return ["PYTHON", environment, str(HERE / "py" / script)]


def node(name):
    return [str(HERE / "js/node_modules/.bin/node"), str(HERE / "js/drive.mjs"), name]


FRAMEWORKS = {
    "openai-agents": Framework(python("agents", "openai_agents_driver.py"), without=("form",)),
    "agent-framework": Framework(python("agents", "agent_framework_driver.py"), without=("form",)),
    "pydantic-ai": Framework(python("agents", "pydantic_ai_driver.py"), EVERY),
    "langchain": Framework(python("langchain", "langchain_driver.py"), EVERY, sessions=True),
    "openai-agents-js": Framework(node("openai-agents"), without=("form",)),
    "langchain-js": Framework(node("langchain"), EVERY, without=("form",)),
    "vercel-ai-6": Framework(node("vercel-ai-6"), sessions=True),
    "vercel-ai-7": Framework(node("vercel-ai-7")),
    "mastra": Framework(node("mastra")),
}

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


class Failed(Exception):
    """A scenario has not ended as it has to."""


def need(condition, why):
    if not condition:
        raise Failed(why)


# --- processes ------------------------------------------------------------------------------------------------------


class Process:
    """A child that answers in lines. Whatever is read of it has a deadline."""

    def __init__(self, command, **options):
        self.name = " ".join(Path(part).name for part in command[:2])
        self.errors = tempfile.TemporaryFile()
        try:
            self.child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, **options
            )
        except OSError as wrong:
            raise Failed(f"{self.name} does not start: {wrong}") from None
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

    def __init__(self, binary, folder, options=()):
        self.binary, self.folder, self.options = binary, folder, list(options)
        self.process = None
        self.listen = "127.0.0.1:0"

    def key(self, *holder):
        command = [self.binary, "keys", "create", "--data", self.folder, *holder]
        made = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS)
        need(made.returncode == 0, f"no key was made: {made.stderr}")
        return made.stdout.strip()

    def start(self, *options):
        self.options += options
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

    def writes(self, key=None):
        """How often each tool that writes has run: a refusal, or an answer that was given again, does not count."""
        found = {}
        for call in approvals.ask(f"{self.url}/v1/calls?limit=200", key)["calls"]:
            if call["tool"] not in WRITES or call["code"] != "OK":
                continue
            records = approvals.ask(f"{self.url}/v1/calls/{call['request_id']}", key)["records"]
            states = [entry["record"].get("idempotency", {}).get("state") for entry in records]
            if "replayed" not in states:
                found[call["tool"]] = found.get(call["tool"], 0) + 1
        return found


# --- the stage of a scenario ----------------------------------------------------------------------------------------


class Stage:
    """What a scenario plays on: a server, the model, the driver, and what has to be stopped at the end."""

    def __init__(self, framework, driver, stub_url, server_options, binary):
        self.framework, self.driver, self.stub_url = framework, driver, stub_url
        self.folder = tempfile.mkdtemp(prefix="countersign-agents-")
        self.server = Server(binary, self.folder, server_options)
        self.conversation = f"c_{uuid.uuid4().hex}"
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
        model_url = f"{self.stub_url}/for-{self.conversation}"
        spec = {"mcp_url": f"{url}/mcp", "model_url": model_url, "conversation": self.conversation} | spec
        self.driver.tell({"do": "open"} | spec)
        answer = self.driver.line(START_SECONDS)
        self.opened = answer["ok"]
        return answer.get("error")

    def connect(self, **spec):
        error = self.open(**spec)
        need(error is None, f"the framework does not connect: {error}")

    def hear(self, text):
        """A turn: true and what the model says, or false and the error that the framework raises."""
        self.driver.tell({"do": "say", "text": text})
        answer = self.driver.line(TURN_SECONDS)
        return answer["ok"], answer["text"] if answer["ok"] else answer["error"]

    def tell(self, text):
        """Plays a story, or goes on with it. Gives what the model has read."""
        ok, said = self.hear(text)
        need(ok, f"the framework raised {said}")
        found = re.match(r"STORY (\d+/\d+) (\{.*\})$", said, re.S)
        need(found, f"the model ended with {said[:400]!r}")
        self.story = found[1]
        read = json.loads(found[2])
        need(not read.get("stuck"), f"stuck after {self.story}: {read.get('stuck')}")
        return read

    def patiently(self, text, spec):
        """Does what a program does whose framework gives up: connects again and asks the same, three times at most."""
        for left in (3, 2, 1, 0):
            self.connect(**spec)
            try:
                return self.tell(text)
            except Failed:
                if left == 0:
                    raise
            self.reopened += 1
            self.close()

    def refusals(self):
        """What the provider found wrong with requests of this scenario."""
        found = approvals.ask(f"{self.stub_url}/log", None)["refused"]
        return [refused["why"] for refused in found if refused["for"] == self.conversation]

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


# --- scenarios ------------------------------------------------------------------------------------------------------


def story(stage, dialect, stream=False):
    """Fifteen steps to a draft order, a payment and two questions for the user."""
    stage.server.start()
    stage.connect(dialect=dialect, stream=stream)
    stage.tell("[story:shop] Buy three wireless earbuds, to Berlin.")
    stage.whole(15)
    writes = stage.server.writes()
    for tool in ("cart.create", "cart.add_item", "checkout.create_draft_order", "notes.add"):
        need(writes.get(tool) == 1, f"{tool} ran {writes.get(tool, 0)} times")
    return writes


def lost(stage, how="close", tools=("cart.create", "cart.add_item", "notes.add"), **spec):
    """The answers of writes are lost: each write happens once, and the story goes on."""
    stage.server.start()
    stage.lose(*(f"{tool.replace('.', '_')}:1:{how}" for tool in tools))
    spec |= {"retry": True, "timeout": CLIENT_SECONDS if how == "delay" else 20}
    read = stage.patiently("[story:writes] Put two earbuds into a cart, and note it.", spec)
    stage.whole(5)
    for tool in tools:
        seen = [call for call in stage.proxy.calls if call["tool"] == tool.replace(".", "_")]
        need(seen and seen[0]["lost"], f"no answer of {tool} was lost")
        need(len(seen) > 1, f"{tool} was not sent again")
    writes = stage.server.writes()
    for tool in ("cart.create", "cart.add_item", "notes.add"):
        need(writes.get(tool) == 1, f"{tool} ran {writes.get(tool, 0)} times; the model read {read}")
    need(read["quantity"] == 2, f"the cart holds {read['quantity']} instead of 2")
    need(read["notes"] == 1, f"there are {read['notes']} notes instead of 1")
    return writes


def late(stage):
    """The same, but an answer does not come until the client gives up."""
    return lost(stage, "delay", ["cart.add_item"])


def gateway(stage):
    """The same, but what is between client and server answers 502."""
    return lost(stage, "502")


def keyed(stage):
    """The same with a key per call."""
    return lost(stage, keyed=True)


def twice(stage, **spec):
    """The same note twice, on purpose: there are two notes."""
    stage.server.start()
    stage.connect(**spec)
    read = stage.tell("[story:twice] Note the same twice.")
    stage.whole(4)
    writes = stage.server.writes()
    told = "was told" if read["told"] else "was not told"
    need(read["notes"] == 2, f"there are {read['notes']} notes instead of 2; the model {told} that the answer is the first")
    need(writes == {"notes.add": 2}, f"there ran {writes}")
    need(not (spec and read["told"]), "a call with a key of its own got the answer of another one")
    return writes


def again(stage):
    """The same with a key per call: another key says that the call is meant, and the model has nothing to do for it."""
    return twice(stage, keyed=True)


def approval(stage, decision="approve"):
    """The user confirms a payment and the removal of notes: the same calls, sent again, then run."""
    agent = stage.server.key("--agent", "shopper", "--for", "ann")
    ann = stage.server.key("--user", "ann")
    stage.server.start("--approvals-url", PAGE)
    stage.connect(api_key=agent)
    read = stage.tell("[story:shop] Buy three wireless earbuds, to Berlin.")
    stage.whole(15)
    before = stage.server.writes(ann)
    need("payment.create_payment_intent" not in before, "the payment ran before the user has confirmed it")
    waiting = [question["id"] for question in approvals.pending(stage.server.url, ann)]
    asked = [question["approval_id"] for question in read["asked"]]
    need(sorted(waiting) == sorted(asked), f"the user is asked {waiting}, the model has read {asked}")
    for question in read["asked"]:
        page = PAGE.replace("{id}", question["approval_id"])
        need(question["where"] == page, f"the text does not say that the user answers at {page}: {question['text']!r}")
    for id in waiting:
        approvals.answer(stage.server.url, ann, id, decision)
    read = stage.tell("I have answered both questions. Go on.")
    for end in read["ends"]:
        if decision == "approve":
            need(end["code"] == "OK", f"{end['tool']} after the confirmation: {end['text']!r}")
        else:
            need(end["code"] == "FORBIDDEN", f"{end['tool']} after the refusal: {end['text']!r}")
            need(re.search(r"declin|refus|denied", end["text"]), f"the text gives no reason: {end['text']!r}")
    writes = stage.server.writes(ann)
    for tool in ("payment.create_payment_intent", "notes.clear"):
        wanted = 1 if decision == "approve" else 0
        need(writes.get(tool, 0) == wanted, f"{tool} ran {writes.get(tool, 0)} times instead of {wanted}")
    return writes


def denial(stage):
    """The user says no: the same calls are refused, and the model reads why."""
    return approval(stage, "deny")


def form(stage, answer="accept"):
    """The user's own client shows a form of the server while the call waits."""
    ann = stage.server.key("--user", "ann")
    stage.server.start(*(["--mcp-sessions", "50"] if stage.framework.sessions else []))
    stage.connect(api_key=ann, form=answer)
    read = stage.tell("[story:form] Forget my notes.")
    stage.whole(2)
    writes = stage.server.writes(ann)
    if answer == "accept":
        need(read["end"] == "cleared", f"after the user's yes: {read['end']!r}")
        need(writes.get("notes.clear") == 1, f"there ran {writes}")
    else:
        need("FORBIDDEN" in read["end"], f"after the user's no: {read['end']!r}")
        need("notes.clear" not in writes, f"there ran {writes}")
    return writes


def form_no(stage):
    """The same, and the user says no."""
    return form(stage, "decline")


def key(stage):
    """The right key works; a wrong one and none are refused with a reason that a person can read."""
    agent = stage.server.key("--agent", "shopper", "--for", "ann")
    stage.server.start()
    stage.connect(api_key=agent)
    stage.tell("[story:hello] Note hello.")
    stage.whole(2)
    writes = stage.server.writes(agent)
    need(writes == {"notes.add": 1}, f"with the right key ran {writes}")
    stage.close()
    for wrong in ("csk_0123456789abcdef_" + "0" * 43, None):
        text = stage.open(api_key=wrong)
        if text is None:
            _, text = stage.hear("[story:hello] Note hello.")
            stage.close()
        named = "a wrong key" if wrong else "no key"
        need(re.search(r"credential|API key|authori[sz]", text, re.I), f"{named} says only {text[:600]!r}")
    need(stage.server.writes(agent) == {"notes.add": 1}, "a wrong key has written")
    return writes


def restart(stage):
    """The server is killed and started again between two turns: the client goes on."""
    stage.server.start()
    stage.connect(retry=True)
    stage.tell("[story:pause] Make a cart.")
    need(stage.story == "2/4", f"before the restart the model made {stage.story} steps")
    stage.server.restart()
    read = stage.tell("Go on.")
    stage.whole(4)
    writes = stage.server.writes()
    need(read["quantity"] == 2, f"the cart holds {read['quantity']} instead of 2")
    need(writes == {"cart.create": 1, "notes.add": 1, "cart.add_item": 1}, f"after the restart: {writes}")
    return writes


SCENARIOS = {
    "lost": lost,
    "late": late,
    "gateway": gateway,
    "keyed": keyed,
    "twice": twice,
    "again": again,
    "approval": approval,
    "denial": denial,
    "form": form,
    "form-no": form_no,
    "key": key,
    "restart": restart,
}


def scenarios(framework):
    """Every scenario by name: the story in each dialect, once with streams, and the others."""
    found = {f"story-{dialect}": partial(story, dialect=dialect) for dialect in framework.dialects}
    found["story-stream"] = partial(story, dialect=framework.dialects[0], stream=True)
    found |= SCENARIOS
    return {name: play for name, play in found.items() if not named(name, framework.without)}


def named(scenario, names):
    """True if one of the names is that of the scenario, or how it begins."""
    return any(scenario == name or scenario.startswith(f"{name}-") for name in names)


# --- all of them ----------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True, help="the program countersign")
    parser.add_argument("--framework", required=True, help="names, with commas in between, or ALL")
    parser.add_argument("--scenario", default="ALL", help="names, or how they begin, with commas in between")
    parser.add_argument("--python", help="the folder of the environments [default: this Python]")
    parser.add_argument("--driver", help="the command of another driver")
    parser.add_argument("--dialects", help="the dialects of that driver, with commas in between")
    parser.add_argument("--policy", help="a policy file for the server")
    parser.add_argument("--jobs", type=int, default=2, help="how many frameworks are driven at once [default: 2]")
    given = parser.parse_args()
    frameworks = list(FRAMEWORKS) if given.framework == "ALL" else given.framework.split(",")
    chosen = []
    for name in frameworks:
        if name not in FRAMEWORKS and not given.driver:
            parser.error(f"no framework {name}; there are {', '.join(FRAMEWORKS)}")
        framework = FRAMEWORKS.get(name) or Framework([])
        if given.driver:
            framework.driver = shlex.split(given.driver)
        if given.dialects:
            framework.dialects = given.dialects.split(",")
        wanted = scenarios(framework)
        if given.scenario != "ALL":
            wanted = {one: play for one, play in wanted.items() if named(one, given.scenario.split(","))}
        chosen.append((name, framework, wanted))
    if not any(wanted for _, _, wanted in chosen):
        parser.error(f"no scenario {given.scenario}; there are {', '.join(scenarios(Framework([])))}")
    sys.exit(0 if play_all(given, chosen) else 1)


def play_all(given, chosen):
    """Plays all scenarios, those of a framework one after the other. True if all have ended as they have to."""
    stub = Process([interpreter(given.python, "agents"), str(HERE / "stub.py"), "--port", "0"], env=ENVIRONMENT)
    try:
        stub_url = stub.line(START_SECONDS)["url"]
        with ThreadPoolExecutor(given.jobs) as pool:
            return all(list(pool.map(lambda one: play_framework(given, stub_url, *one), chosen)))
    finally:
        stub.stop(signal.SIGKILL)


def play_framework(given, stub_url, name, framework, wanted):
    options = ["--policy", given.policy] if given.policy else []
    good, driver = True, None
    try:
        for scenario, play in wanted.items():
            result = {"framework": name, "scenario": scenario}
            try:
                # A driver is not used after a failure: the rest of a conversation must not reach the next one.
                driver = driver or start_driver(given.python, framework)
                result |= perform(Stage(framework, driver, stub_url, options, given.binary), play)
            except Failed as wrong:
                result |= {"ok": False, "why": str(wrong)}
            print(json.dumps(result), flush=True)
            if not result["ok"]:
                good = False
                if driver is not None:
                    driver.stop(signal.SIGKILL)
                driver = None
    finally:
        if driver is not None:
            driver.stop(signal.SIGKILL)
    return good


def perform(stage, play):
    """Plays one scenario and says how it ended."""
    began, writes, why = time.monotonic(), None, None
    try:
        writes = play(stage)
        stage.close()
        refused = stage.refusals()
        need(not refused, f"the provider refused a request: {refused[:1]}")
    except urllib.error.HTTPError as wrong:
        why = f"{wrong.url}: {wrong.code} {wrong.read().decode(errors='replace')[:600]}"
    except Failed as wrong:
        why = str(wrong)
    except Exception as wrong:  # a scenario must not end the others
        why = repr(wrong)
    finally:
        stage.end()
    return {
        "ok": why is None,
        "steps": stage.story,
        "writes": writes,
        "reopened": stage.reopened,
        "seconds": round(time.monotonic() - began, 1),
        "why": why,
    }


def start_driver(folder, framework):
    command = framework.driver
    if command[0] == "PYTHON":
        command = [interpreter(folder, command[1]), command[2]]
    return Process(command, env=ENVIRONMENT)


def interpreter(folder, environment):
    return str(Path(folder) / environment / "bin" / "python") if folder else sys.executable


if __name__ == "__main__":
    main()
