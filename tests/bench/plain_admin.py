"""What a team gets for nothing: Django's own admin over the same operations, in the same database.

`python -m tests.bench.plain_admin DATABASE_URL` reads a number of repeats from each line of its
input and answers with the times of the list's first page, in milliseconds, as one line of JSON.
Its users and sessions live in a schema of its own, and it sees our table through a view.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import django
from django.conf import settings

from config import env
from tests.bench.ground import SCHEMA

OWN_SCHEMA = "plain_admin"
SHOWN = (
    "id",
    "business_key",
    "order_id",
    "provider_account",
    "amount_minor",
    "currency",
    "state",
    "reason_text",
    "created_at",
)


def _set_up(url: str) -> None:
    database = env.database(url)
    database["OPTIONS"] = {"options": f"-c search_path={OWN_SCHEMA}"}
    settings.configure(
        SECRET_KEY="of-no-use-but-to-be-there",
        ALLOWED_HOSTS=["localhost"],
        ROOT_URLCONF=__name__,
        DATABASES={"default": database},
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        STATIC_URL="/static/",
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    django.setup()


def _see_operations() -> None:
    from django.core.management import call_command
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {OWN_SCHEMA}")
        cursor.execute(
            f"CREATE OR REPLACE VIEW {OWN_SCHEMA}.operation AS SELECT * FROM {SCHEMA}.operation"
        )
    call_command("migrate", verbosity=0, interactive=False)


def _site() -> Any:
    """The list as anybody would write it: newest first, fifty a page, a filter, a search."""
    from django.contrib import admin
    from django.db import models

    from refunds.domain.states import STATES

    class Operation(models.Model):
        id = models.UUIDField(primary_key=True)
        business_key = models.TextField()
        order_id = models.BigIntegerField()
        provider_account = models.TextField()
        amount_minor = models.BigIntegerField()
        currency = models.TextField()
        state = models.TextField(choices=[(each, each) for each in STATES])
        reason_text = models.TextField()
        created_at = models.DateTimeField()

        class Meta:
            app_label = "auth"
            db_table = "operation"
            managed = False

        def __str__(self) -> str:
            return self.business_key

    usual = {
        "list_display": SHOWN,
        "list_per_page": 50,
        "list_filter": ("state",),
        "search_fields": ("reason_text",),
        "ordering": ("-id",),  # ids are in the order of time
    }
    admin.site.register(Operation, type("OperationAdmin", (admin.ModelAdmin,), usual))
    return admin.site.urls


def main() -> None:
    _set_up(sys.argv[1])
    _see_operations()
    from django.contrib.auth.models import User
    from django.test import Client
    from django.urls import path

    globals()["urlpatterns"] = [path("admin/", _site())]
    root, _ = User.objects.get_or_create(username="root", is_staff=True, is_superuser=True)
    visitor: Any = Client(SERVER_NAME="localhost")
    visitor.force_login(root)
    for line in sys.stdin:
        times = []
        for _ in range(1 + int(line)):
            began = time.perf_counter()
            answer = visitor.get("/admin/auth/operation/")
            times.append(round((time.perf_counter() - began) * 1000, 3))
            assert answer.status_code == 200, answer.status_code
        print(json.dumps(times[1:]), flush=True)  # the first one reads its templates


if __name__ == "__main__":
    main()
