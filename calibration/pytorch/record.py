#!/usr/bin/env python3
"""record.py ROWS.csv MACHINE.json -o OUT.json: what attention.py or grouped.py wrote as a record.

MACHINE.json is a record of orrery-gpu of the same machine: its GPU, driver and libraries are
taken over. Of several backends the fastest counts for each shape, as PyTorch chooses cuDNN or
FlashAttention by itself; windows and values of another width have no case and are counted.
`orrery calibrate fit MACHINE.json OUT.json` joins both.
"""

import argparse
import csv
import json
import sys


def digest(text):
    value = 0xCBF29CE484222325  # FNV-1a, as calibration/host/record.cpp has it.
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


ATTENTION = ("batch", "sequence", "heads", "kv_heads", "head_dim")
GROUPED = ("tokens", "experts", "n", "k")


def cases(rows):
    """Measurements by shape, the fastest backend's; and how many rows have no case."""
    best, left = {}, 0
    for row in rows:
        if row["outcome"] != "measured":
            continue
        sizes = GROUPED if "tokens" in row else ATTENTION
        if sizes is ATTENTION and (row["window"] != "0" or row["value_dim"] != row["head_dim"]):
            left += 1
            continue
        key = (row["pass"], *(int(row[name]) for name in sizes))
        if key not in best or float(row["median_us"]) < float(best[key]["median_us"]):
            best[key] = row
    return best, left


def measurement(key, row):
    median, p10, p90 = (float(row[name]) for name in ("median_us", "p10_us", "p90_us"))
    count = int(row["runs"])
    noise = (p90 - p10) / median / max(count, 1) ** 0.5  # About the median's own interval.
    if "tokens" in row:
        case = {"kind": "grouped_gemm", "pass": key[0], "dtype": "bf16",
                "tokens_by_expert": "even", **dict(zip(GROUPED, key[1:]))}
    else:
        case = {"kind": "attention", "pass": key[0], "dtype": "bf16",
                **dict(zip(ATTENTION, key[1:]))}
    return {**case, "outcome": "measured",
            "implementation": f"PyTorch {row['torch']}, {row['backend']} (cuDNN {row['cudnn']})",
            "warm": {"median_us": median, "p10_us": p10, "p90_us": p90,
                     "noise_ratio": round(noise, 6), "drift_ratio": 0, "samples": count},
            "stopped": "time", "reference_slowdown_ratio": 1}


def record(rows, machine_record):
    best, left = cases(rows)
    gpus = {row["gpu"] for row in best.values()}
    own = machine_record["machine"]["gpu"]
    if gpus - {own, own.removeprefix("NVIDIA ")}:
        sys.exit(f"the rows are of {', '.join(sorted(gpus))}, the machine of {own}")
    if not best:
        sys.exit("no row was measured")
    dump = lambda value: json.dumps(value)  # noqa: E731
    text = '{"schema": "orrery.calibration-record/1",\n'
    text += f'"machine": {dump(machine_record["machine"])},\n'
    text += f'"limits": {dump(machine_record["limits"])},\n'
    script = "grouped.py" if "tokens" in rows[0] else "attention.py"
    text += f'"command": "calibration/pytorch/{script}",\n'
    text += '"program": "calibration/pytorch/record.py",\n'
    text += f'"started": {dump(machine_record["started"])},\n"reference": [],\n'
    text += '"measurements": [\n '
    text += ",\n ".join(dump(measurement(key, best[key])) for key in sorted(best)) + "\n]"
    return text + f',\n"digest": "{digest(text)}"}}\n', left


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows")
    parser.add_argument("machine")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    with open(options.rows, newline="") as file:
        rows = list(csv.DictReader(file))
    with open(options.machine) as file:
        machine = json.load(file)
    text, left = record(rows, machine)
    with open(options.output, "w") as file:
        file.write(text)
    if left:
        print(f"{left} rows with windows or other widths of values: no case holds them")


if __name__ == "__main__":
    main()
