// A report: the explorer's drawings of one answer, whose data the file holds.

import type { LayersOfKind, Result } from "./api";
import { showCriticalPath, showMemory } from "./answer_view";
import { Chart } from "./chart";
import { ClusterView, loadLegend } from "./cluster_view";
import { type Compared, showCompared } from "./compare_report";
import { type Deployments, showDeployments } from "./deployments_report";
import { byId, fill } from "./dom";
import { ExpertsView } from "./experts_view";
import page from "./explorer.html";
import { showKinds } from "./kinds_view";
import { MemoryView } from "./memory_view";
import { type Purchase, showPurchase } from "./purchase_report";
import { RooflineView } from "./roofline_view";
import type { Search } from "./search_api";
import { costDrawing, memoryDrawing, rowsOf } from "./search_charts";
import { showStages } from "./stages_view";
import { type GridAxis, GridDrawings, type GridRow } from "./sweep_charts";
import { legend, TimelineView } from "./timeline_view";
import { Timeline } from "./timeline_data";
import type { View } from "./views";

function textOf(id: string): string { return byId(id)?.textContent ?? ""; }

// For tests.
const report: Record<string, unknown> = {};
(window as unknown as Record<string, unknown>).report = report;

// On paper it is light, and shows all ranks.
function onPaper(show: (paper: boolean) => void): void {
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.paper = "";
    show(true);
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.paper;
    show(false);
  });
}

function showTimeline(): TimelineView {
  const bytes = Uint8Array.from(atob(textOf("timeline-data")), (c) => c.charCodeAt(0));
  const timeline = Timeline.read(bytes);
  const view = new TimelineView();
  view.show(timeline);
  fill(byId("timeline-legend"), legend(timeline));
  return view;
}

// Drawings that the explorer has in <details>: their places are those of its page.
function showViews(timeline: TimelineView, kinds: LayersOfKind[]): MemoryView | null {
  const places = new DOMParser().parseFromString(page, "text/html");
  const show = (name: string, view: () => View): View | null => {
    const data = textOf(`${name}-data`);
    if (data === "") return null;
    const box = document.adoptNode(places.getElementById(`view-${name}`)!) as HTMLDetailsElement;
    box.open = true;
    byId("views").append(box);
    const made = view();
    made.show(JSON.parse(data));
    report[name] = made;
    return made;
  };
  const memory = show("memory", () => new MemoryView(timeline, () => kinds));
  show("cluster", () => new ClusterView(timeline, null));
  if (byId("cluster-legend")) fill(byId("cluster-legend"), loadLegend());
  show("roofline", () => new RooflineView());
  show("experts", () => new ExpertsView(() => true));
  return memory as MemoryView | null;
}

// Thousands of lines, which are written when somebody asks for them.
function showInputs(inputs: unknown): void {
  byId("inputs")?.addEventListener("toggle", () => {
    byId("inputs").querySelector("pre")!.textContent = JSON.stringify(inputs, null, 1);
  }, { once: true });
}

function showEstimate(result: Result): void {
  showCriticalPath(result, null);
  showStages(result);
  showKinds(result);
  showMemory(result.memory, result.layer_kinds);
  const timeline = showTimeline();
  const memory = showViews(timeline, result.layer_kinds ?? []);
  onPaper((paper) => {
    timeline.unroll(paper);
    memory?.unroll(paper);
  });
  report.timeline = timeline;
}

function showSearch(search: Search): void {
  if (search.plans.length === 0) return;
  const rows = rowsOf(search);
  new Chart(byId("search-memory-chart")).show(memoryDrawing(rows, [], null, null, null));
  new Chart(byId("search-cost-chart")).show(costDrawing(rows, null));
}

const shown = JSON.parse(textOf("result"));
report.result = shown;
const kinds: [string, () => void][] = [
  ["orrery.result/", () => showEstimate(shown)],
  ["orrery.search/", () => showSearch(shown)],
  ["orrery.compare/", () => showCompared(shown as Compared)],
  ["orrery.purchase/", () => showPurchase(shown as Purchase)],
  ["orrery.serving_search/", () =>
    showDeployments(shown as Deployments, JSON.parse(textOf("seen")))],
  ["orrery.sweep_rows/", () => new GridDrawings(byId("sweep-drawings"), "sweep").show(
    shown.axes as GridAxis[], shown.rows as GridRow[], null, null)],
];
kinds.find(([schema]) => shown.schema.startsWith(schema))?.[1]();
showInputs(textOf("inputs-data") === "" ? shown.inputs : JSON.parse(textOf("inputs-data")));
if (!report.timeline) onPaper(() => undefined);
report.ready = true;
