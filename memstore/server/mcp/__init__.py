"""The Model Context Protocol: a user's memory as tools, resources and a prompt for whatever model asks.

a tool is called → arguments (checked) → tools → results; identity: ids that a model can say; faults: errors in words
stdio: one user, whose store is opened behind the handshake; http: the user is in the URL
"""
