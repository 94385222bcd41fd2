"""A line of the approvals queue. A page has fifty of them, and drawing one here takes a third of
what it takes in a template; everything that is put into it is escaped as there.
"""

from __future__ import annotations

from html import escape

from django import template
from django.template import Context
from django.utils.safestring import SafeString

from review.queue_rows import Row
from review.templatetags.console import flag, money, pill

register = template.Library()

_LINE = """<tr role="row" id="row-{id}" data-row class="{look}"{swap}>
  {tick}
  <td role="cell" class="c-state">{moved}{state}</td>
  <td role="cell" class="c-money r">{amount}</td>
  <th role="rowheader" scope="row" class="c-order"><a href="{order_url}">{order_ref}</a> \
<span class="m">{versions}</span>\
<small><a class="id" href="{url}" title="{id}">op {short}</a></small></th>
  <td role="cell" class="c-why">{why}{notes}</td>
  <td role="cell" class="c-by">{proposer}<small>{by}</small></td>
  <td role="cell" class="c-pol">{policy}</td>
  <td role="cell" class="c-age r nb">{age}<small id="left-{id}"{late}>{left}</small></td>
  <td role="cell" class="c-go r"><a class="btn btn-s" data-open {go}\
<span class="vh"> the refund on order {order_ref}</span></a></td>
</tr>
"""
_BOX = """<td role="cell" class="c-tick"><input type="checkbox" name="item" value="{key}" form="bulk-form" data-tick \
aria-label="Tick {amount} on order {order_ref}"{checked}></td>"""
_NO_BOX = SafeString('<td role="cell" class="c-tick"></td>')
_MOVED = '<input type="hidden" name="moved" value="{shown}">'
_SWAP = SafeString(' hx-swap-oob="true"')
_LATE = SafeString(' class="late"')
_CHECKED = SafeString(" checked")


@register.simple_tag(takes_context=True)
def queue_line(context: Context, row: Row) -> SafeString:
    """`here` of the context is the query of the list; with `ticks` it has a column of boxes. With
    `oob` the line takes the place of one that is on the screen: it has no box, and a poll is told
    what it shows now."""
    ticks, oob = context.get("ticks"), context.get("oob")
    return _drawn(
        _LINE,
        id=row.id,
        look=row.look,
        swap=_SWAP if oob else "",
        tick=_tick(row, boxed=row.tickable and not oob) if ticks else "",
        moved=_drawn(_MOVED, shown=row.shown) if oob else "",
        state=_drawn("{pill} {flag}", pill=pill(row.state), flag=flag("stale"))
        if row.stale
        else pill(row.state),
        amount=_amount(row),
        order_url=row.order_url,
        order_ref=row.order_ref,
        versions=row.versions,
        url=row.url,
        short=row.short,
        why=row.why,
        notes=_notes(row.notes) if row.notes else "",
        proposer=row.proposer,
        by=row.by,
        policy=row.policy,
        age=row.age,
        late=_LATE if row.expiring else "",
        left=row.left,
        go=_go(row, context["here"]),
    )


def _drawn(text: str, **values: str) -> SafeString:
    """What Django's `format_html` gives for words alone: it asks of each what kind of thing it is,
    which takes longer than all the rest of a line."""
    plain = {
        name: value if isinstance(value, SafeString) else escape(value)
        for name, value in values.items()
    }
    return SafeString(text.format_map(plain))


def _tick(row: Row, *, boxed: bool) -> SafeString:
    if not boxed:
        return _NO_BOX
    checked = _CHECKED if row.ticked else ""
    return _drawn(_BOX, key=row.key, amount=row.amount, order_ref=row.order_ref, checked=checked)


def _amount(row: Row) -> SafeString:
    asked = money(row.amount_minor, row.currency)
    if row.gone:
        return asked
    left = money(row.available_minor, row.currency)
    return SafeString(f"{asked}<small>of {left}</small>")


def _notes(notes: list[str]) -> SafeString:
    return SafeString("".join(f"<small>{escape(note)}</small>" for note in notes))


def _go(row: Row, here: str) -> SafeString:
    if row.is_open:
        return _drawn('data-key="Escape" href="{here}#row-{id}">Close', here=here, id=row.id)
    return _drawn('href="{here}&amp;open={id}#row-{id}">Open', here=here, id=row.id)
