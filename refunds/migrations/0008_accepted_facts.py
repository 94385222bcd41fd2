"""Contracts that were sent under are kept by their hash, and figures that two people accepted."""

import datetime

import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

GUARDS = """
CREATE TRIGGER accepted_fact_material BEFORE UPDATE ON accepted_fact FOR EACH ROW
  WHEN ((NEW.account, NEW.fact, NEW.seconds, NEW.scope, NEW.reason, NEW.proposed_by_id,
         NEW.proposed_at, NEW.valid_until) IS DISTINCT FROM
        (OLD.account, OLD.fact, OLD.seconds, OLD.scope, OLD.reason, OLD.proposed_by_id,
         OLD.proposed_at, OLD.valid_until)
        OR (OLD.confirmed_at IS NOT NULL AND (NEW.confirmed_at, NEW.confirmed_by_id)
            IS DISTINCT FROM (OLD.confirmed_at, OLD.confirmed_by_id))
        OR OLD.withdrawn_at IS NOT NULL)
  EXECUTE FUNCTION aftersend_refuse('what was accepted is not edited, and withdrawn stays withdrawn');
CREATE TRIGGER accepted_fact_stays BEFORE DELETE ON accepted_fact FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('history stays');
CREATE TRIGGER known_contract_append_only BEFORE UPDATE OR DELETE ON known_contract FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('append only');
"""
UNDO = """
DROP TRIGGER accepted_fact_material ON accepted_fact;
DROP TRIGGER accepted_fact_stays ON accepted_fact;
DROP TRIGGER known_contract_append_only ON known_contract;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0007_outside"),
    ]

    operations = [
        migrations.CreateModel(
            name="KnownContract",
            fields=[
                ("hash", models.BinaryField(max_length=32, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=64)),
                ("facts", models.JSONField()),
                (
                    "first_used_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "db_table": "known_contract",
            },
        ),
        migrations.CreateModel(
            name="AcceptedFact",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("account", models.CharField(max_length=64)),
                ("fact", models.CharField(max_length=16)),
                ("seconds", models.IntegerField()),
                ("scope", models.CharField(max_length=16)),
                ("reason", models.CharField(max_length=500)),
                (
                    "proposed_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("confirmed_at", models.DateTimeField(null=True)),
                ("valid_until", models.DateTimeField()),
                ("withdrawn_at", models.DateTimeField(null=True)),
                ("withdrawn_by", models.CharField(blank=True, max_length=160)),
                ("withdrawn_because", models.CharField(blank=True, max_length=500)),
                (
                    "confirmed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "proposed_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "accepted_fact",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("withdrawn_at__isnull", True)),
                        fields=("account", "fact", "scope"),
                        name="accepted_fact_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("fact__in", ["flight_max", "lookup_lag"]),
                            ("scope__in", ["resend", "absence"]),
                            ("seconds__gt", 0),
                        ),
                        name="accepted_fact_may_be_accepted",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("confirmed_at__isnull", True), ("confirmed_by__isnull", True)
                            ),
                            models.Q(
                                ("confirmed_at__isnull", False),
                                ("confirmed_by__isnull", False),
                                models.Q(("confirmed_by", models.F("proposed_by")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="accepted_fact_by_two",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "valid_until__lte",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("proposed_at"),
                                    "+",
                                    models.Value(datetime.timedelta(days=180)),
                                ),
                            )
                        ),
                        name="accepted_fact_not_for_ever",
                    ),
                ],
            },
        ),
        migrations.RunSQL(GUARDS, UNDO),
    ]
