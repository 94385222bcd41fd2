"""What the database holds without trusting Python: the chain of events, steps of one, append-only
history, one answer per attempt, consent by another person, a cause for every order version.

The list of legal moves is generated from the state table, so a later change of that table needs
a migration that replaces `event_is_legal`.
"""

from __future__ import annotations

from django.db import migrations

from refunds.domain.states import moves

APPEND_ONLY = ("event", "evidence", "approval", "order_move", "policy_check", "proposal")
STAYS = ("operation", "attempt", "provider_refund", "reservation", "orders", "payment")
# May not move once stored: identity, money and words of a proposal.
MATERIAL = [
    "id",
    "kind",
    "business_key",
    "order_id",
    "payment_id",
    "provider_account",
    "amount_minor",
    "currency",
    "reason_code",
    "reason_text",
    "request_ref",
    "requested_by_kind",
    "requested_by_ref",
    "ticket_ref",
    "run_ref",
    "step_ref",
    "claims",
    "read_links",
    "proposer_id",
    "agent_id",
    "agent_owner_id",
    "provider_key",
    "body",
    "fingerprint",
    "policy_version",
    "tier",
    "quorum",
    "possible_repeat",
    "separate_from_id",
    "created_at",
]
GROWS = ["attempt_count", "lookup_started", "lookup_applied", "round"]
ATTEMPT_FIXED = [
    "operation_id",
    "no",
    "fence",
    "recorded_at",
    "send_deadline",
    "lease_until",
    "account_identity",
    "contract_hash",
]

_LEGAL = ",\n  ".join(
    f"('{event}', '{source}', '{target}', '{kind}')" for event, source, target, kind in moves()
)


def _row(prefix: str, names: list[str]) -> str:
    return "(" + ", ".join(f"{prefix}.{name}" for name in names) + ")"


def _any_shrinks(names: list[str]) -> str:
    return " OR ".join(f"NEW.{name} < OLD.{name}" for name in names)


GUARDS = f"""
CREATE FUNCTION aftersend_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on %: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0]
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

ALTER TABLE event ADD CONSTRAINT event_is_legal CHECK ((event, from_state, to_state, actor_kind) IN (
  {_LEGAL}));

-- STORED must be said: a foreign key accepts no virtual column, and 18 makes virtual ones.
ALTER TABLE event
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

-- An event beyond its operation's head would occupy a step for good and wedge the operation.
CREATE FUNCTION aftersend_event_has_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM operation WHERE id = NEW.operation_id AND version >= NEW.seq;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'event % of % without its operation', NEW.seq, NEW.operation_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER event_has_head AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION aftersend_event_has_head();

CREATE FUNCTION aftersend_move_has_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM orders WHERE id = NEW.order_id AND version >= NEW.version;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'order move % without its order', NEW.version
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER order_move_has_order AFTER INSERT ON order_move
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION aftersend_move_has_order();

-- The head key alone would accept a rewind to an older (version, state): that event exists.
CREATE TRIGGER operation_steps BEFORE UPDATE ON operation FOR EACH ROW
  WHEN ((NEW.version, NEW.state) IS DISTINCT FROM (OLD.version, OLD.state)
        AND NEW.version IS DISTINCT FROM OLD.version + 1)
  EXECUTE FUNCTION aftersend_refuse('version moves by one');
CREATE TRIGGER operation_material BEFORE UPDATE ON operation FOR EACH ROW
  WHEN ({_row("NEW", MATERIAL)} IS DISTINCT FROM {_row("OLD", MATERIAL)})
  EXECUTE FUNCTION aftersend_refuse('material facts are immutable');
CREATE TRIGGER operation_grows BEFORE UPDATE ON operation FOR EACH ROW
  WHEN ({_any_shrinks(GROWS)})
  EXECUTE FUNCTION aftersend_refuse('counters only grow');
CREATE TRIGGER orders_steps BEFORE UPDATE ON orders FOR EACH ROW
  WHEN (NEW.version NOT IN (OLD.version, OLD.version + 1) OR NEW.feed_seq < OLD.feed_seq
        OR NEW.ref IS DISTINCT FROM OLD.ref)
  EXECUTE FUNCTION aftersend_refuse('an order version moves by one, its feed only forward');
CREATE TRIGGER payment_identity BEFORE UPDATE ON payment FOR EACH ROW
  WHEN ((NEW.order_id, NEW.provider_account, NEW.ref, NEW.currency)
        IS DISTINCT FROM (OLD.order_id, OLD.provider_account, OLD.ref, OLD.currency))
  EXECUTE FUNCTION aftersend_refuse('a payment keeps its order, account and currency');
CREATE TRIGGER attempt_fixed BEFORE UPDATE ON attempt FOR EACH ROW
  WHEN ({_row("NEW", ATTEMPT_FIXED)} IS DISTINCT FROM {_row("OLD", ATTEMPT_FIXED)})
  EXECUTE FUNCTION aftersend_refuse('an attempt is recorded once');
CREATE TRIGGER attempt_answered_once BEFORE UPDATE ON attempt FOR EACH ROW
  WHEN ((OLD.outcome IS NOT NULL AND NEW.outcome IS DISTINCT FROM OLD.outcome)
     OR (OLD.closed_at IS NOT NULL AND NEW.closed_at IS DISTINCT FROM OLD.closed_at)
     OR (OLD.settled_by_evidence IS NOT NULL
         AND NEW.settled_by_evidence IS DISTINCT FROM OLD.settled_by_evidence))
  EXECUTE FUNCTION aftersend_refuse('an attempt is answered once');

-- Read from the operation itself: a column copied into the approval could lie.
CREATE FUNCTION aftersend_approval_is_anothers() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE o operation;
BEGIN
  SELECT * INTO STRICT o FROM operation WHERE id = NEW.operation_id FOR UPDATE;
  IF NEW.approver_id IN (o.proposer_id, o.agent_owner_id) THEN
    RAISE EXCEPTION 'nobody approves what they or their agent proposed'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF o.state <> 'awaiting_approval' OR NEW.round <> o.round OR NEW.fingerprint <> o.fingerprint THEN
    RAISE EXCEPTION 'an approval is for what is waiting, in this round, with this fingerprint'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER approval_is_anothers BEFORE INSERT ON approval FOR EACH ROW
  EXECUTE FUNCTION aftersend_approval_is_anothers();
"""

for table in APPEND_ONLY:
    GUARDS += f"""
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('append only');"""
for table in STAYS:
    GUARDS += f"""
CREATE TRIGGER {table}_stays BEFORE DELETE ON {table} FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('history stays');"""
for table in APPEND_ONLY + STAYS:
    GUARDS += f"""
CREATE TRIGGER {table}_whole BEFORE TRUNCATE ON {table} FOR EACH STATEMENT
  EXECUTE FUNCTION aftersend_refuse('history stays');"""

UNDO = """
DROP FUNCTION aftersend_refuse CASCADE;
DROP FUNCTION aftersend_event_has_head CASCADE;
DROP FUNCTION aftersend_move_has_order CASCADE;
DROP FUNCTION aftersend_approval_is_anothers CASCADE;
ALTER TABLE orders DROP CONSTRAINT orders_version_has_cause;
ALTER TABLE operation DROP CONSTRAINT operation_head_is_last_event;
ALTER TABLE event DROP CONSTRAINT event_follows;
ALTER TABLE event DROP COLUMN prev_seq, DROP COLUMN prev_state;
ALTER TABLE event DROP CONSTRAINT event_is_legal;
"""


class Migration(migrations.Migration):
    dependencies = [("refunds", "0001_initial")]
    operations = [migrations.RunSQL(GUARDS, UNDO)]
