"""Bells of the console."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from review import drafts


@shared_task
def forget_drafts() -> int:
    return drafts.sweep(timezone.now())
