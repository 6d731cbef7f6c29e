"""The tables of docs/benchmarks.md, made of raw results."""

import csv as comma
import io
import json
import re
import statistics
import sys
import tomllib

# Seconds at a client's start that a rate limit is given, and that are left out of a throughput: connections are still
# added and their first windows are larger than what they can keep.
LIMIT_SETTLES_S = 2.0
THROUGHPUT_SETTLES_S = 30.0


def markdown(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + " --- |" * len(heading)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def csv(text):
    """All tables of a Markdown text as CSV, with the text between them left out and an empty line instead."""
    target = io.StringIO()
    writer = comma.writer(target, lineterminator="\n")
    before = ""
    for line in text.splitlines():
        if line.startswith("|") and not re.fullmatch(r"[|\s:-]+-[|\s:-]+", line):
            if target.tell() and not before.startswith("|"):
                target.write("\n")
            writer.writerow(cell.strip() for cell in line.strip().strip("|").split("|"))
        before = line
    return target.getvalue()


def fill(document, results):
    """The document with every table that there is a result for between its markers."""

    def table(found):
        file = results / f"{found[1]}.md"
        if not file.exists():
            return found[0]
        return f"<!-- table:{found[1]} -->\n{file.read_text().strip()}\n<!-- /table -->"

    filled, count = re.subn(r"<!-- table:([a-z0-9-]+) -->\n.*?<!-- /table -->", table, document, flags=re.DOTALL)
    if not count:
        sys.exit("the document has no place for a table")
    return filled


def coordinator(text):
    """Medians per decision and number of outstanding segments, of what divan prints."""
    medians, name = {}, None
    for line in text.splitlines():
        if title := re.match(r"[├╰]─ (\w+)", line):
            name = title[1]
        elif row := re.match(r"[│ ]\s+[├╰]─ (\d+)\s", line):
            medians.setdefault(name, {})[int(row[1])] = line.split("│")[-4].strip()
    if not medians:
        sys.exit(f"cargo bench printed no medians:\n{text}")
    numbers = sorted(next(iter(medians.values())))
    rows = [[name.replace("_", " "), *(times[number] for number in numbers)] for name, times in medians.items()]
    return markdown(["median, by outstanding segments", *(f"{number:,}" for number in numbers)], rows)


def scenario(file, out, clients):
    """The table of a scenario whose clients left their results in `out`."""
    plan = tomllib.loads(file.read_text())
    names = [client["name"] for client in plan["client"] if (out / client["name"] / "summary.json").exists()]
    runs = {name: json.loads((out / name / "summary.json").read_text()) for name in names if not clients or name in clients}
    if not runs:
        sys.exit(f"{out} has no results of {file.name}")
    if "ping" in plan:
        return rate_limit(plan, out, runs)
    if any("max" in client["command"] for client in plan["client"]):
        return throughput(out, runs)
    return viewing(plan, runs)


def viewing(plan, runs):
    rows = []
    for name, run in runs.items():
        play = run["playback"]
        share = run["received_bytes"] / run["film_bytes"]
        rows.append([
            name,
            "never" if play["startup_s"] is None else f"{play['startup_s']:.1f}",
            play["stalls"],
            f"{play['stall_s']:.1f}",
            f"{run['connections_max']}, {run['connections_mean']:.1f}",
            f"{run['cross_bps'] / 1e6:.2f}" if "cross" in plan else "",
            f"{run['beyond_bytes'] / 1e3:.0f}, {run['beyond_bytes'] / run['film_bytes']:.1%}",
            "wrong bytes" if not run["right"] else "yes" if run["complete"] else f"{share:.0%}",
        ])
    heading = ["client", "start-up (s)", "stalls", "stalled (s)", "connections (most, mean)", "cross traffic (Mbps)",
               "beyond the film (kB, share)", "film complete"]
    return without_empty(heading, rows)


def without_empty(heading, rows):
    used = [index for index in range(len(heading)) if any(row[index] != "" for row in rows)]
    return markdown([heading[index] for index in used], [[row[index] for index in used] for row in rows])


def seconds(out, name, run):
    """Per second of a client's run: its end, and the payload that arrived in bit/s; a last part of a second is left out."""
    total = {}
    with open(out / name / "traffic.csv") as source:
        for row in comma.DictReader(source):
            if row["flow"] == "film":
                total[float(row["time_s"])] = total.get(float(row["time_s"]), 0.0) + float(row["payload_bps"])
    return [(at, bps) for at, bps in sorted(total.items()) if at <= run["seconds"] + 0.05]


def rate_limit(plan, out, runs):
    idle = tomllib_time(plan["path"][0]["rtt"])
    wanted = 8e6
    rows = []
    for name, run in runs.items():
        rates = [bps for at, bps in seconds(out, name, run) if at > LIMIT_SETTLES_S + 0.5]
        worst = max(rates, key=lambda bps: abs(bps / wanted - 1))
        with open(out / name / "ping.csv") as source:
            pings = [(float(row["time_s"]), float(row["rtt_ms"]) - idle) for row in comma.DictReader(source) if row["rtt_ms"]]
        begin = [gain for at, gain in pings if at <= LIMIT_SETTLES_S]
        steady = sorted(gain for at, gain in pings if at > LIMIT_SETTLES_S)
        rows.append([
            name,
            f"{run['connections_max']}, {run['connections_mean']:.1f}",
            f"{statistics.mean(rates) / 1e6:.2f}",
            f"{worst / wanted - 1:+.1%}",
            f"{sum(abs(bps / wanted - 1) <= 0.03 for bps in rates)} of {len(rates)}",
            read_rate(out / name / "stats.jsonl", wanted),
            f"{statistics.mean(steady):.1f}",
            f"{steady[len(steady) * 95 // 100]:.1f}",
            f"{steady[-1]:.1f}",
            f"{max(begin):.1f}",
        ])
    return without_empty(
        ["client", "connections (most, mean)", "mean (Mbps)", "worst second on the wire", "seconds within 3 %",
         "worst second read by the client", "ping gains: mean (ms)", "95 %", "most", "most in the first 2 s"], rows)


def read_rate(stats, wanted):
    """The second whose new bytes are farthest from the limit, as the client itself counts; nothing where it does not tell."""
    if not stats.exists():
        return ""
    events = [json.loads(line) for line in stats.read_text().splitlines()]
    rates = [event["rate_bps"] for event in events if event["event"] == "interval" and event["at_s"] > LIMIT_SETTLES_S + 0.5]
    return f"{max(rates, key=lambda bps: abs(bps / wanted - 1)) / wanted - 1:+.1%}" if rates else ""


def tomllib_time(text):
    """A scenario's time, in ms."""
    number, unit = re.fullmatch(r"([0-9.]+)(ms|s)", text).groups()
    return float(number) * {"ms": 1, "s": 1000}[unit]


def throughput(out, runs):
    steady, whole = {}, {}
    for name, run in runs.items():
        rates = seconds(out, name, run)
        late = [bps for at, bps in rates if at > THROUGHPUT_SETTLES_S]
        steady[name] = statistics.mean(late) / 1e6 if late else None
        whole[name] = statistics.mean(bps for _, bps in rates) / 1e6
    fixed = [value for name, value in steady.items() if name.startswith("basic") and value]
    best = max(fixed, default=None)
    rows = [[name, f"{run['connections_max']}, {run['connections_mean']:.1f}", f"{run['seconds']:.0f}", f"{whole[name]:.1f}",
             f"{steady[name]:.1f}" if steady[name] else "", f"{steady[name] / best:.2f}" if steady[name] and best else ""]
            for name, run in runs.items()]
    return without_empty(
        ["client", "connections (most, mean)", "ran (s)", "mean (Mbps)", f"from {THROUGHPUT_SETTLES_S:g} s on (Mbps)",
         "beside the best fixed number"], rows)
