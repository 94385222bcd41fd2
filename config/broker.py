"""Celery settings for each kind of broker. A message is a doorbell: the database holds the truth.

So nothing here has to be exact. A lost message costs the seconds until the next sweep, a repeated
one costs a look at a row that somebody else already took.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from kombu import Exchange, Queue

MONEY = "money"
LOOKUPS = "lookups"

TASK_SOFT_SECONDS = 60
TASK_HARD_SECONDS = 90
VISIBILITY_SECONDS = 900  # longer than any task and any countdown, or a task runs twice
SOFT_SHUTDOWN_SECONDS = 40  # longer than a whole call to a provider (30 s)
DELIVERIES_MAX = 5

REDIS_SCHEMES = ("redis", "rediss", "redis+socket")
AMQP_SCHEMES = ("amqp", "amqps")


def queues() -> tuple[Queue, ...]:
    """`money` for what may move money, `lookups` for what only reads and tells.

    The arguments are RabbitMQ's; other brokers pass them over. A message that is delivered too
    often is dropped, not parked: what it pointed at is still due in the database.
    """
    # A topic exchange, because RabbitMQ's delayed delivery passes direct ones by.
    exchange = Exchange("aftersend", type="topic")
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": DELIVERIES_MAX}
    return tuple(
        Queue(name, exchange, routing_key=name, queue_arguments=arguments)
        for name in (MONEY, LOOKUPS)
    )


def settings_for(url: str) -> dict[str, Any]:
    """How Celery treats this broker and its messages. Raises ValueError for an unknown kind.

    The address, the queues and the routes are the application's to add.
    """
    return {
        "broker_transport_options": _transport_options(url),
        "broker_connection_retry_on_startup": True,
        "task_create_missing_queues": False,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_soft_time_limit": TASK_SOFT_SECONDS,
        "task_time_limit": TASK_HARD_SECONDS,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        # Nobody waits long for a bell: the sweep finds the work anyway.
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0.1},
        "worker_prefetch_multiplier": 1,
        "worker_cancel_long_running_tasks_on_connection_loss": True,
        "worker_soft_shutdown_timeout": SOFT_SHUTDOWN_SECONDS,
        "worker_hijack_root_logger": False,
    }


def _transport_options(url: str) -> dict[str, Any]:
    scheme = urlsplit(url).scheme
    if scheme in REDIS_SCHEMES:
        return {
            "visibility_timeout": VISIBILITY_SECONDS,
            # kombu looks for messages of dead workers every interval x throttle seconds; its
            # defaults make that 100 s, whatever the visibility timeout says.
            "unacked_restore_interval": 15,
            "unacked_restore_throttle": 1,
            "socket_keepalive": True,
            "health_check_interval": 30,
        }
    if scheme in AMQP_SCHEMES:
        return {"confirm_publish": True}
    known = ", ".join(f"{name}://" for name in (*AMQP_SCHEMES, *REDIS_SCHEMES))
    raise ValueError(
        f"CELERY_BROKER_URL starts with {scheme!r}. Use a broker that several programs can share "
        f"and that gives back what a killed worker held: {known}"
    )
