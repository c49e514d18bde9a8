// Plans that a search found, as a list has them and as they are drawn.

import type { Result } from "./api";
import type { Drawing, Mark, Point } from "./chart";
import * as text from "./format";
import { planWords } from "./plan_words";
import type { Search } from "./search_api";
import type { State } from "./state";

/** A plan of the list. */
export interface Row {
  rank: number; tie: boolean; step: number; throughput: number; memory: number; gpus: number;
  gbs: number; flags: string; state: State; mfu?: number; days?: number;
  rent?: { low: number; high: number };
}

// What of "orrery estimate --model ... --gbs 256 --tp 8" is the plan.
function flagsIn(command: string): string {
  return command.replace(/^.*? --gbs \d+ ?/, "");
}

export function rowsOf(search: Search, states: State[] = []): Row[] {
  return search.plans.map((plan: Result, index) => ({
    rank: index + 1, tie: search.ranking[index].tie, step: plan.step_time_s,
    throughput: plan.tokens_per_s_per_gpu, gpus: plan.gpus,
    memory: plan.memory.peak_bytes / plan.memory.capacity_bytes,
    gbs: Number(plan.plan.gbs), flags: flagsIn(search.ranking[index].command),
    state: states[index] ?? {}, mfu: plan.mfu, days: plan.bill?.training_time_s,
    rent: plan.bill?.rent_usd ?? undefined,
  }));
}

type Load = ((state: State) => void) | null;

function markOf(row: Row): Mark { return row.rank === 1 ? "first" : row.tie ? "tie" : "listed"; }
function name(row: Row): string { return `${row.rank}${row.tie && row.rank > 1 ? "=" : ""}`; }
function act(load: Load, state: State): (() => void) | undefined {
  return load ? () => load(state) : undefined;
}

/** Another plan that was simulated, or the one of the knobs. */
export interface OtherPlan { step: number; memory: number; flags: string; state: State }

export function memoryDrawing(rows: Row[], others: OtherPlan[], now: OtherPlan | null,
                              limit: number | null, load: Load): Drawing {
  // What is much slower than the list would leave no room for it.
  const slowest = Math.max(...rows.map((row) => row.step));
  const most = now && now.step < 2 * slowest ? Math.max(1.15 * slowest, now.step) : 1.15 * slowest;
  const said = (flags: string, step: number, memory: number) =>
    `${planWords(flags)}: ${text.seconds(step)}, ${text.percent(memory)}`;
  const points: Point[] = others.filter((plan) => plan.step <= most).map((plan) => ({
    x: plan.step, y: plan.memory, mark: "seen", act: act(load, plan.state),
    title: said(plan.flags, plan.step, plan.memory),
  }));
  for (const row of rows)
    points.push({ x: row.step, y: row.memory, mark: markOf(row), label: name(row),
                  title: said(row.flags, row.step, row.memory), act: act(load, row.state) });
  if (now && now.step <= most)
    points.push({ x: now.step, y: now.memory, mark: "now", label: "now",
                  title: `the plan of the knobs: ${text.seconds(now.step)}` });
  return {
    label: "Plans by step time and memory; the list has their figures", points,
    x: { title: "step time", text: (v) => text.seconds(v, 3) },
    y: { title: "share of a GPU’s memory", text: (v) => text.percent(v, 0) },
    limit: limit === null ? undefined : { y: limit, text: `at most ${text.percent(limit, 0)}` },
  };
}

export function costDrawing(rows: Row[], load: Load): Drawing {
  const points: Point[] = [];
  for (const row of rows)
    if (row.days !== undefined && row.rent)
      points.push({ x: row.days / 86400, y: (row.rent.low + row.rent.high) / 2,
                    across: [row.rent.low, row.rent.high], mark: markOf(row), label: name(row),
                    act: act(load, row.state),
                    title: `${planWords(row.flags)}: ${text.span(row.days)}, ` +
                      text.dollarRange(row.rent.low, row.rent.high) });
  return {
    label: "Plans of the list by days of training and rent", points,
    x: { title: "days of training", text: (v) => text.significant(v, 3) },
    y: { title: "rent, and its range", text: (v) => text.dollars(v) },
  };
}
