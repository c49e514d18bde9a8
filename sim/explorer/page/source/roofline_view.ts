// Operations of the step below the roofs of the GPU: what `orrery kernel step --roofline` draws,
// from the same data (orrery.roofline/1).

import { byId, fill, h } from "./dom";
import { bytes, percent, seconds, significant, words } from "./format";
import { drawing, s } from "./svg";
import type { View } from "./views";

interface Operation {
  layer_kinds?: { kind: string; count: number }[];  // Runs in layers of each kind, if they differ.
  operation: string; kind: string; when?: string; sizes?: string; format?: string; count: number;
  flop: number; bytes: number; ops_per_byte?: number; bound: string; time_s: number; tag: string;
  time_range?: { low_s: number; high_s: number };
  flop_per_s?: number; share_of_roof: number; all_time_s: number;
}
interface Roofline {
  gpu: string; stage: number;
  roofs: { memory_bytes_per_s: number; formats: { format: string; peak_flop_per_s: number }[] };
  operations: Operation[];
}

// As in the drawings of the command line; each has a shape of its own as well.
const kinds: Record<string, { title: string; colour: string }> = {
  gemm: { title: "matrix products", colour: "#0072b2" },
  experts: { title: "products of experts", colour: "#7b5ea7" },
  attention: { title: "attention", colour: "#d55e00" },
  scan: { title: "scans of states", colour: "#cc79a7" },
  vector: { title: "vector kernels", colour: "#009e73" },
};
const listed = 0.99;  // Of the time: the rest is one line.

function shape(kind: string, x: number, y: number, r: number, colour: string): SVGElement {
  const props = { class: "op", fill: colour, "fill-opacity": "0.75" };
  const k = r * 1.25;
  if (kind === "attention")
    return s("path", { ...props, d: `M${x} ${y - k}L${x + k} ${y}L${x} ${y + k}L${x - k} ${y}Z` });
  if (kind === "vector")
    return s("path", { ...props, d: `M${x} ${y - k}l${k} ${k * 1.8}h${-2 * k}Z` });
  if (kind === "scan")
    return s("path", { ...props, d: `M${x} ${y + k}l${k} ${-k * 1.8}h${-2 * k}Z` });
  if (kind === "experts")
    return s("rect", { ...props, x: x - r * 0.9, y: y - r * 0.9, width: r * 1.8, height: r * 1.8 });
  return s("circle", { ...props, cx: x, cy: y, r });
}

export class RooflineView implements View {
  readonly name = "roofline";
  private data: Roofline | null = null;
  private kind = "";  // Of layers whose operations are shown; "": of all, and those outside.
  private operations: Operation[] = [];  // Those shown, with the runs in layers of that kind.
  private chosen = 0;
  private total = 0;

  constructor() {
    const box = byId("roofline");
    new ResizeObserver(() => { if (this.data && box.clientWidth > 0) this.draw(); }).observe(box);
    box.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (!by || !this.data) return;
      event.preventDefault();
      this.choose(this.chosen + by);
    });
  }

  show(data: unknown): void {
    this.data = data as Roofline;
    const names = [...new Set(this.data.operations.flatMap((one) =>
      (one.layer_kinds ?? []).map((of) => of.kind)))];
    if (!names.includes(this.kind)) this.kind = "";
    byId("roofline-of").hidden = names.length === 0;
    const choice = (kind: string, index: number) => h("span", {},
      h("input", { type: "radio", name: "roofline-kind", id: `roofline-kind-${index}`,
                   checked: kind === this.kind, change: () => this.only(kind) }),
      h("label", { for: `roofline-kind-${index}` }, kind === "" ? "all" : kind));
    fill(byId("roofline-kinds"), ...["", ...names].map(choice));
    this.only(this.kind);
  }

  // Operations of layers of one kind, and as often as these run them.
  private only(kind: string): void {
    this.kind = kind;
    const all = this.data!.operations;
    this.operations = kind === "" ? all : all.flatMap((one) => {
      const own = one.layer_kinds?.find((of) => of.kind === kind);
      return own ? [{ ...one, count: own.count, all_time_s: own.count * one.time_s }] : [];
    }).sort((a, b) => b.all_time_s - a.all_time_s);
    this.chosen = 0;
    this.total = this.operations.reduce((sum, one) => sum + one.all_time_s, 0);
    this.draw();
    this.list();
  }

  get shown(): Roofline | null { return this.data; }

  choose(index: number): void {
    const most = this.operations.length - 1;
    this.chosen = Math.min(most, Math.max(0, index));
    this.draw();
    document.querySelectorAll("#roofline-list tr[data-op]").forEach((row) =>
      row.classList.toggle("chosen", Number((row as HTMLElement).dataset.op) === this.chosen));
  }

  private drawn(one: Operation): boolean {
    return (one.flop_per_s ?? 0) > 0 && (one.ops_per_byte ?? 0) > 0;
  }

  private draw(): void {
    const { operations } = this, { roofs } = this.data!;
    const width = Math.max(260, byId("roofline").clientWidth), height = Math.min(380, width * 0.75);
    const left = 46, right = width - 20, top = 10, floor = height - 34;
    const points = operations.map((one, index) => ({ one, index }))
      .filter(({ one }) => this.drawn(one));
    const formats = new Set(points.map(({ one }) => one.format));
    const used = roofs.formats.filter((one) => formats.has(one.format));
    const highest = Math.max(...used.map((one) => one.peak_flop_per_s), 1e12);
    const decade = (value: number, up: boolean) =>
      10 ** (up ? Math.ceil(Math.log10(value)) : Math.floor(Math.log10(value)));
    const xs = points.map(({ one }) => one.ops_per_byte!);
    const ys = points.map(({ one }) => one.flop_per_s!);
    const x0 = decade(Math.min(1, ...xs), false);
    const x1 = decade(Math.max((highest / roofs.memory_bytes_per_s) * 2, ...xs), true);
    const y0 = decade(Math.min(highest / 100, ...ys), false), y1 = highest * 1.7;
    const x = (value: number) => left + (Math.log(value / x0) / Math.log(x1 / x0)) * (right - left);
    const y = (value: number) => floor - (Math.log(value / y0) / Math.log(y1 / y0)) * (floor - top);
    const parts: SVGElement[] = [];
    for (let at = x0; at <= x1 * 1.001; at *= 10)
      parts.push(s("line", { class: "grid", x1: x(at), y1: top, x2: x(at), y2: floor }),
                 s("text", { class: "on-part", x: Math.min(right - 8, x(at)), y: floor + 13 },
                   at < 1 ? String(at) : at.toLocaleString("en-US")));
    for (let at = y0; at <= y1; at *= 10)
      parts.push(s("line", { class: "grid", x1: left, y1: y(at), x2: right, y2: y(at) }),
                 s("text", { class: "part-name end", x: left - 5, y: y(at) + 4 },
                   (at * 1e-12).toLocaleString("en-US")));
    parts.push(s("text", { class: "on-part", x: (left + right) / 2, y: height - 5 },
                 "operations a byte of memory traffic"),
               s("text", { class: "part-name", x: left + 4, y: top + 8 }, "TFLOP/s"));
    const slope = roofs.memory_bytes_per_s;
    parts.push(s("line", { class: "roof", x1: x(Math.max(x0, y0 / slope)),
                           y1: y(Math.max(y0, slope * x0)), x2: x(highest / slope),
                           y2: y(highest) }));
    for (const roof of used)
      parts.push(s("line", { class: "roof", x1: x(roof.peak_flop_per_s / slope),
                             y1: y(roof.peak_flop_per_s), x2: right, y2: y(roof.peak_flop_per_s) }),
                 s("text", { class: "part-name end", x: right - 2, y: y(roof.peak_flop_per_s) - 5 },
                   `${roof.format} ${significant(roof.peak_flop_per_s * 1e-12, 3)} TFLOP/s`));
    // The long ones first, so that the short ones lie above them.
    for (const { one, index } of points) {
      const r = 3 + 15 * Math.sqrt(one.all_time_s / this.total);
      const mark = shape(one.kind, x(one.ops_per_byte!), y(one.flop_per_s!), r,
                         kinds[one.kind]?.colour ?? "#8a8f98");
      mark.addEventListener("pointerenter", () => {
        if (this.chosen !== index) this.choose(index);
      });
      mark.dataset.op = String(index);
      parts.push(mark);
    }
    const now = operations[this.chosen];
    if (now && this.drawn(now))
      parts.push(s("circle", { class: "chosen", cx: x(now.ops_per_byte!), cy: y(now.flop_per_s!),
                               r: 7 + 15 * Math.sqrt(now.all_time_s / this.total) }));
    fill(byId("roofline-drawing"),
         drawing(width, height, "Operations below the roofs of the GPU", ...parts));
    const present = new Set(points.map(({ one }) => one.kind));
    fill(byId("roofline-legend"), h("ul", { class: "legend" },
      ...Object.entries(kinds).filter(([kind]) => present.has(kind))
        .map(([kind, { title, colour }]) => h("li", {}, legendMark(kind, colour), title)),
      h("li", {}, "the larger, the more of the time")));
    this.describe();
  }

  private describe(): void {
    const { operations } = this, { gpu, stage } = this.data!;
    const one = operations[this.chosen];
    if (!one) return;
    const facts = [
      `${seconds(one.time_s)}` + (one.time_range
        ? ` (${seconds(one.time_range.low_s, 3)} – ${seconds(one.time_range.high_s, 3)})` : ""),
      `${one.count.toLocaleString("en-US")} times`,
      `${percent(one.all_time_s / this.total)} of the time` +
        (this.kind === "" ? "" : ` in layers of ${this.kind}`),
      `${percent(one.share_of_roof, 0)} of its roof`, `bound by ${one.bound}`,
    ];
    if (one.flop_per_s) facts.push(`${significant(one.flop_per_s * 1e-12)} TFLOP/s`);
    if (one.ops_per_byte) facts.push(`${significant(one.ops_per_byte, 3)} operations a byte`);
    else facts.push(bytes(one.bytes));
    fill(byId("roofline-details"),
         h("p", {}, h("strong", {}, words(one.operation)),
           ` ${[one.when, one.sizes, one.format].filter(Boolean).join(", ")} · ` +
           `${facts.join(" · ")} · ${one.tag} time`),
         this.kind === "" && one.layer_kinds && h("p", { class: "quiet" },
           `In layers of ${one.layer_kinds.map((of) =>
             `${of.kind} ${of.count.toLocaleString("en-US")} times`).join(", ")}.`),
         !this.drawn(one) && h("p", { class: "quiet" },
           "It computes nothing, or its bytes leave the GPU: no place below these roofs."),
         h("p", { class: "quiet" },
           `A rank of stage ${stage} on ${gpu}; arrows go through the list.`));
  }

  private list(): void {
    const { operations } = this;
    let sum = 0;
    const shown = operations.filter((one) => {
      const wanted = sum < listed * this.total;
      sum += one.all_time_s;
      return wanted;
    });
    const differ = operations.some((one) => one.layer_kinds);
    const row = (one: Operation, index: number) => h("tr", {
      "data-op": index, class: index === this.chosen ? "chosen" : null,
      click: () => this.choose(index),
    }, h("th", { scope: "row" }, words(one.operation)), h("td", { class: "words" }, one.when ?? ""),
    h("td", {}, one.count.toLocaleString("en-US")), h("td", {}, seconds(one.time_s, 3)),
    h("td", {}, percent(one.all_time_s / this.total)),
    h("td", { class: "words" }, one.bound), h("td", {}, percent(one.share_of_roof, 0)),
    differ && h("td", { class: "words" },
                one.layer_kinds?.map((of) => of.kind).join(", ") ?? "outside of layers"));
    fill(byId("roofline-list"), h("details", {},
      h("summary", {},
        `the ${shown.length} operations that take ${percent(listed, 0)} of the time`),
      h("table", {}, h("thead", {}, h("tr", {},
        ...["operation", "when", "count", "each", "share", "bound by", "of its roof",
          ...(differ ? ["in layers of"] : [])].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, ...shown.map(row)))));
  }
}

function legendMark(kind: string, colour: string): SVGElement {
  return s("svg", { width: 14, height: 14, class: "legend-mark", "aria-hidden": "true" },
           shape(kind, 7, 7, 5, colour));
}
