#!/usr/bin/env python3
"""launches.py OUT.csv [--budget SECONDS]: what the host pays to launch each kind of work.

Each operation on so little data that the GPU waits for the host: `host_us` a call without autograd
("inference") and forward and backward together ("training"), with the kernels that the calls
launch. Blocks are whole parts of a layer, with tensor parallelism's communication on a group of
this one GPU; FSDP2 and checkpointing wrap such blocks.
"""

import os
import sys
import tempfile
import time

from bench import Budget, Gpu, Rows, options, quantile, require_torch

KEYS = ["gpu", "torch", "cuda", "cudnn", "cpu", "what", "mode"]
FIGURES = ["outcome", "host_us", "launches"]
HIDDEN, TOKENS, HEADS = 256, 64, 4


def cpu_name():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else "unknown"


def call_us(torch, run, seconds=0.15, calls=40):
    """Median microseconds of a call, `calls` of them between two synchronisations."""
    for _ in range(5):
        run()
    times, began = [], time.monotonic()
    while len(times) < 5 or time.monotonic() - began < seconds:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        times.append(1e6 * (time.perf_counter() - start) / calls)
    torch.cuda.synchronize()
    return quantile(times, 0.5)


def kernel_count(torch, run):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        run()
        torch.cuda.synchronize()
    return sum(str(event.device_type).endswith("CUDA") for event in profiled.events())


def random(torch, *shape):
    return (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02).requires_grad_()


def operations(torch):
    """name -> (function, its inputs that want a gradient)"""
    functional = torch.nn.functional
    x, y, w = (random(torch, TOKENS, HIDDEN), random(torch, TOKENS, HIDDEN),
               random(torch, HIDDEN, HIDDEN))
    scale = random(torch, HIDDEN)
    q = random(torch, 1, HEADS, TOKENS, HIDDEN // HEADS)
    rows = torch.arange(TOKENS, device="cuda").flip(0)
    module = torch.nn.Linear(HIDDEN, HIDDEN, bias=False, device="cuda", dtype=torch.bfloat16)

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return torch.mm(a, b.t())

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return torch.mm(grad, b), torch.mm(grad.t(), a)
    out = {
        "add": (lambda: x + y, [x, y]),
        "product of functions": (lambda: functional.linear(x, w), [x, w]),
        "product of a module": (lambda: module(x), [x, *module.parameters()]),
        "product of an autograd.Function": (lambda: Product.apply(x, w), [x, w]),
        "rms norm": (lambda: functional.rms_norm(x, (HIDDEN,), scale), [x, scale]),
        "layer norm": (lambda: functional.layer_norm(x, (HIDDEN,), scale), [x, scale]),
        "silu": (lambda: functional.silu(x), [x]),
        "softmax": (lambda: torch.softmax(x, -1), [x]),
        "view and transpose": (lambda: x.view(TOKENS, HEADS, -1).transpose(0, 1), [x]),
        "cat": (lambda: torch.cat((x, y), -1), [x, y]),
        "copy": (lambda: x.t().contiguous(), [x]),
        "gather of rows": (lambda: x.index_select(0, rows), [x]),
        "top k": (lambda: torch.topk(x, 8, -1)[0], [x]),
        "attention": (lambda: functional.scaled_dot_product_attention(q, q, q, is_causal=True),
                      [q]),
    }
    try:
        out["compiled gate"] = (torch.compile(lambda: functional.silu(x) * y), [x, y])
    except RuntimeError:
        pass
    return out


class Block:
    """Parts of a layer, as functions of x [tokens, hidden]."""

    def __init__(self, torch, group):
        self.torch, self.group = torch, group
        self.norm = random(torch, HIDDEN)
        self.qkv, self.proj = random(torch, 3 * HIDDEN, HIDDEN), random(torch, HIDDEN, HIDDEN)
        self.up, self.down = random(torch, 8 * HIDDEN, HIDDEN), random(torch, HIDDEN, 4 * HIDDEN)
        self.latent = [random(torch, *shape) for shape in
                       [(HIDDEN, HIDDEN), (HEADS * 96, HIDDEN), (HIDDEN + 32, HIDDEN),
                        (HEADS * 128, HIDDEN), (HIDDEN, HEADS * 64)]]
        self.scales = [random(torch, HIDDEN) for _ in range(2)]
        half = torch.rand(TOKENS, 1, 16, device="cuda", dtype=torch.bfloat16)
        self.cos, self.sin = torch.cat((half, half), -1), torch.cat((half, half), -1)

    def rotary(self, x):
        a, b = x.chunk(2, dim=-1)
        return x * self.cos + self.torch.cat((-b, a), dim=-1) * self.sin

    def attention(self, x):
        functional = self.torch.nn.functional
        h = functional.rms_norm(x, (HIDDEN,), self.norm)
        q, k, v = functional.linear(h, self.qkv).view(1, TOKENS, 3 * HEADS, -1).transpose(
            1, 2).chunk(3, dim=1)
        h = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + functional.linear(h.transpose(1, 2).reshape(TOKENS, HIDDEN), self.proj)

    def latent_attention(self, x):
        """Queries and keys of 64 + 32, values of 64, both compressed."""
        functional, torch = self.torch.nn.functional, self.torch
        q_down, q_up, kv_down, kv_up, out = self.latent
        h = functional.rms_norm(x, (HIDDEN,), self.norm)
        q = functional.rms_norm(functional.linear(h, q_down), (HIDDEN,), self.scales[0])
        q = functional.linear(q, q_up).view(TOKENS, HEADS, 96)
        q_plain, q_turned = q.split([64, 32], dim=-1)
        kv, k_turned = functional.linear(h, kv_down).split([HIDDEN, 32], dim=-1)
        kv = functional.rms_norm(kv, (HIDDEN,), self.scales[1])
        k_plain, v = functional.linear(kv, kv_up).view(TOKENS, HEADS, 128).split([64, 64], dim=-1)
        q = torch.cat((q_plain, self.rotary(q_turned)), -1)
        k = torch.cat((k_plain, self.rotary(k_turned[:, None]).expand(-1, HEADS, -1)), -1)
        h = functional.scaled_dot_product_attention(
            q[None].transpose(1, 2), k[None].transpose(1, 2), v[None].transpose(1, 2),
            is_causal=True)
        return x + functional.linear(h.transpose(1, 2).reshape(TOKENS, -1), out)

    def mlp(self, x):
        functional = self.torch.nn.functional
        a, b = functional.linear(functional.rms_norm(x, (HIDDEN,), self.norm),
                                 self.up).chunk(2, dim=-1)
        return x + functional.linear(functional.silu(a) * b, self.down)

    def split_mlp(self, x):
        """With sequence parallelism: an all-gather before, a reduce-scatter behind."""
        functional = self.torch.nn.functional
        h = exchange(self.torch, self.group)(functional.rms_norm(x, (HIDDEN,), self.norm))
        a, b = functional.linear(h, self.up).chunk(2, dim=-1)
        return x + exchange(self.torch, self.group)(
            functional.linear(functional.silu(a) * b, self.down))

    def experts(self, x):
        """Eight, each with tokens, one after the other."""
        functional, torch = self.torch.nn.functional, self.torch
        scores = torch.softmax(functional.linear(x, self.qkv[:8]).float(), -1)
        top, _ = scores.topk(2, dim=-1)
        done = []
        for part in x.split(TOKENS // 8):
            a, b = functional.linear(part, self.up).chunk(2, dim=-1)
            done.append(functional.linear(functional.silu(a) * b, self.down))
        return x + torch.cat(done) * top[:, :1].to(x.dtype)


def exchange(torch, group):
    """An all-gather whose backward pass is a reduce-scatter, on a group of one."""
    class Exchange(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = torch.empty_like(x)
            torch.distributed.all_gather_into_tensor(out, x.contiguous(), group=group)
            return out

        @staticmethod
        def backward(ctx, grad):
            out = torch.empty_like(grad)
            torch.distributed.reduce_scatter_tensor(out, grad.contiguous(), group=group)
            return out
    return Exchange.apply


def blocks(torch, group):
    from torch.utils.checkpoint import checkpoint
    block = Block(torch, group)
    x = random(torch, TOKENS, HIDDEN)
    used = {"attention block": (block.attention, [block.norm, block.qkv, block.proj]),
            "latent attention block": (block.latent_attention,
                                       [block.norm, *block.latent, *block.scales]),
            "mlp block": (block.mlp, [block.norm, block.up, block.down]),
            "eight experts": (block.experts, [block.qkv, block.up, block.down])}
    if group is not None:
        used["mlp block, split over tensor ranks"] = (block.split_mlp,
                                                      [block.norm, block.up, block.down])
        used["all-gather"] = (exchange(torch, group), [])
    out = {name: ((lambda f=f: f(x)), [x, *leaves]) for name, (f, leaves) in used.items()}
    out["mlp block, recomputed"] = (
        lambda: checkpoint(block.mlp, x, use_reentrant=False, preserve_rng_state=False),
        [x, block.norm, block.up, block.down])
    return out


def sharded(torch, group):
    """name -> function that runs a module of four products forward and backward."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def stack():
        return torch.nn.Sequential(*[torch.nn.Sequential(*[
            torch.nn.Linear(HIDDEN, HIDDEN, bias=False, device="cuda", dtype=torch.bfloat16)
            for _ in range(4)]) for _ in range(4)])
    x = random(torch, TOKENS, HIDDEN)

    def step_of(model):
        def step():
            model(x).backward(x.detach())
        return step
    plain, wrapped = stack(), stack()
    mesh = init_device_mesh("cuda", (1,))
    for part in wrapped:
        fully_shard(part, mesh=mesh)
    fully_shard(wrapped, mesh=mesh)
    return {"four groups of four products": step_of(plain),
            "four groups of four products, FSDP2": step_of(wrapped)}


def one_gpu_group(torch):
    try:
        place = os.path.join(tempfile.mkdtemp(), "meeting")
        torch.distributed.init_process_group("nccl", init_method=f"file://{place}", rank=0,
                                             world_size=1)
        return torch.distributed.group.WORLD
    except (RuntimeError, ValueError) as error:
        print(f"no group: {error}".splitlines()[0], file=sys.stderr)
        return None


def main():
    said = options(__doc__, 40).parse_args()
    torch = require_torch()
    gpu, budget, rows = Gpu(torch), Budget(said.budget), Rows(said.out, KEYS, FIGURES)
    cpu, group = cpu_name(), one_gpu_group(torch)

    def record(what, mode, run):
        key = [*gpu.facts(), cpu, what, mode]
        if rows.has(key) or budget.up():
            return
        try:
            rows.add(key, ["measured", round(call_us(torch, run), 3), kernel_count(torch, run)])
        except Exception as error:  # noqa: BLE001  What this PyTorch does not have.
            print(what, rows.skip([key], error), file=sys.stderr)

    for what, (run, leaves) in {**operations(torch), **blocks(torch, group)}.items():
        def inference(run=run):
            with torch.no_grad():
                run()

        def training(run=run, leaves=leaves):
            out = run()
            torch.autograd.grad(out, leaves, torch.empty_like(out))
        record(what, "inference", inference)
        record(what, "training", training)
    if group is not None:
        try:
            for what, run in sharded(torch, group).items():
                record(what, "training", run)
        except (ImportError, RuntimeError) as error:
            print(f"no FSDP2: {error}".splitlines()[0], file=sys.stderr)
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
