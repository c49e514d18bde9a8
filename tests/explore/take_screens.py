#!/usr/bin/env python3
"""usage: take_screens.py ORRERY FOLDER [NAME ...]

Makes the pictures of docs/guides/explorer.md again: starts the
explorer of the program ORRERY, does in a headless Chromium what the pages say, and writes
FOLDER/NAME.png with at most 256 colours. Needs chromium; nothing beside Python's own library.
"""
import base64
import collections
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib


class Chromium:
    """One page, driven by the DevTools Protocol over a pipe: JSON, ended by a zero byte."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory()
        orders, replies = os.pipe(), os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.setsid()
            low, high = os.dup(orders[0]), os.dup(replies[1])
            keep = [os.dup2(low, 40), os.dup2(high, 41)]
            os.dup2(keep[0], 3)
            os.dup2(keep[1], 4)
            os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
            os.execvp("chromium", [
                "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
                "--remote-debugging-pipe", "--no-first-run", "--disable-dev-shm-usage",
                "--disable-background-networking", "--force-prefers-reduced-motion",
                "--hide-scrollbars", "--user-data-dir=" + self.profile.name, "about:blank"])
        os.close(orders[0])
        os.close(replies[1])
        self.into, self.out = orders[1], replies[0]
        self.held, self.last, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method, **parameters):
        self.last += 1
        order = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            order["sessionId"] = self.session
        os.write(self.into, json.dumps(order).encode() + b"\0")
        while True:
            while b"\0" not in self.held:
                part = os.read(self.out, 1 << 16)
                if not part:
                    sys.exit("chromium ended")
                self.held += part
            text, self.held = self.held.split(b"\0", 1)
            message = json.loads(text)
            if message.get("id") == self.last:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, condition, most_s=120):
        until = time.monotonic() + most_s
        while not self.run(f"(() => {{ try {{ return !!({condition}) }} catch {{ }} }})()"):
            if time.monotonic() > until:
                sys.exit(f"does not come: {condition}")
            time.sleep(0.05)

    def open(self, address, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)

    def picture(self, of=None):
        """PNG of what is in sight; `of`: from the left edge of this element on."""
        time.sleep(0.4)  # What is drawn with the next frame, and what moves with it.
        clip = {}
        if of:
            clip["clip"] = self.run(f"""(() => {{
              const left = document.querySelector('{of}').getBoundingClientRect().left - 6;
              return {{x: left, y: scrollY + 48, width: innerWidth - left - 24,
                       height: innerHeight - 48, scale: 1}};
            }})()""")
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **clip)["data"])

    def end(self):
        os.killpg(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        self.profile.cleanup()


def pixels_of(png):
    """Width, height and rows of RGB bytes of a PNG of 8-bit RGB or RGBA (RFC 2083)."""
    at, packed, head = 8, b"", None
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", png[at + 8:at + 8 + size])
        elif kind == b"IDAT":
            packed += png[at + 8:at + 8 + size]
        at += 12 + size
    width, height, depth, colour = head[:4]
    assert depth == 8 and colour in (2, 6) and head[6] == 0
    wide = 4 if colour == 6 else 3
    raw, rows, before = zlib.decompress(packed), [], bytearray(width * wide)
    for y in range(height):
        start = y * (width * wide + 1)
        how, row = raw[start], bytearray(raw[start + 1:start + 1 + width * wide])
        if how == 1:
            for i in range(wide, len(row)):
                row[i] = (row[i] + row[i - wide]) & 255
        elif how == 2:
            row = bytearray((a + b) & 255 for a, b in zip(row, before))
        elif how == 3:
            for i in range(len(row)):
                left = row[i - wide] if i >= wide else 0
                row[i] = (row[i] + (left + before[i]) // 2) & 255
        elif how == 4:
            for i in range(len(row)):
                a = row[i - wide] if i >= wide else 0
                b, c = before[i], before[i - wide] if i >= wide else 0
                pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
                row[i] = (row[i] + (a if pa <= pb and pa <= pc else b if pb <= pc else c)) & 255
        before = row
        rows.append([tuple(row[i:i + 3]) for i in range(0, len(row), wide)])
    return width, height, rows


def with_few_colours(png):
    """The same with a palette: frequent colours that differ, and for the others the nearest."""
    width, height, rows = pixels_of(png)
    counts = collections.Counter()
    for row in rows:
        counts.update(row)
    palette = []
    for colour, _ in counts.most_common():
        apart = all(sum((a - b) ** 2 for a, b in zip(colour, other)) > 100 for other in palette)
        if apart and len(palette) < 256:
            palette.append(colour)
    place = {colour: i for i, colour in enumerate(palette)}

    def nearest(colour):
        if colour not in place:
            place[colour] = min(range(len(palette)), key=lambda i: sum(
                (a - b) ** 2 for a, b in zip(palette[i], colour)))
        return place[colour]

    raw = b"".join(b"\0" + bytes(nearest(colour) for colour in row) for row in rows)

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))

    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
            chunk(b"PLTE", b"".join(bytes(colour) for colour in palette)) +
            chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


settled = ("window.explorer && explorer.settled > 0 && explorer.answer && "
           "!document.body.classList.contains('working')")


def to(part):
    return f"document.getElementById('{part}').scrollIntoView({{block: 'start'}})"


def choose(knob, word):
    """Turns a knob, whatever control it has."""
    return f"""(() => {{
      const radio = document.querySelector(`input[name=knob-{knob}][value="{word}"]`);
      if (radio) return radio.click();
      const control = document.getElementById('knob-{knob}');
      control.value = '{word}';
      control.dispatchEvent(new Event('change'));
    }})()"""


def screens(browser, address):
    """Does what the pages say; yields a picture's name, and of which element it is, when it is to
    be taken."""
    browser.open(address, 1200, 800)
    browser.wait_for(settled)
    yield "explorer-1-start", None

    browser.run("document.getElementById('pin').click()")
    browser.run(choose("recompute", "none"))
    browser.wait_for("explorer.answer.state.recompute === 'none' && " + settled)
    browser.wait_for("document.getElementById('comparison').textContent !== ''")
    yield "explorer-2-pinned", None

    browser.run("document.getElementById('timeline').focus()")
    browser.run(to("timeline-title"))
    browser.run("""(() => {
      const view = explorer.timeline, t = view.timeline, { first, count } = t.header.tracks[0];
      // A pass in which kernels are drawn, between its neighbours.
      let slice = first;
      while (slice < first + count && t.depth[slice] === 0) ++slice;
      view.zoomTo(slice - 1);
      view.select(slice + 4);
    })()""")
    yield "explorer-3-kernel", None

    browser.run(to("batches-section"))
    browser.wait_for("explorer.batches.settled > 0 && "
                     "document.querySelector('#batches-speed-chart .first')")
    yield "explorer-4-batches", None

    browser.run("document.getElementById('search').click()")
    browser.wait_for("explorer.search.stage === 'done'")
    browser.run(to("search-section"))
    yield "explorer-5-search", None

    # Those of docs/guides/explorer.md: a grid, and the page on a narrow screen in the dark.
    browser.open(address.replace("#", "#tokens=300B&") if "#" in address else address, 1200, 800)
    browser.wait_for(settled)
    browser.wait_for("document.getElementById('sweep-key-0').options.length > 5")
    for index, (key, values) in enumerate([("tp", "1,2,4,8"), ("pp", "4,8,16,32"), ("", "")]):
        browser.run(f"""(() => {{
          const key = document.getElementById('sweep-key-{index}');
          key.value = '{key}';
          key.dispatchEvent(new Event('change'));
          const values = document.getElementById('sweep-values-{index}');
          values.value = '{values}';
          values.dispatchEvent(new Event('input'));
        }})()""")
    browser.run("document.getElementById('sweep').click()")
    browser.wait_for("explorer.sweep.stage === 'done'")
    browser.run(to("sweep-section"))
    yield "explorer-grid", None

    browser.open(address, 420, 800, dark=True)
    browser.wait_for(settled)
    browser.run(to("timeline-title"))
    yield "explorer-narrow", None

    # What links carry while stages release their gradients.
    browser.open(address.partition("#")[0] + "#model=llama3-70b&system=dgx-h100&gpus=64&tp=4&pp=4"
                 "&gbs=96", 1400, 1650)
    browser.wait_for(settled)
    for name in "memory", "cluster":
        browser.run(f"document.getElementById('view-{name}').open = true")
    browser.wait_for("document.querySelector('#cluster-kinds .domain')")
    browser.run("(s => explorer.timeline.look(0.72 * s, s))(explorer.timeline.looks[1])")
    browser.wait_for("explorer.cluster.refined > 0")
    browser.run("[...document.querySelectorAll('#cluster-kinds [id^=bundle-kind0-nic]')][0].click()")
    browser.run(to("timeline-title"))
    yield "explorer-views", "#timeline-frame"


def main():
    orrery, folder = sys.argv[1:3]
    wanted = sys.argv[3:]
    explorer = subprocess.Popen([orrery, "explore", "--no-open"], stdout=subprocess.PIPE, text=True)
    browser = None
    try:
        address = None
        for line in explorer.stdout:
            if found := re.search(r"http://\S+", line):
                address = found.group(0)
            if "Ctrl-C" in line:
                break
        browser = Chromium()
        for name, element in screens(browser, address):
            if not wanted or name in wanted:
                with open(os.path.join(folder, name + ".png"), "wb") as file:
                    file.write(with_few_colours(browser.picture(element)))
    finally:
        if browser:
            browser.end()
        explorer.send_signal(signal.SIGINT)
        explorer.wait()


if __name__ == "__main__":
    main()
