#!/usr/bin/env python3
"""Keeps a program running, and ends it now and then, as accidents do.

Usage: bench/keeper.py LOG "TERM@120,KILL@600" COMMAND...

The times are seconds after the keeper's start; the program is started again at once. LOG gets a line of CSV every ten seconds: seconds, process, resident
memory in kB, descriptors; and one for each end.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

LOOK_SECONDS = 10


def main():
    log, plan, command = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    ends = sorted((float(at), signal.Signals[f"SIG{name}"]) for name, at in (one.split("@") for one in plan.split(",") if one))
    begin, look = time.monotonic(), 0.0
    program = subprocess.Popen(command)

    def over(*_):
        program.terminate()
        program.wait()
        sys.exit(0)

    signal.signal(signal.SIGTERM, over)
    with open(log, "w") as lines:
        while True:
            now = time.monotonic() - begin
            if ends and now >= ends[0][0]:
                how = ends.pop(0)[1]
                program.send_signal(how)
                print(f"{now:.1f},{program.pid},{how.name},", file=lines, flush=True)
            if program.poll() is not None:
                print(f"{now:.1f},{program.pid},ended,{program.returncode}", file=lines, flush=True)
                program = subprocess.Popen(command)
            elif now >= look:
                look = now + LOOK_SECONDS
                print(f"{now:.1f},{program.pid},{resident(program.pid)},{descriptors(program.pid)}", file=lines, flush=True)
            time.sleep(0.05)


def resident(pid):
    """kB."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((line.split()[1] for line in lines if line.startswith("VmRSS")), 0)


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


if __name__ == "__main__":
    main()
