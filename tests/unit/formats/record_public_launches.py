#!/usr/bin/env python3
"""Prints what Orrery makes of launch files in clones of public repositories, as a table.

Usage: record_public_launches.py ORRERY training|serving OWNER/NAME=CLONE... > TABLE.tsv

Of each repository it reads the newest commit. A file is imported, and the plan estimated on H100s
(64 where it does not say how many), or the deployment priced on H200s; a Markdown page is as many
files as it has blocks of code. Outcomes: `estimated`, `does not fit` and `refused` with the reason,
`other` with what happened instead: a crash, a timeout, an error without a place. The files are not
kept.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

LARGEST_BYTES = 60_000
MOST_OF_A_REPOSITORY = 40  # Evenly among all that it has.
SHELL = (".sh", ".bash", ".slurm", ".sbatch", ".srun", ".job")
YAML = (".yaml", ".yml")

# Words that files of a format hold, all of one line's.
TRAINING = [
    ("megatron", SHELL, [rb"--num-layers", rb"pretrain_|torchrun|deepspeed|srun"]),
    ("megatron", SHELL, [rb"tensor[-_]model[-_]parallel[-_]size", rb"--micro"]),
    ("torchtitan", (".toml",), [rb"\[parallelism\]|\[training\]", rb"\[model\]|\[job\]"]),
    ("nanotron", YAML, [rb"(?m)^parallelism:", rb"(?m)^model:", rb"model_config"]),
    ("nemo", YAML, [rb"tensor_model_parallel_size", rb"(?m)^trainer:|^model:|^training:"]),
    ("deepspeed", YAML,
     [rb"model_name_or_path|(?m:^base_model:)", rb"per_device_train|micro_batch_size"]),
    ("deepspeed", SHELL, [rb"--deepspeed|--fsdp", rb"model_name_or_path", rb"per_device_train"]),
]
SERVING = [
    ("server", SHELL + YAML + (".md",),
     [rb"vllm serve|vllm\.entrypoints|sglang\.launch_server|sglang serve|trtllm-serve"
      rb"|dynamo\.(vllm|sglang|trtllm)"]),
]


def git(clone, *arguments):
    return subprocess.run(["git", "--git-dir", clone, *arguments], capture_output=True,
                          check=True).stdout


def format_of(path, text, kinds):
    for name, endings, patterns in kinds:
        if path.endswith(endings) and all(re.search(pattern, text) for pattern in patterns):
            return name
    return None


def parts(path, text):
    """The file, or each block of code of a Markdown page as a script: `page.md#3`."""
    if not path.endswith(".md"):
        yield path, path, text
        return
    blocks = re.findall(rb"(?ms)^ *```[^\n]*\n(.*?)^ *```", text)
    for number, block in enumerate(blocks, 1):
        yield f"{path}#{number}", "block.md", block


def launches(clone, kinds):
    endings = tuple(ending for _, some, _ in kinds for ending in some)
    for line in git(clone, "ls-tree", "-rl", "HEAD").decode(errors="replace").splitlines():
        facts, path = line.split("\t", 1)
        blob, size = facts.split()[2:]
        if path.endswith(endings) and size.isdigit() and int(size) <= LARGEST_BYTES:
            for part, kind, text in parts(path, git(clone, "cat-file", "-p", blob)):
                name = format_of(kind, text, kinds)
                if name:
                    yield part, name, text


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None, "", "timeout"
    return done.returncode, done.stdout, done.stderr


def reason(stderr, folder):
    errors = [line for line in stderr.splitlines() if "error: " in line]
    text = errors[-1].split("error: ", 1)[1] if errors else stderr.strip().replace("\n", " ")[-200:]
    return text.replace(str(folder) + "/", "")


def outcome(orrery, name, path, text):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / re.sub(r"\.md#\d+$", ".sh", pathlib.Path(path).name)
        file.write_bytes(text)
        plan = str(pathlib.Path(folder) / "plan.json")
        words = [orrery, "import", name, str(file), "-o", plan]
        code, _, errors = run(*words)
        if code not in (None, 0) and "--gpus" in errors:
            code, _, errors = run(*words, "--gpus", "8")
        if code != 0:
            told = "error: " in errors and code in (1, 2, 3)
            return ("refused" if told else "other"), reason(errors, folder)
        if name == "server":
            code, out, errors = run(orrery, "serve", "--plan", plan, "--system", "dgx-h200",
                                    "--step", "8x1024")
        else:
            words = [orrery, "estimate", "--plan", plan, "--system", "dgx-h100"]
            code, out, errors = run(*words)
            if code not in (None, 0) and "add --gpus" in errors:
                code, out, errors = run(*words, "--gpus", "64")
        if code == 0:
            step = re.search(r"[Ss]tep(?: time)? +([\d.,]+ +\w+)", out)
            return "estimated", re.sub(" +", " ", step.group(1)) if step else "?"
        text = reason(errors, folder)
        if "error: " not in errors or code not in (1, 2, 3):
            return "other", text
        return ("does not fit" if "not fit" in text or "memory" in text else "refused"), text


def main():
    orrery, kind = sys.argv[1:3]
    clones = [word.split("=", 1) for word in sys.argv[3:]]
    kinds = TRAINING if kind == "training" else SERVING
    print("repository\tcommit\tpath\tformat\toutcome\tstep or reason", flush=True)
    for name, clone in sorted(clones):
        commit = git(clone, "rev-parse", "HEAD").decode().strip()
        found = list(launches(clone, kinds))
        step = max(1, -(-len(found) // MOST_OF_A_REPOSITORY))
        for path, of, text in found[::step]:
            print(name, commit, path, of, *outcome(orrery, of, path, text), sep="\t", flush=True)


if __name__ == "__main__":
    main()
