#!/usr/bin/env python3
"""Measures the form of the code: modules, files, lines, comments, words.

usage: structure.py SOURCE_FOLDER [--check] [--words] [--fragments]

Prints one line a measure, with its limit. --check exits with 1 where a limit is exceeded. --words
lists the places of private words, --fragments the comments that begin with a preposition.
"""

import pathlib
import re
import statistics
import sys

LEADING_WORDS = set(
    "of where what who whose whether for beside in on at by with from to as than that which if how "
    "when over under between among into or per".split()
)


# Words that no reader of the field knows in this sense, by kind of file; the pages have more
# (pages_test.cpp). "Room" is a module in none of them.
PRIVATE_WORDS = re.compile(r"storey|whoever|shelf|shelves|tally|tallies|unsaid|spelt|sleeping", re.I)
KINDS_OF_FILES = {
    "sim": [".cpp", ".hpp", ".ts", ".css", ".html", ".py", ".txt"],
    "tests": [".cpp", ".hpp", ".py", ".sh", ".txt"],
    "calibration": [".cpp", ".hpp", ".cu", ".py", ".sh", ".txt"],
    "docs": [".md"],
}


def private_words(root: pathlib.Path) -> list[str]:
    """Places of private words: "file:line: word"."""
    places = []
    for folder, endings in KINDS_OF_FILES.items():
        for file in sorted((root / folder).rglob("*")):
            parts = file.relative_to(root).parts
            if file.suffix not in endings or "bundle" in parts or "corpus" in parts:
                continue
            if file.name in ("structure.py", "pages_test.cpp"):
                continue
            for number, line in enumerate(file.read_text().split("\n"), 1):
                for word in PRIVATE_WORDS.findall(line):
                    places.append(f"{'/'.join(parts)}:{number}: {word}")
    return places


def blocks_of_comments(text: str) -> list[str]:
    """Comments of a source: consecutive lines of // are one; what follows code is one of its own."""
    blocks: list[str] = []
    open_block = False
    for line in text.split("\n"):
        whole = re.match(r"\s*//[/!]?<?\s?(.*)$", line)
        if whole:
            if open_block:
                blocks[-1] += " " + whole.group(1)
            else:
                blocks.append(whole.group(1))
            open_block = True
            continue
        open_block = False
        # Strings may contain //, mostly addresses.
        bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
        trailing = re.search(r"//[/!]?<?\s?(.*)$", bare)
        if trailing and bare[: trailing.start()].strip():
            blocks.append(trailing.group(1))
            open_block = bare.rstrip().endswith(trailing.group(1)) and "///<" in bare
    return [block.strip() for block in blocks if block.strip()]


def first_word(block: str) -> str:
    match = re.match(r"[^A-Za-z]*([A-Za-z']+)", block)
    return match.group(1).lower() if match else ""


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    sim = root / "sim"
    files = sorted([*sim.rglob("*.cpp"), *sim.rglob("*.hpp")])
    texts = {file: file.read_text() for file in files}
    lines = {file: text.count("\n") for file, text in texts.items()}
    modules = re.findall(r"^orrery_module\((\w+)", (sim / "CMakeLists.txt").read_text(), re.M)
    blocks = [block for text in texts.values() for block in blocks_of_comments(text)]
    fragments = [block for block in blocks if first_word(block) in LEADING_WORDS]
    if "--fragments" in sys.argv:
        print("\n".join(fragments))
    short = sum(count < 40 for count in lines.values())

    words = private_words(root)
    if "--words" in sys.argv:
        print("\n".join(words))

    measures = [
        ("modules", len(modules), "<=", 25),
        ("files of sim/", len(files), "<=", 800),
        ("lines of sim/", sum(lines.values()), "", None),
        ("median lines of a file", statistics.median(lines.values()), ">=", 85),
        ("files below 40 lines, %", 100.0 * short / len(files), "<=", 15.0),
        ("comments", len(blocks), "", None),
        ("comments that begin with a preposition or the like, %",
         100.0 * len(fragments) / len(blocks), "<=", 8.0),
        ("private words", len(words), "<=", 0),
    ]
    failed = False
    for name, value, relation, limit in measures:
        met = limit is None or (value <= limit if relation == "<=" else value >= limit)
        failed |= not met
        shown = f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"
        bound = "" if limit is None else f"{relation} {limit:,}"
        print(f"{name:56s} {shown:>10s}  {bound}{'' if met else '  EXCEEDED'}")
    return 1 if failed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
