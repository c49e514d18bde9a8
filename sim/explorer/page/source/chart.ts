// Points in a plane: plans of a search, a curve of batches. Drawn as SVG as wide as its box, so
// that letters keep their size.

import { fill } from "./dom";

export interface Axis {
  title: string;
  text: (value: number) => string;
  log?: boolean;
}
/** What a point is is said by its shape as well as by its colour. */
export type Mark = "seen" | "listed" | "tie" | "first" | "now";
export interface Point {
  x: number; y: number; mark: Mark;
  label?: string;              // Beside it.
  title: string;               // Under the pointer.
  across?: [number, number];   // A range of y.
  series?: number;             // Which of several kinds: a shape and a colour of its own.
  act?: () => void;
}
export interface Line { name?: string; series?: number; points: [number, number][] }
export interface Drawing {
  label: string;  // For those who cannot see it.
  x: Axis; y: Axis; points: Point[];
  line?: boolean;  // Joins the points, from left to right.
  lines?: Line[];  // Others.
  limit?: { y: number; text: string };
  fromZero?: boolean;
}

/** After Okabe and Ito; what needs more kinds than these says them by its names alone. */
export const seriesColours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7b5ea7", "#b9822f"];

const space = "http://www.w3.org/2000/svg";
function svg(tag: string, attributes: Record<string, string | number>, text = ""): SVGElement {
  const element = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== "") element.textContent = text;
  return element;
}

/** Round values from low to high, some `most` of them. */
export function ticks(low: number, high: number, most: number): number[] {
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough) ?? 10 * power;
  const list: number[] = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
    list.push(k * step + 0);  // And no −0.
  return list;
}

function powersOfTwo(low: number, high: number, most: number): number[] {
  const all: number[] = [];
  for (let value = 2 ** Math.ceil(Math.log2(low)); value <= high; value *= 2) all.push(value);
  const every = Math.ceil(all.length / Math.max(1, most));
  return all.filter((_, i) => i % every === 0);
}

// Of as many corners as its kind has: circle, square, triangle, diamond, and so on again.
function shapeOf(series: number, x: number, y: number, r: number): SVGElement {
  const k = r * 1.2;
  const paths = [`M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
                 `M${x} ${y - k}L${x + k} ${y + k * 0.8}H${x - k}Z`,
                 `M${x} ${y - k}L${x + k} ${y}L${x} ${y + k}L${x - k} ${y}Z`];
  const kind = series % (paths.length + 1);
  return kind === 0 ? svg("circle", { class: "shape", cx: x, cy: y, r })
    : svg("path", { class: "shape", d: paths[kind - 1] });
}

/** Names of series with their shapes. */
export function seriesLegend(names: string[]): HTMLElement {
  const list = document.createElement("ul");
  list.className = "legend";
  names.forEach((name, series) => {
    const item = document.createElement("li");
    const mark = svg("svg", { class: "chart key", width: 14, height: 14, viewBox: "0 0 14 14" });
    const shape = shapeOf(series, 7, 7, 5);
    (shape as SVGElement).style.fill = seriesColours[series % seriesColours.length];
    mark.append(shape);
    item.append(mark, ` ${name}`);
    list.append(item);
  });
  return list;
}

class Scale {
  private readonly low: number;
  private readonly high: number;
  constructor(private readonly axis: Axis, values: number[], private readonly from: number,
              private readonly to: number, zero: boolean) {
    let low = Math.min(...values), high = Math.max(...values);
    if (axis.log) {
      this.low = Math.log(low / 1.15);
      this.high = Math.log(high * 1.15);
      return;
    }
    const room = high > low ? 0.06 * (high - low) : 0.05 * (Math.abs(high) || 1);
    low = zero ? 0 : low - room;
    high += room;
    this.low = low;
    this.high = high;
  }
  at(value: number): number {
    const v = this.axis.log ? Math.log(value) : value;
    return this.from + ((v - this.low) / (this.high - this.low)) * (this.to - this.from);
  }
  ticks(most: number): number[] {
    return this.axis.log ? powersOfTwo(Math.exp(this.low), Math.exp(this.high), most)
      : ticks(this.low, this.high, most);
  }
}

export class Chart {
  private drawing: Drawing | null = null;
  private width = 0;

  constructor(private readonly box: HTMLElement) {
    new ResizeObserver(() => {
      if (this.drawing && box.clientWidth !== this.width) this.paint();
    }).observe(box);
  }

  show(drawing: Drawing | null): void {
    this.drawing = drawing && drawing.points.length + (drawing.lines?.length ?? 0) > 0 ? drawing
      : null;
    this.box.hidden = !this.drawing;
    if (this.drawing) this.paint();
    else fill(this.box);
  }

  private paint(): void {
    const of = this.drawing!;
    this.width = this.box.clientWidth;
    const width = Math.max(240, this.width), height = Math.min(300, Math.max(210, width * 0.56));
    const right = 24, top = 24, bottom = 40;
    const root = svg("svg", { class: "chart", width, height, role: "img",
                              viewBox: `0 0 ${width} ${height}` });
    root.setAttribute("aria-label", of.label);
    const along = (of.lines ?? []).flatMap((line) => line.points);
    const ys = [...of.points.flatMap((p) => [p.y, ...(p.across ?? [])]), ...along.map((p) => p[1])];
    const y = new Scale(of.y, of.limit ? [...ys, of.limit.y] : ys, height - bottom, top,
                        of.fromZero ?? false);
    const rows = y.ticks(5).map((value) => ({ value, text: of.y.text(value) }));
    const left = 14 + 6.6 * Math.max(...rows.map((row) => row.text.length));
    const x = new Scale(of.x, [...of.points.map((p) => p.x), ...along.map((p) => p[0])], left,
                        width - right, false);
    for (const { value, text } of rows) {
      root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y.at(value),
                                y2: y.at(value) }),
                  svg("text", { class: "tick", x: left - 8, y: y.at(value) + 4,
                                "text-anchor": "end" }, text));
    }
    for (const value of x.ticks(Math.floor(width / 90)))
      root.append(svg("line", { class: "grid", x1: x.at(value), x2: x.at(value), y1: top,
                                y2: height - bottom }),
                  svg("text", { class: "tick", x: x.at(value), y: height - bottom + 16,
                                "text-anchor": "middle" }, of.x.text(value)));
    root.append(svg("text", { class: "axis", x: 4, y: 12 }, of.y.title),
                svg("text", { class: "axis", x: width - right, y: height - 5,
                              "text-anchor": "end" }, of.x.title));
    if (of.limit)
      root.append(svg("line", { class: "limit-line", x1: left, x2: width - right,
                                y1: y.at(of.limit.y), y2: y.at(of.limit.y) }),
                  svg("text", { class: "tick", x: width - right - 4, y: y.at(of.limit.y) - 4,
                                "text-anchor": "end" }, of.limit.text));
    if (of.line) {
      const sorted = [...of.points].sort((a, b) => a.x - b.x);
      root.append(svg("polyline", { class: "curve",
        points: sorted.map((p) => `${x.at(p.x).toFixed(1)},${y.at(p.y).toFixed(1)}`).join(" ") }));
    }
    for (const line of of.lines ?? []) {
      const curve = svg("polyline", { class: "curve", points: line.points.map(([px, py]) =>
        `${x.at(px).toFixed(1)},${y.at(py).toFixed(1)}`).join(" ") });
      if (line.series !== undefined)
        curve.style.stroke = seriesColours[line.series % seriesColours.length];
      root.append(curve);
    }
    // What is listed lies above what is not, and the first above all.
    const order: Mark[] = ["seen", "listed", "tie", "first", "now"];
    const named: [number, number][] = [];
    for (const mark of order)
      for (const point of of.points.filter((p) => p.mark === mark))
        root.append(this.mark(point, x.at(point.x), y.at(point.y), y));
    // Names above all marks, those of the first ones first; no two over each other.
    for (const point of [...of.points].reverse().sort((a, b) => order.indexOf(b.mark) -
                                                                order.indexOf(a.mark)))
      if (point.label) this.name(root, point, x.at(point.x), y.at(point.y), of, width, named);
    fill(this.box);
    this.box.append(root);
  }

  private mark(point: Point, px: number, py: number, y: Scale): SVGElement {
    const group = svg("g", { class: `mark ${point.mark}${point.act ? " acts" : ""}` });
    if (point.across)
      group.append(svg("line", { class: "across", x1: px, x2: px, y1: y.at(point.across[0]),
                                 y2: y.at(point.across[1]) }));
    if (point.mark === "now")
      group.append(svg("path", { class: "shape",
                                 d: `M${px - 6} ${py}H${px + 6}M${px} ${py - 6}V${py + 6}` }));
    else {
      const shape = shapeOf(point.series ?? 0, px, py,
                            point.mark === "seen" ? 2.5 : point.mark === "first" ? 6 : 4.5);
      if (point.series !== undefined)
        shape.style[point.mark === "listed" ? "stroke" : "fill"] =
          seriesColours[point.series % seriesColours.length];
      group.append(shape);
    }
    if (point.mark === "tie")
      group.append(svg("circle", { class: "ring", cx: px, cy: py, r: 7.5 }));
    group.append(svg("title", {}, point.title));
    if (point.act) group.addEventListener("click", point.act);
    return group;
  }

  private name(root: SVGElement, point: Point, px: number, py: number, of: Drawing, width: number,
               named: [number, number][]): void {
    if (named.some(([nx, ny]) => Math.abs(nx - px) < 24 && Math.abs(ny - py) < 13)) return;
    named.push([px, py]);
    const room = 7 * point.label!.length + 12, flip = px + room > width - 8;
    const beside = of.line
      ? { x: flip ? px + 6 : px - 6, y: py - 11, "text-anchor": flip ? "end" : "start" }
      : { x: px + (flip ? -10 : 10), y: py + 4, "text-anchor": flip ? "end" : "start" };
    root.append(svg("text", { class: `name ${point.mark}`, ...beside }, point.label));
  }
}
