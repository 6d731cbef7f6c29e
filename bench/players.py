#!/usr/bin/env python3
"""Stock players of HLS and DASH in Chromium over emulated paths, alone and through `anabranch proxy`.

Usage: bench/players.py [--rows ROW...] [--players PLAYER...] [--rounds N] [--jobs N] ANABRANCH TESTBED

hls.js (HLS), dash.js and Shaka Player (DASH) are got from npm at the versions below, into --libraries; they run as they come, without a
setting. ffmpeg makes the films: H.264 of a constant rate in segments of four seconds (CMAF), the same files for HLS and DASH. nginx behind the
path (the testbed's) has them, its senders are CUBIC. The page (players.html) looks ten times a second at how far play is, and tells what
a viewer saw: start-up (from the moment at which the player gets the address), stalls, the mean rung by play time, by the height of the
picture, and the time to the head of a segment's answer (median, without the first). nginx's log tells the bytes and the connections, a look at
the sockets how many of these stood at most. A run ends with the film, or after the row's most seconds. Prints raw results (bench/raw.py).
"""

import argparse
import concurrent.futures
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from queue import Empty, Queue

import raw
from segments import SCENARIO, SEGMENT_SECONDS, Ports, played

HERE = pathlib.Path(__file__).resolve().parent
# Player: its package, the file in it, and which playlist it plays.
PLAYERS = {
    "hls.js": ("hls.js@1.7.4", "hls.js/dist/hls.min.js", "master.m3u8"),
    "dash.js": ("dashjs@5.2.1", "dashjs/dist/modern/umd/dash.all.min.js", "film.mpd"),
    "shaka": ("shaka-player@5.2.12", "shaka-player/dist/shaka-player.compiled.js", "film.mpd"),
}
CLIENTS = ["direct", "proxy"]
# Rate of a rung in kbps: size of its picture, by whose height a rung is known.
PICTURES = {800: "256x144", 1600: "426x240", 3000: "640x360", 5000: "854x480"}
# Row: rate, one-way delay, loss and queue of the path; CUBIC flows beside from 20 s on; rungs in kbps; seconds of film; most seconds.
ROWS = {
    "clean": ("20M", "40ms", 0, 250, 0, [800, 1600, 3000, 5000], 60, 80),
    "too narrow": ("2500k", "40ms", 0, 50, 0, [3000], 72, 120),
    "lossy": ("20M", "75ms", 0.01, 250, 0, [5000], 60, 100),
    "crowded": ("6M", "40ms", 0, 50, 15, [800, 1600, 3000, 5000], 95, 170),
}
BESIDE = """
[[flow]]
name = "beside{{i}}"
kind = "tcp"
count = {count}
from = "origin"
to = "client"
start = "20s"
"""
NGINX = """
daemon off; master_process off; user root; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 1024; }}
http {{
    types {{ application/dash+xml mpd; application/vnd.apple.mpegurl m3u8; video/mp4 mp4 m4s; }}
    log_format told "$connection $body_bytes_sent"; access_log {dir}/access.log told; sendfile on; tcp_nopush on; root {root};
    client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3; uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
    add_header Access-Control-Allow-Origin *;
    add_header Access-Control-Allow-Headers Range;
    server {{ listen 80; }}
}}
"""
CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-dev-shm-usage", "--mute-audio", "--autoplay-policy=no-user-gesture-required"]


def film(directory, rungs, seconds, pictures=PICTURES, frames=25):
    """A ladder as HLS and DASH, with so many frames a second."""
    directory.mkdir()
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=size=854x480:rate={frames}:duration={seconds}"]
    for index, kbps in enumerate(rungs):
        command += ["-map", "0:v", f"-s:v:{index}", pictures[kbps], f"-b:v:{index}", f"{kbps}k", f"-minrate:v:{index}", f"{kbps}k",
                    f"-maxrate:v:{index}", f"{kbps}k", f"-bufsize:v:{index}", f"{kbps // 2}k"]
    gop = str(SEGMENT_SECONDS * frames)
    command += ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-bf", "0", "-g", gop, "-keyint_min", gop, "-sc_threshold", "0",
                "-x264-params", "nal-hrd=cbr:filler=1", "-aspect", "16:9", "-f", "dash", "-adaptation_sets", "id=0,streams=v",
                "-seg_duration", str(SEGMENT_SECONDS), "-use_timeline", "0", "-hls_playlist", "1", "film.mpd"]
    subprocess.run(command, cwd=directory, check=True)


def libraries(directory):
    """The players' scripts, by name."""
    scripts = {name: directory / "node_modules" / script for name, (_, script, _) in PLAYERS.items()}
    wanted = [package for name, (package, _, _) in PLAYERS.items()]
    marker = directory / "installed"
    if not marker.exists() or marker.read_text().split() != wanted:
        directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", directory, *wanted],
                       check=True, stdout=sys.stderr)
        marker.write_text(" ".join(wanted))
    return scripts


def serve_page(scripts):
    """A server of the page and the players' scripts; its address, and a queue of what pages tell."""
    told = Queue()
    files = {f"/{name}": (script, "text/javascript") for name, script in scripts.items()}
    files["/players.html"] = (HERE / "players.html", "text/html")

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            file, kind = files.get(urllib.parse.urlsplit(self.path).path, (None, None))
            body = file.read_bytes() if file else b""
            self.send_response(200 if file else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_address[1]}", told


def inside(options):
    """The player, in its namespace."""
    host = urllib.parse.urlsplit(options.url).hostname
    rungs = ROWS[options.row][5]
    url = f"http://{host}/{PLAYERS[options.player][2]}"
    proxy = None
    if options.inside == "proxy":
        proxy = subprocess.Popen([options.anabranch, "proxy", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
        url = f"http://{re.search(r'http://([^/]+)/URL', proxy.stdout.readline()).group(1)}/{url}"
    address, pages = serve_page(libraries(options.libraries))
    heights = ",".join(f"{PICTURES[kbps].partition('x')[2]}:{kbps}" for kbps in rungs)
    query = urllib.parse.urlencode({"player": options.player, "url": url, "seconds": ROWS[options.row][7], "rungs": heights})
    ports = Ports(host)
    ports.start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = subprocess.Popen([*CHROMIUM, f"--user-data-dir={profile}", f"http://{address}/players.html?{query}"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            told = pages.get(timeout=ROWS[options.row][7] + 60)
        except Empty:
            told = None
        for program in [browser, proxy]:
            if program:
                program.terminate()
                program.wait()
    if not told:
        sys.exit("the page has told nothing")
    told.update(most=ports.most, opened=len(ports.seen))
    pathlib.Path(options.out).write_text(json.dumps(told))


def trial(row, player, client, seed, films, options):
    rate, delay, loss, queue, beside, _, _, most_seconds = ROWS[row]
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        config = directory / "nginx.conf"
        config.write_text(NGINX.format(dir=directory, root=films[row]))
        server = ["nginx", "-e", str(directory / "error.log"), "-p", str(directory), "-c", str(config)]
        command = ["python3", str(pathlib.Path(__file__).resolve()), "--inside", client, "--url", "{url1}", "--out", "{dir}/player.json",
                   "--row", row, "--player", player, "--libraries", str(options.libraries), str(pathlib.Path(options.anabranch).resolve())]
        scenario = SCENARIO.format(rate=rate, delay=delay, loss=loss, queue=queue, film="800k", seconds=SEGMENT_SECONDS, seed=seed,
                                   server=f"command = {json.dumps(server)}\n", duration=most_seconds + 90, command=json.dumps(command))
        told = played(options.testbed, scenario + (BESIDE.format(count=beside) if beside else ""), directory, f"{row}, {player}, {client}")
        faults = told.pop("faults")
        if faults:
            print(f"{row}, {player}, {client}: {faults}", file=sys.stderr)
        answers = [line.split() for line in (directory / "access.log").read_text().splitlines()]
        return dict(row=row, player=player, client=client, seed=seed, faults=len(faults), bytes=sum(int(size) for _, size in answers),
                **{name: value for name, value in told.items() if value is not None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--players", nargs="*", choices=PLAYERS, default=list(PLAYERS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time")
    parser.add_argument("--libraries", type=pathlib.Path, default=HERE.parent / "target" / "players")
    parser.add_argument("--inside", choices=CLIENTS, help=argparse.SUPPRESS)
    for name in ["--url", "--out", "--row", "--player"]:
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("anabranch")
    parser.add_argument("testbed", nargs="?")
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    libraries(options.libraries)
    with tempfile.TemporaryDirectory() as directory:
        films = {}
        for row in options.rows:
            films[row] = pathlib.Path(directory) / row.replace(" ", "-")
            film(films[row], ROWS[row][5], ROWS[row][6])
        trials = [(row, player, client, seed) for seed in range(1, options.rounds + 1) for row in options.rows
                  for player in options.players for client in CLIENTS]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for told in pool.map(lambda which: trial(*which, films, options), trials):
                raw.row(**told)


if __name__ == "__main__":
    main()
