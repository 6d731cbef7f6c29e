#!/usr/bin/env python3
"""A player of segments over emulated paths, alone and through `anabranch proxy`.

Usage: bench/segments.py [--only PATH] [--segments N] ANABRANCH TESTBED

The player asks for one segment of four seconds after the other over one connection that stays, holds up to 30 s, starts when
the first segment is there, and stalls when it has played all that came. nginx behind the path (the testbed's, senders are
CUBIC) has the segments: one file under as many names. The playlist comes from the player's own machine. Told are what the
viewer sees, the time to the first byte of a segment (without the first one), what the player would take for the path's rate
(bytes by the time from request to last byte, median), and the connections to nginx: how many were opened, and how many stood
at most. Prints raw results (bench/raw.py).
"""

import argparse
import http.client
import http.server
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import raw

SEGMENT_SECONDS = 4
HOLDS_SECONDS = 30
# Name: rate and one-way delay of the path, loss, rate of the film.
PATHS = {
    "clean": ("20M", "40ms", 0, "2M"),
    "too narrow": ("2500k", "40ms", 0, "3M"),
    "lossy": ("20M", "75ms", 0.01, "5M"),
}
SCENARIO = """
[run]
duration = "{duration}s"
seed = {seed}

[film]
rate = "{film}"
duration = "{seconds}s"

[[node]]
name = "origin"

[[node]]
name = "client"

[[link]]
name = "main"
from = "origin"
to = "client"
rate = "{rate}"
delay = "{delay}"
queue = "{queue} packets"
loss = {loss}
reverse = {{ loss = 0 }}

[[server]]
node = "origin"
{server}
[[client]]
name = "player"
command = {command}
output = "none"
"""


class Ports(threading.Thread):
    """Looks at the connections to a server's port 80."""

    def __init__(self, host):
        super().__init__(daemon=True)
        self.address = "".join(f"{int(byte):02X}" for byte in reversed(host.split("."))) + ":0050"
        self.seen = set()
        self.most = 0

    def run(self):
        while True:
            established = 0
            for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[2] == self.address:
                    self.seen.add(fields[1])
                    established += fields[3] == "01"
            self.most = max(self.most, established)
            time.sleep(0.05)


def serve_playlist(text):
    """A server of one playlist; its address."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "application/vnd.apple.mpegurl")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_address[1]}"


def inside(options):
    """The player, in its namespace."""
    url = urllib.parse.urlsplit(options.url)
    names = [f"{options.url}?{number}" for number in range(options.segments)]
    ports = Ports(url.hostname)
    ports.start()
    proxy = None
    host, prefix = url.netloc, ""
    if options.inside == "proxy":
        proxy = subprocess.Popen([options.anabranch, "proxy", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
        host = re.search(r"http://([^/]+)/URL", proxy.stdout.readline()).group(1)
        prefix = "/"
        lines = "".join(f"#EXTINF:{SEGMENT_SECONDS},\n{name}\n" for name in names)
        text = f"#EXTM3U\n#EXT-X-TARGETDURATION:{SEGMENT_SECONDS}\n{lines}#EXT-X-ENDLIST\n"
        playlist = http.client.HTTPConnection(host)
        playlist.request("GET", f"/http://{serve_playlist(text.encode())}/list.m3u8")
        playlist.getresponse().read()
    connection = http.client.HTTPConnection(host, timeout=300)
    began = time.monotonic()
    started = None
    stalls, stalled, held_until = 0, 0.0, None
    first_bytes, rates, received = [], [], 0
    for name in names:
        if held_until is not None:
            time.sleep(max(0.0, held_until - time.monotonic() - HOLDS_SECONDS))
        asked = time.monotonic()
        if asked - began > options.duration:
            break
        connection.request("GET", prefix + (name if prefix else f"{url.path}?{name.rpartition('?')[2]}"))
        response = connection.getresponse()
        if response.status != 200:
            sys.exit(f"{name}: {response.status} {response.read()}")
        got = len(response.read(1))
        first_bytes.append(time.monotonic() - asked)
        got += len(response.read())
        now = time.monotonic()
        rates.append(got * 8 / (now - asked))
        received += got
        if started is None:
            started, held_until = now, now
        elif now > held_until:
            stalls, stalled, held_until = stalls + 1, stalled + now - held_until, now
        held_until += SEGMENT_SECONDS
    result = {"startup_s": started - began, "stalls": stalls, "stalled_s": stalled, "segments": len(rates),
              "first_byte_s": statistics.median(first_bytes[1:]), "first_byte_worst_s": max(first_bytes[1:]),
              "estimate_bps": statistics.median(rates), "bytes": received, "opened": len(ports.seen), "most": ports.most}
    if proxy:
        proxy.terminate()
        proxy.wait()
    pathlib.Path(options.out).write_text(json.dumps(result))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=PATHS)
    parser.add_argument("--segments", type=int, default=18)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--duration", type=int, default=150, help="nothing is asked for after so many seconds")
    parser.add_argument("--inside", choices=["direct", "proxy"], help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    parser.add_argument("anabranch")
    parser.add_argument("testbed", nargs="?")
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    for seed in range(1, options.rounds + 1):
        for path in [options.only] if options.only else PATHS:
            for client in ["direct", "proxy"]:
                trial(path, client, seed, options)


def played(testbed, scenario, directory, run):
    """Lets the testbed run a scenario, and answers what its player has told in player.json. `run` says which it was."""
    file = directory / "scenario.toml"
    file.write_text(scenario)
    ran = subprocess.run([testbed, "run", file, "--out", directory / "out"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = list(directory.rglob("player.json"))
    if not found:
        logs = "".join(log.read_text() for log in directory.rglob("*.log"))
        sys.exit(f"{run}: {ran.stdout}{logs[-2000:]}")
    return json.loads(found[0].read_text())


def trial(path, client, seed, options):
    rate, delay, loss, film = PATHS[path]
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        command = ["python3", str(pathlib.Path(__file__).resolve()), "--inside", client, "--url", "{url1}", "--out", "{dir}/player.json",
                   "--segments", str(options.segments), "--duration", str(options.duration), str(pathlib.Path(options.anabranch).resolve())]
        scenario = SCENARIO.format(rate=rate, delay=delay, loss=loss, queue=250, film=film, seconds=SEGMENT_SECONDS, seed=seed, server="",
                                   duration=options.duration + 120, command=json.dumps(command))
        told = played(options.testbed, scenario, directory, f"{path}, {client}")
        raw.row(path=path, client=client, **told)


if __name__ == "__main__":
    main()
