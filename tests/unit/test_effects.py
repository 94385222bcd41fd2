"""Nothing reaches anybody outside the table of effects: the sources are walked for ways out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from refunds.domain import states
from refunds.domain.effects import EFFECTS, READINGS, Effect

ROOT = Path(__file__).resolve().parents[2]
# All programs of ours. The sandbox is another company's and imports nothing of ours.
PACKAGES = ("config", "refunds", "reconciliation", "review")

NETWORK = (
    "aiohttp",
    "anyio",
    "django.core.mail",
    "ftplib",
    "http.client",
    "httpx",
    "httpx2",
    "mcp.client",
    "pycurl",
    "requests",
    "smtplib",
    "socket",
    "stripe",
    "urllib.request",
    "urllib3",
    "websockets",
)
# Who may import a library that can open a connection, and what for.
MAY_CONNECT = {
    "refunds.providers.http": "the one way to a provider and to receivers",
    "reconciliation.outbox_wire": "writes e-mail, by Django",
    "refunds.dispatch": "asks for the machine's name, opens nothing",
    "config.supervision.ports": "looks for a free port on this machine",
    "review.demo.shop": "prepares the demo's sandbox by its control address",
    "refunds.mcp_client.aftersend_mcp.door": "calls our own REST door, as any agent does",
}
MAY_CALL = {
    "refunds.dispatch",
    "refunds.providers.listing",
    "reconciliation.outbox_sending",
    "reconciliation.probes",
}
# The methods that build a request which changes something elsewhere, where they stand.
MAY_CHANGE = {
    ("refunds.providers.plain", "create_refund"),
    ("refunds.providers.stripe", "create_refund"),
    ("reconciliation.outbox_wire", "signed_post"),
}

Sources = Iterable[tuple[str, ast.Module]]


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Every module of ours by its dotted name."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__"), ast.parse(file.read_text())


def imported(tree: ast.Module) -> Iterator[str]:
    """Every name that is imported, dotted; also by `import_module` and `__import__`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module)
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif (
            isinstance(node, ast.Call)
            and name_of(node.func).rpartition(".")[2] in ("import_module", "__import__")
            and node.args
        ):
            named = node.args[0]
            yield str(named.value) if isinstance(named, ast.Constant) else "urllib.request"


def name_of(node: ast.AST) -> str:
    """ "registry.adapter" of the expression `registry.adapter`; "" of anything unnamed."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def connecting(found: Sources) -> set[str]:
    """Modules that import something of NETWORK."""
    return {
        module
        for module, tree in found
        for name in imported(tree)
        for library in NETWORK
        if f"{name}.".startswith(f"{library}.")
    }


def calling(found: Sources) -> set[str]:
    """Modules that use the wire's `call`, whatever they call the module."""
    return {
        module
        for module, tree in found
        if "refunds.providers.http" in set(imported(tree))
        or any("providers.http" in name_of(node) for node in ast.walk(tree))
    }


def building(found: Sources, method: str) -> set[str]:
    """Modules that name the method: imported, as an attribute, or for `getattr`."""
    return {
        module
        for module, tree in found
        for node in ast.walk(tree)
        if (isinstance(node, ast.alias) and node.name.rpartition(".")[2] == method)
        or (isinstance(node, ast.Attribute) and node.attr == method)
        or (isinstance(node, ast.Constant) and node.value == method and _in_getattr(tree, node))
    }


def _in_getattr(tree: ast.Module, constant: ast.Constant) -> bool:
    return any(
        isinstance(node, ast.Call) and name_of(node.func) == "getattr" and constant in node.args
        for node in ast.walk(tree)
    )


def changing(found: Sources) -> set[tuple[str, str]]:
    """(module, function) of every provider request that is not a constant reading."""
    return {
        (module, function.name)
        for module, tree in found
        if "refunds.providers.base.HttpRequest" in set(imported(tree))
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and name_of(node.func) == "HttpRequest"
        and not any(
            each.arg == "method"
            and isinstance(each.value, ast.Constant)
            and each.value.value in READINGS
            for each in node.keywords
        )
    }


def test_only_these_modules_can_open_a_connection() -> None:
    assert connecting(sources()) == MAY_CONNECT.keys()


def test_only_these_modules_use_the_wire() -> None:
    assert calling(sources()) == MAY_CALL


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: effect.name)
def test_an_effect_is_started_by_the_one_who_is_named(effect: Effect) -> None:
    assert building(sources(), effect.adapter_method) == {effect.started_by}


def test_only_the_methods_of_the_table_change_something_elsewhere() -> None:
    assert changing(sources()) == MAY_CHANGE
    assert {function for _, function in MAY_CHANGE} == {each.adapter_method for each in EFFECTS}


def test_an_effect_waits_for_events_by_which_the_dispatcher_claims() -> None:
    claims = {
        rule.event
        for rule in states.RULES
        if rule.target == states.SUBMITTING and states.DISPATCHER in rule.by
    }
    money, message = EFFECTS
    assert set(money.committed_before) == claims
    assert not message.committed_before, "a message moves no money; its own row is its claim"


@pytest.mark.parametrize(
    "code",
    [
        "import httpx",
        "from httpx import Client",
        "import urllib.request as r",
        "from urllib import request",
        "from http import client",
        "def f():\n    import socket",
        "import importlib\nimportlib.import_module('requests')",
        "import importlib\nimportlib.import_module(name)",
        "__import__('stripe')",
        "import stripe",
        "from django.core import mail",
        "from django.core.mail import send_mail",
    ],
)
def test_a_new_way_out_would_be_noticed(code: str) -> None:
    assert connecting([("refunds.new", ast.parse(code))]) == {"refunds.new"}


@pytest.mark.parametrize(
    "code",
    [
        "from refunds.providers import http\nhttp.call(x)",
        "from refunds.providers import http as wire\nwire.call(x)",
        "from refunds.providers.http import call\ncall(x)",
        "import refunds.providers.http\nrefunds.providers.http.call(x)",
    ],
)
def test_a_new_caller_of_the_wire_would_be_noticed(code: str) -> None:
    assert calling([("refunds.new", ast.parse(code))]) == {"refunds.new"}


@pytest.mark.parametrize(
    "code",
    [
        "adapter.create_refund(a, b, c)",
        "registry.adapter(a).create_refund(a, b, c)",
        "make = adapter.create_refund",
        "getattr(adapter, 'create_refund')(a, b, c)",
        "from refunds.providers.new import create_refund",
        "from refunds.providers.new import create_refund as make",
    ],
)
def test_a_new_starter_would_be_noticed(code: str) -> None:
    assert building([("review.new", ast.parse(code))], "create_refund") == {"review.new"}


@pytest.mark.parametrize("method", ["'POST'", "'DELETE'", "verb"])
def test_a_new_changing_request_would_be_noticed(method: str) -> None:
    code = (
        "from refunds.providers.base import HttpRequest\n"
        f"def void(a):\n    return HttpRequest(method={method}, url='', headers={{}})"
    )
    assert changing([("refunds.new", ast.parse(code))]) == {("refunds.new", "void")}
