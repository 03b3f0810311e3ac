"""REST: `memstore serve`. A request goes through the door (who asks, how often, how much), then to its resource.

`app` puts it together; `program` runs it. `door` and `limits` stand before every path, `problems` says what went wrong,
`asked` gives handlers what they are about, `pages` and `streams` are two ways to answer with much. The other modules
are one resource each.
"""
