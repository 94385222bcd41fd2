"""A network of its own for a group of programs, where the machine gives one (Linux, as root).

It has a loopback device and nothing else. The servers' ports are open in it, by sockets that belong
to it and are served out here, so the same addresses hold inside and outside. With the device down
the group reaches nothing, and what it has written waits in its machine, as behind a broken switch.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

_SET_FLAGS = 0x8914  # SIOCSIFFLAGS
_UP = 1


class Apart:
    """Raises OSError where the machine gives no networks away."""

    def __init__(self) -> None:
        self._network = -1
        _in_a_thread(self._begin)

    @property
    def path(self) -> str:
        """What a program enters (`enter`), while this one lives."""
        return f"/proc/{os.getpid()}/fd/{self._network}"

    def listen(self, port: int) -> socket.socket:
        """Take the loopback port inside."""
        return self._inside(lambda: socket.create_server(("127.0.0.1", port)))

    def connect(self, port: int) -> socket.socket:
        """A line from inside to a loopback port there."""
        return self._inside(lambda: socket.create_connection(("127.0.0.1", port)))

    def cut_off(self) -> None:
        """From now on no byte leaves or comes."""
        self._inside(lambda: _set_device(0))

    def let_back(self) -> None:
        """Lines that nobody gave up meanwhile go on."""
        self._inside(lambda: _set_device(_UP))

    def end(self) -> None:
        """It goes when the last program in it does."""
        os.close(self._network)

    def _begin(self) -> None:
        os.unshare(os.CLONE_NEWNET)
        self._network = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        _set_device(_UP)

    def _inside[T](self, act: Callable[[], T]) -> T:
        def entered() -> T:
            os.setns(self._network, os.CLONE_NEWNET)
            return act()

        return _in_a_thread(entered)


def networks(names: tuple[str, ...]) -> dict[str, Apart]:
    """One for each name; none at all where the machine gives none."""
    made: dict[str, Apart] = {}
    with suppress(OSError, AttributeError):  # not root, or no Linux
        for name in names:
            made[name] = Apart()
        return made
    for each in made.values():
        each.end()
    return {}


def enter(path: str) -> None:
    """This program lives in that network from here on; before it has threads or connections."""
    network = os.open(path, os.O_RDONLY)
    os.setns(network, os.CLONE_NEWNET)
    os.close(network)


def _in_a_thread[T](act: Callable[[], T]) -> T:
    """A network is entered by a thread alone, and this one ends with what it did."""
    results: list[T] = []
    errors: list[OSError] = []

    def run() -> None:
        try:
            results.append(act())
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _set_device(flags: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        fcntl.ioctl(asking, _SET_FLAGS, struct.pack("16sh22x", b"lo", flags))
