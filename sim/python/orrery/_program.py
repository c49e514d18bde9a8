"""The program as a child: found, started, heard while it works, ended with its caller."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional, Sequence, Union


class OrreryError(Exception):
    """What the program said that it could not do. `code` is its exit status."""

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code


class BadInput(OrreryError):
    """Something was asked or written wrongly (2); the message says what to write instead."""


class Infeasible(OrreryError):
    """The plan cannot run (3): it does not divide, or does not fit."""


class ProgramFault(OrreryError):
    """The program ended by a fault of its own, or was killed."""


class ProgramMissing(OrreryError):
    """There is no program to run."""


@dataclass(frozen=True)
class Progress:
    """How far the program is."""

    text: str  #: As a terminal shows it: "3 of 69 cases, 12,000 of 369,857 tasks".

    @property
    def share(self) -> Optional[float]:
        """What is done of the whole, from 0 to 1; None where the text does not tell."""
        percent = re.match(r"(\d+(?:\.\d+)?) %", self.text)
        if percent:
            return float(percent.group(1)) / 100
        counts = re.search(r"([\d,]+) of ([\d,]+)", self.text)
        if not counts:
            return None
        done, whole = (int(number.replace(",", "")) for number in counts.groups())
        return done / whole if whole else None


Listener = Union[bool, None, Callable[[Progress], object]]


@dataclass(frozen=True)
class Output:
    """What a run of the program printed, and what it noted beside."""

    text: str
    notes: list[str]
    code: int


def find_program() -> str:
    """$ORRERY_PROGRAM, else the one built in this source tree, else the orrery of the shell's path,
    else the one installed with this."""
    named = os.environ.get("ORRERY_PROGRAM")
    if named:
        return named
    folder = Path(__file__).resolve().parent
    in_source = folder.parents[2] if folder.parts[-3:-1] == ("sim", "python") else None
    if in_source:
        built = in_source / "build" / "release" / "orrery"
        if os.access(built, os.X_OK):
            return str(built)
    in_path = shutil.which("orrery")
    if in_path:
        return in_path
    for above in folder.parents:
        if os.access(above / "bin" / "orrery", os.X_OK):
            return str(above / "bin" / "orrery")
    remedy = "build it with ./run.sh" if in_source else "install the package"
    raise ProgramMissing(
        f"the program orrery is not in the path; {remedy}, or set ORRERY_PROGRAM", 127
    )


def _listener(progress: Listener) -> Optional[Callable[[Progress], object]]:
    if progress is True:
        return lambda news: print(f"\r{news.text}\033[K", end="", file=sys.stderr, flush=True)
    return progress or None


def _error(code: int, said: list[str]) -> OrreryError:
    message = "\n".join(said) or f"the program ended with status {code} and said nothing"
    message = re.sub(r"(?m)^orrery: error: ", "", message)
    kinds = {2: BadInput, 3: Infeasible}
    if code < 0 or code == 1:
        return ProgramFault(message, code)
    return kinds.get(code, OrreryError)(message, code)


# It stops at Ctrl-C by itself, and its workers end with it. Who does not within a second is killed.
def _end(child: "subprocess.Popen[str]") -> None:
    try:
        child.send_signal(signal.SIGINT)
        child.wait(timeout=1)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        child.kill()
        child.wait()


def run_program(
    words: Sequence[str], progress: Listener = None, also_fine: Sequence[int] = ()
) -> Output:
    """Runs the program; `also_fine`: statuses beside 0 with which its output counts.

    Raises OrreryError with the program's own message. A KeyboardInterrupt ends the program first.
    """
    hear = _listener(progress)
    environment = dict(os.environ, NO_COLOR="1")
    environment.pop("ORRERY_PROGRESS", None)
    if hear:
        environment["ORRERY_PROGRESS"] = "lines"
    program = find_program()
    try:
        # A group of its own: Ctrl-C on a terminal reaches it through us, once.
        child = subprocess.Popen(
            [program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise ProgramMissing(f"{program} cannot be started: {error.strerror}", 127) from error
    assert child.stdout and child.stderr
    pieces: list[str] = []
    stdout = child.stdout
    reader = threading.Thread(target=lambda: pieces.append(stdout.read()), daemon=True)
    reader.start()
    said: list[str] = []
    try:
        for line in child.stderr:  # Here and not in the thread, so that listeners may draw.
            news = line.rstrip("\n").removeprefix("orrery: progress: ")
            if news == line.rstrip("\n"):
                said.append(news)
            elif hear:
                hear(Progress(news))
        code = child.wait()
        reader.join()
    except BaseException:
        _end(child)
        raise
    finally:
        if progress is True:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        reader.join()
        child.stdout.close()
        child.stderr.close()
    if code == 130:
        raise KeyboardInterrupt
    if code != 0 and code not in also_fine:
        raise _error(code, said)
    notes = [re.sub(r"^orrery: (note|warning): ", "", line) for line in said]
    return Output("".join(pieces), notes, code)
