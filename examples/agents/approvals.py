"""The part that all Python agents here share: settings, a conversation in the terminal, and the user's answers to approvals."""

import asyncio
import os
import sys
import urllib.error

# docs: begin approvals
import json
import urllib.request


def pending(server, user_key):
    """The questions that wait for the user: each with `id`, `tool` and `arguments`."""
    return ask(f"{server}/v1/approvals?state=pending", user_key)["approvals"]


def answer(server, user_key, approval_id, decision):
    """Answers a question with `approve` or `deny`, in the user's name."""
    return ask(f"{server}/v1/approvals/{approval_id}", user_key, {"decision": decision})


def ask(url, key, body=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as reply:
        return json.load(reply)


# docs: end

SERVER = (os.environ.get("COUNTERSIGN_URL") or "http://127.0.0.1:8787").rstrip("/")
AGENT_KEY = os.environ.get("COUNTERSIGN_KEY") or None
USER_KEY = os.environ.get("COUNTERSIGN_USER_KEY") or None
MODEL = os.environ.get("MODEL") or "gpt-5"
INSTRUCTIONS = """You work for the user with the tools that you have. If a call answers NEEDS_USER_CONFIRMATION, tell the user \
what to confirm and end your turn. After the user has answered, send the same call again with the same arguments."""


def check():
    """Ends the program with a hint if the server is not reachable or refuses a key."""
    keys = [("COUNTERSIGN_KEY", AGENT_KEY, "--agent shopper --for ann"), ("COUNTERSIGN_USER_KEY", USER_KEY, "--user ann")]
    for name, key, holder in keys[: 2 if USER_KEY else 1]:
        try:
            pending(SERVER, key)
        except urllib.error.HTTPError as refused:
            sys.exit(f"{SERVER} refuses {name}: {reason(refused)}. Make a key: countersign keys create {holder}")
        except (OSError, ValueError, KeyError) as wrong:
            sys.exit(f"no Countersign server answers at {SERVER}: {wrong}. Start one with `countersign serve`, or set COUNTERSIGN_URL.")


def reason(refused):
    """The server's own words for an HTTP error."""
    try:
        return json.load(refused)["error"]["message"]
    except (ValueError, KeyError):
        return str(refused)


async def converse(say):
    """Passes lines between the user and the agent. The program's arguments are the only line, if there are any."""
    given = " ".join(sys.argv[1:])
    while text := given or await line("> "):
        print(await say(text))
        while await settle():
            print(await say("I have answered what you asked. Go on."))
        if given:
            break


async def settle():
    """Lets the user answer the questions that wait. True if there is a new answer."""
    answered = 0
    for question in reversed(await asyncio.to_thread(pending, SERVER, USER_KEY or AGENT_KEY)):
        arguments = json.dumps(question["arguments"], ensure_ascii=False)
        costs = f", at most {question['ceiling']['text']}" if "ceiling" in question else ""
        print(printable(f"? {question['actor']['id']} wants {question['tool']} {arguments}{costs}"))
        if USER_KEY is None:
            print(f"  Answer with `countersign approvals approve {question['id']}` (or deny). Then tell the agent to go on.")
            continue
        said = (await line("  Allow it once? [y/n] ")).lower()
        if said in ("y", "yes", "n", "no"):
            await asyncio.to_thread(answer, SERVER, USER_KEY, question["id"], "approve" if said[0] == "y" else "deny")
            answered += 1
    return answered > 0


def printable(text):
    """The text without characters that could change what the terminal shows."""
    return "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)


async def line(prompt):
    print(prompt, end="", flush=True)
    return (await asyncio.to_thread(sys.stdin.readline)).strip()
