"""REST: `memstore serve`.

A request passes `middleware` (request log, deadline, cross-origin check), then its route's dependencies (`auth`,
`dependencies`), then one router module a resource. `app` puts it together; `errors` makes problem bodies,
`pagination` keyset pages, `sse` the stream of events.
"""
