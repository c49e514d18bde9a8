#!/usr/bin/env python3
"""Fits the constants of Hybrid-EP's dispatch and combine to its authors' figures.

    calibration/hybrid_ep.py calibration/hybrid_ep.json \\
        --constants calibration/data/expert_exchange.json \\
        --cases tests/validation/moe/hybridep-readme.json

The figures are bandwidths: bytes that arrive at a GPU (one NVLink domain) or are sent to nodes
(several), the own ones included, over the kernel's time; DeepEP, tests/test_hybrid_ep.py. The
formula is that of expert_exchange.py. Messages of one size cannot tell a latency from a rate, so
that latencies are those of DeepEP's kernels on the same GPU. Replaces the fits of this dispatcher
among the constants, and writes the figures, as times, as validation cases.
"""

import argparse
import json
import math
import pathlib
import sys

from expert_exchange import GPUS, distinct, errors, fit, system_of

DISPATCHER = "hybridep"
LOCAL = REMOTE = ("scale_up_efficiency", "copy_gb_per_s")
LATENCIES = ("base_us", "network_hop_us")
INSIDE = "gb200"  # Whose figures are of one domain, and
BETWEEN = "h100-sxm"  # of several.


def rows_of(figures):
    """Each row as shape and times: gpu, ranks, nodes, multiprocessors, dispatch and combine."""
    tokens, hidden, top_k = (figures[key] for key in ("tokens", "hidden", "top_k"))
    for gpu, ranks, nodes, multiprocessors, dispatch, combine in figures["rows"]:
        parts = ranks if nodes == 1 else nodes
        kilobytes = tokens * distinct(parts, figures["experts_per_rank"] * ranks,
                                      top_k) * 2 * hidden / 1e3
        yield gpu, ranks, nodes, multiprocessors, kilobytes / dispatch, kilobytes / combine


def samples(figures, gpu, step):
    """As expert_exchange.samples(), of copies in 16 bits. A dispatched copy also has a weight of 4
    bytes for each expert of the domain (Hybrid-EP_Implementation.md, prob_buffer)."""
    names = {known: system for known, system, _ in GPUS.values()}
    scale_up, nic, _ = system_of(names[gpu])
    tokens, hidden, k = (figures[key] for key in ("tokens", "hidden", "top_k"))
    found = []
    for of, n, nodes, sms, dispatch, combine in rows_of(figures):
        if of != gpu:
            continue
        experts, node = figures["experts_per_rank"] * n, n // nodes
        kilobytes = (2 * hidden + (4 * experts / nodes if step == "dispatch" else 0)) / 1e3
        ranks = distinct(n, experts, k)
        port = tokens * ranks * (node - 1) / node
        network = tokens * distinct(nodes, experts, k) * (nodes - 1) / nodes
        found.append((port * kilobytes / scale_up, network * kilobytes / nic,
                      tokens * ranks * kilobytes / sms, tokens * ranks / sms,
                      tokens * kilobytes / sms, experts / 128, kilobytes,
                      1.0 if nodes > 1 else 0.0, math.log2(nodes),
                      math.log(dispatch if step == "dispatch" else combine)))
    return found


def latencies(fits, gpu, step):
    """Of DeepEP's normal kernel, as far as it is measured between domains."""
    entry = next(e for e in fits
                 if e["dispatcher"] == "deepep" and e["gpu"] == gpu and e["step"] == step)
    both = {**entry["local"], **entry.get("remote", {})}
    return {name: both[name] for name in LATENCIES if name in both}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--constants", required=True, type=pathlib.Path)
    parser.add_argument("--cases", required=True, type=pathlib.Path)
    parser.add_argument("figures", type=pathlib.Path)
    arguments = parser.parse_args()
    figures = json.loads(arguments.figures.read_text())
    constants = json.loads(arguments.constants.read_text())
    fits = [e for e in constants["fits"] if e["dispatcher"] != DISPATCHER]
    for gpu, place, names in ((INSIDE, "local", LOCAL), (BETWEEN, "remote", REMOTE)):
        for step in ("dispatch", "combine"):
            known = latencies(fits, gpu, step)
            rows = samples(figures, gpu, step)
            found = {**known, **fit(rows, names, known)}
            print(f"{gpu} {step}: {100 * errors(found, rows):.1f} %")
            fits.append({"dispatcher": DISPATCHER, "gpu": gpu, "step": step, place: found})
    write_constants(arguments.constants, constants, fits)
    write_cases(arguments.cases, figures)


def write_constants(path, constants, fits):
    """All but the fits stays as it is, byte by byte."""
    head = path.read_text().split('"fits"')[0]
    lines = ",\n    ".join(json.dumps(entry) for entry in fits)
    path.write_text(head + '"fits": [\n    ' + lines + "\n  ]\n}\n")


def write_cases(path, figures):
    names = {known: system for known, system, _ in GPUS.values()}
    node_of = {known: node for known, _, node in GPUS.values()}
    cases = {}
    for gpu, ranks, nodes, sms, dispatch, combine in rows_of(figures):
        head = {"id": f"{gpu} hybridep {nodes}x{ranks // nodes}", "source": figures["source"],
                "system": names[gpu], "dispatcher": DISPATCHER, "ranks": ranks,
                "nodes": nodes if nodes > 1 else -(-ranks // node_of[gpu]),
                "hidden": figures["hidden"], "top_k": figures["top_k"],
                "experts": figures["experts_per_rank"] * ranks, "dispatched": "bf16",
                "columns": ["multiprocessors", "tokens", "dispatch_us", "combine_us"]}
        cases.setdefault((gpu, ranks), (head, []))[1].append(
            [sms, figures["tokens"], round(dispatch, 2), round(combine, 2)])
    written = [json.dumps(head)[:-1] + ',\n   "rows": [\n    ' +
               ",\n    ".join(json.dumps(row) for row in rows) + "]}"
               for head, rows in cases.values()]
    path.write_text("[\n  " + ",\n  ".join(written) + "\n]\n")


if __name__ == "__main__":
    sys.exit(main())
