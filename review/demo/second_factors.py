"""Authenticator apps of the demo's people, whose secrets are printed at every start."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.mfa.utils import decrypt

from refunds.models import Person
from review.demo.people import PEOPLE
from review.roles import DECIDERS


def ensure_apps(people: dict[str, Person]) -> list[str]:
    """Everybody who decides gets an app and recovery codes once; lines for the terminal."""
    lines = ["Second factors are on: put a secret into an authenticator app, or use up a code."]
    for name, roles in PEOPLE.items():
        if set(roles).isdisjoint(DECIDERS):
            continue
        person = people[name]
        app = Authenticator.objects.filter(user=person, type=Authenticator.Type.TOTP).first()
        app = app or TOTP.activate(person, generate_totp_secret()).instance
        codes = RecoveryCodes.activate(person).get_unused_codes()
        lines.append(f"  {name:<6} {decrypt(app.data['secret'])}  {' '.join(codes[:3])}")
    return lines
