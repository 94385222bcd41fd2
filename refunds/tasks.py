"""Bells of the money side. A task carries an id or nothing, and calls one function."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from refunds import crew, dispatch, doorbell, ledger, witness


@shared_task
def send(operation_id: str) -> str:
    return dispatch.send(operation_id)


@shared_task
def send_ready() -> int:
    return crew.OF_THIS_PROCESS.work()


@shared_task
def resend(operation_id: str) -> str:
    return dispatch.resend(operation_id)


@shared_task
def sweep_ready() -> None:
    for operation_id in dispatch.ready(settings.LIMITS.sweep_batch_max):
        doorbell.ring_send(operation_id)


@shared_task
def expire() -> int:
    return ledger.expire(timezone.now(), batch_max=settings.LIMITS.sweep_batch_max)


@shared_task
def check_witness() -> bool:
    return witness.check()
