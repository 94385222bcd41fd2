"""The reads: what the doors and the pages show. They change nothing."""
