"""The chain of events and the causes of versions are held by triggers that only read.

Foreign keys held them before. Such a key locks the row that it finds, and that lock is written down
like a change of it: four in every refund, on rows that nobody may change or delete anyway. They
also needed a second unique index over the events. Nothing that they refused is accepted now.
"""

from django.db import migrations, models

HELD = """
ALTER TABLE orders DROP CONSTRAINT orders_version_has_cause;
ALTER TABLE operation DROP CONSTRAINT operation_head_is_last_event;
ALTER TABLE event
  DROP CONSTRAINT event_follows,
  DROP COLUMN prev_seq,
  DROP COLUMN prev_state,
  -- event_one_per_step stays: one event per step, and what finds it.
  DROP CONSTRAINT event_pkey;

CREATE OR REPLACE FUNCTION aftersend_event_has_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.seq > 1 THEN
    PERFORM 1 FROM event
      WHERE (operation_id, seq, to_state) = (NEW.operation_id, NEW.seq - 1, NEW.from_state);
    IF NOT FOUND THEN
      RAISE EXCEPTION 'event_follows: event % of % follows none that led to %',
        NEW.seq, NEW.operation_id, NEW.from_state
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'event_follows';
    END IF;
  END IF;
  -- An event beyond its operation's head would occupy a step for good and wedge the operation.
  PERFORM 1 FROM operation WHERE id = NEW.operation_id AND version >= NEW.seq;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'event % of % without its operation', NEW.seq, NEW.operation_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION aftersend_head_is_last_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM event
    WHERE (operation_id, seq, to_state) = (NEW.id, NEW.version, NEW.state);
  IF NOT FOUND THEN
    RAISE EXCEPTION 'operation_head_is_last_event: no event led % to version % and %',
      NEW.id, NEW.version, NEW.state
      USING ERRCODE = 'integrity_constraint_violation',
            CONSTRAINT = 'operation_head_is_last_event';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER operation_begins_with_event AFTER INSERT ON operation
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION aftersend_head_is_last_event();
CREATE CONSTRAINT TRIGGER operation_head_is_last_event AFTER UPDATE ON operation
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN ((NEW.version, NEW.state) IS DISTINCT FROM (OLD.version, OLD.state))
  EXECUTE FUNCTION aftersend_head_is_last_event();

CREATE FUNCTION aftersend_version_has_cause() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM order_move WHERE (order_id, version) = (NEW.id, NEW.version);
  IF NOT FOUND THEN
    RAISE EXCEPTION 'orders_version_has_cause: no move led order % to version %',
      NEW.id, NEW.version
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'orders_version_has_cause';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER orders_begin_with_cause AFTER INSERT ON orders
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION aftersend_version_has_cause();
CREATE CONSTRAINT TRIGGER orders_version_has_cause AFTER UPDATE ON orders
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.version IS DISTINCT FROM OLD.version)
  EXECUTE FUNCTION aftersend_version_has_cause();
"""
UNDO = """
DROP FUNCTION aftersend_version_has_cause CASCADE;
DROP FUNCTION aftersend_head_is_last_event CASCADE;
ALTER TABLE event
  ADD CONSTRAINT event_pkey PRIMARY KEY (operation_id, seq, to_state),
  ADD COLUMN prev_seq int GENERATED ALWAYS AS (seq - 1) STORED,
  ADD COLUMN prev_state varchar(24)
    GENERATED ALWAYS AS (CASE WHEN seq = 1 THEN NULL ELSE from_state END) STORED;
ALTER TABLE event ADD CONSTRAINT event_follows FOREIGN KEY (operation_id, prev_seq, prev_state)
  REFERENCES event (operation_id, seq, to_state);
ALTER TABLE operation ADD CONSTRAINT operation_head_is_last_event
  FOREIGN KEY (id, version, state) REFERENCES event (operation_id, seq, to_state)
  DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE orders ADD CONSTRAINT orders_version_has_cause
  FOREIGN KEY (id, version) REFERENCES order_move (order_id, version)
  DEFERRABLE INITIALLY DEFERRED;
CREATE OR REPLACE FUNCTION aftersend_event_has_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM operation WHERE id = NEW.operation_id AND version >= NEW.seq;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'event % of % without its operation', NEW.seq, NEW.operation_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0014_amounts_without_an_index"),
    ]

    operations = [
        migrations.RunSQL(
            HELD,
            UNDO,
            state_operations=[
                migrations.AlterField(
                    model_name="event",
                    name="pk",
                    field=models.CompositePrimaryKey(
                        "operation_id",
                        "seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                migrations.RemoveConstraint(model_name="event", name="event_one_per_step"),
            ],
        ),
    ]
