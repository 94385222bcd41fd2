"""Drafts, preferences, and the append-only record of what was done to agents and keys."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

GUARDS = """
CREATE TRIGGER agent_act_append_only BEFORE UPDATE OR DELETE ON agent_act FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('append only');
CREATE TRIGGER agent_act_whole BEFORE TRUNCATE ON agent_act FOR EACH STATEMENT
  EXECUTE FUNCTION aftersend_refuse('history stays');
"""
UNDO = """
DROP TRIGGER agent_act_whole ON agent_act;
DROP TRIGGER agent_act_append_only ON agent_act;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0003_roles"),
        ("review", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Preference",
            fields=[
                (
                    "person",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="preference",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("shortcuts", models.BooleanField(default=True)),
                (
                    "theme",
                    models.CharField(
                        blank=True,
                        choices=[("", "As the device"), ("light", "Light"), ("dark", "Dark")],
                        default="",
                        max_length=5,
                    ),
                ),
            ],
            options={
                "db_table": "preference",
            },
        ),
        migrations.CreateModel(
            name="AgentAct",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("act", models.CharField(max_length=32)),
                ("key_prefix", models.CharField(blank=True, max_length=8)),
                ("detail", models.JSONField(default=dict)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="refunds.agent",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "agent_act",
            },
        ),
        migrations.CreateModel(
            name="Draft",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("form", models.CharField(max_length=32)),
                ("object_ref", models.CharField(max_length=160)),
                ("fields", models.JSONField(default=dict)),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), db_index=True
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "draft",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("person", "form", "object_ref"), name="draft_one_per_form"
                    )
                ],
            },
        ),
        migrations.RunSQL(GUARDS, UNDO),
    ]
