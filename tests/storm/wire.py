"""Reads along between a program and PostgreSQL: which commit is being asked for. Pure.

Nothing is decoded: the statements of the six commits of a refund's life, and of a notice, are
known by words that stand in no other one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# A statement that commits by itself.
_ALONE = (
    (b"INSERT INTO attempt ", "claim"),
    (b"'answer', ", "answer"),
    (b'INSERT INTO "evidence"', "lookup"),
)
# Words inside a transaction, and the commit that ends it.
_WITHIN = (
    (b"'reconciler'", "decision"),
    (b'INSERT INTO "approval"', "approval"),
    (b"INSERT INTO operation (", "proposal"),
)
_NOTICE = b"INSERT INTO notice "
# ReadyForQuery: the server has said all it had to say; its last byte is the transaction's status.
READY = b"Z\x00\x00\x00\x05"
_HEAD = 5  # a message's kind and length


@dataclass
class Reading:
    """One connection's state. `name` of a commit is that of its fault point."""

    in_transaction: bool = False
    within: str = ""
    prepared: dict[bytes, bytes] = field(default_factory=dict)

    def sees(self, data: bytes) -> str | None:
        """What the program sends; the name of the commit that it asks for, if it does."""
        kind, said = data[:1], data[_HEAD:]
        if kind == b"P":  # a statement is prepared under a name: nothing is asked for yet
            statement, _, text = said.partition(b"\0")
            self.prepared[statement] = text
            return None
        if kind == b"B":  # the one of this name, with values
            data = self.prepared.get(said.split(b"\0", 2)[1], b"")
        if _says(data, b"BEGIN"):
            self.in_transaction, self.within = True, ""
        for words, name in _WITHIN if self.in_transaction else ():
            if words in data:
                self.within = name
        if self.in_transaction and _says(data, b"COMMIT"):
            within, self.in_transaction, self.within = self.within, False, ""
            return f"commit-{within}" if within else None
        if _says(data, b"ROLLBACK"):
            self.in_transaction, self.within = False, ""
        if self.in_transaction:
            return None
        if _NOTICE in data:
            return "commit-notice"
        return next((f"commit-{name}" for words, name in _ALONE if words in data), None)


def is_whole(data: bytes) -> bool:
    """Whether an answer of the server ends here."""
    return data[-6:-1] == READY


def _says(data: bytes, word: bytes) -> bool:
    """Whether this is a simple query that begins with the word; so drivers begin and commit."""
    return data.startswith(b"Q") and data[_HEAD:].startswith(word)
