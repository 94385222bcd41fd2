"""Reads that several doors share: what an operation means for whoever asked for it."""
