"""Providers: adapters read and write dialects, `http` is the only wire, `registry` the accounts."""
