"""A scenario of the testbed: programs at both ends of one path, beside Reno flows of the kernel."""

import json


def scenario(seconds, seed, rate, rtt_ms, queue, server, client, reno):
    """Its text. `server` and `client` are lines of a shell, `rate` is in bit/s, `queue` in packets; `reno` is the number of flows."""
    text = f"""[run]
duration = "{seconds}s"
seed = {seed}
[[node]]
name = "origin"
[[node]]
name = "client"
[[link]]
name = "main"
from = "origin"
to = "client"
rate = "{rate // 1000}k"
delay = "{rtt_ms / 2}ms"
queue = "{queue} packets"
[[server]]
node = "origin"
command = {json.dumps(["sh", "-c", server])}
[[client]]
name = "clients"
command = {json.dumps(["sh", "-c", client])}
output = "none"
"""
    if reno:
        text += f"""[[flow]]
name = "reno"
kind = "tcp"
count = {reno}
from = "origin"
to = "client"
tcp = {{ congestion = "reno" }}
"""
    return text
