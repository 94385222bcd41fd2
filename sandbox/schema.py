"""Tables of the book."""

TABLES = (
    "accounts",
    "payments",
    "refunds",
    "statuses",
    "disputes",
    "keys",
    "call_versions",
    "calls",
    "rules",
    "holds",
    "notices",
)

SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS accounts (account TEXT PRIMARY KEY, profile TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS payments (
    account TEXT NOT NULL,
    ref TEXT NOT NULL,
    charge TEXT NOT NULL,
    currency TEXT NOT NULL,
    captured_minor INTEGER NOT NULL,
    customer TEXT,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (account, ref)
);

CREATE TABLE IF NOT EXISTS refunds (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    payment_ref TEXT NOT NULL,
    charge TEXT NOT NULL,
    marker TEXT,
    key TEXT,
    amount_minor INTEGER NOT NULL,
    currency TEXT NOT NULL,
    reason TEXT,
    metadata TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    "by" TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS refunds_of_payment ON refunds (account, payment_ref, seq);
CREATE INDEX IF NOT EXISTS refunds_of_marker ON refunds (account, marker);
CREATE INDEX IF NOT EXISTS refunds_of_key ON refunds (account, key);

-- Also the future: a status whose instant has not come is one that will be taken.
CREATE TABLE IF NOT EXISTS statuses (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    refund_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS statuses_of_refund ON statuses (refund_id, at, seq);

-- Of one payment; `status` is opened, won or lost.
CREATE TABLE IF NOT EXISTS disputes (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    payment_ref TEXT NOT NULL,
    charge TEXT NOT NULL,
    amount_minor INTEGER NOT NULL,
    currency TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS disputes_of_account ON disputes (account, seq);

-- status NULL: a request under this key is being executed.
CREATE TABLE IF NOT EXISTS keys (
    account TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    status INTEGER,
    headers TEXT,
    body BLOB,
    content_type TEXT,
    first_used_at INTEGER NOT NULL,
    PRIMARY KEY (account, key)
);

CREATE TABLE IF NOT EXISTS calls (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    account TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    "on" TEXT,
    key TEXT,
    marker TEXT,
    body_sha256 TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    answered_at INTEGER,
    answered TEXT,
    faults TEXT NOT NULL DEFAULT '[]'
);

CREATE TABLE IF NOT EXISTS call_versions (
    seq INTEGER PRIMARY KEY REFERENCES calls (seq),
    api_version TEXT NOT NULL
);

CREATE INDEX IF NOT EXISTS calls_of_marker ON calls (account, marker);

CREATE TABLE IF NOT EXISTS rules (
    id INTEGER PRIMARY KEY,
    seed INTEGER NOT NULL,
    position INTEGER NOT NULL,
    rule TEXT NOT NULL,
    seen INTEGER NOT NULL DEFAULT 0,
    fired INTEGER NOT NULL DEFAULT 0
);

-- Requests that wait: create NULL means already executed, only the answer is held.
CREATE TABLE IF NOT EXISTS holds (
    id INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    fault TEXT NOT NULL,
    "on" TEXT NOT NULL,
    marker TEXT,
    "create" TEXT,
    twists TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    due_at INTEGER,
    earliest_at INTEGER NOT NULL,
    latest_at INTEGER,
    state TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS holds_waiting ON holds (state, due_at);

CREATE TABLE IF NOT EXISTS notices (
    seq INTEGER PRIMARY KEY,
    account TEXT NOT NULL,
    refund_id TEXT NOT NULL,
    status_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    copies INTEGER NOT NULL DEFAULT 1,
    twist TEXT,
    options TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS notices_due ON notices (state, due_at);
"""
