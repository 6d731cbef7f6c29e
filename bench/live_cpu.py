#!/usr/bin/env python3
"""CPU time of live senders and receivers on loopback, beside SRT.

Usage: bench/live_cpu.py [--rates 10,100] [--seconds S] [--clients srt,auto] [--anabranch PATH] [--testbed PATH]

Seven MPEG-TS packets a datagram go to the sender over UDP, in bursts of two milliseconds; the receiver's UDP output is counted. The CPU time is that of
the client's two programs while the media goes through them. Prints raw results (bench/raw.py).
"""

import argparse
import multiprocessing
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import live
import live_rows
import raw
import serve

DATAGRAM = 7 * 188
INPUT, OUTPUT = ("127.0.0.1", 5000), ("127.0.0.1", 6000)
BURST_SECONDS = 0.002
LATENCY_MS = 200
FILM_SECONDS = 10
CONNECT_SECONDS, DRAIN_SECONDS = 3.0, 2.0


def feed(file, rate, seconds):
    """Sends the film, from its beginning again at its end, at its rate."""
    film = pathlib.Path(file).read_bytes()
    datagrams = [film[at:at + DATAGRAM] for at in range(0, len(film) // DATAGRAM * DATAGRAM, DATAGRAM)]
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    begin, sent, per_second = time.monotonic(), 0, rate / 8 / DATAGRAM
    while (now := time.monotonic() - begin) < seconds:
        for _ in range(int(now * per_second) - sent):
            out.sendto(datagrams[sent % len(datagrams)], INPUT)
            sent += 1
        time.sleep(BURST_SECONDS)
    return sent * DATAGRAM


def count(ready, seconds, result):
    """Counts the bytes that come out."""
    inlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    inlet.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    inlet.bind(OUTPUT)
    inlet.settimeout(0.2)
    ready.set()
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        try:
            total += len(inlet.recv(65536))
        except TimeoutError:
            pass
    result.value = total


def measure(client, file, rate, options, directory):
    """Share of the media that came out, and CPU seconds of sender and receiver per Gbit."""
    names = {"{latency}": str(LATENCY_MS), "{address1}": "127.0.0.1", "{anabranch}": str(options.anabranch), "{dir}": str(directory),
             "{certificate}": str(directory / "cert.pem"), "{key}": str(directory / "key.pem"), "{fingerprint}": live.certificate(directory)}

    def start(command):
        for key, value in names.items():
            command = [argument.replace(key, value) for argument in command]
        # RIST takes 100 Mbps for the most that a link has, retransmissions included.
        command = [argument.replace("rtt-max=2000", "rtt-max=2000&bandwidth=1000000") for argument in command]
        with open(directory / "log", "a") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    ready, result = multiprocessing.Event(), multiprocessing.Value("q")
    counter = multiprocessing.Process(target=count, args=(ready, CONNECT_SECONDS + options.seconds + DRAIN_SECONDS, result))
    counter.start()
    ready.wait()
    programs = [start(live_rows.CLIENTS[client]["receiver"])]
    time.sleep(CONNECT_SECONDS / 3)
    programs.append(start(live_rows.CLIENTS[client]["sender"]))
    try:
        time.sleep(CONNECT_SECONDS * 2 / 3)
        before = [serve.cpu_seconds(program.pid) for program in programs]
        sent = feed(file, rate, options.seconds)
        counter.join()
        after = [serve.cpu_seconds(program.pid) for program in programs]
        if any(program.poll() is not None for program in programs):
            sys.exit(f"{client} ended: {(directory / 'log').read_text()[-2000:]}")
    finally:
        for program in programs:
            program.terminate()
            program.wait()
    receiver, sender = ((late - early) / (sent * 8e-9) for early, late in zip(before, after))
    return result.value / sent, sender, receiver


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="anabranch-bench-") as name:
        directory = pathlib.Path(name)
        for rate in options.rates:
            file = directory / f"{rate}.ts"
            subprocess.run([options.testbed, "film", file, "--rate", f"{rate}M", "--duration", f"{FILM_SECONDS}s"], check=True)
            for number in range(options.rounds):
                for client in options.clients:
                    share, sender, receiver = measure(client, file, rate * 1e6, options, directory)
                    raw.row(client=client, mbps=rate, round=number + 1, came_out=share, sender_s_per_gbit=sender, receiver_s_per_gbit=receiver)
            file.unlink()


def arguments():
    built = live.built()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rates", type=lambda text: [int(rate) for rate in text.split(",")], default=[10, 100], help="in Mbps")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--clients", type=lambda text: text.split(","), default=["srt", "rist", "auto", "auto+fec"], help="SRT first")
    parser.add_argument("--anabranch", type=pathlib.Path, default=built / "anabranch")
    parser.add_argument("--testbed", type=pathlib.Path, default=built / "anabranch-testbed")
    options = parser.parse_args()
    missing = [str(name) for name in ["srt-live-transmit", "ristsender", "ffmpeg", "openssl", options.testbed] if not shutil.which(name)]
    if missing:
        sys.exit("Missing: " + ", ".join(missing) + "\nOn Debian 12, as root: make bench, which installs and builds them all")
    return options


if __name__ == "__main__":
    main()
