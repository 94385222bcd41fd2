"""Payments that gave back more than they took are noted when it happens.

The partial index that found them stood over the amounts, so each change of an amount, two in every
refund, wrote all indexes of the table anew.
"""

import django.db.models.deletion
from django.db import migrations, models

NOTED = """
CREATE FUNCTION aftersend_payment_is_over() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO over_refunded (payment_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER payment_is_over AFTER INSERT OR UPDATE ON payment FOR EACH ROW
  WHEN (NEW.captured_minor < NEW.refunded_minor + NEW.held_minor)
  EXECUTE FUNCTION aftersend_payment_is_over();

-- Those of before, by the index that goes after this; whoever changes one meanwhile waits.
INSERT INTO over_refunded (payment_id)
  SELECT id FROM payment WHERE captured_minor < refunded_minor + held_minor;

CREATE TRIGGER over_refunded_append_only BEFORE UPDATE OR DELETE ON over_refunded FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('append only');
CREATE TRIGGER over_refunded_whole BEFORE TRUNCATE ON over_refunded FOR EACH STATEMENT
  EXECUTE FUNCTION aftersend_refuse('history stays');
"""
UNDO = """
DROP FUNCTION aftersend_payment_is_over CASCADE;
DROP TRIGGER over_refunded_append_only ON over_refunded;
DROP TRIGGER over_refunded_whole ON over_refunded;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0012_listed_refunds"),
    ]

    operations = [
        migrations.CreateModel(
            name="OverRefunded",
            fields=[
                (
                    "payment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="over_refunded",
                        serialize=False,
                        to="refunds.payment",
                    ),
                ),
            ],
            options={
                "db_table": "over_refunded",
            },
        ),
        migrations.RunSQL(NOTED, UNDO),
    ]
