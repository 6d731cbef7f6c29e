#!/usr/bin/env python3
"""CPU time of live senders and receivers on loopback, beside SRT.

Usage: bench/live_cpu.py [--rates 10,100] [--top 200,400] [--seconds S] [--clients srt,auto] [--anabranch PATH] [--testbed PATH]

Seven MPEG-TS packets a datagram go to the sender over UDP, in bursts of two milliseconds; the receiver's UDP output is counted. The CPU time is that of
the client's two programs while the media goes through them. With --top the same at faster rates: how much of the media comes out. The datagrams of a
burst are then one call of the system for the feeder (UDP_SEGMENT of Linux), so that it is not what limits; client `none` has no programs, and shows what
feeder and counter do by themselves. Prints raw results (bench/raw.py).
"""

import argparse
import multiprocessing
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import live
import live_rows
import raw

PACKET = 188
DATAGRAM = 7 * PACKET
INPUT, OUTPUT = ("127.0.0.1", 5000), ("127.0.0.1", 6000)
BURST_SECONDS = 0.002
# So many are what a receive buffer of Linux's default takes with room to spare.
BURST_DATAGRAMS = 40
LATENCY_MS = 200
FILM_SECONDS, TOP_FILM_MBPS, TOP_ROUNDS = 10, 100, 1
CONNECT_SECONDS, DRAIN_SECONDS = 3.0, 2.0
# linux/udp.h, asm-generic/socket.h
UDP_SEGMENT, SO_RCVBUFFORCE = 103, 33
BUFFER = 32 << 20
# A program ends when this one is killed: left behind it would have the ports of the next run.
LEAVE_WITH_US = ["setpriv", "--pdeathsig", "TERM"]

SRT_AES = {end: [part.replace("latency={latency}", "latency={latency}&passphrase=anabranch-bench&pbkeylen=16") for part in command]
           for end, command in live_rows.CLIENTS["srt"].items()}
CLIENTS = live_rows.CLIENTS | {"srt-aes": SRT_AES, "none": {}}


def feed(film, to, rate, seconds, most):
    """Sends the film, from its beginning again at its end, at this rate; `most`: so many datagrams in a call of the system."""
    count = len(film) // DATAGRAM
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if most > 1:
        out.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, DATAGRAM)
    out.connect(to)
    begin, sent, per_second = time.monotonic(), 0, rate / 8 / DATAGRAM
    pause = min(BURST_SECONDS, BURST_DATAGRAMS / per_second / 2)
    while (now := time.monotonic() - begin) < seconds:
        due = int(now * per_second)
        while sent < due:
            at = sent % count
            burst = min(due - sent, most, count - at)
            try:
                out.send(film[at * DATAGRAM:(at + burst) * DATAGRAM])
            except ConnectionRefusedError:
                continue
            sent += burst
        time.sleep(pause)
    return sent * DATAGRAM


def count(ready, seconds, result):
    """Counts the bytes that come out."""
    inlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        inlet.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    except PermissionError:
        inlet.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    inlet.bind(OUTPUT)
    inlet.settimeout(0.2)
    ready.set()
    end, total, buffer = time.monotonic() + seconds, 0, bytearray(65536)
    while time.monotonic() < end:
        try:
            total += inlet.recv_into(buffer)
            # What has come meanwhile, without a look at the clock for each.
            inlet.setblocking(False)
            while True:
                total += inlet.recv_into(buffer)
        except BlockingIOError:
            inlet.settimeout(0.2)
            # It wakes up for bursts, as a player does, and not for each datagram.
            time.sleep(BURST_SECONDS)
        except TimeoutError:
            pass
    result.value = total


def cpu_seconds(pid):
    """Of all threads of a program, finer than the ticks of its `stat`."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) * 1e-9


def measure(client, film, rate, options, directory, most=1):
    """Share of the media that came out, and CPU seconds of sender and receiver per Gbit."""
    names = {"{latency}": str(LATENCY_MS), "{address1}": "127.0.0.1", "{anabranch}": str(options.anabranch), "{dir}": str(directory),
             "{certificate}": str(directory / "cert.pem"), "{key}": str(directory / "key.pem"), "{fingerprint}": live.certificate(directory)}

    def start(command):
        for key, value in names.items():
            command = [argument.replace(key, value) for argument in command]
        # RIST takes 100 Mbps for the most that a link has, retransmissions included.
        command = [argument.replace("rtt-max=2000", "rtt-max=2000&bandwidth=1000000") for argument in command]
        with open(directory / "log", "a") as log:
            return subprocess.Popen([*LEAVE_WITH_US, *command], stdout=log, stderr=log)

    ready, result = multiprocessing.Event(), multiprocessing.Value("q")
    counter = multiprocessing.Process(target=count, args=(ready, CONNECT_SECONDS + options.seconds + DRAIN_SECONDS, result), daemon=True)
    counter.start()
    ready.wait()
    programs = []
    try:
        for end in ("receiver", "sender"):
            programs += [start(CLIENTS[client][end])] if CLIENTS[client] else []
            time.sleep(CONNECT_SECONDS / 3)
        time.sleep(CONNECT_SECONDS / 3)
        before = [cpu_seconds(program.pid) for program in programs]
        sent = feed(film, INPUT if programs else OUTPUT, rate, options.seconds, most)
        counter.join()
        if any(program.poll() is not None for program in programs):
            sys.exit(f"{client} ended: {(directory / 'log').read_text()[-2000:]}")
        after = [cpu_seconds(program.pid) for program in programs]
    finally:
        for program in programs:
            program.terminate()
            program.wait()
    receiver, sender = [(late - early) / (sent * 8e-9) for early, late in zip(before, after)] or (0, 0)
    return {"came_out": result.value / sent, "fed_mbps": sent * 8e-6 / options.seconds, "sender_s_per_gbit": sender, "receiver_s_per_gbit": receiver}


def film(rate, options, directory):
    """A film of this rate in Mbps. ffmpeg's is mostly stuffing at high rates, which ours leaves out: it becomes packets of another program."""
    file = directory / "film.ts"
    subprocess.run([options.testbed, "film", file, "--rate", f"{rate}M", "--duration", f"{FILM_SECONDS}s"], check=True)
    made = bytearray(file.read_bytes())
    file.unlink()
    for at in range(0, len(made), PACKET):
        if made[at + 1] & 0x1f == 0x1f and made[at + 2] == 0xff:
            made[at + 2] = 0xfe
    return memoryview(made)


def main():
    options = arguments()
    # The directory goes as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="anabranch-bench-") as name:
        directory = pathlib.Path(name)
        for rate in options.rates:
            made = film(rate, options, directory)
            for number in range(options.rounds):
                for client in options.clients:
                    raw.row(client=client, mbps=rate, round=number + 1, **measure(client, made, rate * 1e6, options, directory))
        if not options.top:
            return
        made = film(TOP_FILM_MBPS, options, directory)
        for rate in options.top:
            for number in range(TOP_ROUNDS):
                for client in options.top_clients:
                    top = measure(client, made, rate * 1e6, options, directory, BURST_DATAGRAMS)
                    # Of what was to be fed: a feeder that cannot keep up is no better than a client that cannot.
                    top["came_out"] *= top["fed_mbps"] / rate
                    raw.row(client=client, kind="top", top_mbps=rate, round=number + 1, **{f"top_{name}": value for name, value in top.items()})


def arguments():
    built = live.built()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rates", type=lambda text: [int(rate) for rate in text.split(",") if rate], default=[10, 100], help="in Mbps")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--clients", type=lambda text: text.split(","), default=["srt", "srt-aes", "rist", "auto", "auto+fec"],
                        help="SRT first; " + ",".join(CLIENTS))
    parser.add_argument("--top", type=lambda text: [int(rate) for rate in text.split(",")], default=[], help="in Mbps")
    parser.add_argument("--top-clients", type=lambda text: text.split(","), default=["none", "srt", "srt-aes", "auto"])
    parser.add_argument("--anabranch", type=pathlib.Path, default=built / "anabranch")
    parser.add_argument("--testbed", type=pathlib.Path, default=built / "anabranch-testbed")
    options = parser.parse_args()
    missing = [str(name) for name in ["srt-live-transmit", "ristsender", "ffmpeg", "openssl", "setpriv", options.testbed] if not shutil.which(name)]
    if missing:
        sys.exit("Missing: " + ", ".join(missing) + "\nOn Debian 12, as root: make bench, which installs and builds them all")
    return options


if __name__ == "__main__":
    main()
