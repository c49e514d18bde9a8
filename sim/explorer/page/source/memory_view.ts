// Memory of the simulated ranks over the step, on the timeline's axis
// (sim/explorer/views.hpp).

import type { LayersOfKind } from "./api";
import { byId, fill, h } from "./dom";
import { gigabytes, seconds } from "./format";
import { keptOfStage } from "./kinds_view";
import { memoryColours as colours } from "./memory_parts";
import type { TimelineView } from "./timeline_view";
import type { View } from "./views";

interface RankMemory {
  rank: number; stage: number; ranks: number; weights_bytes: number; gradients_bytes: number;
  optimizer_bytes: number; other_bytes: number; peak_bytes: number; peak_ns: number;
  counted_bytes: number; time_ns: number[]; kept_bytes: number[]; working_bytes: number[];
  held: number[];
}
interface MemoryOverTime {
  step_ns: number; capacity_bytes: number; simulated: number; ranks: RankMemory[];
}

/** A micro-batch whose activations are held, wholly or in part. */
interface InFlight { microbatch: number; chunk: number; bytes: number; share: number }

const titleHeight = 15, rowHeight = 62, gap = 9;
const heldColumns = 7;
const fixedParts = [["weights", "weights_bytes"], ["gradients", "gradients_bytes"],
                    ["optimizer", "optimizer_bytes"], ["other", "other_bytes"]] as const;

function fixed(rank: RankMemory): number {
  return fixedParts.reduce((sum, [, key]) => sum + rank[key], 0);
}

/** First corner later than `time`. */
function after(times: number[], time: number): number {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

export function memoryAt(rank: RankMemory, time: number): { kept: number; working: number } {
  const { time_ns: times, kept_bytes: kept, working_bytes: working } = rank;
  const next = Math.min(times.length - 1, Math.max(1, after(times, time)));
  const long = times[next] - times[next - 1];
  const share = long > 0 ? Math.min(1, Math.max(0, (time - times[next - 1]) / long)) : 1;
  return { kept: kept[next - 1] + share * (kept[next] - kept[next - 1]),
           working: working.length > 0 ? working[next - 1] : 0 };
}

export function inFlightAt(rank: RankMemory, time: number): InFlight[] {
  const found: InFlight[] = [];
  for (let i = 0; i < rank.held.length; i += heldColumns) {
    const [microbatch, chunk, from, full, given, gone, bytes] = rank.held.slice(i, i + heldColumns);
    if (time <= from || time >= gone) continue;
    const share = time < full ? (time - from) / (full - from)
      : time > given ? (gone - time) / (gone - given) : 1;
    found.push({ microbatch, chunk, bytes, share });
  }
  return found;
}

export class MemoryView implements View {
  readonly name = "memory";
  private data: MemoryOverTime | null = null;
  private row = 0;
  private cursor = -1;  // Nanoseconds; -1: none.
  private hovering = false;
  private alone = false;  // Activations, without what stays.

  private readonly frame = byId<HTMLDivElement>("memory-frame");
  private readonly spacer = byId<HTMLDivElement>("memory-spacer");
  private readonly canvas = byId<HTMLCanvasElement>("memory-canvas");
  private readonly details = byId<HTMLDivElement>("memory-details");

  /** `kinds`: of the answer's layers, if they differ. */
  constructor(private readonly timeline: TimelineView,
              private readonly kinds: () => LayersOfKind[]) {
    timeline.followers.push(() => this.draw());
    this.frame.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("wheel", (event) => timeline.wheel(event), { passive: false });
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => {
      if (!this.hovering) return;
      this.cursor = -1;
      this.update();
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    const button = byId<HTMLButtonElement>("memory-alone");
    button.addEventListener("click", () => {
      this.alone = !this.alone;
      button.setAttribute("aria-pressed", String(this.alone));
      fill(byId("memory-legend"), this.data && this.legend());
      this.draw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(data: unknown): void {
    this.data = data as MemoryOverTime;
    this.row = Math.min(this.row, this.data.ranks.length - 1);
    this.cursor = -1;
    const height = this.data.ranks.length * (titleHeight + rowHeight + gap) + 2;
    this.spacer.style.height = `${height}px`;
    this.frame.style.height = `${Math.min(height + 2, innerWidth < 700 ? 330 : 470)}px`;
    fill(byId("memory-legend"), this.legend());
    fill(byId("memory-peaks"), this.peaks());
    this.update();
  }

  /** All ranks below each other, as on paper. */
  unroll(all: boolean): void {
    if (!this.data) return;
    const height = this.data.ranks.length * (titleHeight + rowHeight + gap) + 4;
    this.frame.style.height = `${Math.min(height, all ? 900 : innerWidth < 700 ? 330 : 470)}px`;
    this.draw();
  }

  private legend(): HTMLElement {
    const works = this.data!.ranks.some((rank) => rank.working_bytes.length > 0);
    const entry = (name: string, colour: string, other = colour) => {
      const swatch = h("span", { class: "swatch" });
      swatch.style.background = other === colour ? colour
        : `linear-gradient(90deg, ${colour} 50%, ${other} 50%)`;
      return h("li", {}, swatch, name);
    };
    return h("ul", { class: "legend" },
             ...fixedParts.map(([name]) => !this.alone && entry(name, colours[name])),
             entry("activations of micro-batches in flight", colours.activations,
                   colours.activationsToo),
             works && entry("of passes that run", colours.working));
  }

  // The same for those who do not see it.
  private peaks(): HTMLElement {
    const { ranks, simulated } = this.data!;
    const some = ranks.length < simulated ? ` of ${simulated} simulated ranks` : "";
    return h("details", {}, h("summary", {}, `peaks of ${ranks.length}${some || " ranks"}`),
      h("table", {}, h("thead", {}, h("tr", {},
        ...["rank", "stage", "peak", "at", "micro-batches in flight", "as counted for the plan"]
          .map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...ranks.map((rank) => h("tr", {},
        h("th", { scope: "row" }, String(rank.rank)), h("td", {}, String(rank.stage)),
        h("td", {}, gigabytes(rank.peak_bytes)), h("td", {}, seconds(rank.peak_ns * 1e-9)),
        h("td", {}, String(inFlightAt(rank, rank.peak_ns).length)),
        h("td", {}, gigabytes(rank.counted_bytes)))))));
  }

  private update(): void {
    this.describe();
    this.draw();
  }

  /** What is said of a moment, for tests: nanoseconds of the step, and a place in the list. */
  look(row: number, time: number): void {
    this.row = row;
    this.cursor = time;
    this.update();
  }
  get shown(): MemoryOverTime | null { return this.data; }

  private describe(): void {
    const rank = this.data?.ranks[this.row];
    if (!this.data || !rank) return;
    const at = this.cursor >= 0 ? this.cursor : rank.peak_ns;
    const { kept, working } = memoryAt(rank, at);
    const sum = fixed(rank) + kept + working;
    const flying = inFlightAt(rank, at);
    const chunks = new Set(flying.map((one) => one.chunk)).size > 1;
    const names = flying.slice(0, 12).map((one) =>
      `${one.microbatch}${chunks ? ` chunk ${one.chunk}` : ""}` +
      (one.share < 0.999 ? ` (${Math.round(one.share * 100)} %)` : ""));
    if (flying.length > names.length) names.push(`${flying.length - names.length} more`);
    const when = this.cursor >= 0 ? `at ${seconds(at * 1e-9, 6)}`
      : `at its peak, ${seconds(at * 1e-9, 6)}`;
    const bound = rank.counted_bytes - rank.peak_bytes;
    const byKind = keptOfStage(this.kinds(), rank.stage);
    fill(this.details,
         h("p", {}, h("strong", {}, gigabytes(sum)),
           ` rank ${rank.rank}, stage ${rank.stage}, ${when} · ` +
           fixedParts.map(([name, key]) => `${name} ${gigabytes(rank[key])}`).join(" · ") +
           ` · activations ${gigabytes(kept)}` +
           (working > 0 ? ` · of passes that run ${gigabytes(working)}` : "")),
         h("p", {}, flying.length === 0 ? "No micro-batch is in flight."
           : `In flight: ${flying.length} micro-batch${flying.length > 1 ? "es" : ""}, ` +
             names.join(", ") + "."),
         byKind !== "" && h("p", { class: "quiet" }, byKind),
         bound > 1e6 && h("p", { class: "quiet" },
           `The plan is held against ${gigabytes(rank.counted_bytes)}: as much as its schedule ` +
           "may hold, or its fullest chunks."));
  }

  private draw(): void {
    const data = this.data;
    const wide = this.timeline.axisWidth;
    if (!data || wide === 0 || this.frame.clientWidth === 0) return;
    const ratio = devicePixelRatio || 1;
    const tall = this.frame.clientHeight;
    const width = Math.round(this.frame.clientWidth * ratio), height = Math.round(tall * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.canvas.style.height = `${tall}px`;
    }
    const style = getComputedStyle(this.frame);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const context = this.canvas.getContext("2d", { alpha: false })!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colour("--ground");
    context.fillRect(0, 0, width, height);
    const [from, to] = this.timeline.looks;
    const x = (time: number) => ((time - from) / (to - from)) * wide;
    const { most, limited } = this.scale(data);
    const scroll = this.frame.scrollTop;
    data.ranks.forEach((rank, index) => {
      const top = index * (titleHeight + rowHeight + gap) - scroll;
      if (top > tall || top + titleHeight + rowHeight < 0) return;
      const floor = top + titleHeight + rowHeight;
      const y = (bytes: number) => floor - (bytes / most) * rowHeight;
      this.drawRank(context, rank, x, y, from, to, wide);
      context.strokeStyle = colour("--ink");
      context.lineWidth = 1;
      if (limited) {
        context.setLineDash([5, 4]);
        context.beginPath();
        context.moveTo(0, Math.round(y(data.capacity_bytes)) + 0.5);
        context.lineTo(wide, Math.round(y(data.capacity_bytes)) + 0.5);
        context.stroke();
        context.setLineDash([]);
      }
      context.font = "11px system-ui, sans-serif";
      context.textBaseline = "middle";
      context.fillStyle = colour(index === this.row ? "--ink" : "--ink-2");
      const twins = rank.ranks > 1 ? ` · stands for ${rank.ranks.toLocaleString("en-US")}` : "";
      const peaks = this.alone ? `activations up to ${gigabytes(rank.peak_bytes - fixed(rank))}`
        : `peak ${gigabytes(rank.peak_bytes)} of ${gigabytes(data.capacity_bytes)}`;
      context.fillText(`rank ${rank.rank} · stage ${rank.stage}${twins} · ${peaks}`, 4,
                       top + titleHeight / 2);
      const peak = x(rank.peak_ns);
      if (peak >= 0 && peak <= wide) {
        const tip = y(rank.peak_bytes - (this.alone ? fixed(rank) : 0)) - 1;
        context.fillStyle = colour("--ink");
        context.beginPath();
        context.moveTo(peak, tip);
        context.lineTo(peak - 4, tip - 7);
        context.lineTo(peak + 4, tip - 7);
        context.fill();
      }
    });
    if (this.cursor < 0) return;
    const line = Math.round(x(this.cursor)) + 0.5;
    context.strokeStyle = colour("--ink");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(line, 0);
    context.lineTo(line, tall);
    context.stroke();
  }

  // Up to the GPU's memory, unless little of it is used: then up to what is.
  private scale(data: MemoryOverTime): { most: number; limited: boolean } {
    const room = rowHeight / (rowHeight - 9);  // Above it for the mark of the peak.
    const peak = Math.max(...data.ranks.map((rank) =>
      rank.peak_bytes - (this.alone ? fixed(rank) : 0)));
    const limited = !this.alone && peak > 0.6 * data.capacity_bytes;
    return { most: (limited ? Math.max(data.capacity_bytes, peak) : peak) * room || 1, limited };
  }

  private drawRank(context: CanvasRenderingContext2D, rank: RankMemory, x: (t: number) => number,
                   y: (bytes: number) => number, from: number, to: number, wide: number): void {
    const left = Math.max(0, x(0)), right = Math.min(wide, x(this.data!.step_ns));
    let base = 0;
    for (const [name, key] of this.alone ? [] : fixedParts) {
      context.fillStyle = colours[name];
      context.fillRect(left, y(base + rank[key]), right - left, y(base) - y(base + rank[key]));
      base += rank[key];
    }
    const { time_ns: times, kept_bytes: kept, working_bytes: working } = rank;
    const first = Math.max(0, after(times, from) - 2);
    const last = Math.min(times.length - 1, after(times, to) + 1);
    const area = (height: (i: number) => number, colour: string) => {
      context.fillStyle = colour;
      context.beginPath();
      context.moveTo(x(times[first]), y(base));
      for (let i = first; i <= last; ++i) context.lineTo(x(times[i]), y(base + height(i)));
      context.lineTo(x(times[last]), y(base));
      context.fill();
    };
    if (working.length > 0) area((i) => kept[i] + working[i], colours.working);
    area((i) => kept[i], colours.activations);
    this.drawMicrobatches(context, rank, x, y, base, from, to, wide);
  }

  // The oldest at the bottom, in two shades by turns; where they are too many to be told apart, the
  // area as it is.
  private drawMicrobatches(context: CanvasRenderingContext2D, rank: RankMemory,
                           x: (t: number) => number, y: (bytes: number) => number, base: number,
                           from: number, to: number, wide: number): void {
    const seen: number[] = [];
    for (let i = 0; i < rank.held.length; i += heldColumns)
      if (rank.held[i + 5] > from && rank.held[i + 2] < to) seen.push(i);
    if (seen.length > wide / 5) return;
    const share = (i: number, time: number) => {
      const [, , begun, full, given, gone] = rank.held.slice(i, i + heldColumns);
      if (time <= begun || time >= gone) return 0;
      return time < full ? (time - begun) / (full - begun)
        : time > given ? (gone - time) / (gone - given) : 1;
    };
    const times = [...new Set(seen.flatMap((i) => rank.held.slice(i + 2, i + 6)))]
      .sort((a, b) => a - b);
    const below = new Float64Array(times.length).fill(base);
    context.fillStyle = colours.activationsToo;
    seen.forEach((i) => {
      const begun = rank.held[i + 2], gone = rank.held[i + 5];
      const a = times.indexOf(begun), b = times.indexOf(gone);
      const odd = (i / heldColumns) % 2 === 1;  // Of all, so that none changes while one pans.
      if (odd) {
        context.beginPath();
        for (let k = a; k <= b; ++k) context.lineTo(x(times[k]), y(below[k]));
      }
      for (let k = a; k <= b; ++k) below[k] += share(i, times[k]) * rank.held[i + 6];
      if (odd) {
        for (let k = b; k >= a; --k) context.lineTo(x(times[k]), y(below[k]));
        context.fill();
      }
    });
  }

  private point(event: PointerEvent): void {
    if (!this.data) return;
    const [from, to] = this.timeline.looks;
    const time = from + (event.offsetX / this.timeline.axisWidth) * (to - from);
    this.cursor = Math.min(this.data.step_ns, Math.max(0, time));
    this.hovering = true;
    const row = Math.floor((event.offsetY + this.frame.scrollTop) /
                           (titleHeight + rowHeight + gap));
    this.row = Math.min(this.data.ranks.length - 1, Math.max(0, row));
    this.update();
  }

  private key(event: KeyboardEvent): void {
    const rank = this.data?.ranks[this.row];
    if (!this.data || !rank || event.ctrlKey || event.metaKey || event.altKey) return;
    const now = this.cursor < 0 ? rank.peak_ns : this.cursor;
    const acts: Record<string, () => void> = {
      ArrowRight: () => this.go(rank.time_ns[after(rank.time_ns, now)] ?? this.data!.step_ns),
      ArrowLeft: () => this.go([...rank.time_ns].reverse().find((time) => time < now) ?? 0),
      ArrowDown: () => this.choose(this.row + 1),
      ArrowUp: () => this.choose(this.row - 1),
      p: () => this.go(rank.peak_ns),
      "+": () => this.timeline.zoom(0.5, now),
      "-": () => this.timeline.zoom(2, now),
      "0": () => this.timeline.fit(),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    this.hovering = false;
    act();
  }

  private choose(row: number): void {
    this.row = Math.min(this.data!.ranks.length - 1, Math.max(0, row));
    const top = this.row * (titleHeight + rowHeight + gap);
    const seen = this.frame.clientHeight - titleHeight - rowHeight;
    this.frame.scrollTop = Math.min(top, Math.max(this.frame.scrollTop, top - seen));
    this.update();
  }

  private go(time: number): void {
    this.cursor = time;
    const [from, to] = this.timeline.looks;
    if (time < from || time > to)
      this.timeline.look(time - (to - from) / 2, time + (to - from) / 2);
    this.update();
  }
}
