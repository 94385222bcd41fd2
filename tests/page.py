"""A page as a browser without scripts has it: the words one can read, and the forms one can send."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

_VOID = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "wbr", "use"})
_UNREAD = frozenset({"script", "style", "template", "title", "svg"})
_BLOCKS = frozenset({"p", "div", "li", "tr", "td", "th", "dt", "dd", "h1", "h2", "h3", "section"})


@dataclass
class Button:
    """Something that sends its form; `name` may be empty."""

    name: str
    value: str
    action: str = ""
    words: str = ""


@dataclass
class Form:
    """`values` is what a browser would send for it untouched, without any button."""

    id: str
    action: str
    method: str
    values: dict[str, str] = field(default_factory=dict)
    boxes: dict[str, str] = field(default_factory=dict)
    buttons: list[Button] = field(default_factory=list)

    def button(self, words: str) -> Button:
        """The button whose words contain these; raises LookupError with those there are."""
        for each in self.buttons:
            if words.lower() in each.words.lower():
                return each
        raise LookupError(f"no button {words!r}; there is {[each.words for each in self.buttons]}")


class Page(HTMLParser):
    """`text` is what can be read below `<main>` (or on the whole page, where there is none)."""

    def __init__(self, url: str, status: int, html: str) -> None:
        super().__init__()
        self.url = url
        self.status = status
        self.html = html
        self.forms: dict[str, Form] = {}
        self._open: list[tuple[str, str]] = []
        self._parts: dict[str, list[str]] = {}
        self._words: list[str] = []
        self._main_words: list[str] = []
        self._form: Form | None = None
        self._area: tuple[str, Form] | None = None
        self._choice: tuple[str, Form] | None = None
        self._button: Button | None = None
        # What names its form by id may stand outside of it, before or after.
        self._outside: dict[str, Form] = {}
        self.feed(html)
        self.close()
        for form_id, outside in self._outside.items():
            if form_id in self.forms:
                self.forms[form_id].values |= outside.values
                self.forms[form_id].boxes |= outside.boxes
                self.forms[form_id].buttons += outside.buttons

    @property
    def text(self) -> str:
        """Words with single spaces, blocks on lines of their own."""
        return _tidy(self._main_words or self._words)

    def part(self, element_id: str) -> str:
        """The words inside one element, as `text` has them; empty where it is not there."""
        return _tidy(self._parts.get(element_id, []))

    def form(self, form_id: str) -> Form:
        """Raises LookupError with what the page says instead."""
        if form_id not in self.forms:
            raise LookupError(f"{self.url} has no form {form_id}. It says: {self.text[:1500]}")
        return self.forms[form_id]

    def form_to(self, end: str) -> Form:
        """The form whose action ends so. Raises LookupError with what the page says instead."""
        for each in self.forms.values():
            if urlsplit(each.action).path.endswith(end):
                return each
        raise LookupError(f"{self.url} has no form to {end}. It says: {self.text[:1500]}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in _BLOCKS:
            self._say("\n")
        if tag == "form":
            form_id = attributes.get("id", f"form-{len(self.forms) + 1}")
            action = urljoin(self.url, attributes.get("action") or self.url)
            self._form = Form(form_id, action, attributes.get("method", "get").lower())
            self.forms[form_id] = self._form
        elif tag in ("input", "button", "textarea", "select"):
            form_id = attributes.get("form", "")
            named = self._outside.setdefault(form_id, Form(form_id, "", "")) if form_id else None
            self._control(tag, attributes, named or self._form)
        elif tag == "option" and self._choice is not None:
            name, form = self._choice
            if "selected" in attributes or name not in form.values:
                form.values[name] = attributes.get("value", "")
        if tag not in _VOID:
            self._open.append((tag, attributes.get("id", "")))

    def _control(self, tag: str, attributes: dict[str, str], form: Form | None) -> None:
        name, value = attributes.get("name", ""), attributes.get("value", "")
        kind = attributes.get("type", "submit" if tag == "button" else "text")
        if form is None or "disabled" in attributes:
            return
        if kind in ("submit", "image") and tag in ("button", "input"):
            action = attributes.get("formaction", "")
            pressed = Button(name, value, urljoin(self.url, action) if action else "")
            form.buttons.append(pressed)
            if tag == "input":
                pressed.words = value
            else:
                self._button = pressed
        elif kind in ("checkbox", "radio"):
            form.boxes[f"{name}={value}" if kind == "radio" else name] = value or "on"
            if "checked" in attributes:
                form.values[name] = value or "on"
        elif tag == "textarea" and name:
            form.values[name] = ""
            self._area = (name, form)
        elif tag == "select" and name:
            self._choice = (name, form)
        elif tag == "input" and name and kind != "button":
            form.values[name] = value

    def handle_endtag(self, tag: str) -> None:
        if any(tag == each for each, _ in self._open):
            while self._open.pop()[0] != tag:
                continue
        if tag in _BLOCKS:
            self._say("\n")
        if tag == "form":
            self._form = None
        elif tag == "textarea":
            self._area = None
        elif tag == "select":
            self._choice = None
        elif tag == "button":
            self._button = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            name, form = self._area
            form.values[name] += data
        elif not any(each in _UNREAD for each, _ in self._open):
            if self._button is not None:
                self._button.words += data
            self._say(data)

    def _say(self, words: str) -> None:
        self._words.append(words)
        for tag, element_id in self._open:
            if tag == "main":
                self._main_words.append(words)
            if element_id:
                self._parts.setdefault(element_id, []).append(words)


def _tidy(words: list[str]) -> str:
    lines = (" ".join(line.split()) for line in "".join(words).splitlines())
    return "\n".join(line for line in lines if line)
