"""The links and the clients of bench/live.py."""

import json

# A trial is over when more than this share of the film has not come out in time.
GIVE_UP = 0.05


def ladder(first, last, step):
    return list(range(first, last + 1, step))


def bursts(share, length):
    """Losses in a row of this mean length, which are this share of all packets: Gilbert's model, whose bad state loses all."""
    return {"kind": "gilbert-elliott", "to_bad": share / (length * (1 - share)), "to_good": 1 / length}


def value(of):
    """A value as TOML has it."""
    inner = lambda: ", ".join(f"{key} = {value(each)}" for key, each in of.items())  # noqa: E731
    return f"{{ {inner()} }}" if isinstance(of, dict) else json.dumps(of)


# What the field calls a good budget for retransmission: four round-trip times, for every client.
WIRELESS = {"rate": "1M", "delay": "84ms", "queue": "25 packets"}
FAST = {"latency": "672ms", "ladder": ladder(50_000, 1_150_000, 25_000), "common": 600_000}
ROWS = {
    "loss-0": {"title": "1 Mbps, 168 ms, no loss", "paths": [WIRELESS], **FAST},
    "loss-2": {"title": "2 % loss", "paths": [WIRELESS | {"loss": 0.02}], **FAST},
    "loss-4": {"title": "4 % loss", "paths": [WIRELESS | {"loss": 0.04}], **FAST},
    "loss-8": {"title": "8 % loss", "paths": [WIRELESS | {"loss": 0.08}], **FAST},
    "bursts": {"title": "4 % loss in bursts of 5", "paths": [WIRELESS | {"loss": bursts(0.04, 5)}], **FAST},
    "beside-tcp": {"title": "beside one CUBIC flow", "paths": [WIRELESS], "cross": True, **FAST, "common": 400_000},
    "halved": {"title": "500 kbps from mid-stream on", "paths": [WIRELESS], "change": 'rate = "500k"', **FAST, "common": 400_000},
    "narrow": {"title": "100 kbps, 757 ms, no loss", "paths": [{"rate": "100k", "delay": "378.5ms", "queue": "10 packets"}],
               "latency": "3028ms", "ladder": ladder(20_000, 115_000, 5_000), "common": 60_000},
    "links": {"title": "two links, 5 and 3 Mbps, 1 % loss", "latency": "1s", "ladder": ladder(500_000, 7_500_000, 250_000), "common": 4_000_000,
              "paths": [{"rate": "5M", "delay": "30ms", "queue": "50 packets", "loss": 0.01},
                        {"rate": "3M", "delay": "50ms", "queue": "50 packets", "loss": 0.01}]},
}
ROWS["dying"] = ROWS["links"] | {"title": "the 5 Mbps link dies in mid-stream", "change": "down = true", "common": 2_000_000}

PEERS = {
    "srt": {
        "receiver": ["srt-live-transmit", "-q", "srt://:9000?mode=listener&latency={latency}", "udp://127.0.0.1:6000"],
        "sender": ["srt-live-transmit", "-q", "udp://:5000", "srt://{address1}:9000?mode=caller&latency={latency}"],
    },
    "rist": {
        "receiver": ["ristreceiver", "-v", "4", "-S", "0", "-i", "rist://@0.0.0.0:9000?buffer={latency}&rtt-max=2000", "-o", "udp://127.0.0.1:6000"],
        "sender": ["ristsender", "-v", "4", "-S", "0", "-i", "udp://@127.0.0.1:5000", "-o", "rist://{address1}:9000?buffer={latency}&rtt-max=2000"],
        # Weights as the links' rates are; nobody else would know them.
        "links": ["ristsender", "-v", "4", "-S", "0", "-i", "udp://@127.0.0.1:5000", "-o",
                  "rist://{address1}:9000?buffer={latency}&rtt-max=2000&weight=5,rist://{address2}:9000?buffer={latency}&rtt-max=2000&weight=3"],
    },
}
# Every packet over both links, which RIST calls a weight of 0; only where there are two.
PEERS["rist-dup"] = {"receiver": PEERS["rist"]["receiver"],
                     "links": [argument.replace("weight=5", "weight=0").replace("weight=3", "weight=0") for argument in PEERS["rist"]["links"]]}
# The same without stuffing on the way; the receiver puts it back.
PEERS["rist-npd"] = PEERS["rist"] | {key: [PEERS["rist"][key][0], "-n", *PEERS["rist"][key][1:]] for key in ["sender", "links"]}


def ours(scheme, fec):
    sender = ["{anabranch}", "send", "--quiet", "--to", "{address1}:9000", "--input", "udp://127.0.0.1:5000", "--fingerprint", "{fingerprint}",
              "--scheme", scheme, "--fec", fec, "--latency", "{latency}ms", "--stats", "{dir}/send.jsonl"]
    return {
        "receiver": ["{anabranch}", "receive", "--quiet", "--listen", "0.0.0.0:9000", "--output", "udp://127.0.0.1:6000", "--cert", "{certificate}",
                     "--key", "{key}", "--latency", "{latency}ms", "--stats", "{dir}/receive.jsonl"],
        "sender": sender,
        "links": [*sender, "--interface", "{interface1}", "--interface", "{interface2}"],
    }


CLIENTS = PEERS | {scheme + suffix: ours(scheme, fec) for suffix, fec in [("", "off"), ("+fec", "61,50"), ("+fec-auto", "auto")]
                   for scheme in ["auto", "multfrc", "aio-tfrc", "tfrc"]}


def fits(row, client):
    """Whether the client is for such a row: Debian's SRT is built without groups, for which it would need two links."""
    return ("sender" if len(ROWS[row]["paths"]) == 1 else "links") in CLIENTS[client]


def scenario(row, client, seed, seconds, settle, give_up, names):
    """The testbed's scenario of a trial."""
    plan, programs = ROWS[row], CLIENTS[client]
    text = [f'[run]\nduration = "{seconds + 60}s"\nseed = {seed}', f'[film]\nrate = "{plan["common"] // 1000}k"\nduration = "{seconds}s"',
            f'[live]\nlatency = "{plan["latency"]}"\nsettle = "{settle}s"' + (f"\ngive_up = {GIVE_UP}" if give_up else "")]
    text.append('[[node]]\nname = "studio"\n\n[[node]]\nname = "viewer"\n\n[[server]]\nnode = "studio"')
    for number, path in enumerate(plan["paths"], 1):
        text.append(f'[[link]]\nname = "path{number}"\nfrom = "studio"\nto = "viewer"\n' + "\n".join(f"{key} = {value(of)}" for key, of in path.items()))
        # What comes back is not lost, nor slower in mid-stream: it has a rate of its own.
        back = ["loss = 0", f'name = "back{number}"']
        if number == 1 and "change" in plan:
            text[-1] += f'\nchanges = [{{ at = "{settle + (seconds - settle) // 2}s", {plan["change"]} }}]'
            back += [] if "down" in plan["change"] else [f'rate = "{path["rate"]}"']
        text[-1] += f"\nreverse = {{ {', '.join(back)} }}"
    if plan.get("cross"):
        text.append(f'[[flow]]\nname = "tcp"\nkind = "tcp"\nfrom = "studio"\nto = "viewer"\nstart = "2s"\nstop = "{seconds}s"')
    sender = programs["links"] if len(plan["paths"]) > 1 else programs["sender"]
    fill = lambda command: json.dumps([names.get(argument, argument) for argument in command])
    text.append(f'[[client]]\nname = "{client.replace("+", "-")}"\ncommand = {fill(programs["receiver"])}\nsender = {fill(sender)}\noutput = "none"')
    return "\n\n".join(text) + "\n"
