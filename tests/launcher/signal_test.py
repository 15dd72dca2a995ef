"""SIGUSR1, SIGTERM and SIGINT: the ranks agree on a step, save, and leave with the promised code."""

import os
import signal
import subprocess
import time

import tupelo_runs

STEPS = 4000


class Signals(tupelo_runs.RunTest):

    def start(self, run_name, ranks, launcher_options=()):
        process = subprocess.Popen(
            self.train_line(run_name, ranks=ranks, launcher_options=launcher_options,
                            train__steps=STEPS),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        metrics = self.folder / run_name / "metrics.jsonl"
        deadline = time.monotonic() + 120
        while not metrics.exists() or metrics.read_text().count("\n") < 5:
            self.assertIsNone(process.poll(), "training ended early")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        return process

    def finish(self, process, run_name, code):
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, output + errors)
        steps = sorted(tupelo_runs.losses(self.folder / run_name))
        saved = sorted((self.folder / run_name / "checkpoints").glob("step-*"))
        self.assertEqual(int(saved[-1].name.split("-")[1]), steps[-1])
        self.assertIn("the state is saved", errors)
        return steps[-1]

    def test_alone(self):
        for name, number, code in (("usr1", signal.SIGUSR1, 75), ("term", signal.SIGTERM, 75),
                                   ("int", signal.SIGINT, 130)):
            process = self.start(name, ranks=0)
            process.send_signal(number)
            self.finish(process, name, code)

    def test_sigusr1_to_mpirun_and_resume_bitwise(self):
        process = self.start("mpi", ranks=2)
        process.send_signal(signal.SIGUSR1)
        step = self.finish(process, "mpi", 75)
        self.assertGreaterEqual(step, 5)
        # train.steps shapes the learning rate, so the uninterrupted run has the same length.
        resumed = self.start("mpi", ranks=2)
        while max(tupelo_runs.losses(self.folder / "mpi")) < step + 20:
            time.sleep(0.02)
        resumed.send_signal(signal.SIGUSR1)
        self.finish(resumed, "mpi", 75)
        golden = self.start("golden", ranks=2)
        last = max(tupelo_runs.losses(self.folder / "mpi"))
        while max(tupelo_runs.losses(self.folder / "golden")) < last:
            time.sleep(0.02)
        golden.send_signal(signal.SIGUSR1)
        self.finish(golden, "golden", 75)
        expected = tupelo_runs.losses(self.folder / "golden")
        for at, loss in tupelo_runs.losses(self.folder / "mpi").items():
            self.assertEqual(expected[at], loss, f"step {at}")

    def test_signal_to_one_rank_stops_all_at_one_step(self):
        process = self.start("one-rank", ranks=2)
        ranks = [pid for pid in tupelo_runs.descendants(process.pid)
                 if "tupelo" in os.readlink(f"/proc/{pid}/exe")]
        self.assertEqual(len(ranks), 2)
        os.kill(ranks[1], signal.SIGTERM)
        self.finish(process, "one-rank", 75)


if __name__ == "__main__":
    tupelo_runs.main()
