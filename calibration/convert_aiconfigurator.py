#!/usr/bin/env python3
"""Turns measured tables of NVIDIA's aiconfigurator into one calibration/data/kernels/<gpu>.json.

    calibration/convert_aiconfigurator.py --gpu h100-sxm \\
        --output calibration/data/kernels/h100-sxm.json \\
        gemm-bfloat16.json gemm-fp8.json attention.json

aiconfigurator (github.com/ai-dynamo/aiconfigurator, Apache-2.0) keeps its measurements as parquet
files under systems/data/<gpu>/{gemm,attention}. An input of this script is one such file for one
number format, exported as a JSON object:

    source   {title, repo, path, commit}
    op       "gemm", or anything with "attention" in it
    dtype    "bfloat16", "fp8" or "nvfp4"
    columns  gemm: m, n, k, time_us; attention: batch, seq, heads, kv_heads, head_dim, time_us
             (further columns are dropped)
    rows     one list a measurement

What the tables cannot say (peaks, and how training differs from a benchmark) is read from
kernel_facts.json beside this script. The formulas' constants are fitted to the rows; the script
prints the errors of predicting each row from the others. docs/explanation/kernels.md explains both.
"""

import argparse
import json
import pathlib
import sys

import kernel_fit

DTYPES = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "nvfp4"}
PEAKS = {"bf16": "peak_16bit", "fp8": "peak_fp8", "nvfp4": "peak_fp4"}
# Bytes of an operand's element, nvfp4's with its scales. TensorRT-LLM's rows of narrow formats hold
# the cast of the activation.
ELEMENTS = {"bf16": 2.0, "fp8": 1.0, "nvfp4": 0.5625}
LEAST = 256  # Rows of training, not of decoding
FITTED = "fitted to the rows below by calibration/convert_aiconfigurator.py"


def amount(text):
    """"989 TFLOP/s" -> 989.0"""
    return float(text.split()[0])


def select(table, names, path):
    missing = [name for name in names if name not in table["columns"]]
    if missing:
        sys.exit(f"{path}: the columns {', '.join(missing)} are missing")
    places = [table["columns"].index(name) for name in names]
    return sorted(tuple(row[i] for i in places) for row in table["rows"])


def source_of(table):
    source = table["source"]
    return f"{source['title']}: {source['repo']}, {source['path']}, commit {source['commit']}"


def rounded(value):
    return float(f"{value:.4g}")


def with_units(constants):
    times = {"overhead", "tile_overhead", "cast_overhead"}
    return {name: f"{rounded(v)} us" if name in times else rounded(v)
            for name, v in constants.items()}


def left_out(errors):
    """Four digits say more than a few per cent need."""
    return {key: value if key == "count" else round(value, 4) + 0.0
            for key, value in kernel_fit.summary(errors).items()}


def report(label, errors, base_errors):
    def text(some):
        found = kernel_fit.summary(some)
        return f"{100 * found['median_error']:5.2f} / {100 * found['p90_error']:5.2f} %"

    print(f"{label:28} rows {len(errors):5}  formula {text(base_errors)}"
          f"  each from the others {text(errors)}", flush=True)


def fit(label, model):
    constants = {name: rounded(v) for name, v in model.fit().items()}
    base = [t / row[-1] - 1 for t, row in zip(model.predict(constants), model.rows)]
    errors = kernel_fit.leave_one_out(model, constants)
    report(label, errors, base)
    return constants, base, errors


def gemm_table(table, path, facts, gpu):
    rows = [row for row in select(table, ["m", "n", "k", "time_us"], path)
            if row[0] >= LEAST and min(row[1:3]) >= 512]
    dtype = DTYPES[table["dtype"]]
    reference = facts["reference"]
    peak = amount(reference[PEAKS[dtype]])
    model = kernel_fit.Gemm(rows, {"peak": peak * 1e6,
                                   "bandwidth": amount(reference["memory_bandwidth"]) * 1e3,
                                   "multiprocessors": reference["multiprocessors"]},
                            ELEMENTS[dtype], dtype != "bf16")
    constants, base, errors = fit(f"{gpu} gemm {dtype}", model)
    large = [i for i, (m, n, k, _) in enumerate(rows) if m * n * k >= 2**33]
    report("  of these m*n*k >= 2^33", [errors[i] for i in large], [base[i] for i in large])
    return {"dtype": dtype, "source": source_of(table),
            "base": {"source": FITTED, **with_units(constants)}, "left_out": left_out(errors),
            "columns": ["m", "n", "k", "time_us"], "rows": rows}


def attention_table(table, path, facts, gpu):
    rows = select(table, ["batch", "seq", "heads", "kv_heads", "head_dim", "time_us"], path)
    reference = facts["reference"]
    bases = []
    for head_dim in sorted({row[4] for row in rows}):
        model = kernel_fit.Attention(
            [row[:4] + row[5:] for row in rows if row[4] == head_dim],
            {"peak": amount(reference["peak_16bit"]) * 1e6,
             "bandwidth": amount(reference["memory_bandwidth"]) * 1e3,
             "multiprocessors": reference["multiprocessors"]}, head_dim)
        constants, _, errors = fit(f"{gpu} attention {head_dim}", model)
        bases.append({"head_dim": head_dim, "source": FITTED, **with_units(constants),
                      "left_out": left_out(errors)})
    return {"source": source_of(table), "bases": bases,
            "columns": ["batch", "sequence", "heads", "kv_heads", "head_dim", "time_us"],
            "rows": rows}


def write(path, result):
    """JSON with one measured row a line, so that a change of data reads as one in a diff."""
    lifted = {}

    def lift(key, value):
        if key in ("rows", "columns"):
            lifted[mark := f"@{len(lifted)}@"] = (key, value)
            return mark
        if isinstance(value, dict):
            return {k: lift(k, v) for k, v in value.items()}
        return [lift("", v) for v in value] if isinstance(value, list) else value

    text = json.dumps(lift("", result), indent=1)
    for mark, (key, value) in lifted.items():
        lines = (json.dumps(list(row), separators=(",", ":")) for row in value)
        plain = json.dumps(value) if key == "columns" else "[\n" + ",\n".join(lines) + "\n]"
        text = text.replace(f'"{mark}"', plain)
    path.write_text(text + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", type=pathlib.Path)
    parser.add_argument("--gpu", required=True, help="catalog name, as in topologies/gpus")
    parser.add_argument("--output", required=True, type=pathlib.Path)
    args = parser.parse_args()

    all_facts = json.loads((pathlib.Path(__file__).parent / "kernel_facts.json").read_text())
    if args.gpu not in all_facts["gpus"]:
        sys.exit(f"kernel_facts.json says nothing about '{args.gpu}': add its reference figures")
    facts = all_facts["gpus"][args.gpu]
    result = {"schema": "orrery.kernels/1", "gpu": args.gpu, **facts, "gemm": []}
    for path in args.tables:
        table = json.loads(path.read_text())
        if table["op"] == "gemm":
            result["gemm"].append(gemm_table(table, path, facts, args.gpu))
        else:
            result["attention_forward"] = attention_table(table, path, facts, args.gpu)
    write(args.output, result)


if __name__ == "__main__":
    main()
