#!/usr/bin/env python
"""Django's commands. Starts the embedded servers where no DATABASE_URL is set."""

import os
import sys

# Commands that look at the code only; everything else gets a database.
WITHOUT_DATABASE = {"check", "help", "version", "show_machine", "collectstatic", "makemigrations"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import execute_from_command_line

    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    if command not in WITHOUT_DATABASE and not {"-h", "--help"} & set(sys.argv):
        from config.servers import ensure_servers

        ensure_servers()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
