"""Compares the code on the pages in docs/agents with the code that the tests run.

    python check_docs.py [--write]

In a driver, code for a page stands between `# docs: begin NAME` and `# docs: end` (`//` in JavaScript). On a page,
`<!-- code: FILE/NAME -->` stands before the block: FILE is a Python file here or in py/, or a folder in js/. The exit code
is 1 where they differ, and for a block that names no code; `--write` copies the code to the pages.
"""

import re
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGES = HERE.parents[2] / "docs" / "agents"
BLOCK = re.compile(r"(?:^<!-- code: ([\w-]+)/([\w-]+) -->\n)?^```(python|js)\n(.*?)^```$", re.S | re.M)


def snippet(file, name, language):
    """The code of that name, without the indentation that it has in its file."""
    if language == "js":
        path = HERE / "js" / file / "agent.mjs"
    else:
        path = next(path for path in (HERE / "py" / f"{file}.py", HERE / f"{file}.py") if path.exists())
    sign = "//" if language == "js" else "#"
    found = re.search(rf"^ *{sign} docs: begin {name}\n(.*?)^ *{sign} docs: end$", path.read_text(), re.S | re.M)
    if not found:
        raise LookupError(f"{path.name} has no code named {name}")
    return textwrap.dedent(found[1]).strip("\n") + "\n"


def main():
    wrong = []
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
            if code != wanted and "--write" not in sys.argv:
                wrong.append(f"{page.name}: {file}/{name} differs: run check_docs.py --write")
            return f"<!-- code: {file}/{name} -->\n```{language}\n{wanted}```"

        new = BLOCK.sub(filled, text)
        if "--write" in sys.argv and new != text:
            page.write_text(new)
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
