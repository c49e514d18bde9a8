"""Every example of docs/guides/python.md is run, in the page's order and as one program: a block of
language `python`, and below it in a `text` block what it prints. `source` is the source tree.
UPDATE_GOLDEN=1 rewrites the page.

usage: page_test.py PAGE
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.S)


def main(page):
    text = page.read_text(encoding="utf-8")
    names = {"__name__": "page", "source": str(page.parents[2])}
    stale = []
    count = 0

    def run(block):
        nonlocal count
        count += 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.group(1), f"{page.name}, block {count}", "exec"), names)
        if printed.getvalue() != (block.group(2) or ""):
            stale.append(f"{block.group(1)}prints\n{printed.getvalue()}")
        shown = f"\n```text\n{printed.getvalue()}```\n" if printed.getvalue() else ""
        return f"```python\n{block.group(1)}```\n{shown}"

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        fresh = BLOCK.sub(run, text)
        os.chdir("/")
    if stale and os.environ.get("UPDATE_GOLDEN"):
        page.write_text(fresh, encoding="utf-8")
        return 0
    for example in stale:
        print(f"{page.name} is stale (UPDATE_GOLDEN=1 rewrites it):\n{example}")
    print(f"{count} examples")
    return 1 if stale or count < 5 else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
