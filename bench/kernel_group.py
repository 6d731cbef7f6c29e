#!/usr/bin/env python3
"""Measures the kernel's weighted group (`anabranch cc load group --weights`) beside plain Reno: iperf3 over one emulated bottleneck of 8 Mbps.

Usage: bench/kernel_group.py [--runs N] [--seconds 60] [--only shares,dilution] [--anabranch FILE] [--testbed FILE]

shares    three connections with the weights 1, 4 and 8 beside three Reno flows: A, the allocation accuracy of what arrives in each second (Lau
          and Lee, equations 1 and 2), and F, a group's flow over a plain flow (equation 3).
dilution  two connections, one of which its application holds at 1 Mbps, beside two Reno flows: which part of what the one leaves does the other
          one get, and what have both as a multiple of what the Reno flows have, with a group and with Reno (section 1)? Held steadily, in
          parts of 2 KiB, and in bursts: 128 KiB at a time, and then a rest of a second.

Prints raw results (bench/raw.py). Needs root and iperf3.
"""

import argparse
import csv
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import raw
from dumbbell import scenario
from quic import QUEUE, RATE, RTT_MS, SERVER, SETTLE, accuracy

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRST_PORT = 6001
# How iperf3's first connection sends.
FREE, STEADY, BURSTS = "", " -b 1M -l 2K", " -b 1M"


def main():
    built = ROOT / "target/release"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(EXPERIMENTS), help="shares, dilution")
    parser.add_argument("--seconds", type=int, default=60, help="over which the shares are measured")
    parser.add_argument("--anabranch", type=pathlib.Path, default=built / "anabranch")
    parser.add_argument("--testbed", type=pathlib.Path, default=built / "anabranch-testbed")
    options = parser.parse_args()
    missing = [str(name) for name in ["iperf3", options.anabranch, options.testbed] if not shutil.which(name)]
    if missing:
        sys.exit(f"Missing: {', '.join(missing)}: make setup build")
    for seed in range(1, options.runs + 1):
        for experiment in options.only:
            for name, value in EXPERIMENTS[experiment](options, seed).items():
                raw.row(experiment=experiment, run=seed, what=name, value=value)


def program(*command):
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed: {(ran.stdout + ran.stderr).strip()[-2000:]}")


def run(options, seed, control, weights, reno, first=FREE):
    """A connection for each weight, the first of which sends like this, beside Reno flows. Answers the bytes of each in each second that counts, and what arrived at
    the network layer of them and of the Reno flows in that time."""
    seconds = SETTLE + options.seconds
    with tempfile.TemporaryDirectory(prefix="kernel-group-") as name:
        directory = pathlib.Path(name)
        ports = list(range(FIRST_PORT, FIRST_PORT + len(weights)))
        rules = "".join(f"[[rule]]\nremote_port = {port}\nweight = {weight}\n" for port, weight in zip(ports, weights))
        (directory / "weights.toml").write_text(rules)
        servers = " & ".join(f"iperf3 -s -1 -p {port} > {directory}/server-{port}.log" for port in ports) + " & wait"
        clients = " & ".join(
            f"iperf3 -c {SERVER} -p {port} --cport {port} -R -C {control} -t {seconds} -J > {directory}/{port}.json"
            + (FREE if place else first)
            for place, port in enumerate(ports)
        ) + " & wait"
        text = scenario(seconds + 5, seed, RATE, RTT_MS, QUEUE, servers, f"sleep 1; {clients}", reno)
        (directory / "scenario.toml").write_text(text)
        if control == "group":
            program(options.anabranch, "cc", "load", "group", "--weights", directory / "weights.toml")
        try:
            program(options.testbed, "run", directory / "scenario.toml", "--anabranch", options.anabranch, "--out", directory / "out")
        finally:
            if control == "group":
                program(options.anabranch, "cc", "unload", "group")
        counted = []
        for port in ports:
            told = json.loads((directory / f"{port}.json").read_text())
            counted.append([interval["sum"]["bytes"] for interval in told["intervals"]][SETTLE:])
        network = {}
        with open(directory / "out" / "traffic.csv") as source:
            for row in csv.DictReader(source):
                if SETTLE + 1 < float(row["time_s"]) <= seconds:
                    network.setdefault(row["flow"], []).append(float(row["network_bps"]))
    return counted, {flow: statistics.mean(rates) for flow, rates in network.items()}


def shares(options, seed):
    weights = [1, 4, 8]
    counted, network = run(options, seed, "group", weights, len(weights))
    each = [accuracy(amounts, weights) for amounts in zip(*counted) if sum(amounts)]
    return {
        "A, bins of 1 s, mean": statistics.mean(each),
        "A over the whole time": accuracy([sum(amounts) for amounts in counted], weights),
        "F beside Reno": network["film"] / network["reno"],
    }


def dilution(options, seed):
    figures = {}
    for control in ("group", "reno"):
        for name, first in (("free", FREE), ("steady", STEADY), ("bursts", BURSTS)):
            counted, network = run(options, seed, control, [1, 1], 2, first)
            one, other = (statistics.mean(amounts) * 8e-6 for amounts in counted)
            figures[f"{control}, {name}: the one (Mbps)"] = one
            figures[f"{control}, {name}: the other (Mbps)"] = other
            figures[f"{control}, {name}: both as a multiple of two of Reno"] = network["film"] / network["reno"]
    return figures


EXPERIMENTS = {"shares": shares, "dilution": dilution}

if __name__ == "__main__":
    main()
