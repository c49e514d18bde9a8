#!/usr/bin/env python3
"""Types into a real shell on a terminal of its own and presses Tab.

usage: completion_test.py bash|zsh|fish ORRERY        77: the shell is not installed
"""

import os
import pty
import re
import select
import shutil
import signal
import sys
import tempfile
import time

# What is typed, and what the shell then has on its screen.
CASES = [
    ("orrery est", "estimate"),
    ("orrery estimate --ignore", "--ignore-memory"),
    ("orrery sweep me", "merge"),
    ("orrery import nvidia", "nvidia-smi-topo"),
    ("orrery estimate --model llama3-7", "llama3-70b"),
    ("orrery estimate --model=llama3-7", "llama3-70b"),
    ("orrery search --system dgx-h20", "dgx-h200"),
    ("orrery estimate --software zerob", "zerobubble"),
    ("orrery list sched", "schedules"),
    ("orrery estimate --plan mi", "mine.json"),
    ("orrery estimate --plan 'with", "with a space.json"),
    ("orrery sweep status ru", "runs/"),
    ("orrery sweep run --system dgx-h100,dgx-h20", "dgx-h100,dgx-h200"),
]

START = {
    "bash": (["--norc", "--noprofile", "-i"], "source <(orrery completion bash)"),
    "zsh": (["-f", "-i"], "autoload -Uz compinit; compinit -u -D; source <(orrery completion zsh)"),
    "fish": (["--no-config", "-i"], "orrery completion fish | source"),
}

# fish asks terminals what they are and waits for the answer.
ANSWERS = [(b"\x1b[c", b"\x1b[?1;2c"), (b"\x1b[0c", b"\x1b[?1;2c"), (b"\x1b[6n", b"\x1b[1;1R")]

PATIENCE = 30.0  # Seconds; a machine may be busy.


def plain(text):
    """What was printed, without colours and moves of the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|[\r\x07\x0f]", "", text)


class Shell:
    def __init__(self, path, words, folder):
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.environ.update(HOME=folder, TERM="xterm", PS1="ready> ", COLUMNS="200", LINES="50")
            os.execv(path, [path, *words])
        self.text = ""

    def send(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, wanted):
        """Whether `wanted` shows within our patience; what was shown until then is forgotten."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if wanted in plain(self.text):
                return True
            if not select.select([self.terminal], [], [], 0.2)[0]:
                continue
            try:
                read = os.read(self.terminal, 65536)
            except OSError:
                return False
            for question, answer in ANSWERS:
                if question in read:
                    os.write(self.terminal, answer)
            self.text += read.decode(errors="replace")
        return False

    def forget(self):
        shown, self.text = plain(self.text), ""
        return shown

    def end(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


def check(name, orrery):
    path = shutil.which(name)
    if not path:
        print(f"skipped: {name} is not installed (apt-get install {name})")
        return 77
    os.environ["PATH"] = os.path.dirname(os.path.abspath(orrery)) + os.pathsep + os.environ["PATH"]
    words, source = START[name]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in ("mine.json", "with a space.json"):
            open(os.path.join(folder, file), "w").close()
        os.mkdir(os.path.join(folder, "runs"))
        shell = Shell(path, words, folder)
        try:
            shell.send(source + "; echo sour''ced\n")
            if not shell.wait_for("sourced"):
                print(f"{name} did not start:\n{shell.forget()}")
                return 1
            for typed, wanted in CASES:
                shell.forget()
                shell.send(typed + "\t")
                if not shell.wait_for(wanted):
                    failures += 1
                    print(f"{name}: '{typed}' gave no '{wanted}':\n{shell.forget()}")
                shell.send("\x15echo mar''ked\n")  # Ctrl-U takes the line away.
                if not shell.wait_for("marked"):
                    print(f"{name} hangs after '{typed}':\n{shell.forget()}")
                    return 1
        finally:
            shell.end()
    print(f"{name}: {len(CASES) - failures} of {len(CASES)} completed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(check(sys.argv[1], sys.argv[2]))
