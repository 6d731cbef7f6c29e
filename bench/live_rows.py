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


WIRELESS = {"rate": "1M", "delay": "84ms", "queue": "25 packets"}
JITTERY = WIRELESS | {"loss": 0.02, "jitter": {"kind": "uniform", "most": "40ms"}}
# What the field calls a good budget for retransmission: four round-trip times, for every client.
ONE = {"latency": "672ms", "ladder": [50_000, *ladder(150_000, 600_000, 50_000), *ladder(625_000, 1_100_000, 25_000)], "common": 600_000}
# Nothing comes for 300 ms, and then by another cell; and back.
HANDOVERS = """{ at = "15s", down = true }, { at = "15.3s", delay = "114ms", rate = "700k" },
    { at = "30s", down = true }, { at = "30.3s", delay = "84ms", rate = "1M" }"""
# A router on the way carries packets of 1280 bytes; and back. It cuts those that may be cut, and tells of others.
SMALLER = [{"at": "10s", "mtu": "1280B"}, {"at": "28s", "mtu": "1500B"}]
MOVES = [{"at": "10s", "renumber": "studio"}, {"at": "28s", "renumber": "studio"}]
# An accident's `begins` and `ends` are seconds of the film; nothing is bisected. A program that was killed, or has ended, is started again after a second.
SUPERVISED = "1s"
TWO = {"latency": "1s", "ladder": ladder(500_000, 7_500_000, 250_000), "common": 4_000_000, "links": True,
       "paths": [{"rate": "5M", "delay": "30ms", "queue": "50 packets", "loss": 0.01}, {"rate": "3M", "delay": "50ms", "queue": "50 packets", "loss": 0.01}]}
# `longer_ms` is how much longer than at first the way may be; `most_loss` is what the link loses, `most_rate` the least that it has, for what arithmetic allows.
ROWS = {
    "none": ONE | {"title": "no trouble", "paths": [WIRELESS], "most_loss": 0},
    "loss-4": ONE | {"title": "4 % loss", "paths": [WIRELESS | {"loss": 0.04}], "most_loss": 0.04},
    "bursts": ONE | {"title": "4 % loss in bursts of 5", "paths": [WIRELESS | {"loss": bursts(0.04, 5)}], "most_loss": 0.04},
    "jitter": ONE | {"title": "40 ms of jitter and 2 % loss", "paths": [JITTERY], "longer_ms": 40, "most_loss": 0.02},
    "variable": ONE | {"title": "the same, a film of variable rate", "paths": [JITTERY], "longer_ms": 40, "variable": True},
    "reordering": ONE | {"title": "reordering, 5 ms in the mean",
                         "paths": [WIRELESS | {"jitter": {"kind": "exponential", "mean": "5ms", "reorder": True}}], "most_loss": 0},
    "handovers": ONE | {"title": "handovers, 700 kbps for 15 s", "paths": [WIRELESS], "changes": HANDOVERS, "longer_ms": 30, "most_loss": 0, "most_rate": 700_000},
    "mtu": ONE | {"title": "an MTU of 1280 for 18 s", "paths": [WIRELESS], "events": SMALLER, "most_loss": 0, "share": 6 * 188 / (6 * 188 + 28)},
    "address": ONE | {"title": "the sender's address changes twice", "paths": [WIRELESS], "events": MOVES, "restart": SUPERVISED, "most_loss": 0},
    "beside-cubic": ONE | {"title": "beside one CUBIC flow", "paths": [WIRELESS], "cross": "cubic", "common": 400_000},
    "beside-bbr": ONE | {"title": "beside one BBR flow", "paths": [WIRELESS], "cross": "bbr", "common": 400_000},
    "links": TWO | {"title": "two links, 5 and 3 Mbps, 1 % loss"},
    "dying": TWO | {"title": "the 5 Mbps link dies in mid-stream", "changes": '{ at = "22s", down = true }', "common": 2_000_000},
    "outage": ONE | {"title": "the only link is dead for 3 s", "paths": [WIRELESS], "changes": '{ at = "8s", down = true }, { at = "11s", down = false }',
                     "restart": SUPERVISED, "begins": 8, "ends": 11},
    "receiver-killed": ONE | {"title": "the receiver is killed, and started after 1 s", "paths": [WIRELESS], "events": [{"at": "8s", "kill": "viewer"}],
                              "restart": SUPERVISED, "begins": 8, "ends": 9},
    "sender-killed": ONE | {"title": "the sender is killed, and started after 1 s", "paths": [WIRELESS], "events": [{"at": "8s", "kill": "studio"}],
                            "restart": SUPERVISED, "begins": 8, "ends": 9},
}


def arithmetic(row):
    """The most that can come whole over a row's link, in bit/s: what it does not lose, less the headers of IP and UDP; none where others or key pictures share it."""
    plan = ROWS[row]
    return (1 - plan["most_loss"]) * plan.get("most_rate", 1_000_000) * plan.get("share", 1316 / 1344) if "most_loss" in plan else None


def lost_anyway(row):
    """Seconds of the film that an accident takes from everyone: what would be late before it is over."""
    plan = ROWS[row]
    waits = float(plan["latency"].removesuffix("ms")) / 1e3 if "changes" in plan else 0
    return plan["ends"] - plan["begins"] - waits


def is_accident(row):
    """Whether nobody can carry all: told is what is missing, and since when all is there again."""
    return "ends" in ROWS[row]


def srt(*options):
    """SRT with these options of its URL at both ends."""
    more = "".join("&" + option for option in options)
    return {
        "receiver": ["srt-live-transmit", "-q", "srt://:9000?mode=listener&latency={latency}" + more, "udp://127.0.0.1:6000"],
        "sender": ["srt-live-transmit", "-q", "udp://:5000", "srt://{address1}:9000?mode=caller&latency={latency}" + more],
    }


PEERS = {
    "srt": srt(),
    "srt+filter": srt("packetfilter=fec,cols:10,rows:5"),
    # What comes in and a quarter more at the most, retransmissions included.
    "srt-maxbw": srt("maxbw=0", "oheadbw=25"),
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


def ours(scheme, fec, *more):
    sender = ["{anabranch}", "send", "--quiet", "--to", "{address1}:9000", "--input", "udp://127.0.0.1:5000", "--fingerprint", "{fingerprint}",
              "--scheme", scheme, "--fec", fec, "--latency", "{latency}ms", "--stats", "{dir}/send.jsonl", *more]
    return {
        "receiver": ["{anabranch}", "receive", "--quiet", "--listen", "0.0.0.0:9000", "--output", "udp://127.0.0.1:6000", "--cert", "{certificate}",
                     "--key", "{key}", "--latency", "{latency}ms", "--stats", "{dir}/receive.jsonl"],
        "sender": sender,
        "links": [*sender, "--interface", "{interface1}", "--interface", "{interface2}"],
    }


# Stuffing is sent by all but those with -npd.
CLIENTS = PEERS | {
    "auto": ours("auto", "off", "--keep-stuffing"),
    "auto+fec": ours("auto", "auto", "--keep-stuffing"),
    "auto-npd": ours("auto", "off"),
    "auto+fec-npd": ours("auto", "auto"),
} | {f"{scheme}-npd": ours(scheme, "off", "--as-published") for scheme in ["multfrc", "aio-tfrc", "tfrc"]}
# The papers' controls are in the simulator's field.
DEFAULT = ["srt", "srt+filter", "srt-maxbw", "rist", "auto", "auto+fec", "rist-npd", "auto-npd"]


def fits(row, client):
    """Whether the client is for such a row: Debian's SRT is built without groups, for which it would need two links; no stuffing, nothing to leave out."""
    plan = ROWS[row]
    return ("links" if "links" in plan else "sender") in CLIENTS[client] and not (plan.get("variable") and client.endswith("-npd"))


def scenario(row, client, seed, seconds, settle, give_up, names):
    """The testbed's scenario of a trial."""
    plan, programs = ROWS[row], CLIENTS[client]
    variable = "\nvariable = true" if plan.get("variable") else ""
    text = [f'[run]\nduration = "{seconds + 60}s"\nseed = {seed}', f'[film]\nrate = "{plan["common"] // 1000}k"\nduration = "{seconds}s"{variable}',
            f'[live]\nlatency = "{plan["latency"]}"\nsettle = "{settle}s"' + (f"\ngive_up = {GIVE_UP}" if give_up else "")]
    text.append('[[node]]\nname = "studio"\n\n[[node]]\nname = "viewer"\n\n[[server]]\nnode = "studio"')
    for number, path in enumerate(plan["paths"], 1):
        text.append(f'[[link]]\nname = "path{number}"\nfrom = "studio"\nto = "viewer"\n' + "\n".join(f"{key} = {value(of)}" for key, of in path.items()))
        # What comes back is not lost; it is held up, slower and down as what goes there.
        back = ["loss = 0", f'name = "back{number}"']
        if number == 1 and "changes" in plan:
            text[-1] += f'\nchanges = [{plan["changes"]}]'
        text[-1] += f"\nreverse = {{ {', '.join(back)} }}"
    if "cross" in plan:
        text.append('[[flow]]\nname = "tcp"\nkind = "tcp"\nfrom = "studio"\nto = "viewer"\nstart = "0s"\n'
                    f'stop = "{seconds}s"\ntcp = {{ congestion = "{plan["cross"]}" }}')
    for event in plan.get("events", []):
        text.append("[[event]]\n" + "\n".join(f"{key} = {value(of)}" for key, of in event.items()))
    restart = f'\nrestart = "{plan["restart"]}"' if "restart" in plan else ""
    sender = programs["links"] if "links" in plan else programs["sender"]
    fill = lambda command: json.dumps([names.get(argument, argument) for argument in command])
    text.append(f'[[client]]\nname = "{client.replace("+", "-")}"\ncommand = {fill(programs["receiver"])}\nsender = {fill(sender)}\noutput = "none"{restart}')
    return "\n\n".join(text) + "\n"
