"""The stage of a scenario: a server, the driver of a framework, the scripted model, and a proxy where answers get lost."""

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

import proxy

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[2] / "examples" / "agents"
sys.path.append(str(EXAMPLES))

import approvals  # noqa: E402 - of the examples: pages, examples and tests have the same code

START_SECONDS = 180
TURN_SECONDS = 180
SETTLE_SECONDS = 3

ENVIRONMENT = {name: os.environ[name] for name in os.environ if name != "PYTHONDONTWRITEBYTECODE"}
"""Environment of the children. The packages are installed without bytecode, so Python has to keep what it compiles."""

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


class Process:
    """A child that answers in JSON lines. Every read has a deadline."""

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


class Driver:
    """The driver of a framework. Its process starts when it is first needed."""

    def __init__(self, command):
        self.command = command
        self.process = None

    def tell(self, message):
        self.process = self.process or Process(self.command, env=ENVIRONMENT)
        self.process.tell(message)

    def line(self, seconds):
        return self.process.line(seconds)

    def stop(self):
        """Ends the process. The next message starts another one."""
        if self.process is not None:
            self.process.stop(signal.SIGKILL)
        self.process = None


class Stub:
    """The provider stub. It starts at once; its address is waited for when it is first needed."""

    def __init__(self, interpreter):
        self.process = Process([interpreter, str(HERE / "stub.py"), "--port", "0"], env=ENVIRONMENT)
        self.lock = threading.Lock()
        self.address = None

    @property
    def url(self):
        with self.lock:
            self.address = self.address or self.process.line(START_SECONDS)["url"]
            return self.address

    def refusals(self, conversations):
        """What the provider found wrong with requests of these conversations."""
        found = approvals.ask(f"{self.url}/log", None)["refused"]
        return [refused["why"] for refused in found if refused["for"] in conversations]

    def stop(self):
        self.process.stop(signal.SIGKILL)


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

    def calls(self, key=None, replayed=0):
        """How often each tool that writes has run, and how many answers were those of an earlier call.

        The record of an answer that is given again may come after that answer: so many of them are waited for.
        """
        until = time.monotonic() + SETTLE_SECONDS
        while True:
            ran, again = self._calls(key)
            if again >= replayed or time.monotonic() > until:
                return ran, again
            time.sleep(0.05)

    def _calls(self, key):
        ran, again = {}, 0
        for call in approvals.ask(f"{self.url}/v1/calls?limit=200", key)["calls"]:
            if call["tool"] not in WRITES or call["code"] != "OK":
                continue
            records = approvals.ask(f"{self.url}/v1/calls/{call['request_id']}", key)["records"]
            if any(entry["record"].get("idempotency", {}).get("state") == "replayed" for entry in records):
                again += 1
            else:
                ran[call["tool"]] = ran.get(call["tool"], 0) + 1
        return ran, again

    def writes(self, key=None):
        return self.calls(key)[0]


class Stage:
    """What a scenario plays on, what it has measured, and what has to be stopped at its end."""

    def __init__(self, framework, driver, stub, server_options, binary):
        self.framework, self.driver, self.stub = framework, driver, stub
        self.folder = tempfile.mkdtemp(prefix="countersign-agents-")
        self.server = Server(binary, self.folder, server_options)
        self.conversations = [f"c_{uuid.uuid4().hex}"]
        self.proxy = None
        self.opened = False
        self.story = None
        self.reopened = 0
        self.measured = {}

    @property
    def conversation(self):
        return self.conversations[-1]

    @property
    def model_url(self):
        return f"{self.stub.url}/for-{self.conversation}"

    def lose(self, *losses):
        """A proxy in front of the server that loses these answers."""
        self.proxy = proxy.Proxy(self.server.url, [proxy.Loss.parse(loss) for loss in losses])
        # The interval is how long `shutdown` waits.
        threading.Thread(target=self.proxy.serve_forever, args=(0.02,), daemon=True).start()

    def open(self, **spec):
        """Connects the framework. Gives the error, if there is one."""
        url = self.proxy.url if self.proxy else self.server.url
        spec = {"mcp_url": f"{url}/mcp", "model_url": self.model_url, "conversation": self.conversation} | spec
        self.driver.tell({"do": "open"} | spec)
        answer = self.driver.line(START_SECONDS)
        self.opened = answer["ok"]
        return answer.get("error")

    def connect(self, **spec):
        error = self.open(**spec)
        need(error is None, f"the framework does not connect: {error}")

    def begin_anew(self, **spec):
        """Another conversation, over another connection."""
        self.close()
        self.conversations.append(f"c_{uuid.uuid4().hex}")
        self.connect(**spec)

    def hear(self, text):
        """A turn: true and what the model says, or false and the error that the framework raises."""
        self.driver.tell({"do": "say", "text": text})
        answer = self.driver.line(TURN_SECONDS)
        return answer["ok"], answer["text"] if answer["ok"] else answer["error"]

    def tell(self, text):
        """Plays a story, or goes on with it. Gives what the model has read."""
        ok, said = self.hear(text)
        need(ok, f"the framework raised {said}")
        return self.read(said)

    def read(self, said):
        """What the model has read, out of its last message."""
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
