"""Three standing checks, run for ever: our tables against each other, against what was looked up, and
against what was settled.

They read in a transaction that cannot write. What they find stops the account and is an alarm;
they never repair.
"""

from reconciliation.verifiers.rounds import verify_changes, verify_everything

__all__ = ["verify_changes", "verify_everything"]
