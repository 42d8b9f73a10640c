"""Compares the code on the pages in docs/agents with the code that the tests run.

    python check_docs.py [--write]

In a driver, code for a page stands between `# docs: begin NAME` and `# docs: end` (`//` in JavaScript). On a page,
`<!-- code: FILE/NAME -->` stands before the block: FILE is a Python file in py/ or examples/agents, or a folder in js/, or a
JavaScript file in examples/agents. Every page links a program in examples/agents, and the versions in `pip install` and `npm install`,
here and there, are those that the tests install. The exit code is 1 where something differs, and for a block that names no code;
`--write` copies the code to the pages. `run.py` does the same comparison first.
"""

import json
import re
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGES = HERE.parents[2] / "docs" / "agents"
EXAMPLES = HERE.parents[2] / "examples" / "agents"
BLOCK = re.compile(r"(?:^<!-- code: ([\w-]+)/([\w-]+) -->\n)?^```(python|js)\n(.*?)^```$", re.S | re.M)


def snippet(file, name, language):
    """The code of that name, without the indentation that it has in its file."""
    places = (
        [HERE / "js" / file / "agent.mjs", EXAMPLES / f"{file}.mjs"]
        if language == "js"
        else [HERE / "py" / f"{file}.py", EXAMPLES / f"{file}.py"]
    )
    path = next(path for path in places if path.exists())
    sign = "//" if language == "js" else "#"
    found = re.search(rf"^ *{sign} docs: begin {name}\n(.*?)^ *{sign} docs: end$", path.read_text(), re.S | re.M)
    if not found:
        raise LookupError(f"{path.name} has no code named {name}")
    return textwrap.dedent(found[1]).strip("\n") + "\n"


def installed():
    """The versions that the tests install, by the name of the package."""
    found = {}
    for path in HERE.glob("requirements-*.txt"):
        for name, version in re.findall(r"^([\w.-]+)==(\S+)$", path.read_text(), re.M):
            found.setdefault(name, set()).add(version)
    for path in HERE.glob("js/*/package.json"):
        for name, version in json.loads(path.read_text())["dependencies"].items():
            found.setdefault(name, set()).add(version)
    return found


def other_versions(path, known):
    """The packages that a file tells to install in another version than the tests do."""
    for line in re.findall(r"(?:pip|npm) install .*", path.read_text()):
        for name, version in re.findall(r"(@?[a-z][\w./-]*)(?:\[[\w,]+\])?(?:==|@)(\d[\d.]*)", line):
            if not any(f"{one}.".startswith(f"{version}.") for one in known.get(name, ())):
                yield f"{path.name}: {name} {version}, and the tests install {', '.join(known.get(name, ['none']))}"


def compare(write=False):
    """What is wrong with the pages, one text for each place. `write` copies the code to the pages first."""
    known = installed()
    files = [*PAGES.glob("*.md"), *EXAMPLES.glob("*.*"), EXAMPLES.parent / "README.md"]
    wrong = [other for path in sorted(files) if path.is_file() for other in other_versions(path, known)]
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text()

        def filled(block):
            file, name, language, code = block.groups()
            if file is None:
                wrong.append(f"{page.name}: a block of {language} names no code: {code[:60]!r}")
                return block[0]
            try:
                wanted = snippet(file, name, language)
            except (LookupError, StopIteration, OSError) as missing:
                wrong.append(f"{page.name}: {file}/{name}: {missing}")
                return block[0]
            if code != wanted and not write:
                wrong.append(f"{page.name}: {file}/{name} differs: run check_docs.py --write")
            return f"<!-- code: {file}/{name} -->\n```{language}\n{wanted}```"

        new = BLOCK.sub(filled, text)
        if write and new != text:
            page.write_text(new)
        programs = re.findall(r"\]\(\.\./\.\./examples/agents/([\w.]+)\)", text)
        wrong += [f"{page.name}: there is no {name}" for name in programs if not (EXAMPLES / name).exists()]
        if not programs:
            wrong.append(f"{page.name}: no link to a program in examples/agents")
    return wrong


def main():
    wrong = compare(write="--write" in sys.argv)
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
