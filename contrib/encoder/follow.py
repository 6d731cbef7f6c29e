#!/usr/bin/python3
"""An encoder that follows: GStreamer's x264enc makes what 'anabranch send --tell-rate' says fits.

    anabranch send --to studio.example:9000 --fingerprint SHA256 --input udp://127.0.0.1:5000 --tell-rate unix:rate
    contrib/encoder/follow.py --rate-at unix:rate

Debian's packages: python3-gi gir1.2-gstreamer-1.0 gstreamer1.0-plugins-{base,good,bad,ugly}. The format of the lines
is in docs/statistics.md. Any other encoder whose rate can be set while it runs can be driven the same way: --pipeline.
"""

import argparse
import json
import signal
import socket
import sys
import threading
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

PIPELINE = (
    "{source} ! videoconvert ! video/x-raw,format=I420 ! x264enc name=encoder bitrate={kbps} vbv-buf-capacity=200 "
    "tune=zerolatency speed-preset=veryfast key-int-max=60 ! h264parse ! mux. {sound} "
    "mpegtsmux name=mux alignment=7 ! udpsink host={host} port={port} sync=false"
)
SOUND = "audiotestsrc is-live=true wave=silence ! audioconvert ! voaacenc bitrate=64000 ! aacparse ! mux."
# What the multiplexer and the sound add to the pictures.
OVERHEAD = 0.06
SOUND_BPS = 75_000


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate-at", required=True, help="unix:PATH or HOST:PORT, as of send --tell-rate")
    parser.add_argument("--to", default="127.0.0.1:5000", help="where send takes the stream by UDP")
    parser.add_argument("--source", default="videotestsrc is-live=true ! video/x-raw,width=1280,height=720,framerate=30/1",
                        help="GStreamer's source of pictures, such as 'v4l2src'")
    parser.add_argument("--pipeline", help="a whole pipeline, with an element 'encoder' that has a bitrate in kbit/s")
    parser.add_argument("--silent", action="store_true", help="no sound")
    parser.add_argument("--least", type=float, default=300, help="never less for the pictures, kbit/s")
    parser.add_argument("--most", type=float, default=6000, help="never more for the pictures, kbit/s")
    parser.add_argument("--begin", type=float, default=800, help="as long as nothing is known, kbit/s")
    parser.add_argument("--log", help="write what was told and set into this file, as lines of JSON")
    return parser.parse_args()


def lines(at):
    """What is told, for ever; None while nobody tells anything."""
    while True:
        try:
            if at.startswith("unix:"):
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(at.removeprefix("unix:"))
            else:
                host, port = at.rsplit(":", 1)
                connection = socket.create_connection((host.strip("[]"), int(port)), timeout=5)
            # A line comes every second at least.
            connection.settimeout(5)
            with connection, connection.makefile("r", encoding="utf-8") as file:
                for line in file:
                    yield json.loads(line)
        except (OSError, ValueError):
            pass
        yield None
        time.sleep(0.5)


def pictures_kbps(told, options):
    """What is left for the pictures."""
    if not told or told["fitting_rate_bps"] == 0:
        # Nothing gets through: as little as there is, so that little waits when it does again.
        return options.least if told else None
    left = told["fitting_rate_bps"] / (1 + OVERHEAD) - (0 if options.silent else SOUND_BPS)
    return min(max(left / 1000, options.least), options.most)


def main():
    options = arguments()
    Gst.init(None)
    host, port = options.to.rsplit(":", 1)
    sound = "" if options.silent else SOUND
    text = options.pipeline or PIPELINE.format(
        source=options.source, kbps=int(options.begin), sound=sound, host=host, port=port
    )
    pipeline = Gst.parse_launch(text)
    encoder = pipeline.get_by_name("encoder")
    if encoder is None:
        sys.exit("follow.py: the pipeline has no element with name=encoder")
    log = open(options.log, "w", encoding="utf-8", buffering=1) if options.log else None
    loop = GLib.MainLoop()

    def follow():
        is_known, current = False, int(options.begin)
        for told in lines(options.rate_at):
            # Before the first media the sender knows nothing.
            is_known = is_known or bool(told and told["fitting_rate_bps"])
            kbps = pictures_kbps(told, options) if is_known else None
            if kbps is not None and int(kbps) != current:
                current = int(kbps)
                # x264enc takes it from the next picture on.
                encoder.set_property("bitrate", current)
            if log and told:
                log.write(json.dumps({"told_bps": told["fitting_rate_bps"], "set_kbps": current, "at_s": time.time()}) + "\n")

    threading.Thread(target=follow, daemon=True).start()
    failed = []

    def message(_, message):
        if message.type == Gst.MessageType.ERROR:
            failed.append(message.parse_error()[0].message)
            loop.quit()
        elif message.type == Gst.MessageType.EOS:
            loop.quit()

    bus = pipeline.get_bus()
    bus.add_signal_watch()
    bus.connect("message", message)
    for number in (signal.SIGINT, signal.SIGTERM):
        GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, number, loop.quit)
    pipeline.set_state(Gst.State.PLAYING)
    loop.run()
    pipeline.set_state(Gst.State.NULL)
    if failed:
        sys.exit(f"follow.py: {failed[0]}")


if __name__ == "__main__":
    main()
