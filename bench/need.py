#!/usr/bin/env python3
"""Twelve real players on one link, served with equal weights and by need: dash.js in Chromium, `anabranch serve --h3 --weights`.

Usage: bench/need.py [--only ROW...] [--rounds N] ANABRANCH TESTBED

Each player has a context of its own in one Chromium, and so a connection of its own of HTTP/3; they tell their buffers (CMCD, in the query). The films
are three, with different lowest rungs, four players each; players begin one after the other, in an order that the seed gives, and the same one for both
forms. Beside them go plain Reno flows of another sender. dash.js (from npm, bench/players.py) adapts by its BolaRule alone, by its ThroughputRule
alone, or by both, as it comes. The page (players.html) tells what each viewer saw until the end. The server's log says whether all came over HTTP/3 and
how many requests told a buffer, and /proc/stat how busy the machine was. Where other programs run beside it, `chrt -r 1`
before the command has these wait. Prints raw results (bench/raw.py): a row for each player, with what its run came to.
"""

import argparse
import base64
import csv
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
from queue import Empty

import raw
from players import CHROMIUM, PLAYERS, film, libraries, serve_page
from segments import SCENARIO, SEGMENT_SECONDS, played

# Name: what of dash.js's settings is other than it comes.
RULES = {
    "buffer": {"rules": {"throughputRule": {"active": False}}},
    "throughput": {"rules": {"bolaRule": {"active": False}}},
    "both": {},
}
# Rungs in kbps of each film.
FILMS = {
    "three films": {"low": [500, 1000, 2000, 3500], "middle": [800, 1600, 3000, 5000], "high": [1100, 2200, 4000, 7000]},
    "one film": {name: [800, 1600, 3000, 5000] for name in ["low", "middle", "high"]},
}
# Row: films, rule, discipline of the queue, and in how many rounds at most.
ROWS = {
    "three films, buffer": ("three films", "buffer", "droptail", 1000),
    "three films, throughput": ("three films", "throughput", "droptail", 1000),
    "three films, both": ("three films", "both", "droptail", 1000),
    "one film, both": ("one film", "both", "droptail", 1),
    "three films, both, PIE": ("three films", "both", "pie", 1),
}
# Of the rungs: so small that twelve players take little time to decode them.
PICTURES = ["128x72", "160x90", "192x108", "224x126"]
FRAMES = 12
PLAYERS_OF_A_FILM, STRANGERS = 4, 2
# Players begin in so many seconds, and are looked at until the end. Pages have so long to load.
BEGIN_SECONDS, RUN_SECONDS, LOAD_SECONDS = 20, 120, 12
DELAY, QUEUE = "30ms", 100
# What the link has of the need of all lowest rungs: as much more as strangers are more. The players' own shares are the need then.
ROOM = 1 + STRANGERS / (3 * PLAYERS_OF_A_FILM)
# All players come from one address.
POOL = 'claims = true\nshared_addresses = ["10.77.0.0/16"]\n[[pool]]\nname = "uplink"\nclients = "all"\n'
WEIGHTS = {"equal": POOL, "by need": POOL + "[[rule]]\nby_need = true\n"}
# What a line of the access log has where a player told its buffer and who it is, and how many bytes an answer had.
BUFFER, SESSION, ANSWER = "bl%3D", "sid%3D%22{name}%22", re.compile(r'HTTP/3[^"]*" \d+ (\d+)')
BESIDE = f"""
[[flow]]
name = "stranger{{i}}"
kind = "tcp"
count = {STRANGERS}
from = "origin"
to = "client"
tcp = {{ congestion = "reno" }}
"""


class Browser:
    """A Chromium that is told what to do over a pipe."""

    def __init__(self, host, key, profile):
        to_read, write = os.pipe()
        read, to_write = os.pipe()
        # It reads from its descriptor 3 and writes to 4.
        pipes = ["sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh"]
        options = ["--remote-debugging-pipe", f"--user-data-dir={profile}", f"--origin-to-force-quic-on={host}:443",
                   f"--ignore-certificate-errors-spki-list={key}", "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
                   "--disable-backgrounding-occluded-windows"]
        self.process = subprocess.Popen([*pipes, *CHROMIUM, *options, "about:blank"], pass_fds=[to_read, to_write],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.write, self.read, self.number = os.fdopen(write, "wb", 0), os.fdopen(read, "rb"), 0

    def ask(self, method, **parameters):
        self.number += 1
        self.write.write(json.dumps({"id": self.number, "method": method, "params": parameters}).encode() + b"\0")
        while True:
            said = b""
            while not said.endswith(b"\0"):
                byte = self.read.read(1)
                if not byte:
                    sys.exit("Chromium has ended")
                said += byte
            answer = json.loads(said[:-1])
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"Chromium, {method}: {answer['error']}")
                return answer["result"]

    def open(self, address):
        """A page in a context of its own."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        self.ask("Target.createTarget", url=address, browserContextId=context)


def busy():
    """Seconds of all processors that were not idle, and all seconds."""
    ticks = [int(field) for field in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def inside(options):
    """The players, in their namespace."""
    started = time.monotonic()
    host = urllib.parse.urlsplit(options.url).hostname
    ladders = FILMS[options.setting]
    who = [(name, number) for number in range(PLAYERS_OF_A_FILM) for name in ladders]
    random.Random(options.seed).shuffle(who)
    address, pages = serve_page(libraries(options.libraries))
    # Some of Chromium's processes may still write when it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(host, options.key, profile)
        begins = time.time() + LOAD_SECONDS
        begins_s = time.monotonic() - started + LOAD_SECONDS
        for place, (name, number) in enumerate(who):
            later = place * BEGIN_SECONDS / len(who)
            settings = {"streaming": {"cmcd": {"enabled": True, "mode": "query", "sid": f"{name}{number}"}, "abr": RULES[options.rule]}}
            heights = ",".join(f"{picture.partition('x')[2]}:{kbps}" for picture, kbps in zip(PICTURES, ladders[name]))
            query = {"player": "dash.js", "name": f"{name}{number}", "url": f"https://{host}/{name}/{PLAYERS['dash.js'][2]}", "rungs": heights,
                     "begins": 1000 * (begins + later), "seconds": RUN_SECONDS - later, "settings": json.dumps(settings)}
            browser.open(f"http://{address}/players.html?{urllib.parse.urlencode(query)}")
        time.sleep(max(0, begins - time.time()))
        busy_before, all_before = busy()
        told = []
        try:
            while len(told) < len(who):
                told.append(pages.get(timeout=RUN_SECONDS + 30))
        except Empty:
            sys.exit(f"{len(who) - len(told)} pages have told nothing")
        busy_after, all_after = busy()
        browser.process.terminate()
        browser.process.wait()
    result = {"players": told, "begins_s": begins_s, "busy": (busy_after - busy_before) / (all_after - all_before)}
    pathlib.Path(options.out).write_text(json.dumps(result))


def certificate(directory):
    """One for the server, and what Chromium knows its key by."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "10", "-subj",
                    "/CN=testbed", "-addext", "subjectAltName=IP:10.77.0.2", "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
                   check=True, stderr=subprocess.DEVNULL)
    public = subprocess.run(["openssl", "pkey", "-in", directory / "key.pem", "-pubout", "-outform", "DER"], check=True, stdout=subprocess.PIPE)
    return base64.b64encode(hashlib.sha256(public.stdout).digest()).decode()


def trial(row, form, seed, films, key, options):
    setting, rule, discipline, _ = ROWS[row]
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "weights.toml").write_text(WEIGHTS[form])
        server = [str(pathlib.Path(options.anabranch).resolve()), "serve", str(films / setting), "--h3", "0.0.0.0:443",
                  # The testbed waits for port 80.
                  "--http", "0.0.0.0:80", "--cert", str(films / "cert.pem"),
                  "--key", str(films / "key.pem"), "--congestion", "reno", "--weights", str(directory / "weights.toml"),
                  "--access-log", str(directory / "access.log")]
        command = ["python3", str(pathlib.Path(__file__).resolve()), "--inside", "--url", "{url1}", "--out", "{dir}/player.json", "--seed", str(seed),
                   "--setting", setting, "--rule", rule, "--key", key, "--libraries", str(options.libraries.resolve()), options.anabranch]
        need = PLAYERS_OF_A_FILM * sum(rungs[0] for rungs in FILMS[setting].values())
        scenario = SCENARIO.format(rate=f"{ROOM * need:.0f}k", delay=DELAY, loss=0, queue=QUEUE, film="800k", seconds=SEGMENT_SECONDS, seed=seed,
                                   server=f"command = {json.dumps(server)}\n", duration=LOAD_SECONDS + RUN_SECONDS + 60, command=json.dumps(command))
        scenario = scenario.replace(f'queue = "{QUEUE} packets"', f'queue = "{QUEUE} packets"\ndiscipline = "{discipline}"') + BESIDE
        who = f"{row}, {form}"
        told = played(options.testbed, scenario, directory, who)
        run = {"row": row, "weights": form, "seed": str(seed), "busy": told["busy"], "seconds": RUN_SECONDS,
               **rates(directory, told["begins_s"])}
        requests = (directory / "access.log").read_text().splitlines()
        run.update(requests=len(requests), over_http3=sum("HTTP/3" in line for line in requests), tell_buffer=sum(BUFFER in line for line in requests))
        if run["over_http3"] < run["requests"] or not run["tell_buffer"]:
            sys.exit(f"{who}: of {run['requests']} requests {run['over_http3']} came over HTTP/3, and {run['tell_buffer']} told a buffer")
        for player in told["players"]:
            faults = player.pop("faults")
            if faults:
                print(f"{who}, {player['name']}: {faults}", file=sys.stderr)
            if player["startup_s"] is None:
                print(f"{who}, {player['name']}: has not begun", file=sys.stderr)
            answers = [ANSWER.search(line) for line in requests if SESSION.format(name=player["name"]) in line]
            raw.row(**run, faults=len(faults), bytes=sum(int(answer[1]) for answer in answers),
                    **{name: value for name, value in player.items() if value is not None})


def rates(directory, begins_s):
    """Mean rates at the network layer of all players and of all strangers, while players are looked at."""
    [traffic] = directory.rglob("traffic.csv")
    arrived = {"players_bps": 0, "strangers_bps": 0}
    with open(traffic, newline="") as lines:
        for line in csv.DictReader(lines):
            if begins_s + 1 < float(line["time_s"]) <= begins_s + 1 + RUN_SECONDS:
                arrived["players_bps" if line["flow"] == "film" else "strangers_bps"] += float(line["network_bps"])
    return {name: rate / RUN_SECONDS for name, rate in arrived.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--libraries", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "target" / "players")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    for name in ["--url", "--out", "--setting", "--rule", "--key"]:
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("anabranch")
    parser.add_argument("testbed", nargs="?")
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    libraries(options.libraries)
    with tempfile.TemporaryDirectory() as name:
        films = pathlib.Path(name)
        key = certificate(films)
        for setting in {ROWS[row][0] for row in options.only}:
            (films / setting).mkdir()
            for title, rungs in FILMS[setting].items():
                film(films / setting / title, rungs, RUN_SECONDS + 10, dict(zip(rungs, PICTURES)), FRAMES)
        for seed in range(1, options.rounds + 1):
            for row in [row for row in options.only if seed <= ROWS[row][3]]:
                for form in WEIGHTS:
                    trial(row, form, seed, films, key, options)


if __name__ == "__main__":
    main()
