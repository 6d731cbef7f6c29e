#!/usr/bin/env python3
"""Figures 5.11 to 5.18 of the thesis "Extending TFWC for multimedia applications", with real kernel TCP.

Usage: bench/kernel_ttfwc.py [--figures 5.11,5.16] [--seconds S] [--seeds N] [--jobs N] [--fast MBPS] [--runs FILE] [--anabranch PATH] [--testbed PATH] [--lab DIR]

iperf3 sends over the testbed's emulated path with a queue of 50 packets, the control in the kernel: three flows and three flows in turn. The
receivers are 0 to 2.6 ms farther away, as in the thesis's simulations, and flows begin within the first 5 s. The first fifteen seconds do not
count. The slow path has 10 Mbps; the fast one, where the thesis has 250 Mbps, has what the emulator carries. Beside the figures at 10 Mbps stand
those that `anabranch lab run ttfwc-fig5.1` left in DIR. A ratio beside Reno is to be seen beside that with Reno in all places. With --runs an interrupted measurement goes on, and another one can be added to it. Needs
root. Prints raw results (bench/raw.py).
"""

import argparse
import concurrent.futures
import csv
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import typing

import raw

ROOT = pathlib.Path(__file__).resolve().parent.parent
SLOW, QUEUE = 10, 50
BEGIN_S, SETTLES_S = 5.0, 15.0
# How much farther away the farthest receiver is, there and back.
SPREAD_MS = 5.2
TRIPS, FAST_TRIPS = [16, 32, 120, 240, 320], [16, 120, 320]
TUNINGS = {"TTFWC 0.0": "0.0", "TTFWC 0.4": "0.4", "TTFWC 0.9": "0.9"}
SCHEMES = [*TUNINGS, "Reno", "CUBIC"]
# Whether the path is the fast one, whether the other three flows are at 120 ms, and the scheme beside Reno; without it all schemes by themselves.
FIGURES = {
    "5.11": (None, True, None), "5.12": (None, False, None),
    "5.13": (True, False, "TTFWC 0.0"), "5.14": (True, False, "TTFWC 0.4"), "5.15": (True, False, "TTFWC 0.9"),
    "5.16": (False, False, "TTFWC 0.0"), "5.17": (False, False, "TTFWC 0.4"), "5.18": (False, False, "TTFWC 0.9"),
}

SCENARIO = """
[run]
duration = "{seconds}s"
[[node]]
name = "origin"
[[node]]
name = "client"
[[link]]
name = "main"
from = "origin"
to = "client"
rate = "{mbps}M"
delay = "{delay}ms"
queue = "{queue} packets"
[[server]]
node = "origin"
command = ["iperf3", "-s"]
[[client]]
name = "wait"
command = ["sleep", "{seconds}"]
output = "none"
"""
# The receiver is farther away than the client, behind it.
FLOW = """
[[node]]
name = "receiver{number}"
[[link]]
from = "client"
to = "receiver{number}"
rate = "1Gbps"
delay = "{delay:.2f}ms"
reverse = {{ delay = "0s" }}
[[flow]]
name = "flow{number}"
kind = "tcp"
from = "origin"
to = "receiver{number}"
start = "{start:.2f}s"
"""


class Case(typing.NamedTuple):
    """Three flows of a scheme at a round trip in ms, and three others."""

    mbps: int
    scheme: str
    other: str
    trip: int
    other_trip: int
    seed: int


def run(*command):
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed: {(ran.stdout + ran.stderr).strip()[-2000:]}")


def cases(figure, options):
    is_fast, is_far, beside = FIGURES[figure]
    for fast in [False, True] if is_fast is None else [is_fast]:
        for scheme in [beside] if beside else SCHEMES:
            for trip in FAST_TRIPS if fast else TRIPS:
                for seed in range(1, options.seeds + 1):
                    other = "Reno" if beside else scheme
                    yield Case(options.fast if fast else SLOW, scheme, other, trip, 120 if is_far else trip, seed)


def alone(case):
    """The same with Reno in all places: which share a place has by itself, where round trips differ by few milliseconds."""
    return case._replace(scheme="Reno", other="Reno")


def measure(case, options):
    """Mean payload of each flow in bit/s: the scheme's and the others in turn."""
    base = min(case.trip, case.other_trip)
    draw = random.Random(case.seed)
    text = SCENARIO.format(seconds=options.seconds, mbps=case.mbps, delay=base / 2, queue=QUEUE)
    controls = "[kernel]\n"
    for number in range(6):
        scheme, trip = (case.other, case.other_trip) if number % 2 else (case.scheme, case.trip)
        control = "ttfwc" if scheme in TUNINGS else scheme.lower()
        delay, start = trip - base + SPREAD_MS * number / 5, draw.uniform(0, BEGIN_S)
        text += FLOW.format(number=number, delay=delay, start=start)
        controls += f'flow{number} = "{control}"\n'
    with tempfile.TemporaryDirectory(prefix="kernel-ttfwc-") as name:
        directory = pathlib.Path(name)
        (directory / "scenario.toml").write_text(text + controls)
        run(options.testbed, "run", directory / "scenario.toml", "--client", "wait", "--anabranch", options.anabranch, "--out", directory / "out")
        rates = {f"flow{number}": [] for number in range(6)}
        with open(next((directory / "out").rglob("traffic.csv"))) as source:
            for row in csv.DictReader(source):
                if row["flow"] in rates and SETTLES_S < float(row["time_s"]) <= options.seconds - 0.5:
                    rates[row["flow"]].append(float(row["payload_bps"]))
    return [statistics.mean(values) for values in rates.values()]


def measure_all(wanted, done, options):
    """Measures what is not there yet: a tuning at a time, since it is the kernel's; beside the slow paths one fast path at a time."""
    lock = threading.Lock()

    def one(case):
        rates = measure(case, options)
        with lock:
            done[case] = rates
            if options.runs:
                with open(options.runs, "a") as target:
                    target.write(json.dumps([case, rates]) + "\n")
        print(*case, *(f"{rate / 1e6:.2f}" for rate in rates), file=sys.stderr, flush=True)

    for tuning in [*TUNINGS.values(), None]:
        missing = [case for case in wanted if case not in done and TUNINGS.get(case.scheme) == tuning]
        if tuning and missing:
            run(options.anabranch, "cc", "load", "ttfwc", "--tuning", tuning)
        try:
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as slow, concurrent.futures.ThreadPoolExecutor(1) as fast:
                for future in [(slow if case.mbps == SLOW else fast).submit(one, case) for case in missing]:
                    future.result()
        finally:
            if tuning and missing:
                run(options.anabranch, "cc", "unload", "ttfwc")


def jain(rates):
    return sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates))


def simulated(options, figure, scheme, trip, name):
    """The lab's mean over its seeds, if it was run."""
    file = options.lab / f"ttfwc-fig{figure}" / "runs.csv" if options.lab else None
    if not file or not file.exists():
        return None
    with open(file) as source:
        values = [float(row["value"]) for row in csv.DictReader(source)
                  if (row["setting"], row["scheme"], float(row["point"]), row["figure"]) == ("10 Mbps", scheme, trip, name)]
    return statistics.mean(values) if values else None


def tell(figure, done, options):
    """A result for each case of a figure."""
    beside = FIGURES[figure][2] is not None
    for case in cases(figure, options):
        here = {"figure": figure, "kind": "beside Reno" if beside else "alone", "mbps": case.mbps, "scheme": case.scheme, "trip_ms": case.trip, "seed": case.seed}
        rates = done[case]
        of_lab = (lambda name: simulated(options, figure, case.scheme, case.trip, name)) if case.mbps == SLOW else lambda name: None
        if not beside:
            found = {"jain": jain(rates), "simulated_jain": of_lab("fairness index")}
        else:
            fair = case.mbps * 1e6 * 1448 / 1500 / 6
            places = done[alone(case)]
            found = {"ours": statistics.mean(rates[::2]) / fair, "reno": statistics.mean(rates[1::2]) / fair,
                     "places": sum(places[::2]) / sum(places[1::2]),
                     "simulated_ours": of_lab("throughput of TTFWC"), "simulated_reno": of_lab("throughput of TCP")}
        raw.row(**here, **{name: value for name, value in found.items() if value is not None})


def main():
    built = ROOT / "target/release"
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--figures", type=lambda text: text.split(","), default=list(FIGURES), help=",".join(FIGURES))
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--seeds", type=int, default=1, help="of when flows begin")
    arguments.add_argument("--jobs", type=int, default=2, help="slow paths at a time")
    arguments.add_argument("--fast", type=int, default=100, help="rate of the fast path, Mbps")
    arguments.add_argument("--runs", type=pathlib.Path, help="finished runs are kept here")
    arguments.add_argument("--anabranch", type=pathlib.Path, default=built / "anabranch")
    arguments.add_argument("--testbed", type=pathlib.Path, default=built / "anabranch-testbed")
    arguments.add_argument("--lab", type=pathlib.Path, help="what `anabranch lab run` left")
    options = arguments.parse_args()
    missing = [name for name in ["iperf3", options.anabranch, options.testbed] if not shutil.which(name)]
    missing += [figure for figure in options.figures if figure not in FIGURES]
    if missing:
        sys.exit(f"Missing: {', '.join(map(str, missing))}: make setup build")
    done = {}
    if options.runs and options.runs.exists():
        done = {Case(*case): rates for case, rates in map(json.loads, options.runs.read_text().splitlines())}
    wanted = dict.fromkeys(case for figure in options.figures for case in cases(figure, options))
    wanted |= dict.fromkeys(alone(case) for case in list(wanted) if case.scheme != case.other)
    measure_all(wanted, done, options)
    for figure in options.figures:
        tell(figure, done, options)


if __name__ == "__main__":
    main()
