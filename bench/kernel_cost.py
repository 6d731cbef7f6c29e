#!/usr/bin/env python3
"""Time per call of the kernel's congestion controls that take more than one share, and of its Reno behind the same kind of hook.

Usage: bench/kernel_cost.py [--rounds N] [--seconds S] [--only TEXT] [--flows N] [--anabranch PATH]

iperf3 sends over the same connection (100 Mbps, a queue of 60 packets) with each control in turn, round by round; the kernel counts the calls of
each BPF program and their time (bpf_stats). Reno is a program that calls the kernel's functions (papers/ttfwc/reference.bpf.c); 'fixed window'
does next to nothing: what it takes is the hook's and the counting's own. TTFWC and CUBIC are in `anabranch lab run ttfwc-tab5 --real`. Needs root, bpftool and clang. Prints raw results (bench/raw.py).
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import raw

HERE = pathlib.Path(__file__).resolve().parent
RATE_MBPS, QUEUE_BYTES = 100, 60 * 1514
# Title, name of the control, how it is loaded (None: of papers/ttfwc/reference.bpf.c), and its two programs.
OURS = ("control_cong_avoid", "control_ssthresh")
CONTROLS = [
    ("MulTCP(2)", "multcp", ["multcp", "--flows", "2"], *OURS),
    # The connections are the members of one group.
    ("group of {flows}", "group", ["group"], "group_cong_avoid", "group_ssthresh"),
    ("group of {flows}, its other procedure at each ACK", "group", ["group"], "group_acked", None),
    ("Reno", "hook_reno", None, "reno_avoid", "reno_ssthresh"),
    ("fixed window", "hook_window", None, "window_avoid", "window_ssthresh"),
]
# Packets of the fixed window: eight of them fill the path and lose something now and then.
WINDOW = 10
PROCEDURES = ["at each ACK", "at a loss event"]
STATISTICS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")


def run(*command, **options):
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed: {(ran.stdout + ran.stderr).strip()}")
    return ran.stdout


@contextlib.contextmanager
def path():
    """Three namespaces in a row, sender, router and receiver; what the middle one cannot forward in time is lost there."""
    names = [f"cost-{os.getpid()}-{end}" for end in "srd"]
    sender, router, receiver = names
    within = lambda name, *command: run("ip", "netns", "exec", name, *command)
    try:
        for name in names:
            run("ip", "netns", "add", name)
            within(name, "ip", "link", "set", "lo", "up")
        for number, (left, right) in enumerate([(sender, router), (router, receiver)]):
            ends = [f"e{number}a", f"e{number}b"]
            run("ip", "-n", left, "link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", right)
            for host, name, end in [(1, left, ends[0]), (2, right, ends[1])]:
                run("ip", "-n", name, "address", "add", f"10.78.{number}.{host}/24", "dev", end)
                # A packet is a packet, as on a wire.
                run("ip", "-n", name, "link", "set", end, "gso_max_segs", 1, "up")
        run("ip", "-n", sender, "route", "add", "10.78.1.0/24", "via", "10.78.0.2")
        run("ip", "-n", receiver, "route", "add", "10.78.0.0/24", "via", "10.78.1.1")
        within(router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        run("tc", "-n", router, "qdisc", "add", "dev", "e1a", "root", "tbf", "rate", f"{RATE_MBPS}mbit", "burst", 3028, "limit", QUEUE_BYTES)
        yield sender, receiver
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


@contextlib.contextmanager
def reference():
    """The kernel's own controls behind hooks."""
    names = ["hook_cubic", "hook_reno", "hook_window"]
    with tempfile.TemporaryDirectory() as directory:
        out = f"{directory}/reference.o"
        run("clang", "-O2", "-g", "-target", "bpf", f"-DWINDOW={WINDOW}", f"-I/usr/include/{os.uname().machine}-linux-gnu",
            "-c", HERE.parent / "papers/ttfwc/reference.bpf.c", "-o", out)
        run("bpftool", "struct_ops", "register", out)
    try:
        yield
    finally:
        for name in names:
            subprocess.run(["bpftool", "struct_ops", "unregister", "name", name], capture_output=True)


def counters():
    """Time in ns and calls of each program by its name. There is one of a name, as controls are loaded one at a time."""
    programs = json.loads(run("bpftool", "-j", "prog", "show"))
    return {one.get("name"): (one.get("run_time_ns", 0), one.get("run_cnt", 0)) for one in programs if one["type"] == "struct_ops"}


def measure(control, ends, options):
    """Time and calls of a control's two programs, while it carries."""
    name, load, avoid, recovery = control
    if load:
        run(options.anabranch, "cc", "load", *load)
    try:
        before = counters()
        sent = run("ip", "netns", "exec", ends[0], "iperf3", "-J", "-c", "10.78.1.2", "-C", name, "-P", options.flows, "-t", options.seconds)
        after = counters()
    finally:
        if load:
            run(options.anabranch, "cc", "unload", load[0])
    rate = json.loads(sent)["end"]["sum_received"]["bits_per_second"]
    return rate, [tuple(a - b for a, b in zip(after.get(program, (0, 0)), before.get(program, (0, 0)))) for program in (avoid, recovery)]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=int, default=20)
    arguments.add_argument("--flows", type=int, default=8, help="connections of iperf3, at most 128")
    arguments.add_argument("--only", default="", help="controls whose title has this in it")
    arguments.add_argument("--anabranch", type=pathlib.Path, default=HERE.parent / "target/release/anabranch")
    options = arguments.parse_args()
    missing = [name for name in ["ip", "tc", "iperf3", "bpftool", "clang", "sysctl", options.anabranch] if not shutil.which(name)]
    if missing:
        sys.exit(f"Missing: {', '.join(map(str, missing))}; on Debian as root: apt-get install iproute2 iperf3 bpftool clang libbpf-dev")
    if os.geteuid():
        sys.exit("The kernel registers congestion controls for root only: try it with sudo")
    was = STATISTICS.read_text()
    with path() as ends, reference():
        server = subprocess.Popen(["ip", "netns", "exec", ends[1], "iperf3", "-s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            STATISTICS.write_text("1")
            time.sleep(1)
            for number in range(options.rounds):
                for title, *control in CONTROLS:
                    if options.only in title:
                        tell(title.format(flows=options.flows), number, measure(control, ends, options))
        finally:
            STATISTICS.write_text(was)
            server.terminate()
            server.wait()


def tell(control, number, measured):
    """One for each of the two procedures that was called."""
    rate, parts = measured
    for procedure, (time_ns, calls) in zip(PROCEDURES, parts):
        if calls:
            raw.row(procedure=procedure, control=control, round=number + 1, time_ns=time_ns, calls=calls, rate_bps=rate)


if __name__ == "__main__":
    main()
