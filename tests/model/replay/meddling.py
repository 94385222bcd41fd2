"""What a replay does to a sender's statements on their way to the database."""

from __future__ import annotations

from typing import Any

from django.db import OperationalError

from tests.model.replay.crew import this_worker
from tests.model.replay.wire import BEGINS

_CLAIM = "WITH ready AS MATERIALIZED"


def _is_claim(sql: str) -> bool:
    return sql.lstrip().startswith(_CLAIM)


def stands_before_its_claim(
    execute: Any, sql: str, parameters: Any, many: bool, context: Any
) -> Any:
    """For `execute_wrapper`: a worker that has read that it may send, and has not claimed yet."""
    worker = this_worker()
    if _is_claim(sql) and worker is not None and worker.found is None:
        worker.stand(BEGINS, BEGINS)
    return execute(sql, parameters, many, context)


def loses_its_claim(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
    if _is_claim(sql):
        raise OperationalError("the connection is lost")
    return execute(sql, parameters, many, context)


def hears_nothing_of_its_claim(
    execute: Any, sql: str, parameters: Any, many: bool, context: Any
) -> Any:
    said = execute(sql, parameters, many, context)
    if _is_claim(sql):
        raise OperationalError("the connection is lost")
    return said


def stores_no_notice(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
    """Whoever dies between hearing of a notice and storing it, as its statement sees it."""
    if "INSERT INTO notice (" in sql:
        raise OperationalError("the connection is lost")
    return execute(sql, parameters, many, context)
