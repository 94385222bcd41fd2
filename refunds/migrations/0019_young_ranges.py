"""The first range of an index by time is summarised when it is full, as every later one is.

An index that is made over an empty table summarises that range at once, and each row of a young
installation then writes the summary anew. What is not summarised is read; vacuum summarises it.
"""

from django.db import migrations

_BY_TIME = (
    *("attempt_by_time", "event_by_time", "evidence_by_time"),
    *("order_move_by_time", "provider_refund_by_time"),
)


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0018_open_while_submitting"),
    ]

    operations = [
        migrations.RunSQL(f"SELECT brin_desummarize_range('{name}', 0)", migrations.RunSQL.noop)
        for name in _BY_TIME
    ]
