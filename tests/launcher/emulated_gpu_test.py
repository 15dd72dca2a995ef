"""`tupelo train` on emulated devices (tests/emulated_gpu), where work runs beside the host and is late at times. TUPELO_PROGRAM
is the program on them, with a device for each rank unless EMULATED_GPUS says otherwise."""

import contextlib
import importlib.machinery
import importlib.util
import os
import pathlib
import signal
import socket
import subprocess
import time
import unittest

import tupelo_runs

STEPS = 8
ROOT = pathlib.Path(__file__).resolve().parents[2]


def reports(path, ranks):
    """What each rank counted."""
    texts = [path.with_name(f"{path.name}.{rank}").read_text() for rank in range(ranks)]
    return [{what: int(times) for what, times in (line.rsplit("\t", 1) for line in text.splitlines())} for text in texts]


@contextlib.contextmanager
def environment(**variables):
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class EmulatedGpu(tupelo_runs.RunTest):

    def losses_of(self, name, **options):
        self.train(name, train__steps=STEPS, train__validate_every=4, **options)
        return tupelo_runs.losses(self.folder / name)

    def test_losses_are_those_of_processors(self):
        for packing in ("doc", "packed"):
            expected = self.losses_of(f"{packing}-cpu", ranks=2, data__packing=packing, train__device="cpu")
            for ranks, shards in ((1, "none"), (2, "none"), (2, "world"), (3, "world")):
                with self.subTest(packing=packing, ranks=ranks, shards=shards):
                    found = self.losses_of(f"{packing}-{ranks}-{shards}", ranks=ranks, data__packing=packing,
                                           train__shard_optimizer=shards)
                    self.assert_close(expected, found, 1e-5)

    def test_graphs_train_the_same_bits(self):
        options = {"data__packing": "full", "train__precision": "bf16", "model__dropout": 0.1,
                   "model__attention_dropout": 0.1, "train__shard_optimizer": "world"}
        launched = self.losses_of("launched", ranks=2, **options)
        with environment(EMULATED_GPU_REPORT=str(self.folder / "graph-report")):
            replayed = self.losses_of("replayed", ranks=2, train__cuda_graphs="true", **options)
        self.assertEqual(launched, replayed)
        for report in reports(self.folder / "graph-report", 2):
            self.assertEqual(report["graphs recorded"], 2 * 3)  # forward and backward of each layer
            self.assertGreater(report["graphs launched"], report["graphs recorded"])

    def counts_of(self, name, ranks, **options):
        with environment(EMULATED_GPU_REPORT=str(self.folder / name)):
            self.train(name + "-run", ranks=ranks, train__validate_every=0, train__log_every=1000, **options)
        return reports(self.folder / name, ranks)

    def test_the_host_waits_where_a_step_needs_a_number(self):
        """For the norm of gradients and the losses; with others for what they agree on: the norm's sum, the next batches'
        counts, and that all is finite."""
        for ranks, shards, waits in ((1, "none", 2), (2, "none", 4), (2, "world", 5)):
            few, many = (self.counts_of(f"waits-{ranks}-{shards}-{steps}", ranks=ranks, train__steps=steps,
                                        train__shard_optimizer=shards) for steps in (10, 20))
            for before, after in zip(few, many):
                with self.subTest(ranks=ranks, shards=shards):
                    more = sum(after[what] - before.get(what, 0) for what in after if what.startswith("host waits"))
                    self.assertEqual(more, 10 * waits)

    def test_ranks_use_their_own_device_alone(self):
        for rank, report in enumerate(self.counts_of("contexts", ranks=3, train__steps=3, train__save_every=2)):
            contexts = [what for what in report if what.startswith("context")]
            self.assertEqual(contexts, [f"context on device {rank}"])
            self.assertNotIn("kernels refused", report)

    def test_ranks_and_devices_do_not_match(self):
        for devices in ("2", "4"):
            with self.subTest(devices=devices), environment(EMULATED_GPUS=devices):
                result = self.train("mismatch", ranks=3, train__steps=2, expect=None)
                self.assert_error(result, 2, "runs 3 ranks but has " + devices)

    def test_a_device_without_room(self):
        with environment(EMULATED_GPU_MEMORY="30"):
            result = self.train("no-room", train__steps=2, train__global_batch=2048, train__micro_batch=2048, expect=None)
        self.assert_error(result, 71, "memory ran out", "MiB were asked for at once, on a device with 30.00 MiB of which")

    def start(self, line, **variables):
        """A job that ends with the test at the latest."""
        job = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables})

        def end():
            if job.poll() is None:
                tupelo_runs.kill_job(job)
            job.stdout.close()
            job.stderr.close()

        self.addCleanup(end)
        return job

    def test_a_rank_that_stands_still(self):
        job = self.start(self.train_line("still", ranks=2, train__steps=100000, train__timeout_seconds=8))
        first, second = self.ranks_in_training(job, "still", 2)
        os.kill(second, signal.SIGSTOP)
        # mpirun waits for the one that cannot hear it.
        deadline = time.monotonic() + 60
        while tupelo_runs.is_running(first) and time.monotonic() < deadline:
            self.assertTrue(tupelo_runs.is_running(second))
            time.sleep(0.1)
        self.assertFalse(tupelo_runs.is_running(first))
        os.kill(second, signal.SIGKILL)
        _, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 11, errors)
        self.assertRegex(errors, r"error: rank \d: nccl .* failed: some rank did not join within 8000 ms")

    def ranks_in_training(self, job, run_name, count):
        """Process ids of a job's ranks, once the run has some steps behind it."""
        metrics = self.folder / run_name / "metrics.jsonl"
        deadline = time.monotonic() + 60
        while not (metrics.exists() and metrics.read_text().count("\n") > 6) and time.monotonic() < deadline:
            time.sleep(0.1)
        program = str(pathlib.Path(tupelo_runs.TUPELO).name)
        ranks = []
        for pid in sorted(tupelo_runs.descendants(job.pid)):
            with contextlib.suppress(OSError):
                if pathlib.Path(os.readlink(f"/proc/{pid}/exe")).name == program:
                    ranks.append(pid)
        self.assertEqual(len(ranks), count)
        return ranks

    def test_ranks_that_torchrun_started(self):
        expected = self.losses_of("mpirun", ranks=2, train__shard_optimizer="world")
        line = self.train_line("torchrun", train__steps=STEPS, train__validate_every=4, train__shard_optimizer="world")
        common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        jobs = [self.start(line, **common, RANK=rank, LOCAL_RANK=rank) for rank in ("0", "1")]
        for job in jobs:
            _, errors = job.communicate(timeout=120)
            self.assertEqual(job.returncode, 0, errors)
        self.assertEqual(expected, tupelo_runs.losses(self.folder / "torchrun"))

    def test_torchrun_starts_ranks_anew_on_two_hosts(self):
        """Each of two agents, as of two hosts, has one rank; when one dies, both are started anew and go on from what is saved."""
        line = self.train_line("anew", train__steps=200, train__save_every=5, train__timeout_seconds=5)
        agent = [os.environ["TUPELO_TORCH_PYTHON"], "-m", "torch.distributed.run", "--no-python", "--nnodes", "2",
                 "--nproc-per-node", "1", "--max-restarts", "1", "--monitor-interval", "0.5", "--rdzv-backend", "c10d",
                 "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--rdzv-id", "anew", "--", *line]
        agents = [self.start(agent), self.start(agent)]
        (victim,) = self.ranks_in_training(agents[1], "anew", 1)
        os.kill(victim, signal.SIGKILL)
        outputs = [job.communicate(timeout=180) for job in agents]
        self.assertEqual([job.returncode for job in agents], [0, 0], outputs)
        self.assertRegex("".join(output for output, _ in outputs), r"resuming at step \d+")
        self.assertEqual(sorted(tupelo_runs.losses(self.folder / "anew"))[-1], 200)

    def test_what_gpu_check_trains(self):
        loader = importlib.machinery.SourceFileLoader("gpu_check", str(ROOT / "scripts/gpu-check"))
        gpu_check = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
        loader.exec_module(gpu_check)
        check = gpu_check.Check(self.folder / "check.json")
        check.report["devices"] = ["emulated"] * 2
        self.assertTrue(gpu_check.run_program(check, program=pathlib.Path(tupelo_runs.TUPELO)), check.report)


if __name__ == "__main__":
    tupelo_runs.main()
