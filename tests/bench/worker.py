"""A worker of the product that knows the little protocol: `python -m tests.bench.worker -A ...`

Everything but the dialect is the product's own command.
"""

from __future__ import annotations

import django

django.setup()

from tests.bench import dialect  # noqa: E402


def main() -> None:
    dialect.register()
    from celery.__main__ import main as celery

    celery()


if __name__ == "__main__":
    main()
