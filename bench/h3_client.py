#!/usr/bin/env python3
"""An HTTP/3 client that knows nothing of anabranch: aioquic (pip install aioquic).

Prints a JSON line for each answer: status, headers, bytes, SHA-256, seconds. With --bin it also prints how many bytes came
in each bin of so many seconds, counted on the machine's monotonic clock, so that several clients can be compared.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import socket
import sys
import time
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

# Linux; Python has no name for it.
SO_RCVBUFFORCE = 33


class Answer:
    def __init__(self):
        self.headers, self.bytes, self.digest, self.error = {}, 0, hashlib.sha256(), None
        self.began, self.done = time.monotonic(), asyncio.get_running_loop().create_future()

    def end(self, error=None):
        if not self.done.done():
            self.error = error
            self.done.set_result(None)

    def line(self):
        return {
            "status": int(self.headers.get(":status", 0)),
            "headers": {name: value for name, value in self.headers.items() if not name.startswith(":")},
            "bytes": self.bytes,
            "sha256": self.digest.hexdigest(),
            "seconds": round(time.monotonic() - self.began, 3),
            "error": self.error,
        }


class Client(QuicConnectionProtocol):
    def __init__(self, *positional, counted, **named):
        super().__init__(*positional, **named)
        self.http, self.answers, self.counted, self.goaway = H3Connection(self._quic), {}, counted, None

    def ask(self, method, url, headers):
        stream = self._quic.get_next_available_stream_id()
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        head = [(":method", method), (":scheme", "https"), (":authority", parts.netloc), (":path", path), *headers]
        answer = self.answers[stream] = Answer()
        self.http.send_headers(stream, [(name.encode(), value.encode()) for name, value in head], end_stream=True)
        self.transmit()
        return answer

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            for answer in self.answers.values():
                answer.end(f"connection closed: {event.error_code:#x} {event.reason_phrase}")
        if isinstance(event, StreamReset) and event.stream_id in self.answers:
            self.answers[event.stream_id].end(f"stream reset: {ErrorCode(event.error_code).name}")
        for event in self.http.handle_event(event):
            answer = self.answers.get(getattr(event, "stream_id", None))
            if answer is None:
                continue
            if isinstance(event, HeadersReceived):
                print("answered", file=sys.stderr, flush=True)
                answer.headers.update((name.decode(), value.decode()) for name, value in event.headers)
            elif isinstance(event, DataReceived):
                answer.bytes += len(event.data)
                answer.digest.update(event.data)
                self.counted(len(event.data))
            if event.stream_ended:
                answer.end()


async def run(options):
    bins = {}

    def counted(count):
        if options.bin:
            place = int(time.monotonic() / options.bin)
            bins[place] = bins.get(place, 0) + count

    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, max_data=options.window, max_stream_data=options.window
    )
    if options.cacert:
        configuration.load_verify_locations(options.cacert)
    headers = [("user-agent", "aioquic"), *(tuple(part.strip() for part in line.split(":", 1)) for line in options.header)]
    parts = urlsplit(options.url[0])

    async def a_piece_at_a_time(client):
        """As a player whose buffer is full: a range of a fifth of a second, five times a second. With --every in spans only, in
        which it is even by the machine's clock; in the others as one that is empty, with six ranges under way."""
        length, began, asked = int(options.rate / 8 / 5), time.monotonic(), 0
        next_at, under_way = began, set()
        left = lambda: began + options.seconds - time.monotonic()  # noqa: E731
        while left() > 0:
            held = not options.every or int(time.monotonic() / options.every) % 2 == 0
            if len(under_way) >= (1 if held else 6):
                _, under_way = await asyncio.wait(under_way, timeout=max(0, left()), return_when=asyncio.FIRST_COMPLETED)
                continue
            if held and time.monotonic() < next_at:
                await asyncio.sleep(max(0, min(left(), next_at - time.monotonic())))
                continue
            # A greedy span owes no rest to the even one behind it.
            next_at = max(next_at + 0.2, time.monotonic()) if held else time.monotonic()
            ranged = [*headers, ("range", f"bytes={asked * length}-{(asked + 1) * length - 1}")]
            answer = client.ask(options.method, options.url[0], ranged)
            under_way.add(answer.done)
            asked += 1
        return {**answer.line(), "bytes": asked * length}

    async def over_a_connection():
        address = (parts.hostname, parts.port or 443)
        make = lambda *positional, **named: Client(*positional, counted=counted, **named)  # noqa: E731
        async with connect(*address, configuration=configuration, create_protocol=make) as client:
            # So that nothing is lost here while Python is busy; beyond the system's limit where that is allowed.
            with contextlib.suppress(OSError):
                client._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
            if options.rate:
                return [await a_piece_at_a_time(client)]
            answers = [client.ask(options.method, url, headers) for url in options.url]
            everything = asyncio.gather(*(answer.done for answer in answers))
            try:
                await asyncio.wait_for(everything, options.seconds)
            except asyncio.TimeoutError:
                pass
            return [answer.line() for answer in answers]

    for lines in await asyncio.gather(*(over_a_connection() for _ in range(options.connections))):
        for line in lines:
            print(json.dumps(line), flush=True)
    if options.bin:
        print(json.dumps({"bin": options.bin, "bins": bins}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="+", help="what to ask for; all of the first one's server, at the same time")
    parser.add_argument("--cacert", help="PEM file with the certificate to trust")
    parser.add_argument("--method", default="GET")
    parser.add_argument("--header", action="append", default=[], metavar="'name: value'")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--rate", type=float, help="ask for this many bit/s, a range at a time; with --seconds")
    parser.add_argument("--every", type=float, help="with --rate: hold that rate for so many seconds, be greedy for as many, and so on")
    parser.add_argument("--bin", type=float, help="count bytes in bins of so many seconds")
    parser.add_argument("--window", type=int, default=8 << 20, help="bytes that the server may send ahead")
    try:
        asyncio.run(run(parser.parse_args()))
    except ConnectionError as error:
        sys.exit(f"no connection: {error}")


if __name__ == "__main__":
    main()
