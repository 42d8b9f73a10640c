"""What every driver does beside its framework: it reads commands as JSON lines and answers each with one.

    {"do": "open", "mcp_url": …, "api_key": …, "dialect": "chat", "model_url": …, …}   connect, and begin a conversation
    {"do": "say", "text": …}                                                            the user says something
    {"do": "close"}                                                                     disconnect

The answers are `{"ok": true, "text": …}` and `{"ok": false, "error": …}`. A process can open and close many times.
"""

import asyncio
import gc
import json
import sys
from types import SimpleNamespace

# Imports of a framework make hundreds of thousands of objects that stay: looking for garbage among them takes a quarter of the time.
gc.disable()

DEFAULTS = {
    "api_key": None,  # of the server
    "dialect": "chat",  # or responses, anthropic
    "stream": False,
    "retry": False,  # the framework's own retry
    "keyed": False,  # a key per call
    "form": None,  # the user's answer to a form of the server: accept or decline; only where the framework shows forms
    "timeout": 20,  # of a call, in seconds
    "conversation": "c_1",
}


def run(session):
    """Answers commands until stdin ends. `session(spec)` is an async context manager that gives a function `say(text)`."""
    gc.enable()
    asyncio.run(_run(session))


async def _run(session):
    while (command := await _read()) is not None:
        if command["do"] != "open":
            _write(ok=command["do"] == "close", error="nothing is open")
            continue
        opened = False
        try:
            async with session(SimpleNamespace(**DEFAULTS | command)) as say:
                opened = True
                _write(ok=True)
                await _talk(say)
            _write(ok=True)
        except (Exception, BaseExceptionGroup) as wrong:
            _write(ok=False, error=reason(wrong), opened=opened)


async def _talk(say):
    while (command := await _read()) is not None and command["do"] != "close":
        try:
            _write(ok=True, text=str(await say(command["text"])))
        except (Exception, BaseExceptionGroup) as wrong:
            _write(ok=False, error=reason(wrong))


def reason(wrong):
    """What a user of the framework would read of an error: its messages and those of its causes."""
    told, seen = [], set()

    def tell(error):
        if error is None or id(error) in seen:
            return
        seen.add(id(error))
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                tell(inner)
        else:
            told.append(f"{type(error).__name__}: {error}")
        tell(error.__cause__ or error.__context__)

    tell(wrong)
    return " | ".join(told)[:2000]


async def _read():
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    return json.loads(line) if line else None


def _write(**answer):
    print(json.dumps(answer), flush=True)
