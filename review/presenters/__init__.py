"""What pages say, from plain values: pure, no framework, no clock of its own."""
