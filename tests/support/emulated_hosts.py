"""Hosts without machines: Linux namespaces joined by a bridge, for tests that need a cluster.

`in_private_world()` first moves the whole test into process, mount and network namespaces of its own. The bridge, the
links and the hosts live in there, so nothing of them touches the machine's network, and when the test ends - also by
SIGKILL - the kernel ends every process in it and takes the rest away: nothing has a name that could be left behind.

A host has its own network (`lo`, and `eth0`, `eth1`, ... each on a bridge that all hosts share), its own name, /tmp and
/dev/shm; the file system is otherwise shared, as on a cluster. Processes of all hosts see each other, so a test can find and kill them.
"""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

NETWORK = "10.83"  # exists in the namespaces only
MARK = "TUPELO_PRIVATE_WORLD"
FAST_KEEPALIVE = ("--mca", "oob_tcp_keepalive_time", "2", "--mca", "oob_tcp_keepalive_intvl", "1",
                  "--mca", "oob_tcp_keepalive_probes", "3")

# Runs as root in the new namespaces of a host; $1: its name, $2: what its /etc/hosts says, then: folders of /tmp that
# it shares with the others.
_HOST = r"""
set -eu
hostname "$1"; names=$2; shift 2
mount --bind "$names" /etc/hosts
mount -t tmpfs tmpfs /mnt
mkdir /mnt/tmp; chmod 1777 /mnt/tmp
for folder; do mkdir "/mnt/tmp/$folder"; mount --bind "/tmp/$folder" "/mnt/tmp/$folder"; done
mount --rbind /mnt/tmp /tmp
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
echo ready
exec sleep infinity
"""

# Whether a host answers.
_REACHES = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=2)
except ConnectionRefusedError:
    pass
except OSError:
    sys.exit(1)
"""

# What mpirun takes for ssh: "agent HOST COMMAND...", with an environment as bare as a login's. Like ssh it stays on the
# host it was started on, and returns 255 when the other end breaks off.
_AGENT = """#!/bin/sh
pid=$(cat {folder}/"$1") || exit 255
shift
env -i PATH="$PATH" HOME="${{HOME:-/}}" nsenter --target "$pid" --net --uts --mount sh -c "$*"
code=$?
if [ $code -gt 128 ]; then exit 255; fi
exit $code
"""


def in_private_world():
    """Starts this program again, with its arguments, in namespaces of its own; returns at once inside them. Ends the
    program with an error where the kernel does not permit that: a test that was asked for does not skip itself."""
    if os.environ.get(MARK) == "1" and os.getpid() == 1:
        return
    os.environ[MARK] = "1"
    line = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            sys.executable, *sys.argv]
    try:
        os.execvp(line[0], line)
    except OSError as error:
        sys.exit(f"cannot start {line[0]}: {error}; tests labelled cluster need Linux namespaces and root")


def _tell(line, **more):
    done = subprocess.run(line, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(line)}: {done.stderr.strip()}")
    return done.stdout


class Host:
    """One host. `command` puts what enters it in front of a command line."""

    def __init__(self, number, names, shared, networks):
        self.name = f"node{number}"
        self.number = number
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "sh", "-c", _HOST, "sh", self.name, str(names), *shared],
            stdout=subprocess.PIPE, text=True)
        if self._holder.stdout.readline() != "ready\n":
            raise RuntimeError(f"{self.name} did not start")
        self.pid = self._holder.pid
        for network in range(networks):
            self._join(network)

    def _join(self, network):
        port, interface = self.port(network), f"eth{network}"
        _tell(["ip", "link", "add", port, "type", "veth", "peer", "name", interface, "netns", str(self.pid)])
        _tell(["ip", "link", "set", port, "master", f"bridge{network}", "up"])
        self.run(["ip", "address", "add", f"{NETWORK}.{network}.{self.number}/24", "dev", interface])
        self.run(["ip", "link", "set", interface, "up"])

    def port(self, network=0):
        """Its end of the link at a bridge."""
        return f"port{self.number}-{network}"

    def command(self, line):
        return ["nsenter", "--target", str(self.pid), "--net", "--uts", "--mount", f"--wdns={os.getcwd()}", "--", *line]

    def run(self, line):
        return _tell(self.command(line))

    def cut(self):
        """The link goes dead without a word to anybody, as when a switch fails."""
        _tell(["ip", "link", "set", self.port(), "down"])

    def mend(self):
        _tell(["ip", "link", "set", self.port(), "up"])

    def reaches(self, other):
        """Whether another host answers, if only that nobody listens there."""
        line = self.command([sys.executable, "-c", _REACHES, f"{NETWORK}.0.{other.number}"])
        return subprocess.run(line, check=False).returncode == 0

    def slow_down(self, rate):
        """What leaves the host and what reaches it by eth0 is held to a rate such as "50mbit"."""
        shape = ["root", "tbf", "rate", rate, "burst", "256kbit", "latency", "200ms"]
        _tell(["tc", "qdisc", "add", "dev", self.port(), *shape])
        self.run(["tc", "qdisc", "add", "dev", "eth0", *shape])

    def speed_up(self):
        _tell(["tc", "qdisc", "delete", "dev", self.port(), "root"])
        self.run(["tc", "qdisc", "delete", "dev", "eth0", "root"])

    def sent(self, network):
        """Bytes that have left by an interface so far."""
        return json.loads(self.run(["ip", "-json", "-statistics", "link", "show", f"eth{network}"])
                          )[0]["stats64"]["tx"]["bytes"]

    def processes(self):
        """Ids of what runs there, apart from what keeps the host itself."""
        mine = os.readlink(f"/proc/{self.pid}/ns/net")
        found = []
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and int(entry) != self.pid and os.readlink(f"/proc/{entry}/ns/net") == mine:
                    found.append(int(entry))
            except OSError:  # it has ended
                continue
        return found

    def power_off(self):
        """Everything that runs there ends at once and can tell nobody; the host itself can be used again."""
        self.cut()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.mend()

    def close(self):
        self.power_off()
        self._holder.kill()
        self._holder.wait()
        self._holder.stdout.close()


class EmulatedHosts:
    """node1, node2, ... on one bridge. A context manager; the folder must be one that the hosts share."""

    def __init__(self, count, folder, networks=1):
        self.folder = pathlib.Path(folder) / "hosts"
        self.folder.mkdir()
        names = self.folder / "etc-hosts"
        names.write_text("127.0.0.1 localhost\n" + "".join(
            f"{NETWORK}.0.{number} node{number}\n" for number in range(1, count + 1)))
        _tell(["ip", "link", "set", "lo", "up"])
        self.bridges = [f"bridge{network}" for network in range(networks)]
        for bridge in self.bridges:
            _tell(["ip", "link", "add", bridge, "type", "bridge"])
            _tell(["ip", "link", "set", bridge, "up"])
        self.hosts = [Host(number, names, _shared_folders(folder), networks) for number in range(1, count + 1)]
        for host in self.hosts:
            (self.folder / host.name).write_text(str(host.pid))
        self.agent = self.folder / "agent"
        self.agent.write_text(_AGENT.format(folder=shlex.quote(str(self.folder))))
        self.agent.chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for host in self.hosts:
            host.close()
        for bridge in self.bridges:
            _tell(["ip", "link", "delete", bridge])

    def wait_for_links(self):
        """Until all hosts reach the first one: over a link that was mended the kernel takes a while."""
        until = time.monotonic() + 60
        for host in self.hosts[1:]:
            while not host.reaches(self.hosts[0]):
                if time.monotonic() > until:
                    raise AssertionError(f"{host.name} does not reach {self.hosts[0].name}")

    def hostfile(self, per_host):
        path = self.folder / f"hostfile-{per_host}"
        path.write_text("".join(f"{host.name} slots={per_host}\n" for host in self.hosts))
        return path

    def mpirun(self, mpirun, per_host, line, options=("--mca", "btl_tcp_if_include", "eth0")):
        """`line` by `per_host` ranks on every host, in the order of the hosts; mpirun itself runs on the first."""
        return self.hosts[0].command([
            mpirun, "--hostfile", str(self.hostfile(per_host)), "-np", str(per_host * len(self.hosts)),
            "--map-by", f"ppr:{per_host}:node", "--bind-to", "none", "--mca", "plm_rsh_agent", str(self.agent),
            "--mca", "oob_tcp_if_include", "eth0",
            *FAST_KEEPALIVE, *options, *line])


def _shared_folders(*more):
    """Folders of /tmp that hold what the hosts work with: the program, the tests, the test's own folder."""
    paths = [*more, sys.executable, __file__, os.environ.get("TUPELO_PROGRAM", ""), os.getcwd()]
    tops = {path.parts[2] for path in (pathlib.Path(path).absolute() for path in paths)
            if len(path.parts) > 3 and path.parts[1] == "tmp" or path.parts[:2] == ("/", "tmp") and len(path.parts) == 3}
    return sorted(top for top in tops if (pathlib.Path("/tmp") / top).is_dir())
