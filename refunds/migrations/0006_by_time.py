"""The last minutes of what is only appended, without reading all of it."""

import django.contrib.postgres.indexes
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0005_siblings"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="attempt",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["recorded_at"], name="attempt_by_time"
            ),
        ),
        migrations.AddIndex(
            model_name="event",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["at"], name="event_by_time"
            ),
        ),
        migrations.AddIndex(
            model_name="evidence",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["stored_at"], name="evidence_by_time"
            ),
        ),
        migrations.AddIndex(
            model_name="ordermove",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["at"], name="order_move_by_time"
            ),
        ),
        migrations.AddIndex(
            model_name="providerrefund",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["first_seen_at"], name="provider_refund_by_time"
            ),
        ),
    ]
