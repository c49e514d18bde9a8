#!/usr/bin/env python3
"""optimizer.py OUT.csv [--budget SECONDS]: Adam on the GPU and on the host, and the copies between.

`gpu` rows: PyTorch's fused and foreach Adam over fp32 parameters, in few and in many tensors; with
a copy of the parameters to bf16 behind ("+ copy"). `host` rows: the same by the host's fused Adam,
its threads as PyTorch sets them. `copy` rows: pinned memory to the GPU and back, alone and beside
products, with what the products lose. Bytes are those of parameters and states read and written.
"""

import sys
import time

from bench import Budget, Gpu, Rows, options, quantile, require_torch, summary
from launches import cpu_name

KEYS = ["gpu", "torch", "cuda", "cudnn", "cpu", "where", "what", "parameters", "tensors"]
FIGURES = ["outcome", "median_us", "p10_us", "p90_us", "runs", "gb_per_s", "beside_slowdown"]
ADAM_BYTES = 4 * 4 + 3 * 4  # Parameter, gradient, two moments read; all but the gradient written.


def adam_of(torch, device, parameters, tensors, choice):
    each = parameters // tensors
    weights = [torch.randn(each, device=device).requires_grad_() for _ in range(tensors)]
    for weight in weights:
        weight.grad = torch.randn_like(weight) * 1e-3
    return weights, torch.optim.AdamW(weights, lr=1e-4, weight_decay=0.1, **choice)


def on_gpu(torch, gpu, rows, key):
    for parameters, tensors, name, choice, copies in [
            (10**9, 4, "fused", {"fused": True}, False),
            (10**9, 400, "fused", {"fused": True}, False),
            (10**9, 400, "fused + copy", {"fused": True}, True),
            (10**9, 400, "foreach", {"foreach": True}, False),
            (10**7, 400, "fused", {"fused": True}, False)]:
        if rows.has(key("gpu", name, parameters, tensors)):
            continue
        weights, adam = adam_of(torch, "cuda", parameters, tensors, choice)
        low = [weight.detach().to(torch.bfloat16) for weight in weights]

        def step():
            adam.step()
            if copies:
                torch._foreach_copy_(low, [weight.detach() for weight in weights])
        times = gpu.times_us(step, 0.4, least=3)
        moved = parameters * (ADAM_BYTES + (6 if copies else 0))
        rows.add(key("gpu", name, parameters, tensors),
                 ["measured", *summary(times), len(times),
                  round(moved / quantile(times, 0.5) / 1e3, 3), ""])
        weights = adam = low = None
        torch.cuda.empty_cache()


def on_host(torch, rows, key, parameters=1 << 28):
    name = f"fused, {torch.get_num_threads()} threads"
    if rows.has(key("host", name, parameters, 4)):
        return
    _, adam = adam_of(torch, "cpu", parameters, 4, {"fused": True})
    adam.step()
    times = []
    for _ in range(3):
        began = time.perf_counter()
        adam.step()
        times.append(1e6 * (time.perf_counter() - began))
    rows.add(key("host", name, parameters, 4),
             ["measured", *summary(times), len(times),
              round(parameters * ADAM_BYTES / quantile(times, 0.5) / 1e3, 3), ""])


def copies(torch, rows, key, count=1 << 29):
    host = torch.empty(count, dtype=torch.bfloat16, pin_memory=True)
    there = torch.randn(count, device="cuda", dtype=torch.bfloat16)
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    stream = torch.cuda.Stream()

    def products(many):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(many):
            torch.matmul(a, b, out=out)
        end.record()
        return begin, end

    def copy_us(what, runs):
        times = []
        with torch.cuda.stream(stream):
            for _ in range(runs):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                if what == "to the GPU":
                    there.copy_(host, non_blocking=True)
                else:
                    host.copy_(there, non_blocking=True)
                end.record()
                times.append((begin, end))
        return times

    products(5)
    torch.cuda.synchronize()
    begin, end = products(100)
    torch.cuda.synchronize()
    alone_ms = begin.elapsed_time(end)
    for what in ("to the GPU", "to the host"):
        copy_us(what, 2)
        torch.cuda.synchronize()
        for beside in (False, True):
            name = what + (", beside products" if beside else "")
            if rows.has(key("copy", name, count, 1)):
                continue
            events = copy_us(what, 6)
            slowed = ""
            if beside:
                begin, end = products(100)
            torch.cuda.synchronize()
            if beside:
                slowed = round(begin.elapsed_time(end) / alone_ms, 4)
            times = [1e3 * one.elapsed_time(two) for one, two in events]
            rows.add(key("copy", name, count, 1),
                     ["measured", *summary(times), len(times),
                      round(2 * count / quantile(times, 0.5) / 1e3, 3), slowed])


def main():
    said = options(__doc__, 40).parse_args()
    torch = require_torch()
    gpu, budget, rows = Gpu(torch), Budget(said.budget), Rows(said.out, KEYS, FIGURES)
    cpu = cpu_name()

    def key(*which):
        return [*gpu.facts(), cpu, *which]
    for part in (lambda: on_gpu(torch, gpu, rows, key), lambda: copies(torch, rows, key),
                 lambda: on_host(torch, rows, key)):
        if budget.up():
            print("not all was measured: start it again", file=sys.stderr)
            return
        try:
            part()
        except RuntimeError as error:
            print(str(error).splitlines()[0][:200], file=sys.stderr)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
