#!/usr/bin/env python3
"""Draws commands, most of them slightly wrong, and checks what every answer must keep.

    tests/properties/drawn_commands.py ORRERY [COUNT] [SEED]

A command is a mode of the program that works, with up to three further options that its help lists.
Their values are such as users type, or hostile ones. Each command must

  - end with 0, or with 2, 3 or 4 and one line of error on stderr and nothing on stdout;
  - end within a minute (five if SimGrid carries each flow), print no control characters, and leave no file behind where it fails;
  - print strict JSON with --json;
  - print the same again, and the same with its options in another order.

Of a tenth of the answers laws are checked: an estimate's result is a plan with the same step time;
plans compared in another order have the same times; a larger message never takes less.

Prints each defect with its command, and exits with 1 if there is one.
"""

import concurrent.futures
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

TRAINED = "--model llama3-8b --system dgx-h100 --gpus 16 --gbs 32 --seq 2048 --tp 2"
SERVED = "--model llama3.1-8b --system dgx-h100 --gpus 2 --engine vllm"
# The command whose help lists the options, and words that make it work.
MODES = [
    ("estimate", TRAINED),
    ("estimate", "--model mixtral-8x7b --system dgx-h100 --gpus 16 --gbs 16 --ep 8 --seq 2048"),
    ("estimate", "--model llama3-8b --system gb200-nvl72 --gpus 72 --gbs 72"),
    ("run", TRAINED + " --tokens 10B --replicates 5"),
    ("run", "--model llama3-8b --system gb200-nvl72 --gpus 144 --gbs 144 --tokens 100B "
            "--reliability meta-llama3 --replicates 3"),
    ("compare", "--model llama3-8b --system dgx-h100 --gpus 8 --gbs 16 '--tp 1' '--tp 2'"),
    ("search", "--model llama3-8b --system dgx-h100 --gpus 8 --gbs 8 --fix cp=1 --fix pp=1"),
    ("buy", "--model llama3-8b --tokens 10B --system dgx-h100,dgx-b200 --gpus 8,16 --gbs 16 "
            "--fix cp=1 --fix pp=1"),
    ("serve", SERVED + " --step 8x1000"),
    ("serve", SERVED + " --isl 100 --osl 20 --concurrency 4 --requests 40"),
    ("serve", SERVED + " --isl lognormal:100,0.5 --osl 20 --rate 5 --requests 60"),
    ("serve", "--model llama3.1-8b --system dgx-h100 --engine vllm --pools 1P1D --isl 100 "
              "--osl 20 --rate 4 --requests 40"),
    ("serve", "--search --model llama3.1-8b --system dgx-h100 --gpus 1 --engine vllm --isl 100 "
              "--osl 10 --concurrency 2 --requests 20 --fix weights=bf16"),
    ("collective", "all_reduce --system dgx-h100 --gpus 16 --bytes 1048576"),
    ("collective", "all_to_all --system gb200-nvl72 --gpus 144 --bytes 3000000"),
    ("collective", "all_gather --system l40s-pcie --gpus 3 --max-bytes 1M"),
    ("kernel", "gemm 8192 4096 4096 --gpu h100-sxm"),
    ("kernel", "decode --batch 16 --context 4096 --heads 32 --gpu h100-sxm"),
    ("kernel", "dispatch 4096 7168 256 8 16 --system dgx-h100"),
    ("schedule", "1f1b --pp 4 --microbatches 8"),
    ("check", "--model llama3-8b --system dgx-h100"),
    ("export megatron", TRAINED),
    ("export server", SERVED),
    ("list", "models"),
]
HOSTILE = ["", " ", "nan", "inf", "-inf", "-1", "0", "1e308", "1e-320", "99999999999999999999",
           "0x10", "1,2", "1..3", "..", "/", "/dev/null", "no/such.json", "no-such", "--tp", "-",
           "true", "None", "é", "\x1b[31mred", "a\nb", "%s%n", "x" * 300, "{}", "[]", "'", "=1",
           "tp=2", "1 GiB", "1e18B", "100%", "@p90", ":", "1:2:3", "$(id)"]
USUAL = {
    "N": ["1", "2", "3", "4", "7", "8", "16", "64", "1000", "1M", "2.5", "128k", "1T"],
    "SHARE": ["0.1", "0.5", "0.95", "1", "2", "10%"],
    "SIZE": ["8", "1 MiB", "1GB", "64K", "8G"],
    "BYTES": ["1 GB", "64 GB"],
    "TIME": ["1s", "10min", "2h", "30d", "30"],
    "USD": ["1M", "50M", "1000", "0.5"],
    "RATE": ["10 GB/s", "1 TB/s", "100 Gb/s"],
    "R": ["1", "10", "1000"],
    "X": ["0.5", "1", "2"],
    "K": ["1", "3", "10"],
    "LENGTHS": ["100", "10..200", "lognormal:100,0.5", "exp:50", "uniform:1..9"],
    "FORMAT": ["bf16", "fp8", "fp16", "int4", "nvfp4", "mxfp4", "fp8_block"],
    "LIST": ["ttft=500,tpot=20@p90", "store:10min", "1,2,4", "dgx-h100,dgx-b200", "Ring,Tree"],
    "KEY=V[,V]": ["tp=1", "tp=1,2", "zero=1", "mbs=1", "weights=fp8", "cp=2", "no=1", "tp="],
    "GOAL": ["time", "cost", "goodput", "throughput", "memory"],
    "NxC[+P[@K]]": ["1x128", "8x1000", "8x1000+512", "0x1", "1x"],
    "METHOD:N@RATE": ["eagle:3@0.7", "ngram:2@0.5", "eagle:0@1"],
    "PASS": ["forward", "dgrad", "wgrad", "backward"],
    "NAME+NAME": ["Ring", "Ring+Tree", "any"],
}


def options_of(program, command):
    """(name, hint of its value or None) of each option in the command's help."""
    text = subprocess.run([program, *command.split(), "--help", "all"], capture_output=True,
                          text=True, check=True).stdout
    found = []
    for line in text.splitlines():
        match = re.match(r"  --([\w-]+)(?: (\S+))?(?=  |$)", line)
        if match and match[1] != "help":
            found.append((match[1], match[2]))
    return found


def names(program, kind):
    out = subprocess.run([program, "list", kind], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in out.splitlines() if line and line[0] != " "][:60]


class Drawer:
    def __init__(self, program, seed):
        self.random = random.Random(seed)
        self.options = {command: options_of(program, command) for command, _ in MODES}
        self.catalog = {"model": names(program, "models"), "system": names(program, "systems"),
                        "gpu": names(program, "gpus"), "engine": names(program, "engines"),
                        "software": names(program, "software")}

    def value(self, name, hint):
        draw = self.random
        if draw.random() < 0.3:
            return draw.choice(HOSTILE)
        if name in self.catalog and draw.random() < 0.9:
            return draw.choice(self.catalog[name])
        if "|" in hint and hint.upper() != hint:
            return draw.choice([word for word in hint.split("|")])
        for part in hint.split("|"):
            if part in USUAL:
                return draw.choice(USUAL[part])
        return draw.choice(USUAL["N"] + ["out.json", "out.html", "out.csv"])

    def command(self):
        draw = self.random
        command, words = draw.choice(MODES)
        positional, given = [], []
        rest = shlex.split(words)
        while rest:
            word = rest.pop(0)
            if not word.startswith("--") or " " in word:
                positional.append(word)
            elif rest and (not rest[0].startswith("--") and " " not in rest[0]):
                given.append((word[2:], rest.pop(0)))
            else:
                given.append((word[2:], None))
        for _ in range(draw.choice([0, 1, 1, 1, 2, 2, 3])):
            if not self.options[command]:
                break
            name, hint = draw.choice(self.options[command])
            value = None if hint is None else self.value(name, hint)
            if draw.random() < 0.7 or name in ("fix",):
                given = [(n, v) for n, v in given if n != name or n == "fix"]
            given.append((name, value))
        return command, positional, given


def words_of(command, positional, given):
    words = [*command.split(), *positional]
    for name, value in given:
        words += [f"--{name}"] if value is None else [f"--{name}", value]
    return words


def run(program, words, folder):
    try:
        done = subprocess.run([program, *words], capture_output=True, cwd=folder,
                              timeout=300 if "simgrid" in words else 60,
                              stdin=subprocess.DEVNULL, check=False)
        return done.returncode, done.stdout.decode(errors="replace"), \
            done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return "timeout", "", ""


def timeless(text):
    """Without times that the program itself took."""
    text = re.sub(r'"(simulation_wall_s|wall_s|seconds)": [^,\n]*', "", text)
    return re.sub(r"(in|Took) +\d[\d.,]* m?s\b", "", text)


def answer(program, words, folder):
    code, out, _ = run(program, words, folder)
    return json.loads(out) if code == 0 else None


def without(given, *names_left_out):
    return [(name, value) for name, value in given if name not in names_left_out]


def broken_laws(program, command, positional, given, folder):
    """Laws that the answer to a command breaks."""
    plain = without(given, "json", "csv", "markdown", "html", "force", "trace", "verbose", "links",
                    "critical-path", "pareto", "roofline")
    asked = [("json", None)]
    first = answer(program, words_of(command, positional, plain + asked), folder)
    if first is None:
        return []
    if command == "estimate" and "step_time_s" in first:
        pathlib.Path(folder, "result.json").write_text(json.dumps(first), encoding="utf-8")
        kept = [(name, value) for name, value in plain
                if name in ("ignore-memory", "calibration", "host-memory", "simulator", "expanded",
                            "unfolded", "economics")]
        second = answer(program, words_of(command, [], kept + asked + [("plan", "result.json")]),
                        folder)
        if second is None or second["step_time_s"] != first["step_time_s"]:
            return ["its result is a plan of another step time"]
    if command == "compare":
        second = answer(program, words_of(command, positional[::-1], plain + asked), folder)
        times = [plan["step_time_s"] for plan in first["plans"]]
        if second is None or [plan["step_time_s"] for plan in second["plans"]] != times[::-1]:
            return ["in another order the plans have other times"]
    if command == "collective" and isinstance(first, dict) and "time_s" in first:
        size = dict(plain).get("bytes", "")
        if size.isdigit():
            more = without(plain, "bytes") + [("bytes", str(2 * int(size)))]
            second = answer(program, words_of(command, positional, more + asked), folder)
            if second and second["time_s"] < first["time_s"] * (1 - 1e-9):
                return ["twice the bytes take less time"]
    return []


def defects(program, drawn, again):
    command, positional, given = drawn
    words = words_of(command, positional, given)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        code, out, err = run(program, words, folder)
        if code not in (0, 2, 3, 4):
            return [f"ends with {code}: {err.strip()[:300]}"]
        controls = re.findall(r"[\x00-\x08\x0b-\x1f\x7f]", out + err)
        if controls:
            found.append(f"prints control characters {controls[:3]}")
        lines = [line for line in err.splitlines() if not line.startswith("orrery: note: ")]
        if code == 0 and lines:
            found.append(f"succeeds and says on stderr: {lines[0][:200]}")
        if code != 0:
            errors = [line for line in lines if line.startswith("orrery: error: ")]
            if not errors:
                found.append("fails without an error")
            if len(lines) != 1 and not any("more" in line or " errors" in line for line in lines):
                found.append(f"fails with {len(lines)} lines: {lines[:3]}")
            if out:
                found.append(f"fails with an answer: {out[:100]!r}")
            left = os.listdir(folder)
            if left:
                found.append(f"fails and leaves {left}")
        if code == 0 and ("json", None) in given and out:
            try:
                json.loads(out, parse_constant=lambda word: sys.exit(word))
            except (ValueError, SystemExit) as wrong:
                found.append(f"prints no JSON: {wrong}")
        if again and code == 0 and not os.listdir(folder):  # Files are not written twice.
            for what, order in (("again", given), ("in another order", given[::-1])):
                names_given = [name for name, _ in order]
                if len(set(names_given)) != len(names_given):
                    continue
                code2, out2, _ = run(program, words_of(command, positional, order), folder)
                if code2 != code or timeless(out2) != timeless(out):
                    found.append(f"answers otherwise {what}")
            found += broken_laws(program, command, positional, given, folder)
    return found


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    drawer = Drawer(program, seed)
    drawn = [drawer.command() for _ in range(count)]
    again = [drawer.random.random() < 0.1 for _ in range(count)]
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for one, found in zip(drawn, pool.map(lambda i: defects(program, drawn[i], again[i]),
                                              range(count))):
            for defect in found:
                wrong += 1
                print(f"{shlex.join(['orrery', *words_of(*one)])}\n    {defect}", flush=True)
    print(f"{count} commands, seed {seed}: {wrong} defects")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
