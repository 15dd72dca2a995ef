"""tupelo doctor, alone and under mpirun, on a sound machine and on one with faults that it must name."""

import json
import os
import pathlib
import shutil
import tempfile
import unittest

import tupelo_runs

CHECKS = ["program", "ranks", "devices", "cores", "numa", "limits", "networks", "shared memory", "free disk",
          "shared folder", "clocks", "all-reduce", "links"]
MPIRUN = [tupelo_runs.MPIRUN, "--oversubscribe"]
UNFIT = 20


class Doctor(unittest.TestCase):

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tupelo-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def doctor(self, line, expect=0, **more):
        done = tupelo_runs.run(line, timeout=120, **more)
        self.assertIn(done.returncode, expect if isinstance(expect, tuple) else (expect,), done.stdout + done.stderr)
        return done

    def json_of(self, line, expect=0, **more):
        done = self.doctor(line, expect, **more)
        report = json.loads(done.stdout)
        self.assertEqual([check["check"] for check in report["checks"]], CHECKS)
        self.assertEqual(report["healthy"], done.returncode == 0)
        self.assertEqual(list(self.folder.iterdir()), [], "it leaves nothing behind")
        return report

    def line(self, *more):
        return [tupelo_runs.TUPELO, "doctor", "--folder", str(self.folder), *more]

    def check(self, report, name):
        return next(check for check in report["checks"] if check["check"] == name)

    def test_alone(self):
        report = self.json_of(self.line("--json"))
        self.assertEqual(len(report["ranks"]), 1)
        self.assertEqual(len(report["versions"]["the tupelo program (SHA-256)"]), 64)
        self.assertIn("Open MPI", report["versions"]["the MPI library"])
        self.assertEqual(report["all_reduce"], [])

    def test_two_ranks(self):
        report = self.json_of([*MPIRUN, "-np", "2", *self.line("--json")])
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [0, 1])
        self.assertEqual(report["checks"][1]["found"], "2 on 1 host")
        sizes = [entry["bytes"] for entry in report["all_reduce"]]
        self.assertEqual(sizes, sorted(sizes))
        self.assertGreaterEqual(len(sizes), 3)
        for entry in report["all_reduce"]:
            self.assertAlmostEqual(entry["bus_gigabytes_per_second"] * 1e9 * entry["seconds"], entry["bytes"],
                                   delta=1e-6 * entry["bytes"])
        self.assertEqual([(link["first"], link["second"]) for link in report["links"]], [("rank 0", "rank 1")])

    def test_an_odd_number_of_ranks_measures_every_pair(self):
        # Three ranks on two cores: how slow a pair may seem is an accident.
        report = self.json_of([*MPIRUN, "-np", "3", *self.line("--json")], expect=(0, UNFIT))
        self.assertEqual([(link["first"], link["second"]) for link in report["links"]],
                         [("rank 0", "rank 1"), ("rank 0", "rank 2"), ("rank 1", "rank 2")])

    def test_for_people_every_check_is_a_line(self):
        lines = self.doctor([*MPIRUN, "-np", "2", *self.line()]).stdout.splitlines()
        self.assertEqual([line[9:24].strip() for line in lines[:len(CHECKS)]], CHECKS)
        self.assertTrue(any(line.startswith("all-reduce bytes") for line in lines))
        self.assertIn("nothing is in the way of a run", lines[-1])

    def test_a_low_limit_on_one_rank(self):
        low = ["sh", "-c", 'ulimit -n 200; exec "$@"', "sh", *self.line("--json")]
        report = self.json_of([*MPIRUN, "-np", "1", *self.line("--json"), ":", "-np", "1", *low], expect=UNFIT)
        limits = self.check(report, "limits")
        self.assertEqual(limits["result"], "failed")
        self.assertIn("200 files", limits["found"])
        self.assertIn("ulimit -n", limits["advice"])

    def test_another_program_on_one_rank(self):
        other = self.folder.parent / (self.folder.name + "-other")
        self.addCleanup(other.unlink)
        shutil.copy(tupelo_runs.TUPELO, other)
        with open(other, "ab") as file:
            file.write(b"\0")
        report = self.json_of([*MPIRUN, "-np", "1", *self.line("--json"),
                               ":", "-np", "1", str(other), *self.line("--json")[1:]], expect=UNFIT)
        program = self.check(report, "program")
        self.assertEqual(program["result"], "failed")
        self.assertRegex(program["found"], r"[0-9a-f]{64} on rank 0 \(.*\), but [0-9a-f]{64} on rank 1 \(")

    def test_folders_that_are_not_the_same(self):
        elsewhere = tempfile.mkdtemp(prefix="tupelo-test-")
        self.addCleanup(shutil.rmtree, elsewhere, ignore_errors=True)
        other = [tupelo_runs.TUPELO, "doctor", "--json", "--folder", elsewhere]
        report = self.json_of([*MPIRUN, "-np", "1", *self.line("--json"), ":", "-np", "1", *other], expect=UNFIT)
        self.assertIn("does not see what rank 0", self.check(report, "shared folder")["found"])
        self.assertEqual(list(pathlib.Path(elsewhere).iterdir()), [])

    def test_a_folder_that_is_not_there(self):
        done = self.doctor([*MPIRUN, "-np", "2", tupelo_runs.TUPELO, "doctor", "--folder",
                            str(self.folder / "missing")], expect=74)
        self.assertEqual(len([line for line in done.stderr.splitlines() if line.startswith("error: ")]), 1)

    def test_a_device_that_is_not_known(self):
        done = self.doctor(self.line("--device", "gpu"), expect=2)
        self.assertIn("auto, cpu, cuda", done.stderr)

    def test_an_interface_that_is_not_there(self):
        done = self.doctor(self.line("--interface", "nosuch0"), expect=2)
        self.assertIn("this host has no nosuch0", done.stderr)
        self.assertIn("valid here", done.stderr)

    def test_the_environment_of_torchrun_is_refused(self):
        environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": "29500"}
        done = self.doctor(self.line(), expect=2, env=environment)
        self.assertIn("mpirun -np 4", done.stderr)
        self.assertIn("RANK=1", done.stderr)
        self.json_of([*MPIRUN, "-np", "2", *self.line("--json")], env=environment)
        self.json_of(self.line("--json"), env={**environment, "WORLD_SIZE": "1"})


if __name__ == "__main__":
    tupelo_runs.main()
