"""What we learn afterwards, and what waits for a person because of it."""

from reconciliation.models.cases import Case

__all__ = ["Case"]
