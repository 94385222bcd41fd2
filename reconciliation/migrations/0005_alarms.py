"""Alarms with who acknowledged them, and that the signals and verifiers ran."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

GUARDS = """
CREATE TRIGGER alarm_acknowledgement_append_only BEFORE UPDATE OR DELETE ON alarm_acknowledgement
  FOR EACH ROW EXECUTE FUNCTION aftersend_refuse('append only');
CREATE TRIGGER alarm_acknowledgement_whole BEFORE TRUNCATE ON alarm_acknowledgement
  FOR EACH STATEMENT EXECUTE FUNCTION aftersend_refuse('history stays');
CREATE TRIGGER alarm_stays BEFORE DELETE ON alarm FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('history stays');
CREATE TRIGGER alarm_ends_once BEFORE UPDATE ON alarm FOR EACH ROW
  WHEN (OLD.ended_at IS NOT NULL) EXECUTE FUNCTION aftersend_refuse('an alarm ends once');
"""
UNDO = """
DROP TRIGGER alarm_ends_once ON alarm;
DROP TRIGGER alarm_stays ON alarm;
DROP TRIGGER alarm_acknowledgement_whole ON alarm_acknowledgement;
DROP TRIGGER alarm_acknowledgement_append_only ON alarm_acknowledgement;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0004_case_guards"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SignalRun",
            fields=[
                ("name", models.CharField(max_length=48, primary_key=True, serialize=False)),
                ("ran_at", models.DateTimeField()),
                ("good_at", models.DateTimeField(null=True)),
                ("value", models.FloatField(null=True)),
                ("failed_since", models.DateTimeField(null=True)),
                ("error", models.CharField(blank=True, max_length=300)),
            ],
            options={
                "db_table": "signal_run",
            },
        ),
        migrations.CreateModel(
            name="VerifierRound",
            fields=[
                ("name", models.CharField(max_length=48, primary_key=True, serialize=False)),
                ("cursor", models.CharField(blank=True, max_length=64)),
                ("changes_until", models.DateTimeField(null=True)),
                ("began_at", models.DateTimeField(null=True)),
                ("checked_count", models.BigIntegerField(default=0)),
                ("found_count", models.BigIntegerField(default=0)),
                ("last_ended_at", models.DateTimeField(null=True)),
                ("last_checked_count", models.BigIntegerField(default=0)),
                ("last_found_count", models.BigIntegerField(default=0)),
            ],
            options={
                "db_table": "verifier_round",
            },
        ),
        migrations.CreateModel(
            name="Alarm",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=48)),
                ("subject", models.CharField(blank=True, max_length=200)),
                ("level", models.CharField(max_length=8)),
                ("value", models.FloatField()),
                ("says", models.CharField(max_length=500)),
                ("first_fired_at", models.DateTimeField()),
                ("last_fired_at", models.DateTimeField()),
                ("told_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "alarm",
                "indexes": [models.Index(fields=["-ended_at", "-id"], name="alarm_by_end")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("name", "subject"),
                        name="alarm_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("level__in", ["warn", "page"])),
                        name="alarm_level_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Acknowledgement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("note", models.CharField(max_length=300)),
                ("until", models.DateTimeField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "alarm",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="acknowledgements",
                        to="reconciliation.alarm",
                    ),
                ),
            ],
            options={
                "db_table": "alarm_acknowledgement",
            },
        ),
        migrations.RunSQL(GUARDS, UNDO),
    ]
