"""The table of alarms in docs/operating.md: `python -m tests.monitors.documentation` writes it anew."""

from __future__ import annotations

import os
import re
from typing import Final

import django

if __name__ == "__main__":
    os.environ.setdefault("AFTERSEND_ENV", "test")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()

from reconciliation.monitors import table  # noqa: E402
from tests.provider_process import ROOT  # noqa: E402

FILE: Final = ROOT / "docs/operating.md"
_PART = re.compile(r"(<!-- generated: alarms -->\n).*?(<!-- end -->)", re.DOTALL)


def written(text: str) -> str:
    """The text with the table as the code has it."""
    return _PART.sub(lambda found: f"{found[1]}{table.markdown_table()}\n{found[2]}", text)


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text()))
