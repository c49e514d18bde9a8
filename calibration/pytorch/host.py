#!/usr/bin/env python3
"""host.py OUT.csv [--budget SECONDS]: what the host of an eager layer costs.

A decoder layer as Megatron-LM builds it, dense and with 8 and 64 experts, forward and backward,
each kernel launched by PyTorch ("eager") and the same work replayed as a CUDA graph ("graph"):
  host_us       the host's time a layer: the step time of the same launches on so few tokens and
                channels that the GPU waits for the host (a held GPU's queue of some 1,024 launches
                would fill, and then the host waits for it)
  step_us       a layer's time on the clock, steps without a synchronisation among them
  busy_us       the sum of its kernels' times; step - busy are gaps
  launches      kernels a layer
  products_us, attention_us, other_us    busy_us by class
It ends with 20 s of the dense layer: its step time in windows, `steady` rows.
"""

import time

from bench import Budget, Gpu, Rows, options, quantile, require_torch

KEYS = ["gpu", "torch", "cuda", "cudnn", "layer", "mode", "hidden", "tokens", "at_s"]
FIGURES = ["host_us", "step_us", "busy_us", "launches", "products_us", "attention_us", "other_us"]
LAYERS = 4  # In a row, so that one's end hides the next one's beginning, as in a stage.
# name, hidden, ffn, heads, kv_heads, experts, top_k, tokens
FORMS = [("dense", 4096, 14336, 32, 8, 0, 0, 4096), ("dense", 1024, 4096, 16, 4, 0, 0, 1024),
         ("experts 8", 4096, 14336, 32, 8, 8, 2, 4096),
         ("experts 64", 2048, 1408, 16, 16, 64, 6, 4096)]


def kind_of(kernel):
    """Of a kernel's name: what PyTorch's libraries call theirs."""
    name = kernel.lower()
    if any(word in name for word in ("flash", "fmha", "sdpa", "attention")):
        return "attention"
    if any(word in name for word in ("gemm", "cutlass", "nvjet", "xmma", "s16816", "cublas")):
        return "products"
    return "other"


def make_layer(torch, hidden, ffn, heads, kv_heads, experts, top_k, tokens):
    F = torch.nn.functional
    dim = hidden // heads

    def weight(*shape):
        return (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02).requires_grad_()
    norms = [torch.ones(hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
             for _ in range(2)]
    qkv = weight((heads + 2 * kv_heads) * dim, hidden)
    proj = weight(hidden, hidden)
    count = max(experts, 1)
    fc1 = [weight(2 * ffn, hidden) for _ in range(count)]
    fc2 = [weight(hidden, ffn) for _ in range(count)]
    router = weight(experts, hidden) if experts else None
    angle = torch.arange(tokens, device="cuda")[:, None] * 10000.0 ** (
        -torch.arange(0, dim, 2, device="cuda") / dim)
    cos, sin = (torch.cat([x, x], -1).to(torch.bfloat16) for x in (angle.cos(), angle.sin()))

    def rotary(x):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    def gated(x, up, down):
        a, b = F.linear(x, up).chunk(2, dim=-1)
        return F.linear(F.silu(a) * b, down)

    # Even loads, dealt out in advance: a data-dependent split would wait for the GPU, and no graph
    # could hold it. The router, the permutation and the weighting are computed all the same.
    if experts:
        dealt = torch.arange(tokens * top_k, device="cuda") % experts
        order = torch.argsort(dealt, stable=True)
        source = order // top_k
        splits = torch.bincount(dealt.cpu(), minlength=experts).tolist()

    def mlp(x):
        if not experts:
            return gated(x, fc1[0], fc2[0])
        scores, _ = torch.softmax(F.linear(x, router).float(), -1).topk(top_k, dim=-1)
        parts = x.index_select(0, source).split(splits)
        out = torch.cat([gated(part, up, down) for part, up, down in zip(parts, fc1, fc2)])
        out = out * scores.reshape(-1).index_select(0, order)[:, None].to(out.dtype)
        return torch.zeros_like(x).index_add(0, source, out)

    def forward(x):
        h = F.rms_norm(x, (hidden,), norms[0])
        q, k, v = F.linear(h, qkv).view(1, tokens, heads + 2 * kv_heads, dim).transpose(
            1, 2).split([heads, kv_heads, kv_heads], dim=1)
        h = F.scaled_dot_product_attention(rotary(q), rotary(k), v, is_causal=True,
                                           enable_gqa=heads != kv_heads)
        x = x + F.linear(h.transpose(1, 2).reshape(tokens, hidden), proj)
        return x + mlp(F.rms_norm(x, (hidden,), norms[1]))
    return forward, [*norms, qkv, proj, *fc1, *fc2, *([router] if experts else [])]


def make_step(torch, form):
    name, hidden, ffn, heads, kv_heads, experts, top_k, tokens = form
    layers = [make_layer(torch, *form[1:]) for _ in range(LAYERS)]
    weights = [weight for _, own in layers for weight in own]
    x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    grad = torch.randn_like(x)

    def step():
        y = x
        for layer, _ in layers:
            y = layer(y)
        torch.autograd.grad(y, [x, *weights], grad)
    return step


def graph_of(torch, step):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def small(form):
    """The same launches with little work."""
    name, hidden, ffn, heads, kv_heads, experts, top_k, tokens = form
    return (name, 64 * heads, 256, heads, kv_heads, experts, top_k, 16 * max(experts, 8))


def runner(torch, form, mode):
    step = make_step(torch, form)
    run = step if mode == "eager" else graph_of(torch, step)
    for _ in range(3):
        run()
    return run


def host_us(torch, step, seconds=0.5):
    """Median over steps that are handed over without a wait, a synchronisation every three."""
    times, began = [], time.monotonic()
    while len(times) < 10 or time.monotonic() - began < seconds:
        torch.cuda.synchronize()
        at = [time.perf_counter()]
        for _ in range(3):
            step()
            at.append(time.perf_counter())
        times += [1e6 * (b - a) / LAYERS for a, b in zip(at, at[1:])]
    return quantile(times, 0.5)


def step_us(torch, step, seconds):
    """Medians of steps handed over without a synchronisation but one every half second or so."""
    times, began = [], time.monotonic()
    while not times or time.monotonic() - began < seconds:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(21)]
        events[0].record()
        for event in events[1:]:
            step()
            event.record()
        torch.cuda.synchronize()
        times += [1e3 * a.elapsed_time(b) / LAYERS for a, b in zip(events[2:], events[3:])]
    return quantile(times, 0.5)


def kernels(torch, step):
    """Microseconds by class, and how many there are, a layer."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        step()
        torch.cuda.synchronize()
    us, launches = {"products": 0.0, "attention": 0.0, "other": 0.0}, 0
    for event in profiled.events():
        if str(event.device_type).endswith("CUDA"):
            us[kind_of(event.name)] += event.time_range.elapsed_us() / LAYERS
            launches += 1
    return us, launches / LAYERS


def steady(torch, gpu, rows, step, form, seconds=20.0):
    """Step times in windows of two seconds; the host never waits but for the oldest of ten."""
    events, times, spent, border = [], [], 0.0, 2.0
    while spent < seconds:
        step()
        events.append(torch.cuda.Event(enable_timing=True))
        events[-1].record()
        if len(events) < 11:
            continue
        events[1].synchronize()
        ms = events[0].elapsed_time(events[1])
        events.pop(0)
        times.append(1e3 * ms / LAYERS)
        spent += 1e-3 * ms
        if spent >= border:
            rows.add([*gpu.facts(), form[0], "steady", form[1], form[7], border],
                     ["", round(quantile(times, 0.5), 3), "", "", "", "", ""])
            times, border = [], border + 2.0
    torch.cuda.synchronize()


def main():
    said = options(__doc__, 120).parse_args()
    torch = require_torch()
    gpu, budget, rows = Gpu(torch), Budget(said.budget), Rows(said.out, KEYS, FIGURES)
    for form in FORMS:
        for mode in ("eager", "graph"):
            key = [*gpu.facts(), form[0], mode, form[1], form[7], 0.0]
            if rows.has(key) or budget.up():
                continue
            try:
                few = runner(torch, small(form), mode)
                waiting_us = host_us(torch, few)
                few = None
                run = runner(torch, form, mode)
                us, launches = kernels(torch, run)
                rows.add(key, [round(waiting_us, 3), round(step_us(torch, run, 1.0), 3),
                               round(sum(us.values()), 3), launches,
                               *(round(us[kind], 3) for kind in ("products", "attention",
                                                                 "other"))])
            except RuntimeError as error:
                print(f"{form[0]}, {mode}: {error}".splitlines()[0])
            few = run = None
            torch.cuda.empty_cache()
    if budget.left() > 25.0:
        steady(torch, gpu, rows, make_step(torch, FORMS[0]), FORMS[0])


if __name__ == "__main__":
    main()
