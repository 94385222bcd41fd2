"""The web program of the storm, served as `tests.storm.web:application`."""

from __future__ import annotations

from config.asgi import application
from tests.storm.plant import be_patient, plant

be_patient()
plant()

__all__ = ["application"]
