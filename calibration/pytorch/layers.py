#!/usr/bin/env python3
"""layers.py OUT.csv [--budget SECONDS]: what the ways of training do to one dense layer.

A decoder layer (RMS norms, grouped attention by scaled_dot_product_attention, SwiGLU), forward and
backward, several in a row; in bf16 and with products in fp8 (torch._scaled_mm, scales by tensor or
by row, casts launched one by one); with weight gradients written in bf16 ("bf16"), added to fp32 by
the product itself ("fused", as Megatron-LM does), added by a kernel of its own ("added"), or none
because weights are frozen ("none"); with full recomputation; with adapters of rank 16 (LoRA) on all
products and the frozen weights in bf16 or fp8. Eager, or replayed as a CUDA graph:
  first_us      a layer's time just after a pause, before the power limit lowers the clock
  step_us       the same after seconds without pause
  host_us       the host's time a layer, by so few tokens that the GPU waits for it
  busy_us, launches, products_us, attention_us, other_us    as host.py has them
  kept_mib      what the forward pass keeps for the backward pass, a layer
  clock_mhz, power_w    nvidia-smi's last readings in the seconds without pause
`parts` rows keep one kind of kernel running for seconds, for its clock and power.
"""

import sys
import time

from bench import Budget, Gpu, Rows, options, quantile, require_torch
from clock import Smi
from host import graph_of, host_us, kernels, step_us

import host

KEYS = ["gpu", "torch", "cuda", "cudnn", "precision", "gradients", "recompute", "adapters", "mode",
        "hidden", "ffn", "heads", "kv_heads", "tokens"]
FIGURES = ["outcome", "first_us", "step_us", "host_us", "busy_us", "launches", "products_us",
           "attention_us", "other_us", "kept_mib", "clock_mhz", "power_w"]
RANK = 16
STEADY_S = 1.6
SIZES = [(4096, 14336, 32, 8, 4096), (8192, 28672, 64, 8, 4096)]
PLAN = [(SIZES[0], "graph"), (SIZES[0], "eager"), (SIZES[1], "graph")]
# (precision, gradients, recompute, adapters)
WAYS = [("bf16", "bf16", "none", 0), ("bf16", "fused", "none", 0), ("bf16", "added", "none", 0),
        ("fp8 tensor", "added", "none", 0), ("fp8 row", "added", "none", 0),
        ("bf16", "fused", "full", 0), ("bf16", "none", "none", 0),
        ("bf16", "none", "none", RANK), ("fp8 weights", "none", "none", RANK)]
E4M3_MOST = 448.0


def cast(torch, x, by_row):
    """x in fp8 and what a value of it stands for: a scale for the tensor, or one a row."""
    most = x.abs().amax(dim=-1, keepdim=True) if by_row else x.abs().amax()
    scale = most.float().clamp(min=1e-12) / E4M3_MOST
    return (x / scale.to(x.dtype)).to(torch.float8_e4m3fn), scale


def product(torch, a, b, precision):
    """a [m, k] b[n, k]^T in bf16, its inputs cast where the precision says so."""
    if not precision.startswith("fp8") or precision == "fp8 weights":
        return torch.mm(a, b.t())
    by_row = precision == "fp8 row"
    a8, a_scale = cast(torch, a, by_row)
    b8, b_scale = cast(torch, b, by_row)
    if by_row:
        b_scale = b_scale.t()
    return torch._scaled_mm(a8.contiguous(), b8.contiguous().t(), scale_a=a_scale,
                            scale_b=b_scale, out_dtype=torch.bfloat16, use_fast_accum=True)


def linear_of(torch, precision, gradients):
    """y = x w^T whose backward pass does with the weight's gradient what `gradients` says."""

    def weight_of(w):
        return w.to(torch.bfloat16) if precision == "fp8 weights" else w

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, main):
            ctx.save_for_backward(x if gradients != "none" else None, w)
            ctx.main = main
            return product(torch, x, weight_of(w), precision)

        @staticmethod
        def backward(ctx, dy):
            x, w = ctx.saved_tensors
            main = ctx.main
            dx = product(torch, dy, weight_of(w).t(), precision)
            if gradients == "none":
                return dx, None, None
            if gradients == "fused":
                torch.addmm(main, dy.t(), x, out_dtype=torch.float32, out=main)
                return dx, None, None
            dw = product(torch, dy.t(), x.t(), precision)
            if gradients == "added":
                main.add_(dw)
                return dx, None, None
            return dx, dw, None
    return Linear.apply


class Layer:
    def __init__(self, torch, way, size):
        self.torch, self.way, self.size = torch, way, size
        precision, gradients, self.recompute, self.adapters = way
        hidden, ffn, heads, kv_heads, tokens = size
        dim = hidden // heads
        trained = gradients == "bf16"

        def random(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02
        shapes = {"qkv": ((heads + 2 * kv_heads) * dim, hidden), "proj": (hidden, hidden),
                  "up": (2 * ffn, hidden), "down": (hidden, ffn)}
        stored = torch.float8_e4m3fn if precision == "fp8 weights" else torch.bfloat16
        self.weights = {name: random(*shape).to(stored).requires_grad_(trained)
                        for name, shape in shapes.items()}
        self.main = {name: torch.zeros(*shape, device="cuda") if gradients in ("fused", "added")
                     else None for name, shape in shapes.items()}
        self.low = {name: (random(RANK, shape[1]).requires_grad_(),
                           random(shape[0], RANK).requires_grad_())
                    for name, shape in shapes.items()} if self.adapters else {}
        self.norms = [torch.ones(hidden, device="cuda", dtype=torch.bfloat16,
                                 requires_grad=gradients != "none") for _ in range(2)]
        self.linear = linear_of(torch, precision, gradients)
        angle = torch.arange(tokens, device="cuda")[:, None] * 10000.0 ** (
            -torch.arange(0, dim, 2, device="cuda") / dim)
        self.cos, self.sin = (torch.cat([x, x], -1).to(torch.bfloat16)
                              for x in (angle.cos(), angle.sin()))

    def parameters(self):
        return [x for x in [*self.norms, *self.weights.values(),
                            *(one for pair in self.low.values() for one in pair)]
                if x.requires_grad]

    def project(self, x, name):
        y = self.linear(x, self.weights[name], self.main[name])
        if name in self.low:
            down, up = self.low[name]
            y = y + 2.0 * (x @ down.t() @ up.t())
        return y

    def rotary(self, x):
        a, b = x.chunk(2, dim=-1)
        return x * self.cos + self.torch.cat((-b, a), dim=-1) * self.sin

    def body(self, x):
        functional = self.torch.nn.functional
        hidden, _, heads, kv_heads, tokens = self.size
        h = functional.rms_norm(x, (hidden,), self.norms[0])
        q, k, v = self.project(h, "qkv").view(1, tokens, heads + 2 * kv_heads, -1).transpose(
            1, 2).split([heads, kv_heads, kv_heads], dim=1)
        h = functional.scaled_dot_product_attention(self.rotary(q), self.rotary(k), v,
                                                    is_causal=True, enable_gqa=heads != kv_heads)
        x = x + self.project(h.transpose(1, 2).reshape(tokens, hidden), "proj")
        a, b = self.project(functional.rms_norm(x, (hidden,), self.norms[1]),
                            "up").chunk(2, dim=-1)
        return x + self.project(functional.silu(a) * b, "down")

    def __call__(self, x):
        if self.recompute == "full":
            from torch.utils.checkpoint import checkpoint
            return checkpoint(self.body, x, use_reentrant=False, preserve_rng_state=False)
        return self.body(x)


def make_step(torch, way, size):
    """A function that runs host.LAYERS layers forward and backward; their inputs and the layers."""
    layers = [Layer(torch, way, size) for _ in range(host.LAYERS)]
    leaves = [weight for layer in layers for weight in layer.parameters()]
    x = torch.randn(size[-1], size[0], device="cuda", dtype=torch.bfloat16, requires_grad=True)
    grad = torch.randn_like(x) * 1e-3

    def forward():
        y = x
        for layer in layers:
            y = layer(y)
        return y

    def step():
        torch.autograd.grad(forward(), [x, *leaves], grad)
    return step, forward


def kept_mib(torch, forward):
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    out = forward()
    torch.cuda.synchronize()
    kept = torch.cuda.memory_allocated() - before
    del out
    return kept / host.LAYERS / 2**20


def first_us(torch, step, pauses=3):
    """Steps after pauses: an H200 keeps its first clock for some 28 ms."""
    times = []
    for _ in range(pauses):
        torch.cuda.synchronize()
        time.sleep(0.2)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(10_000_000)  # The whole step is handed over before it begins.
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * begin.elapsed_time(end) / host.LAYERS)
    return quantile(times, 0.5)


def steady_us(torch, step, seconds, smi):
    step_us(torch, step, seconds - 0.5)
    settled = step_us(torch, step, 0.5)
    return settled, smi.last[0], smi.last[1]


def small(size):
    """The same launches on next to nothing, so that the GPU waits for the host."""
    hidden, ffn, heads, kv_heads, _ = size
    return (hidden // 16, ffn // 16, heads // 4, max(1, kv_heads // 4), 128)


def measure(torch, way, size, mode, smi):
    step, forward = make_step(torch, way, size)
    step()  # Allocates what libraries keep for themselves.
    kept = kept_mib(torch, forward)
    run = step if mode == "eager" else graph_of(torch, step)
    for _ in range(3):
        run()
    us, launches = kernels(torch, run)
    first = first_us(torch, run)
    seconds = STEADY_S if mode == "graph" else 0.6
    settled, clock_mhz, power_w = steady_us(torch, run, seconds, smi)
    run = step = forward = None
    torch.cuda.empty_cache()
    few, _ = make_step(torch, way, small(size))
    few = few if mode == "eager" else graph_of(torch, few)
    for _ in range(3):
        few()
    waiting = host_us(torch, few, 0.3)
    return [round(first, 3), round(settled, 3), round(waiting, 3), round(sum(us.values()), 3),
            launches, *(round(us[kind], 3) for kind in ("products", "attention", "other")),
            round(kept, 3), clock_mhz, power_w]


def parts(torch):
    """One kind of kernel each, as long as two milliseconds at least."""
    functional = torch.nn.functional

    def random(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    a, b, out = random(8192, 8192), random(8192, 8192), random(8192, 8192)
    q, k, v = random(1, 32, 16384, 128), random(1, 32, 16384, 128), random(1, 32, 16384, 128)
    q8, k8, v8 = (x[:, :, :8192].contiguous().requires_grad_() for x in (q, k, v))
    y = functional.scaled_dot_product_attention(q8, k8, v8, is_causal=True)
    dy = torch.randn_like(y)
    long, other = random(1 << 29), random(1 << 29)
    few = random(4096, 4096)
    return {
        "products": lambda: torch.matmul(a, b.t(), out=out),
        "attention": lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        "attention backward": lambda: torch.autograd.grad(y, (q8, k8, v8), dy, retain_graph=True),
        "copies": lambda: other.copy_(long),
        "norms": lambda: [functional.rms_norm(few, (4096,)) for _ in range(50)],
        "waits": lambda: torch.cuda._sleep(4_000_000),
    }


def main():
    said = options(__doc__, 120).parse_args()
    torch = require_torch()
    gpu, budget, rows = Gpu(torch), Budget(said.budget), Rows(said.out, KEYS, FIGURES)
    host.LAYERS = 2
    smi = Smi()
    try:
        for size, mode, way in [(size, mode, way) for size, mode in PLAN for way in WAYS]:
            key = [*gpu.facts(), *way, mode, *size]
            if rows.has(key):
                continue
            if budget.left() < 6.0:
                print("not all was measured: start it again", file=sys.stderr)
                return
            try:
                rows.add(key, ["measured", *measure(torch, way, size, mode, smi)])
            except Exception as error:  # noqa: BLE001  A way that this PyTorch does not have.
                print(way, mode, rows.skip([key], error), file=sys.stderr)
            torch.cuda.empty_cache()
        for name, run in parts(torch).items():
            key = [*gpu.facts(), name, "", "", "", "parts", 0, 0, 0, 0, 0]
            if rows.has(key) or budget.left() < 4.0:
                continue
            first = host.LAYERS * first_us(torch, run)
            settled, clock_mhz, power_w = steady_us(torch, run, STEADY_S, smi)
            rows.add(key, ["measured", round(first, 3), round(host.LAYERS * settled, 3),
                           *[""] * 7, clock_mhz, power_w])
    finally:
        smi.stop()


if __name__ == "__main__":
    main()
