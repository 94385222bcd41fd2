"""An attempt is opened while its operation is being sent under it, and beside no other open one.

The operation's own row says which attempt that is. A partial unique index over the open ones held
that before: the end of each attempt wrote it and the table's other index anew.
"""

from django.db import migrations

_FIXED = (
    *("operation_id", "no", "fence", "recorded_at", "send_deadline", "lease_until"),
    *("account_identity", "contract_hash"),
)


def guards(when: str) -> str:
    """What keeps an attempt as it was recorded and answered, BEFORE or AFTER its change."""
    new, old = (", ".join(f"{row}.{name}" for name in _FIXED) for row in ("NEW", "OLD"))
    return f"""
CREATE TRIGGER attempt_fixed {when} UPDATE ON attempt FOR EACH ROW
  WHEN (({new}) IS DISTINCT FROM ({old}))
  EXECUTE FUNCTION aftersend_refuse('an attempt is recorded once');
CREATE TRIGGER attempt_answered_once {when} UPDATE ON attempt FOR EACH ROW
  WHEN ((OLD.outcome IS NOT NULL AND NEW.outcome IS DISTINCT FROM OLD.outcome)
     OR (OLD.closed_at IS NOT NULL AND NEW.closed_at IS DISTINCT FROM OLD.closed_at)
     OR (OLD.settled_by_evidence IS NOT NULL
         AND NEW.settled_by_evidence IS DISTINCT FROM OLD.settled_by_evidence))
  EXECUTE FUNCTION aftersend_refuse('an attempt is answered once');
"""


HELD = """
ALTER TABLE attempt SET (fillfactor = 80);  -- each row is changed once, beside itself

-- Three things together make it one: what is opened is the current attempt of an operation that is
-- being sent; the current one is written with the move that makes it so (its number is taken then);
-- and that move finds no other one open. A proof may end the operation while its sender still waits.
CREATE FUNCTION aftersend_attempt_is_current() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM operation
    WHERE (id, state, attempt_count, version)
        = (NEW.operation_id, 'submitting', NEW.no, NEW.fence);
  IF NOT FOUND THEN
    RAISE EXCEPTION 'attempt_one_open: attempt % is not what % is being sent under',
      NEW.no, NEW.operation_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'attempt_one_open';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER attempt_opens_current AFTER INSERT ON attempt
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.closed_at IS NULL) EXECUTE FUNCTION aftersend_attempt_is_current();

CREATE FUNCTION aftersend_sent_under_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM attempt
    WHERE (operation_id, no, fence) = (NEW.id, NEW.attempt_count, NEW.version);
  IF NOT FOUND THEN
    RAISE EXCEPTION 'attempt_one_open: % is being sent without attempt %',
      NEW.id, NEW.attempt_count
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'attempt_one_open';
  END IF;
  PERFORM 1 FROM attempt
    WHERE operation_id = NEW.id AND no <> NEW.attempt_count AND closed_at IS NULL;
  IF FOUND THEN
    RAISE EXCEPTION 'attempt_one_open: % is being sent, and an earlier attempt is open still',
      NEW.id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'attempt_one_open';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER operation_sent_under_attempt AFTER UPDATE ON operation
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
  WHEN (NEW.state = 'submitting'
        AND (NEW.state, NEW.version, NEW.attempt_count)
          IS DISTINCT FROM (OLD.state, OLD.version, OLD.attempt_count))
  EXECUTE FUNCTION aftersend_sent_under_attempt();
DROP INDEX attempt_one_open;

-- A trigger before a change locks the row first, which is written down; one after it refuses as well.
DROP TRIGGER attempt_fixed ON attempt;
DROP TRIGGER attempt_answered_once ON attempt;
""" + guards("AFTER")
UNDO = """
DROP TRIGGER attempt_fixed ON attempt;
DROP TRIGGER attempt_answered_once ON attempt;
DROP FUNCTION aftersend_sent_under_attempt CASCADE;
DROP FUNCTION aftersend_attempt_is_current CASCADE;
ALTER TABLE attempt RESET (fillfactor);
CREATE UNIQUE INDEX attempt_one_open ON attempt (operation_id) WHERE closed_at IS NULL;
""" + guards("BEFORE")


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0017_one_name_of_a_wish"),
    ]

    operations = [
        migrations.RunSQL(
            HELD,
            UNDO,
            state_operations=[
                migrations.RemoveConstraint(model_name="attempt", name="attempt_one_open"),
            ],
        ),
    ]
