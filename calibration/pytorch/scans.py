#!/usr/bin/env python3
"""scans.py OUT.csv [--budget SECONDS]: mixers with a state as training software runs them.

Forward and backward of the chunked scans of flash-linear-attention (gated delta rule, KDA,
lightning attention) and of mamba_ssm (Mamba-2, its gated norm), in bf16, and of the causal
convolution of flash-linear-attention. Both packages are Triton alone, so that a copy of their
sources on PYTHONPATH is enough; kinds whose package is missing are passed over.

Triton's tuner chooses among at most eight variants of a kernel, evenly taken from its list.
--compile KIND:FORM compiles them and measures nothing: Triton keeps them on disk, so that several
forms can be compiled at the same time, before a GPU is timed.
"""

import functools
import os
import sys

from bench import Budget, Gpu, Rows, options, require_torch, summary

KEYS = ["gpu", "torch", "cuda", "triton", "package", "kind", "pass", "batch", "sequence",
        "key_heads", "heads", "key_dim", "value_dim"]
FIGURES = ["outcome", "median_us", "p10_us", "p90_us", "runs"]
# kind: (key_heads, heads, key_dim, value_dim), whole and as tensor ranks have them. Qwen3-Next and
# Qwen3.5 397B; Nemotron 3 Nano and Super, Granite 4 (one group); Kimi Linear; MiniMax-01. Of a
# convolution and a norm: channels are heads x value_dim, key_heads are the norm's groups.
FORMS = {
    "gated_delta_net": [(16, 32, 128, 128), (4, 8, 128, 128), (16, 64, 128, 128)],
    "mamba2": [(8, 64, 128, 64), (1, 16, 128, 64), (8, 128, 128, 64), (1, 128, 128, 64)],
    "kda": [(32, 32, 128, 128), (8, 8, 128, 128)],
    "lightning": [(64, 64, 128, 128), (8, 8, 128, 128)],
    "convolution": [(1, 64, 4, 128), (1, 80, 4, 128), (1, 16, 4, 128)],
    "gated_norm": [(8, 64, 0, 64), (8, 128, 0, 64), (32, 32, 0, 128)],
}
MOST_VARIANTS = 8
LENGTHS = [(1, 4096), (1, 8192), (4, 8192), (1, 32768), (2, 4096)]


def delta_net(torch, batch, sequence, key_heads, heads, key_dim, value_dim):
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule
    q, k, v, beta = values(torch, batch, sequence, (key_heads, key_dim), (key_heads, key_dim),
                           (heads, value_dim), (heads,))
    g = -torch.rand(batch, sequence, heads, device="cuda")
    inputs = [q, k, v, g.requires_grad_(), beta.sigmoid().detach().requires_grad_()]
    return inputs, lambda: chunk_gated_delta_rule(*inputs, use_qk_l2norm_in_kernel=True)[0]


def kda(torch, batch, sequence, key_heads, heads, key_dim, value_dim):
    from fla.ops.kda import chunk_kda
    q, k, v, g, beta = values(torch, batch, sequence, (key_heads, key_dim), (key_heads, key_dim),
                              (heads, value_dim), (heads, key_dim), (heads,))
    beta = beta.sigmoid().detach().requires_grad_()
    a_log = torch.rand(heads, device="cuda", requires_grad=True)
    bias = torch.rand(heads * key_dim, device="cuda", requires_grad=True)
    return [q, k, v, g, beta, a_log, bias], lambda: chunk_kda(
        q, k, v, g, beta, A_log=a_log, dt_bias=bias, use_qk_l2norm_in_kernel=True,
        use_gate_in_kernel=True)[0]


def lightning(torch, batch, sequence, key_heads, heads, key_dim, value_dim):
    from fla.ops.lightning_attn import chunk_lightning_attn
    inputs = values(torch, batch, sequence, (heads, key_dim), (heads, key_dim),
                    (heads, value_dim))
    return inputs, lambda: chunk_lightning_attn(*inputs, layer_idx=0, num_layers=80)[0]


def mamba2(torch, batch, sequence, groups, heads, state, head_dim):
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined
    x, dt, b, c = values(torch, batch, sequence, (heads, head_dim), (heads,), (groups, state),
                         (groups, state))
    a = (-torch.rand(heads, device="cuda") - 1.0).requires_grad_()
    skip, bias = (torch.rand(heads, device="cuda", requires_grad=True) for _ in range(2))
    return [x, dt, a, b, c, skip, bias], lambda: mamba_chunk_scan_combined(
        x, dt, a, b, c, chunk_size=128, D=skip, dt_bias=bias, dt_softplus=True)


def convolution(torch, batch, sequence, _, heads, taps, dim):
    from fla.modules.conv.causal_conv1d import causal_conv1d
    x, = values(torch, batch, sequence, (heads * dim,))
    weight = torch.randn(heads * dim, taps, device="cuda", dtype=torch.bfloat16,
                         requires_grad=True)

    def run():
        out = causal_conv1d(x, weight, activation="silu")
        return out[0] if isinstance(out, tuple) else out
    return [x, weight], run


def gated_norm(torch, batch, sequence, groups, heads, _, dim):
    from mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn
    x, z = values(torch, batch, sequence, (heads * dim,), (heads * dim,))
    weight = torch.ones(heads * dim, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    return [x, z, weight], lambda: rmsnorm_fn(
        x, weight, None, z=z, eps=1e-5, group_size=heads * dim // groups, norm_before_gate=False)


MAKERS = {"gated_delta_net": delta_net, "mamba2": mamba2, "kda": kda, "lightning": lightning,
          "convolution": convolution, "gated_norm": gated_norm}


def values(torch, batch, sequence, *shapes):
    return [torch.randn(batch, sequence, *shape, device="cuda",
                        dtype=torch.bfloat16).requires_grad_() for shape in shapes]


def package(kind):
    name = "mamba_ssm" if kind in ("mamba2", "gated_norm") else "fla"
    return f"{name} {__import__(name).__version__}"


def cases():
    """(kind, batch, sequence, form): whole forms first, then what tensor ranks have."""
    for place in range(max(len(forms) for forms in FORMS.values())):
        for kind, forms in FORMS.items():
            for batch, sequence in LENGTHS if place < len(forms) else ():
                yield kind, batch, sequence, forms[place]


def passes(torch, kind, batch, sequence, form):
    """Functions that run the forward and the backward pass once."""
    inputs, run = MAKERS[kind](torch, batch, sequence, *form)
    out = run()
    grad = torch.randn_like(out)

    def forward():
        with torch.no_grad():
            run()
    return {"forward": forward,
            "backward": lambda: torch.autograd.grad(out, inputs, grad, retain_graph=True)}


def quick_choices():
    """Triton's tuner chooses among fewer variants, by shorter runs than its own 100 ms each."""
    import triton
    from triton.runtime import autotuner, driver
    short = functools.partial(triton.testing.do_bench, warmup=2, rep=8)
    type(driver.active).get_benchmarker = lambda self: short
    prune = autotuner.Autotuner.prune_configs

    def pruned(self, named):
        configs = prune(self, named)
        return configs[:: -(-len(configs) // MOST_VARIANTS)]
    autotuner.Autotuner.prune_configs = pruned


def compile_only():
    """Every variant that the tuner would try is compiled and none is run."""
    from triton.runtime import autotuner, jit
    run = jit.JITFunction.run

    def compiled(self, *args, grid, warmup, **named):
        return run(self, *args, grid=grid, warmup=True, **named)

    def bench(self, *args, config, **meta):
        try:
            self.fn.run(*args, **{**meta, **config.all_kwargs()})
        except Exception:  # noqa: BLE001  A variant that the compiler refuses is none.
            return [float("inf")] * 3
        return [1.0, 1.0, 1.0]
    jit.JITFunction.run = compiled
    autotuner.Autotuner._bench = bench


def main():
    parser = options(__doc__, 100)
    parser.add_argument("--compile", metavar="KIND:FORM",
                        choices=[f"{kind}:{place}" for kind in FORMS
                                 for place in range(len(FORMS[kind]))])
    said = parser.parse_args()
    torch = require_torch()
    os.environ["FLA_CACHE_RESULTS"] = "0"  # Choices of --compile are none.
    import triton
    quick_choices()
    if said.compile:
        compile_only()
        kind, place = said.compile.split(":")
        for run in passes(torch, kind, 1, LENGTHS[0][1], FORMS[kind][int(place)]).values():
            run()
        return
    gpu, budget, rows = Gpu(torch), Budget(said.budget), Rows(said.out, KEYS, FIGURES)
    for kind, batch, sequence, form in cases():
        try:
            source = package(kind)
        except ImportError:
            continue
        own = [gpu.name, gpu.torch_version, gpu.cuda, triton.__version__, source, kind]
        key = lambda which: [*own, which, batch, sequence, *form]  # noqa: E731
        if all(rows.has(key(which)) for which in ("forward", "backward")):
            continue
        if budget.up():
            print("not all was measured: start it again", file=sys.stderr)
            return
        try:
            for which, run in passes(torch, kind, batch, sequence, form).items():
                times = gpu.times_us(run, 0.06)
                rows.add(key(which), ["measured", *summary(times), len(times)])
        except Exception as error:  # noqa: BLE001  Whatever a package of others raises.
            reason = rows.skip([key("forward"), key("backward")], error)
            print(kind, batch, sequence, form, reason, file=sys.stderr)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
