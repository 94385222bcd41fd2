"""Free ports on loopback, near the wanted one."""

from __future__ import annotations

import socket
import sys

TRIES_MAX = 50
_promises: list[socket.socket] = []


class NoPort(RuntimeError):
    """Neither the wanted port nor one of its neighbours can be had."""


def choose(variable: str, wanted: str, *, but: int | None = None) -> int:
    """The wanted port, or the next free one; `but` is chosen already. Raises NoPort.

    Two demos that start at once see the same ports free, long before their programs listen: the
    choice is promised to this program until it ends.
    """
    if not wanted.isdecimal() or not 1 <= int(wanted) <= 65535:
        raise NoPort(f"{variable} must be a number from 1 to 65535, not {wanted!r}.")
    first = int(wanted)
    for port in range(first, min(first + TRIES_MAX, 65536)):
        if port != but and is_free(port) and _promise(port):
            return port
    raise NoPort(f"No port is free from {first} on. Set {variable} to a free one.")


def _promise(port: int) -> bool:
    """Take a name that only one program of the machine can hold, and that ends with it."""
    if sys.platform != "linux":
        return True
    promise = socket.socket(socket.AF_UNIX)
    try:
        promise.bind(f"\0aftersend-port-{port}")
    except OSError:
        promise.close()
        return False
    _promises.append(promise)
    return True


def is_free(port: int) -> bool:
    """Whether a server could listen there, under both addresses that `localhost` may mean."""
    return _can_bind(socket.AF_INET, "127.0.0.1", port) and (
        not _has_ipv6_loopback() or _can_bind(socket.AF_INET6, "::1", port)
    )


def accepts(port: int) -> bool:
    """Whether somebody listens on 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _has_ipv6_loopback() -> bool:
    return socket.has_ipv6 and _can_bind(socket.AF_INET6, "::1", 0)


def _can_bind(family: socket.AddressFamily, host: str, port: int) -> bool:
    with socket.socket(family) as probe:
        # As servers do: a connection that is still closing does not keep the port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
