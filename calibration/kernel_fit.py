"""Fits the constants of the GEMM and attention time formulas to measured rows.

The formulas are those of docs/explanation/kernels.md; sim/kernels/gemm_time.cpp and attention_time.cpp
evaluate the same ones. Nothing but Python's own library is needed; a table takes about half a minute.

Fitting minimises the mean of min(|ln(predicted / measured)|, 0.5) by Nelder and Mead's simplex. The
absolute value and its cap make single odd rows harmless, so none has to be removed by hand. A weak
prior holds constants that small shapes alone cannot tell (how much long kernels slow down).
"""

import heapq
import math
import statistics

TILES = ((256, 128), (128, 256), (128, 128), (64, 64))

# Ideal time of a kernel from which on a benchmark of a few runs feels the power limit: rows of all
# tables keep their rate up to some 5 ms, and have lost all that they lose at 11
# (docs/explanation/kernels.md).
THROTTLE_US = 6000.0


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


def nelder_mead(loss, start, step, iterations):
    """The best point of a simplex of len(start) + 1 points after `iterations` moves."""
    simplex = [(loss(start), list(start))]
    for i in range(len(start)):
        point = list(start)
        point[i] += step
        simplex.append((loss(point), point))
    for _ in range(iterations):
        simplex.sort(key=lambda entry: entry[0])
        worst_loss, worst = simplex[-1]
        centre = [sum(p[i] for _, p in simplex[:-1]) / (len(simplex) - 1)
                  for i in range(len(start))]

        def along(t):
            point = [c + t * (w - c) for c, w in zip(centre, worst)]
            return loss(point), point

        mirrored = along(-1.0)
        if mirrored[0] < simplex[0][0]:
            simplex[-1] = min(mirrored, along(-2.0), key=lambda entry: entry[0])
        elif mirrored[0] < simplex[-2][0]:
            simplex[-1] = mirrored
        else:
            inner = along(-0.5) if mirrored[0] < worst_loss else along(0.5)
            if inner[0] < min(mirrored[0], worst_loss):
                simplex[-1] = inner
            else:
                best = simplex[0][1]
                shrunk = [[b + 0.5 * (p - b) for b, p in zip(best, point)]
                          for _, point in simplex[1:]]
                simplex[1:] = [(loss(point), point) for point in shrunk]
    return min(simplex, key=lambda entry: entry[0])


def best_of(loss, starts, iterations=700):
    found = min((nelder_mead(loss, s, 0.25, iterations) for s in starts), key=lambda e: e[0])
    return nelder_mead(loss, found[1], 0.1, iterations)[1]


def capped_error(predicted, rows):
    return statistics.fmean(min(abs(math.log(p / row[-1])), 0.5) for p, row in zip(predicted, rows))


class Gemm:
    """`reference`: peak [flop/us], bandwidth [bytes/us], multiprocessors of the measured GPU.

    `element`: bytes of an operand's element. `casts`: the rows hold the cast of the activation.
    """

    def __init__(self, rows, reference, element, casts):
        self.rows, self.reference, self.casts = rows, reference, casts
        self.unthrottled = self.keeps_its_rate()
        sms, peak = reference["multiprocessors"], reference["peak"]
        self.prepared = []
        for m, n, k, _ in rows:
            tiles = []
            for a, b in TILES:
                waves = math.ceil(m / a) * math.ceil(n / b) / sms
                tiles.append((math.ceil(waves), max(waves, 1.0), 2.0 * a * b * k / (peak / sms)))
            memory = (element * (m * k + n * k) + 2 * m * n) / reference["bandwidth"]
            self.prepared.append((tiles, memory, 2.0 * m * n * k / peak,
                                  3.0 * m * k / reference["bandwidth"]))

    def keeps_its_rate(self):
        """Whether large products of 11 ms and more run at the rate of those of 1 to 5 ms: no power
        limit acts on them. Not told of rows with casts, which weigh less in long ones."""
        if self.casts:
            return False
        rates = {True: [], False: []}
        for m, n, k, us in self.rows:
            if min(m, n / 2, k / 2) >= 2048 and (1e3 <= us < 5e3 or us >= 11e3):
                rates[us >= 11e3].append(m * n * k / us)
        return all(rates.values()) and (
            statistics.median(rates[True]) >= 0.95 * statistics.median(rates[False]))

    def constants(self, q):
        names = ["overhead", "compute_efficiency", "tile_overhead", "memory_efficiency", "hard",
                 "throttle"]
        values = [math.exp(q[0]), math.exp(q[1]), math.exp(q[2]), math.exp(q[3]), sigmoid(q[4]),
                  0.0 if self.unthrottled else max(q[5], 0.0)]
        found = dict(zip(names, values))
        if self.casts:
            # Not to be told apart from the cast's own overhead: set to what bf16 tables show.
            found["overhead"] = 2.2
            found["cast_overhead"], found["cast_efficiency"] = math.exp(q[6]), math.exp(q[7])
        return found

    def predict(self, c):
        hard, e, tile = c["hard"], c["compute_efficiency"], c["tile_overhead"]
        eb, throttle, overhead = c["memory_efficiency"], c["throttle"], c["overhead"]
        times = []
        for tiles, memory, work, cast in self.prepared:
            compute = min((hard * whole + (1 - hard) * share) * (flop / e + tile)
                          for whole, share, flop in tiles)
            core = (compute**4 + (memory / eb) ** 4) ** 0.25
            t = core * (1 + throttle / (1 + (THROTTLE_US / work) ** 3)) + overhead
            if self.casts:
                t += c["cast_overhead"] + cast / c["cast_efficiency"]
            times.append(t)
        return times

    def loss(self, q):
        if max(abs(x) for x in q) > 20:
            return 1e9
        prior = (((q[5] - 0.1) / 0.1) ** 2 + ((q[4] + 0.5) / 1.5) ** 2 +
                 (q[2] - math.log(0.5)) ** 2 + ((q[1] - math.log(0.8)) / 0.15) ** 2)
        return capped_error(self.predict(self.constants(q)), self.rows) + 0.001 * prior

    def fit(self):
        starts = []
        for tile, hard in ((0.5, -1.0), (2.0, 0.0), (0.1, 1.0)):
            start = [math.log(2.0), math.log(0.8), math.log(tile), math.log(0.7), hard, 0.1]
            starts.append(start + ([math.log(10.0), math.log(0.3)] if self.casts else []))
        return self.constants(best_of(self.loss, starts))

    def coordinates(self):
        # Tiles count m*n, so neighbours must share that first; shape and depth change slowly.
        return [(1.5 * math.log2(m * n), 0.5 * math.log2(m / n), 0.5 * math.log2(k))
                for m, n, k, _ in self.rows]


class Attention:
    """Causal forward rows (batch, sequence, heads, kv heads, us) of one head dimension."""

    def __init__(self, rows, reference, head_dim):
        self.rows, self.reference, self.d = rows, reference, head_dim

    def constants(self, q):
        names = ["overhead", "efficiency", "diagonal", "query_traffic", "key_traffic"]
        found = dict(zip(names, map(math.exp, q[:5])))
        found["hard"], found["lone"] = sigmoid(q[5]), math.exp(q[6])
        return found

    def predict(self, c):
        peak, bandwidth = self.reference["peak"], self.reference["bandwidth"]
        sms, d = self.reference["multiprocessors"], self.d
        speed, diagonal, hard = c["efficiency"] * peak, c["diagonal"], c["hard"]
        times = []
        for b, s, h, kv, _ in self.rows:
            waves = b * h * math.ceil(s / 256) / sms
            pair = 2.0 * b * h * s * (s + diagonal) * d / speed
            lone = c["lone"] * 4 * 256 * (s + diagonal) * d / (speed / sms)
            compute = ((pair * (hard * math.ceil(waves) / waves + 1 - hard)) ** 3 + lone**3) ** (1 / 3)
            memory = 4.0 * b * s * d * (h * c["query_traffic"] + kv * c["key_traffic"]) / bandwidth
            times.append(c["overhead"] + compute + memory)
        return times

    def loss(self, q):
        if max(abs(x) for x in q) > 20:
            return 1e9
        centre = [math.log(x) for x in (12, 0.6, 256, 2, 2)] + [-1.0, -0.5]
        prior = sum(((x - x0) / s) ** 2
                    for x, x0, s in zip(q, centre, (0.5, 0.3, 1, 1, 1, 1.5, 1)))
        return capped_error(self.predict(self.constants(q)), self.rows) + 0.0003 * prior

    def fit(self):
        starts = [[math.log(x) for x in (12, 0.6, delta, 2, 2)] + [hard, -0.5]
                  for delta, hard in ((256, -1.0), (100, 0.5), (100, 2.0))]
        return self.constants(best_of(self.loss, starts))

    def coordinates(self):
        return [(0.7 * math.log2(b * h), 0.7 * math.log2(s), 0.3 * math.log2(h / kv),
                 0.2 * math.log2(b)) for b, s, h, kv, _ in self.rows]


def leave_one_out(model, constants):
    """predicted / measured - 1 of each row, predicted from the 8 nearest others."""
    points, base = model.coordinates(), model.predict(constants)
    residual = [math.log(row[-1] / t) for row, t in zip(model.rows, base)]
    errors = []
    for i, x in enumerate(points):
        squares = ((sum((a - b) ** 2 for a, b in zip(x, y)), j)
                   for j, y in enumerate(points) if j != i)
        near = heapq.nsmallest(8, squares)
        weights = [1 / (square + 0.05) for square, _ in near]
        shift = sum(w * residual[j] for w, (_, j) in zip(weights, near)) / (sum(weights) + 0.5)
        errors.append(base[i] * math.exp(shift) / model.rows[i][-1] - 1)
    return errors


def middle(values, share):
    """As KernelError of sim/cost: the value at place share * len of the ordered ones."""
    return sorted(values)[int(share * len(values))]


def summary(errors):
    """The "left_out" object of a table: what |error| is half and nine tenths of the time, and which
    way it leans."""
    sizes = [abs(error) for error in errors]
    return {"count": len(errors), "median_error": middle(sizes, 0.5), "p90_error": middle(sizes, 0.9),
            "bias": middle(errors, 0.5)}
