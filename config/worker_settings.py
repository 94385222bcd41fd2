"""Django's settings of the programs under the workers' roof: without what only pages need."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as _EVERYWHERE

_OF_PAGES = (
    "allauth",
    "ninja",
    "django_htmx",
    "django.contrib.messages",
    "django.contrib.staticfiles",
)
INSTALLED_APPS = [each for each in _EVERYWHERE if not each.startswith(_OF_PAGES)]
