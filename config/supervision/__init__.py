"""Keeping a set of programs alive, and leaving nothing behind. Standard library only."""
