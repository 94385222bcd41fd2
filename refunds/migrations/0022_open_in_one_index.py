"""Whatever has not ended stands in one partial index, whether or not it falls due again.

A list or a count of what waits named states only and read the whole table. What every page counts
is read from the index alone. What a person rejected
has an index of its own, which no other event writes.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0021_legal_moves_validated"),
    ]

    operations = [
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
    ]
