#!/usr/bin/env python3
"""attention.py OUT.csv [--budget SECONDS]: fused attention as PyTorch users run it.

scaled_dot_product_attention, forward and backward, by cuDNN and by FlashAttention 2, in bf16:
query heads 8 to 64, groups of 1 to 8, heads of 64, 128 and 192 (values of 128 there, as in
latent attention), 1,024 to 131,072 tokens, causal; windows by the flash_attn package where it is
installed. Rows are written one by one: kill it when you like, and start it again to go on.
record.py turns OUT.csv into a record that `orrery calibrate fit` takes.
"""

import sys

from bench import Budget, Gpu, Rows, options, require_torch, summary

KEYS = ["gpu", "torch", "cuda", "cudnn", "backend", "pass", "dtype", "batch", "sequence", "heads",
        "kv_heads", "head_dim", "value_dim", "window"]
FIGURES = ["outcome", "median_us", "p10_us", "p90_us", "runs"]
WINDOW = 1024


def shapes():
    """(batch, sequence, heads, kv_heads, head_dim, value_dim, window), what matters most first:
    32,768 tokens in all, less for short sequences, more for long ones."""
    common = [(32, 8, 128, 128), (64, 8, 128, 128)]
    wide = [(8, 1, 128, 128), (16, 16, 64, 64), (32, 32, 128, 128), (64, 8, 64, 64),
            (16, 16, 192, 128)]
    out = []
    for forms in (common, wide):
        for sequence in (4096, 8192, 2048, 16384, 32768, 1024, 65536, 131072):
            batch = 4 if sequence == 1024 else 1
            out += [(batch, sequence, *form, 0) for form in forms]
    out += [(1, sequence, 64, 8, 64, 64, WINDOW) for sequence in (4096, 16384, 65536)]
    return out


def backends(torch, window):
    """Names, and a function of q, k, v, each in PyTorch's [batch, heads, sequence, dim]."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    def by(backend):
        def run(q, k, v):
            with sdpa_kernel([backend]):
                return scaled_dot_product_attention(
                    q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return run

    if not window:
        return {"cudnn": by(SDPBackend.CUDNN_ATTENTION), "flash2": by(SDPBackend.FLASH_ATTENTION)}
    try:
        from flash_attn import flash_attn_func
    except ImportError:
        return {}

    def windowed(q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return flash_attn_func(q, k, v, causal=True, window_size=(window, 0)).transpose(1, 2)
    return {"flash_attn": windowed}


def measure(torch, gpu, rows, shape, name, attention, seconds):
    batch, sequence, heads, kv_heads, head_dim, value_dim, window = shape
    key = lambda which: [*gpu.facts(), name, which, "bf16", *shape]  # noqa: E731
    if rows.has(key("forward")) and rows.has(key("backward")):
        return
    def random(count, dim):
        return torch.randn(batch, count, sequence, dim, device="cuda", dtype=torch.bfloat16,
                           requires_grad=True)
    try:
        q, k, v = random(heads, head_dim), random(kv_heads, head_dim), random(kv_heads, value_dim)
        with torch.no_grad():
            times = gpu.times_us(lambda: attention(q, k, v), seconds)
        rows.add(key("forward"), ["measured", *summary(times), len(times)])
        out = attention(q, k, v)
        grad = torch.randn_like(out)
        times = gpu.times_us(
            lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True), seconds)
        rows.add(key("backward"), ["measured", *summary(times), len(times)])
    except (RuntimeError, torch.OutOfMemoryError) as error:
        rows.skip([key("forward"), key("backward")], error)
    finally:
        torch.cuda.empty_cache()


def main():
    parser = options(__doc__, 270)
    parser.add_argument("--list", action="store_true", help="print the shapes and end")
    said = parser.parse_args()
    if said.list:
        for shape in shapes():
            print(*shape, sep=",")
        return
    torch = require_torch()
    gpu, budget = Gpu(torch), Budget(said.budget)
    rows = Rows(said.out, KEYS, FIGURES)
    for index, shape in enumerate(shapes()):
        for name, attention in backends(torch, shape[-1]).items():
            if budget.up():
                print(f"{len(shapes()) - index} shapes left: start it again", file=sys.stderr)
                return
            measure(torch, gpu, rows, shape, name, attention, min(0.15, budget.left()))


if __name__ == "__main__":
    main()
