#!/usr/bin/env python3
"""Live video over emulated links beside SRT and RIST: the highest media rate that each client carries without a fault.

Usage: bench/live.py [--rows ...] [--clients ...] [--jobs N] [--quick] [--out DIR] [--tabulate]
       bench/live.py --long                      ten minutes through 4 % loss instead, at one rate
       bench/live.py --trial ROW CLIENT RATE     one run, and all that was measured

A trial feeds a film to the client's sender and judges what comes out of its receiver (docs/testbed.md, live media). It is carried when no packet
with pictures or sound is missing, ffmpeg decodes what came out without an error, and 99 % of the packets come within the latency, the way and 50 ms. The
search is a bisection of a ladder of rates, for each seed of the losses, which are the same for every client; every rung is tried once. Prints raw
results (bench/raw.py); every trial is in DIR/trials.csv as well.
"""

import argparse
import concurrent.futures
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import threading

import live_rows
import raw

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ["srt-live-transmit", "ristsender", "ristreceiver", "ffmpeg", "iperf3", "openssl", "unshare"]
SECONDS, LONG_SECONDS, QUICK_SECONDS, SETTLE = 43, 600, 15, 2
# What 99 % of the packets may take beside the latency and the way.
LATE_MS = 50
# What goes through the long run, and where.
LONG_ROW, LONG_CLIENTS = "loss-4", ["srt", "rist", "auto", "auto-npd"]
FIELDS = ["row", "client", "rate_bps", "seed", "carried", "given_up", "packets", "missing", "repeated", "strange", "discontinuities",
          "decoder_errors", "latency_ms", "latency_99_ms", "latency_most_ms", "overhead", "cross_bps", "sender_cpu_s", "receiver_cpu_s",
          "sender_restarts", "receiver_restarts", "late", "missing_s", "missing_after", "whole_s", "fault"]

# Films, the certificate and the list of trials are shared by all searches.
LOCK = threading.Lock()


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.trial:
        row, client, rate = options.trial
        print(json.dumps(trial(options, row, client, int(float(rate)), options.seeds[0], to_the_end=True), indent=1))
        return
    if options.long:
        long_run(options)
        return
    trials = options.out / "trials.csv"
    if not options.tabulate:
        found = load(trials) if options.more else []
        options.earlier = load(options.around) if options.around else []
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            cells = [(row, client, seed) for seed in options.seeds for client in options.clients for row in options.rows
                     if live_rows.fits(row, client)]
            searches = [pool.submit(search, options, *cell, found) for cell in cells]
            for done in concurrent.futures.as_completed(searches):
                done.result()
    tell(load(trials))


def built():
    """Where the release programs are."""
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"


def arguments():
    programs = built()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    chosen = lambda known: lambda text: [name for name in known if name in text.split(",")] or sys.exit(f"one of {','.join(known)}")
    parser.add_argument("--rows", type=chosen(live_rows.ROWS), default=list(live_rows.ROWS), help=",".join(live_rows.ROWS))
    parser.add_argument("--clients", type=chosen(live_rows.CLIENTS), default=live_rows.DEFAULT,
                        help=f"{','.join(live_rows.CLIENTS)}; by default {','.join(live_rows.DEFAULT)}")
    parser.add_argument("--jobs", type=int, default=32, help="trials at a time (32)")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[1, 2, 3], help="of the losses (1,2,3)")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SECONDS} s a trial instead of {SECONDS}, to try it out")
    parser.add_argument("--more", action="store_true", help="keep the trials that are in --out, and add to them")
    parser.add_argument("--around", type=pathlib.Path, metavar="FILE", help="trials.csv of an earlier search: begin at what was carried there")
    parser.add_argument("--tell", dest="tabulate", action="store_true", help="measure nothing, tell what is in --out")
    parser.add_argument("--trial", nargs=3, metavar=("ROW", "CLIENT", "RATE"), help="one run")
    parser.add_argument("--long", action="store_true", help=f"{LONG_SECONDS} s of row {LONG_ROW}, at its common rate")
    parser.add_argument("--out", type=pathlib.Path, default=programs.parent / "bench" / "live", help="raw results")
    parser.add_argument("--anabranch", type=pathlib.Path, default=programs / "anabranch")
    parser.add_argument("--testbed", type=pathlib.Path, default=programs / "anabranch-testbed")
    options = parser.parse_args()
    measured = [options.trial[1]] if options.trial else options.clients
    ours = not options.tabulate and any(name not in live_rows.PEERS for name in measured)
    needed = [*PROGRAMS, options.testbed, *([options.anabranch] if ours else [])]
    missing = [str(name) for name in needed if not shutil.which(name)]
    if missing and not options.tabulate:
        sys.exit("Missing: " + ", ".join(missing) + "\nOn Debian 12, as root: make bench, which installs and builds them all")
    options.seconds = QUICK_SECONDS if options.quick else LONG_SECONDS if options.long else SECONDS
    return options


def search(options, row, client, seed, found):
    """Bisects the row's ladder; adds what it measured to `found`."""
    ladder = live_rows.ROWS[row]["ladder"]
    if live_rows.is_accident(row):
        ladder = [live_rows.ROWS[row]["common"]]
    tried = lambda trials: {int(one["rate_bps"]): str(one["carried"]) == "True" for one in trials
                            if (one["row"], one["client"], int(one["seed"])) == (row, client, seed)}
    known = tried(found)
    # An earlier search's edge: the rung that was carried, and the next one.
    edge = max((ladder.index(rate) for rate, carried in tried(options.earlier).items() if carried and rate in ladder), default=None)
    below = max((ladder.index(rate) for rate, carried in known.items() if carried), default=-1)
    above = min((ladder.index(rate) for rate, carried in known.items() if not carried and ladder.index(rate) > below), default=len(ladder))
    # The common rate is tried by all; the highest rate of a client may be on either side.
    common = ladder.index(live_rows.ROWS[row]["common"])
    while above - below > 1 or ladder[common] not in known:
        near = [rung for rung in (edge, edge + 1) if below < rung < above] if edge is not None else []
        rung = common if ladder[common] not in known else near[0] if near else (below + above) // 2
        one = trial(options, row, client, ladder[rung], seed, to_the_end=live_rows.is_accident(row))
        known[ladder[rung]] = one["carried"]
        with LOCK:
            found.append(one)
            save(options.out / "trials.csv", found)
        print(f"{row}, {client}, seed {seed}, {ladder[rung] / 1e3:.0f} kbps: {summary(one)}", file=sys.stderr, flush=True)
        below, above = (max(below, rung), above) if one["carried"] else (below, min(above, rung) if rung > below else above)


def long_run(options):
    """Each client once, at one rate, to the end."""
    rate = live_rows.ROWS[LONG_ROW]["common"]
    clients = [client for client in LONG_CLIENTS if client in options.clients]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        ran = list(pool.map(lambda client: trial(options, LONG_ROW, client, rate, options.seeds[0], to_the_end=True), clients))
    save(options.out / "long.csv", ran)
    for one in ran:
        raw.row(**{name: value for name, value in one.items() if value != ""})


def summary(one):
    if one["fault"]:
        return one["fault"]
    outcome = "carried" if one["carried"] else "given up" if one["given_up"] else f"{one['missing']} of {one['packets']} missing"
    latency = f"latency {one['latency_ms']:.0f} ms, 99 % {one['latency_99_ms']:.0f} ms"
    return f"{outcome}, decoder errors {one['decoder_errors']}, {latency}, overhead {one['overhead']:.3f}"


def trial(options, row, client, rate, seed, to_the_end=False):
    """One run of a client: a dictionary of FIELDS."""
    plan = live_rows.ROWS[row]
    out = options.out / row / f"{client}-{rate // 1000}k-{seed}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    scenario = out / "scenario.toml"
    fingerprint = certificate(options.out)
    scenario.write_text(live_rows.scenario(row, client, seed, options.seconds + SETTLE, SETTLE, not to_the_end,
                                           {"{certificate}": str(options.out / "cert.pem"), "{key}": str(options.out / "key.pem"),
                                            "{fingerprint}": fingerprint}))
    with open(out / "log", "w") as log:
        ran = subprocess.run([options.testbed, "run", scenario, "--anabranch", options.anabranch.resolve(), "--out", out,
                              "--film", film(options, row, rate), "--film-rate", str(rate)], stdout=log, stderr=subprocess.STDOUT)
    one = dict.fromkeys(FIELDS, "") | {"row": row, "client": client, "rate_bps": rate, "seed": seed, "carried": False}
    if ran.returncode:
        return one | {"fault": " ".join((out / "log").read_text().split())[-300:] or f"the testbed ended with {ran.returncode}"}
    run = json.loads((out / "summary.json").read_text())
    live = run["live"]
    latency = live["latency"]
    way = max(milliseconds(path["delay"]) for path in plan["paths"]) + plan.get("longer_ms", 0)
    in_time = latency["percentile_99_ms"] <= milliseconds(plan["latency"]) + way + LATE_MS
    carried = live["packets"] > 0 and live["missing"] == 0 and live["decoder_errors"] == 0 and in_time
    return one | {key: live[key] for key in FIELDS if key in live} | {
        "carried": carried, "latency_ms": latency["median_ms"], "latency_99_ms": latency["percentile_99_ms"],
        "latency_most_ms": latency["most_ms"], "cross_bps": run["cross_bps"] if "cross" in plan else "",
        **(after_accident(plan, live, out) if live_rows.is_accident(row) else {})}


def after_accident(plan, live, out):
    """What is missing or late, in seconds of the film; how many packets of that were fed after the accident, and how long after it the last one."""
    with open(out / "media.csv", newline="") as lines:
        seconds = [{name: float(value) for name, value in line.items()} for line in csv.DictReader(lines)]
    judged = [second["packets"] for second in seconds if second["packets"]]
    after = sum(second["missing"] + second["late"] for second in seconds if second["fed_s"] >= plan["ends"])
    return {"missing_s": (live["missing"] + live["late"]) / statistics.median(judged), "missing_after": after,
            "whole_s": max(0, live["whole_from_s"] - plan["ends"])}


def milliseconds(text):
    """A time as scenarios have it."""
    return float(text[:-2]) if text.endswith("ms") else float(text[:-1]) * 1e3


def film(options, row, rate):
    """The row's film of this rate, made where it is not there."""
    kind = ["--variable"] if live_rows.ROWS[row].get("variable") else []
    file = options.out / "films" / f"{rate}-{options.seconds + SETTLE}{''.join(kind)}.ts"
    with LOCK:
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            made = file.with_suffix(".part.ts")
            subprocess.run([options.testbed, "film", made, "--rate", str(rate), "--duration", f"{options.seconds + SETTLE}s", *kind], check=True)
            made.rename(file)
    return file


def certificate(directory):
    """A certificate for our receiver; its SHA-256 fingerprint."""
    with LOCK:
        if not (directory / "cert.pem").exists():
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                            "-subj", "/CN=receiver", "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
                           check=True, capture_output=True)
        der = subprocess.run(["openssl", "x509", "-in", directory / "cert.pem", "-outform", "DER"], check=True, capture_output=True)
    return hashlib.sha256(der.stdout).hexdigest()


def save(file, found):
    order = {name: index for index, name in enumerate([*live_rows.ROWS, *live_rows.CLIENTS])}
    with open(file, "w", newline="") as target:
        writer = csv.DictWriter(target, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(found, key=lambda one: (order[one["row"]], order[one["client"]], int(one["seed"]), int(one["rate_bps"]))))


def load(file):
    if not file.exists():
        return []
    with open(file, newline="") as source:
        return list(csv.DictReader(source))


def tell(found):
    """Every trial; whether it is the highest rate that the client carried there with this seed, and whether it is the rate of all. A client that carries
    no rate of the ladder carries zero; arithmetic is a client too."""
    best = {(one["row"], one["client"], one["seed"]): 0 for one in found}
    for one in found:
        if one["carried"] == "True":
            key = (one["row"], one["client"], one["seed"])
            best[key] = max(best[key], int(one["rate_bps"]))
    for (row, client, seed), rate in best.items():
        if rate == 0 and not live_rows.is_accident(row):
            raw.row(row=row, client=client, seed=float(seed), rate_bps=0, path=live_rows.ROWS[row]["title"], is_best=True)
    for one in found:
        plan = live_rows.ROWS[one["row"]]
        rate = int(one["rate_bps"])
        told = {name: value if name in ("row", "client", "fault") else value == "True" if value in ("True", "False") else float(value)
                for name, value in one.items() if value != ""}
        told["share_missing"] = live_rows.GIVE_UP if told.get("given_up") else told.get("missing", 0) / max(told.get("packets", 1), 1)
        if live_rows.is_accident(one["row"]):
            raw.row(kind="accident", **told, path=plan["title"])
            continue
        raw.row(**told, path=plan["title"], is_best=rate == best[one["row"], one["client"], one["seed"]], is_common=rate == plan["common"],
                is_shared="cross" in plan)
    for row in dict.fromkeys(row for row, _, _ in best):
        if live_rows.is_accident(row):
            tell_lost_anyway(row)
            continue
        tell_aim(row, {client: statistics.mean(rate for (at, who, _), rate in best.items() if (at, who) == (row, client))
                       for client in dict.fromkeys(who for at, who, _ in best if at == row)})


def tell_lost_anyway(row):
    """What an accident takes from everyone."""
    raw.row(kind="accident", row=row, client="arithmetic", path=live_rows.ROWS[row]["title"], missing_s=live_rows.lost_anyway(row), missing_after=0, whole_s=0)


def tell_aim(row, means):
    """What our programs carry beside the best peer, all with stuffing, and what arithmetic allows, which is a client as well."""
    title, allowed = live_rows.ROWS[row]["title"], live_rows.arithmetic(row)
    if allowed:
        raw.row(row=row, client="arithmetic", rate_bps=allowed, path=title, is_best=True)
    peers = {client: rate for client, rate in means.items() if client in live_rows.PEERS and not client.endswith("-npd")}
    if peers and "auto" in means:
        peer = max(peers, key=peers.get)
        raw.row(kind="aim", path=title, auto=means["auto"], peer_name=peer, peer=peers[peer],
                **({"auto_fec": means["auto+fec"]} if "auto+fec" in means else {}), **({"allowed": allowed} if allowed else {}))


if __name__ == "__main__":
    main()
