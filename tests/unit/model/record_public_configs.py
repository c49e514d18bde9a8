#!/usr/bin/env python3
"""Prints what Orrery reads from every config.json in clones of public repositories, as a table.

Usage: record_public_configs.py ORRERY OWNER/NAME=CLONE... > public_configs.tsv

Of each repository it reads the newest commit. The files are not kept: some are not free to copy.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

LARGEST_BYTES = 60_000


def git(clone, *arguments):
    return subprocess.run(["git", "-C", clone, *arguments], capture_output=True, check=True).stdout


def describes_a_model(text):
    """Hugging Face's keys stand on the first level, also where the JSON is broken."""
    try:
        keys = json.loads(text)
    except ValueError:
        return b'"architectures"' in text and b'"hidden_size"' in text
    if not isinstance(keys, dict) or not {"model_type", "architectures"} & keys.keys():
        return False
    return bool({"hidden_size", "n_embd", "d_model", "text_config"} & keys.keys())


def configs(clone):
    for line in git(clone, "ls-tree", "-rl", "HEAD").decode(errors="replace").splitlines():
        facts, path = line.split("\t", 1)
        blob, size = facts.split()[2:]
        if path.endswith(".json") and size.isdigit() and int(size) <= LARGEST_BYTES:
            text = git(clone, "cat-file", "-p", blob)
            if describes_a_model(text):
                yield path, text


def outcome(orrery, text):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_bytes(text)
        run = subprocess.run([orrery, "check", "--model", folder], capture_output=True, text=True)
    if run.returncode == 0:
        numbers = re.search(r"^  parameters +([\d,]+)", run.stdout, re.M).group(1)
        return "read", numbers.replace(",", "")
    reason = run.stderr.strip().split("config.json: ", 1)[1].split("; ")[0]
    return "refused", reason


def main():
    orrery, clones = sys.argv[1], [word.split("=", 1) for word in sys.argv[2:]]
    print("repository\tcommit\tpath\toutcome\tparameters or reason")
    for name, clone in sorted(clones):
        commit = git(clone, "rev-parse", "HEAD").decode().strip()
        for path, text in configs(clone):
            print(name, commit, path, *outcome(orrery, text), sep="\t")


if __name__ == "__main__":
    main()
