"""Guards that a run can be told to do without: `BREAK=NAME`. Only that program is patched."""

from __future__ import annotations

from collections.abc import Callable

from tests.walkthrough import broken

# Mistakes that teams make; see there what each of them is.
MODES: dict[str, Callable[[], None]] = {
    name: broken.MODES[name]
    for name in ("lease-requeue", "new-key", "refused-on-500", "release-on-timeout", "quiet-period")
}
