"""A storm of notices: `python -m tests.notices`.

DELIVERIES (1000), SEED (1), JSON=1 for a last line for machines, BREAK=first-notice-wins or
ack-before-store to take a guard out and be noticed. Ends with 0 when every refund has the
provider's end and no notice is lost, 1 otherwise, 2 for unusable input.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import tests.environment as environment

DELIVERIES_MIN = 40


def main() -> int:
    wanted = {
        "DELIVERIES": os.environ.get("DELIVERIES", "1000"),
        "SEED": os.environ.get("SEED", "1"),
    }
    broken = os.environ.get("BREAK", "")
    if not all(each.isdigit() for each in wanted.values()):
        print("DELIVERIES and SEED are whole numbers.")
        return 2
    deliveries, seed = int(wanted["DELIVERIES"]), int(wanted["SEED"])
    if deliveries < DELIVERIES_MIN:
        print(f"DELIVERIES must be {DELIVERIES_MIN} or more.")
        return 2
    environment.pytest_configure()
    import django

    django.setup()
    logging.disable(logging.CRITICAL)
    from tests.notices.broken import MODES

    if broken and broken not in MODES:
        print(f"BREAK is one of: {', '.join(MODES)}.")
        return 2
    if broken:
        MODES[broken]()
    began = time.monotonic()
    print(f"{deliveries} deliveries begin, SEED={seed}.", flush=True)
    found = _run(seed, deliveries)
    return _tell(found, seed, broken, time.monotonic() - began)


def _run(seed: int, deliveries: int) -> dict[str, object]:
    """On a database and a sandbox of its own, which are gone afterwards."""
    from django.conf import settings
    from django.db import connection
    from django.test.utils import setup_test_environment

    from refunds import policies
    from tests.cast import assemble
    from tests.notices.storm import Storm, lenient_policy
    from tests.provider_process import SandboxProcess

    setup_test_environment()
    connection.settings_dict["TEST"]["NAME"] = f"test_storm_of_notices_{os.getpid()}"
    usual = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            settings.POLICY_FILE = lenient_policy(Path(folder))
            settings.WITNESS_DIR = Path(folder) / "witness"
            policies.current.cache_clear()
            provider = SandboxProcess()
            provider.start(port=urlsplit(os.environ["AFTERSEND_SANDBOX_URL"]).port or 0)
            try:
                return Storm(provider, assemble(), seed, deliveries).run()
            finally:
                provider.stop()
    finally:
        connection.creation.destroy_test_db(usual, verbosity=0)


def _tell(found: dict[str, object], seed: int, broken: str, seconds: float) -> int:
    for name, value in found.items():
        print(f"  {name}: {value}")
    ok = bool(found["ok"])
    print(f"{'ok' if ok else 'NOT OK'}, {seconds:.0f} s in all.")
    if os.environ.get("JSON"):
        line = {name: value for name, value in found.items() if name != "examples"}
        print(json.dumps(line | {"seed": seed, "broken": broken, "seconds": round(seconds, 1)}))
    if broken:
        return 3 if ok else 1
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
