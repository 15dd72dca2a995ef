"""kill -9 at random moments: the resumed run is the uninterrupted one."""

import random
import shutil
import subprocess
import time

import tupelo_runs

STEPS = 400
KILLS = 5
SETTINGS = {"train__steps": STEPS, "train__save_every": 10, "model__dropout": "0.1",
            "model__attention_dropout": "0.1"}


class KillResume(tupelo_runs.RunTest):
    documents = 200  # several epochs

    def test_five_kills_leave_no_trace(self):
        self.train("golden", ranks=2, **SETTINGS)
        golden = tupelo_runs.losses(self.folder / "golden")
        chance = random.Random(20261129)
        killed = 0
        while killed < KILLS:
            process = subprocess.Popen(self.train_line("killed", ranks=2, **SETTINGS),
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.wait_for_progress(process, chance.randint(1, 12))
            time.sleep(chance.random() * 0.05)
            if process.poll() is not None:
                break
            tupelo_runs.kill_job(process)
            killed += 1
        self.assertEqual(killed, KILLS, "the run ended before it was killed often enough")
        self.train("killed", ranks=2, **SETTINGS)
        self.assertEqual(golden, tupelo_runs.losses(self.folder / "killed"))
        self.assertEqual(self.ledgers("golden"), self.ledgers("killed"))
        self.assertGreater(len(self.ledgers("golden")), 1)

    def wait_for_progress(self, process, steps):
        """Until `steps` more steps are logged than there were."""
        metrics = self.folder / "killed" / "metrics.jsonl"
        seen = self.last_step(metrics)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            now = self.last_step(metrics)
            if now < seen:
                seen = now  # cut back to the restored step
            if now >= seen + steps:
                return
            time.sleep(0.005)

    @staticmethod
    def last_step(metrics):
        if not metrics.exists():
            return 0
        return metrics.read_text().count('"loss"')

    def ledgers(self, run_name):
        epochs = tupelo_runs.records(self.folder / run_name, "epoch")
        self.assertTrue(all(epoch["complete"] for epoch in epochs))
        return [(epoch["finished_epoch"], epoch["rows"], epoch["ledger"]) for epoch in epochs]

    def test_another_world_size_continues_within_rounding(self):
        # Rounding errors grow with training: 100 steps keep them below the bound.
        steps = 100
        settings = dict(SETTINGS, train__steps=steps, model__dropout="0",
                        model__attention_dropout="0")
        self.train("even", ranks=2, **settings)
        process = subprocess.Popen(self.train_line("moved", ranks=2, **settings),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        metrics = self.folder / "moved" / "metrics.jsonl"
        while process.poll() is None and self.last_step(metrics) < steps // 2:
            time.sleep(0.005)
        self.assertIsNone(process.poll())
        tupelo_runs.kill_job(process)
        shutil.copytree(self.folder / "moved", self.folder / "moved-1")
        for name, ranks in (("moved", 3), ("moved-1", 0)):
            result = self.train(name, ranks=ranks, **settings)
            self.assertIn("number of ranks was 2", result.stderr)
            self.assert_close(tupelo_runs.losses(self.folder / "even"),
                              tupelo_runs.losses(self.folder / name), 1e-5)
            self.assertEqual(self.ledgers("even"), self.ledgers(name))


if __name__ == "__main__":
    tupelo_runs.main()
