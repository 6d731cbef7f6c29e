#!/usr/bin/env python3
"""Bytes per CPU second of a server over HTTP/3 on loopback: `anabranch serve --h3`, beside Caddy.

Usage: bench/serve_h3.py [--size MIB] [--rounds N] [--connections N] [ANABRANCH]

The same client for both: `anabranch fetch --http3-only`, over one connection and over several. The servers take turns, each
with its usual congestion control. Prints raw results (bench/raw.py).
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import loopback
import raw
import serve

CADDY = """
{{
    admin off
    auto_https off
    skip_install_trust
    default_sni 127.0.0.1
}}
https://127.0.0.1:{port} {{
    tls {dir}/cert.pem {dir}/key.pem
    root * {dir}/root
    file_server
}}
"""


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("anabranch", nargs="?", default="target/release/anabranch")
    arguments.add_argument("--size", type=int, default=1024, help="size of the file in MiB")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--connections", type=int, default=4)
    options = arguments.parse_args()
    for program in ["caddy", "openssl", options.anabranch]:
        if not shutil.which(program):
            sys.exit(f"{program} is missing: apt-get install caddy openssl; make build")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="anabranch-bench-") as name:
        run(pathlib.Path(name), options)


def run(directory, options):
    film = loopback.film(directory, options.size)
    loopback.certificate(directory)
    ports = {"anabranch serve": 18443, "caddy": 18444}
    config = directory / "Caddyfile"
    config.write_text(CADDY.format(dir=directory, port=ports["caddy"]))
    commands = {
        "anabranch serve": [options.anabranch, "serve", directory / "root", "--quiet",
                            "--h3", f"127.0.0.1:{ports['anabranch serve']}",
                            "--cert", directory / "cert.pem", "--key", directory / "key.pem"],
        "caddy": ["caddy", "run", "--config", config, "--adapter", "caddyfile"],
    }
    for number in range(options.rounds):
        for connections in [1, options.connections]:
            for name, command in commands.items():
                environment = {**os.environ, "HOME": str(directory)}
                server = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
                try:
                    # UDP tells nobody when it listens.
                    time.sleep(1)
                    seconds, cpu = fetch(directory, options.anabranch, ports[name], connections, server.pid)
                finally:
                    server.terminate()
                    server.wait()
                if (directory / "out").stat().st_size != film.stat().st_size:
                    sys.exit(f"{name}: another number of bytes")
                raw.row(server=name, connections=str(connections), round=number + 1, bytes=film.stat().st_size,
                        seconds=seconds, cpu_s=cpu)


def fetch(directory, anabranch, port, connections, server):
    """Seconds of a fetch, and the CPU seconds of the server meanwhile."""
    out = directory / "out"
    url = f"https://127.0.0.1:{port}/film.bin"
    command = [anabranch, "fetch", "--quiet", "--force", "--no-stripe", "--http3-only", "--cacert", directory / "cert.pem",
               "--rate", "max", "--algorithm", "basic", "--connections", str(connections), "-o", out, url]
    seconds, _, _, cpu = loopback.measure([str(part) for part in command], out, server)
    return seconds, cpu


if __name__ == "__main__":
    main()
