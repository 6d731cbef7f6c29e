#!/usr/bin/env python3
"""How much the rate of a TFRC flow among TCPs varies in ns-2, with a random delay of sending: the rows of crates/lab/reference/further.csv.

Usage: bench/phases.py [FLOWS...]

`tfrc_cov1s` of the reference's R5 with `overhead_ 0.0005`, seeds 1 to 12, for numbers of flows that the reference has only without the delay.
"""

import collections
import concurrent.futures
import pathlib
import shutil
import statistics
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).with_name("ns2_dumbbell.tcl")
SEEDS, OVERHEAD = range(1, 13), "0.0005"


def variation(flows, seed):
    """Standard deviation over mean of a TFRC flow's rate in bins of a second, the mean over flows."""
    ran = subprocess.run(["ns", SCRIPT, str(flows), str(seed), OVERHEAD], capture_output=True, text=True, check=True)
    left = collections.defaultdict(list)
    for line in ran.stdout.splitlines():
        _, flow, departed = line.split()
        left[int(flow)].append(float(departed))
    bins = [[after - before for before, after in zip(course, course[1:])] for flow, course in left.items() if flow % 2]
    return statistics.mean(statistics.stdev(one) / statistics.mean(one) for one in bins)


def main():
    if not shutil.which("ns"):
        sys.exit("ns-2 is missing; on Debian 12, as root: apt-get install ns2")
    for flows in [int(argument) for argument in sys.argv[1:]] or [16]:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            values = list(pool.map(lambda seed: variation(flows, seed), SEEDS))
        figures = [statistics.mean(values), statistics.stdev(values), min(values), max(values)]
        configuration = f"mix=half bw_mbps=15 delay_ms=20 qlimit_pkts=100 nflows={flows}"
        print(f"r5_dumbbell_overhead.csv,{configuration},tfrc_cov1s,{len(values)}," + ",".join(f"{figure:.6f}" for figure in figures))


if __name__ == "__main__":
    main()
