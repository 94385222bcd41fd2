"""Payments are found by the beginning of their reference."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0003_roles"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="payment",
            index=models.Index(
                fields=["ref"], name="payment_ref_prefix", opclasses=["varchar_pattern_ops"]
            ),
        ),
    ]
