// Deployments by what users and GPUs get (orrery.serving_search/1): what a report of orrery serve
// --search draws.

import { Chart, type Mark } from "./chart";
import { byId } from "./dom";
import * as text from "./format";

export interface Deployments {
  points: {
    tie: boolean; command: string;
    figures: { interactivity_tokens_per_s: number; output_tokens_per_s_per_gpu: number };
  }[];
}

// Those that no other beats in both, by rising speed of a user.
function frontOf(points: [number, number][]): [number, number][] {
  const front: [number, number][] = [];
  for (const point of [...points].sort((a, b) => b[0] - a[0] || b[1] - a[1]))
    if (front.length === 0 || point[1] > front[front.length - 1][1]) front.push(point);
  return front.reverse();
}

export function showDeployments(found: Deployments, seen: [number, number][]): void {
  const places = found.points.map(({ figures }): [number, number] =>
    [figures.interactivity_tokens_per_s, figures.output_tokens_per_s_per_gpu]);
  new Chart(byId("deployments-chart")).show({
    label: "A user’s speed against what a GPU makes; the list has the figures",
    x: { title: "tokens a second of a user", text: (v) => text.significant(v, 3) },
    y: { title: "tokens a second and GPU; the line: none of the list beats it",
         text: (v) => text.significant(v, 3) },
    lines: [{ points: frontOf(places) }].filter((line) => line.points.length > 1),
    points: [
      ...seen.map(([x, y]) => ({ x, y, mark: "seen" as const,
                                 title: `replayed: ${text.significant(y)} at ${text.significant(x)}` })),
      ...found.points.map((point, index) => ({
        x: places[index][0], y: places[index][1], label: String(index + 1),
        mark: (index === 0 ? "first" : point.tie ? "tie" : "listed") as Mark,
        title: point.command,
      }))],
  });
}
