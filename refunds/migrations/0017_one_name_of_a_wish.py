"""A business key is made of the order and the wish, whose pair is unique: it needs no index too."""

from django.db import migrations

HELD = """
-- As `refunds.ledger.identity.business_key_of` makes it. A colon within a part is written %3A, so no
-- two pairs share a key, and the index over the pair keeps every key unique. An order keeps its
-- reference (orders_steps), and an operation its order, wish and key (operation_material).
ALTER TABLE operation DROP CONSTRAINT operation_business_key;
CREATE FUNCTION aftersend_business_key_is_its_own() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM orders WHERE id = NEW.order_id
    AND NEW.business_key = 'refund:' || replace(replace(ref, '%', '%25'), ':', '%3A')
      || ':' || replace(replace(NEW.request_ref, '%', '%25'), ':', '%3A');
  IF NOT FOUND THEN
    RAISE EXCEPTION 'operation_business_key: % is not what % of order % is called',
      NEW.business_key, NEW.request_ref, NEW.order_id
      USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'operation_business_key';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER operation_business_key AFTER INSERT ON operation FOR EACH ROW
  EXECUTE FUNCTION aftersend_business_key_is_its_own();
"""
UNDO = """
DROP FUNCTION aftersend_business_key_is_its_own CASCADE;
ALTER TABLE operation ADD CONSTRAINT operation_business_key UNIQUE (business_key);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0016_numbers_of_their_own"),
    ]

    operations = [
        migrations.RunSQL(
            HELD,
            UNDO,
            state_operations=[
                migrations.RemoveConstraint(model_name="operation", name="operation_business_key"),
            ],
        ),
    ]
