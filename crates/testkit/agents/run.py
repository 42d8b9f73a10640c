"""Drives stock agent frameworks against `countersign serve` with a scripted model.

    python run.py --binary PATH --framework NAME[,NAME…|ALL] [--set full|quick] [--scenario ALL] [--python DIR] [--json-only]

compares the pages in docs/agents with the code that it tests (check_docs.py); starts the provider stub, and for each scenario a
server in a temporary folder and, where answers get lost, a proxy; talks with the framework's driver; and asks the server
afterwards what has happened. Each scenario prints one JSON line:

    {"framework": …, "scenario": …, "ok": true, "steps": "15/15", "writes": {…}, "doubled": 0, "reopened": 0, "seconds": 1.2, "why": null}

`writes` is how often each tool that writes has run, `reopened` how often the framework gave up and the program had to
begin again; scenarios.py says what else is measured. A table of all of them follows on stderr, unless there is `--json-only`. The exit
code is 1 if a scenario fails or a page differs, 2 for wrong use. Every wait has a deadline.

`--set quick` has what a test of every change needs, in less than 90 seconds on two cores. `--python DIR` is the folder of the
environments: DIR/agents and DIR/langchain, made from requirements-agents.txt and requirements-langchain.txt. The JavaScript frameworks
need `npm ci` in js/. `--driver COMMAND` replaces the driver; it speaks the lines that py/driver.py describes.
"""

import argparse
import json
import shlex
import sys
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import check_docs
import elicitation
import scenarios
from stage import HERE, Driver, Failed, Stage, Stub, need

OPENAI = ["chat", "responses"]
EVERY = ["chat", "responses", "anthropic"]


@dataclass
class Framework:
    """A framework: the command of its driver, and what its stock classes can do."""

    driver: list[str]
    dialects: list[str] = field(default_factory=lambda: OPENAI)
    quick: str = "chat"
    """Dialect of the quick set, with `-stream` if it streams. Over all frameworks, each of them occurs."""
    example: str | None = None
    """The program in examples/agents."""
    hints: bool = False
    """True if the example is also run without a server and with wrong keys. One for each language is enough: it is shared code."""
    interpreter: list[str] = field(default_factory=list)
    """The command that runs the example."""
    without: tuple[str, ...] = ()
    """Scenarios that the framework has no means for."""
    sessions: bool = False
    """True if a form needs a server that keeps sessions."""
    everything: bool = False
    """True if the story over servers of others is played with it. One framework is enough: it is about what is behind the gateway."""
    era: str | None = None
    """The era of the protocol, for a bare client."""
    scenarios: dict | None = None
    """The scenarios of each set for a bare client, which has no model."""


def python(environment, script, example=None, **more):
    """A Python framework. PYTHON and the environment become a path."""
    interpreter = ["PYTHON", environment]
    return Framework([*interpreter, str(HERE / "py" / script)], example=example, interpreter=interpreter, **more)


def node(name, example, **more):
    """A JavaScript framework. The example finds its packages where those of the driver are."""
    program = str(HERE / "js/node_modules/.bin/node")
    interpreter = [program, "--import", f"data:text/javascript,{RESOLVE}".replace("FOLDER", str(HERE / "js" / name))]
    return Framework([program, str(HERE / "js/drive.mjs"), name], example=example, interpreter=interpreter, **more)


RESOLVE = (
    'import { registerHooks } from "node:module";'
    "registerHooks({ resolve: (name, context, next) =>"
    ' next(name, /^[.]|:/.test(name) || !context.parentURL?.includes("/examples/agents/") ? context'
    ' : { ...context, parentURL: "file://FOLDER/agent.mjs" }) });'
)


def bare(era, quick=(), **more):
    """A client of the package `mcp` without a framework."""
    sets = {"full": elicitation.SCENARIOS, "quick": {name: elicitation.SCENARIOS[name] for name in quick}}
    return python("agents", "mcp_client_driver.py", era=era, scenarios=sets, **more)


FRAMEWORKS = {
    "openai-agents": python(
        "agents", "openai_agents_driver.py", "openai_agents.py", quick="responses", everything=True, without=("form",)
    ),
    "agent-framework": python(
        "agents", "agent_framework_driver.py", "agent_framework_agent.py", hints=True, without=("form",)
    ),
    "pydantic-ai": python(
        "agents", "pydantic_ai_driver.py", "pydantic_ai_agent.py", dialects=EVERY, quick="responses-stream"
    ),
    "langchain": python("langchain", "langchain_driver.py", "langchain_agent.py", dialects=EVERY, sessions=True),
    "openai-agents-js": node("openai-agents", "openai_agents.mjs", quick="responses", without=("form",)),
    "langchain-js": node(
        "langchain", "langchain_agent.mjs", dialects=EVERY, quick="anthropic", without=("form",)
    ),
    "vercel-ai-6": node("vercel-ai-6", "vercel_ai.mjs", quick="chat-stream", sessions=True),
    "vercel-ai-7": node("vercel-ai-7", "vercel_ai.mjs", quick="responses-stream", hints=True),
    "mastra": node("mastra", "mastra_agent.mjs"),
    "mcp-2026": bare("auto", quick=("page-accept", "form-yes")),
    # The page is told in the text: older clients are not sent to it.
    "mcp-2025": bare("legacy", sessions=True, without=("page-approved", "page-denied")),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True, help="the program countersign")
    parser.add_argument("--framework", required=True, help="names, with commas in between, or ALL")
    parser.add_argument("--set", choices=scenarios.SETS, default="full", help="which scenarios [default: full]")
    parser.add_argument("--scenario", default="ALL", help="names, or how they begin, with commas in between")
    parser.add_argument("--python", help="the folder of the environments [default: this Python]")
    parser.add_argument("--driver", help="the command of another driver")
    parser.add_argument("--dialects", help="the dialects of that driver, with commas in between")
    parser.add_argument("--policy", help="a policy file for the server")
    parser.add_argument("--jobs", type=int, default=2, help="how many frameworks are driven at once [default: 2]")
    parser.add_argument("--json-only", action="store_true", help="no table at the end")
    given = parser.parse_args()
    names = list(FRAMEWORKS) if given.framework == "ALL" else given.framework.split(",")
    chosen = []
    for name in names:
        if name not in FRAMEWORKS and not given.driver:
            parser.error(f"no framework {name}; there are {', '.join(FRAMEWORKS)}")
        framework = FRAMEWORKS.get(name) or Framework([], without=("example",))
        if given.dialects:
            framework.dialects = given.dialects.split(",")
        framework.driver = shlex.split(given.driver) if given.driver else located(given.python, framework.driver)
        framework.interpreter = located(given.python, framework.interpreter)
        wanted = scenarios.chosen(framework, given.set)
        if given.scenario != "ALL":
            wanted = {one: play for one, play in wanted.items() if scenarios.named(one, given.scenario.split(","))}
        chosen.append((name, framework, wanted))
    if not any(wanted for _, _, wanted in chosen):
        parser.error(f"no scenario {given.scenario}; there are {', '.join(scenarios.full(Framework([])))}")
    if wrong := check_docs.compare():
        print(*wrong, sep="\n", file=sys.stderr)
        sys.exit(1)
    results = play_all(given, chosen)
    if not given.json_only:
        print(table(results), file=sys.stderr)
    sys.exit(0 if all(result["ok"] for result in results) else 1)


def located(folder, command):
    """A command with the path of its Python."""
    return [interpreter(folder, command[1]), *command[2:]] if command[:1] == ["PYTHON"] else command


def interpreter(folder, environment):
    return str(Path(folder) / environment / "bin" / "python") if folder else sys.executable


def play_all(given, chosen):
    """Plays all scenarios, those of a framework one after the other."""
    stub = Stub(interpreter(given.python, "agents"))
    try:
        with ThreadPoolExecutor(given.jobs) as pool:
            played = list(pool.map(lambda one: play_framework(given, stub, *one), chosen))
    finally:
        stub.stop()
    return [result for results in played for result in results]


def play_framework(given, stub, name, framework, wanted):
    options = ["--policy", given.policy] if given.policy else []
    driver, results = Driver(framework.driver), []
    try:
        for scenario, play in wanted.items():
            stage = Stage(framework, driver, stub, options, given.binary)
            result = {"framework": name, "scenario": scenario} | perform(stage, play)
            print(json.dumps(result), flush=True)
            results.append(result)
            if not result["ok"]:
                driver.stop()  # the rest of a conversation must not reach the next scenario
    finally:
        driver.stop()
    return results


def perform(stage, play):
    """Plays one scenario and says how it ended."""
    began, writes, why = time.monotonic(), None, None
    try:
        writes = play(stage)
        stage.close()
        refused = stage.stub.refusals(stage.conversations)
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
        **stage.measured,
        "reopened": stage.reopened,
        "seconds": round(time.monotonic() - began, 1),
        "why": why,
    }


def table(results):
    """Scenarios by frameworks: ✓ or ✗ and seconds, with `d` doubled writes and `s` swallowed ones where there are any."""
    frameworks = list(dict.fromkeys(result["framework"] for result in results))
    found = {(result["scenario"], result["framework"]): result for result in results}
    rows = [["", *frameworks]]
    for scenario in dict.fromkeys(result["scenario"] for result in results):
        rows.append([scenario, *(cell(found.get((scenario, framework))) for framework in frameworks)])
    for measured, unit in (("seconds", 1), ("doubled", 0), ("swallowed", 0)):
        row = [measured]
        for framework in frameworks:
            values = [one[measured] for one in results if one["framework"] == framework and measured in one]
            row.append(f"{sum(values):.{unit}f}" if values else "")
        rows.append(row)
    widths = [max(len(row[place]) for row in rows) for place in range(len(frameworks) + 1)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]
    failed = [f"✗ {one['framework']} {one['scenario']}: {one['why'][:400]}" for one in results if not one["ok"]]
    good = sum(result["ok"] for result in results)
    return "\n".join([*lines, *failed, f"{good} of {len(results)} scenarios"])


def cell(result):
    if result is None:
        return ""
    counts = [f"{name[0]}{result[name]}" for name in ("doubled", "swallowed") if result.get(name)]
    return " ".join([f"{'✓' if result['ok'] else '✗'} {result['seconds']:.1f}", *counts, result.get("dialect", "")]).strip()


if __name__ == "__main__":
    main()
