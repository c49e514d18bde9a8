"""What the scripts beside it share: rows that survive a kill, a budget, timing on a GPU.

Nothing here needs PyTorch but `Gpu`; tests/python/pytorch_scripts_test.py tests the rest.
"""

import argparse
import csv
import os
import statistics
import sys
import time

NO_GPU = 77


class Rows:
    """A CSV file that is whole after each row. What it holds already is not measured again."""

    def __init__(self, path, key_columns, figure_columns):
        self.columns = [*key_columns, *figure_columns]
        self.keys = len(key_columns)
        self.done = set()
        fresh = not os.path.exists(path) or os.path.getsize(path) == 0
        if not fresh:
            with open(path, newline="") as old:
                text = old.read()
            rows = list(csv.reader(text.splitlines()))
            if rows[0] != self.columns:
                sys.exit(f"{path}: has other columns; name another file")
            # A killed process may have left half a row, or half of its last figure.
            if not text.endswith("\n"):
                rows.pop()
                with open(path, "w", newline="") as new:
                    csv.writer(new).writerows(rows)
            self.done = {tuple(row[: self.keys]) for row in rows[1:]}
        self.file = open(path, "a", newline="")
        self.writer = csv.writer(self.file)
        if fresh:
            self.write(self.columns)

    def has(self, key):
        return tuple(str(part) for part in key) in self.done

    def add(self, key, figures):
        self.done.add(tuple(str(part) for part in key))
        self.write([*key, *figures])

    def skip(self, keys, error):
        """Rows without figures for those of `keys` that have none yet; returns the reason."""
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        figures = [f"skipped: {reason}", *[""] * (len(self.columns) - self.keys - 1)]
        for key in keys:
            if not self.has(key):
                self.add(key, figures)
        return reason

    def write(self, row):
        self.writer.writerow(row)
        self.file.flush()
        os.fsync(self.file.fileno())


class Budget:
    def __init__(self, seconds, clock=time.monotonic):
        self.clock = clock
        self.end = clock() + seconds

    def left(self):
        return max(0.0, self.end - self.clock())

    def up(self):
        return self.left() == 0.0


def quantile(values, share):
    """Linear between neighbours (Hyndman and Fan, definition 7), as calibration/host has it."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def summary(values):
    """Median, 10th and 90th percentile, rounded to nanoseconds of microseconds."""
    return [round(quantile(values, share), 3) for share in (0.5, 0.1, 0.9)]


def condensed(windows, burst_s=0.02):
    """(end_s, run_us, state) of windows in order -> each of the burst, then ten a decade: the
    series of calibration/host/clock_series.hpp."""
    points, run_us, border, begin = [], [], burst_s, 0.0
    for index, (end_s, one_us, state) in enumerate(windows):
        run_us.append(one_us)
        burst, last = begin < burst_s, index + 1 == len(windows)
        begin = end_s
        if not burst and not last and end_s < border:
            continue
        points.append((end_s, statistics.median(run_us), state))
        run_us = []
        while border <= end_s:
            border *= 10**0.1
    return points


def options(doc, seconds):
    """The parser of a script that `doc` describes and that takes `seconds` unless told."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--budget", type=float, default=seconds,
                        help="seconds (default %(default)g)")
    return parser


def require_torch():
    try:
        import torch
    except ImportError:
        print("no PyTorch here: python3 -m pip install torch", file=sys.stderr)
        sys.exit(NO_GPU)
    if not torch.cuda.is_available():
        print("no GPU that PyTorch can use", file=sys.stderr)
        sys.exit(NO_GPU)
    return torch


class Gpu:
    def __init__(self, torch, device=0):
        self.torch = torch
        torch.cuda.set_device(device)
        self.name = torch.cuda.get_device_name(device)
        self.torch_version = torch.__version__
        self.cuda = torch.version.cuda
        self.cudnn = torch.backends.cudnn.version()

    def facts(self):
        return [self.name, self.torch_version, self.cuda, self.cudnn]

    def times_us(self, run, budget_s, least=5, most=200):
        """Single runs, handed over behind a wait so that the GPU never waits for the host."""
        torch = self.torch
        for _ in range(2):
            run()
        torch.cuda.synchronize()
        began = time.monotonic()
        run()
        torch.cuda.synchronize()
        one_s = time.monotonic() - began
        size = max(least, min(10, int(budget_s / one_s)))
        times, began = [], time.monotonic()
        while len(times) < most:
            batch = min(size, most - len(times))
            events = [torch.cuda.Event(enable_timing=True) for _ in range(batch + 1)]
            torch.cuda._sleep(20_000_000)  # Clock cycles, some 10 ms.
            events[0].record()
            for event in events[1:]:
                run()
                event.record()
            torch.cuda.synchronize()
            times += [1e3 * a.elapsed_time(b) for a, b in zip(events, events[1:])]
            if len(times) >= least and time.monotonic() - began > budget_s:
                break
        return times
