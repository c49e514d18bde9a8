#!/usr/bin/env python3
"""packed.py OUT.csv [--budget SECONDS]: attention over documents packed into one sequence.

32,768 tokens of one document, of equal ones, and of ones whose lengths follow a log-normal law, in
bf16, causal within a document: variable-length FlashAttention 2 as PyTorch brings it. (cuDNN's
takes tens of milliseconds a call there, as PyTorch has its plan made anew each time.) `pairs` are
the query-key pairs that are not masked, in which attention's work is counted.
"""

import statistics
import sys

from bench import Budget, Gpu, Rows, options, require_torch, summary

KEYS = ["gpu", "torch", "cuda", "cudnn", "backend", "pass", "heads", "kv_heads", "head_dim",
        "tokens", "documents", "law", "longest", "pairs"]
FIGURES = ["outcome", "median_us", "p10_us", "p90_us", "runs"]
TOKENS = 32768
FORMS = [(32, 8, 128), (16, 16, 128)]


def lognormal(documents, sigma, tokens=TOKENS):
    """Lengths at the middles of equal shares of the law, scaled to `tokens` in all."""
    law = statistics.NormalDist(0.0, sigma)
    drawn = [2.718281828459045 ** law.inv_cdf((i + 0.5) / documents) for i in range(documents)]
    lengths = [max(1, int(x * tokens / sum(drawn))) for x in drawn]
    lengths[-1] += tokens - sum(lengths)
    return lengths[1::2] + lengths[::2]  # Short and long ones mixed.


def packs():
    """(law, lengths)"""
    return [("one", [TOKENS]), ("equal", [2048] * 16), ("lognormal 1", lognormal(16, 1.0)),
            ("lognormal 1.5", lognormal(16, 1.5)), ("lognormal 1", lognormal(64, 1.0)),
            ("equal", [512] * 64)]


def pairs(lengths):
    return sum(x * (x + 1) // 2 for x in lengths)


def attention(torch, q, k, v, ends, longest):
    """Of q, k, v [tokens, heads, dim], each document's end and the longest one."""
    return torch.ops.aten._flash_attention_forward(
        q, k, v, ends, ends, longest, longest, 0.0, True, False)[0]


def main():
    said = options(__doc__, 40).parse_args()
    torch = require_torch()
    gpu, budget, rows = Gpu(torch), Budget(said.budget), Rows(said.out, KEYS, FIGURES)
    for form in FORMS:
        for law, lengths in packs():
            key = lambda which: [*gpu.facts(), "flash2", which, *form, TOKENS,  # noqa: E731
                                 len(lengths), law, max(lengths), pairs(lengths)]
            if all(rows.has(key(which)) for which in ("forward", "backward")):
                continue
            if budget.up():
                print("not all was measured: start it again", file=sys.stderr)
                return
            try:
                measure(torch, gpu, rows, key, form, lengths)
            except (RuntimeError, AttributeError) as error:  # What this PyTorch does not have.
                reason = rows.skip([key("forward"), key("backward")], error)
                print(law, reason, file=sys.stderr)
            torch.cuda.empty_cache()


def measure(torch, gpu, rows, key, form, lengths):
    heads, kv_heads, dim = form
    q, k, v = (torch.randn(TOKENS, count, dim, device="cuda", dtype=torch.bfloat16,
                           requires_grad=True) for count in (heads, kv_heads, kv_heads))
    ends = torch.tensor([0, *lengths], device="cuda").cumsum(0).to(torch.int32)
    with torch.no_grad():
        times = gpu.times_us(lambda: attention(torch, q, k, v, ends, max(lengths)), 0.15)
    rows.add(key("forward"), ["measured", *summary(times), len(times)])
    out = attention(torch, q, k, v, ends, max(lengths))
    grad = torch.randn_like(out)
    times = gpu.times_us(
        lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True), 0.15)
    rows.add(key("backward"), ["measured", *summary(times), len(times)])


if __name__ == "__main__":
    main()
