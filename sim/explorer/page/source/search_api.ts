// Replies that come line by line, for as long as the work takes (sim/explorer/
// search_reply.hpp and batches_reply.hpp).

import { failure, question, type Result } from "./api";
import type { State } from "./state";
import type { GridAxis, GridRow } from "./sweep_charts";

/** What a search is asked: as ExploredSearch::read() takes it. */
export interface SearchQuestion {
  state: State; gpus: string; gbs: string; hold: string[]; objective: string; pareto: boolean;
}
export interface SimulatedPlan {
  number: number; gpus: number; gbs: number; flags: string; step_time_s: number;
  tokens_per_s_per_gpu: number; memory: number; state: State;
}
export interface Progress {
  parts: number; parts_done: number; legal: number; fits: number; simulated: number;
  best: number | null; bound: number | null; plans: SimulatedPlan[]; leading: number[];
}
/** orrery.search/1 (docs/reference/json.md). */
export interface Search {
  objective: string; pareto: boolean; plans: Result[];
  ranking: { score: number; tie: boolean; command: string }[];
  space: { legal: number; fits: number; simulated: number; bounded_out: number };
  optimal: boolean;
}
export type SearchLine =
  { command: string; max_memory: number } | { progress: Progress } |
  { search: Search; states: State[] } | { error: string };
export type BatchLine =
  { command: string; batches: number } |
  { gbs: number; step_time_s: number; tokens_per_s_per_gpu: number; memory_bytes: number;
    capacity_bytes: number } |
  { gbs: number; why_not: string } | { error: string };

export type SweepLine =
  { command: string; points: number; axes: GridAxis[] } |
  (GridRow & { state: State }) | { at: number[]; why_not: string } |
  { best: number[]; ties: number[][] } | { error: string };

/** Empty lines only show that the server is at it. */
export async function lines<Line>(kind: string, body: unknown, signal: AbortSignal,
                                  take: (line: Line) => void): Promise<void> {
  const response = await question(kind, body, signal);
  if (!response.ok || !response.body) throw await failure(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (held + value).split("\n");
    held = parts.pop()!;
    for (const line of parts) if (line !== "") take(JSON.parse(line));
  }
}
