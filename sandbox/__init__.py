"""A payment provider that misbehaves on command: another company's system, in a box."""
