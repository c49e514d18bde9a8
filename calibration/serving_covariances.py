#!/usr/bin/env python3
"""How much errors of serving predictions have in common (docs/explanation/ranges.md).

    orrery validate --json tests/validation/inference/*.json > all.json
    calibration/serving_covariances.py all.json

prints the constants of sim/serving/serving_error.cpp: for each figure the part of the
variance of ln(measured / predicted) that runs share by engine, by model and engine, by system and
engine, and by all three; what each has for itself; and the quantile of standardised errors of a
further run after some of its group were measured; and those of sim/serving/serving_error.cpp
that tell two deployments apart.
"""
import collections
import itertools
import json
import math
import os
import random
import re
import sys

FIGURES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "output_tokens_per_s": "throughput",
           "total_tokens_per_s": "throughput"}


def engine_of(case):
    """As the program takes it (sim/validation/serving_case.cpp)."""
    said = case["deployment"]
    version = said.get("engine_version", "")
    if version.startswith("2023"):
        return "huggingface-2023"
    if version.startswith("2024"):
        return said["engine"] + "-2024"
    older = re.match(r"0\.(\d+)", version)
    if said["engine"] == "vllm" and older and int(older.group(1)) < 14 and \
            not said.get("async_scheduling"):
        return "vllm-2025"
    if said["engine"] == "trtllm" and (older or re.match(r"1\.0($|\.)", version)):
        return "trtllm-2025"
    return said["engine"]


def read(path):
    """[(figure, engine, model, system, error)] of all comparisons of a figure."""
    rows = []
    for report in json.load(open(path))["files"]:
        cases = {case["id"]: case for case in json.load(open(report["file"]))}
        for one in report["cases"]:
            figure = FIGURES.get(one["quantity"])
            if not figure or not one["predicted"] or not one["measured"]:
                continue
            case = cases[one["id"]]
            rows.append((figure, engine_of(case), case["model"]["name"], case["system"],
                         math.log(one["measured"] / one["predicted"])))
    return rows


def shared(a, b):
    """Which of the four parts two runs share."""
    engine = a[0] == b[0]
    return (engine, engine and a[1] == b[1], engine and a[2] == b[2], a == b)


def components(groups):
    """Variances by engine, model, system, all three, own: from products of errors, each pair of
    groups counted once, each group once for its own."""
    sums = collections.defaultdict(lambda: [0.0, 0])
    names = list(groups)
    own = [0.0, 0]
    for i, one in enumerate(names):
        mean = sum(groups[one]) / len(groups[one])
        if len(groups[one]) > 1:
            within = sum((x - mean) ** 2 for x in groups[one]) / (len(groups[one]) - 1)
            own[0] += within
            own[1] += 1
            # E[mean^2] = shared + within / n
            sums[(True, True, True, True)][0] += mean * mean - within / len(groups[one])
            sums[(True, True, True, True)][1] += 1
        for other in names[i + 1:]:
            key = shared(one, other)
            if key[0]:
                sums[key][0] += mean * sum(groups[other]) / len(groups[other])
                sums[key][1] += 1
    def mean_of(key):
        return sums[key][0] / sums[key][1] if sums[key][1] else 0.0
    engine = max(0.0, mean_of((True, False, False, False)))
    model = max(0.0, mean_of((True, True, False, False)) - engine)
    system = max(0.0, mean_of((True, False, True, False)) - engine)
    group = max(0.0, mean_of((True, True, True, True)) - engine - model - system)
    return [engine, model, system, group, own[0] / max(1, own[1])]


def covariance(parts, a, b):
    return sum(v for v, is_shared in zip(parts, shared(a, b)) if is_shared)


def solve(matrix, right):
    """x of matrix x = right, by elimination."""
    n = len(right)
    rows = [list(row) + [r] for row, r in zip(matrix, right)]
    for i in range(n):
        pivot = rows[i][i]
        for k in range(i + 1, n):
            f = rows[k][i] / pivot
            for j in range(i, n + 1):
                rows[k][j] -= f * rows[i][j]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][j] * x[j] for j in range(i + 1, n))) / rows[i][i]
    return x


def after(parts, place, runs):
    """Mean and variance of a run's error after others, [(place, error)]."""
    c = [covariance(parts, place, other) for other, _ in runs]
    matrix = [[covariance(parts, a, b) + (parts[4] if i == k else 0.0)
               for k, (b, _) in enumerate(runs)] for i, (a, _) in enumerate(runs)]
    weights = solve(matrix, c)
    return (sum(w * x for w, (_, x) in zip(weights, runs)),
            sum(parts[:4]) + parts[4] - sum(w * v for w, v in zip(weights, c)))


def pairs(path):
    """What nine in ten pairs of TPOT of one model in one file differ by, beyond their predictions:
    of runs that differ in their deployment, on one system by one engine or not. Of larger groups
    4,000 pairs are drawn."""
    most = 4000
    groups = collections.defaultdict(list)
    for report in json.load(open(path))["files"]:
        cases = {case["id"]: case for case in json.load(open(report["file"]))}
        for one in report["cases"]:
            if one["quantity"] != "tpot_ms":
                continue
            case = cases[one["id"]]
            model = case["model"]
            experts = "experts" in model or "gpt-oss" in model["name"]
            groups[(report["file"], model["name"], experts)].append(
                (math.log(one["measured"] / one["predicted"]),
                 (case["system"], case["deployment"]["engine"]),
                 (case["system"], case["gpus"], json.dumps(case["deployment"], sort_keys=True))))
    for alike in (True, False):
        for with_experts in (False, True):
            apart = []
            for (_, _, experts), runs in groups.items():
                if experts != with_experts:
                    continue
                found = [abs(a[0] - b[0]) for a, b in itertools.combinations(runs, 2)
                         if (a[1] == b[1]) == alike and a[2] != b[2]]
                drawn = random.Random(0)
                apart += drawn.sample(found, most) if len(found) > most else found
            apart.sort()
            rank = min(len(apart), math.ceil(0.9 * (len(apart) + 1))) - 1
            print("pairs %s, %s: %d, %.3f" % (
                "of one system and engine" if alike else "of several",
                "experts" if with_experts else "dense", len(apart), apart[rank]))


def main():
    rows = read(sys.argv[1])
    pairs(sys.argv[1])
    random.seed(1)
    for figure in ("ttft", "tpot", "throughput"):
        groups = collections.defaultdict(list)
        for of, engine, model, system, error in rows:
            if of == figure:
                groups[(engine, model, system)].append(error)
        parts = components(groups)
        print(figure, "runs", sum(map(len, groups.values())), "groups", len(groups))
        print("  variances: engine %.4f model %.4f system %.4f all %.4f own %.4f" % tuple(parts))
        pool = [(place, x) for place, errors in groups.items() for x in errors]
        for own_runs in (1, 3, 10):
            scores, widths, before = [], [], []
            for place, errors in groups.items():
                if len(errors) <= own_runs:
                    continue
                for at in random.sample(range(len(errors)), min(20, len(errors))):
                    others = [i for i in range(len(errors)) if i != at]
                    runs = [(place, errors[i]) for i in random.sample(others, own_runs)]
                    mean, variance = after(parts, place, runs)
                    scores.append(abs(errors[at] - mean) / math.sqrt(variance))
                    widths.append(math.sqrt(variance))
                    before.append((abs(errors[at]), abs(errors[at] - mean)))
            scores.sort()
            rank = min(len(scores), math.ceil(0.9 * (len(scores) + 1))) - 1
            before_sorted = sorted(b for b, _ in before)
            after_sorted = sorted(a for _, a in before)
            print("  after %2d of its group: %4d runs, quantile %.2f, deviation %.3f, "
                  "median error %.3f -> %.3f, 90th %.3f -> %.3f" %
                  (own_runs, len(scores), scores[rank], sum(widths) / len(widths),
                   before_sorted[len(before) // 2], after_sorted[len(before) // 2],
                   before_sorted[rank], after_sorted[rank]))


if __name__ == "__main__":
    main()
