"""What the MCP tools declare to give back, taken from the REST door's own models.

`python -m refunds.api.mcp_outputs` writes it to where the tools are defined, which knows nothing
of this project; a test holds the two equal.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from refunds.api.answers import OrderRefunds, Problem, Result

FILE = Path(__file__).resolve().parents[1] / "mcp_client/aftersend_mcp/results.json"


def output_schemas() -> dict[str, Any]:
    """`result` for one refund, also as a conflict; `order` for an order with its refunds."""
    result = Result.model_json_schema()
    result["properties"]["outcome"]["enum"].append("conflict")
    # Over REST a conflict is a problem with the fields of the refund it met; here it is a result.
    problem = Problem.model_json_schema()
    for name, schema in problem["properties"].items():
        result["properties"].setdefault(name, schema)
    result["$defs"] = problem["$defs"] | result["$defs"]
    return {"result": result, "order": OrderRefunds.model_json_schema()}


def main() -> None:
    FILE.write_text(json.dumps(output_schemas(), indent=1) + "\n")


if __name__ == "__main__":
    main()
