"""What the database says, read from outside: states, events, attempts, cases, pauses."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.walkthrough.programs import wait_until


class Trail:
    """Reads only; every question is a statement of its own, so it sees what is committed now."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._connection = self._enter()

    def _enter(self) -> psycopg.Connection[dict[str, Any]]:
        connection = psycopg.connect(self._database, autocommit=True, row_factory=dict_row)
        connection.read_only = True
        return connection

    def close(self) -> None:
        self._connection.close()

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        try:
            return self._connection.execute(query.encode(), values).fetchall()
        except psycopg.OperationalError:
            # The database was away or exchanged meanwhile; what is there now is read.
            self._connection.close()
            self._connection = self._enter()
            return self._connection.execute(query.encode(), values).fetchall()

    def operation(self, operation_id: str) -> dict[str, Any]:
        """Every column of it."""
        [row] = self.rows("SELECT * FROM operation WHERE id = %s", operation_id)
        return row

    def state(self, operation_id: str) -> str:
        return str(self.operation(operation_id)["state"])

    def events(self, operation_id: str) -> list[dict[str, Any]]:
        """Its moves, oldest first: seq, event, to_state, actor, detail."""
        return self.rows(
            "SELECT seq, event, to_state, actor, detail FROM event WHERE operation_id = %s"
            " ORDER BY seq",
            operation_id,
        )

    def states(self, operation_id: str) -> list[str]:
        """Every state it went through, in order."""
        return [each["to_state"] for each in self.events(operation_id)]

    def attempts(self, operation_id: str) -> list[dict[str, Any]]:
        return self.rows(
            "SELECT no, outcome, closed_at FROM attempt WHERE operation_id = %s ORDER BY no",
            operation_id,
        )

    def open_reasons(self, operation_id: str) -> list[str]:
        """Why a case is open on it; empty where none is."""
        found = self.rows(
            "SELECT reasons FROM review_case WHERE operation_id = %s AND closed_at IS NULL",
            operation_id,
        )
        return [reason for row in found for reason in row["reasons"]]

    def case(self, operation_id: str) -> int:
        """The number of the case that is open on it."""
        [row] = self.rows(
            "SELECT id FROM review_case WHERE operation_id = %s AND closed_at IS NULL", operation_id
        )
        return int(row["id"])

    def verdicts(self, operation_id: str) -> list[str]:
        """What each lookup of it said, oldest first."""
        found = self.rows(
            "SELECT facts ->> 'verdict' AS verdict FROM evidence WHERE operation_id = %s"
            " AND kind = 'lookup' ORDER BY lookup_no",
            operation_id,
        )
        return [row["verdict"] for row in found]

    def pause(self, account: str) -> str:
        """Why an account's sending is paused; empty while it is not."""
        [row] = self.rows("SELECT pause_kind FROM provider_account WHERE name = %s", account)
        return str(row["pause_kind"])

    def wait_for(self, operation_id: str, *wanted: str, seconds: float = 15) -> str:
        """Until its state is one of `wanted`; raises TimeoutError with the state it stayed in."""

        def look() -> str | None:
            state = self.state(operation_id)
            return state if state in wanted else None

        try:
            return wait_until(look, seconds=seconds)
        except TimeoutError:
            stayed = " -> ".join(self.states(operation_id))
            raise TimeoutError(
                f"not {' or '.join(wanted)} within {seconds:g} s; it went {stayed}"
            ) from None

    def wait_for_pause(self, account: str, kind: str, *, seconds: float = 15) -> None:
        """Until the account's pause is of this kind ("": none)."""
        wait_until(
            lambda: self.pause(account) == kind or None,
            seconds=seconds,
            what=f"pause of {account} {kind!r}",
        )

    def at_rest(self) -> bool:
        """Whether nothing is on its way: all ended, or waiting for a person."""
        [row] = self.rows(
            "SELECT count(*) AS moving FROM operation o WHERE o.settled_at IS NULL AND NOT EXISTS"
            " (SELECT FROM review_case c WHERE c.operation_id = o.id AND c.closed_at IS NULL)"
        )
        return bool(row["moving"] == 0)
