#!/usr/bin/env python3
"""Measures all that docs/notes/speed.md tells, and keeps it.

    tests/bench/record.py build/release                      prints
    tests/bench/record.py build/release --against OLD        pairs with another build, in turn
    tests/bench/record.py build/release --append             adds a line to tests/bench/record.jsonl
    tests/bench/record.py build/release --smoke              the quick ones, once; asserts counts
    ... --peer 'Calculon=python3 run.py'                     times a command of yours in the same run

Times are CPU seconds: of a bench its own, inside the process; of a command the whole command. A
figure is the median of its rounds; beside another build the ratio is the median of the rounds' own
ratios, since a machine's speed changes from minute to minute. Counts (tasks, plans, events) are
exact: --smoke holds them against the last line of the record, and fails where one differs.
"""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
record = here / "record.jsonl"

GPT3 = "estimate --model gpt3-175b --system dgx-a100-80gb --gpus 1024 --tp 8 --pp 8 --gbs 1536 " \
       "--recompute full"
LLAMA = "estimate --model llama3.1-405b --system dgx-h100 --gpus 1152 --tp 8 --pp 9 --vpp 7 " \
        "--cp 2 --gbs 504"
# Words after the program.
commands = {"orrery --version": "--version", "orrery estimate, GPT-3 175B": GPT3,
            "orrery estimate, Llama 3.1 405B": LLAMA}
# Bench, its arguments, and whether it is quick enough for a smoke.
benches = [("step_bench", [], True), ("network_bench", [], True), ("run_bench", [], True),
           ("search_bench", ["400"], True), ("deployment_bench", [], False),
           ("replay_bench", [], False), ("sweep_bench", ["{build}/orrery"], False)]


def fail(message):
    sys.exit(f"record.py: {message}")


def cpu_of(words, times=5):
    """Median CPU seconds of a command, start-up and all."""
    spent = []
    for _ in range(times):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
        if process.returncode:
            fail(f"{' '.join(words)} exits {process.returncode}: {errors.decode().strip()}")
        spent.append(usage.ru_utime + usage.ru_stime)
    return statistics.median(spent)


def figures_of(build, bench, arguments):
    """{name: {"cpu_s", "counts"}} of one run of a bench."""
    program = build / "tests" / bench
    if not program.exists():
        fail(f"{program} is not there; build it: cmake --build {build} --target {bench}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "figures"
        words = [str(program)] + [word.format(build=build) for word in arguments]
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env=dict(os.environ, ORRERY_BENCH_FIGURES=str(path)))
        if done.returncode:
            fail(f"{' '.join(words)} exits {done.returncode}: {done.stderr.decode().strip()}")
        if not path.exists():
            fail(f"{program} tells no figures: it is older than this record")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {f"{bench.removesuffix('_bench')}: {line['name']}": line for line in lines}


def measured(build, smoke):
    """One round."""
    figures = {}
    for bench, arguments, quick in benches:
        if quick or not smoke:
            figures.update(figures_of(build, bench, arguments))
    if not smoke:
        for name, words in commands.items():
            figures[name] = {"cpu_s": cpu_of([str(build / "orrery")] + words.split()), "counts": {}}
    return figures


def version_of(build):
    cache = (build / "CMakeCache.txt").read_text()
    home = next(line.split("=", 1)[1] for line in cache.splitlines()
                if line.startswith("CMAKE_HOME_DIRECTORY"))
    done = subprocess.run(["git", "-C", home, "describe", "--always", "--dirty"],
                          capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} cores"
    return f"unknown, {os.cpu_count()} cores"


def last_counts():
    lines = record.read_text().splitlines() if record.exists() else []
    if not lines:
        fail(f"{record} has no line yet: --append one")
    figures = json.loads(lines[-1])["figures"]
    return {name: figure["counts"] for name, figure in figures.items() if "counts" in figure}


def check_counts(figures):
    wrong = []
    known = last_counts()
    figures = {name: figure for name, figure in figures.items() if figure["counts"]}
    for name, figure in figures.items():
        if name not in known:
            wrong.append(f"{name}: is not in the record")
        elif figure["counts"] != known[name]:
            wrong.append(f"{name}: {figure['counts']}, and the record says {known[name]}")
    if wrong:
        fail("counts differ; if that is meant, --append a line:\n  " + "\n  ".join(wrong))
    print(f"{len(figures)} figures, counted as in the record")


def main():
    parser = argparse.ArgumentParser(description="Measures what docs/notes/speed.md tells.")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--against", type=pathlib.Path, help="another build, measured in turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--append", action="store_true", help=f"a line to {record.name}")
    parser.add_argument("--smoke", action="store_true", help="counts of the quick ones alone")
    options = parser.parse_args()
    if options.smoke:
        return check_counts(measured(options.build, True))

    rounds, others = [], []
    for number in range(options.rounds):
        # The one that begins changes, as the second finds warmer caches.
        pair = [(options.build, rounds), (options.against, others)]
        for build, into in pair if number % 2 == 0 else reversed(pair):
            if build:
                into.append(measured(build, False))
    peers = {}
    for peer in options.peer:
        name, _, command = peer.partition("=")
        peers[name] = cpu_of(["sh", "-c", command], 3)

    figures = {}
    print(f"{'':58} {'CPU (ms)':>10} {'before':>10} {'ratio':>7}  counts")
    for name in rounds[0]:
        own = [one[name]["cpu_s"] for one in rounds]
        figure = {"cpu_s": statistics.median(own)}
        shown = ""
        if others and name in others[0]:
            old = [one[name]["cpu_s"] for one in others]
            ratios = [mine / its for mine, its in zip(own, old) if its > 0]
            if ratios:
                figure["before_s"] = statistics.median(old)
                figure["ratio"] = round(statistics.median(ratios), 3)
                shown = f"{1e3 * figure['before_s']:10.2f} {figure['ratio']:7.2f}"
        if rounds[0][name]["counts"]:
            figure["counts"] = rounds[0][name]["counts"]
        if any(one[name]["counts"] != rounds[0][name]["counts"] for one in rounds):
            fail(f"{name} counts otherwise from round to round")
        figures[name] = figure
        counts = " ".join(f"{key}={value:.12g}" for key, value in figure.get("counts", {}).items())
        print(f"{name:58} {1e3 * figure['cpu_s']:10.2f} {shown:18}  {counts}")
    for name, spent in peers.items():
        print(f"{name:58} {1e3 * spent:10.2f}")

    if options.append:
        line = {"date": datetime.date.today().isoformat(), "version": version_of(options.build),
                "processor": processor(), "rounds": options.rounds}
        if options.against:
            line["against"] = version_of(options.against)
        line.update(figures=figures, **({"peers": peers} if peers else {}))
        with record.open("a") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
