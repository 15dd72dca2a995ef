"""A real SLURM on emulated hosts: one controller, and a slurmd on each host, as a site would set it up.

Its daemons, keys, logs and state live in the test's folder and end with the test (emulated_hosts.in_private_world).
"""

import os
import pathlib
import secrets
import subprocess
import time

import emulated_hosts

_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "sinfo", "squeue")

# cred_expire: a job that was put back into the queue waits until the credentials of its first start have expired.
_CONFIGURATION = """\
ClusterName=emulated
SlurmctldHost=node1
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir=/tmp/slurmd-spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile=/tmp/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=pmix
ReturnToService=2
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobRequeue=1
KillWait=10
MinJobAge=600
SwitchType=switch/none
MailProg=/bin/true
NodeName=node[1-{count}] CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs():
    """Those of SLURM and munge that are not installed."""
    folders = os.environ["PATH"].split(os.pathsep) + ["/usr/sbin"]
    return [name for name in _PROGRAMS if not any((pathlib.Path(folder) / name).exists() for folder in folders)]


class SlurmCluster:
    """SLURM over the `hosts` of an EmulatedHosts; a context manager that is entered once every node is idle."""

    def __init__(self, hosts, folder, count=2):
        self.hosts = hosts.hosts[:count]
        self.folder = pathlib.Path(folder) / "slurm"
        (self.folder / "state").mkdir(parents=True)
        (self.folder / "munge.key").write_bytes(secrets.token_bytes(64))
        (self.folder / "munge.key").chmod(0o600)
        (self.folder / "slurm.conf").write_text(_CONFIGURATION.format(folder=self.folder, count=count))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=autodetect\nIgnoreSystemd=yes\n")
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"),
                            "PATH": os.environ["PATH"] + ":/usr/sbin"}
        self._daemons = []

    def __enter__(self):
        missing = missing_programs()
        if missing:
            raise RuntimeError(f"not installed: {', '.join(missing)}; scripts/install --cluster installs them")
        self._daemon(self.hosts[0], ["munged", "--foreground", "--force", "--num-threads=2",
                                     *(f"--{name}-file={self.folder}/munge.{ending}" for name, ending in (
                                         ("key", "key"), ("log", "log"), ("pid", "pid"), ("seed", "seed"))),
                                     f"--socket={self.folder}/munge.socket"])
        _until(lambda: (self.folder / "munge.socket").exists(), 20, "munged", self.logs)
        self._daemon(self.hosts[0], ["slurmctld", "-D"])
        for host in self.hosts:
            host.run(["mkdir", "-p", "/tmp/slurmd-spool"])
            self._daemon(host, ["slurmd", "-D", "-N", host.name])
        try:
            _until(lambda: self.output(["sinfo", "--noheader", "--Node", "--format=%T"], check=False).split()
                   == ["idle"] * len(self.hosts), 60, "idle nodes", self.logs)
        except Exception:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def command(self, line):
        """`line` on the first host, as a user at the cluster's login; run it in self.environment."""
        return self.hosts[0].command(line)

    def output(self, line, check=True):
        done = subprocess.run(self.command(line), env=self.environment, capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(line)}: {done.stderr}{self.logs()}")
        return done.stdout

    def state(self, job):
        """Fields of a job, by SLURM's names: JobState, Restarts, ExitCode, Reason, ..."""
        words = self.output(["scontrol", "--oneliner", "show", "job", str(job)]).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def logs(self):
        return "".join(f"\n== {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-25:])
                       for path in sorted(self.folder.glob("*.log")))

    def _daemon(self, host, line):
        log = open(self.folder / f"{line[0]}-{host.name}.output.log", "wb")
        with log:
            self._daemons.append(subprocess.Popen(host.command(line), env=self.environment, stdout=log, stderr=log,
                                                  stdin=subprocess.DEVNULL))


def _until(condition, seconds, what, describe):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {seconds} s for {what}{describe()}")
        time.sleep(0.1)
