"""Questions that a test draws and asks the program, for laws that several answers keep."""

import concurrent.futures
import json
import math
import os
import pathlib
import random
import shlex
import tempfile

from drawn_commands import run

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Question:
    """Asks the program in a folder of its own, and remembers what was asked."""

    def __init__(self, program, seed):
        self.program, self.random = program, random.Random(seed)
        self.asked, self.notes = [], ""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def draw(self, *values):
        return self.random.choice(values)

    def some_of(self, choices, count):
        """Values of so many of the keys, as {key: value}."""
        return {key: self.draw(*choices[key]) for key in self.random.sample(list(choices), count)}

    def text(self, words):
        """What a command prints, or None where it refuses: exit codes 2 and 3."""
        words = shlex.split(words)
        self.asked.append(shlex.join(["orrery", *words]))
        code, out, self.notes = run(self.program, words, self.folder.name)
        if code not in (0, 2, 3):
            raise RuntimeError(f"ends with {code}: {self.notes.strip()[:300]}")
        return out if code == 0 else None

    def json(self, words):
        out = self.text(words + " --json")
        return None if out is None else json.loads(out)

    def file(self, name, content):
        text = content if isinstance(content, str) else json.dumps(content)
        pathlib.Path(self.folder.name, name).write_text(text, encoding="utf-8")
        return name


def near(one, other, relative=1e-8):
    """JSON has nine digits."""
    return math.isclose(one, other, rel_tol=relative, abs_tol=1e-12)


def flags(plan):
    return " ".join(f"--{key} {value}" for key, value in plan.items())


def catalog(*path):
    return json.loads(pathlib.Path(ROOT, *path).read_text(encoding="utf-8"))


def rate(text):
    """Bytes a second of "400 Gb/s" or "32 GB/s"."""
    number, unit = text.split()
    return float(number) * {"Gb/s": 1e9 / 8, "GB/s": 1e9}[unit]


def check(program, laws, seed):
    """Broken laws of one question, and what was asked."""
    with Question(program, seed) as ask:
        try:
            return list(laws(ask)), ask.asked
        except Exception as wrong:  # An answer without what it should have is a defect as well.
            return [f"{type(wrong).__name__}: {wrong}"], ask.asked


def check_all(program, laws, count, seed):
    """Draws `count` questions of all `laws` in turn; prints what is broken, and says how often."""
    broken = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = pool.map(lambda i: check(program, laws[i % len(laws)], f"{seed}/{i}"),
                           range(count))
        for found, asked in answers:
            broken += len(found)
            if found:
                print("\n    ".join([*asked, *("*** " + defect for defect in found)]), flush=True)
    print(f"{count} questions, seed {seed}: {broken} broken laws")
    return broken
