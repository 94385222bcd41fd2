"""Who asked to lift a quarantine, and what they compared by hand."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0009_settled"),
    ]

    operations = [
        migrations.AddField(
            model_name="quarantine",
            name="asked_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="quarantine",
            name="asked_by",
            field=models.CharField(blank=True, db_default="", max_length=160),
        ),
        migrations.AddField(
            model_name="quarantine",
            name="by_hand",
            field=models.JSONField(db_default=models.Value([], output_field=models.JSONField())),
        ),
    ]
