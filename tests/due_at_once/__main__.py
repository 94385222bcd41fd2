"""`make due`: ten thousand refunds of unknown outcome, all due to be looked up in one instant.

Real processes on real sockets. Four accounts whose own table sets how often they may be asked (5
times a second, 10 after a rest: what every contract says), and the provider's log of requests says
how often they were, window by window. Meanwhile new refunds are approved and sent. In the end all
of them have ended, none as a case, and the auditor finds nothing.

First, on an account with the schedule of a real provider: for how long is a refund unknown whose
answer is lost and that the provider shows?

DUE (10000), SEED (1), RATE (5), JSON=1 for a last line for machines, BREAK=pacing for workers that
ask whatever is due. Ends with 0 when all is well, 1 otherwise, 2 for unusable input, 3 when a
switched-off guard was not noticed.
"""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any

from tests import ended
from tests.audit_book import FAULTS, audit, is_clean
from tests.bad_agent.__main__ import POLICY_CHANGES
from tests.due_at_once.afternoon import Afternoon
from tests.due_at_once.crowd import ACCOUNTS
from tests.walkthrough.installation import Installation

DUE_MIN = 200
UNKNOWN_SECONDS_MAX = 5
BREAKS = ("", "pacing")
# What is asked at once after a rest, as every contract has it: 5 a second go with 10.
BURST_SECONDS = 1.8
# Their budget is one, however many they are; one alone has no more than a core.
LOOKUP_WORKERS = 2
# One lead says yes to all of it: what limits people is not what is tried here.
POLICY = POLICY_CHANGES | {
    "approvals_per_person_hour_max = 60\n": "approvals_per_person_hour_max = 60000\n"
}
ACCOUNT_TABLE = """
[{name}]
adapter = "{adapter}"
base_url = "{{sandbox}}/{adapter}/{name}"
contract = "{contract}"
mode = "sandbox"
"""


def main() -> int:
    given = {
        name: os.environ.get(name, usual)
        for name, usual in (("DUE", "10000"), ("SEED", "1"), ("RATE", "5"))
    }
    broken = os.environ.get("BREAK", "")
    whole = all(each.isdecimal() for each in given.values())
    if not whole or int(given["DUE"]) < DUE_MIN or not 1 <= int(given["RATE"]) <= 1000:
        print(f"DUE ({DUE_MIN} or more), SEED and RATE (1 to 1000) are whole numbers.")
        return 2
    if broken not in BREAKS:
        print("BREAK is: pacing.")
        return 2
    due, seed, rate = (int(each) for each in given.values())
    began = time.monotonic()
    print(f"Starting an installation of its own, DUE={due}, SEED={seed}, RATE={rate}.", flush=True)
    with Installation(
        broken=broken,
        broken_module="tests.due_at_once.broken",
        policy_changes=POLICY,
        accounts_file=_accounts(rate),
        settings={
            f"AFTERSEND_PROVIDER_{name.upper().replace('-', '_')}_KEY": f"sandbox-key-{name}"
            for name in (*ACCOUNTS, "stripe-main")
        },
        lookup_workers=LOOKUP_WORKERS,
    ) as here:
        found = Afternoon(here, seed, due, rate).run()
        found["audit"] = audit(str(here.provider.book_file), here.database)
    found["seconds"] = round(time.monotonic() - began, 1)
    ok = _tell(found)
    if os.environ.get("JSON"):
        print(json.dumps(found | {"due": due, "seed": seed, "broken": broken, "ok": ok}))
    if broken:
        exceeded = any(each["exceeded"] for each in found["rates"].values())
        noticed = "noticed" if exceeded else "NOT NOTICED"
        print(f"BREAK=pacing: {noticed} by the rates that the provider saw.")
        return 1 if exceeded else 3
    return 0 if ok else 1


def _accounts(rate: int) -> str:
    """Their pace stands in the file as an operator writes it; nothing else is changed for them."""
    burst = math.ceil(rate * BURST_SECONDS) + 1
    pace = f"lookups_per_second = {rate}\nlookups_burst = {burst}\n"
    tables = [
        ACCOUNT_TABLE.format(name=name, adapter="plain", contract=name) + pace for name in ACCOUNTS
    ]
    tables.append(ACCOUNT_TABLE.format(name="stripe-main", adapter="stripe", contract="stripe"))
    return "".join(tables)


def _tell(found: dict[str, Any]) -> bool:
    """Say what was measured; whether all of it is as it must be."""
    unknown = found["unknown_seconds"]
    must = {
        f"unknown for {unknown['median']} s at the median where the answer is lost and the refund"
        f" is shown (of {unknown['count']}; the longest {unknown['highest']} s)": (
            unknown["median"] < UNKNOWN_SECONDS_MAX
        ),
        f"{found['ended']} of {found['crowd']} ended {found['states']} in"
        f" {found['looking_seconds']} s, {found['lookups']} lookups": (
            found["ended"] == found["crowd"]
        ),
        f"{found['cases']} cases at the end": found["cases"] == 0,
        f"the auditor's counts {_counts(found['audit'])}": is_clean(found["audit"]),
    }
    for name, each in found["rates"].items():
        said = f"{name} was asked {each['lowest']} to {each['highest']} times a second in"
        said += f" {each['windows']} windows, {each['configured']} are configured"
        must[said] = each["kept"]
    for said, holds in must.items():
        print(f"  {'ok' if holds else 'NOT OK'}: {said}")
    sent = found["dispatch_ms"]
    print(
        f"  dispatch meanwhile, from the approval to the provider: p50 {sent['p50']} ms, p95"
        f" {sent['p95']} ms, {sent['count']} refunds; {found['sent_again']} of the crowd sent again"
    )
    for name, sentences in found["audit"]["found"].items():
        print(f"  {name}: {'; '.join(sentences[:5])}")
    print(f"{found['seconds']} s in all.")
    return all(must.values())


def _counts(counts: dict[str, Any]) -> dict[str, int]:
    return {name: counts[name] for name in (*FAULTS, "unresolved")}


if __name__ == "__main__":
    ended.run(main)
