#!/usr/bin/env python3
"""CPU time and wake-ups of a film that is got at its own, low rate over loopback from nginx, beside curl.

Usage: bench/cost.py [--seconds N] [--rounds N] [ANABRANCH]

Every client gets the same film at 800 kbps, all of a round at the same time: what is counted is each one's own. Prints raw
results (bench/raw.py).
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
# Wake-ups are counted between these parts of the time: start and end are something else.
FROM, UNTIL = 0.5, 0.8

NGINX = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; tcp_nopush on; root {dir}/root;
    client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
    uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
    server {{ listen 127.0.0.1:{port}; }}
}}
"""


class Client:
    """A program that runs, and perhaps the player that reads from it."""

    def __init__(self, name, command, player=None):
        self.name = name
        self.begin = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.player = player and subprocess.Popen(player, stdout=subprocess.DEVNULL)
        self.counted = []

    def count(self):
        """Notes the time and how often each thread has given the processor up of itself."""
        switches = {}
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)$", (task / "status").read_text(), re.MULTILINE)
            except OSError:
                continue
            switches[task.name] = int(found[1])
        self.counted.append((time.monotonic(), switches))

    def wake_ups(self):
        """Those of a second between the two countings."""
        (then, before), (now, after) = self.counted
        return sum(count - before.get(task, 0) for task, count in after.items()) / (now - then)

    def ended(self):
        """Waits for the end; CPU seconds."""
        errors = self.process.stderr.read()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode:
            sys.exit(f"{self.name} failed with {self.process.returncode}:\n{errors.decode()[-2000:]}")
        if self.player:
            self.player.wait()
        return usage.ru_utime + usage.ru_stime


def clients(directory, anabranch, url):
    """Command and player by name. The player takes no more than it plays."""
    out = lambda name: str(directory / f"out-{name}")
    curl = ["curl", "-s", "--limit-rate", str(BYTES_PER_SECOND), "-o"]
    player = ["curl", "-s", "--retry", "9", "--retry-connrefused", "--limit-rate", str(BYTES_PER_SECOND), "-o", "/dev/null",
              f"http://127.0.0.1:{PORT + 1}/film.bin"]
    play = [anabranch, "play", "--quiet", "--rate", f"{RATE_KBPS}k", "--listen", f"127.0.0.1:{PORT + 1}", url]
    fetch = [anabranch, "fetch", "--quiet", "--force", "--rate", f"{RATE_KBPS}k", "-o"]
    return {
        "curl": (curl + [out("curl"), url], None),
        "fetch": (fetch + [out("fetch"), url], None),
        "fetch to a pipe": (fetch + ["-", url], None),
        "play": (play, player),
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("anabranch", nargs="?", default="target/release/anabranch")
    arguments.add_argument("--seconds", type=int, default=60, help="length of the film")
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    for program in ["nginx", "curl", options.anabranch]:
        if not shutil.which(program):
            sys.exit(f"{program} is missing: make setup build")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="anabranch-bench-") as name:
        run(pathlib.Path(name), options)


def run(directory, options):
    (directory / "root").mkdir()
    os.chmod(directory, 0o755)
    (directory / "root" / "film.bin").write_bytes(os.urandom(options.seconds * BYTES_PER_SECOND))
    (directory / "root" / "tiny.bin").write_bytes(b"tiny")
    config = directory / "nginx.conf"
    config.write_text(NGINX.format(dir=directory, port=PORT))
    nginx = subprocess.Popen(["nginx", "-c", config, "-p", directory], stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        for number in range(options.rounds):
            measure(directory, options, number + 1)
    finally:
        nginx.terminate()
        nginx.wait()


def measure(directory, options, number):
    for name, (command, player) in clients(directory, options.anabranch, f"http://127.0.0.1:{PORT}/tiny.bin").items():
        if player is None:
            raw.row(what="a file of four bytes", client=name, round=number, bytes=4, cpu_s=Client(name, command).ended())
    commands = clients(directory, options.anabranch, f"http://127.0.0.1:{PORT}/film.bin")
    running = [Client(name, command, player) for name, (command, player) in commands.items()]
    for part in [FROM, UNTIL]:
        time.sleep(max(0, running[0].begin + part * options.seconds - time.monotonic()))
        for client in running:
            client.count()
    for client in running:
        raw.row(what="a film", client=client.name, round=number, bytes=options.seconds * BYTES_PER_SECOND,
                cpu_s=client.ended(), wake_ups_per_s=client.wake_ups())


if __name__ == "__main__":
    main()
