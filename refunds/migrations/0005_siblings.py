"""An approval keeps the other refunds of its page with their amounts."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("refunds", "0004_payment_ref_prefix")]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="shown_amounts_minor",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), default=list, size=None
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(("shown_operations__len", models.F("shown_amounts_minor__len"))),
                name="approval_shown_with_amounts",
            ),
        ),
    ]
