#!/usr/bin/env python3
"""Many streams at once over loopback from `anabranch serve`, beside nginx: stalls, and CPU of the server.

Usage: bench/serve.py [--rounds N] [--crowds STREAMSxMBPS,...] [--seconds S] [ANABRANCH]

Every stream is a player with a connection of its own and a buffer of one second: it starts when the buffer is full, plays at
the rate, reads no more than fits, and stalls whenever the buffer is empty. It asks for two seconds at a time, the next ones
when these are there: a film in one response would wait in the kernel, and no server would have anything to do. Every byte is
compared. The servers take turns. Prints raw results (bench/raw.py).
"""

import argparse
import os
import pathlib
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import raw

NGINX = """
daemon off; worker_processes auto; pid {dir}/nginx.pid; error_log {dir}/error.log;
worker_rlimit_nofile 65536;
events {{ worker_connections 8192; }}
http {{
    access_log off; sendfile on; tcp_nopush on; root {dir}/root;
    client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
    uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
    server {{ listen 127.0.0.1:{port} backlog=4096; }}
}}
"""
BUFFER_SECONDS = 1.0
PIECE_SECONDS = 2.0
# Every stream is looked at ten times a second, a tenth of them at a time.
LOOKS_PER_SECOND = 10
GROUPS = 10
# Players do not all come in the same instant.
ARRIVALS_SECONDS = 2.0


class Stream:
    """One player."""

    def __init__(self, port, film, byte_rate, seconds):
        self.film, self.byte_rate = film, byte_rate
        self.wanted = int(byte_rate * seconds)
        self.head = b""
        self.got = self.asked = 0
        self.began = time.monotonic()
        self.started = None
        self.stood = 0.0
        self.stalls = 0
        self.empty_since = None
        self.socket = socket.socket()
        self.socket.connect(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.ask()

    def ask(self):
        """Asks for the next piece."""
        first, self.asked = self.asked, min(len(self.film), self.asked + int(PIECE_SECONDS * self.byte_rate))
        self.head = b""
        self.socket.send(f"GET /film.bin HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\n"
                         f"Range: bytes={first}-{self.asked - 1}\r\n\r\n".encode())

    def look(self):
        """Plays until now and reads what fits; whether the film is over."""
        now = time.monotonic()
        played = 0 if self.started is None else self.byte_rate * (now - self.started - self.stood)
        if self.empty_since is not None:
            played = self.got
        room = int(played + BUFFER_SECONDS * self.byte_rate) - self.got
        before = self.got
        while room > 0:
            try:
                data = self.socket.recv(room)
            except BlockingIOError:
                break
            if not data:
                sys.exit(f"the server hung up after {self.got} bytes")
            data = self.body(data)
            if data != self.film[self.got:self.got + len(data)]:
                sys.exit(f"wrong bytes after {self.got}")
            self.got += len(data)
            room -= len(data)
            if self.got == self.asked < len(self.film):
                self.ask()
        if self.started is None:
            if self.got >= BUFFER_SECONDS * self.byte_rate * 0.99:
                self.started = now
        elif self.empty_since is not None:
            if self.got > before:
                self.stood += now - self.empty_since
                self.empty_since = None
        elif played > before:
            # It ran out between two looks, even if there is something now.
            self.stalls += 1
            self.stood += (played - before) / self.byte_rate
            if self.got == before:
                self.empty_since = now
        return played >= self.wanted

    def body(self, data):
        """What follows the response's head."""
        if self.head is None:
            return data
        self.head += data
        head, separator, body = self.head.partition(b"\r\n\r\n")
        if not separator:
            return b""
        if not head.startswith(b"HTTP/1.1 206 ") or f"content-range: bytes {self.got}-{self.asked - 1}/".encode() not in head.lower():
            sys.exit(f"the server said {head.decode(errors='replace')}")
        self.head = None
        return body


def cpu_seconds(pid):
    """User and system time of a process, and of its children that live."""
    ticks = 0
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(entry.name) == pid or int(fields[1]) == pid:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident(pid):
    """Peak memory in MiB of a process and of its children, shared pages counted more than once."""
    kilobytes = 0
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if pid in (int(fields["Pid"]), int(fields["PPid"])) and "VmHWM" in fields:
            kilobytes += int(fields["VmHWM"].split()[0])
    return kilobytes / 1024


def wait_for(port, process):
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None:
                sys.exit(f"a server ended with {process.returncode}")
            time.sleep(0.1)
    sys.exit("a server does not listen")


def load(port, pid, film, streams, rate, seconds):
    """Plays all streams; their start-ups, stalls, seconds in stalls, bytes, and the server's CPU and memory."""
    byte_rate = rate * 1e6 / 8
    groups = [[] for _ in range(GROUPS)]
    over = []
    before = cpu_seconds(pid)
    begin = time.monotonic()
    opened = tick = 0
    late = 0.0
    while opened < streams or any(groups):
        due = min(streams, int((time.monotonic() - begin) / ARRIVALS_SECONDS * streams) + 1)
        while opened < due:
            groups[opened % GROUPS].append(Stream(port, film, byte_rate, seconds))
            opened += 1
        group = groups[tick % GROUPS]
        ended = [stream for stream in group if stream.look()]
        for stream in ended:
            stream.socket.close()
            group.remove(stream)
        over += ended
        tick += 1
        pause = begin + tick / (LOOKS_PER_SECOND * GROUPS) - time.monotonic()
        late = max(late, -pause)
        time.sleep(max(0.0, pause))
        if time.monotonic() - begin > ARRIVALS_SECONDS + 3 * seconds + 10:
            sys.exit("the streams do not end")
    return {
        "startup": [stream.started - stream.began for stream in over],
        "stalled_streams": sum(1 for stream in over if stream.stalls),
        "stalls": sum(stream.stalls for stream in over),
        "stood": sum(stream.stood for stream in over),
        "bytes": sum(stream.got for stream in over),
        "cpu": cpu_seconds(pid) - before,
        "memory": resident(pid),
        "late": late,
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("anabranch", nargs="?", default="target/release/anabranch")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--crowds", default="1000x1,5000x0.2", help="streams at once and the rate of each in Mbit/s")
    arguments.add_argument("--seconds", type=float, default=20.0)
    options = arguments.parse_args()
    for program in ["nginx", options.anabranch]:
        if not shutil.which(program):
            sys.exit(f"{program} is missing: make setup build")
    crowds = [(int(streams), float(rate)) for streams, rate in (crowd.split("x") for crowd in options.crowds.split(","))]
    most = max(streams for streams, _ in crowds)
    wanted = most + 64
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        sys.exit(f"{most} streams need {wanted} open files, and the limit is {hard} (ulimit -Hn)")
    # The servers inherit it.
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as name:
        run(pathlib.Path(name), crowds, options)


def run(directory, crowds, options):
    (directory / "root").mkdir()
    os.chmod(directory, 0o755)
    ports = {"anabranch serve": 18081, "nginx": 18082}
    config = directory / "nginx.conf"
    config.write_text(NGINX.format(dir=directory, port=ports["nginx"]))
    most = str(max(streams for streams, _ in crowds) + 64)
    commands = {
        "anabranch serve": [options.anabranch, "serve", directory / "root", "--quiet", "--http",
                            f"127.0.0.1:{ports['anabranch serve']}", "--max-connections", most,
                            "--max-connections-per-client", most],
        "nginx": ["nginx", "-c", config, "-p", directory],
    }
    for _ in range(options.rounds):
        for streams, rate in crowds:
            film = os.urandom(int(rate * 1e6 / 8 * (options.seconds + PIECE_SECONDS + BUFFER_SECONDS)))
            (directory / "root" / "film.bin").write_bytes(film)
            for name, command in commands.items():
                server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
                try:
                    wait_for(ports[name], server)
                    result = load(ports[name], server.pid, film, streams, rate, options.seconds)
                finally:
                    server.terminate()
                    server.wait()
                raw.row(server=name, crowd=f"{streams} at {rate:g} Mbit/s", streams=streams, stalled_streams=result["stalled_streams"],
                        stalls=result["stalls"], stalled_s=result["stood"], startup_median_s=statistics.median(result["startup"]),
                        startup_worst_s=max(result["startup"]), bytes=result["bytes"], cpu_s=result["cpu"],
                        memory_mib=result["memory"], late_s=result["late"])


if __name__ == "__main__":
    main()
