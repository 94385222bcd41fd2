"""Whatever has not ended stands in one partial index, whether or not it falls due again.

A list or a count of what waits named states only and read the whole table. What every page counts
is read from the index alone. What a person rejected has an index of its own, which no other event
writes.

Both are built while others go on writing, and each statement is committed by itself: nobody waits
for a table. What an interrupted run left unfinished is dropped when the migration is run again.
"""

from django.db import migrations, models

_BUILT = (
    "DROP INDEX CONCURRENTLY IF EXISTS operation_open",
    "CREATE INDEX CONCURRENTLY operation_open ON operation (state, due_at, id)"
    " INCLUDE (quorum, round, stale_cause, unknown_since)"
    " WHERE due_at IS NOT NULL OR state IN ('authorized', 'awaiting_approval', 'pending',"
    " 'proposed', 'submitting', 'unknown')",
    "DROP INDEX CONCURRENTLY IF EXISTS operation_due",
    "ALTER INDEX operation_open RENAME TO operation_due",
    "DROP INDEX CONCURRENTLY IF EXISTS event_rejected",
    "CREATE INDEX CONCURRENTLY event_rejected ON event (actor, operation_id)"
    " WHERE event = 'rejected'",
)
_UNDONE = (
    "DROP INDEX CONCURRENTLY IF EXISTS event_rejected",
    "DROP INDEX CONCURRENTLY IF EXISTS operation_was",
    "CREATE INDEX CONCURRENTLY operation_was ON operation (state, due_at, id)"
    " WHERE due_at IS NOT NULL",
    "DROP INDEX CONCURRENTLY IF EXISTS operation_due",
    "ALTER INDEX operation_was RENAME TO operation_due",
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("refunds", "0021_legal_moves_validated"),
    ]

    operations = [
        migrations.RunSQL(
            _BUILT,
            _UNDONE,
            state_operations=[
                migrations.RemoveIndex(model_name="operation", name="operation_due"),
                migrations.AddIndex(
                    model_name="operation",
                    index=models.Index(
                        condition=models.Q(due_at__isnull=False)
                        | models.Q(
                            state__in=[
                                *("authorized", "awaiting_approval", "pending"),
                                *("proposed", "submitting", "unknown"),
                            ]
                        ),
                        fields=["state", "due_at", "id"],
                        include=["quorum", "round", "stale_cause", "unknown_since"],
                        name="operation_due",
                    ),
                ),
                migrations.AddIndex(
                    model_name="event",
                    index=models.Index(
                        condition=models.Q(event="rejected"),
                        fields=["actor", "operation"],
                        name="event_rejected",
                    ),
                ),
            ],
        ),
    ]
