"""What does not match in settlement is found without a scan: it is rare, and what people look at."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("reconciliation", "0011_settlement_cover")]
    operations = [
        migrations.AddIndex(
            model_name="settlementline",
            index=models.Index(
                fields=["id"],
                condition=~models.Q(verdict="match"),
                name="settlement_line_to_look_at",
            ),
        ),
    ]
