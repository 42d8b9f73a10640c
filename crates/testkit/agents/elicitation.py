"""Scenarios of questions that the server asks through the client: with the package `mcp` itself, in both eras of the protocol.

An agent's client is sent to a page, where the user answers; a user's own client shows a form. Whatever the client answers, the call
ends: it runs, or it is refused with a reason, and the client is asked once for each call.
"""

import json
import re
from functools import partial

from scenarios import PAGE
from stage import approvals, need

CLEAR = {"tool": "notes_clear", "arguments": {"keep": 0}}


def begin(stage, as_user, answers):
    """Opens a client of an agent, or of the user, with one note. Gives the user's key."""
    agent = stage.server.key("--agent", "shopper", "--for", "ann")
    ann = stage.server.key("--user", "ann")
    stage.server.start("--approvals-url", PAGE, *(["--mcp-sessions", "50"] if stage.framework.sessions else []))
    page = {"server": stage.server.url, "key": ann}
    answers = [answer | {"page": page | answer["page"]} if "page" in answer else answer for answer in answers]
    stage.connect(api_key=ann if as_user else agent, era=stage.framework.era, answers=answers)
    stage.measured["asked"] = 0
    call(stage, {"tool": "notes_add", "arguments": {"text": "hello"}})
    return ann


def call(stage, what=CLEAR, asked_max=1):
    """Makes a call. Gives its text and the questions that the client was asked meanwhile."""
    ok, said = stage.hear(json.dumps(what))
    need(ok, f"the client raised {said}")
    said = json.loads(said)
    stage.measured["asked"] += len(said["asked"])
    need(len(said["asked"]) <= asked_max, f"the client was asked {len(said['asked'])} times during one call")
    return said["text"], said["asked"]


def needs_user(text):
    need(text.startswith("NEEDS_USER_CONFIRMATION"), f"without an answer of the user: {text!r}")
    return re.search(r"\bap_[0-9a-f]{8,}", text)[0]


def is_refused(text):
    need(re.match(r"FORBIDDEN: .*declined", text), f"after the user's no: {text!r}")
    need("to confirm" not in text, f"after the user's no the model is to ask once more: {text!r}")


def has_run(stage, ann, text):
    """Needs that the call has run, and that the same call does not run once more."""
    need('"cleared":1' in text, f"after the user's yes: {text!r}")
    text, _ = call(stage, asked_max=0)
    need("repeated_call" in text, f"the same call again: {text!r}")
    writes = stage.server.writes(ann)
    need(writes == {"notes.add": 1, "notes.clear": 1}, f"there ran {writes}")
    return writes


def page(stage, action):
    """The client answers, the user does not: the call ends, and runs once after the user has confirmed it."""
    ann = begin(stage, False, [{"action": action}])
    for _ in range(2):
        text, asked = call(stage)
        id = needs_user(text)
        url = PAGE.replace("{id}", id)
        need(url in text, f"the text does not say that the user answers at {url}: {text!r}")
        if stage.framework.era == "auto":
            need([question["url"] for question in asked] == [url], f"the client was asked {asked} instead of {url}")
    need([question["id"] for question in approvals.pending(stage.server.url, ann)] == [id], f"{id} does not wait")
    approvals.answer(stage.server.url, ann, id, "approve")
    text, _ = call(stage, asked_max=0)
    return has_run(stage, ann, text)


def page_answered(stage, decision):
    """The user answers on the page while the client waits: the same call runs, or is refused."""
    ann = begin(stage, False, [{"action": "accept", "page": {"decision": decision}}])
    text, _ = call(stage)
    if decision == "approve":
        return has_run(stage, ann, text)
    is_refused(text)
    is_refused(call(stage, asked_max=0)[0])
    return stage.server.writes(ann)


def form(stage, answer, *, then=None, why=None):
    """The user fills the form in, closes it, or the client sends something else. `why` is what the text has to say."""
    ann = begin(stage, True, [answer, {"action": "accept", "content": {"confirm": True}}])
    text, asked = call(stage)
    need([question["mode"] for question in asked] == ["form"], f"the client was asked {asked}")
    if then == "runs":
        return has_run(stage, ann, text)
    if then == "refused":
        is_refused(text)
        return stage.server.writes(ann)
    needs_user(text)
    need(not why or re.search(why, text), f"the text does not say what is wrong with the answer {answer}: {text!r}")
    text, _ = call(stage)  # another form, and this time the user says yes
    return has_run(stage, ann, text)


MALFORMED = r"(?i)true or false|boolean|malformed|not understood|no valid answer|\"confirm\"|/confirm|`confirm`"

SCENARIOS = {
    "page-accept": partial(page, action="accept"),
    "page-decline": partial(page, action="decline"),
    "page-cancel": partial(page, action="cancel"),
    "page-approved": partial(page_answered, decision="approve"),
    "page-denied": partial(page_answered, decision="deny"),
    "form-yes": partial(form, answer={"action": "accept", "content": {"confirm": True}}, then="runs"),
    "form-no": partial(form, answer={"action": "accept", "content": {"confirm": False}}, then="refused"),
    "form-decline": partial(form, answer={"action": "decline"}, then="refused"),
    "form-cancel": partial(form, answer={"action": "cancel"}),
    "form-text": partial(form, answer={"action": "accept", "content": {"confirm": "perhaps"}}, why=MALFORMED),
    "form-other": partial(form, answer={"action": "accept", "content": {"confirmed": True}}, why=MALFORMED),
    "form-empty": partial(form, answer={"action": "accept"}, why=MALFORMED),
}
