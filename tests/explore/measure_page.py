#!/usr/bin/env python3
"""usage: measure_page.py ORRERY [TURNS]

Prints the figures of docs/notes/speed.md, "The explorer": from a turn of a knob to its picture, in
a headless Chromium that draws without a GPU, and frames a second while the timeline is panned. Of a
machine that has other work seconds say little, so that what processors did stands beside them.
"""
import os
import re
import signal
import statistics
import subprocess
import sys
import time

from take_screens import Chromium, settled

PLANS = [
    ("GPT-3 175B on 1,024 GPUs", "--model gpt3-175b --system dgx-a100-80gb --gpus 1024 --tp 8 "
     "--pp 8 --gbs 1536 --recompute full"),
    ("GPT-3 175B on 131,072 GPUs", "--model gpt3-175b --system dgx-h100 --gpus 131072 --tp 8 "
     "--pp 16 --gbs 24576"),
    ("DeepSeek-V3 on 2,048 GPUs, uniform routing", "--model deepseek-v3 --system hgx-h800 "
     "--gpus 2048 --pp 16 --ep 64 --gbs 15360 --recompute full"),
]
DRAWINGS = ["memory", "cluster", "roofline"]


def processes_below(parent):
    """The process and all that it started, and these."""
    children = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                above = int(file.read().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(above, []).append(int(entry))
    found = [parent]
    for process in found:
        found += children.get(process, [])
    return found


def cpu_seconds(parent):
    """What these processes computed, and those that they have waited for (proc(5), stat)."""
    ticks = 0
    for process in processes_below(parent):
        try:
            with open(f"/proc/{process}/stat") as file:
                ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def page_seconds(browser):
    """What the page's main thread computed; where thread time is not known, how long it worked."""
    metrics = browser.call("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


def median_and_p95(list_ms):
    ordered = sorted(list_ms)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


def turn(browser, by):
    """Moves the slider of the global batch by some of its legal values, and waits for all of it."""
    browser.run(f"""(() => {{
      window.before = explorer.settled;
      const slider = document.getElementById('knob-gbs');
      slider.value = Number(slider.value) + {by};
      slider.dispatchEvent(new Event('input', {{bubbles: true}}));
    }})()""")
    browser.wait_for("explorer.settled > before && "
                     "!document.body.classList.contains('working')")


def knob_to_picture(browser, server, turns):
    begun, page_begun = cpu_seconds(server), page_seconds(browser)
    for i in range(turns):
        turn(browser, 1 if i % 2 else -1)
    pictures = browser.run(f"explorer.pictures.slice(-{turns})")
    server_ms = 1000 * (cpu_seconds(server) - begun) / turns
    page_ms = 1000 * (page_seconds(browser) - page_begun) / turns
    waits = browser.run(f"""performance.getEntriesByType('resource')
      .filter((one) => /\\/answer\\b/.test(one.name)).slice(-{turns})
      .map((one) => one.responseStart - one.requestStart)""")
    return *median_and_p95(pictures), statistics.median(waits), server_ms, page_ms


def opened_drawings(browser, turns):
    for name in DRAWINGS:
        browser.run(f"document.getElementById('view-{name}').open = true")
    ready = " && ".join(f"explorer.views.took('{name}').length > {{0}}" for name in DRAWINGS)
    browser.wait_for(ready.format(0))
    for i in range(turns):
        turn(browser, 1 if i % 2 else -1)
        browser.wait_for(ready.format(i + 1))
    took = {name: browser.run(f"explorer.views.took('{name}').slice(1)") for name in DRAWINGS}
    for name in DRAWINGS:
        browser.run(f"document.getElementById('view-{name}').open = false")
    return {name: median_and_p95(list_ms) for name, list_ms in took.items()}


def panned(browser, frames=240):
    """Pans a quarter of the step there and back, a little with every frame."""
    begun = page_seconds(browser)
    times = browser.run(f"""new Promise((done) => {{
      const view = explorer.timeline, times = [];
      view.fit();
      const whole = view.looks[1], quarter = whole / 4;
      const frame = (at) => {{
        times.push(at);
        const from = (1 - Math.abs(times.length / {frames} * 2 - 1)) * 3 * quarter;
        view.look(from, from + quarter);
        if (times.length <= {frames}) requestAnimationFrame(frame);
        else {{ view.fit(); done(times); }}
      }};
      requestAnimationFrame(frame);
    }})""")
    page_ms = 1000 * (page_seconds(browser) - begun) / frames
    gaps = [b - a for a, b in zip(times, times[1:])]
    return 1000 * len(gaps) / sum(gaps), median_and_p95(gaps)[1], page_ms


def started(orrery, options):
    explorer = subprocess.Popen([orrery, "explore", "--no-open", *options.split()],
                                stdout=subprocess.PIPE, text=True)
    address = ""
    for line in explorer.stdout:
        if found := re.search(r"http://\S+", line):
            address = found.group(0)
        if "Ctrl-C" in line:
            break
    return explorer, address


def measure(orrery, name, options, turns):
    explorer, address = started(orrery, options)
    browser = Chromium()
    try:
        browser.call("Performance.enable", timeDomain="threadTicks")
        browser.open(address, 1400, 1000)
        browser.wait_for(settled)
        turn(browser, -1)  # Once, unmeasured: what is computed on first use.
        turn(browser, 1)
        slices = browser.run("explorer.slices")
        median, p95, reply_ms, server_ms, page_ms = knob_to_picture(browser, explorer.pid, turns)
        print(f"{name}: {slices:,} slices")
        print(f"  knob to picture {median:.0f} ms, p95 {p95:.0f} ms; the figures' first byte after "
              f"{reply_ms:.0f} ms")
        print(f"  processors for a whole turn: server {server_ms:.0f} ms, page {page_ms:.0f} ms")
        fps, worst, frame_ms = panned(browser)
        print(f"  panning {fps:.1f} frames a second, p95 {worst:.1f} ms apart; page "
              f"{frame_ms:.2f} ms a frame")
        for drawing, (median, p95) in opened_drawings(browser, turns // 2).items():
            print(f"  {drawing} {median:.0f} ms, p95 {p95:.0f} ms after the timeline")
        size = browser.run("""performance.getEntries()
          .filter((one) => ['navigation', 'script', 'link', 'css'].includes(one.initiatorType))
          .reduce((sum, one) => sum + one.encodedBodySize, 0)""")
        print(f"  page {size / 1000:.0f} kB", flush=True)
    finally:
        browser.end()
        explorer.send_signal(signal.SIGINT)
        explorer.wait()


def main():
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    print(f"{time.strftime('%B %Y')}, {os.cpu_count()} cores, load "
          f"{os.getloadavg()[0]:.1f} before", flush=True)
    for name, options in PLANS:
        measure(sys.argv[1], name, options, turns)
    print(f"load {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
