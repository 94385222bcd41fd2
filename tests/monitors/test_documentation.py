"""docs/operating.md shows every alarm with the figures that the code uses."""

from __future__ import annotations

from reconciliation.monitors.table import SIGNALS
from tests.monitors.documentation import FILE, written

TEXT = FILE.read_text()


def test_the_table_of_alarms_is_the_codes_own() -> None:
    assert written(TEXT) == TEXT, "write it anew: python -m tests.monitors.documentation"
    for name in SIGNALS:
        assert f"| `{name}` |" in TEXT
