"""Results and refusals as tools give them back: the REST door's own dictionaries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mcp_types import CallToolResult, TextContent

CONFLICT: Final = "conflict"
_TOLD_OF_PROBLEM: Final = (
    "code",
    "detail",
    "what_to_do",
    "field",
    "operation_id",
    "next_action",
    "retry_after_seconds",
)
# Words of the REST door that a model cannot follow: it is told not to send these ids.
_FOR_TOOLS: Final = {
    "tool_call_reused": "Your refund is not recorded: the ids of this call belong to another one."
    " If it is a refund of its own, call propose_refund again without session_id and tool_call_id.",
}


def told(result: Mapping[str, Any]) -> CallToolResult:
    """A result: as structure, and as the same JSON in text for hosts that read only text."""
    return CallToolResult(content=[_json(result)], structured_content=dict(result))


def refused(problem: Mapping[str, Any]) -> CallToolResult:
    """A problem of the REST door. A conflict carries the refund it met: that is a result."""
    if problem.get("outcome") == CONFLICT and problem.get("state"):
        return told(problem)
    shown = {name: problem[name] for name in _TOLD_OF_PROBLEM if problem.get(name) is not None}
    if problem.get("code") in _FOR_TOOLS:
        shown["what_to_do"] = _FOR_TOOLS[problem["code"]]
    return CallToolResult(content=[_json(shown)], is_error=True)


def _json(value: Mapping[str, Any]) -> TextContent:
    return TextContent(text=json.dumps(value, ensure_ascii=False))
