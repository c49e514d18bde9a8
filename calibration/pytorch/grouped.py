#!/usr/bin/env python3
"""grouped.py OUT.csv [--budget SECONDS]: all experts of a layer, as PyTorch users run them.

torch._grouped_mm (one kernel, "grouped") against a product an expert ("loop"), in bf16, with even
tokens: forward (tokens, n, k), dgrad (tokens, k, n) and wgrad (n, k, tokens) of each form. Weights
of several layers are used in turn, so that they come from memory as in a step.
record.py turns OUT.csv into a record that `orrery calibrate fit` takes.
"""

import itertools
import sys

from bench import Budget, Gpu, Rows, options, require_torch, summary

KEYS = ["gpu", "torch", "cuda", "cudnn", "backend", "pass", "dtype", "tokens", "experts", "n", "k"]
FIGURES = ["outcome", "median_us", "p10_us", "p90_us", "runs"]
WEIGHT_BYTES = 4 << 30  # Of all layers in turn, at most; a cache holds 50 MB.


def shapes():
    """(tokens, experts, n, k), tokens after top-k: fc1 and fc2 of Mixtral 8x7B, of DeepSeek-V2-Lite
    (64 experts of 1,408) and of DeepSeek-V3 and Qwen3 235B by expert parallelism."""
    forms = [(8, 28672, 4096), (8, 4096, 14336), (64, 2816, 2048), (64, 2048, 1408),
             (8, 4096, 7168), (8, 7168, 2048), (16, 3072, 4096), (16, 4096, 1536),
             (32, 4096, 7168), (128, 1536, 2048)]
    return [(tokens, *form) for tokens in (16384, 65536, 4096) for form in forms]


def products(torch, backend, which, tokens, experts, n, k):
    """A function without arguments that runs the pass once."""
    rows = tokens // experts
    ends = (torch.arange(experts, device="cuda", dtype=torch.int32) + 1) * rows
    x = torch.randn(tokens, k, device="cuda", dtype=torch.bfloat16)
    y = torch.randn(tokens, n, device="cuda", dtype=torch.bfloat16)
    copies = max(1, min(16, WEIGHT_BYTES // (2 * experts * n * k)))
    turn = itertools.cycle([] if which == "wgrad" else
                           [torch.randn(experts, n, k, device="cuda", dtype=torch.bfloat16) / k**0.5
                            for _ in range(copies)])
    if backend == "grouped":
        mm = torch._grouped_mm
        return {"forward": lambda: mm(x, next(turn).transpose(-2, -1), offs=ends),
                "dgrad": lambda: mm(y, next(turn), offs=ends),
                "wgrad": lambda: mm(y.t(), x, offs=ends)}[which]
    xs, ys = x.split(rows), y.split(rows)
    return {"forward": lambda: [torch.mm(a, b.t()) for a, b in zip(xs, next(turn))],
            "dgrad": lambda: [torch.mm(a, b) for a, b in zip(ys, next(turn))],
            "wgrad": lambda: [torch.mm(a.t(), b) for a, b in zip(ys, xs)]}[which]


def main():
    said = options(__doc__, 60).parse_args()
    torch = require_torch()
    gpu, budget, rows = Gpu(torch), Budget(said.budget), Rows(said.out, KEYS, FIGURES)
    for index, shape in enumerate(shapes()):
        for which, backend in itertools.product(("forward", "dgrad", "wgrad"), ("grouped", "loop")):
            key = [*gpu.facts(), backend, which, "bf16", *shape]
            if rows.has(key):
                continue
            if budget.up():
                print(f"{len(shapes()) - index} shapes left: start it again", file=sys.stderr)
                return
            try:
                times = gpu.times_us(products(torch, backend, which, *shape), 0.1)
                rows.add(key, ["measured", *summary(times), len(times)])
            except (RuntimeError, AttributeError, torch.OutOfMemoryError) as error:
                rows.skip([key], error)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
