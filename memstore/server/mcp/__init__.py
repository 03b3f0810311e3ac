"""The Model Context Protocol: a user's memory as tools, resources and a prompt for any model.

server (on the SDK's MCPServer: lifespan, errors, resources, stdio and HTTP) → tools (typed functions) → results
"""
