"""Orrery from Python: how long training and serving take on a GPU cluster, and why.

    import orrery
    answer = orrery.estimate(model="llama3-8b", system="dgx-h100", gpus=64, gbs=256, tp=2)
    answer["step_time_s"]

Each function runs the command of its name and returns what it says as dictionaries. Options are
those of `orrery COMMAND --help all`; see docs/guides/python.md.
"""

from ._answers import Answer, Drawing, Sweep
from ._commands import (
    buy,
    call,
    collective,
    compare,
    estimate,
    kernel,
    names,
    run,
    schedule,
    search,
    serve,
    sweep,
    version,
)
from ._program import (
    BadInput,
    Infeasible,
    OrreryError,
    Progress,
    ProgramFault,
    ProgramMissing,
)

__all__ = [
    "Answer",
    "BadInput",
    "Drawing",
    "Infeasible",
    "OrreryError",
    "ProgramFault",
    "ProgramMissing",
    "Progress",
    "Sweep",
    "buy",
    "call",
    "collective",
    "compare",
    "estimate",
    "kernel",
    "names",
    "run",
    "schedule",
    "search",
    "serve",
    "sweep",
    "version",
]
