// A report: the explorer's drawings of one answer, whose data the file holds.

import type { Result } from "./api";
import { showCriticalPath, showMemory } from "./answer_view";
import { byId, fill } from "./dom";
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

showEstimate(JSON.parse(textOf("result")));
