#!/usr/bin/env python3
"""How far steps are off where another software's file stands in (docs/explanation/ranges.md).

    calibration/software_stand_ins.py build/release/orrery

predicts the steps of tests/validation with a file that is not that of the software that ran, and
prints the quantiles of |ln(measured / predicted)|, a vote a publication: stands_in of
calibration/data/price_errors.json.
"""
import collections
import json
import math
import os
import subprocess
import sys
import tempfile

# By file of cases: a software of the same kind (Megatron's and its successors, or FSDP's).
STAND_INS = {
    "training/mosaic": "torchtitan", "training/torchtitan": "composer-2023-hopper",
    "training/automodel": "torchtitan", "training/korthikanti": "megatron-core",
    "training/sc21": "megatron-core", "training/vtrain-multi": "megatron-core",
    "training/zerobubble": "megatron-core", "training/megascale": "megatron-core",
    "training/megatron": "megatron-2022", "training/simumax": "nemo-2024",
    "training/dgxc": "megatron-2023", "training/mbridge": "megatron-core",
    "training/hybrid": "megatron-core", "training/mcore": "megatron-bridge",
    "training/moezoo": "megatron-bridge", "recent/mbridge-skills": "megatron-core",
    "recent/torchao": "composer-2023-hopper", "recent/xtuner": "torchtitan",
    "recent/internevo": "megatron-2023",
}


def swapped(folder, name, software):
    """The cases of a file with another software; systems by their whole path."""
    cases = json.load(open(os.path.join(folder, name + ".json")))
    for case in cases:
        case["plan"]["software"] = "torchtitan" if "ZeRO-3" in case["id"] else software
        if case["system"].startswith("systems/"):
            case["system"] = os.path.join(folder, os.path.dirname(name), case["system"])
    return cases


def main():
    orrery = os.path.abspath(sys.argv[1])
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder = os.path.join(root, "tests", "validation")
    errors, titles = collections.defaultdict(list), {}
    with tempfile.TemporaryDirectory() as work:
        files = []
        for name, software in STAND_INS.items():
            path = os.path.join(work, name.replace("/", "-") + ".json")
            cases = swapped(folder, name, software)
            titles.update({case["id"]: case["source"]["title"] for case in cases})
            json.dump(cases, open(path, "w"))
            files.append(path)
        reports = json.loads(subprocess.run([orrery, "validate", "--json"] + files, cwd=root,
                                            check=True, stdout=subprocess.PIPE).stdout)
    for report in reports["files"]:
        for case in report["cases"]:
            if case["quantity"] == "step_time_s":
                errors[titles[case["id"]]].append(math.log(case["measured"] / case["predicted"]))
    votes = sorted((abs(error), 1.0 / len(of)) for of in errors.values() for error in of)
    print(f"{len(errors)} publications, {len(votes)} steps")
    for share in (0.5, 0.8, 0.9):
        below = 0.0
        for size, vote in votes:
            below += vote
            if below >= share * len(errors) - 1e-9:
                print(f"{share:.0%} of the votes: {size:.3f}")
                break


if __name__ == "__main__":
    main()
