#!/usr/bin/env python3
"""By how much steps get longer as a cluster grows (docs/notes/growth.md).

    orrery validate --json tests/validation/training/*.json tests/validation/recent/*.json \
        > all.json
    calibration/growth.py all.json

Takes plans that were run at several sizes, and fits, a vote a publication, the constants of

    ln(measured / T) = constant of the plan + s log2(n / 64) + c log2(n / 64) / T      (n > 64)

with an s for each technology of networks (wait_share) and one c (wait_time, none where a graph
launches the step), by least squares with errors cut at 5 %. T is the predicted step without
waiting for others. Prints them as they are and with each publication left out.
"""
import collections
import json
import math
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
ALONE = 64  # GPUs: sim/training/waiting.hpp
WAIT_TIME = 0.020  # Software::default_wait_time
CUT = 0.05
SIZES = {"dp", "gbs", "gpus", "dp_replicate"}  # Keys by which sizes of one plan differ.


def catalog(folder, name, beside):
    for path in (os.path.join(ROOT, "topologies", folder, name + ".json"),
                 os.path.join(beside, name)):
        if os.path.exists(path):
            return json.load(open(path))
    raise SystemExit(f"{name}: no such file in topologies/{folder}")


def read(path):
    """[(publication, plan, [features], error)] of all steps, with what was waited taken off."""
    rows = []
    for report in json.load(open(path))["files"]:
        beside = os.path.dirname(report["file"])
        cases = {case["id"]: case for case in json.load(open(report["file"]))}
        for one in report["cases"]:
            if one["quantity"] != "step_time_s" or not one.get("predicted"):
                continue
            case = cases[one["id"]]
            system = catalog("systems", case["system"], beside)
            network = catalog("networks", system.get("fabric", "infiniband"), beside)
            ethernet = network["wait_share"]["value"] > 0.01
            share = network["wait_share"]["value"]
            graph = case["plan"].get("cuda_graphs") == "step"
            doublings = max(0.0, math.log2(case["gpus"] / ALONE))
            step = (one["predicted"] - doublings * (0 if graph else WAIT_TIME)) / \
                (1 + doublings * share)
            plan = {key: value for key, value in case["plan"].items() if key not in SIZES}
            if "local_batch" in plan:  # Of other sizes are those that drain as often.
                ranks = case["gpus"] / (plan.get("tp", 1) * plan.get("pp", 1) * plan.get("cp", 1))
                plan["rounds"] = case["plan"]["gbs"] / ranks / plan["local_batch"]
            key = json.dumps([case["source"]["title"], case["system"], case["model"], plan],
                             sort_keys=True)
            features = [0 if ethernet else doublings, doublings if ethernet else 0,
                        0 if graph else doublings / step]
            rows.append((case["source"]["title"], key, case["gpus"], features,
                         math.log(one["measured"] / step)))
    return rows


def within_plans(rows):
    """(publication, features, error) less their means over each plan with several sizes."""
    plans = collections.defaultdict(list)
    for row in rows:
        plans[row[1]].append(row)
    centred = []
    for group in plans.values():
        if len({row[2] for row in group}) < 2:
            continue
        means = [sum(row[3][i] for row in group) / len(group) for i in range(3)]
        mean = sum(row[4] for row in group) / len(group)
        for row in group:
            centred.append((row[0], [x - m for x, m in zip(row[3], means)], row[4] - mean))
    return centred


def solve(matrix, right):
    rows = [line[:] + [value] for line, value in zip(matrix, right)]
    for i in range(len(rows)):
        best = max(range(i, len(rows)), key=lambda r: abs(rows[r][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for r in range(len(rows)):
            if r != i and rows[i][i]:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][-1] / rows[i][i] if rows[i][i] else 0.0 for i in range(len(rows))]


def fit(rows):
    of = collections.Counter(row[0] for row in rows)
    constants = [0.0] * 3
    for _ in range(100):
        matrix = [[0.0] * 3 for _ in range(3)]
        right = [0.0] * 3
        for title, features, error in rows:
            left = error - sum(a * b for a, b in zip(features, constants))
            weight = min(1.0, CUT / max(abs(left), 1e-12)) / of[title]
            for i in range(3):
                right[i] += weight * features[i] * error
                for k in range(3):
                    matrix[i][k] += weight * features[i] * features[k]
        constants = solve(matrix, right)
    return constants


def text(constants):
    return (f"{100 * constants[0]:5.2f} % of the step on InfiniBand, {100 * constants[1]:5.2f} % on "
            f"Ethernet, {1000 * constants[2]:5.1f} ms")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    rows = within_plans(read(sys.argv[1]))
    titles = collections.Counter(row[0] for row in rows)
    print(f"{len(rows)} steps of {len(titles)} publications: {text(fit(rows))} a doubling")
    for title, steps in sorted(titles.items()):
        rest = fit([row for row in rows if row[0] != title])
        print(f"  without {title[:60]:60} ({steps:3} steps): {text(rest)}")


if __name__ == "__main__":
    main()
