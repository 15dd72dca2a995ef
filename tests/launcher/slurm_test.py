"""Under a real SLURM of two nodes: srun trains the same bits as one host, examples/slurm/train.sbatch outlives signals."""

import pathlib
import subprocess
import sys
import time

import tupelo_runs

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
import emulated_hosts  # noqa: E402
import slurm_cluster  # noqa: E402

TEMPLATE = ROOT / "examples" / "slurm" / "train.sbatch"


class Slurm(tupelo_runs.RunTest):
    # Enough that a job is still running when the test has seen it begin.
    STEPS = 300

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hosts = emulated_hosts.EmulatedHosts(2, cls.folder)
        cls.slurm = slurm_cluster.SlurmCluster(cls.hosts, cls.folder)
        cls.slurm.__enter__()
        done = tupelo_runs.run(tupelo_runs.command("train", cls.settings("golden"), ranks=2))
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.slurm.close()
        cls.hosts.close()
        super().tearDownClass()

    @classmethod
    def settings(cls, run_name):
        return {**tupelo_runs.TINY, "train.steps": cls.STEPS, "train.save-every": 100, "corpus": cls.corpus,
                "run": cls.folder / run_name}

    def submit(self, run_name):
        """The job's number; its output is in the folder of the test."""
        options = tupelo_runs.command("train", self.settings(run_name))[2:]
        output = self.slurm.output([
            "env", f"TUPELO={tupelo_runs.TUPELO}", "sbatch", "--parsable", f"--output={self.folder}/{run_name}.log",
            str(TEMPLATE), *options])
        return int(output.split(";")[0])

    def log(self, run_name):
        path = self.folder / f"{run_name}.log"
        return (path.read_text() if path.exists() else "no output") + self.slurm.logs()

    def wait_for_steps(self, run_name, steps):
        metrics = self.folder / run_name / "metrics.jsonl"
        deadline = time.monotonic() + 120
        while not metrics.exists() or metrics.read_text().count("\n") < steps:
            self.assertLess(time.monotonic(), deadline, self.log(run_name))
            time.sleep(0.02)

    def wait_for_state(self, job, run_name, *states):
        deadline = time.monotonic() + 150
        while True:
            fields = self.slurm.state(job)
            if fields["JobState"] in states:
                return fields
            self.assertLess(time.monotonic(), deadline, f"{fields}\n{self.log(run_name)}")
            time.sleep(0.2)

    def assert_same_run(self, run_name):
        self.assertEqual(tupelo_runs.losses(self.folder / "golden"), tupelo_runs.losses(self.folder / run_name))

    def test_srun_trains_the_same_bits_as_one_host(self):
        line = ["srun", "--mpi=pmix", "-N2", "-n2", *tupelo_runs.command("train", self.settings("srun"))]
        done = subprocess.run(self.slurm.command(line), env=self.slurm.environment, capture_output=True, text=True,
                              timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.slurm.logs())
        self.assert_same_run("srun")

    def test_a_job_that_is_signalled_saves_goes_back_into_the_queue_and_finishes(self):
        job = self.submit("requeued")
        self.wait_for_steps("requeued", 30)
        self.slurm.output(["scancel", "--batch", "--signal=TERM", str(job)])
        fields = self.wait_for_state(job, "requeued", "COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL")
        log = self.log("requeued")
        self.assertEqual(fields["JobState"], "COMPLETED", log)
        self.assertEqual(fields["Restarts"], "1", log)
        self.assertIn("goes back into the queue", log)
        self.assertIn("resuming at step", log)
        self.assert_same_run("requeued")

    def test_a_job_that_is_cancelled_stays_cancelled_and_has_saved(self):
        job = self.submit("cancelled")
        self.wait_for_steps("cancelled", 30)
        self.slurm.output(["scancel", str(job)])
        fields = self.wait_for_state(job, "cancelled", "COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL")
        self.assertEqual(fields["JobState"], "CANCELLED", self.log("cancelled"))
        time_left = time.monotonic() + 60
        while self.slurm.output(["squeue", "--noheader", "--format=%T"]).strip():
            self.assertLess(time.monotonic(), time_left, "the job is still there: " + self.log("cancelled"))
            time.sleep(0.2)
        steps = sorted(tupelo_runs.losses(self.folder / "cancelled"))
        saved = max((self.folder / "cancelled" / "checkpoints").glob("step-*"))
        self.assertEqual(int(saved.name.split("-")[1]), steps[-1], self.log("cancelled"))
        self.assertLess(steps[-1], self.STEPS)

    def test_a_job_that_fails_does_not_come_back(self):
        options = tupelo_runs.command("train", {**self.settings("wrong"), "train.micro-batch": "0"})[2:]
        job = int(self.slurm.output(["env", f"TUPELO={tupelo_runs.TUPELO}", "sbatch", "--parsable",
                                     f"--output={self.folder}/wrong.log", str(TEMPLATE), *options]).split(";")[0])
        fields = self.wait_for_state(job, "wrong", "COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL")
        self.assertEqual((fields["JobState"], fields["ExitCode"]), ("FAILED", "2:0"), self.log("wrong"))
        lines = (self.folder / "wrong.log").read_text().splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("error: ")]), 1, lines)


if __name__ == "__main__":
    emulated_hosts.in_private_world()
    tupelo_runs.main()
