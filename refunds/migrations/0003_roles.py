"""The groups that are roles."""

from django.db import migrations

from refunds.domain.roles import ROLES


def add(apps, schema_editor):
    group = apps.get_model("auth", "Group")
    for name in ROLES:
        group.objects.get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0002_guards"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]
    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
