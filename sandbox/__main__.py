"""python -m sandbox --book FILE --port 8010 --control-token T"""

import argparse
import sys
from pathlib import Path

from sandbox.app import create_app
from sandbox.book import Book
from sandbox.connection import Connection
from sandbox.provider import Provider
from sandbox.server import LOOPBACK_HOSTS, Server


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m sandbox",
        description="A payment provider that misbehaves on command.",
    )
    parser.add_argument("--book", type=Path, required=True, help="SQLite file; made if missing")
    parser.add_argument("--port", type=int, default=8010, help="0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1", choices=LOOPBACK_HOSTS)
    parser.add_argument("--control-token", required=True, help="for the X-Control-Token header")
    parser.add_argument(
        "--idle-close-seconds",
        type=float,
        default=1.0,
        help="a connection that stays silent this long is closed",
    )
    arguments = parser.parse_args()
    if not arguments.control_token:
        parser.error("--control-token must not be empty")
    if arguments.idle_close_seconds <= 0:
        parser.error("--idle-close-seconds must be above 0")
    if not arguments.book.parent.is_dir():
        parser.error(f"--book: make the folder {arguments.book.parent} first")
    return arguments


def main() -> None:
    arguments = _arguments()
    Connection.idle_close_seconds = arguments.idle_close_seconds
    book = Book(arguments.book)
    provider = Provider(book)
    app = create_app(provider, arguments.control_token)
    try:
        server = Server(app, arguments.host, arguments.port, on_stop=provider.holds.abandon)
    except OSError as taken:
        sys.exit(f"sandbox: cannot listen on port {arguments.port} ({taken}); give another --port")
    app.state.server = server
    server.serve_until_stopped()
    book.close()


if __name__ == "__main__":
    main()
