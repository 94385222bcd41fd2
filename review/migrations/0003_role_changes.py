"""Changes of roles with who proposed and who decided: append-only, and never one's own."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

GUARDS = """
CREATE TRIGGER role_change_append_only BEFORE UPDATE OR DELETE ON role_change FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('append only');
CREATE TRIGGER role_change_whole BEFORE TRUNCATE ON role_change FOR EACH STATEMENT
  EXECUTE FUNCTION aftersend_refuse('history stays');
CREATE TRIGGER role_decision_append_only BEFORE UPDATE OR DELETE ON role_decision FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('append only');
CREATE TRIGGER role_decision_whole BEFORE TRUNCATE ON role_decision FOR EACH STATEMENT
  EXECUTE FUNCTION aftersend_refuse('history stays');

CREATE FUNCTION aftersend_role_decision_by_another() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM role_change WHERE id = NEW.change_id AND NEW.confirmed
             AND NEW.by_id IN (proposed_by_id, person_id)) THEN
    RAISE EXCEPTION 'nobody confirms their own change'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER role_decision_by_another BEFORE INSERT ON role_decision FOR EACH ROW
  EXECUTE FUNCTION aftersend_role_decision_by_another();
"""
UNDO = """
DROP TRIGGER role_decision_by_another ON role_decision;
DROP FUNCTION aftersend_role_decision_by_another;
DROP TRIGGER role_decision_whole ON role_decision;
DROP TRIGGER role_decision_append_only ON role_decision;
DROP TRIGGER role_change_whole ON role_change;
DROP TRIGGER role_change_append_only ON role_change;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0003_roles"),
        ("review", "0002_drafts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RoleChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("found", "founded"),
                            ("added", "added"),
                            ("change", "proposed"),
                            ("provided", "by the sign-in provider"),
                        ],
                        max_length=8,
                    ),
                ),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
                ("reason", models.CharField(max_length=300)),
                (
                    "proposed_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="role_changes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "proposed_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "role_change",
            },
        ),
        migrations.CreateModel(
            name="RoleDecision",
            fields=[
                (
                    "change",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="decision",
                        serialize=False,
                        to="review.rolechange",
                    ),
                ),
                ("confirmed", models.BooleanField()),
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
            ],
            options={
                "db_table": "role_decision",
            },
        ),
        migrations.AddConstraint(
            model_name="rolechange",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("proposed_by", None),
                    models.Q(("proposed_by", models.F("person")), _negated=True),
                    _connector="OR",
                ),
                name="role_change_not_ones_own",
            ),
        ),
        migrations.AddConstraint(
            model_name="rolechange",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "change"), _negated=True),
                    ("proposed_by__isnull", False),
                    _connector="OR",
                ),
                name="role_change_has_a_proposer",
            ),
        ),
        migrations.RunSQL(GUARDS, UNDO),
    ]
