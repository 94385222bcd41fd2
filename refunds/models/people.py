"""Who acts: people with roles (Django groups), and agents with credentials owned by a person."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models

from refunds.models.loading import Loaded


class Person(Loaded, AbstractUser):
    """A human who signs in. Roles are group names: rep lead ops ops_lead finance manager admin."""

    time_zone = models.CharField(max_length=64, default="UTC")

    class Meta:
        db_table = "person"


class Agent(Loaded):
    """A program that proposes. Its owner may never approve what it proposed (R12)."""

    name = models.CharField(max_length=64, unique=True)
    owner = models.ForeignKey(Person, on_delete=models.PROTECT, related_name="agents")
    accounts = ArrayField(models.CharField(max_length=64))
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "agent"

    def __str__(self) -> str:
        return self.name


class Credential(models.Model):
    """One bearer key of an agent: `as_<prefix>_<secret>`, stored as an HMAC only.

    A key needs no slow hash: its secret has 256 random bits.
    """

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="credentials")
    prefix = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=32))
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "credential"
        constraints = [
            # One key never both feeds the facts and asks for money on them.
            models.CheckConstraint(
                name="credential_feeds_or_proposes",
                condition=~models.Q(scopes__contains=["order:write", "refund:propose"]),
            )
        ]

    def __str__(self) -> str:
        return f"as_{self.prefix}_…"
