"""The scenarios: each plays on a stage and gives how often each tool that writes has run. `Failed` says why one has failed.

`stage.measured` gets the two errors that writes without a key can have:

    doubled     writes that ran twice though they were meant once
    swallowed   writes that were meant, and first got the answer of an earlier one; `told` is how often the model was told so,
                `through` whether the write was made in the end, `stale` how often the advice was the value just sent
"""

import re
import socket
import subprocess
from functools import partial

from everything import everything
from stage import ENVIRONMENT, EXAMPLES, START_SECONDS, TURN_SECONDS, Failed, approvals, need

CLIENT_SECONDS = 2
"""Time-out of the client where an answer comes late."""

PAGE = "https://shop.example/approvals/{id}"
"""The page on which users of the test answer questions."""

SHOP = "[story:shop] Buy three wireless earbuds, to Berlin."
CONFIRMED = ("payment.create_payment_intent", "notes.clear")


def once(stage, writes, tools):
    """Needs that each of these ran once. Notes how many ran twice."""
    stage.measured["doubled"] = sum(max(0, times - 1) for times in writes.values())
    for tool in tools:
        need(writes.get(tool) == 1, f"{tool} ran {writes.get(tool, 0)} times")


# --- the whole way --------------------------------------------------------------------------------------------------


def story(stage, dialect, stream=False):
    """Fifteen steps to a draft order, a payment and two questions for the user."""
    stage.server.start()
    stage.connect(dialect=dialect, stream=stream)
    stage.tell(SHOP)
    stage.whole(15)
    writes, swallowed = stage.server.calls()
    once(stage, writes, ("cart.create", "cart.add_item", "checkout.create_draft_order", "notes.add"))
    stage.measured["swallowed"] = swallowed
    need(not swallowed, f"{swallowed} writes got the answer of an earlier one")
    return writes


def approval(stage, payment="approve", notes="approve", **spec):
    """The user answers two questions: the same calls, sent again, then run, or are refused with a reason."""
    decisions = dict(zip(CONFIRMED, (payment, notes)))
    agent = stage.server.key("--agent", "shopper", "--for", "ann")
    ann = stage.server.key("--user", "ann")
    stage.server.start("--approvals-url", PAGE)
    stage.measured |= {"dialect": stage.framework.quick} if spec else {}
    # A framework that retries must not keep what the server refuses from the model.
    stage.connect(api_key=agent, retry=payment == "approve", **spec)
    read = stage.tell(SHOP)
    stage.whole(15)
    before = stage.server.writes(ann)
    need(not set(CONFIRMED) & set(before), f"before the user has confirmed ran {before}")
    waiting = {question["id"]: question["tool"] for question in approvals.pending(stage.server.url, ann)}
    asked = [question["approval_id"] for question in read["asked"]]
    need(sorted(waiting) == sorted(asked), f"the user is asked {waiting}, the model has read {asked}")
    for question in read["asked"]:
        page = PAGE.replace("{id}", question["approval_id"])
        need(question["where"] == page, f"the text does not say that the user answers at {page}: {question['text']!r}")
    for id, tool in waiting.items():
        approvals.answer(stage.server.url, ann, id, decisions[tool])
    read = stage.tell("I have answered both questions. Go on.")
    for tool, end in zip(CONFIRMED, read["ends"]):
        if decisions[tool] == "approve":
            need(end["code"] == "OK", f"{tool} after the confirmation: {end['text']!r}")
        else:
            need(end["code"] == "FORBIDDEN", f"{tool} after the refusal: {end['text']!r}")
            need(re.search(r"declin|refus|denied", end["text"]), f"the text gives no reason: {end['text']!r}")
    writes = stage.server.writes(ann)
    once(stage, writes, ("cart.create", "cart.add_item", "checkout.create_draft_order", "notes.add"))
    for tool, decision in decisions.items():
        wanted = 1 if decision == "approve" else 0
        need(writes.get(tool, 0) == wanted, f"{tool} ran {writes.get(tool, 0)} times instead of {wanted}")
    return writes


denial = partial(approval, payment="deny", notes="deny")


# --- a write that is meant once -------------------------------------------------------------------------------------


def lost(stage, losses, **spec):
    """Answers of writes are lost: each write happens once, and the story goes on."""
    stage.server.start()
    stage.lose(*(loss.replace(".", "_") for loss in losses))
    is_late = any(loss.endswith(":delay") for loss in losses)
    spec |= {"retry": True, "timeout": CLIENT_SECONDS if is_late else 20}
    read = stage.patiently("[story:writes] Put two earbuds into a cart, and note it.", spec)
    stage.whole(5)
    for loss in losses:
        tool, _, how = loss.split(":")
        seen = [call for call in stage.proxy.calls if call["tool"] == tool.replace(".", "_")]
        need(seen and seen[0]["lost"], f"no answer of {tool} was lost")
        need(how == "twice" or len(seen) > 1, f"{tool} was not sent again")
    writes, replayed = stage.server.calls(replayed=len(losses))
    once(stage, writes, ("cart.create", "cart.add_item", "notes.add"))
    need(replayed >= len(losses), f"{len(losses)} writes came again, and {replayed} got the first answer")
    need(read["quantity"] == 2, f"the cart holds {read['quantity']} instead of 2")
    need(read["notes"] == 1, f"there are {read['notes']} notes instead of 1")
    return writes


def every(how):
    """The same loss for each of three writes."""
    return [f"{tool}:1:{how}" for tool in ("cart.create", "cart.add_item", "notes.add")]


# --- a write that is meant twice ------------------------------------------------------------------------------------


def intended(stage, says, wanted, writes, **spec):
    """The same write twice on purpose. Where the second gets the first answer, the model is told so, and gets it through.

    `says` is what the user says; None begins another conversation of the same agent.
    """
    agent = stage.server.key("--agent", "shopper", "--for", "ann")
    stage.server.start()
    spec |= {"api_key": agent}
    stage.connect(**spec)
    told = stale = 0
    reads = []
    for text in says:
        if text is None:
            stage.begin_anew(**spec)
            told, stale = told + reads[-1]["told"], stale + reads[-1]["stale"]
            continue
        reads.append(stage.tell(text))
    read = reads[-1]
    told, stale = told + read["told"], stale + read["stale"]
    ran, swallowed = stage.server.calls(agent, replayed=told)
    doubled = sum(max(0, times - writes.get(tool, 0)) for tool, times in ran.items())
    is_through = read["made"] == wanted and ran == writes
    stage.measured |= {"doubled": doubled, "swallowed": swallowed, "told": told, "through": is_through, "stale": stale}
    need(swallowed <= told, f"{swallowed} writes got an earlier answer, and the model was told {told} times")
    need(is_through, f"there is {read['made']} instead of {wanted}; there ran {ran}")
    if spec.get("keyed"):
        need(not swallowed, "a call with a key of its own got the answer of another one")
    return ran


ONCE = "[story:once] Note it."
NOTES = {"wanted": 2, "writes": {"notes.add": 2}}
INTENDED = {
    "intended-reads": partial(intended, says=["[story:twice] Note the same twice."], **NOTES),
    "intended-between": partial(
        intended,
        says=["[story:between] Put one of each into a cart, and then one more of the first."],
        wanted={"SKU-0002-01": 2, "SKU-0003-01": 1},
        writes={"cart.create": 1, "cart.add_item": 3},
    ),
    "intended-parallel": partial(intended, says=["[story:parallel] Note the same twice, at once."], **NOTES),
    "intended-turns": partial(intended, says=["[story:turns] Note it.", "Note it once more."], **NOTES),
    "intended-conversations": partial(
        intended, says=[ONCE, None, ONCE, None, ONCE], wanted=3, writes={"notes.add": 3}
    ),
    "intended-keyed": partial(intended, says=["[story:twice] Note the same twice."], keyed=True, **NOTES),
}


# --- forms, keys, restarts ------------------------------------------------------------------------------------------


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
    once(stage, writes, ("cart.create", "notes.add", "cart.add_item"))
    need(read["quantity"] == 2, f"the cart holds {read['quantity']} instead of 2")
    return writes


# --- the programs in examples/agents --------------------------------------------------------------------------------


def example(stage):
    """The example as its own process, with the user's lines on stdin: it ends the story, and the user confirms both calls."""
    agent = stage.server.key("--agent", "shopper", "--for", "ann")
    ann = stage.server.key("--user", "ann")
    stage.server.start()
    said, _ = run_example(stage, f"{SHOP}\ny\ny\n", 0, COUNTERSIGN_KEY=agent, COUNTERSIGN_USER_KEY=ann)
    for tool in CONFIRMED:
        need(re.search(rf"\? shopper wants {tool} \{{.*\}}", said), f"the user is not asked about {tool}: {said[-600:]}")
    stage.read(re.findall(r"^.*?(STORY .*)$", said, re.M)[-1])
    stage.whole(15)
    writes = stage.server.writes(ann)
    once(stage, writes, ("checkout.create_draft_order", *CONFIRMED))
    if stage.framework.hints:
        hints(stage, agent)
    return writes


def hints(stage, agent):
    """An example that cannot begin says what to do."""
    _, said = run_example(stage, "", 1, COUNTERSIGN_KEY="csk_0123456789abcdef_" + "0" * 43)
    need(re.search(r"COUNTERSIGN_KEY: .*not accepted.*countersign keys create --agent", said), f"a wrong key: {said}")
    _, said = run_example(stage, "", 1, COUNTERSIGN_KEY=agent, COUNTERSIGN_USER_KEY="wrong")
    need(re.search(r"COUNTERSIGN_USER_KEY: .*countersign keys create --user", said), f"a wrong key of the user: {said}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _, said = run_example(stage, "", 1, COUNTERSIGN_URL=f"http://127.0.0.1:{port}")
    need(re.search(r"no Countersign server answers at .*refused.*countersign serve", said, re.I), f"no server: {said}")


def run_example(stage, lines, code, **settings):
    """Runs the example of the framework to its end. Gives what it wrote to stdout and stderr."""
    provider = {"OPENAI_BASE_URL": f"{stage.model_url}/openai/v1", "OPENAI_API_KEY": "none", "MODEL": "scripted"}
    quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "MASTRA_TELEMETRY_DISABLED": "1", "LANGSMITH_TRACING": "false"}
    settings = ENVIRONMENT | provider | quiet | {"COUNTERSIGN_URL": stage.server.url} | settings
    name = EXAMPLES / stage.framework.example
    try:
        ran = subprocess.run(
            [*stage.framework.interpreter, str(name)],
            input=lines,
            capture_output=True,
            text=True,
            timeout=START_SECONDS + TURN_SECONDS,
            env=settings,
        )
    except (OSError, subprocess.TimeoutExpired) as wrong:
        raise Failed(f"{name.name}: {wrong}") from None
    need(ran.returncode == code, f"{name.name} ended with {ran.returncode}: {ran.stdout[-600:]} {ran.stderr[-1500:]}")
    return ran.stdout, ran.stderr


# --- which there are ------------------------------------------------------------------------------------------------

FULL = {
    "lost": partial(lost, losses=every("close")),
    "late": partial(lost, losses=["cart.add_item:1:delay"]),
    "gateway": partial(lost, losses=every("502")),
    "duplicate": partial(lost, losses=every("twice")),
    "keyed": partial(lost, losses=every("close"), keyed=True),
    **INTENDED,
    "approval": approval,
    "denial": denial,
    "form": form,
    "form-no": partial(form, answer="decline"),
    "key": key,
    "restart": restart,
    "example": example,
}


def full(framework):
    """Every scenario by name: the story in each dialect, once with streams, and the others."""
    found = {f"story-{dialect}": partial(story, dialect=dialect) for dialect in framework.dialects}
    found["story-stream"] = partial(story, dialect=framework.dialects[0], stream=True)
    return found | FULL | over_all(framework)


def over_all(framework):
    return {"everything": everything} if framework.everything else {}


def quick(framework):
    """The least that says that a framework works: fifteen steps in one dialect, with a yes and a no of the user; a lost answer,
    a retry and a duplicate; a write that is meant twice; keys; a restart; and with one framework the story over servers of others."""
    dialect, _, stream = framework.quick.partition("-")
    return {
        "shop": partial(approval, notes="deny", dialect=dialect, stream=bool(stream)),
        "losses": partial(lost, losses=["cart.create:1:close", "cart.add_item:1:502", "notes.add:1:twice"]),
        "intended-parallel": INTENDED["intended-parallel"],
        "key": key,
        "restart": restart,
    } | over_all(framework)


SETS = {"full": full, "quick": quick}


def chosen(framework, of):
    """The scenarios of a set that the framework has the means for."""
    found = SETS[of](framework) if framework.scenarios is None else framework.scenarios[of]
    return {name: play for name, play in found.items() if not named(name, framework.without)}


def named(scenario, names):
    """True if one of the names is that of the scenario, or how it begins."""
    return any(scenario == name or scenario.startswith(f"{name}-") for name in names)
