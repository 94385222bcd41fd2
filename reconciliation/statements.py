"""Statements: files that somebody got from a provider. Told by their content, stored once."""

from __future__ import annotations

import hashlib
import re
from email import policy
from email.parser import BytesHeaderParser
from uuid import UUID

from reconciliation import rulings
from reconciliation.models import Case, CaseStatement, Statement
from refunds.domain.errors import Refusal
from refunds.models import Person

STATEMENT_BYTES_MAX = 5_242_880
STATEMENTS_PER_CASE_MAX = 20
EXTENSIONS = {"application/pdf": "pdf", "image/png": "png", "message/rfc822": "eml"}
_PNG = b"\x89PNG\r\n\x1a\n"
_NAME_KEEPS = re.compile(r"[^\w .()-]+")


def media_type(content: bytes) -> str | None:
    """What the bytes are: a PDF, a PNG, or a message with a sender and a date; None for all else.

    A name or a browser's word for it is not asked: both are typed by whoever sends the file.
    """
    if content.startswith(b"%PDF-"):
        return "application/pdf"
    if content.startswith(_PNG):
        return "image/png"
    return "message/rfc822" if _is_message(content) else None


def _is_message(content: bytes) -> bool:
    head = content[:65_536]
    if b"\x00" in head or b"<html" in head[:512].lower():
        return False
    headers = BytesHeaderParser(policy=policy.compat32).parsebytes(head)
    return all(headers.get(name) for name in ("From", "Date")) and bool(
        headers.get("Received") or headers.get("Message-ID") or headers.get("Subject")
    )


def stored(content: bytes) -> Statement:
    """The statement of these bytes, stored at most once.

    Raises Refusal: statement_empty, statement_too_large (413), statement_type.
    """
    if not content:
        raise Refusal(
            "statement_empty",
            "Not attached. No file came, or an empty one.",
            what_to_do="Choose the provider’s statement: a PDF, a PNG, or the message as EML.",
            field="file",
        )
    if len(content) > STATEMENT_BYTES_MAX:
        raise Refusal(
            "statement_too_large",
            f"Not attached. The file is too long; {STATEMENT_BYTES_MAX} bytes are allowed.",
            status=413,
            what_to_do="Attach the page that shows the refund, not the whole report.",
            field="file",
        )
    kind = media_type(content)
    if kind is None:
        raise Refusal(
            "statement_type",
            "Not attached. The content is no PDF, PNG or e-mail message.",
            what_to_do="Save the statement as PDF or PNG, or the message as EML, and attach that.",
            field="file",
        )
    found, _ = Statement.objects.get_or_create(
        sha256=hashlib.sha256(content).digest(),
        defaults={"media_type": kind, "content": content},
    )
    return found


def attach(
    case: Case, statement: Statement, *, name: str, by: Person, intent: UUID | None
) -> CaseStatement:
    """Put a statement beside a case whose row is locked; attached before is the same result.

    It moves what the case rests on, so a ruling that waits is void. Raises Refusal
    statements_too_many.
    """
    found = CaseStatement.objects.filter(case=case, statement=statement).first()
    if found is not None:
        return found
    if CaseStatement.objects.filter(case=case).count() >= STATEMENTS_PER_CASE_MAX:
        raise Refusal(
            "statements_too_many",
            f"Not attached. A case holds {STATEMENTS_PER_CASE_MAX} statements.",
            what_to_do="Say in a note where the others are kept.",
            field="file",
        )
    safe = _NAME_KEEPS.sub("_", name).strip(" .")[-100:] or "statement"
    attached = CaseStatement.objects.create(case=case, statement=statement, name=safe, person=by)
    rulings.void_waiting(case, f"{by.username} attached a statement.")
    rulings.step(
        case,
        "attached",
        by=by,
        intent=intent,
        name=safe,
        sha256=bytes(statement.sha256).hex(),
    )
    return attached
