"""What the database holds about cases without trusting Python: history is append-only, nobody rules
about what they or their agent proposed, a second signature is another person's, and no operation
moves by a ruling that is not in force.
"""

from __future__ import annotations

from django.db import migrations

APPEND_ONLY = ("case_event", "statement", "case_statement", "case_ruling", "case_ruling_end")

GUARDS = """
CREATE FUNCTION aftersend_holds(who bigint, VARIADIC roles text[]) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM person_groups JOIN auth_group ON auth_group.id = group_id
                 WHERE person_id = who AND auth_group.name = ANY (roles))
     AND NOT EXISTS (SELECT 1 FROM person_groups JOIN auth_group ON auth_group.id = group_id
                     WHERE person_id = who AND auth_group.name = 'admin')
$$;

-- Read from the operation and the groups themselves: a copied column could lie.
CREATE FUNCTION aftersend_ruling_may() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE c review_case; o operation;
BEGIN
  SELECT * INTO STRICT c FROM review_case WHERE id = NEW.case_id FOR UPDATE;
  SELECT * INTO o FROM operation WHERE id = c.operation_id;
  IF c.closed_at IS NOT NULL THEN
    RAISE EXCEPTION 'case % is closed', c.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.first_by_id IN (o.proposer_id, o.agent_owner_id) THEN
    RAISE EXCEPTION 'nobody rules about what they or their agent proposed'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NOT aftersend_holds(NEW.first_by_id, 'ops', 'ops_lead')
     AND NOT (NEW.choice = 'remedy' AND aftersend_holds(NEW.first_by_id, 'lead')) THEN
    RAISE EXCEPTION 'the first signature is by ops or an ops lead'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF EXISTS (SELECT 1 FROM case_ruling r WHERE r.case_id = NEW.case_id AND NOT EXISTS
             (SELECT 1 FROM case_ruling_end e WHERE e.ruling_id = r.id)) THEN
    RAISE EXCEPTION 'case % has a ruling that waits', c.id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER case_ruling_may BEFORE INSERT ON case_ruling FOR EACH ROW
  EXECUTE FUNCTION aftersend_ruling_may();

CREATE FUNCTION aftersend_ruling_signed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r case_ruling; o operation;
BEGIN
  SELECT * INTO STRICT r FROM case_ruling WHERE id = NEW.ruling_id FOR UPDATE;
  IF NEW.outcome <> 'in_force' THEN
    RETURN NEW;
  END IF;
  IF r.people = 1 THEN
    IF NEW.by_id IS DISTINCT FROM r.first_by_id THEN
      RAISE EXCEPTION 'a ruling of one person is in force by that person'
        USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  SELECT operation.* INTO o FROM operation JOIN review_case c ON c.operation_id = operation.id
    WHERE c.id = r.case_id;
  IF NEW.by_id IS NULL OR NEW.by_id = r.first_by_id THEN
    RAISE EXCEPTION 'the second signature is another person''s'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NEW.by_id IN (o.proposer_id, o.agent_owner_id) THEN
    RAISE EXCEPTION 'nobody rules about what they or their agent proposed'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF NOT aftersend_holds(NEW.by_id, 'ops_lead') THEN
    RAISE EXCEPTION 'the second signature is an ops lead''s'
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER case_ruling_signed BEFORE INSERT ON case_ruling_end FOR EACH ROW
  EXECUTE FUNCTION aftersend_ruling_signed();

-- The one door takes any actor's word for its kind; this one looks for the signatures.
CREATE FUNCTION aftersend_event_was_ruled() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM case_ruling r
    JOIN case_ruling_end e ON e.ruling_id = r.id AND e.outcome = 'in_force'
    JOIN review_case c ON c.id = r.case_id
   WHERE r.id = (NEW.detail ->> 'ruling')::bigint AND c.operation_id = NEW.operation_id
     AND (NEW.event, r.choice) IN (('ruled_happened', 'happened'),
       ('ruled_not_happened', 'not_happened'), ('ruled_different', 'different'),
       ('ruled_different', 'accept_figure'), ('ruled_different', 'correct'));
  IF NOT FOUND THEN
    RAISE EXCEPTION '% of % without a ruling in force', NEW.event, NEW.operation_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER event_was_ruled AFTER INSERT ON event DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.event IN ('ruled_happened', 'ruled_different', 'ruled_not_happened'))
  EXECUTE FUNCTION aftersend_event_was_ruled();

-- For the sweep of what is still owed: no other event is in it.
CREATE INDEX event_owes ON event (at) WHERE to_state IN ('failed', 'returned');
"""
UNDO = """
DROP INDEX event_owes;
DROP FUNCTION aftersend_event_was_ruled CASCADE;
DROP FUNCTION aftersend_ruling_signed CASCADE;
DROP FUNCTION aftersend_ruling_may CASCADE;
DROP FUNCTION aftersend_holds CASCADE;
"""
for table in APPEND_ONLY:
    GUARDS += f"""
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW
  EXECUTE FUNCTION aftersend_refuse('append only');
CREATE TRIGGER {table}_whole BEFORE TRUNCATE ON {table} FOR EACH STATEMENT
  EXECUTE FUNCTION aftersend_refuse('history stays');"""
    UNDO += f"""
DROP TRIGGER {table}_append_only ON {table};
DROP TRIGGER {table}_whole ON {table};"""


class Migration(migrations.Migration):
    dependencies = [
        ("reconciliation", "0003_case_work"),
        ("refunds", "0005_siblings"),
    ]
    operations = [migrations.RunSQL(GUARDS, UNDO)]
