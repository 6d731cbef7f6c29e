#!/usr/bin/env python3
"""CPU time and wake-ups of a film that is got at its own, low rate, and bytes per second to a pipe, beside curl.

Usage: bench/cost.py [--seconds N] [--size MIB] [--rounds N] [ANABRANCH]

All is in a network namespace of its own. First a file goes from nginx through a client to a pipe over plain loopback, one client after
the other. Then the loopback becomes a path of 20 Mbps with packets of a network (tbf), and every client gets the same film at 800 kbps, all
of a round at the same time: what is counted is each one's own. Over loopback as it is curl would take the whole film at once: it reads as long
as there is something, up to 10 MB, before it looks at its limit. So receive buffers do not grow there either. Prints raw results (bench/raw.py).
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import raw

RATE_KBPS = 800
BYTES_PER_SECOND = RATE_KBPS * 1000 // 8
PORT = 18090
# What a connection's receive buffer is at the start is also the most that it can be.
BUFFERS = pathlib.Path("/proc/sys/net/ipv4/tcp_rmem"), "4096 131072 131072"
# What makes a path of the loopback.
PATH = [["ip", "link", "set", "lo", "mtu", "1500"],
        ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "20mbit", "burst", "64kb", "latency", "100ms"]]
# Wake-ups and bytes are counted between these parts of the time: start and end are something else, and `play` has the end twenty
# seconds before it.
FROM, UNTIL = 0.3, 0.6

NGINX = """
daemon off; master_process off; user root; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; tcp_nopush on; root {dir}/root;
    client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
    uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
    server {{ listen 127.0.0.1:{port}; }}
}}
"""


class Client:
    """A program that runs, and perhaps the player that reads from it, or what reads from its pipe."""

    def __init__(self, name, command, player=None, to_pipe=False):
        self.name = name
        self.begin = time.monotonic()
        out = subprocess.PIPE if to_pipe else subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        if to_pipe:
            player = ["cat"]
        self.player = player and subprocess.Popen(player, stdin=self.process.stdout, stdout=subprocess.DEVNULL)
        if to_pipe:
            self.process.stdout.close()
        self.counted = []

    def count(self):
        """Notes the time, what came over each connection, and how often each thread has given the processor up of itself."""
        switches = {}
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)$", (task / "status").read_text(), re.MULTILINE)
            except OSError:
                continue
            switches[task.name] = int(found[1])
        told = subprocess.run(["ss", "-tinpHO"], capture_output=True, text=True, check=True).stdout
        came = {}
        for line in told.splitlines():
            received = re.search(r"\bbytes_received:(\d+)", line)
            if f"pid={self.process.pid}," in line and received:
                came[line.split()[3]] = int(received[1])
        self.counted.append((time.monotonic(), switches, came))

    def between(self, what):
        """By how much that grew in a second between the two countings."""
        then, now = self.counted
        grown = sum(count - then[what].get(one, 0) for one, count in now[what].items())
        return grown / (now[0] - then[0])

    def ended(self):
        """Waits for the end; seconds and CPU seconds."""
        errors = self.process.stderr.read()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - self.begin
        if self.process.returncode:
            sys.exit(f"{self.name} failed with {self.process.returncode}:\n{errors.decode()[-2000:]}")
        if self.player:
            self.player.wait()
        return seconds, usage.ru_utime + usage.ru_stime


def clients(directory, anabranch, url):
    """What a client is made from, by name. The player takes no more than it plays."""
    out = lambda name: str(directory / f"out-{name}")
    curl = ["curl", "-s", "--limit-rate", str(BYTES_PER_SECOND), "-o"]
    player = ["curl", "-s", "--retry", "9", "--retry-connrefused", "--limit-rate", str(BYTES_PER_SECOND), "-o", "/dev/null",
              f"http://127.0.0.1:{PORT + 1}/film.bin"]
    play = [anabranch, "play", "--quiet", "--rate", f"{RATE_KBPS}k", "--listen", f"127.0.0.1:{PORT + 1}", url]
    fetch = [anabranch, "fetch", "--quiet", "--force", "--rate", f"{RATE_KBPS}k", "-o"]
    return {
        "curl": {"command": curl + [out("curl"), url]},
        "fetch": {"command": fetch + [out("fetch"), url]},
        "fetch to a pipe": {"command": fetch + ["-", url], "to_pipe": True},
        "play": {"command": play, "player": player},
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("anabranch", nargs="?", default="target/release/anabranch")
    arguments.add_argument("--seconds", type=int, default=60, help="length of the film")
    arguments.add_argument("--size", type=int, default=1024, help="size of the file for the pipe in MiB")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--within", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    for program in ["nginx", "curl", "ip", "tc", "ss", "unshare", options.anabranch]:
        if not shutil.which(program):
            sys.exit(f"{program} is missing: make setup build")
    if not options.within:
        namespace = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
        os.execvp(namespace[0], namespace + [sys.executable, __file__, "--within", *sys.argv[1:]])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="anabranch-bench-") as name:
        run(pathlib.Path(name), options)


def run(directory, options):
    root = directory / "root"
    root.mkdir()
    (root / "film.bin").write_bytes(os.urandom(options.seconds * BYTES_PER_SECOND))
    (root / "tiny.bin").write_bytes(b"tiny")
    with open(root / "large.bin", "wb") as file:
        for _ in range(options.size):
            file.write(os.urandom(1 << 20))
    config = directory / "nginx.conf"
    config.write_text(NGINX.format(dir=directory, port=PORT))
    nginx = subprocess.Popen(["nginx", "-c", config, "-p", directory], stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        for number in range(options.rounds):
            measure_pipes(options, number + 1)
        BUFFERS[0].write_text(BUFFERS[1])
        for command in PATH:
            subprocess.run(command, check=True)
        for number in range(options.rounds):
            measure(directory, options, number + 1)
    finally:
        nginx.terminate()
        nginx.wait()


def measure_pipes(options, number):
    """As fast as it goes into `cat >/dev/null`."""
    url = f"http://127.0.0.1:{PORT}/large.bin"
    commands = {"curl": ["curl", "-s", url], "fetch": [options.anabranch, "fetch", "--quiet", "-o", "-", url]}
    for name, command in commands.items():
        seconds, cpu = Client(name, command, to_pipe=True).ended()
        raw.row(what="to a pipe", client=name, round=number, bytes=options.size << 20, seconds=seconds, cpu_s=cpu)


def measure(directory, options, number):
    for name, made in clients(directory, options.anabranch, f"http://127.0.0.1:{PORT}/tiny.bin").items():
        if "player" not in made:
            _, cpu = Client(name, **made).ended()
            raw.row(what="a file of four bytes", client=name, round=number, bytes=4, cpu_s=cpu)
    made = clients(directory, options.anabranch, f"http://127.0.0.1:{PORT}/film.bin")
    running = [Client(name, **own) for name, own in made.items()]
    for part in [FROM, UNTIL]:
        time.sleep(max(0, running[0].begin + part * options.seconds - time.monotonic()))
        for client in running:
            client.count()
    for client in running:
        _, cpu = client.ended()
        raw.row(what="a film", client=client.name, round=number, bytes=options.seconds * BYTES_PER_SECOND, cpu_s=cpu,
                wake_ups_per_s=client.between(1), bytes_per_s=client.between(2))


if __name__ == "__main__":
    main()
