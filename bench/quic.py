#!/usr/bin/env python3
"""Measures what a weighted group over HTTP/3 does beside plain Reno: aioquic clients of `anabranch serve --h3 --weights`, and
as many flows of the kernel's TCP (iperf3), through one emulated bottleneck of 8 Mbps.

Usage: bench/quic.py [--runs N] [--seconds 60] [--only shares,ours,plain,dilution] [--anabranch FILE] [--testbed FILE] [--check]

shares    three clients with the weights 1, 4 and 8 beside three Reno flows; after --seconds the one with the weight 8 ends.
          A: allocation accuracy of what clients get, in bins of a second (Lau and Lee, equations 1 and 2); F: a group's flow over a
          plain flow (equation 3), at the network layer; hand-over: what the two others have in the second after, over what all three
          had before (two virtual flows of five have 0.8 of what three of six had), and over what the two have in the ten seconds then.
ours      F beside three connections of a server without a group, under the same control.
plain     three connections of a server without a group beside three Reno flows: what is not the group's doing.
dilution  two streams, one of which its application holds at half of its share in every second span of 20 s, beside two Reno
          flows: which part of what the one leaves does the other one get, with a group and without (section 1)?

Prints raw results (bench/raw.py). With --check it fails where the figures are not those that are promised. Needs root, namespaces, iperf3 and aioquic
(another Python for the clients by ANABRANCH_PYTHON).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import raw
from dumbbell import scenario

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLIENT = ROOT / "bench" / "h3_client.py"
WEIGHTS = {"one": 1, "four": 4, "eight": 8}
PLAIN = ["plain-1", "plain-2", "plain-3"]
# Bottleneck, round trip, and a queue of one bandwidth-delay product.
RATE, RTT_MS, QUEUE = 8_000_000, 70, 47
SETTLE = 8
# In the dilution one stream is held at this rate in every second span, in bit/s and seconds.
HELD, SPAN = 1_000_000, 20
SERVER = "10.77.0.2"


def main():
    options = arguments()
    built = [(experiment, number) for experiment in options.only for number in range(options.runs)]
    found = {}
    with tempfile.TemporaryDirectory(prefix="anabranch-quic-") as place:
        prepare(pathlib.Path(place))
        for experiment, number in built:
            for name, value in EXPERIMENTS[experiment](options, pathlib.Path(place), number + 1).items():
                found.setdefault(name, []).append(value)
                raw.row(experiment=experiment, run=number + 1, what=name, value=value)
    if options.check:
        wrong = [f"{name} is {value:.3f}" for name, values in found.items() for value in values if not BOUNDS[name](value)]
        sys.exit("; ".join(wrong) or 0)


def arguments():
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=60, help="over which the shares are measured")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(EXPERIMENTS), help="shares, ours, plain, dilution")
    parser.add_argument("--anabranch", type=pathlib.Path, default=built / "anabranch")
    parser.add_argument("--testbed", type=pathlib.Path, default=built / "anabranch-testbed")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the raw results here")
    return parser.parse_args()


def prepare(place):
    """Files to serve, a certificate, and the weights."""
    (place / "root").mkdir()
    for name in [*WEIGHTS, *PLAIN]:
        with open(place / "root" / name, "wb") as file:
            file.truncate(1 << 30)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        + ["-subj", "/CN=testbed", "-addext", f"subjectAltName=IP:{SERVER}"]
        + ["-keyout", place / "key.pem", "-out", place / "cert.pem"],
        check=True, capture_output=True,
    )
    pool = '[[pool]]\nname = "bench"\nclients = "all"\n'
    rules = "".join(f'[[rule]]\npath = "/{name}"\nweight = {weight}\n' for name, weight in WEIGHTS.items())
    (place / "weights.toml").write_text(rules + pool)
    (place / "even.toml").write_text(f"default = 1\n{pool}")


def run(options, place, name, seed, reno, clients, seconds, weights):
    """Clients as {name: options of h3_client.py}; those called plain-... are served without a group. Answers the bytes of each in each
    second of the machine's clock, and what arrived at the network layer in each second of the run, of the group and of the Reno flows, in bit/s."""
    out = (options.keep or place) / f"{name}-{seed}"
    out.mkdir(parents=True, exist_ok=True)
    serve = [options.anabranch.resolve(), "serve", place / "root", "--cert", place / "cert.pem", "--key", place / "key.pem"]
    serve = " ".join(map(str, [*serve, "--congestion", "reno", "--h3"]))
    grouped = f"{serve} {SERVER}:443 --http {SERVER}:80" + (f" --weights {place / weights}" if weights else "")
    serve = f"{serve} {SERVER}:444 & exec {grouped}"
    python = os.environ.get("ANABRANCH_PYTHON", sys.executable)
    lines = [
        [python, CLIENT, "--cacert", place / "cert.pem", "--bin", 1, *extra]
        + [f"https://{SERVER}:{444 if file.startswith('plain') else 443}/{file}"]
        for file, extra in clients.items()
    ]
    script = " & ".join(f"{' '.join(map(str, line))} > {out}/{line[-1].rsplit('/', 1)[1]}.json" for line in lines) + " & wait"
    (out / "scenario.toml").write_text(scenario(seconds, seed, RATE, RTT_MS, QUEUE, serve, script, reno))
    command = [options.testbed, "run", out / "scenario.toml", "--anabranch", options.anabranch.resolve(), "--out", out]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr.strip()}")
    counted = {}
    for file in clients:
        text = (out / f"{file}.json").read_text().splitlines()
        bins = [json.loads(line)["bins"] for line in text if "bins" in line]
        if not bins:
            sys.exit(f"{name}: no figures of {file}: {text}")
        counted[file] = {int(second): count for second, count in bins[0].items()}
    network = {}
    for line in (out / "traffic.csv").read_text().splitlines()[1:]:
        time, _, flow, _, bps, *_ = line.split(",")
        network.setdefault(int(float(time)), {}).setdefault(flow, []).append(float(bps))
    seconds = [{flow: statistics.mean(rates) for flow, rates in network[second].items()} for second in sorted(network)]
    return counted, seconds


def accuracy(amounts, weights):
    total = sum(amounts)
    each = [amount / total * sum(weights) / weight for amount, weight in zip(amounts, weights)]
    return sum(each) ** 2 / (len(each) * sum(one * one for one in each))


def shares(options, place, seed):
    long = SETTLE + options.seconds
    ends = {"one": long + 12, "four": long + 12, "eight": long}
    clients = {name: ["--seconds", end] for name, end in ends.items()}
    counted, network = run(options, place, "shares", seed, 3, clients, long + 60, "weights.toml")
    begun = max(min(bins) for bins in counted.values()) + SETTLE
    ended = max(counted["eight"])
    of = lambda second, names: [counted[name].get(second, 0) for name in names]  # noqa: E731
    each = [accuracy(of(second, WEIGHTS), WEIGHTS.values()) for second in range(begun, ended - 1)]
    span = network[SETTLE : SETTLE + options.seconds]
    ratio = sum(second["film"] for second in span) / sum(second["reno"] for second in span)
    group = lambda second: sum(of(second, WEIGHTS))  # noqa: E731
    before = statistics.mean(group(second) for second in range(ended - 11, ended - 1))
    return {
        "A, bins of 1 s, mean": statistics.mean(each),
        "A, worst second": min(each),
        "F beside Reno over TCP": ratio,
        "hand-over: next second over before": group(ended + 1) / before,
        "hand-over: next second over the ten after": group(ended + 1)
        / statistics.mean(group(second) for second in range(ended + 2, ended + 12)),
        "A of the two that stay, the second after": accuracy(of(ended + 1, ["one", "four"]), [1, 4]),
    }


def ours(options, place, seed):
    end = SETTLE + options.seconds + 2
    clients = {name: ["--seconds", end] for name in [*WEIGHTS, *PLAIN]}
    counted, _ = run(options, place, "ours", seed, 0, clients, end + 60, "weights.toml")
    begun = max(min(bins) for bins in counted.values()) + SETTLE
    total = lambda names: sum(counted[name].get(begun + second, 0) for name in names for second in range(options.seconds))  # noqa: E731
    return {"F beside Reno over QUIC": total(WEIGHTS) / total(PLAIN)}


def plain(options, place, seed):
    end = SETTLE + options.seconds + 2
    _, network = run(options, place, "plain", seed, 3, {name: ["--seconds", end] for name in PLAIN}, end + 60, None)
    span = network[SETTLE : SETTLE + options.seconds]
    return {"Reno over QUIC beside Reno over TCP": sum(second["film"] for second in span) / sum(second["reno"] for second in span)}


def dilution(options, place, seed):
    figures = {}
    for label, weights in [("group", "even.toml"), ("no group", None)]:
        long = SETTLE + 8 * SPAN
        clients = {"one": ["--seconds", long, "--rate", HELD, "--every", SPAN], "four": ["--seconds", long]}
        counted, _ = run(options, place, f"dilution-{label}".replace(" ", ""), seed, 2, clients, long + 60, weights)
        begun = max(min(bins) for bins in counted.values()) + SETTLE
        ended = min(max(bins) for bins in counted.values()) - 1
        # What was under way at a change is past after a few seconds.
        settled = [second for second in range(begun, ended) if second % SPAN >= 4]
        in_span = lambda held: [second for second in settled if (second // SPAN % 2 == 0) == held]  # noqa: E731
        of = lambda name, held: statistics.mean(counted[name].get(second, 0) * 8 / 1e6 for second in in_span(held))  # noqa: E731
        left = of("one", False) - of("one", True)
        figures[f"dilution, {label}: Mbps that one leaves"] = left
        figures[f"dilution, {label}: Mbps that the other gains"] = of("four", True) - of("four", False)
        figures[f"dilution, {label}: the other's part of what one leaves"] = (of("four", True) - of("four", False)) / left
    return figures


EXPERIMENTS = {"shares": shares, "ours": ours, "plain": plain, "dilution": dilution}
BOUNDS = {
    "A, bins of 1 s, mean": lambda value: value >= 0.98,
    "A, worst second": lambda value: value >= 0.5,
    "F beside Reno over TCP": lambda value: 0.9 <= value <= 1.1,
    "F beside Reno over QUIC": lambda value: 0.9 <= value <= 1.1,
    "Reno over QUIC beside Reno over TCP": lambda value: 0.8 <= value <= 1.25,
    "hand-over: next second over before": lambda value: value >= 0.6,
    "hand-over: next second over the ten after": lambda value: value >= 0.8,
    "A of the two that stay, the second after": lambda value: value >= 0.9,
    "dilution, group: Mbps that one leaves": lambda value: value > 0.3,
    "dilution, group: Mbps that the other gains": lambda value: value > 0.2,
    "dilution, group: the other's part of what one leaves": lambda value: value >= 0.6,
    "dilution, no group: Mbps that one leaves": lambda value: value > 0.3,
    "dilution, no group: Mbps that the other gains": lambda value: value < 0.7,
    "dilution, no group: the other's part of what one leaves": lambda value: value <= 0.7,
}

if __name__ == "__main__":
    main()
