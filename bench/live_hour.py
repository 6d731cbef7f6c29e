#!/usr/bin/env python3
"""An hour of live media whose network and programs have accidents.

Usage: bench/live_hour.py [--minutes 60] [--out DIR] [--anabranch PATH] [--testbed PATH]

A film of 1 Mbps goes over 2 Mbps and 80 ms with 20 ms of jitter and 1 % of losses, with 1 s of latency. Every quarter of an hour has a handover (nothing
for 300 ms, then 30 ms more and 1.4 Mbps) and one back, an outage of 10 s, and two ends of a program. In the first half these are the receiver's, killed
and ended in turn, and in the second half the sender's, so that each runs for half an hour. All that is missing must have been fed within what an
accident takes. Prints raw results (bench/raw.py): a row for each accident, one for all other times, and one for each program's memory.
"""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import time

import live
import live_rows
import raw

QUARTER = 900
LATENCY_MS, SETTLE_SECONDS = 1000, 2
# A keeper's time is that much ahead of the film's: the receiver gets a second, connections two and four round trips.
STARTS_SECONDS = 4
# What an accident may take besides its own time: until it is noticed and the connection is there again.
RECOVERS_SECONDS = {"handover": 0, "outage": 0, "end": 3, "kill": 3}
PATH = {"rate": "2M", "delay": "40ms", "queue": "50 packets", "loss": 0.01, "jitter": {"kind": "uniform", "most": "20ms"}}
# Memory is looked at in these parts of a process's life.
EARLY, LATE = (0.25, 0.5), (0.75, 1.0)


def main():
    options = arguments()
    seconds = options.minutes * 60
    options.out.mkdir(parents=True, exist_ok=True)
    accidents = plan(seconds)
    film = options.out / "film.ts"
    subprocess.run([options.testbed, "film", film, "--rate", "1M", "--duration", f"{seconds}s"], check=True)
    scenario = options.out / "scenario.toml"
    scenario.write_text(described(options, seconds, accidents))
    with open(options.out / "log", "w") as log:
        with subprocess.Popen([options.testbed, "run", scenario, "--anabranch", options.anabranch.resolve(), "--out", options.out, "--film", film,
                               "--film-rate", "1000000"], stdout=log, stderr=subprocess.STDOUT) as running:
            follow(running, accidents, options.minutes)
    film.unlink()
    if running.returncode:
        sys.exit((options.out / "log").read_text()[-2000:])
    tell(json.loads((options.out / "summary.json").read_text())["live"], accidents, options.out)


def follow(running, accidents, minutes):
    """Tells each accident when its time has come."""
    began = time.monotonic() + STARTS_SECONDS
    for what, at, _ in accidents:
        try:
            running.wait(max(0, began + at - time.monotonic()))
            return
        except subprocess.TimeoutExpired:
            print(f"{at / 60:.0f} of {minutes} min: {what}", file=sys.stderr, flush=True)


def plan(seconds):
    """Accidents: what, when, and what of the network's time they take."""
    accidents = []
    for number in range(int(seconds // QUARTER)):
        begin = number * QUARTER
        whose = "receiver" if begin < seconds / 2 else "sender"
        accidents += [("handover", begin + 120, 0.3), ("handover", begin + 240, 0.3), ("outage", begin + 400, 10),
                      (f"{whose}: kill", begin + 560, 0), (f"{whose}: end", begin + 720, 0)]
    return accidents


def described(options, seconds, accidents):
    changes, far = [], False
    for what, at, lasts in accidents:
        if what == "handover":
            far = not far
            path = 'delay = "70ms", rate = "1.4M"' if far else 'delay = "40ms", rate = "2M"'
            changes += [f'{{ at = "{at}s", down = true }}', f'{{ at = "{at + lasts}s", {path} }}']
        elif what == "outage":
            changes += [f'{{ at = "{at}s", down = true }}', f'{{ at = "{at + lasts}s", down = false }}']
    ends = lambda whose: ",".join(f"{'KILL' if 'kill' in what else 'TERM'}@{at}" for what, at, _ in accidents if what.startswith(whose))
    keeper = str(pathlib.Path(__file__).with_name("keeper.py").resolve())
    names = {"{certificate}": str(options.out / "cert.pem"), "{key}": str(options.out / "key.pem"), "{fingerprint}": live.certificate(options.out)}
    programs = live_rows.CLIENTS["auto-npd"]
    kept = lambda whose, command: json.dumps(["python3", keeper, str((options.out / f"{whose}.csv").resolve()), ends(whose),
                                              *[names.get(argument, argument) for argument in command]])
    path = "\n".join(f"{key} = {live_rows.value(of)}" for key, of in PATH.items())
    return f"""[run]
duration = "{seconds + 60}s"
seed = 1

[film]
rate = "1M"
duration = "{seconds}s"

[live]
latency = "{LATENCY_MS}ms"
settle = "{SETTLE_SECONDS}s"

[[node]]
name = "studio"

[[node]]
name = "viewer"

[[link]]
name = "path"
from = "studio"
to = "viewer"
{path}
reverse = {{ loss = 0 }}
changes = [{", ".join(changes)}]

[[server]]
node = "studio"

[[client]]
name = "auto"
command = {kept("receiver", [*programs["receiver"], "--keep"])}
sender = {kept("sender", programs["sender"])}
output = "none"
"""


def tell(judged, accidents, out):
    left = [dict(gap) for gap in judged["gaps"]]
    for what, at, lasts in accidents:
        # The receiver's packets that waited for their time are gone with it.
        begin = at - LATENCY_MS / 1e3 - STARTS_SECONDS
        end = at + lasts + RECOVERS_SECONDS[what.split()[-1]]
        own = [gap for gap in left if begin <= gap["at_s"] and gap["at_s"] + gap["for_s"] <= end]
        left = [gap for gap in left if gap not in own]
        first = min((gap["at_s"] for gap in own), default=at)
        last = max((gap["at_s"] + gap["for_s"] for gap in own), default=at)
        raw.row(kind="accident", what=what, at_s=at, lasts_s=lasts, missing=sum(gap["packets"] for gap in own), missing_s=last - first)
    for gap in left:
        print(f"missing at {gap['at_s']:.1f} s for {gap['for_s']:.1f} s: {gap['packets']} packets", file=sys.stderr)
    raw.row(kind="accident", what="all other times", lasts_s=0, missing=sum(gap["packets"] for gap in left), missing_s=sum(gap["for_s"] for gap in left))
    latency = judged["latency"]
    raw.row(kind="all", packets=judged["packets"], missing=judged["missing"], latency_ms=latency["median_ms"], latency_99_ms=latency["percentile_99_ms"],
            overhead=judged["overhead"])
    for whose in ["sender", "receiver"]:
        with open(out / f"{whose}.csv", newline="") as lines:
            looks = [(float(at), pid, int(kb), int(descriptors)) for at, pid, kb, descriptors in csv.reader(lines) if kb.isdigit()]
        lives = [[look for look in looks if look[1] == pid] for pid in dict.fromkeys(look[1] for look in looks)]
        longest = max(lives, key=len)

        def median(part, column):
            return statistics.median(look[column] for look in longest[int(part[0] * len(longest)):int(part[1] * len(longest)) or None])

        raw.row(kind="memory", program=whose, ran_for=(longest[-1][0] - longest[0][0]) / 60, processes=len(lives),
                **{f"{name}_{figure}": median(part, column) for name, part in [("early", EARLY), ("late", LATE)]
                   for figure, column in [("kb", 2), ("descriptors", 3)]})


def arguments():
    built = live.built()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--out", type=pathlib.Path, default=built.parent / "bench" / "live-hour")
    parser.add_argument("--anabranch", type=pathlib.Path, default=built / "anabranch")
    parser.add_argument("--testbed", type=pathlib.Path, default=built / "anabranch-testbed")
    return parser.parse_args()


if __name__ == "__main__":
    main()
