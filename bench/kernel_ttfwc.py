#!/usr/bin/env python3
"""Figures 5.16 to 5.18 of the thesis "Extending TFWC for multimedia applications", with real kernel TCP.

Usage: bench/kernel_ttfwc.py [--seconds S] [--seeds N] [--jobs N] [--trips 16,120] [--anabranch PATH] [--testbed PATH] [--lab DIR]

iperf3 sends over the testbed's emulated path (10 Mbps, a queue of 50 packets), with the control in the kernel: three flows of TTFWC beside
three of Reno. The first ten seconds do not count. Beside the figures stand those that `anabranch lab run ttfwc-fig5.16 ttfwc-fig5.17
ttfwc-fig5.18` left in DIR. Not here: 250 Mbps (5.13 to 5.15), which the emulator cannot carry, and the fairness index (5.11, 5.12). Needs root. Prints
Markdown.
"""

import argparse
import concurrent.futures
import csv
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import tables

ROOT = pathlib.Path(__file__).resolve().parent.parent
MBPS, QUEUE, SETTLES_S = 10, 50, 10.0
# The figure and the tuning parameter.
TUNINGS = [("5.16", "0.0"), ("5.17", "0.4"), ("5.18", "0.9")]
# What reaches the receivers beside the payload: 1448 of 1500 bytes.
FAIR = MBPS * 1e6 * 1448 / 1500 / 6

SCENARIO = """
[run]
duration = "{seconds}s"
seed = {seed}
[film]
rate = "800k"
duration = "2s"
[[path]]
name = "main"
rate = "{mbps}M"
rtt = "{trip}ms"
queue = {queue}
[[server]]
name = "origin"
{cross}
[[client]]
name = "wait"
command = ["sleep", "{seconds}"]
output = "none"
"""
CROSS = """
[[cross]]
name = "{name}"
congestion = "{control}"
flows = {flows}
start = "0s"
"""


def run(*command):
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed: {(ran.stdout + ran.stderr).strip()[-2000:]}")
    return ran.stdout


def measure(groups, trip, seed, options):
    """Mean payload in bit/s of each group of flows over a path with this round trip."""
    with tempfile.TemporaryDirectory(prefix="kernel-ttfwc-") as name:
        directory = pathlib.Path(name)
        cross = "".join(CROSS.format(name=name, control=control, flows=flows) for name, control, flows in groups)
        text = SCENARIO.format(seconds=options.seconds, seed=seed, mbps=MBPS, trip=trip, queue=QUEUE, cross=cross)
        (directory / "scenario.toml").write_text(text)
        run(options.testbed, "run", directory / "scenario.toml", "--client", "wait", "--anabranch", options.anabranch, "--out", directory / "out")
        rates = {name: [] for name, _, _ in groups}
        with open(next((directory / "out").rglob("traffic.csv"))) as source:
            for row in csv.DictReader(source):
                if row["flow"] in rates and SETTLES_S < float(row["time_s"]) <= options.seconds - 1:
                    rates[row["flow"]].append(float(row["payload_bps"]))
    return {name: statistics.mean(values) for name, values in rates.items()}


def simulated(lab, figure, trip, tuning):
    """The lab's two figures of a case, if it was run: means over its seeds."""
    file = lab / f"ttfwc-fig{figure}" / "runs.csv" if lab else None
    if not file or not file.exists():
        return None
    found = {}
    with open(file) as source:
        for row in csv.DictReader(source):
            if row["setting"] == "10 Mbps" and row["scheme"] == f"TTFWC {tuning}" and float(row["point"]) == trip:
                found.setdefault(row["figure"], []).append(float(row["value"]))
    values = [statistics.mean(found[name]) for name in ("throughput of TTFWC", "throughput of TCP") if name in found]
    return values if len(values) == 2 else None


def main():
    built = ROOT / "target/release"
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--seeds", type=int, default=1)
    arguments.add_argument("--jobs", type=int, default=2, help="paths at a time")
    arguments.add_argument("--trips", default="16,32,120,240,320", help="round trips in ms")
    arguments.add_argument("--anabranch", type=pathlib.Path, default=built / "anabranch")
    arguments.add_argument("--testbed", type=pathlib.Path, default=built / "anabranch-testbed")
    arguments.add_argument("--lab", type=pathlib.Path, help="what `anabranch lab run` left")
    options = arguments.parse_args()
    missing = [name for name in ["iperf3", "ffmpeg", "nginx", options.anabranch, options.testbed] if not shutil.which(name)]
    if missing:
        sys.exit(f"Missing: {', '.join(map(str, missing))}: make setup build")
    trips = [float(trip) for trip in options.trips.split(",")]
    groups = [("ttfwc", "ttfwc", 3), ("reno", "reno", 3)]
    print(f"3 TTFWC and 3 Reno, {MBPS} Mbps, a queue of {QUEUE} packets, {options.seconds} s of which {SETTLES_S:.0f} do not count, "
          f"{options.seeds} seed(s). 1.00 is a sixth of the link.\n")
    rows, means = [], {}
    for figure, tuning in TUNINGS:
        run(options.anabranch, "cc", "load", "ttfwc", "--tuning", tuning)
        try:
            cases = [(trip, seed) for trip in trips for seed in range(1, options.seeds + 1)]
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                results = list(pool.map(lambda case: (case[0], measure(groups, f"{case[0]:g}", case[1], options)), cases))
        finally:
            run(options.anabranch, "cc", "unload", "ttfwc")
        for trip in trips:
            of = lambda name: statistics.mean(rates[name] for at, rates in results if at == trip) / 3 / FAIR
            there = simulated(options.lab, figure, trip, tuning)
            means.setdefault(tuning, []).append(of("ttfwc"))
            rows.append([figure, tuning, f"{trip:g}", f"{of('ttfwc'):.2f}", f"{of('reno'):.2f}", f"{of('ttfwc') / of('reno'):.2f}",
                         *([f"{there[0]:.2f}", f"{there[1]:.2f}", f"{there[0] / there[1]:.2f}"] if there else ["", "", ""])])
    print(tables.markdown(["figure", "TP", "round trip (ms)", "TTFWC", "Reno", "ratio", "simulated: TTFWC", "Reno", "ratio"], rows))
    base = statistics.mean(means["0.0"])
    print("\nMean over the round trips, above that at 0.0:",
          ", ".join(f"{tuning} {statistics.mean(means[tuning]) / base - 1:+.1%}" for _, tuning in TUNINGS[1:]))


if __name__ == "__main__":
    main()
