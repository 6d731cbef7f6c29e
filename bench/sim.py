#!/usr/bin/env python3
"""The simulator's speed beside ns-2's, what more flows cost, and what a second core gives the lab.

Usage: bench/sim.py [--rounds N] [ANABRANCH]

Everything is CPU seconds of whole programs, start and output included, in several rounds in which the programs take
turns. Instructions are counted by valgrind, over a shorter time, and do not depend on what else the machine does. Prints raw results (bench/raw.py).
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import raw

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
        beside_ns2(options, pathlib.Path(directory))
        more_flows(options, pathlib.Path(directory))
        more_cores(options)


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
    # In a short run ns-2's start counts most, and at windows of thousands of packets its lists.
    for mbps, seconds in [(15, 100), (15, 1000), (1500, 100)]:
        for number in range(options.rounds if mbps == 15 else 1):
            out, cpu, _ = ran(["ns", ROOT / "bench/ns2.tcl", 64, mbps, seconds])
            raw.row(part="beside ns-2", program="ns-2", mbps=mbps, seconds=seconds, round=number + 1, packets=int(out), cpu_s=cpu)
            packets, cpu, _ = simulated(options, directory, 64, mbps, seconds)
            raw.row(part="beside ns-2", program="anabranch sim", mbps=mbps, seconds=seconds, round=number + 1, packets=packets, cpu_s=cpu)


def more_flows(options, directory):
    least = None
    for flows in [10, 100, 1000, 10_000]:
        instructions_each = instructions(options, directory, flows)
        for number in range(options.rounds):
            packets, cpu, memory = simulated(options, directory, flows, 1500, 10)
            least = least or memory
            raw.row(part="flows", flows=flows, round=number + 1, packets=packets, cpu_s=cpu, instructions=instructions_each, memory_bytes=memory,
                    memory_beyond_bytes=memory - least)


def instructions(options, directory, flows):
    """Instructions per data packet of the whole program."""
    counts = directory / "callgrind"
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}"]
    packets, _, _ = simulated(options, directory, flows, 1500, 3, valgrind)
    total = next(line for line in counts.read_text().splitlines() if line.startswith("totals:"))
    return int(total.split()[1]) / packets


def more_cores(options):
    for number in range(options.rounds):
        for jobs in [1, 2]:
            began = time.monotonic()
            ran([options.anabranch, "--quiet", "lab", "validate", "R2", "--jobs", jobs])
            raw.row(part="cores", jobs=jobs, round=number + 1, wall_s=time.monotonic() - began)


if __name__ == "__main__":
    main()
