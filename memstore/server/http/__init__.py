"""REST: `memstore serve`.

A request passes `middleware` (request log, deadline, cross-origin check), then its route's `dependencies` (who asks,
for whose memory), then a router: conversations, memory, operations. `app` puts it together.
"""
