#!/usr/bin/env python3
"""Collects SimuMax's measured grouped GEMMs into tests/validation/grouped_gemm.json.

    calibration/convert_grouped_gemm.py --output tests/validation/grouped_gemm.json shapes.json

SimuMax (github.com/MooreThreads/SimuMax) lists measured efficiencies by shape in
configs/system/*.json under accelerator.op.group_matmul. The input is a JSON list of such entries:
source {repo, path, commit}, gpu, op, shape {ng, M, N, K, stage, main_grad_dtype}, efficiency,
peak_tflops. A time is 2 ng M N K / (efficiency x peak).
"""

import argparse
import json

GPUS = {"B200-SXM": "b200-sxm", "A100-PCIe-80GB": "a100-pcie-80gb"}
PASSES = {"fwd": "forward", "bwd_grad_act": "dgrad", "bwd_grad_w": "wgrad"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("shapes")
    arguments = parser.parse_args()
    tables = {}
    for entry in json.load(open(arguments.shapes)):
        if entry.get("op") != "group_matmul":
            continue
        shape, source = entry["shape"], entry["source"]
        flop = 2 * shape["ng"] * shape["M"] * shape["N"] * shape["K"]
        time_us = flop / (entry["efficiency"] * entry["peak_tflops"] * 1e6)
        key = (GPUS[entry["gpu"]], f"{source['repo']}, {source['path']}, commit {source['commit']}")
        tables.setdefault(key, []).append(
            [PASSES[shape["stage"]], shape["main_grad_dtype"], shape["ng"], shape["M"], shape["N"],
             shape["K"], round(time_us, 1)])
    with open(arguments.output, "w") as out:
        out.write('[\n')
        written = []
        for (gpu, source), rows in sorted(tables.items()):
            head = {"gpu": gpu, "source": f"SimuMax operator measurements: {source}",
                    "columns": ["pass", "main_gradient", "experts", "tokens_each", "out", "in",
                                "time_us"]}
            lines = ",\n    ".join(json.dumps(row) for row in sorted(rows))
            written.append("  " + json.dumps(head)[:-1] + ',\n   "rows": [\n    ' + lines + "]}")
        out.write(",\n".join(written) + "\n]\n")


if __name__ == "__main__":
    main()
