"""One function for each question that one asks of the program."""

from __future__ import annotations

import difflib
import functools
import json
import os
import tempfile
from contextlib import ExitStack
from typing import Any, Mapping, Optional, Sequence, Union

from ._answers import Answer, Drawing, Row, Sweep
from ._program import Listener, OrreryError, Output, run_program

#: A plan as compare() takes it: an answer, a file's name, or options such as "--tp 8 --pp 4".
Plan = Union[str, "os.PathLike[str]", Mapping[str, Any]]


@functools.lru_cache(maxsize=None)
def _completed(words: tuple[str, ...]) -> tuple[str, ...]:
    lines = run_program(["completion", "words", *words]).text.splitlines()
    return tuple(line.split("\t")[0] for line in lines)


def _option(command: str, name: str) -> str:
    """--name as the command writes it, with '_' or with '-'."""
    known = _completed((*command.split(), "--"))
    for spelling in (name, name.replace("_", "-")):
        if f"--{spelling}" in known:
            return f"--{spelling}"
    names = [option[2:].replace("-", "_") for option in known]
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"see: orrery {command} --help all"
    raise TypeError(f"orrery {command} has no option '{name}'; {hint}")


class _Files(ExitStack):
    """Dictionaries as files, while a command reads them."""

    def __init__(self) -> None:
        super().__init__()
        self._of: dict[str, str] = {}  # What the caller knows them as.

    def add(self, value: Mapping[str, Any], name: str) -> str:
        file = self.enter_context(
            tempfile.NamedTemporaryFile("w", prefix="orrery-", suffix=".json", encoding="utf-8")
        )
        json.dump(value, file)
        file.flush()
        self._of[file.name] = name
        return file.name

    def renamed(self, message: str) -> str:
        """A message with the caller's names in place of those of files that he never saw."""
        for path, name in self._of.items():
            message = message.replace(path, name)
        return message


def _text(value: Any, files: _Files, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return files.add(value, name)
    if isinstance(value, (list, tuple, range, set, frozenset)):
        return ",".join(_text(each, files, name) for each in value)
    return str(os.fspath(value)) if isinstance(value, os.PathLike) else str(value)


def _words(command: str, options: Mapping[str, Any], files: _Files) -> list[str]:
    """`options` as words of a command line; None stands for an option that is not given."""
    words: list[str] = []
    for name, value in options.items():
        if value is None:
            continue
        option = _option(command, name)
        if value is True:
            words.append(option)  # "--sp" is "--sp true".
        elif value is False:
            if "false" in _completed((*command.split(), option, "")):
                words += [option, "false"]
        elif name == "fix" and isinstance(value, Mapping):
            for key, values in value.items():
                words += [option, f"{key}={_text(values, files, name)}"]
        else:
            words += [option, _text(value, files, name)]
    return words


def call(
    command: str,
    *words: Plan,
    progress: Listener = None,
    also_fine: Sequence[int] = (),
    **options: Any,
) -> Output:
    """Any command as the shell has it: call("import megatron", "train.sh", name="mine").text.

    Options are keywords, with '_' for '-'. A list is written with commas, a dictionary goes into a
    file, True is an option without a value, None is left out.
    """
    files = _Files()
    try:
        said = [_text(word, files, f"word {count}") for count, word in enumerate(words, 1)]
        given = _words(command, options, files)
        return run_program([*command.split(), *said, *given], progress, also_fine)
    except OrreryError as error:
        raise type(error)(files.renamed(str(error)), error.code) from None
    finally:
        files.close()


def _answer(
    command: str, words: Sequence[Plan], progress: Listener, options: Mapping[str, Any]
) -> Answer:
    output = call(command, *words, progress=progress, json=True, **options)
    return Answer(json.loads(output.text), output.notes)


def estimate(*, progress: Listener = None, **options: Any) -> Answer:
    """How long a training step takes, why, and whether it fits."""
    return _answer("estimate", (), progress, options)


def search(*, progress: Listener = None, **options: Any) -> Answer:
    """The best plans, proven: search(model=..., system=..., gpus=64, gbs=256)["plans"]."""
    return _answer("search", (), progress, options)


def compare(*plans: Plan, progress: Listener = None, **options: Any) -> Answer:
    """Which plan is faster, why, and whether that is significant."""
    return _answer("compare", plans, progress, options)


def buy(*, progress: Listener = None, **options: Any) -> Answer:
    """Which machine trains a model, in how many days, for how much:
    buy(model=..., tokens="1T", system=["dgx-h100", "dgx-b200"], gpus="64..512")["rows"]."""
    return _answer("buy", (), progress, options)


def run(*, progress: Listener = None, **options: Any) -> Answer:
    """A whole training run with failures, checkpoints and spares."""
    return _answer("run", (), progress, options)


def serve(*, progress: Listener = None, **options: Any) -> Answer:
    """What a deployment costs and its clients see; with search=True, the best deployments."""
    return _answer("serve", (), progress, options)


def kernel(operation: str, *, progress: Listener = None, **options: Any) -> Answer:
    """One operation by itself: kernel("gemm", gpu=..., m=..., n=..., k=...); or all of a step:
    kernel("step", ...)["operations"]."""
    return _answer(f"kernel {operation}", (), progress, options)


def collective(kind: str, *, progress: Listener = None, **options: Any) -> list[Answer]:
    """A collective alone, one answer for each size."""
    output = call("collective", kind, progress=progress, json=True, **options)
    answers = json.loads(output.text)
    return [Answer(each) for each in (answers if isinstance(answers, list) else [answers])]


def sweep(
    *, output: Optional[str] = None, progress: Listener = None, **options: Any
) -> Sweep:
    """A grid of plans; lists and ranges stand for values: sweep(..., gbs="256..8192*2").

    Without `output` its folder is a temporary one. With it, a sweep goes on where it stopped.
    """
    owner = None if output else tempfile.TemporaryDirectory(prefix="orrery-")
    folder = output or os.path.join(owner.name, "sweep")  # type: ignore[union-attr]
    some_failed = (5,)
    call("sweep run", output=folder, progress=progress, also_fine=some_failed, **options)
    with tempfile.TemporaryDirectory(prefix="orrery-") as beside:
        rows = os.path.join(beside, "rows.jsonl")
        call("sweep merge", folder, output=rows, also_fine=some_failed)
        with open(rows, encoding="utf-8") as lines:
            found: list[Row] = [json.loads(line) for line in lines]
    return Sweep(found, folder, functools.partial(_draw, "sweep plot", folder, "output"), owner)


def _draw(command: str, word: str, option: str, options: Mapping[str, Any]) -> Drawing:
    """What a command draws into the file that its `option` names."""
    with tempfile.TemporaryDirectory(prefix="orrery-") as folder:
        file = os.path.join(folder, "drawing.svg")
        named: dict[str, Any] = {**options, option: file}
        call(command, word, **named)
        with open(file, encoding="utf-8") as svg:
            return Drawing(svg.read())


def schedule(name: str, **options: Any) -> Drawing:
    """A pipeline schedule as a drawing: schedule("1f1b", pp=4, microbatches=8)."""
    return _draw("schedule", name, "svg", options)


def names(kind: str) -> list[str]:
    """What the catalog has of models, systems, gpus, software, engines, ..."""
    return [line.split()[0] for line in run_program(["list", kind]).text.splitlines()]


def version() -> str:
    return run_program(["--version"]).text.split()[-1]
