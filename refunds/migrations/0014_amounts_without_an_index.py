"""No index stands over a payment's amounts any more: what was over is noted, see 0013."""

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("refunds", "0013_over_refunded"),
    ]

    operations = [
        RemoveIndexConcurrently(model_name="payment", name="payment_over_refunded"),
    ]
