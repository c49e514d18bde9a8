// Machines by cost and days (orrery.purchase/1): what a report of orrery buy draws.

import { Chart, seriesLegend } from "./chart";
import { byId, fill } from "./dom";
import * as text from "./format";

interface Span { low: number; high: number }
interface PurchaseRow {
  system: string; gpus: number; refused?: string; standing?: string;
  days?: Span & { middle: number }; rent_usd?: Span | null; own_usd?: Span | null;
}
export interface Purchase { pay: string; rows: PurchaseRow[]; front: number[] }

export function showPurchase(purchase: Purchase): void {
  const systems = [...new Set(purchase.rows.map((row) => row.system))];
  const cost = (row: PurchaseRow) => purchase.pay === "rent" ? row.rent_usd : row.own_usd;
  const middle = (span: Span) => (span.low + span.high) / 2;
  const priced = purchase.rows.map((row, index) => ({ row, index }))
    .filter(({ row }) => row.days && cost(row));
  fill(byId("purchase-legend"), seriesLegend(systems));
  new Chart(byId("purchase-cost-chart")).show({
    label: "Machines by days of training and cost",
    x: { title: "days", text: (v) => text.significant(v, 3),
         log: Math.max(...priced.map(({ row }) => row.days!.middle)) >=
           8 * Math.min(...priced.map(({ row }) => row.days!.middle)) },
    y: { title: (purchase.pay === "rent" ? "rent" : "to own") +
           "; filled: no other is both faster and cheaper", text: (v) => text.dollars(v) },
    lines: [{ points: purchase.front.map((index) => purchase.rows[index])
      .map((row): [number, number] => [row.days!.middle, middle(cost(row)!)])
      .sort((a, b) => a[0] - b[0]) }].filter((line) => line.points.length > 1),
    points: priced.map(({ row, index }) => ({
      x: row.days!.middle, y: middle(cost(row)!), series: systems.indexOf(row.system),
      across: [cost(row)!.low, cost(row)!.high] as [number, number],
      mark: purchase.front.includes(index) ? "first" as const
        : row.standing === "perhaps" ? "tie" as const : "listed" as const,
      label: text.grouped(row.gpus),
      title: `${row.system}, ${text.grouped(row.gpus)} GPUs: ` +
        `${text.significant(row.days!.middle, 3)} days, ` +
        text.dollarRange(cost(row)!.low, cost(row)!.high),
    })),
  });
  const timed = purchase.rows.filter((row) => row.days);
  new Chart(byId("purchase-days-chart")).show({
    label: "Days of training by GPUs, and their range", fromZero: true,
    x: { title: "GPUs", text: text.grouped, log: true },
    y: { title: "days of training, and their range", text: (v) => text.significant(v, 3) },
    lines: systems.map((system, series) => ({
      name: system, series, points: timed.filter((row) => row.system === system)
        .map((row): [number, number] => [row.gpus, row.days!.middle]),
    })),
    points: timed.map((row) => ({
      x: row.gpus, y: row.days!.middle, mark: "listed" as const,
      series: systems.indexOf(row.system),
      across: [row.days!.low, row.days!.high] as [number, number],
      title: `${row.system}, ${text.grouped(row.gpus)} GPUs: ` +
        `${text.significant(row.days!.middle, 3)} days`,
    })),
  });
}
