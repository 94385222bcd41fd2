"""The product's programs under one roof, knowing the little protocol: `config.workers` for it.

Each kind of program has its own database role, so that the server tells whose round trips they are.
"""

from __future__ import annotations

import sys

from config import workers


def main() -> int:
    """Words: `role name celery-command…` for each program."""
    told = [each.split(" ", 1) for each in sys.argv[1:]]
    programs = [workers.read(rest) for _, rest in told]
    roles = {program.name: role for program, (role, _) in zip(programs, told, strict=True)}
    workers.load()

    def start(program: workers.Program) -> None:
        from django.db import connections

        from tests.bench import dialect

        connections.settings["default"]["USER"] = roles[program.name]
        dialect.register()
        workers.celery(program)

    return workers.run(programs, start)


if __name__ == "__main__":
    sys.exit(main())
