#!/usr/bin/env python3
"""The simulator's speed beside ns-2's, what more flows cost, and what a second core gives the lab.

Usage: bench/sim.py [--rounds N] [ANABRANCH]

Everything is CPU seconds of whole programs, start and output included, and the median of several rounds in which the programs take
turns. Instructions are counted by valgrind, over a shorter time, and do not depend on what else the machine does. Prints Markdown.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCENARIO = """
[run]
duration = "{seconds}s"
sampling = "{seconds}s"
seed = 1

[topology]
kind = "dumbbell"
pairs = {pairs}
bottleneck = {{ rate = "{mbps}Mbps", delay = "20ms", queue = "{queue} packets" }}
access = {{ rate = "{access}Mbps", delay = "1ms", queue = "5000 packets" }}
receiver_delay_spread = "2600us"

[tcp.ns2]
segment = "1000B"
congestion = "reno"
initial_window = 2
delayed_ack = false
timestamps = false
"""
FLOWS = """
[[flow]]
name = "group{group}f"
kind = "tcp"
count = {count}
from = "sender{{i}}"
to = "receiver{{i}}"
tcp = "ns2"
start = ["0s", "2s"]
"""
# A generated dumbbell has at most so many pairs of hosts; more flows share them.
MOST_PAIRS = 500


def main():
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "anabranch"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("anabranch", nargs="?", type=pathlib.Path, default=built)
    options = parser.parse_args()
    missing = [str(name) for name in ["ns", "valgrind", options.anabranch] if not shutil.which(name)]
    if missing:
        sys.exit(f"Missing: {', '.join(missing)}; as root: apt-get install ns2 valgrind, make build")
    with tempfile.TemporaryDirectory() as directory:
        print(beside_ns2(options, pathlib.Path(directory)))
        print(more_flows(options, pathlib.Path(directory)))
        print(more_cores(options))


def ran(command):
    """What a program prints, its CPU seconds and its peak memory in bytes."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out = process.stdout.read()
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, command))} failed: {errors}")
    return out, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def simulated(options, directory, flows, mbps, seconds, under=()):
    """Data packets, CPU seconds and peak memory of `anabranch sim`, run under another program if one is given."""
    scenario, out = directory / "scenario.toml", directory / "out"
    pairs = min(flows, MOST_PAIRS)
    text = SCENARIO.format(seconds=seconds, pairs=pairs, mbps=mbps, queue=mbps * 100 // 15, access=max(100, 10 * mbps))
    groups = range((flows + pairs - 1) // pairs)
    text += "".join(FLOWS.format(group=group, count=min(pairs, flows - group * pairs)) for group in groups)
    scenario.write_text(text)
    _, cpu, memory = ran([*under, options.anabranch, "--quiet", "sim", scenario, "--out", out])
    return json.loads((out / "summary.json").read_text())["data_packets"], cpu, memory


def beside_ns2(options, directory):
    lines = ["| 64 SACK TCP flows | simulated | data packets | CPU s | packets per CPU s | beside ns-2 |", "| --- | --- | --- | --- | --- | --- |"]
    for mbps, seconds in [(15, 100), (1500, 100)]:
        rates, rows = {"ns-2": [], "anabranch sim": []}, {}
        for _ in range(options.rounds if mbps == 15 else 1):
            out, cpu, _ = ran(["ns", ROOT / "bench/ns2.tcl", 64, mbps, seconds])
            rates["ns-2"].append(int(out) / cpu)
            rows["ns-2"] = (int(out), cpu)
            packets, cpu, _ = simulated(options, directory, 64, mbps, seconds)
            rates["anabranch sim"].append(packets / cpu)
            rows["anabranch sim"] = (packets, cpu)
        for name, (packets, cpu) in rows.items():
            rate = statistics.median(rates[name])
            ratio = rate / statistics.median(rates["ns-2"])
            lines.append(f"| {name}, {mbps} Mbps | {seconds} s | {packets:,} | {cpu:.2f} | {rate:,.0f} | {ratio:.1f} |")
    return "\n".join(lines) + "\n"


def more_flows(options, directory):
    lines = [
        "| flows over 1.5 Gbps, 10 s | data packets | ns of CPU per packet | instructions per packet (3 s) | peak MiB | KiB per flow beyond the first ten |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    least = None
    for flows in [10, 100, 1000, 10_000]:
        runs = [simulated(options, directory, flows, 1500, 10) for _ in range(options.rounds)]
        packets, _, memory = runs[-1]
        cost = statistics.median(cpu / packets for packets, cpu, _ in runs) * 1e9
        least = least or memory
        each = "" if flows == 10 else f"{(memory - least) / 1024 / (flows - 10):.1f}"
        counted = instructions(options, directory, flows)
        lines.append(f"| {flows:,} | {packets:,} | {cost:.0f} | {counted:,.0f} | {memory / 2**20:.0f} | {each} |")
    return "\n".join(lines) + "\n"


def instructions(options, directory, flows):
    """Instructions per data packet of the whole program."""
    counts = directory / "callgrind"
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}"]
    packets, _, _ = simulated(options, directory, flows, 1500, 3, valgrind)
    total = next(line for line in counts.read_text().splitlines() if line.startswith("totals:"))
    return int(total.split()[1]) / packets


def more_cores(options):
    walls = {1: [], 2: []}
    for _ in range(options.rounds):
        for jobs in walls:
            began = time.monotonic()
            ran([options.anabranch, "--quiet", "lab", "validate", "R2", "--jobs", jobs])
            walls[jobs].append(time.monotonic() - began)
    one, two = (statistics.median(walls[jobs]) for jobs in (1, 2))
    return f"| `lab validate R2` | wall s | speed-up |\n| --- | --- | --- |\n| one job at a time | {one:.1f} | 1.00 |\n| two | {two:.1f} | {one / two:.2f} |\n"


if __name__ == "__main__":
    main()
