#!/usr/bin/env python3
"""clock.py OUT.csv [--budget SECONDS]: how long products take without pause, from a cool GPU on.

torch.matmul in bf16, and torch._scaled_mm in fp8, in windows of about a millisecond: what
`orrery-gpu measure --kinds sustained` does with cuBLASLt itself, as a cross-check. Beside each
point: what nvidia-smi told last of clock, power and what holds the clock.
"""

import subprocess
import threading
import time

from bench import Budget, Gpu, Rows, condensed, options, require_torch

KEYS = ["gpu", "torch", "cuda", "cudnn", "dtype", "m", "n", "k", "at_s"]
FIGURES = ["median_us", "clock_mhz", "power_w", "held_by"]
SHAPES = [(8192, 8192, 8192, 20.0), (4096, 4096, 4096, 10.0), (8192, 28672, 4096, 10.0),
          (4096, 8192, 28672, 10.0)]
CHUNK_S = 0.03


class Smi:
    """nvidia-smi's readings, every 20 ms, from a process of its own."""

    def __init__(self, command=None):
        self.last = ("", "", "")
        self.process = None
        command = command or [
            "nvidia-smi", "-i", "0", "-lms", "20", "--format=csv,noheader,nounits",
            "--query-gpu=clocks.sm,power.draw.instant,clocks_event_reasons.active"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                            stderr=subprocess.DEVNULL)
        except OSError:
            return
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            parts = tuple(part.strip() for part in line.split(","))
            if len(parts) == 3:
                self.last = parts

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()


def product(torch, dtype, m, n, k):
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16) / k**0.5
    if dtype == "bf16":
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        return lambda: torch.matmul(a, b.t(), out=out)
    one = torch.ones((), device="cuda")
    a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    return lambda: torch._scaled_mm(a8, b8.t(), scale_a=one, scale_b=one,
                                    out_dtype=torch.bfloat16, use_fast_accum=True)


def series(torch, run, seconds, smi):
    """(end_s, run_us, state) of each window."""
    run()
    torch.cuda.synchronize()
    began = time.monotonic()
    for _ in range(10):
        run()
    torch.cuda.synchronize()
    run_s = (time.monotonic() - began) / 10
    runs = max(1, round(1e-3 / run_s))
    windows = max(2, int(CHUNK_S / (run_s * runs)))

    def chunk():
        events = []
        for _ in range(windows):
            for _ in range(runs):
                run()
            events.append(torch.cuda.Event(enable_timing=True))
            events[-1].record()
        return events
    time.sleep(3.0)  # It begins cool, as kernels that are timed by themselves do.
    before = torch.cuda.Event(enable_timing=True)
    before.record()
    spent, out, queued = 0.0, [], chunk()
    while spent < seconds:
        ahead = chunk()
        for event in queued:
            event.synchronize()
            window_ms = before.elapsed_time(event)
            spent += 1e-3 * window_ms
            out.append((spent, 1e3 * window_ms / runs, smi.last))
            before = event
        queued = ahead
    torch.cuda.synchronize()
    return out


def main():
    said = options(__doc__, 120).parse_args()
    torch = require_torch()
    gpu, budget = Gpu(torch), Budget(said.budget)
    rows, smi = Rows(said.out, KEYS, FIGURES), Smi()
    try:
        for m, n, k, seconds in SHAPES:
            for dtype in ("bf16", "fp8"):
                key = [*gpu.facts(), dtype, m, n, k]
                if any(done[: len(key)] == tuple(map(str, key)) for done in rows.done):
                    continue
                if budget.left() < seconds + 4.0:
                    return
                try:
                    windows = series(torch, product(torch, dtype, m, n, k), seconds, smi)
                except RuntimeError as error:
                    print(f"{dtype} {m} x {n} x {k}: {error}".splitlines()[0])
                    continue
                for at_s, run_us, state in condensed(windows):
                    rows.add([*key, round(at_s, 6)], [round(run_us, 3), *state])
    finally:
        smi.stop()


if __name__ == "__main__":
    main()
