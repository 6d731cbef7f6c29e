#!/usr/bin/env python3
"""Throughput, CPU and memory of fetching a large file over loopback from nginx, beside curl, aria2c and axel.

Usage: bench/loopback.py [--size MIB] [--rounds N] [ANABRANCH]

All clients write to the same tmpfs, one after another, round by round. Prints raw results (bench/raw.py).
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import raw
import serve

NGINX = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; tcp_nopush on; root {dir}/root;
    client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;
    uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;
    server {{ listen 127.0.0.1:{http}; }}
    server {{ listen 127.0.0.1:{https} ssl; ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem; }}
}}
"""


def measure(command, out, nginx):
    """Runs a command; seconds, CPU seconds and peak memory in MiB of it alone, and CPU seconds of nginx meanwhile."""
    for path in out.parent.glob(out.name + "*"):
        path.unlink()
    before = serve.cpu_seconds(nginx)
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = [0]
    watch = threading.Thread(target=watch_memory, args=(process.pid, peak))
    watch.start()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - begin
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with {process.returncode}:\n{errors.decode()[-2000:]}")
    watch.join()
    return seconds, usage.ru_utime + usage.ru_stime, peak[0] / 1024, serve.cpu_seconds(nginx) - before


def watch_memory(pid, peak):
    """Notes the peak in KiB until the process ends. What wait4 tells is never less than this script's own, which forked it."""
    status = pathlib.Path(f"/proc/{pid}/status")
    while True:
        try:
            found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
        except OSError:
            return
        if not found:
            return
        peak[0] = int(found[1])
        time.sleep(0.02)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("anabranch", nargs="?", default="target/release/anabranch")
    arguments.add_argument("--size", type=int, default=2048, help="size of the file in MiB")
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    for program in ["nginx", "curl", "aria2c", "axel", "openssl", options.anabranch]:
        if not shutil.which(program):
            sys.exit(f"{program} is missing: make setup build")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="anabranch-bench-") as name:
        run(pathlib.Path(name), options)


def film(directory, mib):
    """A file of so many MiB of noise, to be served from `root`."""
    (directory / "root").mkdir()
    os.chmod(directory, 0o755)
    path = directory / "root" / "film.bin"
    with open("/dev/urandom", "rb") as source, open(path, "wb") as target:
        block = source.read(1 << 20)
        for index in range(mib):
            target.write(index.to_bytes(8, "big") + block[8:])
    return path


def certificate(directory):
    """`cert.pem` and `key.pem` for a server on this machine."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
        check=True, capture_output=True)


def run(directory, options):
    film(directory, options.size)
    certificate(directory)
    http, https = 18080, 18443
    config = directory / "nginx.conf"
    config.write_text(NGINX.format(dir=directory, http=http, https=https))
    nginx = subprocess.Popen(["nginx", "-c", config, "-p", directory], stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        measure_all(directory, options, nginx.pid, f"http://127.0.0.1:{http}/film.bin", f"https://127.0.0.1:{https}/film.bin")
    finally:
        nginx.terminate()
        nginx.wait()


def clients(directory, anabranch, url):
    out = directory / "out"
    trusted = directory / "cert.pem"
    fetch = [anabranch, "fetch", "--quiet", "--force", "--no-stripe", "--cacert", trusted, "--rate", "max",
             "-o", out, url]
    ours = lambda *extra: [str(part) for part in fetch[:2] + list(extra) + fetch[2:]]
    return out, {
        "curl": ["curl", "-s", "--cacert", str(trusted), "-o", str(out), url],
        "anabranch, 1 connection": ours("--algorithm", "basic", "--connections", "1"),
        "anabranch, auto": ours(),
        "aria2c -x4": ["aria2c", "-q", "-x4", "-s4", "-k1M", "--file-allocation=none", "--allow-overwrite=true",
                       f"--ca-certificate={trusted}", "-d", str(directory), "-o", "out", url],
        "axel -n4": ["axel", "-q", "-k", "-n4", "-o", str(out), url],
        "anabranch, 4 connections": ours("--algorithm", "basic", "--connections", "4"),
    }


def measure_all(directory, options, nginx, http, https):
    for scheme, url in [("HTTP", http), ("HTTPS", https)]:
        out, commands = clients(directory, options.anabranch, url)
        for number in range(options.rounds):
            for name, command in commands.items():
                seconds, cpu, memory, server = measure(command, out, nginx)
                if out.stat().st_size != options.size << 20:
                    sys.exit(f"{name}: {out.stat().st_size} bytes instead of {options.size << 20}")
                raw.row(scheme=scheme, client=name, round=number + 1, bytes=options.size << 20, seconds=seconds, cpu_s=cpu,
                        memory_mib=memory, nginx_cpu_s=server)


if __name__ == "__main__":
    main()
