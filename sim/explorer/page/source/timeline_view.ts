// The step over time, on a canvas. Rows are written as pixels, so that a hundred thousand slices
// take no longer than a screen has pixels; what is narrower than a pixel darkens it by its share.

import { byId, fill, h } from "./dom";
import { bytes, seconds, words } from "./format";
import { colour, inkOn } from "./palette";
import { Timeline, Track } from "./timeline_data";

interface Row { track: number; top: number; height: number; rank: number }

const rankGap = 10, rankTitle = 16, wide = 15, narrow = 7, inner = 9;
const shades = 16;

export class TimelineView {
  timeline: Timeline | null = null;
  private rows: Row[] = [];
  private titles: { top: number; text: string }[] = [];
  private height = 0;
  private from = 0;
  private to = 1;
  private wide = 0;
  private hovered = -1;
  private selected = -1;
  private queued = false;
  private pixels: ImageData | null = null;
  private line = new Uint32Array(0);
  private shade = new Uint32Array(0);
  private arrows = new Map<number, number[]>();
  /** Milliseconds that drawings took, for who measures. */
  readonly drawn: number[] = [];
  /** What else is drawn on its axis: called after each drawing. */
  readonly followers: (() => void)[] = [];

  private readonly frame = byId<HTMLDivElement>("timeline-frame");
  private readonly spacer = byId<HTMLDivElement>("timeline-spacer");
  private readonly canvas = byId<HTMLCanvasElement>("timeline");
  private readonly overview = byId<HTMLCanvasElement>("timeline-overview");
  private readonly details = byId<HTMLDivElement>("timeline-details");
  private readonly scale = byId<HTMLSpanElement>("timeline-scale");

  constructor() {
    this.frame.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerleave", () => this.hover(-1));
    this.canvas.addEventListener("dblclick", (event) => this.zoomTo(this.sliceAt(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.overview.addEventListener("pointerdown", (event) => this.jump(event));
    this.overview.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) this.jump(event);
    });
    byId("zoom-in").addEventListener("click", () => this.zoom(0.5));
    byId("zoom-out").addEventListener("click", () => this.zoom(2));
    byId("zoom-fit").addEventListener("click", () => this.fit());
    new ResizeObserver(() => this.draw()).observe(this.frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.shade = new Uint32Array(0);
      this.draw();
    });
  }

  show(timeline: Timeline | null): void {
    const before = this.timeline;
    // Who looks at a part of the step goes on looking at that part while a knob turns.
    const share = before ? [this.from / this.length(), this.to / this.length()] : [0, 1];
    this.timeline = timeline;
    this.hovered = this.selected = -1;
    this.shade = new Uint32Array(0);
    this.arrows.clear();
    this.frame.hidden = this.overview.hidden = !timeline;
    if (!timeline) {
      this.describe();
      return;
    }
    for (let i = 0; i < timeline.from.length; ++i)
      for (const end of [timeline.from[i], timeline.to[i]])
        this.arrows.set(end, [...(this.arrows.get(end) ?? []), i]);
    this.from = share[0] * this.length();
    this.to = share[1] * this.length();
    this.layOut(timeline);
    this.describe();
    this.draw();
  }

  private length(): number { return this.timeline?.header.step_ns ?? 1; }
  // Asking the page for it again and again would take longer than the drawing.
  private width(): number { return this.wide; }
  private x(time: number): number {
    return ((time - this.from) / (this.to - this.from)) * this.width();
  }
  private time(x: number): number {
    return this.from + (x / this.width()) * (this.to - this.from);
  }

  private layOut(timeline: Timeline): void {
    this.rows = [];
    this.titles = [];
    let top = 0;
    let rank = -1;
    timeline.header.tracks.forEach((track, index) => {
      if (track.of !== rank) {
        rank = track.of;
        const of = timeline.header.ranks[rank];
        if (top > 0) top += rankGap;
        const twins = of.ranks > 1 ? ` · stands for ${of.ranks.toLocaleString("en-US")}` : "";
        this.titles.push({ top, text: `rank ${of.rank} · stage ${of.stage}${twins}` });
        top += rankTitle;
      }
      const height = track.name === "compute" ? wide + inner * timeline.depths[index] : narrow;
      this.rows.push({ track: index, top, height, rank });
      top += height + 1;
    });
    this.height = top + 4;
    this.spacer.style.height = `${this.height}px`;
    this.frame.style.height = `${Math.min(this.height + 2, innerWidth < 700 ? 320 : 460)}px`;
  }

  /** All ranks below each other, as on paper, or as many as the screen has room for; at once. */
  unroll(all: boolean): void {
    if (this.timeline) this.layOut(this.timeline);
    if (all) this.frame.style.height = `${Math.min(this.height + 2, 900)}px`;
    this.shade = new Uint32Array(0);
    this.paint();
    for (const follow of this.followers) follow();
  }

  draw(): void {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      const begun = performance.now();
      this.paint();
      for (const follow of this.followers) follow();
      this.drawn.push(performance.now() - begun);
      if (this.drawn.length > 1000) this.drawn.shift();
    });
  }

  private shadesOf(timeline: Timeline, ground: string): void {
    const rgb = (hex: string) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    const back = rgb(ground);
    this.shade = new Uint32Array(timeline.header.categories.length * (shades + 1));
    timeline.header.categories.forEach((name, category) => {
      const front = rgb(colour(name));
      for (let level = 0; level <= shades; ++level) {
        const [r, g, b] = front.map((c, i) => Math.round(back[i] + ((c - back[i]) * level) / shades));
        this.shade[category * (shades + 1) + level] = (255 << 24) | (b << 16) | (g << 8) | r;
      }
    });
  }

  private paint(): void {
    const timeline = this.timeline;
    this.wide = this.frame.clientWidth;
    if (!timeline || this.wide === 0) return;
    const ratio = devicePixelRatio || 1;
    const style = getComputedStyle(this.frame);
    const ground = style.getPropertyValue("--ground").trim();
    const ink = style.getPropertyValue("--ink-2").trim();
    if (this.shade.length === 0) this.shadesOf(timeline, ground);
    const cssHeight = this.frame.clientHeight;
    const width = Math.round(this.width() * ratio), height = Math.round(cssHeight * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.canvas.style.height = `${cssHeight}px`;
    }
    const context = this.canvas.getContext("2d", { alpha: false })!;
    if (!this.pixels || this.pixels.width !== width || this.pixels.height !== height) {
      this.pixels = context.createImageData(width, height);
      this.line = new Uint32Array(width);
    }
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(ground.slice(at, at + 2), 16));
    const empty = (255 << 24) | (b << 16) | (g << 8) | r;
    const all = new Uint32Array(this.pixels.data.buffer);
    all.fill(empty);

    const scroll = this.frame.scrollTop;
    const perPixel = (this.to - this.from) / width;
    for (const row of this.rows) {
      const top = row.top - scroll;
      if (top > cssHeight || top + row.height < 0) continue;
      const track = timeline.header.tracks[row.track];
      for (let depth = 0; depth <= timeline.depths[row.track]; ++depth) {
        const y = top + (depth === 0 ? 0 : wide + inner * (depth - 1) + 1);
        const tall = track.name !== "compute" ? narrow : depth === 0 ? wide : inner - 1;
        this.paintLine(timeline, track, depth, width, perPixel, empty);
        const first = Math.max(0, Math.round(y * ratio));
        const last = Math.min(height, Math.round((y + tall) * ratio));
        for (let at = first; at < last; ++at) all.set(this.line, at * width);
      }
    }
    context.putImageData(this.pixels, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.write(context, timeline, scroll, cssHeight, ink);
    this.paintOverview(ground, ink);
    this.scale.textContent =
      `${seconds((this.to - this.from) * 1e-9, 3)} from ${seconds(this.from * 1e-9, 3)}`;
  }

  private paintLine(timeline: Timeline, track: Track, depth: number, width: number,
                    perPixel: number, empty: number): void {
    const { start, finish, category } = timeline;
    const line = this.line;
    line.fill(empty);
    const end = track.first + track.count;
    let i = timeline.lowerBound(track, this.from);
    // What began before and still goes on.
    while (i > track.first && (timeline.depth[i - 1] > 0 || finish[i - 1] > this.from)) {
      --i;
      if (timeline.depth[i] === 0) break;
    }
    let column = -1, covered = 0, longest = 0, kind = 0;
    const flush = () => {
      if (column >= 0 && column < width && covered > 0) {
        const level = Math.max(3, Math.min(shades, Math.round((covered / perPixel) * shades)));
        line[column] = this.shade[kind * (shades + 1) + level];
      }
      covered = longest = 0;
    };
    const scale = 1 / perPixel;
    for (; i < end && start[i] < this.to; ++i) {
      if (timeline.depth[i] !== depth || finish[i] <= this.from) continue;
      const x0 = (start[i] - this.from) * scale, x1 = (finish[i] - this.from) * scale;
      if (x1 - x0 >= 1.5) {
        flush();
        column = -1;
        const left = Math.max(0, Math.round(x0)), right = Math.min(width, Math.round(x1));
        const base = category[i] * (shades + 1);
        line.fill(this.shade[base + shades], left, right);
        // An edge tells two of a kind apart.
        if (right - left > 3 && right < width) line[right - 1] = this.shade[base + shades / 2];
        continue;
      }
      const at = x0 | 0;
      if (at !== column) {
        flush();
        column = at;
      }
      const long = finish[i] - start[i];
      covered += long;
      if (long > longest) {
        longest = long;
        kind = category[i];
      }
    }
    flush();
  }

  private write(context: CanvasRenderingContext2D, timeline: Timeline, scroll: number,
                height: number, ink: string): void {
    context.textBaseline = "middle";
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = ink;
    for (const title of this.titles) {
      const y = title.top - scroll + rankTitle / 2;
      if (y > -10 && y < height + 10) context.fillText(title.text, 4, y);
    }
    const room = 26 * (this.to - this.from) / this.wide;  // What is shorter has none for a word.
    for (const row of this.rows) {
      const track = timeline.header.tracks[row.track];
      const top = row.top - scroll;
      if (track.name !== "compute" || top > height || top + row.height < 0) continue;
      for (let i = Math.max(track.first, timeline.lowerBound(track, this.from) - 2);
        i < track.first + track.count && timeline.start[i] < this.to; ++i) {
        if (timeline.finish[i] - timeline.start[i] < room) continue;
        const left = Math.max(0, this.x(timeline.start[i]));
        const right = Math.min(this.wide, this.x(timeline.finish[i]));
        const depth = timeline.depth[i];
        const name = timeline.header.names[timeline.name[i]];
        const letters = Math.floor((right - left - 6) / 6);
        const text = name.length <= letters ? name : name.split(" ").slice(0, 2).join(" ");
        if (text.length > letters) continue;
        context.font = depth === 0 ? "11px system-ui, sans-serif" : "9px system-ui, sans-serif";
        context.fillStyle = inkOn(colour(timeline.header.categories[timeline.category[i]]));
        const y = top + (depth === 0 ? wide / 2 : wide + inner * (depth - 0.5));
        context.fillText(text, left + 3, y + 0.5);
      }
    }
    const shown = this.selected >= 0 ? this.selected : this.hovered;
    if (shown >= 0) this.mark(context, timeline, shown, scroll, ink);
    if (this.hovered >= 0 && this.hovered !== shown)
      this.frameSlice(context, timeline, this.hovered, scroll, ink);
  }

  private boxOf(timeline: Timeline, slice: number, scroll: number) {
    const row = this.rows[timeline.trackOf(slice)];
    const compute = timeline.header.tracks[row.track].name === "compute";
    const depth = timeline.depth[slice];
    const y = row.top - scroll + (depth === 0 ? 0 : wide + inner * (depth - 1) + 1);
    return {
      left: this.x(timeline.start[slice]), right: this.x(timeline.finish[slice]), top: y,
      height: !compute ? narrow : depth === 0 ? wide : inner - 1,
    };
  }

  private frameSlice(context: CanvasRenderingContext2D, timeline: Timeline, slice: number,
                     scroll: number, ink: string): void {
    const box = this.boxOf(timeline, slice, scroll);
    context.strokeStyle = ink;
    context.lineWidth = 2;
    context.strokeRect(box.left - 1, box.top - 1, Math.max(3, box.right - box.left + 2),
                       box.height + 2);
  }

  // A slice, and the transfers that it waits for or that wait for it.
  private mark(context: CanvasRenderingContext2D, timeline: Timeline, slice: number, scroll: number,
               ink: string): void {
    this.frameSlice(context, timeline, slice, scroll, ink);
    context.lineWidth = 1.5;
    for (const arrow of this.arrows.get(slice) ?? []) {
      const from = this.boxOf(timeline, timeline.from[arrow], scroll);
      const to = this.boxOf(timeline, timeline.to[arrow], scroll);
      const bend = Math.max(12, Math.abs(to.left - from.right) / 2);
      context.beginPath();
      context.moveTo(from.right, from.top + from.height / 2);
      context.bezierCurveTo(from.right + bend, from.top, to.left - bend, to.top, to.left,
                            to.top + to.height / 2);
      context.stroke();
      context.fillStyle = ink;
      context.beginPath();
      context.arc(to.left, to.top + to.height / 2, 3, 0, 7);
      context.fill();
    }
  }

  private paintOverview(ground: string, ink: string): void {
    const ratio = devicePixelRatio || 1;
    const width = this.overview.clientWidth, height = this.overview.clientHeight;
    this.overview.width = width * ratio;
    this.overview.height = height * ratio;
    const context = this.overview.getContext("2d")!;
    context.scale(ratio, ratio);
    context.fillStyle = ground;
    context.fillRect(0, 0, width, height);
    context.fillStyle = ink;
    context.globalAlpha = 0.18;
    context.fillRect(0, height / 2 - 1, width, 2);
    context.globalAlpha = 1;
    const left = (this.from / this.length()) * width;
    const wideNow = Math.max(3, ((this.to - this.from) / this.length()) * width);
    context.globalAlpha = 0.35;
    context.fillRect(left, 2, wideNow, height - 4);
    context.globalAlpha = 1;
  }

  private jump(event: PointerEvent): void {
    const middle = (event.offsetX / this.overview.clientWidth) * this.length();
    this.look(middle - (this.to - this.from) / 2, middle + (this.to - this.from) / 2);
  }

  /** From and to, in nanoseconds of the step. */
  look(from: number, to: number): void {
    const least = 20;  // ns: shorter than any kernel.
    const wish = Math.min(this.length(), Math.max(least, to - from));
    this.from = Math.min(Math.max(0, from), this.length() - wish);
    this.to = this.from + wish;
    this.draw();
  }
  get looks(): [number, number] { return [this.from, this.to]; }
  /** Pixels that the axis is wide; 0: nothing is shown. */
  get axisWidth(): number { return this.timeline ? this.wide : 0; }

  fit(): void { this.look(0, this.length()); }

  zoom(factor: number, at = (this.from + this.to) / 2): void {
    this.look(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share: number): void {
    const by = share * (this.to - this.from);
    this.look(this.from + by, this.to + by);
  }

  private zoomTo(slice: number): void {
    if (slice < 0 || !this.timeline) return;
    const { start, finish } = this.timeline;
    const margin = (finish[slice] - start[slice]) * 0.1;
    this.look(start[slice] - margin, finish[slice] + margin);
  }

  /** `event` of its canvas or of one on its axis. */
  wheel(event: WheelEvent): void {
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * unit * 0.004), this.time(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan(((event.deltaX || event.deltaY) * unit) / this.width());
    }
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.focus({ preventScroll: true });
    const x = event.clientX, y = event.clientY, looks = this.looks, scroll = this.frame.scrollTop;
    const slice = this.sliceAt(event);
    let moved = false;
    this.canvas.setPointerCapture(event.pointerId);
    const drag = (now: PointerEvent) => {
      if (Math.abs(now.clientX - x) + Math.abs(now.clientY - y) > 3) moved = true;
      if (!moved) return;
      const by = ((now.clientX - x) / this.width()) * (looks[1] - looks[0]);
      this.look(looks[0] - by, looks[1] - by);
      this.frame.scrollTop = scroll - (now.clientY - y);
    };
    const up = () => {
      this.canvas.removeEventListener("pointermove", drag);
      this.canvas.removeEventListener("pointerup", up);
      this.canvas.removeEventListener("pointercancel", up);
      if (!moved) this.select(slice === this.selected ? -1 : slice);
    };
    this.canvas.addEventListener("pointermove", drag);
    this.canvas.addEventListener("pointerup", up);
    this.canvas.addEventListener("pointercancel", up);
  }

  private move(event: PointerEvent): void {
    if (event.buttons === 0) this.hover(this.sliceAt(event));
  }

  private sliceAt(event: MouseEvent): number {
    const timeline = this.timeline;
    if (!timeline) return -1;
    const y = event.offsetY + this.frame.scrollTop;
    const row = this.rows.find((r) => y >= r.top && y < r.top + r.height + 1);
    if (!row) return -1;
    const track = timeline.header.tracks[row.track];
    const depth = track.name !== "compute" || y < row.top + wide ? 0
      : 1 + Math.floor((y - row.top - wide) / inner);
    const near = (2 / this.width()) * (this.to - this.from);
    const time = this.time(event.offsetX);
    const hit = timeline.at(track, time, depth);
    if (hit >= 0) return hit;
    const next = timeline.lowerBound(track, time - near);
    return next < track.first + track.count && timeline.start[next] < time + near &&
      timeline.depth[next] === depth ? next : -1;
  }

  private hover(slice: number): void {
    if (slice === this.hovered) return;
    this.hovered = slice;
    this.describe();
    this.draw();
  }

  select(slice: number): void {
    this.selected = slice;
    this.describe();
    this.draw();
  }
  get selection(): number { return this.selected; }

  private key(event: KeyboardEvent): void {
    const timeline = this.timeline;
    if (!timeline || event.ctrlKey || event.metaKey || event.altKey) return;
    const known: Record<string, () => void> = {
      ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15),
      ArrowUp: () => { this.frame.scrollTop -= 40; },
      ArrowDown: () => { this.frame.scrollTop += 40; },
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6),
      "0": () => this.fit(), Home: () => this.fit(),
      Enter: () => this.zoomTo(this.selected >= 0 ? this.selected : this.hovered),
      Escape: () => this.select(-1),
      "]": () => this.step(1), "[": () => this.step(-1),
    };
    const act = known[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  // To the next slice of the track, or to the first that is in sight.
  private step(by: number): void {
    const timeline = this.timeline!;
    let slice = this.selected;
    if (slice < 0) {
      slice = timeline.lowerBound(timeline.header.tracks[0], this.from);
    } else {
      const track = timeline.header.tracks[timeline.trackOf(slice)];
      slice = Math.min(track.first + track.count - 1, Math.max(track.first, slice + by));
    }
    const { start, finish } = timeline;
    if (finish[slice] < this.from || start[slice] > this.to) {
      const half = (this.to - this.from) / 2, middle = (start[slice] + finish[slice]) / 2;
      this.look(middle - half, middle + half);
    }
    this.select(slice);
  }

  // What a slice is, why it did not start earlier, and for whom it waited.
  private describe(): void {
    const timeline = this.timeline;
    const slice = this.selected >= 0 ? this.selected : this.hovered;
    if (!timeline) {
      fill(this.details, h("p", { class: "quiet" }, "A plan that cannot run has no timeline."));
      return;
    }
    if (slice < 0) {
      const { ranks, simulated, slices } = timeline.header;
      const some = ranks.length < simulated ? `${ranks.length} of ${simulated}` : `${simulated}`;
      fill(this.details, h("p", { class: "quiet" },
        `${slices.toLocaleString("en-US")} slices on ${some} simulated ranks. Drag to pan, ` +
        "Ctrl and wheel to zoom, double-click to fill the width with a slice; with the keyboard " +
        "arrows, + and −, [ and ], Enter."));
      return;
    }
    const track = timeline.header.tracks[timeline.trackOf(slice)];
    const rank = timeline.rankOf(slice);
    const { start, finish } = timeline;
    const facts: string[] = [
      `${seconds((finish[slice] - start[slice]) * 1e-9)} from ${seconds(start[slice] * 1e-9, 6)}`,
      `rank ${rank.rank}, stage ${rank.stage}`, track.name];
    if (timeline.bytes[slice] > 0) facts.push(bytes(timeline.bytes[slice]));
    if (timeline.exposed[slice] > 0)
      facts.push(`${seconds(timeline.exposed[slice] * 1e-6, 3)} of it waits for communication`);
    const name = timeline.header.names[timeline.name[slice]];
    const kind = words(timeline.header.categories[timeline.category[slice]]);
    const waits = this.waiting(timeline, slice);
    fill(this.details,
         h("p", {}, h("strong", {}, name), ` ${kind} · ${facts.join(" · ")}`),
         waits !== "" && h("p", {}, waits));
  }

  private waiting(timeline: Timeline, slice: number): string {
    const { start, finish } = timeline;
    const track = timeline.header.tracks[timeline.trackOf(slice)];
    const name = (i: number) => timeline.header.names[timeline.name[i]];
    const said: string[] = [];
    if (track.name === "compute" && timeline.depth[slice] === 0) {
      let before = slice - 1;
      while (before >= track.first && timeline.depth[before] > 0) --before;
      const idle = start[slice] - (before >= track.first ? finish[before] : 0);
      const feeds = timeline.feeds(slice);
      const late = feeds.filter((i) => Math.abs(finish[i] - start[slice]) <= 2);
      if (idle > 1 && late.length > 0)
        said.push(`Idle for ${seconds(idle * 1e-9, 3)} before: it waited for ` +
          late.map((i) => `${name(i)} from rank ${timeline.rankOf(i).rank}`).join(" and ") + ".");
      else if (idle > 1)
        said.push(`Idle for ${seconds(idle * 1e-9, 3)} before: by the order of the schedule, or ` +
          "for what has no track.");
      else if (before >= track.first) said.push("It starts as soon as the rank is free.");
    }
    for (const next of timeline.fedBy(slice))
      said.push(`${name(next)} of rank ${timeline.rankOf(next).rank} waits for it.`);
    return said.join(" ");
  }
}

/** Colours of the kinds that a timeline has, with their names. */
export function legend(timeline: Timeline): HTMLElement {
  return h("ul", { class: "legend" }, ...timeline.header.categories.map((name) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = colour(name);
    return h("li", {}, swatch, words(name));
  }));
}
