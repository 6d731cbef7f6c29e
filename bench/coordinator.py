#!/usr/bin/env python3
"""What a decision of the coordinator costs: `cargo bench -p anabranch-film`, as raw results (bench/raw.py).

Usage: bench/coordinator.py
"""

import pathlib
import re
import subprocess
import sys

import raw

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNITS = {"ns": 1.0, "µs": 1e3, "ms": 1e6}


def main():
    command = ["cargo", "bench", "--locked", "-q", "-p", "anabranch-film"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    if ran.returncode:
        sys.exit(f"{' '.join(command)} failed with {ran.returncode}")
    decision, count = None, 0
    for line in ran.stdout.splitlines():
        if title := re.match(r"[├╰]─ (\w+)", line):
            decision = title[1].replace("_", " ")
        elif segments := re.match(r"[│ ]\s+[├╰]─ (\d+)\s", line):
            # Fastest, slowest, median, mean, samples, iterations.
            number, unit = line.split("│")[-4].split()
            raw.row(decision=decision, segments=int(segments[1]), median_ns=float(number) * UNITS[unit])
            count += 1
    if not count:
        sys.exit(f"cargo bench printed no medians:\n{ran.stdout}")


if __name__ == "__main__":
    main()
