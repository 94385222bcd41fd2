"""What must be told: the outbox, its deliveries, and the triggers that fill it.

The triggers are why no door can move an operation without its consequence: whichever statement
writes the event writes the outbox row, in one transaction, and undoing one undoes both.
"""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

TOLD = """
CREATE FUNCTION aftersend_event_is_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox (operation_id, seq, kind) VALUES (NEW.operation_id, NEW.seq, 'event');
  RETURN NULL;
END $$;
CREATE TRIGGER event_is_told AFTER INSERT ON event FOR EACH ROW
  EXECUTE FUNCTION aftersend_event_is_told();

CREATE FUNCTION aftersend_approval_is_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox (operation_id, kind, name, words)
  VALUES (NEW.operation_id, 'approval', 'approval:' || NEW.id,
          jsonb_build_object('round', NEW.round));
  RETURN NULL;
END $$;
CREATE TRIGGER approval_is_told AFTER INSERT ON approval FOR EACH ROW
  EXECUTE FUNCTION aftersend_approval_is_told();

-- Once for every reason that a case ever gets.
CREATE FUNCTION aftersend_case_is_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox (operation_id, kind, name, words)
  SELECT NEW.operation_id, 'case', 'case:' || NEW.id || ':' || reason,
         jsonb_build_object('case', NEW.id, 'reason', reason)
  FROM unnest(NEW.reasons) reason
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER case_is_told AFTER INSERT OR UPDATE OF reasons ON review_case FOR EACH ROW
  EXECUTE FUNCTION aftersend_case_is_told();

CREATE FUNCTION aftersend_ruling_is_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox (operation_id, kind, name, words)
  SELECT c.operation_id, 'ruling', 'ruling:' || NEW.id,
         jsonb_build_object('ruling', NEW.id, 'case', NEW.case_id)
  FROM review_case c WHERE c.id = NEW.case_id;
  RETURN NULL;
END $$;
CREATE TRIGGER ruling_is_told AFTER INSERT ON case_ruling FOR EACH ROW WHEN (NEW.people = 2)
  EXECUTE FUNCTION aftersend_ruling_is_told();

-- Whenever whoever watches says that somebody is to be told of it (again).
CREATE FUNCTION aftersend_alarm_is_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' OR NEW.told_at IS DISTINCT FROM OLD.told_at THEN
    INSERT INTO outbox (kind, name, words)
    VALUES ('alarm', 'alarm:' || NEW.id || ':' || extract(epoch FROM NEW.told_at),
            jsonb_build_object('name', NEW.name, 'level', NEW.level, 'says', NEW.says,
                               'again', NEW.told_at <> NEW.first_fired_at));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER alarm_is_told AFTER INSERT OR UPDATE OF told_at ON alarm FOR EACH ROW
  WHEN (NEW.told_at IS NOT NULL) EXECUTE FUNCTION aftersend_alarm_is_told();

CREATE FUNCTION aftersend_pause_is_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox (kind, name, words)
  VALUES ('paused', 'paused:' || NEW.name || ':' || extract(epoch FROM clock_timestamp()),
          jsonb_build_object('account', NEW.name, 'kind', NEW.pause_kind));
  RETURN NULL;
END $$;
CREATE TRIGGER pause_is_told AFTER UPDATE ON provider_account FOR EACH ROW
  WHEN (NEW.pause_kind <> '' AND NEW.pause_kind <> OLD.pause_kind)
  EXECUTE FUNCTION aftersend_pause_is_told();

CREATE TRIGGER outbox_fixed BEFORE UPDATE ON outbox FOR EACH ROW
  WHEN ((NEW.id, NEW.operation_id, NEW.seq, NEW.kind, NEW.name, NEW.words, NEW.created_at)
        IS DISTINCT FROM
        (OLD.id, OLD.operation_id, OLD.seq, OLD.kind, OLD.name, OLD.words, OLD.created_at)
        OR OLD.expanded_at IS NOT NULL)
  EXECUTE FUNCTION aftersend_refuse('what happened is told as it was');
CREATE TRIGGER outbox_delivery_fixed BEFORE UPDATE ON outbox_delivery FOR EACH ROW
  WHEN ((NEW.id, NEW.kind, NEW.receiver) IS DISTINCT FROM (OLD.id, OLD.kind, OLD.receiver)
        OR NEW.fence < OLD.fence OR (NEW.collecting AND NOT OLD.collecting))
  EXECUTE FUNCTION aftersend_refuse('a message keeps its id and receiver');
-- What was sent once is sent again as it was: nothing joins a message that is under way.
CREATE FUNCTION aftersend_line_joins_in_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM outbox_delivery
    WHERE id = NEW.delivery_id AND first_sent_at IS NULL AND state = 'waiting'
      AND (kind, receiver) = (NEW.kind, NEW.receiver) FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'message % is under way', NEW.delivery_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER outbox_line_joins_in_time BEFORE INSERT ON outbox_line FOR EACH ROW
  EXECUTE FUNCTION aftersend_line_joins_in_time();
"""
for table in ("outbox_line", "outbox_try"):
    TOLD += f"""
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('append only');"""
for table in ("outbox", "outbox_delivery"):
    TOLD += f"""
CREATE TRIGGER {table}_stays BEFORE DELETE ON {table} FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('history stays');"""
for table in ("outbox", "outbox_delivery", "outbox_line", "outbox_try"):
    TOLD += f"""
CREATE TRIGGER {table}_whole BEFORE TRUNCATE ON {table} FOR EACH STATEMENT
  EXECUTE FUNCTION aftersend_refuse('history stays');"""

UNDO = """
DROP FUNCTION aftersend_event_is_told CASCADE;
DROP FUNCTION aftersend_approval_is_told CASCADE;
DROP FUNCTION aftersend_case_is_told CASCADE;
DROP FUNCTION aftersend_alarm_is_told CASCADE;
DROP FUNCTION aftersend_ruling_is_told CASCADE;
DROP FUNCTION aftersend_pause_is_told CASCADE;
DROP FUNCTION aftersend_line_joins_in_time CASCADE;
DROP TRIGGER outbox_fixed ON outbox;
DROP TRIGGER outbox_delivery_fixed ON outbox_delivery;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0005_alarms"),
        ("refunds", "0005_siblings"),
    ]

    operations = [
        migrations.CreateModel(
            name="Consequence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seq", models.IntegerField(null=True)),
                ("kind", models.CharField(max_length=32)),
                ("name", models.CharField(db_default="", max_length=200)),
                (
                    "words",
                    models.JSONField(db_default=models.Value({}, output_field=models.JSONField())),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("expanded_at", models.DateTimeField(null=True)),
                (
                    "operation",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="refunds.operation",
                    ),
                ),
            ],
            options={
                "db_table": "outbox",
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=32)),
                ("receiver", models.CharField(max_length=160)),
                ("pages", models.BooleanField(default=False)),
                ("collecting", models.BooleanField(default=False)),
                ("state", models.CharField(default="waiting", max_length=16)),
                ("due_at", models.DateTimeField()),
                ("give_up_at", models.DateTimeField()),
                ("lease_until", models.DateTimeField(null=True)),
                ("fence", models.IntegerField(default=0)),
                ("try_count", models.IntegerField(default=0)),
                ("last_because", models.CharField(blank=True, max_length=300)),
                ("first_sent_at", models.DateTimeField(null=True)),
                ("delivered_at", models.DateTimeField(null=True)),
                ("replayed_by", models.CharField(blank=True, max_length=160)),
                ("replayed_at", models.DateTimeField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "db_table": "outbox_delivery",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["waiting", "sending"])),
                        fields=["due_at", "id"],
                        name="outbox_delivery_due",
                    ),
                    models.Index(fields=["state", "-created_at"], name="outbox_delivery_listed"),
                    models.Index(
                        fields=["kind", "receiver", "created_at"], name="outbox_delivery_pace"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["waiting", "sending", "delivered", "given_up"])
                        ),
                        name="outbox_delivery_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "sending"), _negated=True),
                            ("lease_until__isnull", False),
                            _connector="OR",
                        ),
                        name="outbox_delivery_sending_has_lease",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("collecting", True)),
                        fields=("kind", "receiver"),
                        name="outbox_delivery_one_collects",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DeliveryTry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("no", models.IntegerField()),
                ("by", models.CharField(max_length=160)),
                ("delivered", models.BooleanField()),
                ("because", models.CharField(max_length=300)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tries",
                        to="reconciliation.delivery",
                    ),
                ),
            ],
            options={
                "db_table": "outbox_try",
            },
        ),
        migrations.CreateModel(
            name="Line",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=32)),
                ("receiver", models.CharField(max_length=160)),
                ("about", models.CharField(max_length=64)),
                ("text", models.CharField(max_length=1000)),
                ("facts", models.JSONField(default=dict)),
                ("at", models.DateTimeField()),
                (
                    "consequence",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lines",
                        to="reconciliation.consequence",
                    ),
                ),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lines",
                        to="reconciliation.delivery",
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="told_lines",
                        to="refunds.operation",
                    ),
                ),
            ],
            options={
                "db_table": "outbox_line",
            },
        ),
        migrations.AddIndex(
            model_name="consequence",
            index=models.Index(
                condition=models.Q(("expanded_at__isnull", True)),
                fields=["id"],
                name="outbox_waiting",
            ),
        ),
        migrations.AddConstraint(
            model_name="consequence",
            constraint=models.UniqueConstraint(
                fields=("operation", "seq"), name="outbox_once_an_event"
            ),
        ),
        migrations.AddConstraint(
            model_name="consequence",
            constraint=models.UniqueConstraint(
                condition=models.Q(("name", ""), _negated=True),
                fields=("name",),
                name="outbox_once_a_name",
            ),
        ),
        migrations.AddConstraint(
            model_name="consequence",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("operation__isnull", False), ("seq__isnull", False)),
                    models.Q(("seq__isnull", True), models.Q(("name", ""), _negated=True)),
                    _connector="OR",
                ),
                name="outbox_is_identified",
            ),
        ),
        migrations.AddConstraint(
            model_name="line",
            constraint=models.UniqueConstraint(
                fields=("consequence", "kind", "receiver"), name="outbox_line_told_once"
            ),
        ),
        migrations.RunSQL(TOLD, UNDO),
    ]
