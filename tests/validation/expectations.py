#!/usr/bin/env python3
"""What error to expect, by what is known of a run: the two tables of docs/explanation/accuracy.md.

    expectations.py training|serving REPORT

REPORT is what `orrery validate --json FILE...` printed, run in the root of the project. Each
publication has one vote in a row, which its cases in that row share. The median error is the least
|predicted / measured - 1| that holds half of the votes.
"""
import json
import sys

HEADING = """\
| what is predicted | publications | cases | signed mean | median error | nine in ten within |
|---|---:|---:|---:|---:|---:|"""


def experts(case):
    model = case["model"]
    if isinstance(model, str) or len(model) <= 2:  # A model of the catalog, with changes.
        name = model if isinstance(model, str) else model["name"]
        with open(f"workloads/models/{name}.json", encoding="utf-8") as file:
            model = json.load(file)
    return bool(model.get("experts"))


def sixteen_bits(case):
    return case["plan"].get("dtype", "bf16") in ("bf16", "fp16")


def described(case):
    return not case["plan"].get("software_stands_in", False)


def mixers(case):
    return "/hybrid.json" in case["file"] or "nemotron-3" in case["id"]


def adapters(case):
    return case["plan"].get("finetune", "full") != "full"


def step(row):
    return row["quantity"] == "step_time_s"


TRAINING = [
    ("all steps whose software has a file", lambda c, r: step(r) and described(c)),
    ("dense models in 16 bits",
     lambda c, r: step(r) and described(c) and not experts(c) and sixteen_bits(c)),
    ("dense models in 8 or 4 bits",
     lambda c, r: step(r) and described(c) and not experts(c) and not sixteen_bits(c)),
    ("models with experts",
     lambda c, r: step(r) and described(c) and experts(c) and not mixers(c)),
    ("models with layers of several kinds (Nemotron 3)",
     lambda c, r: step(r) and described(c) and mixers(c)),
    ("LoRA and QLoRA adapters on frozen base weights",
     lambda c, r: step(r) and described(c) and adapters(c)),
    ("on 1 to 64 GPUs", lambda c, r: step(r) and described(c) and c["gpus"] <= 64),
    ("on 65 to 1,023 GPUs", lambda c, r: step(r) and described(c) and 64 < c["gpus"] < 1024),
    ("on 1,024 GPUs and more", lambda c, r: step(r) and described(c) and c["gpus"] >= 1024),
    ("steps below a second", lambda c, r: step(r) and described(c) and r["measured"] < 1),
    ("another software stands in", lambda c, r: step(r) and not described(c)),
    ("peak memory", lambda c, r: r["quantity"] == "peak_memory_bytes" and described(c)),
]


def offline(case):
    return case["workload"].get("arrival") == "burst"


def quantity_of(*names):
    return lambda case, row: row["quantity"] in names


def quantity(*names):
    return lambda row: row["quantity"] in names


TPOT = quantity("tpot_ms", "tpot_p50_ms", "decode_step_ms")
TTFT = quantity("ttft_ms", "ttft_p50_ms", "prefill_time_ms")
RATE = quantity("output_tokens_per_s", "total_tokens_per_s", "output_tokens_per_s_per_gpu",
                "total_tokens_per_s_per_gpu")
SERVING = [
    ("time a token (TPOT), dense models", lambda c, r: TPOT(r) and not experts(c)),
    ("time a token (TPOT), models with experts", lambda c, r: TPOT(r) and experts(c)),
    ("time to the first token (TTFT)", lambda c, r: TTFT(r)),
    ("throughput of a server", lambda c, r: RATE(r) and not offline(c)),
    ("offline throughput, dense models", lambda c, r: RATE(r) and offline(c) and not experts(c)),
    ("offline throughput, models with experts", lambda c, r: RATE(r) and offline(c) and experts(c)),
    ("tokens that the KV cache holds", quantity_of("kv_cache_tokens")),
]


def line(name, errors):
    """errors: of each publication, those of its cases."""
    votes = sorted((abs(e), 1 / len(errors) / len(own)) for own in errors.values() for e in own)
    signed = sum(sum(own) / len(own) for own in errors.values()) / len(errors)

    def within(share):
        held = 0.0
        for error, vote in votes:
            held += vote
            if held >= share - 1e-9:
                break
        return error

    cases = sum(len(own) for own in errors.values())
    return (f"| {name} | {len(errors)} | {cases:,} | {100 * signed:+.1f} % |"
            f" {100 * within(0.5):.1f} % | {100 * within(0.9):.0f} % |")


def main(what, report):
    with open(report, encoding="utf-8") as file:
        files = json.load(file)["files"]
    rows = []
    for of_file in files:
        with open(of_file["file"], encoding="utf-8") as file:
            cases = json.load(file)
        by_id = {case["id"]: {**case, "file": of_file["file"]}
                 for case in (cases if isinstance(cases, list) else cases["cases"])}
        rows += [(by_id[row["id"]], row) for row in of_file["cases"]]
    print(HEADING)
    for name, counts in {"training": TRAINING, "serving": SERVING}[what]:
        errors = {}
        for case, row in rows:
            if counts(case, row):
                errors.setdefault(case["source"]["title"], []).append(row["error"])
        if errors:
            print(line(name, errors))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("training", "serving"):
        sys.exit(__doc__)
    main(*sys.argv[1:])
