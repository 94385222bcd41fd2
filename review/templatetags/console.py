"""Tags of the console: money, pills, times and icons. Loaded as builtins.

What is drawn from a few words of ours, an icon or a pill, is made once.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from refunds.domain.money import display, display_number, exponent
from review import access, drafts
from review.presenters.words import SHAPES, Clock, actor_word, short, state_word

register = template.Library()
# Forms of a time that name an instant; in another zone than UTC they name the zone too.
_INSTANTS = ("minutes", "seconds", "exact")
register.filter("short", short)
register.filter("words", state_word)
register.filter("actor", actor_word)


@register.simple_tag
def money(amount_minor: int, currency: str) -> SafeString:
    """An amount with its code after it; its class says how many digits stand after the point."""
    before, after = _around_money(currency)
    # Digits, a point, a sign and narrow spaces: nothing to escape.
    return SafeString(before + display_number(amount_minor, currency) + after)


@cache
def _around_money(currency: str) -> tuple[str, str]:
    drawn = format_html(
        '<span class="money"><span class="n x{}">|</span> <span class="cur">{}</span></span>',
        exponent(currency),
        currency,
    )
    before, _, after = drawn.partition("|")
    return before, after


@register.simple_tag
def amount(amount_minor: int, currency: str) -> str:
    """The same in plain text, for titles."""
    return display(amount_minor, currency)


@register.simple_tag
def copy(text: object, what: str) -> SafeString:
    """A button that copies an id; without script the id is there to be marked."""
    return format_html(
        '<button type="button" class="copy" data-copy="{}" data-what="{}">Copy'
        '<span class="vh"> {}</span></button>',
        text,
        what,
        what,
    )


@register.simple_tag
@cache
def icon(name: str, size: int = 16) -> SafeString:
    """One symbol of the sprite; always beside a word, therefore hidden from readers."""
    return format_html(
        '<svg width="{}" height="{}" aria-hidden="true"><use href="#{}"/></svg>', size, size, name
    )


@register.simple_tag
@cache
def pill(state: str, size: str = "") -> SafeString:
    """A state: shape, border and word together."""
    return format_html(
        '<span class="pill{}" data-state="{}">{}<span class="word">{}</span></span>',
        " pill-xl" if size == "xl" else "",
        state,
        icon(f"s-{SHAPES[state]}", 22 if size == "xl" else 14),
        state_word(state),
    )


@register.simple_tag
@cache
def flag(word: str) -> SafeString:
    """A flag: square corners, because it is not a state."""
    shape = f"s-{SHAPES[word]}" if word in SHAPES else "k-case"
    return format_html(
        '<span class="flag" data-state="{}">{}{}</span>', word, icon(shape, 12), word
    )


@register.simple_tag
def when(clock: Clock, at: datetime, form: str = "minutes") -> SafeString:
    """An instant in the reader's zone; UTC and its age on hover. `form`: minutes, seconds, exact,
    ago, age."""
    text = getattr(clock, form)(at)
    label = clock.zone_at(at) if form in _INSTANTS else ""
    return format_html(
        '<time datetime="{}" data-utc="{}" title="{}">{}{}</time>',
        at.isoformat(),
        clock.iso_utc(at),
        clock.utc(at),
        text,
        f" {label}" if label not in ("", "UTC") else "",
    )


@register.simple_tag
def meter(filled: int) -> SafeString:
    """The bar under an age; the words beside it say the same."""
    return format_html(
        '<svg class="meter" viewBox="0 0 100 5" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="bg" width="100" height="5"/><rect class="fg" width="{}" height="5"/></svg>',
        filled,
    )


@register.simple_tag(takes_context=True)
def draft(context: Context, form: str, object_ref: object) -> drafts.Kept:
    """`{% draft "reject" op.pk as kept %}`: what this reader typed into the form before.

    The form then includes "review/drafts.html#kept" and draws `kept.fields`.
    """
    request = context["request"]
    return drafts.kept(request, access.viewer(request).person.pk, form, str(object_ref))


@register.simple_tag
def hidden(values: Any) -> SafeString:
    """The hidden values of a changing form (the CSRF token is the form's own)."""
    return format_html(
        '<input type="hidden" name="intent" value="{}">'
        '<input type="hidden" name="obj_version" value="{}">'
        '<input type="hidden" name="shown_digest" value="{}">',
        values.intent,
        values.obj_version,
        values.shown_digest,
    )
