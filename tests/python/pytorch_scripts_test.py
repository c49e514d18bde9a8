"""calibration/pytorch, as far as it needs no GPU.  usage: pytorch_scripts_test.py SOURCE ORRERY"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

SOURCE, ORRERY = sys.argv[1:3]
FOLDER = os.path.join(SOURCE, "calibration", "pytorch")
sys.path.insert(0, FOLDER)
sys.dont_write_bytecode = True
warnings.simplefilter("ignore", ResourceWarning)  # Rows live as long as their process.

import attention  # noqa: E402
import bench  # noqa: E402
import clock  # noqa: E402
import grouped  # noqa: E402
import host  # noqa: E402
import launches  # noqa: E402
import layers  # noqa: E402
import optimizer  # noqa: E402
import packed  # noqa: E402
import record  # noqa: E402
import scans  # noqa: E402


class Rows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "out.csv")

    def tearDown(self):
        self.folder.cleanup()

    def lines(self):
        with open(self.path, newline="") as file:
            return list(csv.reader(file))

    def test_each_row_is_on_disk_at_once(self):
        rows = bench.Rows(self.path, ["what", "size"], ["us"])
        self.assertEqual(self.lines(), [["what", "size", "us"]])
        rows.add(["a", 1], [2.5])
        self.assertEqual(self.lines()[1:], [["a", "1", "2.5"]])

    def test_a_killed_run_goes_on(self):
        bench.Rows(self.path, ["what", "size"], ["us"]).add(["a", 1], [2.5])
        with open(self.path, "a") as file:
            file.write("b,2")  # Half a row.
        rows = bench.Rows(self.path, ["what", "size"], ["us"])
        self.assertTrue(rows.has(["a", 1]))
        self.assertFalse(rows.has(["b", 2]))
        rows.add(["b", 2], [3])
        self.assertEqual(self.lines(), [["what", "size", "us"], ["a", "1", "2.5"], ["b", "2", "3"]])

    def test_a_figure_that_was_cut_off_is_no_figure(self):
        with open(self.path, "w") as file:
            file.write("what,us\r\na,2.5\r\nb,31")  # Of 314.
        rows = bench.Rows(self.path, ["what"], ["us"])
        self.assertFalse(rows.has(["b"]))
        rows.add(["b"], [314])
        self.assertEqual(self.lines(), [["what", "us"], ["a", "2.5"], ["b", "314"]])

    def test_what_failed_has_no_figures(self):
        rows = bench.Rows(self.path, ["what"], ["outcome", "us"])
        rows.add(["a"], ["measured", 2.5])
        self.assertEqual(rows.skip([["a"], ["b"]], RuntimeError("no kernel\nat all")), "no kernel")
        self.assertEqual(rows.skip([["c"]], MemoryError()), "MemoryError")
        self.assertEqual(self.lines()[1:],
                         [["a", "measured", "2.5"], ["b", "skipped: no kernel", ""],
                          ["c", "skipped: MemoryError", ""]])

    def test_other_columns_are_refused(self):
        bench.Rows(self.path, ["what"], ["us"])
        with self.assertRaisesRegex(SystemExit, "other columns"):
            bench.Rows(self.path, ["what"], ["ms"])


class Statistics(unittest.TestCase):
    def test_quantiles(self):  # Of 0, 10, ..., 100 each share is its percent.
        self.assertEqual(bench.summary(range(100, -1, -10)), [50, 10, 90])
        self.assertEqual(bench.quantile([7.0], 0.9), 7.0)

    def test_the_series_is_that_of_the_host(self):
        # As tests/unit/calibration_host/clock_series_test.cpp: 20 of the burst, then three decades.
        windows = [(0.001 * (i + 1), 1000.0 + i, i) for i in range(20_000)]
        points = bench.condensed(windows)
        self.assertTrue(48 <= len(points) <= 52, len(points))
        self.assertEqual([p[1] for p in points[:20]], [1000.0 + i for i in range(20)])
        self.assertEqual(points[-1][0], 20.0)
        self.assertEqual(points[-1][2], 19_999)

    def test_a_budget_ends(self):
        now = [0.0]
        budget = bench.Budget(10.0, lambda: now[0])
        now[0] = 4.0
        self.assertEqual(budget.left(), 6.0)
        now[0] = 11.0
        self.assertTrue(budget.up())


class Scripts(unittest.TestCase):
    def test_without_pytorch_they_say_so(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "torch.py"), "w") as file:
                file.write("raise ImportError('none')\n")
            for script in ("attention", "clock", "grouped", "host", "launches", "layers",
                           "optimizer", "packed", "scans"):
                done = subprocess.run(
                    [sys.executable, "-B", os.path.join(FOLDER, script + ".py"), "out.csv"],
                    env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True,
                    cwd=folder)
                self.assertEqual((done.returncode, done.stderr),
                                 (77, "no PyTorch here: python3 -m pip install torch\n"))
                self.assertFalse(os.path.exists(os.path.join(folder, "out.csv")))

    def test_attention_has_what_was_asked_for_once(self):
        shapes = attention.shapes()
        self.assertEqual(len(shapes), len(set(shapes)))
        plain = [s for s in shapes if not s[-1]]
        self.assertEqual({s[1] for s in plain}, {2**i for i in range(10, 18)})
        self.assertEqual({s[4] for s in plain}, {64, 128, 192})
        self.assertTrue({8, 16, 32, 64} <= {s[2] for s in plain})
        for _, _, heads, kv_heads, *_ in shapes:
            self.assertEqual(heads % kv_heads, 0)

    def test_grouped_products_have_what_was_asked_for_once(self):
        shapes = grouped.shapes()
        self.assertEqual(len(shapes), len(set(shapes)))
        for tokens, experts, n, k in shapes:
            self.assertEqual(tokens % experts, 0)
            self.assertLessEqual(2 * experts * n * k, grouped.WEIGHT_BYTES)

    def test_scans_have_whole_forms_first(self):
        cases = list(scans.cases())
        self.assertEqual(len(cases), len(set(cases)))
        self.assertEqual(len(cases),
                         len(scans.LENGTHS) * sum(len(forms) for forms in scans.FORMS.values()))
        first = cases[: len(scans.LENGTHS) * len(scans.FORMS)]
        self.assertEqual([form for _, _, _, form in first[:: len(scans.LENGTHS)]],
                         [forms[0] for forms in scans.FORMS.values()])
        for kind, forms in scans.FORMS.items():
            for key_heads, heads, *_ in forms:
                self.assertEqual(heads % key_heads, 0, kind)

    def test_packs_hold_all_tokens(self):
        for law, lengths in packed.packs():
            self.assertEqual(sum(lengths), packed.TOKENS, law)
            self.assertGreater(min(lengths), 0)
        # Of the law's spread: the longest of 16 is at its 97th percentile, the mean at exp(1/2).
        self.assertAlmostEqual(max(packed.lognormal(16, 1.0)) / 2048, 4.14, delta=0.05)
        self.assertEqual(packed.pairs([1, 2, 3]), 1 + 3 + 6)

    def test_small_layers_launch_what_large_ones_do(self):
        for size in layers.SIZES:
            small = layers.small(size)
            self.assertEqual(small[2] % small[3], 0)
            self.assertEqual(size[0] // size[2], 4 * small[0] // small[2])
        self.assertEqual(len(set(layers.WAYS)), len(layers.WAYS))

    def test_bytes_of_adam(self):  # Four tensors in fp32 are read and three are written.
        self.assertEqual(optimizer.ADAM_BYTES, 28)
        self.assertTrue(launches.cpu_name())

    def test_readings_of_the_driver(self):
        smi = clock.Smi([sys.executable, "-c", "print('1980, 412.5, 0x0000000000000004')"])
        smi.thread.join(20)
        smi.stop()
        self.assertEqual(smi.last, ("1980", "412.5", "0x0000000000000004"))
        self.assertEqual(clock.Smi(["/nonexistent"]).last, ("", "", ""))

    def test_kernels_by_name(self):
        for kernel, kind in {
                "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT": "products",
                "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n": "products",
                "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>": "products",
                "cudnn_generated_fort_native_sdpa_sm90_flash_fprop": "attention",
                "void at::native::vectorized_elementwise_kernel<4>": "other"}.items():
            self.assertEqual(host.kind_of(kernel), kind, kernel)


def row(**other):
    return {"gpu": "NVIDIA H200", "torch": "2.11", "cuda": "13.0", "cudnn": "91900",
            "backend": "cudnn", "pass": "forward", "dtype": "bf16", "batch": "1",
            "sequence": "4096", "heads": "32", "kv_heads": "8", "head_dim": "128",
            "value_dim": "128", "window": "0", "outcome": "measured", "median_us": "300",
            "p10_us": "299", "p90_us": "303", "runs": "100", **other}


class Record(unittest.TestCase):
    def machine(self):
        with open(os.path.join(SOURCE, "tests/golden/synthetic-record.json")) as file:
            machine = json.load(file)
        machine["machine"] |= {"gpu": "NVIDIA H200", "multiprocessors": 132}
        return machine

    def test_the_fastest_backend_counts(self):
        best, left = record.cases([
            row(), row(backend="flash2", median_us="280"), row(window="1024"),
            row(head_dim="192"), row(sequence="8192", outcome="skipped: no", median_us="")])
        self.assertEqual([r["backend"] for r in best.values()], ["flash2"])
        self.assertEqual(left, 2)

    def test_another_gpu_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "of NVIDIA B200, the machine of NVIDIA H200"):
            record.record([row(gpu="NVIDIA B200")], self.machine())

    def test_what_was_measured_becomes_records(self):
        records = os.path.join(SOURCE, "calibration/data/records/h200-sxm")
        with tempfile.TemporaryDirectory() as folder:
            for name, kind, count in (("attention", "attention", 90),
                                      ("grouped", "grouped_gemm", 85)):
                with open(os.path.join(records, name + ".csv"), newline="") as file:
                    rows = list(csv.DictReader(file))
                with open(os.path.join(records, "record.json")) as file:
                    text, left = record.record(rows, json.load(file))
                measured = json.loads(text)["measurements"]
                self.assertEqual({m["kind"] for m in measured}, {kind})
                self.assertEqual((len(measured), left), (count, 14 if kind == "attention" else 0))
                path = os.path.join(folder, name + ".json")
                with open(path, "w") as file:
                    file.write(text)
            done = subprocess.run(
                [ORRERY, "calibrate", "fit", os.path.join(records, "record.json"),
                 *(os.path.join(folder, name + ".json") for name in ("attention", "grouped")),
                 "-o", os.path.join(folder, "own.json")], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    # What orrery reads is what the rows said: 1 us a row of scores and an overhead.
    def test_orrery_fits_it(self):
        rows = []
        for sequence in (1024, 2048, 4096, 8192, 16384):
            for heads in (16, 32):
                us = 4.0 + sequence**2 * heads * 128 * 2 / 600e6
                for which, factor in (("forward", 1.0), ("backward", 2.6)):
                    times = {"median_us": str(us * factor), "p10_us": str(us * factor * 0.99),
                             "p90_us": str(us * factor * 1.01)}
                    rows.append(row(sequence=str(sequence), heads=str(heads),
                                    kv_heads=str(heads // 4), **{"pass": which}, **times))
        text, left = record.record(rows, self.machine())
        self.assertEqual(left, 0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "attention.json")
            with open(path, "w") as file:
                file.write(text)
            done = subprocess.run(
                [ORRERY, "calibrate", "fit", path, "-o", os.path.join(folder, "own.json")],
                capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "own.json")) as file:
                fitted = json.load(file)["kernels"]
        self.assertEqual(len(fitted["attention_forward"]["rows"]), 10)
        self.assertEqual(fitted["attention_forward"]["measures"], "kernel")
        self.assertTrue(fitted["attention_backward"]["measured"])
        self.assertAlmostEqual(fitted["attention_backward"]["value"], 2.6, delta=0.05)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
