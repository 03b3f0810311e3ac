"""REST: `memstore serve`.

A request passes `middleware` (request log, deadline, cross-origin check), then its route's dependencies (`auth`,
`dependencies`), then a router: conversations, contexts, facts, operations. `app` puts it together.
"""
