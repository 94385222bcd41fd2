"""The same guards, read once for each connection instead of once for each statement.

A CHECK and the WHEN of a trigger are stored as trees of words, and every statement that touches the
table reads all of them again, whether or not they come to anything. The tree of the legal moves is
120 kB long: reading it took longer than all else that inserting an event does. What stands in a
function is read when a connection first calls it.
"""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

from refunds.domain.states import moves

_first = import_module("refunds.migrations.0002_guards")
MATERIAL = [*_first.MATERIAL, "remedy_of_id"]

LEGAL = ", ".join(f"'{'/'.join(move)}'" for move in moves())

REPLACE = f"""
-- In the order in which every writer takes them: one that holds an operation and adds its event
-- would wait for us, and we for it.
LOCK TABLE operation, event IN ACCESS EXCLUSIVE MODE;
CREATE FUNCTION aftersend_move_is_legal(event text, source text, target text, kind text)
  RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN concat_ws('/', event, source, target, kind) = ANY (ARRAY[{LEGAL}]);
END $$;
ALTER TABLE event DROP CONSTRAINT event_is_legal, ADD CONSTRAINT event_is_legal
  CHECK (aftersend_move_is_legal(event, from_state, to_state, actor_kind)) NOT VALID;

CREATE FUNCTION aftersend_operation_holds() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE broken text;
BEGIN
  -- The head key alone would accept a rewind to an older (version, state): that event exists.
  IF (NEW.version, NEW.state) IS DISTINCT FROM (OLD.version, OLD.state)
     AND NEW.version IS DISTINCT FROM OLD.version + 1 THEN
    broken := 'version moves by one';
  ELSIF {_first._row("NEW", MATERIAL)} IS DISTINCT FROM {_first._row("OLD", MATERIAL)} THEN
    broken := 'material facts are immutable';
  ELSIF {_first._any_shrinks(_first.GROWS)} THEN
    broken := 'counters only grow';
  ELSE
    RETURN NULL;
  END IF;
  RAISE EXCEPTION 'UPDATE on operation: %', broken
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
-- After the change: before it, the row would be locked first, which is written down.
CREATE TRIGGER operation_holds AFTER UPDATE ON operation FOR EACH ROW
  EXECUTE FUNCTION aftersend_operation_holds();
DROP TRIGGER operation_steps ON operation;
DROP TRIGGER operation_material ON operation;
DROP TRIGGER operation_remedy_material ON operation;
DROP TRIGGER operation_grows ON operation;
"""


def _triggers_of(*names: str) -> str:
    """As the first migrations made them."""
    made = _first.GUARDS + import_module("refunds.migrations.0011_remedy_is_material").GUARD
    return "\n".join(
        f"CREATE TRIGGER {name} "
        + made.split(f"CREATE TRIGGER {name} ", 1)[1].split(";", 1)[0]
        + ";"
        for name in names
    )


UNDO = f"""
ALTER TABLE event DROP CONSTRAINT event_is_legal;
ALTER TABLE event ADD CONSTRAINT event_is_legal
  CHECK ((event, from_state, to_state, actor_kind) IN ({_first._LEGAL}));
DROP FUNCTION aftersend_move_is_legal;
{
    _triggers_of(
        "operation_steps",
        "operation_material",
        "operation_grows",
        "operation_remedy_material",
    )
}
DROP FUNCTION aftersend_operation_holds CASCADE;
"""


class Migration(migrations.Migration):
    dependencies = [("refunds", "0019_young_ranges")]
    operations = [migrations.RunSQL(REPLACE, UNDO)]
