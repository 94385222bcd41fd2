"""The demo's people, its shop, and what they wanted this morning. Nothing else imports this."""
