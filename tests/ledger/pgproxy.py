"""A socket in front of PostgreSQL that cuts or holds a connection at one chosen statement."""

from __future__ import annotations

import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from django.db import connection

_READY = b"Z\x00\x00\x00\x05I"
Act = Literal["cut_before", "cut_between", "cut_after", "hold"]


@dataclass
class PgProxy:
    """Strikes once, at the first statement that holds `needle`.

    `cut_before`: the server never gets it. `cut_between`: the statement's own answer arrives, what
    the server says of its commit does not. `cut_after`: the server has executed and committed it,
    and its answer is thrown away. `hold`: the same, and the answer waits for `release`.
    `struck` is set when that has happened.
    """

    needle: bytes
    act: Act
    server: tuple[str, int]
    host: str
    struck: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=_Wire(self, client).carry, daemon=True).start()


class _Wire:
    """One connection through the proxy."""

    def __init__(self, proxy: PgProxy, client: socket.socket) -> None:
        self.proxy, self.client = proxy, client
        self.server = _connected(*proxy.server)
        self.kept: bytes | None = None
        self.prepared: bytes | None = None

    def carry(self) -> None:
        """Carry both ways until one end is gone, or the proxy strikes."""
        with self.client, self.server:
            while True:
                for end in select.select([self.client, self.server], [], [])[0]:
                    content = _read(end)
                    on = self._asked if end is self.client else self._answered
                    if not content or not on(content):
                        return

    def _asked(self, content: bytes) -> bool:
        if not self.proxy.struck.is_set() and self._is_it(content):
            if self.proxy.act == "cut_before":
                self.proxy.struck.set()
                return False
            self.kept = b""
        return _write(self.server, content)

    def _is_it(self, content: bytes) -> bool:
        """Whether the statement is asked for now. One that is prepared first (a message P with its
        name and text) is asked for by its name later (a message B with portal and name)."""
        kind, said = content[:1], content[5:]
        if self.proxy.needle in content and kind == b"P":
            self.prepared = said.partition(b"\0")[0]
            return False
        if self.prepared and kind == b"B":
            return said.split(b"\0", 2)[1] == self.prepared
        return self.proxy.needle in content

    def _answered(self, content: bytes) -> bool:
        if self.kept is not None:
            self.kept += content
            if not self.kept.endswith(_READY):
                return True
            content, self.kept = self.kept, None
            self.proxy.struck.set()
            if self.proxy.act == "cut_between":
                _write(self.client, content.removesuffix(_READY))
            if self.proxy.act != "hold":
                return False
            self.proxy.release.wait()
        return _write(self.client, content)


def _connected(host: str, port: int) -> socket.socket:
    if not host.startswith("/"):
        return socket.create_connection((host, port))
    server = socket.socket(socket.AF_UNIX)
    server.connect(f"{host}/.s.PGSQL.{port}")
    return server


def _read(end: socket.socket) -> bytes:
    try:
        return end.recv(65536)
    except OSError:
        return b""


def _write(end: socket.socket, content: bytes) -> bool:
    try:
        end.sendall(content)
    except OSError:
        return False
    return True


@contextmanager
def in_front(needle: str, act: Act) -> Iterator[PgProxy]:
    """A proxy whose `host` is a directory that can stand in for the database's."""
    folder = tempfile.mkdtemp(prefix="pg-")
    # Read here: in another thread it would be another connection.
    host, port = (
        str(connection.settings_dict["HOST"]),
        int(connection.settings_dict["PORT"] or 5432),
    )
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Path(folder, f".s.PGSQL.{port}")))
        listener.listen()
        proxy = PgProxy(needle.encode(), act, server=(host, port), host=folder)
        threading.Thread(target=proxy.serve, args=(listener,), daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.release.set()
            listener.shutdown(socket.SHUT_RDWR)
    shutil.rmtree(folder)
