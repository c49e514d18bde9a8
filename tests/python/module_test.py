"""The Python module against the program: answers, errors, progress, and what stays behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path

import orrery

PLAN = dict(model="llama3-8b", system="dgx-h100", gpus=16, gbs=32, tp=2)
# Seconds of work, cut short by the tests that use it.
LONG = dict(system="dgx-h100", gpus=128, unfolded=True, bytes="1MiB", simulator="simgrid")


def program_says(*words):
    return subprocess.run(
        [os.environ["ORRERY_PROGRAM"], *words], capture_output=True, text=True, check=True
    ).stdout


def without_time(answer):
    return {key: value for key, value in answer.items() if key != "simulation_wall_s"}


class Answers(unittest.TestCase):
    def test_estimate_is_what_the_program_prints(self):
        words = [word for key, value in PLAN.items() for word in (f"--{key}", str(value))]
        printed = json.loads(program_says("estimate", *words, "--json"))
        self.assertEqual(without_time(orrery.estimate(**PLAN)), without_time(printed))

    def test_booleans_lists_and_underscores_become_options(self):
        answer = orrery.estimate(**PLAN, sp=False, tp_overlap=False, no_timing=True, seq=None)
        self.assertIs(answer["plan"]["sp"], False)
        self.assertNotIn("simulation_wall_s", answer)
        self.assertIs(orrery.estimate(**PLAN, sp=True)["plan"]["sp"], True)

    def test_search_gives_plans_that_go_on(self):
        asked = {key: value for key, value in PLAN.items() if key != "tp"}
        found = orrery.search(**asked, top=3, fix={"tp": [1, 2], "mbs": 1})
        self.assertEqual(len(found["plans"]), 3)
        rows = found.rows()
        self.assertEqual(len(rows), 3)
        self.assertLessEqual({row["plan.tp"] for row in rows}, {1, 2})
        again = orrery.estimate(plan=found["plans"][0])
        self.assertEqual(again["step_time_s"], found["plans"][0]["step_time_s"])
        compared = orrery.compare(*found["plans"][:2])
        self.assertEqual([plan["label"] for plan in compared["plans"]], ["A", "B"])

    def test_run_serve_and_collective(self):
        whole = orrery.run(**PLAN, tokens="100B", replicates=10)
        self.assertEqual(whole["replicates"], 10)
        served = orrery.serve(
            model="llama3-8b", system="dgx-h100", gpus=1, engine="vllm",
            isl=128, osl=16, concurrency=4,
        )  # fmt: skip
        self.assertEqual(served["workload"]["concurrency"], 4)
        sizes = orrery.collective(
            "all_reduce", system="dgx-h100", gpus=8, min_bytes="1MiB", max_bytes="4MiB"
        )
        self.assertEqual([size["bytes"] for size in sizes], [2**20, 2**21, 2**22])
        self.assertEqual(
            orrery.collective("all_reduce", system="dgx-h100", gpus=8, bytes="1MiB"), sizes[:1]
        )

    def test_buy_and_kernel(self):
        bought = orrery.buy(
            model="llama3-8b", tokens="100B", system=["dgx-h100", "dgx-b200"], gpus=16, dtype="bf16"
        )
        self.assertEqual(
            {(row["system"], row["gpus"]) for row in bought.rows()},
            {("dgx-h100", 16), ("dgx-b200", 16)},
        )
        product = orrery.kernel("gemm", gpu="h100-sxm", m=1024, n=2048, k=4096)
        self.assertEqual(product["flop"], 2 * 1024 * 2048 * 4096)
        step = orrery.kernel("step", **PLAN)
        self.assertEqual(len(step.rows()), len(step["operations"]))
        self.assertGreater(len(step.rows()), 10)

    def test_own_model_and_system_may_be_dictionaries(self):
        catalog = Path(__file__).resolve().parents[2]
        model = json.loads((catalog / "workloads/models/llama3-8b.json").read_text())
        model["name"] = "mine"
        self.assertEqual(orrery.estimate(**{**PLAN, "model": model})["model"], "mine")

    def test_sweep_has_a_row_for_each_point(self):
        asked = {key: value for key, value in PLAN.items() if key != "gbs"}
        swept = orrery.sweep(**asked, gbs=[16, 32], mbs=range(1, 3))
        self.assertEqual(len(swept), 4)
        points = {(row["gbs"], row["mbs"]) for row in swept}
        self.assertEqual(points, {(16, 1), (16, 2), (32, 1), (32, 2)})
        best = swept.ok()[0]
        same = orrery.estimate(**asked, gbs=best["gbs"], mbs=best["mbs"])
        self.assertAlmostEqual(best["step_time_s"], same["step_time_s"], places=8)
        drawn = swept.plot(x="gbs", y="mfu", by="mbs")
        self.assertTrue(drawn._repr_svg_().startswith("<svg "))
        folder = swept.folder
        self.assertTrue(os.path.isdir(folder))
        del swept
        self.assertFalse(os.path.exists(folder))

    def test_schedule_is_drawn_and_saved(self):
        drawn = orrery.schedule("1f1b", pp=4, microbatches=8)
        with tempfile.TemporaryDirectory() as folder:
            drawn.save(os.path.join(folder, "a.svg"))
            self.assertEqual(Path(folder, "a.svg").read_text(), drawn.svg)

    def test_names_and_other_commands(self):
        self.assertIn("llama3-8b", orrery.names("models"))
        self.assertEqual(orrery.version(), program_says("--version").split()[1])
        text = orrery.call("export megatron", **PLAN).text
        self.assertIn("--tensor-model-parallel-size 2", text)

    def test_every_command_of_a_question_has_a_function(self):
        printed = program_says("--help")
        for name in (
            "estimate search sweep compare buy serve run kernel collective schedule".split()
        ):
            self.assertIn(f"\n  {name} ", printed)
            self.assertTrue(callable(getattr(orrery, name)))


class Frames(unittest.TestCase):
    def test_rows_become_a_frame(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            with self.assertRaisesRegex(ImportError, "python3-pandas"):
                orrery.Answer({}).frame()
            self.skipTest("pandas is not installed (apt-get install python3-pandas)")
        frame = orrery.Answer({"plans": [{"plan": {"tp": 1}, "a": 2}, {"plan": {"tp": 4}}]}).frame()
        self.assertEqual(list(frame["plan.tp"]), [1, 4])
        self.assertEqual(frame["a"][0], 2)


class Errors(unittest.TestCase):
    def test_bad_input_carries_the_message(self):
        with self.assertRaises(orrery.BadInput) as caught:
            orrery.estimate(**{**PLAN, "model": "llama3-9b"})
        self.assertEqual(
            str(caught.exception),
            "--model: 'llama3-9b' is not in the catalog; did you mean 'llama3-8b'? "
            "(a path needs a '/' or ends in .json)",
        )
        self.assertEqual(caught.exception.code, 2)

    def test_infeasible_is_an_error_of_its_own(self):
        with self.assertRaises(orrery.Infeasible) as caught:
            orrery.estimate(model="llama3-70b", system="dgx-h100", gpus=8, tp=8, gbs=64)
        self.assertTrue(str(caught.exception).startswith("the plan does not fit: "))
        self.assertIsInstance(caught.exception, orrery.OrreryError)

    def test_a_dictionary_is_named_as_the_caller_knows_it(self):
        with self.assertRaises(orrery.BadInput) as caught:
            orrery.estimate(**{**PLAN, "model": {"layers": 0, "hidden": "wide"}})
        lines = str(caught.exception).split("\n")
        self.assertEqual(
            lines[0], "model: /layers: 0 is out of range; write a whole number from 1 to 10000"
        )
        self.assertTrue(lines[1].startswith('model: /hidden: "wide" is not a whole number'))

    def test_an_unknown_option_is_said_before_anything_runs(self):
        with self.assertRaisesRegex(TypeError, "no option 'modl'; did you mean 'model'"):
            orrery.estimate(modl="x")

    def test_notes_come_with_the_answer(self):
        answer = orrery.search(model="llama3-8b", system="dgx-h100", gpus=8, gbs=8, top=1)
        self.assertEqual(answer.notes, [])

    def test_a_program_that_is_not_there(self):
        before = os.environ["ORRERY_PROGRAM"]
        try:
            os.environ["ORRERY_PROGRAM"] = "/nowhere/orrery"
            with self.assertRaisesRegex(orrery.ProgramMissing, "/nowhere/orrery cannot be started"):
                orrery.version()
        finally:
            os.environ["ORRERY_PROGRAM"] = before

    def test_the_program_of_the_source_tree(self):
        source = Path(orrery.__file__).resolve().parent
        with tempfile.TemporaryDirectory() as tree:
            shutil.copytree(source, Path(tree, "sim", "python", "orrery"))
            ask = [sys.executable, "-c", "import orrery; print(orrery.version())"]
            words = {"PYTHONPATH": str(Path(tree, "sim", "python")), "PATH": "/nowhere"}
            missing = subprocess.run(ask, env=words, capture_output=True, text=True)
            self.assertIn("build it with ./run.sh", missing.stderr)
            built = Path(tree, "build", "release", "orrery")
            built.parent.mkdir(parents=True)
            built.write_text("#!/bin/sh\necho 'orrery 7.8.9'\n")
            built.chmod(0o755)
            found = subprocess.run(ask, env=words, capture_output=True, text=True)
            self.assertEqual(found.stdout, "7.8.9\n", found.stderr)

    def test_a_fault_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = Path(folder, "orrery")
            fake.write_text("#!/bin/sh\necho 'orrery: internal error: x' >&2\nkill -ABRT $$\n")
            fake.chmod(0o755)
            before = os.environ["ORRERY_PROGRAM"]
            try:
                os.environ["ORRERY_PROGRAM"] = str(fake)
                with self.assertRaisesRegex(orrery.ProgramFault, "internal error: x") as caught:
                    orrery.version()
                self.assertEqual(caught.exception.code, -signal.SIGABRT)
            finally:
                os.environ["ORRERY_PROGRAM"] = before


class HowFarItIs(unittest.TestCase):
    def test_shares(self):
        for text, share in [
            ("22 % enumerated: 74,880 plans divide", 0.22),
            ("3 of 12 cases, 12,000 of 369,857 tasks", 0.25),
            ("[##..] 1,000 of 4,000  12/s", 0.25),
            ("enumerated: 100 plans divide; bound at 94.7 % of the best", None),
        ]:
            self.assertEqual(orrery.Progress(text).share, share)

    def test_a_listener_hears_it_and_may_end_it(self):
        heard = []

        def listen(progress):
            heard.append(progress)
            raise StopIteration

        begin = time.monotonic()
        with self.assertRaises(StopIteration):
            orrery.collective("all_to_all", progress=listen, **LONG)
        self.assertRegex(heard[0].text, "^0 of 1 sizes")
        self.assertLess(time.monotonic() - begin, 30)


class Interrupts(unittest.TestCase):
    def test_ctrl_c_ends_the_program_and_its_workers(self):
        script = textwrap.dedent(
            """
            import orrery
            first = []
            def listen(progress):
                if not first:
                    first.append(progress)
                    print("it works", flush=True)
            try:
                orrery.collective("all_to_all", progress=listen, **%r)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            """
            % (LONG,)
        )
        child = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
        )
        self.assertEqual(child.stdout.readline(), "it works\n")
        program = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        self.assertEqual(len(program), 1)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.stdout.read(), "interrupted\n")
        self.assertEqual(child.wait(), 0)
        self.assertFalse(os.path.exists(f"/proc/{program[0]}"))
        child.stdout.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
