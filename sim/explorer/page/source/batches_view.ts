// Other global batches of the same plan, as curves that follow the knobs.

import type { Answer } from "./api";
import { Chart, type Point } from "./chart";
import { byId } from "./dom";
import * as text from "./format";
import { type BatchLine, lines } from "./search_api";
import type { State } from "./state";

interface Batch { gbs: number; speed: number; memory: number; step: number; capacity: number }

// A batch's own part of a state, and what no step depends on.
function withoutBatch(state: State): string {
  const { gbs: _gbs, tokens: _tokens, economics: _economics, ...rest } = state;
  return JSON.stringify(Object.entries(rest).sort());
}

export class BatchesView {
  points: Batch[] = [];
  /** Asked for and come whole. */
  settled = 0;

  private answer: Answer | null = null;
  private abort: AbortController | null = null;
  private of = "";  // The plan of `points`.
  private seen = false;
  private refused = 0;
  private waiting = 0;
  private asking = "";  // The state that is asked about.
  private readonly speed = new Chart(byId("batches-speed-chart"));
  private readonly memory = new Chart(byId("batches-memory-chart"));

  constructor(private readonly turn: (changes: State) => void) {
    // Nobody computes what nobody looks at.
    new IntersectionObserver((entries) => {
      this.seen = entries[entries.length - 1].isIntersecting;
      if (this.seen) this.ask();
    }, { rootMargin: "120px" }).observe(byId("batches-section"));
  }

  follow(answer: Answer): void {
    this.answer = answer;
    byId("batches-section").hidden = !answer.result;
    clearTimeout(this.waiting);
    if (withoutBatch(answer.state) === this.of) this.draw();
    // A slider that moves is let go by first.
    this.waiting = window.setTimeout(() => this.ask(), 150);
  }

  private async ask(): Promise<void> {
    const answer = this.answer;
    if (!this.seen || !answer?.result) return;
    const of = withoutBatch(answer.state), now = Number(answer.result.plan.gbs);
    if (of === this.of && this.points.some((point) => point.gbs === now)) return;
    const asking = of + now;
    if (asking === this.asking) return;
    this.abort?.abort();
    const mine = this.abort = new AbortController();
    this.asking = asking;
    const points: Batch[] = [];
    this.refused = 0;
    byId("batches-said").textContent = "";
    try {
      await lines<BatchLine>("batches", answer.state, mine.signal, (line) => {
        if (mine.signal.aborted) return;
        if ("command" in line) {
          this.of = of;
          byId("batches-command").textContent = line.command;
        } else if ("error" in line) throw new Error(line.error);
        else if ("why_not" in line) ++this.refused;
        else points.push({ gbs: line.gbs, speed: line.tokens_per_s_per_gpu, step: line.step_time_s,
                           memory: line.memory_bytes, capacity: line.capacity_bytes });
      });
      if (mine.signal.aborted) return;
      this.points = points;
      this.draw();
      ++this.settled;
    } catch (error) {
      if (!mine.signal.aborted) byId("batches-said").textContent = (error as Error).message;
      // An older question came later than this one, which was dropped for it.
      if (!mine.signal.aborted && (error as Error).message.startsWith("dropped"))
        this.waiting = window.setTimeout(() => this.ask(), 300);
    } finally {
      if (this.abort === mine) this.asking = "";
    }
  }

  private draw(): void {
    const now = Number(this.answer?.result?.plan.gbs ?? 0);
    const drawn = (y: (batch: Batch) => number, said: (batch: Batch) => string): Point[] =>
      this.points.map((batch) => ({
        x: batch.gbs, y: y(batch), mark: batch.gbs === now ? "first" : "listed",
        label: batch.gbs === now ? `now: ${said(batch)}` : undefined,
        title: `batch ${text.grouped(batch.gbs)}: ${said(batch)}, step ${text.seconds(batch.step)}`,
        act: () => this.turn({ gbs: String(batch.gbs) }),
      }));
    const x = { title: "global batch", text: text.grouped, log: true };
    this.speed.show({
      label: "Tokens a second and GPU by global batch", x, line: true, fromZero: true,
      y: { title: "tokens/s/GPU", text: text.grouped },
      points: drawn((batch) => batch.speed, (batch) => text.significant(batch.speed)),
    });
    const capacity = this.points[0]?.capacity ?? 0;
    this.memory.show({
      label: "Memory of a GPU by global batch", x, line: true, fromZero: true,
      y: { title: "memory of a GPU", text: (v) => text.gigabytes(v) },
      limit: { y: capacity, text: `holds ${text.gigabytes(capacity)}` },
      points: drawn((batch) => batch.memory, (batch) => text.gigabytes(batch.memory)),
    });
    byId("batches-said").textContent = this.refused === 0 ? ""
      : `${this.refused} more do not fit in the memory.`;
  }
}
