"""What an agent's machine needs to use Aftersend over MCP. No Django, no settings, no database.

The server's own MCP door takes names, schemas and descriptions of the tools from here, so that
both ways show a model the same four tools.
"""
