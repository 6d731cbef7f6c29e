#!/usr/bin/env python3
"""Every long-running command side by side over loopback for hours: do memory, descriptors and connections stay flat?

Usage: bench/soak.py [--hours H] [--every SECONDS] [--out DIR] [ANABRANCH]

One `serve` (HTTP and HTTP/3) feeds `fetch --rate` over TCP and over QUIC, three `play`s (one watched at the film's rate, one whose
viewer pauses for a minute in every five, one that nobody watches) and a `proxy` whose player goes round and round through a
playlist; ffmpeg sends a stream through `send` and `receive`. What each process has is written to DIR/soak.csv while it runs.
At the end the second quarter of the time is held against the last one. Prints Markdown; exit code 1 if something
ended, stood still or grew.
"""

import argparse
import csv
import os
import pathlib
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

FILM_RATE = 2_000_000
FETCH_RATE = 1_000_000
# The first quarter is for caches and pools to fill.
EARLY, LATE = (0.25, 0.5), (0.75, 1.0)
# What counts as flat: the later median beyond the earlier one by at most this part and this much.
GROWTH = {"rss_kb": (0.05, 2048), "descriptors": (0, 2), "connections": (0, 2), "threads": (0, 1)}
TCP_ESTABLISHED = "01"


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    seconds = options.hours * 3600
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    with tempfile.TemporaryDirectory() as directory:
        run = Run(options, pathlib.Path(directory), seconds)
        try:
            run.start()
            rows = run.watch(seconds)
        finally:
            run.stop()
    faults = run.faults + report(rows, run.taken, seconds)
    for fault in faults:
        print(f"- {fault}")
    print("not flat" if faults else "flat")
    sys.exit(1 if faults else 0)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two looks")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("target/soak"))
    parser.add_argument("anabranch", nargs="?", type=pathlib.Path, default=pathlib.Path("target/release/anabranch"))
    return parser.parse_args()


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Run:
    """The programs, their viewers, and what was seen."""

    def __init__(self, options, directory, seconds):
        self.anabranch = str(options.anabranch.resolve())
        self.out, self.every = options.out, options.every
        self.directory, self.seconds = directory, seconds
        self.processes, self.helpers = {}, []
        self.taken, self.faults = {}, []
        self.over = threading.Event()

    def start(self):
        root = self.directory / "root"
        root.mkdir()
        # Holes cost no disk, and the film is long enough for the whole run.
        with open(root / "film.bin", "wb") as film:
            film.truncate(int(FILM_RATE / 8 * (self.seconds + 600)))
        self.make_media(root)
        http, quic = free_port(), free_port(socket.SOCK_DGRAM)
        certificate = ["--cert", self.directory / "cert.pem", "--key", self.directory / "key.pem"]
        self.launch("serve", "serve", root, "--http", f"127.0.0.1:{http}", "--h3", f"127.0.0.1:{quic}", *certificate)
        await_port(http)
        film = f"http://127.0.0.1:{http}/film.bin"
        self.launch("fetch", "fetch", "--rate", FETCH_RATE, "-o", "-", film, reads=True)
        self.launch("fetch over HTTP/3", "fetch", "--rate", FETCH_RATE, "--http3-only", "--cacert", self.directory / "cert.pem",
                    "-o", "-", f"https://localhost:{quic}/film.bin", reads=True)
        for name, viewer in [("play", steady), ("play, paused now and then", pausing), ("play, nobody watches", None)]:
            port = free_port()
            self.launch(name, "play", "--rate", FILM_RATE, "--listen", f"127.0.0.1:{port}", film)
            if viewer:
                await_port(port)
                self.follow(name, watch_film, port, viewer)
        port = free_port()
        self.launch("proxy", "proxy", "--listen", f"127.0.0.1:{port}")
        await_port(port)
        self.follow("proxy", watch_playlist, f"http://127.0.0.1:{port}/http://127.0.0.1:{http}/")
        self.start_live()

    def make_media(self, root):
        """A minute of media, as a playlist and as a transport stream, and a certificate."""
        source = ["-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25", "-f", "lavfi", "-i", "sine", "-t", "60"]
        coding = ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "800k", "-g", "50", "-c:a", "aac"]
        quiet = ["ffmpeg", "-nostdin", "-loglevel", "error"]
        subprocess.run([*quiet, *source, *coding, "-f", "mpegts", self.directory / "film.ts"], check=True)
        subprocess.run([*quiet, "-i", self.directory / "film.ts", "-c", "copy", "-f", "hls", "-hls_time", "4",
                        "-hls_list_size", "0", root / "list.m3u8"], check=True)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE",
                        "-keyout", self.directory / "key.pem", "-out", self.directory / "cert.pem"],
                       check=True, stderr=subprocess.DEVNULL)

    def start_live(self):
        receiver, tap = free_port(socket.SOCK_DGRAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        tap.bind(("127.0.0.1", 0))
        tap.settimeout(1.0)
        self.launch("receive", "receive", "--listen", f"127.0.0.1:{receiver}", "--keep", "--cert", self.directory / "cert.pem",
                    "--key", self.directory / "key.pem", "--output", f"udp://127.0.0.1:{tap.getsockname()[1]}")
        source = free_port(socket.SOCK_DGRAM)
        self.launch("send", "send", "--to", f"localhost:{receiver}", "--cacert", self.directory / "cert.pem",
                    "--input", f"udp://127.0.0.1:{source}")
        feeder = subprocess.Popen(["ffmpeg", "-nostdin", "-loglevel", "error", "-re", "-stream_loop", "-1", "-i",
                                   self.directory / "film.ts", "-c", "copy", "-f", "mpegts",
                                   f"udp://127.0.0.1:{source}?pkt_size=1316"], stdout=subprocess.DEVNULL)
        self.helpers.append(feeder)
        self.follow("receive", drain, tap)

    def launch(self, name, *command, reads=False):
        log = open(self.out / f"{name.replace(' ', '-').replace(',', '').replace('/', '')}.log", "wb")
        output = subprocess.PIPE if reads else log
        command = [self.anabranch, *map(str, command)]
        self.processes[name] = subprocess.Popen(command, stdout=output, stderr=log, stdin=subprocess.DEVNULL)
        if reads:
            self.follow(name, read_pipe, self.processes[name].stdout)

    def follow(self, name, viewer, *arguments):
        """A viewer in a thread of its own."""
        self.taken[name] = 0

        def count(number):
            self.taken[name] += number

        def view():
            try:
                viewer(self.over, count, *arguments)
            except (OSError, ValueError) as error:
                if not self.over.is_set():
                    self.faults.append(f"{name}: its viewer met {error}")

        threading.Thread(target=view, daemon=True).start()

    def watch(self, seconds):
        began = time.monotonic()
        rows = []
        with open(self.out / "soak.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, ["seconds", "process", *GROWTH, "bytes_taken"])
            writer.writeheader()
            while (now := time.monotonic() - began) < seconds:
                for name, process in self.processes.items():
                    if process.poll() is not None:
                        self.faults.append(f"{name}: ended after {now:.0f} s with exit code {process.returncode}")
                        return rows
                    row = {"seconds": round(now), "process": name, **figures(process.pid), "bytes_taken": self.taken.get(name, "")}
                    writer.writerow(row)
                    rows.append(row)
                file.flush()
                time.sleep(self.every)
        return rows

    def stop(self):
        self.over.set()
        everybody = [*self.helpers, *self.processes.values()]
        for process in everybody:
            process.send_signal(signal.SIGTERM)
        for process in everybody:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def await_port(port):
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"nobody listens on port {port}")


def read_pipe(over, count, pipe):
    while not over.is_set() and (data := pipe.read1(65536)):
        count(len(data))


def drain(over, count, tap):
    while not over.is_set():
        try:
            count(len(tap.recv(65536)))
        except TimeoutError:
            pass


def steady(_seconds):
    return True


def pausing(seconds):
    return seconds % 300 < 240


def watch_film(over, count, port, plays):
    """Reads a film at its rate, with a small buffer, while `plays` says so."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.connect(("127.0.0.1", port))
        connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        began = last = time.monotonic()
        may = 0.0
        while not over.is_set():
            now = time.monotonic()
            if plays(now - began):
                may += (now - last) * FILM_RATE / 8
            last = now
            if may < 16384:
                time.sleep(0.05)
                continue
            data = connection.recv(16384)
            if not data:
                raise OSError("the end of the film")
            may -= len(data)
            count(len(data))


def watch_playlist(over, count, base):
    """Takes a playlist and its segments in real time, again and again."""
    while not over.is_set():
        with urllib.request.urlopen(base + "list.m3u8", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        length = 0.0
        for line in lines:
            if line.startswith("#EXTINF:"):
                length = float(line[8:].split(",")[0])
            elif line and not line.startswith("#"):
                address = line if line.startswith("http:") else base + line
                if line.startswith("/"):
                    address = base.split("/http:")[0] + line
                began = time.monotonic()
                with urllib.request.urlopen(address, timeout=30) as answer:
                    while data := answer.read(65536):
                        count(len(data))
                if over.wait(max(0.0, length - (time.monotonic() - began))):
                    return


def figures(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    field = lambda name: int(next(line for line in status.splitlines() if line.startswith(name)).split()[1])
    links = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
        except FileNotFoundError:
            pass
    sockets = {link[8:-1] for link in links if link.startswith("socket:[")}
    established = 0
    for table in ["tcp", "tcp6"]:
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            established += columns[3] == TCP_ESTABLISHED and columns[9] in sockets
    return {"rss_kb": field("VmRSS"), "descriptors": len(links), "connections": established, "threads": field("Threads")}


def report(rows, taken, seconds):
    """A line for each process and figure; answers what grew or stood still."""
    faults = []
    print(f"{seconds / 3600:.2f} hours; medians of the second and of the last quarter\n")
    print("| process | " + " | ".join(GROWTH) + " | MB taken |\n| --- |" + " --- |" * (len(GROWTH) + 1))
    for name in dict.fromkeys(row["process"] for row in rows):
        own = [row for row in rows if row["process"] == name]

        def median(figure, part):
            there = [row[figure] for row in own if part[0] * seconds <= row["seconds"] <= part[1] * seconds]
            return statistics.median(there) if there else 0

        cells = []
        for figure, (part, much) in GROWTH.items():
            early, late = median(figure, EARLY), median(figure, LATE)
            cells.append(f"{early:.0f} to {late:.0f}")
            if late > early * (1 + part) + much:
                faults.append(f"{name}: {figure} grew from {early:.0f} to {late:.0f}")
        if name in taken and median("bytes_taken", LATE) <= median("bytes_taken", EARLY):
            faults.append(f"{name}: nothing was taken in the second half")
        print(f"| {name} | " + " | ".join(cells) + (f" | {taken[name] / 1e6:.0f} |" if name in taken else " | |"))
    return faults


if __name__ == "__main__":
    main()
