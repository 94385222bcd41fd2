"""Which refund another one makes good for is part of what was approved: it never changes."""

from __future__ import annotations

from django.db import migrations

GUARD = """
CREATE TRIGGER operation_remedy_material BEFORE UPDATE ON operation FOR EACH ROW
  WHEN (NEW.remedy_of_id IS DISTINCT FROM OLD.remedy_of_id)
  EXECUTE FUNCTION aftersend_refuse('material facts are immutable');
"""


class Migration(migrations.Migration):
    dependencies = [("refunds", "0010_lifting")]
    operations = [
        migrations.RunSQL(GUARD, "DROP TRIGGER operation_remedy_material ON operation;"),
    ]
