"""Training over three hosts: the same bits as on one, a dead link, a lost host, the interface that is asked for."""

import json
import os
import pathlib
import subprocess
import sys
import time

import tupelo_runs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import emulated_hosts  # noqa: E402

HOSTS = 3


class ThreeHosts(tupelo_runs.RunTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = emulated_hosts.EmulatedHosts(HOSTS, cls.folder, networks=2)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()
        super().tearDownClass()

    def over_hosts(self, run_name, per_host=1, **options):
        return self.cluster.mpirun(tupelo_runs.MPIRUN, per_host, self.train_line(run_name, **options))

    def train_over_hosts(self, run_name, per_host=1, **options):
        done = tupelo_runs.run(self.over_hosts(run_name, per_host, **options))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def start_over_hosts(self, run_name, steps, **options):
        """A run that has made `steps` steps and goes on."""
        process = subprocess.Popen(self.over_hosts(run_name, **options), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        metrics = self.folder / run_name / "metrics.jsonl"
        deadline = time.monotonic() + 120
        while not metrics.exists() or metrics.read_text().count("\n") < steps:
            if process.poll() is not None:
                self.fail("training ended early: " + process.communicate()[0])
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        return process

    def wait_for_nobody(self, seconds):
        """Until no process of the run is left on any host."""
        deadline = time.monotonic() + seconds
        while True:
            left = {host.name: [pid for pid in host.processes() if tupelo_runs.is_running(pid)]
                    for host in self.cluster.hosts}
            if not any(left.values()):
                return
            self.assertLess(time.monotonic(), deadline, f"still there: {left}")
            time.sleep(0.1)

    def assert_same_run(self, one, other):
        """The same losses, and the same bytes of weights and optimizer state at the end."""
        self.assertEqual(tupelo_runs.losses(self.folder / one), tupelo_runs.losses(self.folder / other))
        states = [self.tensors(name) for name in (one, other)]
        self.assertTrue(states[0])
        self.assertEqual(*states)

    def tensors(self, run_name):
        last = max((self.folder / run_name / "checkpoints").glob("step-*"))
        return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}


class SameBits(ThreeHosts):

    def check(self, per_host):
        """With sums in the order of ranks."""
        options = {"train__steps": 40, "train__collectives": "messages"}
        self.train("one-host", ranks=HOSTS * per_host, flags=("fresh", "force"), **options)
        self.train_over_hosts(f"three-hosts-{per_host}", per_host, **options)
        self.assert_same_run("one-host", f"three-hosts-{per_host}")
        described = json.loads((self.folder / f"three-hosts-{per_host}" / "run.json").read_text())
        self.assertEqual(described["hosts"],
                         [host.name for host in self.cluster.hosts for _ in range(per_host)])

    def test_one_rank_per_host(self):
        self.check(1)

    def test_two_ranks_per_host(self):
        self.check(2)
        # Host by host the order is another one, the same at every start.
        for name in ("by-hosts", "by-hosts-again"):
            self.train_over_hosts(name, 2, train__steps=40, train__collectives="hierarchical")
        self.assert_same_run("by-hosts", "by-hosts-again")
        reference = tupelo_runs.losses(self.folder / "three-hosts-2")
        self.assert_close(tupelo_runs.losses(self.folder / "by-hosts"), reference, 1e-5)
        # The ranks of a host, or all ranks, share the optimizer's state.
        for shards in ("node", "world"):
            self.train_over_hosts(f"shared-by-{shards}", 2, train__steps=40, train__shard_optimizer=shards)
            self.assert_close(tupelo_runs.losses(self.folder / f"shared-by-{shards}"), reference, 1e-5)

    def test_many_buckets_go_through_hosts_in_one_order(self):
        """Each goes on to other hosts when it is summed in its own, on each rank at another moment."""
        for name, bucket_bytes in (("few-buckets", 25 << 20), ("many-buckets", 4096)):
            self.train_over_hosts(name, 2, train__steps=30, train__shard_optimizer="node", train__timeout_seconds=20,
                                  train__bucket_bytes=bucket_bytes)
        self.assert_close(tupelo_runs.losses(self.folder / "few-buckets"),
                          tupelo_runs.losses(self.folder / "many-buckets"), 1e-5)

    def test_recomputing_where_the_ranks_of_a_host_share_the_state(self):
        for precision in ("fp32", "bf16"):
            losses = {}
            tight = "auto:" + tupelo_runs.TIGHT_BUDGETS[precision]
            for recompute in ("none", "full", tight):
                name = f"{precision}-{recompute}".replace(":", "-")
                done = self.train_over_hosts(name, 2, train__steps=20, train__shard_optimizer="node",
                                             train__precision=precision, model__recompute=recompute)
                if recompute.startswith("auto"):
                    self.assertRegex(done.stdout, r"recompute .*(attention|ffn|full).* \(auto")
                losses[recompute] = tupelo_runs.losses(self.folder / name)
                self.assertEqual(len(losses[recompute]), 20)
            self.assertEqual(losses["none"], losses["full"], precision)
            self.assertEqual(losses["none"], losses[tight], precision)


class LostHosts(ThreeHosts):
    OPTIONS = {"train__steps": 400, "train__save_every": 20, "train__timeout_seconds": 10}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        line = tupelo_runs.command("train", {**tupelo_runs.TINY, "train.steps": 400, "corpus": cls.corpus,
                                             "run": cls.folder / "golden"}, ranks=HOSTS)
        done = tupelo_runs.run(line)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)

    def check_left(self, process, output):
        """A rank that waited too long ends the job with 11, one whose connection broke with 10, or mpirun, when it
        is the first to notice that the host is gone, with the codes it has for that: 205, or 255 when the ssh connection breaks first."""
        self.assertIn(process.returncode, (10, 11, 205, 255), output)
        self.wait_for_nobody(60)

    def check_resumes(self, run_name):
        self.cluster.wait_for_links()
        done = self.train_over_hosts(run_name, **self.OPTIONS)
        self.assertIn("resum", done.stdout + done.stderr)
        self.assert_same_run("golden", run_name)

    def test_a_link_that_goes_dead(self):
        process = self.start_over_hosts("dead-link", 50, **self.OPTIONS)
        self.cluster.hosts[2].cut()
        output = process.communicate(timeout=90)[0]
        self.check_left(process, output)
        self.cluster.hosts[2].mend()
        self.check_resumes("dead-link")

    def test_a_host_without_power(self):
        process = self.start_over_hosts("no-power", 50, **self.OPTIONS)
        self.cluster.hosts[1].power_off()
        output = process.communicate(timeout=90)[0]
        self.check_left(process, output)
        self.check_resumes("no-power")


class Networks(ThreeHosts):
    # Enough that what training sends cannot be mistaken for what interfaces send by themselves.
    STEPS = 30

    def bytes_by(self, *choice):
        """Bytes that a run whose ranks are told `choice` sends by eth0 and by eth1."""
        before = [self.sent(network) for network in range(2)]
        name = "by-" + choice[1].replace("/", "-")
        line = [*self.train_line(name, train__steps=self.STEPS), *choice]
        done = tupelo_runs.run(self.cluster.mpirun(tupelo_runs.MPIRUN, 1, line, options=()))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [self.sent(network) - before[network] for network in range(2)]

    def sent(self, network):
        return sum(host.sent(network) for host in self.cluster.hosts)

    def test_ranks_talk_over_the_network_they_are_told(self):
        for choice in ("eth1", "10.83.1.0/24"):
            by_first, by_second = self.bytes_by("--interface", choice)
            # mpirun and its daemons stay on eth0.
            self.assertGreater(by_second, 5 * by_first, choice)
        by_first, by_second = self.bytes_by("--interface", "eth0")
        self.assertGreater(by_first, 100 * by_second)


class Doctor(ThreeHosts):
    UNFIT = 20

    def doctor(self, expect, folder=None, per_host=1):
        line = [tupelo_runs.TUPELO, "doctor", "--json", "--folder", str(folder or self.folder)]
        done = tupelo_runs.run(self.cluster.mpirun(tupelo_runs.MPIRUN, per_host, line))
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        return report, {check["check"]: check for check in report["checks"]}

    def test_hosts_that_are_sound(self):
        report, checks = self.doctor(0)
        self.assertEqual(checks["ranks"]["found"], "3 on 3 hosts")
        self.assertEqual([(link["first"], link["second"]) for link in report["links"]],
                         [("node1", "node2"), ("node1", "node3"), ("node2", "node3")])
        self.assertEqual([rank["addresses"][0]["address"] for rank in report["ranks"]],
                         ["10.83.0.1", "10.83.0.2", "10.83.0.3"])

    def test_a_folder_that_one_host_does_not_share(self):
        folder = self.folder / "shared"
        folder.mkdir()
        self.cluster.hosts[2].run(["mount", "-t", "tmpfs", "tmpfs", str(folder)])
        checks = self.doctor(self.UNFIT, folder)[1]
        self.assertEqual(checks["shared folder"]["result"], "failed")
        self.assertIn("rank 2 (node3): does not see what rank 0 (node1) wrote", checks["shared folder"]["found"])
        self.assertEqual(list(folder.iterdir()), [])

    def test_a_slow_link(self):
        self.cluster.hosts[2].slow_down("50mbit")
        try:
            checks = self.doctor(self.UNFIT)[1]
        finally:
            self.cluster.hosts[2].speed_up()
        self.assertEqual(checks["links"]["result"], "failed")
        self.assertIn("node1 - node3", checks["links"]["found"])
        self.assertIn("node2 - node3", checks["links"]["found"])
        self.assertIn("end at node3", checks["links"]["advice"])

    def test_an_address_that_two_hosts_have(self):
        """As bridges of containers have: MPI hangs on it, the doctor does not, and says what helps."""
        for host in self.cluster.hosts:
            host.run(["ip", "link", "add", "docker0", "type", "bridge"])
            host.run(["ip", "address", "add", "172.17.0.1/16", "dev", "docker0"])
            host.run(["ip", "link", "set", "docker0", "up"])
        try:
            line = [tupelo_runs.TUPELO, "doctor", "--folder", str(self.folder)]
            hung = tupelo_runs.run(self.cluster.mpirun(tupelo_runs.MPIRUN, 1, line, options=()))
            healed = tupelo_runs.run(self.cluster.mpirun(tupelo_runs.MPIRUN, 1, [*line, "--interface", "eth0"],
                                                         options=()))
        finally:
            for host in self.cluster.hosts:
                host.run(["ip", "link", "delete", "docker0"])
        self.assertEqual(hung.returncode, 11, hung.stdout + hung.stderr)
        self.assertIn("with --interface: this host has eth0 (10.83.0.", hung.stderr)
        self.assertIn("docker0 (172.17.0.1)", hung.stderr)
        self.assertEqual(healed.returncode, 0, healed.stdout + healed.stderr)


if __name__ == "__main__":
    emulated_hosts.in_private_world()
    tupelo_runs.main()
