"""Guards that a run can be told to do without: `BREAK=NAME`. Only that program is patched."""

from __future__ import annotations

from collections.abc import Callable

from tests.walkthrough import broken

# Mistakes that teams make; see there what each of them is.
MODES: dict[str, Callable[[], None]] = {
    "lease-requeue": broken.lease_requeue,
    "new-key": broken.new_key,
    "refused-on-500": broken.refused_on_500,
    "release-on-timeout": broken.release_on_timeout,
    "quiet-period": broken.quiet_period,
}
