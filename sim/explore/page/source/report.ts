// A report: the explorer's drawings of one answer, whose data the file holds.

import type { Result } from "./api";
import { showCriticalPath, showMemory } from "./answer_view";
import { Chart } from "./chart";
import { byId, fill } from "./dom";
import type { Search } from "./search_api";
import { costDrawing, memoryDrawing, rowsOf } from "./search_charts";
import { showStages } from "./stages_view";
import { legend, TimelineView } from "./timeline_view";
import { Timeline } from "./timeline_data";

function textOf(id: string): string { return byId(id)?.textContent ?? ""; }

// On paper it is light, and shows all ranks.
function onPaper(view: TimelineView): void {
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.paper = "";
    view.unroll(true);
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.paper;
    view.unroll(false);
  });
}

function showTimeline(): TimelineView {
  const bytes = Uint8Array.from(atob(textOf("timeline-data")), (c) => c.charCodeAt(0));
  const timeline = Timeline.read(bytes);
  const view = new TimelineView();
  view.show(timeline);
  fill(byId("timeline-legend"), legend(timeline));
  onPaper(view);
  return view;
}

function showEstimate(result: Result): void {
  showCriticalPath(result, null);
  showStages(result);
  showMemory(result.memory);
  byId("inputs").addEventListener("toggle", () => {
    byId("inputs").querySelector("pre")!.textContent = JSON.stringify(result.inputs, null, 1);
  }, { once: true });
  (window as unknown as Record<string, unknown>).report = { result, timeline: showTimeline() };
}

function showSearch(search: Search): void {
  (window as unknown as Record<string, unknown>).report = { result: search };
  if (search.plans.length === 0) return;
  const rows = rowsOf(search);
  new Chart(byId("search-memory-chart")).show(memoryDrawing(rows, [], null, null, null));
  new Chart(byId("search-cost-chart")).show(costDrawing(rows, null));
}

const shown = JSON.parse(textOf("result"));
if (shown.schema.startsWith("orrery.search/")) showSearch(shown);
else showEstimate(shown);
